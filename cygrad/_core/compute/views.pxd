"""Views of other shapes, dims in another order, diagonals and windows: nothing is computed or moved."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

cdef TensorImpl reshape_to(TensorImpl x, int ndim, intptr_t* shape, str rule, bint may_copy)
