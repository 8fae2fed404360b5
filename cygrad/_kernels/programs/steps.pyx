# cython: cdivision=True, initializedcheck=False
"""Steps over slots (see steps.pxd for the contract)."""
from libc.stdint cimport intptr_t


cdef void begin_program(Program* program, intptr_t total) noexcept nogil:
    program.slot_count = program.step_count = program.cost = 0
    program.ndim, program.total, program.shape[0], program.is_reduced[0] = 1, total, total, False


cdef void begin_map(Step* step, const cg_kernel* kernel, int dtype, const void* params) noexcept nogil:
    step.kernel, step.reduction, step.shifted, step.params = kernel, NULL, NULL, params
    step.dtype, step.masks, step.joined = dtype, 0, False


cdef int add_slot(Program* program, char* data, int dtype, bint number) noexcept nogil:
    cdef Slot* slot = &program.slots[program.slot_count]
    slot.data, slot.dtype, slot.number, slot.reduced, slot.padded = data, dtype, number, False, True
    program.slot_count += 1
    return program.slot_count - 1


cdef int add_block(Program* program, int dtype) noexcept nogil:
    return add_slot(program, NULL, dtype, False)


cdef int add_array(Program* program, char* data, int dtype, bint number) noexcept nogil:
    cdef int k
    for k in range(program.slot_count):
        if program.slots[k].data == data and program.slots[k].number == number:
            return k
    return add_slot(program, data, dtype, number)
