# cython: cdivision=True, initializedcheck=False
"""Fewer steps with the same bits (see rewriting.pxd for the contract)."""
from libc.string cimport memmove

from cygrad._kernels.drivers.elementwise cimport (CG_DIFFERENCE, CG_FLOAT32, CG_FLOAT64, CG_NEGATIVE, CG_PRODUCT, CG_SCALED_DIFFERENCE,
                                                  CG_SCALED_SUM, CG_SUM)
from cygrad._kernels.drivers.sums cimport add_term, begin_sum
from cygrad._kernels.programs.steps cimport NONE, Slot, last_writer, output_of


cdef bint is_product(const Step* step) noexcept nogil:
    return not step.masks and step.kernel is not NULL and step.kernel.form == CG_PRODUCT


cdef inline double factor_at(const void* data, int dtype) noexcept nogil:
    return (<const float*>data)[0] if dtype == CG_FLOAT32 else (<const double*>data)[0]


cdef bint read_sum(const Program* program, const Step* step, Sum* sum) noexcept nogil:
    cdef const Slot* slot
    cdef double factor = 1
    cdef int form = 0 if step.kernel is NULL else step.kernel.form, j
    begin_sum(sum)
    if step.masks or step.dtype != CG_FLOAT32 and step.dtype != CG_FLOAT64:
        return False
    if form == CG_PRODUCT:
        for j in range(2):
            slot = &program.slots[step.slots[j]]
            if slot.number and slot.dtype == step.dtype and not program.slots[step.slots[1 - j]].number:
                add_term(sum, step.slots[1 - j], factor_at(slot.data, step.dtype))
                return True
        return False
    for j in range(step.inputs):
        if program.slots[step.slots[j]].number:
            return False
    if form == CG_NEGATIVE:
        add_term(sum, step.slots[0], -1)
        return True
    if form == CG_SCALED_SUM or form == CG_SCALED_DIFFERENCE:
        factor = factor_at(step.params, step.dtype)
    if form == CG_DIFFERENCE or form == CG_SCALED_DIFFERENCE:
        factor = -factor
    elif form != CG_SUM and form != CG_SCALED_SUM:
        return False
    add_term(sum, step.slots[0], 1)
    add_term(sum, step.slots[1], factor)
    return True


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
