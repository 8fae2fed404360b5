"""Gradients of captured calls."""
from cygrad._core.graph.tensor cimport TensorImpl

cdef bint is_ordinary(object gradient)
cdef TensorImpl weight_of(TensorImpl gradient)
