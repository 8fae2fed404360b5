"""How tensors and nodes hang together (see history.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject

from cygrad._core.graph.modes cimport is_inference_mode
from cygrad._core.graph.node cimport Hooks, LEAF, NODE_ACCUMULATES, NODE_ENDS, NODE_TRACKED, Node, finish_node_type, hooks_of, leaf_of
from cygrad._core.graph.notes cimport note_flags
from cygrad._core.graph.rule_nodes cimport record_view
from cygrad._core.graph.tensor cimport (CREATED, CREATED_BY_FUNCTION, CREATED_IN_INFERENCE, CREATED_MULTIPLE, CREATED_WITHOUT_GRAD, FRESH,
                                        FRONT, INFERENCE, REQUIRES_GRAD, RETAINS_GRAD, RETIRED, TENSOR_TRACKED, TensorImpl, VIEW,
                                        byte_offset, inherit_special, needs_grad, refuse_front, shallow_copy)
from cygrad._core.graph.tracking cimport track_node, track_reachable, track_tensor
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport dtypes, visible_version
from cygrad._core.memory.upward cimport upward
from cygrad._kernels.drivers.elementwise cimport cg_is_differentiable
from cygrad._kernels.programs.settings cimport noted

import weakref

cdef extern from "memory/type_slots.h":
    void cg_never_clear(type kind) noexcept

cdef extern from *:
    """
    CG_PREPEND_DEALLOC(accumulator)
    """
    void cg_prepend_dealloc_accumulator(type kind, void (*before)(PyObject*) noexcept) noexcept


# ----- Edges -----
cdef int set_edge(Node node, int index, object target, int output_nr) except -1:
    """Set an edge; from the fourth on in order."""
    node.edges = max(node.edges, index + 1)
    if index == 0:
        node.next0, node.nr0 = target, output_nr
    elif index == 1:
        node.next1, node.nr1 = target, output_nr
    elif index == 2:
        node.next2, node.nr2 = target, output_nr
    else:
        if node.more is None:
            node.more = []
        index = 2 * (index - 3)
        if len(node.more) == index:
            node.more.extend((None, 0))
        node.more[index], node.more[index + 1] = target, output_nr
    return 0


cdef Node general_edge(Node node, int index, int* output_nr):
    """Return an edge of any kind; an edge to a leaf becomes one to its accumulator."""
    if index == 0:
        target, output_nr[0] = node.next0, node.nr0
    elif index == 1:
        target, output_nr[0] = node.next1, node.nr1
    elif index == 2:
        target, output_nr[0] = node.next2, node.nr2
    else:
        target, output_nr[0] = node.more[2 * (index - 3)], node.more[2 * (index - 3) + 1]
    if output_nr[0] == LEAF:
        target, output_nr[0] = first_accumulator(<TensorImpl?>target), 0
        set_edge(node, index, target, 0)
    return target


cdef bint lead_to_each_other(list nodes) except -1:
    """A node leads to older ones only, so the search ends at nodes that are older than all of these."""
    cdef set starts = {id(node) for node in nodes}, seen = set()
    cdef unsigned long long oldest = min([(<Node>node).sequence_nr for node in nodes])
    cdef list stack = list(nodes)
    cdef Node node, target
    cdef int k, output_nr
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for k in range(node.edges):
            target = edge(node, k, &output_nr)
            if target is not None and id(target) in starts:
                return True
            if target is not None and target.sequence_nr > oldest and not target.flags & NODE_ACCUMULATES:
                stack.append(target)
    return False


# ----- Ends of the graph -----
@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds gradients to `.grad`."""

    @property
    def variable(self):
        """The leaf."""
        return self.saved0

    @property
    def _input_metadata(self):
        return ((<object>self.saved0).shape, (<object>self.saved0).dtype),

    cdef void release(self):
        """Keep the leaf: it is no saved value."""

    cdef bint frees_values(self) except -1:
        return False

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        if grads[0] is not NULL and leaf_of(self).flags & REQUIRES_GRAD:
            upward.accumulate(leaf_of(self), grads[0])
        return 0


cdef void forget_accumulator(PyObject* node) noexcept:
    """Clear the leaf's pointer to its accumulator, which dies."""
    cdef TensorImpl leaf = leaf_of(<Node>node)
    if leaf is not None and leaf.accumulator == <void*>node:
        leaf.accumulator = NULL


finish_node_type(AccumulateGrad)
cg_prepend_dealloc_accumulator(AccumulateGrad, forget_accumulator)
cg_never_clear(AccumulateGrad)      # forget_accumulator() needs the leaf


