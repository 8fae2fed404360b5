"""Gradients of captured calls."""
from cpython.object cimport PyObject

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport TensorImpl

# The gradients of a node's outputs, or None if none arrived. `whole`: none is one of many examples or special, and the backward is not
# differentiated: a program may compute from them.
cdef list arrived_gradients(Node node, PyObject** grads, bint* whole)
cdef int hand_over(Node node, list gradients, PyObject** results) except -1
