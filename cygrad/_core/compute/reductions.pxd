"""Reductions over dims, and decisions by the values of a tensor."""
from cygrad._core.graph.tensor cimport TensorImpl

cdef bint is_true(TensorImpl x) noexcept
# The number in a tensor of one integer, as an index: programs hold for this one alone.
cdef object decided_number(TensorImpl x)
