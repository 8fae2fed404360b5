"""Reductions over dims, and decisions by the values of a tensor."""
from cygrad._core.graph.tensor cimport TensorImpl

cdef bint is_true(TensorImpl x) noexcept
