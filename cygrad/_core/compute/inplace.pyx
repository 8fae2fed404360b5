"""In-place changes and history (see inplace.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdlib cimport calloc, free

from cygrad._core.graph.history cimport attach, connect, creation_error, edge, geometry_of, gradient_edge, refresh, set_edge
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.node cimport NODE_PACKED, NODE_RELEASED, NODE_TRACKED, Node, finish_node_type, init_node
from cygrad._core.graph.noted_calls cimport begin_call, end_call
from cygrad._core.graph.notes cimport is_noting, note_constant, refuse_repeated_history
from cygrad._core.graph.rule_nodes cimport any_needs_node, params_of, record_view, rule_node, rule_node_of_inputs
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.saved cimport released_error
from cygrad._core.graph.tensor cimport (CREATED, CREATED_BY_FUNCTION, CREATED_MULTIPLE, REQUIRES_GRAD, SAVED, TENSOR_TRACKED, TensorImpl,
                                        VIEW, count_change, is_unique, needs_grad, place_of, shallow_copy, special_active, view_of)
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.levels.batches cimport is_special
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.operands.arrays cimport array_of
from cygrad._core.operands.operands cimport check_cast, check_writable, copy_into, copy_of, overlaps, same_shape
from cygrad._core.operands.strided cimport copy_in_geometry, lies_within, overlaps_itself, part_of
from cygrad._kernels.drivers.elementwise cimport cg_is_opaque, cg_loops_of

from functools import partial


cdef RuleOp COPY = rule_op("copy", ("shape", "dtype")), FILL = rule_op("fill"), ZERO = rule_op("zero")


# ----- Checks -----
cdef int check_history(TensorImpl target, bint recorded) except -1:
    """Refuse in-place changes that autograd cannot follow; `recorded`: another operand brings a history."""
    if not grad_mode()[0] or not recorded and not needs_grad(target):
        return 0
    if target.flags & VIEW and target.flags & CREATED:
        raise creation_error(target, False)
    if target.flags & VIEW and needs_grad(target) and target.base.node is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation. "
                           "Change it inside `with cygrad.no_grad():`, or use the out-of-place form.")
    if not target.flags & VIEW and needs_grad(target) and target.node is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation. "
                           "Change it inside `with cygrad.no_grad():`, or use the out-of-place form.")
    return 0


cdef int check_in_place(TensorImpl target, bint recorded) except -1:
    """Refuse to write into a tensor where that would make a gradient wrong; `recorded`: another operand brings a history."""
    check_writable(target)
    check_history(target, recorded)
    if grad_mode()[0] and target.flags & VIEW and (recorded or needs_grad(target)):
        if target.storage is not target.base.storage:
            raise RuntimeError("the base of the written-to view was given other memory since (by set_(), resize_() or .data). "
                               "Please clone() the view before performing the operation.")
        if (overlaps_itself(target.ndim, target.sizes, target.strides)
                or overlaps_itself(target.base.ndim, target.base.sizes, target.base.strides)):
            raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                               "Please clone() the tensor before performing the operation.")
        if not lies_within(geometry_of(target.base, target)):
            raise RuntimeError("unsupported operation: the written-to view reaches beyond the tensor that it is a view of. "
                               "Please clone() the view before performing the operation.")
        return refresh(target)
    return 0


# ----- History -----
cdef int rebase(TensorImpl target, Node node, int view_edge=0, int output_nr=0) except -1:
    """Make a node, whose edge `view_edge` is the target's history so far, the history of a target changed in place."""
    cdef TensorImpl base = target.base
    cdef CopySlices slices
    cdef int k, edge_nr = 0
    refuse_repeated_history(target)
    if target.flags & VIEW:
        slices = CopySlices.__new__(CopySlices)
        slices.op, slices.params, slices.view_edge = node, geometry_of(base, target), view_edge
        for k in range(node.edges):
            if k == view_edge:
                connect(slices, k, base)
            else:
                set_edge(slices, k, edge(node, k, &edge_nr), edge_nr)
        init_node(slices, 1)
        if node.flags & (NODE_TRACKED | NODE_PACKED) or target.flags & TENSOR_TRACKED or base.flags & TENSOR_TRACKED:
            track_reachable(slices)
        attach(base, slices, 0)
        record_view(base, target, slices.params)
    else:
        attach(target, node, output_nr)
    # A node that saved the target, or a view of its memory, may be an ancestor now: a cycle.
    if target.flags & SAVED or base is not None and base.flags & SAVED:
        track_reachable(node)
    return 0


cdef int record_in_place(RuleOp op, TensorImpl target, TensorImpl source, tuple params) except -1:
    """Record a structural operator that has written `source` (None: a constant) into a target."""
    return rebase(target, rule_node(op, target, source, target, params, 1))


