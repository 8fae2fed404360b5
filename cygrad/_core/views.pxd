"""Views, copies and indexing: operators that move elements and compute nothing."""
from libc.stdint cimport intptr_t

from cygrad._core.tensor cimport TensorImpl

cdef TensorImpl reshape_to(TensorImpl x, int ndim, intptr_t* shape, str rule, bint may_copy)
cdef TensorImpl transposed(TensorImpl x, int dim0, int dim1, str rule)
cdef object get_item(TensorImpl x, object key)
cdef int set_item(TensorImpl x, object key, object value) except -1
