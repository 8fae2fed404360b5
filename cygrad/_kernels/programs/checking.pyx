# cython: cdivision=True, initializedcheck=False
"""Checks of programs (see checking.pxd for the contract)."""
from libc.stdint cimport intptr_t
from libc.stdio cimport fprintf, stderr
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from cygrad._kernels.drivers.elementwise cimport (CG_FLOAT64, CG_LARGEST, Operand, cast, cg_is_complex, cg_is_floating_point, cg_itemsize,
                                                  cg_real)
from cygrad._kernels.drivers.packing cimport pack
from cygrad._kernels.programs.planning cimport is_live
from cygrad._kernels.programs.steps cimport DENSE, NONE, Slot, describe_slot, last_writer
from cygrad._kernels.programs.tiles cimport run_tile

cdef enum:
    VECTOR = 64
    NAN_BYTE = 0xff

cdef long long checks = 0, faults = 0


def program_checks():
    """Return how many programs and kernels were checked, and how many results had other bits the second time."""
    return checks, faults


cdef intptr_t bytes_of(const Program* program, const Slot* slot) noexcept nogil:
    cdef intptr_t count = cg_itemsize[slot.dtype]
    cdef int d
    for d in range(program.ndim):
        if not (slot.reduced and program.is_reduced[d]):
            count *= program.shape[d]
    return count


cdef bint begin_check(Check* check, const Program* program) noexcept nogil:
    global checks
    cdef Slot* slot
    cdef intptr_t largest = 0
    cdef int k
    check.program = program[0]
    for k in range(program.slot_count):
        largest = max(largest, bytes_of(program, &program.slots[k]))
    check.whole.program = &check.program
    check.whole.dim, check.whole.along, check.whole.count = NONE, 1, 1
    check.whole.streamed = CG_LARGEST       # of no dtype
    check.whole.slot_bytes = (largest + 2 * VECTOR) // VECTOR * VECTOR
    check.memory = <char*>malloc(<size_t>((program.slot_count + 1) * check.whole.slot_bytes))
    if check.memory is NULL:
        return False
    memset(check.memory, NAN_BYTE, program.slot_count * check.whole.slot_bytes)
    for k in range(program.slot_count):
        slot = &check.program.slots[k]
        if slot.data is NULL or slot.number or slot.geometry != DENSE and last_writer(program, k, 0, program.step_count) == NONE:
            continue
        slot.data, slot.padded, slot.geometry = check.memory + k * check.whole.slot_bytes, True, DENSE
        if is_live(program, k, 0, program.step_count):
            memcpy(slot.data, program.slots[k].data, bytes_of(program, slot))
    if run_tile(&check.whole, 0, check.memory):
        checks += 1
        return True
    free(check.memory)
    return False


cdef bint is_nan(const char* place, int dtype) noexcept nogil:
    cdef double number
    cast(dtype, CG_FLOAT64)(<char*>&number, 0, place, 0, 1)
    return number != number


cdef intptr_t first_difference(const char* a, const char* b, int dtype, intptr_t nbytes) noexcept nogil:
    """Return the number of the first element with other bits, NONE if there is none. Any NaN equals any NaN: loops may swap operands."""
    cdef int part = cg_real[dtype], width = cg_itemsize[part]
    cdef bint has_nan = cg_is_floating_point[dtype] or cg_is_complex[dtype]
    cdef intptr_t i
    if not memcmp(a, b, nbytes):
        return NONE
    for i in range(nbytes // width):
        if memcmp(a + i * width, b + i * width, width) and not (has_nan and is_nan(a + i * width, part) and is_nan(b + i * width, part)):
            return i * width // cg_itemsize[dtype]
    return NONE


cdef void compare(const Check* check, const Program* program) noexcept nogil:
    cdef const Slot* slot
    cdef Operand laid
    cdef char* data
    cdef intptr_t element
    cdef int k, writer
    for k in range(program.slot_count):
        slot = &program.slots[k]
        writer = last_writer(program, k, 0, program.step_count)
        data = slot.data
        if data is NULL or slot.number or writer == NONE:
            continue
        if slot.geometry != DENSE:
            describe_slot(program, slot, &laid)
            data = check.memory + program.slot_count * check.whole.slot_bytes
            pack(&laid, program.ndim, program.shape, 0, program.total, data)
        element = first_difference(data, check.program.slots[k].data, slot.dtype, bytes_of(program, slot))
        if element != NONE:
            note_fault(program, writer, element)


cdef void note_fault(const Program* program, int step, intptr_t element) noexcept nogil:
    """Count a program whose output of a step has other bits; print the first one."""
    global faults
    cdef const char* name = "a copy"
    if program.steps[step].kernel is not NULL:
        name = program.steps[step].kernel.name
    elif program.steps[step].reduction is not NULL:
        name = program.steps[step].reduction.name
    faults += 1
    if faults == 1:
        fprintf(stderr, "cygrad: a program of %d steps has other bits than its steps one by one: %s, step %d, element %lld\n",
                program.step_count, name, step, <long long>element)


cdef void end_check(Check* check, const Program* program, bint failed) noexcept nogil:
    if not failed:
        compare(check, program)
    free(check.memory)


cdef void count_kernel(const char* name, bint same) noexcept nogil:
    global checks, faults
    checks += 1
    if not same:
        faults += 1
        if faults == 1:
            fprintf(stderr, "cygrad: the kernel %s has other bits when it runs again, on other memory\n", name)