cdef int take_history(TensorImpl copy, TensorImpl tensor) except -1:
    """Let a copy stand for a tensor as it is now; for a leaf, its accumulator."""
    copy.node = gradient_edge(tensor, &copy.output_nr)
    if copy.node is not None:
        copy.flags |= REQUIRES_GRAD
    return 0


cdef TensorImpl as_before(TensorImpl operand, TensorImpl target):
    """Return an operand as it is before a target changes: a view of the same memory takes its node from the changed base later."""
    cdef TensorImpl now
    if not operand.flags & VIEW or operand.storage is not target.storage or not needs_grad(operand):
        return operand
    now = shallow_copy(operand)
    take_history(now, operand)
    return now


# ----- Operators without a kernel that writes in place -----
def check_replacement(TensorImpl target not None, TensorImpl result not None):
    """Refuse to write a result into a target of another shape, or of a lower kind."""
    if not same_shape(result, target):
        raise RuntimeError(f"output with shape {list(sizes_tuple(target.ndim, target.sizes))} doesn't match the broadcast shape "
                           f"{list(sizes_tuple(result.ndim, result.sizes))}")
    check_cast(result.dtype_nr, target.dtype_nr)


def apply_in_place(function, TensorImpl target not None, *arguments, **keywords):
    """Compute `function(target, ...)` and write the result into the target, which takes on its history."""
    cdef TensorImpl before, result
    cdef int k
    check_in_place(target, False)
    if special_active and is_special(target):
        result = <TensorImpl?>function((<object>target).clone(), *arguments, **keywords)
        check_replacement(target, result)
        return (<object>target).copy_(result)
    before = copy_of(target, target.dtype_nr)
    take_history(before, target)
    result = <TensorImpl?>function(before, *arguments, **keywords)
    check_replacement(target, result)
    if result.node is not None:
        check_in_place(target, True)
    copy_into(target, result)
    count_change(target)
    if result.node is None or not grad_mode()[0]:
        return target
    k = edge_to(result.node, target)
    if result.output_nr == 0 and result.node.outputs == 1 and result.dtype_nr == target.dtype_nr and (k >= 0 or not target.flags & VIEW):
        rebase(target, result.node, k)
    else:
        record_copy(target, result)
    return target


def check_disjoint(TensorImpl target not None, tuple others):
    """Refuse operands that share memory with the tensor to be written to; a 0-d one has been read before it can change."""
    cdef TensorImpl other
    cdef bint same_place
    for other in others:
        if other is None or other.ndim == 0:
            continue
        same_place = target.count and other.count and place_of(target) == place_of(other)
        if same_place or overlaps(target, other):
            raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                               "memory location. Please clone() the tensor before performing the operation.")


cdef TensorImpl numbers_of(TensorImpl target):
    """Return the numbers of a tensor to change: itself, or of 16-bit floats, which are rounded once, a copy in float32."""
    return copy_of(target, cg_loops_of[target.dtype_nr]) if cg_is_opaque[target.dtype_nr] else target


cpdef object change_values(TensorImpl target, change):
    """Have `change` change a tensor of a tensor's numbers."""
    cdef TensorImpl numbers = numbers_of(target)
    change(numbers)
    if numbers is not target:
        copy_into(target, numbers)


cpdef object write_values(TensorImpl target, write):
    """Have `write` change the array of a tensor's numbers."""
    cdef TensorImpl numbers = numbers_of(target)
    write(array_of(numbers))
    if numbers is not target:
        copy_into(target, numbers)


def write_constant(TensorImpl target not None, write):
    """Do as `write_values` on a new tensor, where `write` writes the same values each time."""
    frame = begin_call((), {}) if is_noting() else None
    write_values(target, write)
    if frame is not None:
        note_constant(target, frame)


def write_again(TensorImpl target not None, write):
    """Do as `write_values`, where `write` has the same meaning each time: a program calls it again."""
    frame = begin_call((target,), {}) if is_noting() else None
    write_values(target, write)
    if frame is not None:
        end_call(frame, partial(write_values, write=write), None, True)


def change_in_place(RuleOp op not None, tuple inputs not None, change, **params):
    """Let `change` change the numbers of the first input, and record that by a rule; its other inputs may be None."""
    cdef TensorImpl target = inputs[0], before
    cdef bint recorded = any_needs_node(inputs)
    check_in_place(target, any_needs_node(inputs[1:]))
    if recorded and op.reads_input(0):
        before = copy_of(target, target.dtype_nr)
        take_history(before, target)
        inputs = (before,) + inputs[1:]
    change_values(target, change)
    count_change(target)
    if recorded:
        rebase(target, rule_node_of_inputs(op, inputs, target, params_of(op, inputs, params), 1))
    return target


