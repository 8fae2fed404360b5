"""Placement (see placement.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._core.compute.parts cimport zero_outside
from cygrad._core.engine.accumulation cimport add, sum_of
from cygrad._core.engine.gathering cimport add_parts_of, gathers, keep_part
from cygrad._core.engine.run cimport Run, State, find_state, grads_of, push_ready, put_off
from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.history cimport edge
from cygrad._core.graph.modes cimport anomaly_mode, grad_mode
from cygrad._core.graph.node cimport NODE_ACCUMULATES, NODE_PACKED, NODE_PLACES, NODE_RELEASED, Node, has_gradient_hooks
from cygrad._core.graph.rule_nodes cimport RuleNode
from cygrad._core.graph.rules cimport RuleOp
from cygrad._core.graph.tensor cimport (BATCHED, CONTIGUOUS, TensorImpl, address, count_change, empty, is_dense, is_unique, tensor_type,
                                        value_address)
from cygrad._core.levels.batches cimport Batch, is_special, kernel_batch, leave, private_examples
from cygrad._core.levels.level cimport Level
from cygrad._core.levels.observers cimport special_tensors
from cygrad._core.operands.operands cimport copy_of, fits_loop, same_shape, shape_is
from cygrad._core.programs.deferred cimport copy_later
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, SMALL_COUNT, cg_itemsize
from cygrad._kernels.drivers.packing cimport zero_dense
from cygrad._kernels.programs.settings cimport noted

cdef enum:
    LONGEST = 16            # parts of parts that are taken at once


# ----- Where gradients go -----
cdef bint is_quiet(State* state) noexcept:
    """Return True if a node places its gradient, and no hook sees the gradient that it computes otherwise."""
    cdef Node node = <Node>state.node
    return (node.flags & (NODE_PLACES | NODE_RELEASED | NODE_PACKED) == NODE_PLACES and not has_gradient_hooks(node) and state.needed
            and not state.captured)


cdef Py_ssize_t target_of(Run* run, Py_ssize_t index, int* output_nr) except -2:
    """Return the state that a node's first gradient goes to; -1 where that gradient is not needed."""
    cdef Node target = edge(<Node>run.states[index].node, 0, output_nr)
    cdef Py_ssize_t next
    if target is None:
        return -1
    next = find_state(run, <PyObject*>target)
    return next if run.states[next].needed or run.states[next].captured else -1


cdef bint passes_on(Run* run, State* state) noexcept:
    """Return True if a node reads one part, would run next, and has its only gradient from the node before."""
    return (is_quiet(state) and state.outputs == 1 and state.missing == 1 and state.single is NULL
            and not (<RuleOp>(<RuleNode>state.node).op).adds
            and (run.ready == 0 or run.states[run.heap[0]].priority < state.priority))


cdef bint is_better_last(Run* run, State* state, State* target) noexcept:
    """Return True if a node that adds elements can add them to the gradient of another node, so that no zeros are made. Of two
    gradients, either may come first: their sum is the same."""
    return (<RuleOp>(<RuleNode>state.node).op).adds and not state.deferred and target.missing == 2 and run.ready > 0


# ----- The gradients that they are added to -----
cdef inline TensorImpl computed_tensor(TensorImpl tensor):
    """Return the tensor that a kernel computes on: all examples, where it stands for one of many."""
    return (<Batch>tensor.special).inner if tensor.flags & BATCHED else tensor


cdef Level common_level(PyObject** grads, int count, bint* suitable):
    """Return the level at which gradients are one of many, or None; `suitable`: some are there, and kernels may compute with all."""
    cdef TensorImpl g, first = None
    cdef Batch batch
    cdef Level level = None
    cdef int k
    suitable[0] = False
    for k in range(count):
        if grads[k] is NULL:
            continue
        g = <TensorImpl>grads[k]
        batch = kernel_batch(g) if special_tensors() else None
        if first is None:
            first, level = g, None if batch is None else batch.level
        if (type(g) is not tensor_type or batch is None and special_tensors() and is_special(g) or g.dtype_nr != first.dtype_nr
                or level is not (None if batch is None else batch.level)):
            return None
    suitable[0] = first is not None
    return level


