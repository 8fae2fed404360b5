"""Planning: how long the values of a program live, which of its steps are needed, and whether it reduces rows."""
from libc.stdint cimport intptr_t

from cygrad._kernels.programs.steps cimport Program

# The value that a slot has before step `first` is read by it or a later one, up to `last`, which is not one of them.
cdef bint is_live(const Program* program, int slot, int first, int last) noexcept nogil
# Mark the steps before `last` that compute the slots of `needed`, and all that these steps read. Slots `at_hand` need no step; NULL: none.
cdef void mark_needed(const Program* program, int last, const bint* at_hand, bint* needed, bint* marked) noexcept nogil
# The elements of an output as one row, and how many rows there are; False where the reduced dims are not the last ones.
cdef bint find_rows(const Program* program, intptr_t* row, intptr_t* count) noexcept nogil
