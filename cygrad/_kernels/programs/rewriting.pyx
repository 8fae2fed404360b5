# cython: cdivision=True, initializedcheck=False
"""Fewer steps with the same bits (see rewriting.pxd for the contract)."""
from libc.string cimport memmove

from cygrad._kernels.drivers.elementwise cimport cg_is_floating_point, elementwise_kernel
from cygrad._kernels.programs.planning cimport last_reader
from cygrad._kernels.programs.steps cimport NONE, Slot, last_writer, output_of

cdef const cg_kernel* ADD = elementwise_kernel("add")
cdef const cg_kernel* ADD_SCALED = elementwise_kernel("add_scaled")
cdef const cg_kernel* SUB = elementwise_kernel("sub")
cdef const cg_kernel* SUB_SCALED = elementwise_kernel("sub_scaled")
cdef const cg_kernel* MUL = elementwise_kernel("mul")
cdef const cg_kernel* MUL_DA = elementwise_kernel("mul_da")
cdef const cg_kernel* MUL_DB = elementwise_kernel("mul_db")


cdef bint is_product(const Step* step) noexcept nogil:
    return not step.masks and (step.kernel is MUL or step.kernel is MUL_DA or step.kernel is MUL_DB)


cdef const cg_kernel* scaled_loop(const Program* program, int k, int* slots, const void** params) noexcept nogil:
    cdef const Step* step = &program.steps[k]
    cdef const Step* before = step - 1
    cdef const Slot* number
    cdef int product = output_of(before), j
    if not is_product(before) or step.kernel is not ADD and step.kernel is not SUB or step.masks or not cg_is_floating_point[step.dtype]:
        return NULL
    if (step.slots[1] != product or step.slots[0] == product or before.dtype != step.dtype
            or program.slots[product].data is not NULL or last_reader(program, product, 0, program.step_count) != k):
        return NULL
    for j in range(2):
        number = &program.slots[before.slots[j]]
        if number.number and number.dtype == step.dtype and not program.slots[before.slots[1 - j]].number:
            slots[0], slots[1], slots[2], params[0] = step.slots[0], before.slots[1 - j], output_of(step), number.data
            return ADD_SCALED if step.kernel is ADD else SUB_SCALED
    return NULL


cdef void write_in_place_of_copies(Program* program) noexcept nogil:
    cdef const Step* copy
    cdef Step* writer
    cdef int j, k = 0, first, source, target
    while k < program.step_count:
        copy, source = &program.steps[k], program.steps[k].slots[0]
        first = last_writer(program, source, 0, k)
        k += 1
        if copy.kernel is not NULL or copy.reduction is not NULL or first == NONE or not may_write(program, first, k - 1):
            continue
        writer, target = &program.steps[first], output_of(copy)
        writer.slots[writer.inputs] = target
        memmove(<void*>copy, copy + 1, (program.step_count - k) * sizeof(Step))
        program.step_count -= 1
        k -= 1
        for first in range(first + 1, program.step_count):
            for j in range(program.steps[first].inputs):
                if program.steps[first].slots[j] == source:
                    program.steps[first].slots[j] = target


cdef bint may_write(const Program* program, int first, int copy) noexcept nogil:
    """Return True if a step may write the target of a copy, in place of the value that is copied: the loop writes no more than the array,
    the value is not changed, and no other step touches the target before the copy or writes it afterwards."""
    cdef const Step* writer = &program.steps[first]
    cdef int source = output_of(writer), target = output_of(&program.steps[copy]), j, k
    if program.slots[source].data is not NULL or program.slots[source].dtype != program.slots[target].dtype:
        return False
    if writer.kernel is NULL or writer.kernel.blocked[writer.dtype]:
        return False
    for k in range(first, program.step_count):
        for j in range(program.steps[k].inputs if k < copy else 0):
            if program.steps[k].slots[j] == target:
                return False
        if k != first and output_of(&program.steps[k]) == source or k != copy and output_of(&program.steps[k]) == target:
            return False
    return True
