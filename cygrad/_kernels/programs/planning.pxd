"""Planning: how long the values of a program live, and which of its steps are needed."""
from cygrad._kernels.programs.steps cimport Program

# Among the steps from `first` up to `last`, which is not one of them; NONE if there is none.
cdef int last_reader(const Program* program, int slot, int first, int last) noexcept nogil
# The value that a slot has before a step is read by it or a later one.
cdef bint is_live(const Program* program, int slot, int step) noexcept nogil
# Mark the steps before `last` that compute the slots of `needed`, and all that these steps read. Slots `at_hand` need no step; NULL: none.
cdef void mark_needed(const Program* program, int last, const bint* at_hand, bint* needed, bint* marked) noexcept nogil
