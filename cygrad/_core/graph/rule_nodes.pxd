"""Structural operators in the graph: a node that applies the rule of its row.

A structural operator calls `needs_node`, and `record` with inputs, result and parameters where that is True.
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.graph.node cimport Node, init_node
from cygrad._core.graph.rules cimport RuleOp, prepare
from cygrad._core.graph.tensor cimport TensorImpl

cdef class RuleNode(Node):
    cdef void release(self)
    cdef bint frees_values(self) except -1
    cdef object call(self, object function, tuple plan, PyObject** grads, list unpacked, TensorImpl whole, object shared=*)
    cdef bint arrived_complex(self, PyObject** grads) noexcept
    cdef tuple parameters(self)
    cdef int input_sizes(self, intptr_t* sizes) except -1
    cdef object place_in(self, TensorImpl whole, PyObject** grads)
    cdef intptr_t run_in(self, TensorImpl whole, TensorImpl g) noexcept

cdef enum:
    EDGE_BITS = 64

# The edges (bits, of the first 64) whose gradients the next call of `apply` need not compute; it sets them to 0. Of this thread.
cdef unsigned long long* skipped_edges() noexcept

cdef inline int init_rule_node(RuleNode node, RuleOp op, int outputs) except -1:
    """Make a new node one of an operator."""
    if not op.prepared:
        prepare(op)
    init_node(node, outputs)
    node.op = op
    node.flags |= op.node_flags
    return 0

cdef bint needs_node(TensorImpl a, TensorImpl b)
cdef RuleNode rule_node(RuleOp op, TensorImpl a, TensorImpl b, TensorImpl result, tuple params, int outputs)
cdef RuleNode rule_node_of_inputs(RuleOp op, tuple inputs, TensorImpl result, tuple params, int outputs)
cdef bint any_needs_node(tuple inputs)
cdef tuple params_of(RuleOp op, tuple inputs, dict by_name)
cdef int stand_alone_unless_shared(tuple inputs, TensorImpl result) except -1
cdef int record(RuleOp op, TensorImpl a, TensorImpl b, TensorImpl result, tuple params, int outputs=*) except -1
cdef int record_view(TensorImpl base, TensorImpl view, tuple geometry) except -1
cdef int record_outputs(RuleOp op, TensorImpl a, list results, tuple params) except -1
