"""Vertices of the graph: edges, sequence number, hooks, and `apply`, which turns gradients of outputs into gradients of inputs.

`apply` takes borrowed gradients (one for each output, NULL: undefined) and gives new references (one for each edge);
a gradient with no reference but the caller's array may be overwritten.
Nodes are not tracked by the garbage collector unless they may be part of a cycle (flag TRACKED). Needs the GIL.
"""
from cpython.object cimport PyObject

from cygrad._core.graph.modes cimport anomaly_mode, note_creation
from cygrad._core.graph.saved cimport SavedTensor
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.looks cimport note_node
from cygrad._kernels.programs.settings cimport noted


cdef enum:
    RESULT = 3              # the number of the result among the saved values; further results come behind it
    LEAF = -1               # output number of an edge to a leaf whose accumulator is not made yet
    NODE_TRACKED = 1
    NODE_RELEASED = 2       # saved values were freed by a backward
    NODE_ACCUMULATES = 4    # an AccumulateGrad
    NODE_PACKED = 8         # some saved value is a SavedTensor
    NODE_PLACES = 16        # its gradient can be added where it belongs in the gradient of its one input
    NODE_ENDS = 32          # an operand requires a gradient and has no node: a view made in no_grad of a tensor that requires one
    NODE_STANDS_FOR_SEVERAL = 64    # nodes, whose results are its outputs: hooks on one that is not reached are not called

cdef class Node:
    # All Python objects of all kinds of nodes are here: a subclass with its own would be tracked and untracked once more.
    # An edge leads to a Node; or to a leaf (number LEAF) until edge() is asked for its accumulator.
    cdef object next0, next1, next2
    cdef list more          # node or leaf, output number, ... of the fourth edge and later
    cdef object hooks       # Hooks, or None
    cdef object op          # the row's Op or RuleOp
    cdef tuple params       # of a rule; shapes of broadcast operands
    cdef object saved0, saved1, saved2          # operands that the backward reads: TensorImpl, SavedTensor or None
    cdef object result                          # likewise, without its history; a tuple where the backward reads further results
    cdef unsigned long long version0, version1, version2, result_version
    cdef unsigned long long sequence_nr
    cdef int nr0, nr1, nr2
    cdef int edges
    cdef int outputs
    cdef unsigned flags
    cdef int apply(self, PyObject** grads, PyObject** results) except -1
    cdef void release(self)
    cdef bint frees_values(self) except -1
    cdef str node_name(self)
    cdef int save(self, int number, TensorImpl tensor) except -1
    cdef TensorImpl unpack(self, int number)
    cdef list unpack_all(self)
    cdef int pack(self, int number, TensorImpl tensor) except -1
    cdef int save_results(self, tuple results, int reads) except -1
    cdef object saved_value(self, int number)
    cdef object origin(self, int number, int* output_nr)
    cdef dict saved_places(self)
    cdef dict saved_params(self)
    cdef object scalar(self, int number)
    cdef SavedTensor handle(self, int number)
    cdef object saved_attribute(self, str name)

cdef class Hooks:
    """The hooks of a node or a leaf, as tables (dicts from handle id to callable, or None), and notes on a node."""
    cdef public object pre          # of a node, called with the gradients of all outputs
    cdef public object post         # of a node, called with (gradients of inputs, gradients of outputs)
    cdef public object accumulated  # of a leaf, called with the leaf after its gradient was added to
    cdef public object cut          # of a leaf that was given other memory: the accumulator of the graph recorded before
    cdef public dict tensor         # output number -> table of hooks on that gradient
    cdef public dict retained       # output number -> weak reference of the tensor that keeps its gradient
    cdef public dict metadata       # notes on a node; anomaly mode keeps tracebacks there
    cdef public dict outputs        # output number -> (shape, dtype), where a GradientEdge was asked for

cdef unsigned long long last_sequence_nr    # one count for all threads: the GIL is held

cdef inline Node node_for_users(Node node):
    """Return a node that code of the user asks for, and may decide by."""
    if noted:
        note_node(node.sequence_nr)
    return node

# Whether one of the first three edges leads anywhere.
cdef inline bint has_edge(Node node, int k) noexcept:
    return (node.next0 if k == 0 else node.next1 if k == 1 else node.next2) is not None

cdef inline int init_node(Node node, int outputs) except -1:
    """Give a new node its place in the order of nodes."""
    global last_sequence_nr
    last_sequence_nr += 1
    node.sequence_nr, node.outputs = last_sequence_nr, outputs
    if anomaly_mode:
        note_creation(node)
    return 0

cdef inline TensorImpl leaf_of(Node accumulator):
    return <TensorImpl>accumulator.saved0

cdef Hooks hooks_of(Node node)
# A hook gets gradients of a node, or a tensor retains one.
cdef bint has_gradient_hooks(Node node) noexcept
cdef list grads_list(PyObject** grads, int count)
cdef void inherit_destructor(type kind) noexcept
cdef void finish_node_type(type kind) noexcept
