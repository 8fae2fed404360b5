# cython: cdivision=True, initializedcheck=False
"""Fewer steps with the same bits (see rewriting.pxd for the contract)."""
from libc.string cimport memmove

from cygrad._kernels.drivers.sums cimport begin_sum, read_formula
from cygrad._kernels.programs.steps cimport NONE, Slot, is_laid, last_writer, output_of


cdef bint read_sum(const Program* program, const Step* step, Sum* sum) noexcept nogil:
    cdef const Slot* slot
    cdef const void* number = NULL
    cdef int j, number_at = NONE
    begin_sum(sum)
    for j in range(step.inputs):
        slot = &program.slots[step.slots[j]]
        if slot.number:
            if number_at != NONE or slot.dtype != step.dtype:
                return False
            number_at, number = j, slot.data
    return not step.masks and read_formula(step.kernel, step.dtype, step.slots, number_at, number, step.params, False, sum)


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
        if program.steps[k].reduction is not NULL and program.steps[k].slots[0] == source and is_laid(&program.slots[target]):
            return False
        for j in range(program.steps[k].inputs if k < copy else 0):
            if program.steps[k].slots[j] == target:
                return False
        if k != first and output_of(&program.steps[k]) == source or k != copy and output_of(&program.steps[k]) == target:
            return False
    return True