cdef TensorImpl new_whole(TensorImpl g, RuleNode node, Level level):
    """Return unset memory for the gradient of a whole."""
    cdef intptr_t sizes[MAX_DIMS + 1]
    cdef int ndim
    if level is None:
        ndim = node.input_sizes(sizes)
        return empty(g.dtype_nr, ndim, sizes)
    sizes[0] = level.size
    ndim = node.input_sizes(sizes + 1)
    return leave(empty(g.dtype_nr, ndim + 1, sizes), level)


cdef TensorImpl gathered_whole(PyObject* gathered, TensorImpl g, RuleNode node, Level level):
    """Return the gradient gathered so far, or a copy where others hold it; None where nothing can be added in place."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef TensorImpl old
    cdef bint unique
    if not shape_is(<TensorImpl>gathered, node.input_sizes(sizes), sizes):
        return None
    if level is not None:
        old = private_examples(gathered)
        return (<TensorImpl>gathered if old is not None and (<Batch>(<TensorImpl>gathered).special).level is level
                and old.dtype_nr == g.dtype_nr and is_dense(old) else None)
    unique = is_unique(gathered)
    old = <TensorImpl>gathered
    if type(old) is not tensor_type or old.dtype_nr != g.dtype_nr or special_tensors() and is_special(old):
        return None
    return old if unique and is_dense(old) else copy_of(old, old.dtype_nr)


cdef bint fits_place(object part, TensorImpl whole, PyObject* grad) except -1:
    """Return True if a part lies in a whole, and has the shape of its gradient, which may be undefined."""
    cdef TensorImpl placed = <TensorImpl?>part
    return ((placed.flags ^ whole.flags) & BATCHED == 0 and computed_tensor(placed).storage is computed_tensor(whole).storage
            and (grad is NULL or same_shape(computed_tensor(placed), computed_tensor(<TensorImpl>grad))))


# ----- Adding -----
cdef int add_to(TensorImpl part, TensorImpl g, bint fresh) except -1:
    """Add a gradient to its part, of which nothing is set yet where the memory is fresh."""
    if fresh:
        return copy_later(part, g, True)
    sum_of(part, g, part, True)
    return 0


cdef inline bint is_small_run(TensorImpl whole, TensorImpl g) noexcept:
    """Return True if a gradient is small, and it and the whole lie row-major: no view, no driver, no launch."""
    return (not noted and g.count < SMALL_COUNT and fits_loop(g, g.dtype_nr) and whole.flags & CONTIGUOUS
            and not (whole.flags | g.flags) & BATCHED and add.kernel.loops[g.dtype_nr] is not NULL and not add.kernel.blocked[g.dtype_nr])


cdef int add_run(TensorImpl whole, intptr_t start, TensorImpl g, bint fresh) except -1:
    """Add a small gradient to a run of elements."""
    cdef intptr_t itemsize = cg_itemsize[g.dtype_nr]
    cdef intptr_t strides[2]
    cdef char* pointers[3]
    pointers[1] = value_address(g)
    pointers[0] = pointers[2] = address(whole) + start * itemsize
    if fresh:
        zero_dense(pointers[0] - start * itemsize, start, itemsize)
        memcpy(pointers[0], pointers[1], g.count * itemsize)
        zero_dense(pointers[0] + g.count * itemsize, whole.count - start - g.count, itemsize)
        return 0
    strides[0] = strides[1] = itemsize
    add.kernel.loops[g.dtype_nr](pointers, strides, g.count, NULL)
    count_change(whole)
    return 0


cdef bint add_placed(Run* run, Py_ssize_t target, RuleNode node, PyObject** grads, TensorImpl whole, TensorImpl part,
                     bint fresh) except -1:
    """Add the gradients of a node's outputs to their places in a part of a whole; False where they do not fit."""
    cdef object placed = None
    cdef tuple parts
    cdef intptr_t written = 0, start
    cdef int k
    if (<RuleOp>node.op).adds:
        add_parts_of(run, target)
        if fresh:
            zero(computed_tensor(whole))
        node.place_in(part, grads)
        return True
    if (node.outputs == 1 and part is whole and not gathers(run, target) and (not fresh or whole.count < SMALL_COUNT)
            and is_small_run(whole, <TensorImpl>grads[0])):
        start = node.run_in(whole, <TensorImpl>grads[0])
        if start >= 0:
            add_run(whole, start, <TensorImpl>grads[0], fresh)
            return True
    placed = node.place_in(part, grads)
    if type(placed) is not tuple:
        if node.outputs != 1 or not fits_place(placed, whole, grads[0]):
            return False
        if keep_part(run, target, whole, <TensorImpl>placed, <TensorImpl>grads[0], fresh):
            return True
        add_parts_of(run, target)
        if fresh:
            zero_outside(computed_tensor(whole), computed_tensor(<TensorImpl>placed))
        add_to(computed_tensor(<TensorImpl>placed), computed_tensor(<TensorImpl>grads[0]), fresh)
        return True
    parts = placed
    if len(parts) != node.outputs:
        return False
    for k in range(node.outputs):
        if not fits_place(parts[k], whole, grads[k]):
            return False
        written += (<TensorImpl>computed_tensor(<TensorImpl>grads[k])).count if grads[k] is not NULL else 0
    add_parts_of(run, target)
    if fresh and written != computed_tensor(whole).count:
        zero(computed_tensor(whole))
    for k in range(node.outputs):
        if grads[k] is not NULL:
            add_to(computed_tensor(<TensorImpl>parts[k]), computed_tensor(<TensorImpl>grads[k]), fresh)
    return True