cdef AccumulateGrad accumulator_of(TensorImpl leaf):
    """Return the accumulator of a leaf, made if it has none now."""
    cdef AccumulateGrad node
    if leaf.accumulator is not NULL:
        return <AccumulateGrad>leaf.accumulator
    node = AccumulateGrad.__new__(AccumulateGrad)
    if leaf.accumulator is not NULL:        # made in another thread, while the collector ran in this one
        return <AccumulateGrad>leaf.accumulator
    # The last in the order of nodes: it runs as soon as it can, since that frees gradients soonest.
    node.sequence_nr, node.outputs, node.flags = <unsigned long long>-1, 1, NODE_ACCUMULATES
    node.saved0 = leaf
    leaf.accumulator = <void*>node
    if leaf.flags & TENSOR_TRACKED:
        track_node(node)
    return node


cdef AccumulateGrad first_accumulator(TensorImpl leaf):
    """Return the accumulator of edges that name the leaf itself: they were made before `cut_leaf`."""
    cdef Hooks hooks = leaf.extra
    return accumulator_of(leaf) if hooks is None or hooks.cut is None else hooks.cut


cdef int cut_leaf(TensorImpl leaf) except -1:
    """Give a leaf another accumulator: the graph so far keeps the one it has, and reaches the leaf no longer."""
    cdef Hooks hooks
    if leaf.node is not None or not leaf.flags & REQUIRES_GRAD:
        return 0
    if leaf.extra is None:
        leaf.extra = Hooks()
    hooks = leaf.extra
    if hooks.cut is None:
        hooks.cut = accumulator_of(leaf)
    leaf.accumulator = NULL
    return track_reachable(leaf)


# ----- Tensors -----
cdef int refresh(TensorImpl tensor) except -1:
    """Bring the node of a view up to date with in-place changes of its base."""
    if (tensor.flags & VIEW and tensor.view_version != tensor.storage.version and tensor.base.flags & REQUIRES_GRAD
            and tensor.storage is tensor.base.storage and visible_version(tensor.view_version ^ tensor.storage.version)):
        return regenerate(tensor)
    return 0


cdef Node gradient_edge(TensorImpl tensor, int* output_nr):
    """Return the node that the gradient of a tensor goes to; None if it needs none."""
    refresh(tensor)
    output_nr[0] = tensor.output_nr
    if tensor.node is not None:
        return tensor.node
    return accumulator_of(tensor) if tensor.flags & REQUIRES_GRAD else None


cdef int connect(Node node, int index, TensorImpl tensor) except -1:
    """Make the edge from a node to where the gradient of its input `index` goes. With gradient_edge the readers of `tensor.node`."""
    cdef Node accumulator
    if tensor is not None:
        refresh(tensor)
    if tensor is None or not tensor.flags & REQUIRES_GRAD:
        set_edge(node, index, None, 0)
        if tensor is not None and needs_grad(tensor):
            node.flags |= NODE_ENDS
    elif tensor.node is None and tensor.accumulator is NULL and tensor.extra is None:
        set_edge(node, index, tensor, LEAF)     # the accumulator is made later: most graphs of a leaf die without a backward
    elif tensor.node is None:                   # it may have hooks, which live as long as it does
        accumulator = accumulator_of(tensor)
        if accumulator.flags & NODE_TRACKED:
            track_node(node)
        set_edge(node, index, accumulator, 0)
    else:
        if tensor.node.flags & NODE_TRACKED:
            track_node(node)
        set_edge(node, index, tensor.node, tensor.output_nr)
    return 0


cdef int attach(TensorImpl result, Node node, int output_nr) except -1:
    """Make a tensor the output of a node."""
    if result.flags & RETAINS_GRAD:
        move_retained(result, node, output_nr)
    result.node, result.output_nr = node, output_nr
    result.flags |= REQUIRES_GRAD
    result.view_version = result.storage.version
    if node.flags & NODE_TRACKED:
        track_tensor(result)
    return 0


cdef int move_retained(TensorImpl tensor, Node node, int output_nr) except -1:
    """Have a tensor that was changed in place retain the gradient of its new value; its hooks stay with the old one."""
    cdef Hooks old = None if tensor.node is None else tensor.node.hooks
    if old is not None and tensor.output_nr in old.retained and old.retained[tensor.output_nr]() is tensor:
        del old.retained[tensor.output_nr]
    hooks_of(node).retained[output_nr] = weakref.ref(tensor)
    return 0


# ----- Saved values -----
cdef TensorImpl with_origin(TensorImpl tensor, object origin, int output_nr):
    """Return a tensor with the history it had when it was saved: detach_() may have taken it since, or hooks."""
    cdef TensorImpl copy
    if tensor.flags & FRONT:        # the history is behind it: all examples have one
        copy = with_origin((<object>tensor.special).inner, origin, output_nr)
        return tensor if copy is (<object>tensor.special).inner else (<object>tensor.special).around(copy)
    if origin is None and not tensor.flags & REQUIRES_GRAD:
        return tensor
    if origin is not None and (origin is tensor or origin is tensor.node and output_nr == tensor.output_nr
                               or tensor.node is None and <void*>origin == tensor.accumulator):
        return tensor
    copy = shallow_copy(tensor)
    inherit_special(copy, tensor)
    if origin is not None:
        attach(copy, accumulator_of(origin) if output_nr == LEAF else origin, 0 if output_nr == LEAF else output_nr)
    return copy


