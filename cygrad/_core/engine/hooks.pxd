"""Hooks: called by the engine on gradients and nodes, in torch's order; their results are checked before they are used.

A table is copied before its hooks are called, so they may remove each other; each gets the result of the one before it.
"""
from cpython.object cimport PyObject

from cygrad._core.graph.history cimport AccumulateGrad
from cygrad._core.graph.node cimport Hooks, Node
from cygrad._core.graph.tensor cimport TensorImpl

cdef int call_tensor_hooks(Node node, PyObject** grads) except -1
cdef int call_prehooks(Hooks hooks, PyObject** grads, int count) except -1
cdef int call_posthooks(Hooks hooks, PyObject** results, int edges, tuple grads) except -1
cdef int call_accumulated_hooks(AccumulateGrad node) except -1
cdef int put(PyObject** reference, object grad) except -1
cdef int refuse_many(TensorImpl grad) except -1
