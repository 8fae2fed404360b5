"""Fresh leaves for the arguments of a function being differentiated; a check whether its graph also reaches other leaves."""
from cpython.object cimport PyObject

from cygrad._core.graph.history cimport edge, gradient_edge
from cygrad._core.graph.node cimport NODE_ACCUMULATES, NODE_ENDS, Node, leaf_of
from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport rule_op
from cygrad._core.graph.tensor cimport FRESH, FRONT, REQUIRES_GRAD, RETIRED, TensorImpl, inherit_special, shallow_copy, view_of
from cygrad._core.levels.fronts cimport front_of, innermost

from cygrad._core.engine.backward import run_address


def fresh(TensorImpl tensor not None):
    """Return a tensor of the same value that gradients are asked for of: a leaf, or a view where the tensor has a history itself."""
    cdef TensorImpl result
    if tensor.flags & FRONT:
        return tensor.special.around(fresh(front_of(tensor).inner))
    if needs_node(tensor, None):
        result = view_of(tensor, 0, tensor.ndim, tensor.sizes, tensor.strides)
        record(rule_op("alias"), tensor, None, result, ())
    else:
        result = shallow_copy(tensor)
        result.flags |= REQUIRES_GRAD | FRESH
    inherit_special(result, tensor)
    return result


def retire(TensorImpl leaf not None):
    """Note that no other derivative than its own will ask for the gradient of a tensor that `fresh` has made."""
    leaf = innermost(leaf)
    leaf.flags |= RETIRED


def without_history(TensorImpl tensor not None):
    """Return a tensor of the same value and tangents that needs no gradient."""
    cdef TensorImpl result
    if tensor.flags & FRONT:
        return tensor.special.around(without_history(front_of(tensor).inner))
    result = shallow_copy(tensor)
    inherit_special(result, tensor)
    return result


def reaches_other_leaves(tuple outputs not None, tuple own not None):
    """Return True if the graph of outputs reaches leaves other than these, or views that require a gradient and have no history.

    Retired leaves do not count, except in a backward: code that runs again there is of their function.
    """
    cdef bint counts_retired = run_address() != 0
    cdef set seen = set(), mine = set()
    cdef list unvisited = []
    cdef TensorImpl tensor
    cdef Node node, target
    cdef int k, output_nr
    for tensor in own:
        tensor = innermost(tensor)
        mine.add(<size_t><PyObject*>tensor)
    for tensor in outputs:
        node = gradient_edge(innermost(tensor), &output_nr)
        if node is not None:
            unvisited.append(node)
    while unvisited:
        node = unvisited.pop()
        if node.flags & NODE_ACCUMULATES:
            tensor = leaf_of(node)
            if (counts_retired or not tensor.flags & RETIRED) and <size_t><PyObject*>tensor not in mine:
                return True
            continue
        if <size_t><PyObject*>node in seen:
            continue
        if node.flags & NODE_ENDS:
            return True
        seen.add(<size_t><PyObject*>node)
        for k in range(node.edges):
            target = edge(node, k, &output_nr)
            if target is not None:
                unvisited.append(target)
    return False