cdef TensorImpl with_own_history(TensorImpl tensor, Node node, int output_nr):
    """Return a saved result as an output of its node, which keeps it without that."""
    cdef TensorImpl copy = shallow_copy(tensor)
    inherit_special(copy, tensor)
    attach(copy, node, output_nr)
    return copy


# ----- Views whose base was changed -----
cdef tuple geometry_of(TensorImpl base, TensorImpl view):
    """Return the geometry of a base and a view: see `operands.strided`."""
    return (sizes_tuple(base.ndim, base.sizes), sizes_tuple(base.ndim, base.strides), dtypes[base.dtype_nr],
            sizes_tuple(view.ndim, view.sizes), sizes_tuple(view.ndim, view.strides), dtypes[view.dtype_nr],
            byte_offset(view) - byte_offset(base))


cdef int regenerate(TensorImpl view) except -1:
    """Give a view the node of its place in a base that was changed since the view's node was made."""
    if view.flags & CREATED:
        raise creation_error(view, True)
    record_view(view.base, view, geometry_of(view.base, view))
    return 0


cdef object creation_error(TensorImpl view, bint indirect):
    """Return the error for a change of, or under, a view that autograd cannot follow."""
    changed = "its base or another view of its base has been" if indirect else "is being"
    if view.flags & (CREATED_IN_INFERENCE | CREATED_WITHOUT_GRAD) or view.node is None:
        text = (f"A view was created in inference mode and {changed} modified inplace in normal mode."
                if view.flags & CREATED_IN_INFERENCE else
                f"A view was created in no_grad mode and {changed} modified inplace with grad mode enabled.")
    else:
        text = f"Output {view.output_nr} of {view.node.name().partition('Backward')[0]} is a view and {changed} modified inplace."
    if view.flags & CREATED_MULTIPLE:
        return RuntimeError(text + " This view is the output of a function that returns multiple views. Such functions do not allow the "
                            "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.")
    if view.flags & CREATED_BY_FUNCTION:
        return RuntimeError(text + " This view was created inside a custom Function (or because an input was returned as-is) and the "
                            "autograd logic to handle view+inplace would override the custom backward associated with the custom "
                            "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
                            "output of the custom Function.")
    block = "inference_mode" if view.flags & CREATED_IN_INFERENCE else "no_grad"
    return RuntimeError(text + " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
                        f"moving both the view and the inplace either both inside the {block} block (if you don't want the inplace to be "
                        "tracked) or both outside (if you want the inplace to be tracked).")


# ----- Assigned attributes -----
cdef int set_requires_grad(TensorImpl tensor, bint value) except -1:
    """Set `requires_grad`; RuntimeError for a value that a tensor cannot have."""
    refuse_front(tensor, "setting requires_grad")
    refresh(tensor)
    if not value and tensor.node is not None:
        raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                           "in a subgraph that doesn't require differentiation use var_no_grad = var.detach().")
    if value and not cg_is_differentiable[tensor.dtype_nr]:
        raise RuntimeError(f"only Tensors of floating point dtype can require gradients, got {dtypes[tensor.dtype_nr]!r}; "
                           "convert it first, e.g. with .float()")
    if value and tensor.flags & INFERENCE and not is_inference_mode():
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    if not value and tensor.flags & (FRESH | RETIRED) == FRESH:
        raise RuntimeError("You are attempting to call Tensor.requires_grad_() inside of a function being transformed by a functorch "
                           "transform: its derivative with respect to this tensor would be lost. Use tensor.detach().")
    if noted:
        note_flags(tensor)
    if value:
        tensor.flags |= REQUIRES_GRAD
    else:
        tensor.flags &= ~<unsigned>REQUIRES_GRAD
    return 0


cdef int check_assigned_gradient(TensorImpl tensor, TensorImpl gradient) except -1:
    """Refuse a value of `grad` that is no gradient of a tensor."""
    if gradient is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    if gradient.dtype_nr != tensor.dtype_nr:
        raise RuntimeError(f"attempting to assign a gradient with dtype '{dtypes[gradient.dtype_nr].name}' to a tensor with grad_dtype "
                           f"'{dtypes[tensor.dtype_nr].name}'. The gradient must match the tensor's dtype: convert it with .to()")
    if sizes_tuple(gradient.ndim, gradient.sizes) != sizes_tuple(tensor.ndim, tensor.sizes):
        raise RuntimeError(f"attempting to assign a gradient of size '{list(sizes_tuple(gradient.ndim, gradient.sizes))}' to a tensor "
                           f"of size '{list(sizes_tuple(tensor.ndim, tensor.sizes))}'. Please ensure that the gradient and the tensor are "
                           "the same size")
    return 0
