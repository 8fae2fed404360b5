"""Views of other shapes, and copies: operators that move elements and compute nothing."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

cdef TensorImpl reshape_to(TensorImpl x, int ndim, intptr_t* shape, str rule, bint may_copy)
cdef TensorImpl empty_in_order(tuple order, int dtype, int ndim, const intptr_t* sizes)
