"""Views of other shapes and of dims in another order: nothing is computed, and nothing is moved but by a reshape that must copy."""
from libc.stdint cimport intptr_t

from cygrad._core.graph.tensor cimport TensorImpl

# A view with two dims exchanged, without recording.
cdef TensorImpl exchanged(TensorImpl x, int dim0, int dim1)
cdef TensorImpl reshape_to(TensorImpl x, int ndim, intptr_t* shape, str rule, bint may_copy)
