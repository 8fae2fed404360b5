"""Sparse tensors: fronts of the values at some places of a shape; all other elements are 0.

`pattern`, an object of `cygrad.operators._sparse`, has the places. It is data: gradients, tangents and batches belong to the values. Needs
the GIL.
"""
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.levels.fronts cimport Front

cdef class Sparse(Front):
    cdef readonly object pattern

cdef bint any_sparse(list tensors) noexcept