def overwrite(TensorImpl target not None, write, bint again=False):
    """Let `write` fill the array of a tensor with values that depend on nothing: its history ends. `again`: as in `write_again`."""
    cdef bint recorded = any_needs_node((target,))
    check_in_place(target, False)
    (write_again if again else write_values)(target, write)
    count_change(target)
    if recorded:
        cut_history(target)
    return target


cdef int edge_to(Node node, TensorImpl target) except -2:
    """Return which edge of a node is the history of a target so far; -1: none."""
    cdef int k, output_nr
    for k in range(node.edges):
        if edge(node, k, &output_nr) is target.node and output_nr == target.output_nr:
            return k
    return -1


cdef int record_copy(TensorImpl target, TensorImpl source) except -1:
    """Record that a tensor was copied into a target."""
    return record_in_place(COPY, target, source, (sizes_tuple(source.ndim, source.sizes), dtypes[source.dtype_nr]))


cdef int cut_history(TensorImpl target, bint zero=False) except -1:
    """Record that a target was overwritten with values without a gradient."""
    return record_in_place(ZERO if zero else FILL, target, None, ())


# ----- Outputs of user functions -----
def check_dirty(TensorImpl tensor not None):
    """Refuse an input that a user function has changed in place although autograd could not follow."""
    if needs_grad(tensor) and tensor.node is None and not tensor.flags & VIEW:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    check_in_place(tensor, True)


def record_dirty(TensorImpl tensor not None, Node node not None, int edge_nr, int output_nr):
    """Make a user function's node, whose edge `edge_nr` is the tensor's history so far, the history of an input it has changed."""
    if tensor.flags & VIEW and node.outputs > 1:
        raise RuntimeError("If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
                           "than one Tensor: clone() the input before, or make two Functions, of which one changes it and returns it.")
    rebase(tensor, node, edge_nr, output_nr)


def view_as_itself(TensorImpl tensor not None):
    """Return a view of all of a tensor, so that a user function may return an input as it is."""
    return view_of(tensor, 0, tensor.ndim, tensor.sizes, tensor.strides)


def guard_view(TensorImpl view not None, bint of_several_outputs):
    """Forbid changing a view in place that a user function has returned: that would go around its backward."""
    view.flags = (view.flags & ~<unsigned>CREATED) | (CREATED_MULTIPLE if of_several_outputs else CREATED_BY_FUNCTION)


# ----- Gradient -----
cdef class CopySlices(Node):
    cdef str node_name(self):
        return "CopySlices"

    cdef void release(self):
        # The operator's node may be part of the graph by itself, where its result was saved: it is not ours to release.
        self.op = None
        self.flags |= NODE_RELEASED

    cdef bint frees_values(self) except -1:
        return True

    cdef TensorImpl put(self, TensorImpl g, TensorImpl part, PyObject** whole):
        """Return the gradient of the base: g with the view's part replaced."""
        if part is None:
            part = (<object>g).new_zeros(self.params[3], dtype=self.params[5])
        if whole[0] is NULL:
            return (<object>g)._put_view(part, self.params)
        copy_into(part_of(<TensorImpl>whole[0], self.params), part)
        return <TensorImpl>whole[0]

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        cdef Node node
        cdef TensorImpl g, laid = None, part
        cdef PyObject* whole = NULL
        cdef PyObject* reference
        cdef PyObject** parts
        cdef bint gradient_is_unshared
        cdef int k
        if self.op is None:
            raise released_error()
        if grads[0] is NULL:
            return 0
        node = <Node>self.op
        gradient_is_unshared = is_unique(grads[0])
        g = <TensorImpl>grads[0]
        if grad_mode()[0] or special_active and is_special(g):
            part = (<object>g)._gather_view(self.params)
        else:
            # A gradient without other references is changed where it is: many slices of one base cost as many slices, not bases.
            laid = g if gradient_is_unshared and sizes_tuple(g.ndim, g.strides) == self.params[1] else copy_in_geometry(g, self.params)
            whole = <PyObject*>laid
            part = part_of(laid, self.params)
            part = copy_of(part, part.dtype_nr)
        parts = <PyObject**>calloc(node.edges, sizeof(PyObject*))
        if parts is NULL:
            raise MemoryError()
        try:
            reference = <PyObject*>part
            node.apply(&reference, parts)
            for k in range(node.edges):
                if k == self.view_edge:
                    part = self.put(g, <TensorImpl>parts[k] if parts[k] is not NULL else None, &whole)
                    Py_INCREF(part)
                    results[k] = <PyObject*>part
                else:
                    results[k] = parts[k]
                    parts[k] = NULL
        finally:
            for k in range(node.edges):
                Py_XDECREF(parts[k])
            free(parts)
        return 0


finish_node_type(CopySlices)
