"""How tensors and nodes hang together: edges, the ends at leaves, the node of a tensor's gradient, and views of changed tensors.

`tensor.node` is read through gradient_edge() and connect() only: they bring the node of a view up to date with its base.
"""
from cpython.object cimport PyObject

from cygrad._core.graph.node cimport LEAF, Node
from cygrad._core.graph.tensor cimport TensorImpl

cdef class AccumulateGrad(Node):
    """Its leaf is `saved0`."""

cdef Node general_edge(Node node, int index, int* output_nr)

cdef inline Node edge(Node node, int index, int* output_nr):
    """Return where the gradient of input `index` goes, or None."""
    if index == 0 and node.nr0 != LEAF:
        output_nr[0] = node.nr0
        return <Node>node.next0
    if index == 1 and node.nr1 != LEAF:
        output_nr[0] = node.nr1
        return <Node>node.next1
    return general_edge(node, index, output_nr)

# Return True if one of some nodes leads to another one of them; no accumulators.
cdef bint lead_to_each_other(list nodes) except -1
cdef int set_edge(Node node, int index, object target, int output_nr) except -1
cdef int refresh(TensorImpl tensor) except -1
cdef int cut_leaf(TensorImpl leaf) except -1
cdef Node gradient_edge(TensorImpl tensor, int* output_nr)
cdef int connect(Node node, int index, TensorImpl tensor) except -1
cdef int attach(TensorImpl result, Node node, int output_nr) except -1
cdef TensorImpl with_origin(TensorImpl tensor, object origin, int output_nr)
cdef TensorImpl with_own_history(TensorImpl tensor, Node node, int output_nr)
cdef tuple geometry_of(TensorImpl base, TensorImpl view)
cdef object creation_error(TensorImpl view, bint indirect)
cdef int set_requires_grad(TensorImpl tensor, bint value) except -1
cdef int check_assigned_gradient(TensorImpl tensor, TensorImpl gradient) except -1
