# cython: cdivision=True, initializedcheck=False
"""Lives of values, needed steps, and rows (see planning.pxd for the contract)."""
from cygrad._kernels.programs.steps cimport Step, output_of


cdef bint is_live(const Program* program, int slot, int first, int last) noexcept nogil:
    cdef int k, j
    for k in range(first, last):
        for j in range(program.steps[k].inputs):
            if program.steps[k].slots[j] == slot:
                return True
        if output_of(&program.steps[k]) == slot:
            return False
    return False


cdef void mark_needed(const Program* program, int last, const bint* at_hand, bint* needed, bint* marked) noexcept nogil:
    """Go backwards: before the step that writes a slot, its value is not needed, so that slots may be written several times."""
    cdef const Step* step
    cdef int j, k, output
    for k in range(last - 1, -1, -1):
        step = &program.steps[k]
        output = output_of(step)
        marked[k] = needed[output] and (at_hand is NULL or not at_hand[output])
        if not marked[k]:
            continue
        needed[output] = False
        for j in range(step.inputs):
            if at_hand is NULL or not at_hand[step.slots[j]]:
                needed[step.slots[j]] = True


cdef bint find_rows(const Program* program, intptr_t* row, intptr_t* count) noexcept nogil:
    cdef bint seen = False
    cdef int d
    row[0] = count[0] = 1
    for d in range(program.ndim):
        seen = seen or program.is_reduced[d]
        if not seen:
            count[0] *= program.shape[d]
        elif program.is_reduced[d] or program.shape[d] == 1:
            row[0] *= program.shape[d]
        else:
            return False
    return seen
