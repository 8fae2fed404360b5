"""Reductions over dims, and decisions by the values of a tensor."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

# Of dense elements of a real dtype.
cdef bint any_is_nan(const char* data, int dtype, intptr_t count) noexcept nogil
cdef bint is_true(TensorImpl x) noexcept
# The number in a tensor of one integer, as an index: programs hold for this one alone.
cdef object decided_number(TensorImpl x)
