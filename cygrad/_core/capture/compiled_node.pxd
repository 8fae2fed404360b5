"""Gradients of captured calls."""
from cpython.object cimport PyObject

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport TensorImpl

cdef bint is_ordinary(object gradient)
cdef TensorImpl weight_of(TensorImpl gradient)
cdef int hand_over(Node node, list gradients, PyObject** results) except -1