cdef bint run_placement(Run* run, Py_ssize_t index, bint keep_graph) except -1:
    """Add a ready node's gradient where it belongs; False where it does not, or a hook could see the difference."""
    cdef Py_ssize_t path[LONGEST]
    cdef Py_ssize_t next, further
    cdef int depth = 1, output_nr, further_nr, k
    cdef PyObject** grads
    cdef PyObject** reference
    cdef TensorImpl whole, part, g
    cdef RuleNode node = <RuleNode>run.states[index].node, last
    cdef Level level
    cdef bint fresh, suitable
    if grad_mode()[0] or anomaly_mode or not is_quiet(&run.states[index]):
        return False
    path[0], next = index, target_of(run, index, &output_nr)
    if next < 0:
        return False
    grads = grads_of(&run.states[index])
    level = common_level(grads, node.outputs, &suitable)
    if not suitable or level is not None and (<RuleOp>node.op).adds:
        return False
    while depth < LONGEST and passes_on(run, &run.states[next]):
        further = target_of(run, next, &further_nr)
        if further < 0:
            break
        path[depth] = next
        depth += 1
        next, output_nr = further, further_nr
    reference = &grads_of(&run.states[next])[output_nr]
    fresh = reference[0] is NULL
    if fresh and is_better_last(run, &run.states[index], &run.states[next]):
        put_off(run, index, 0 if (<Node>run.states[next].node).flags & NODE_ACCUMULATES else run.states[next].priority)
        return True
    for k in range(node.outputs):
        if grads[k] is not NULL:
            g = <TensorImpl>grads[k]
    last = <RuleNode>run.states[path[depth - 1]].node
    whole = new_whole(g, last, level) if fresh else gathered_whole(reference[0], g, last, level)
    if whole is None:
        return False
    part = whole
    for k in range(depth - 1, 0, -1):
        placed = (<RuleNode>run.states[path[k]].node).place_in(part, NULL)
        part = <TensorImpl?>((<tuple>placed)[0] if type(placed) is tuple else placed)       # a split may give one part
    if not add_placed(run, next, node, grads, whole, part, fresh):
        return False
    if reference[0] is not <PyObject*>whole:
        Py_XDECREF(reference[0])
        Py_INCREF(whole)
        reference[0] = <PyObject*>whole
    for k in range(node.outputs):
        Py_XDECREF(grads[k])
        grads[k] = NULL
    for k in range(depth):
        run.states[path[k]].missing, run.states[path[k]].reached = 0, True
        if not keep_graph:
            (<RuleNode>run.states[path[k]].node).release()
    run.states[next].missing -= 1
    run.states[next].reached = True
    if run.states[next].missing == 0:
        add_parts_of(run, next)
        push_ready(run, next)
    return True
