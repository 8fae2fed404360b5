"""Vertices of the graph: edges, sequence number, hooks, and `apply`, which turns gradients of outputs into those of inputs.

`apply` takes borrowed gradients (one for each output, NULL: undefined) and gives new references (one for each edge).
Nodes are not tracked by the garbage collector unless they may be part of a cycle (flag TRACKED). Needs the GIL.
"""
from cpython.object cimport PyObject

from cygrad._core.tensor cimport TensorImpl

cdef enum:
    NODE_TRACKED = 1
    NODE_RELEASED = 2       # saved values were freed by a backward

cdef class Node:
    cdef Node next0, next1, next2
    cdef int nr0, nr1, nr2
    cdef int edges
    cdef int outputs
    cdef unsigned flags
    cdef unsigned long long sequence_nr
    cdef list more          # (node, output number) of the fourth edge and later
    cdef object hooks       # Hooks, or None
    cdef int apply(self, PyObject** grads, PyObject** results) except -1
    cdef void release(self)
    cdef str node_name(self)

cdef class AccumulateGrad(Node):
    cdef readonly TensorImpl variable

cdef class Hooks:
    """Registered hooks: dicts from handle id to callable, or None."""
    cdef public object pre          # of the node, called with all gradients of outputs
    cdef public object post         # of the node, called with (gradients of inputs, gradients of outputs)
    cdef public dict tensor         # output number -> dict of hooks on that gradient
    cdef public dict retained       # output number -> weak reference of the tensor that keeps its gradient

ctypedef int (*accumulate_function)(TensorImpl variable, TensorImpl grad) except -1

cdef void set_accumulate(accumulate_function function) noexcept
cdef void init_node(Node node, int outputs) noexcept
cdef int set_edge(Node node, int index, Node target, int output_nr) except -1
cdef Node edge(Node node, int index, int* output_nr)
cdef Node gradient_edge(TensorImpl tensor, int* output_nr)
cdef int connect(Node node, int index, TensorImpl tensor) except -1
cdef int attach(TensorImpl result, Node node, int output_nr) except -1
cdef int* grad_mode() noexcept nogil
cdef Hooks hooks_of(Node node)
cdef int track_reachable(object start) except -1
