# cython: language_level=3, boundscheck=False, wraparound=False
"""The engine: walks the graph from the newest node to the oldest and hands gradients on.

Iterative; its state is per run (a hash map keyed by node), so runs may nest and meet in several threads. The GIL is the lock:
accumulation into `.grad` never lets it go. Hooks run in torch's order. Signals are answered between nodes.
"""
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_DECREF
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from cygrad._core.dispatch cimport Op, elementwise, map_kernel
from cygrad._core.operands cimport Value, copy_into, is_dense, same_shape
from cygrad._core.node cimport (AccumulateGrad, Hooks, NODE_ACCUMULATES, Node, attach, connect, edge, gradient_edge,
                                grad_mode, init_node, inherit_destructor, leaf_of, set_accumulate, track_reachable)
from cygrad._core.storage cimport dtypes
from cygrad._core.tensor cimport (CONTIGUOUS, REQUIRES_GRAD, RETAINS_GRAD, TensorImpl, empty, empty_strided, is_unique, sizes_tuple)

from cygrad._core.dispatch import ops

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)

cdef extern from *:
    """
    static __thread unsigned long long cg_run;      /* number of the innermost run in this thread; 0: none */
    static __thread int cg_run_whole = 1;           /* it and those around it gather the gradients of all leaves */
    """
    unsigned long long cg_run
    int cg_run_whole

cdef Op add = ops["add"]
cdef unsigned long long runs = 0


# ----- State of a run -----
cdef struct State:
    PyObject* node          # borrowed from the graph, which the roots keep alive
    PyObject** grads        # one for each output; `single` where there is one
    PyObject* single
    int outputs
    int waiting             # edges from nodes that have not run
    int next_edge           # of the walk
    uint64_t priority       # leaves first, since that frees gradients soonest; then the newest node
    bint visited
    bint needed             # leads to what is asked for
    bint captured           # some output is asked for
    bint deferred           # an accumulation that waits for the other readers of its gradient


cdef struct Run:
    State* states
    Py_ssize_t count, capacity
    Py_ssize_t* table       # open addressing: index of a state + 1
    size_t mask
    Py_ssize_t* heap        # ready states, the newest node first
    Py_ssize_t ready, heap_capacity


cdef inline size_t slot_of(size_t mask, PyObject* node) noexcept:
    return (<size_t>node * <size_t>0x9E3779B97F4A7C15 >> 20) & mask


cdef Py_ssize_t find_state(Run* run, PyObject* node) noexcept:
    cdef size_t slot
    if run.count == 0:
        return -1
    slot = slot_of(run.mask, node)
    while run.table[slot]:
        if run.states[run.table[slot] - 1].node == node:
            return run.table[slot] - 1
        slot = (slot + 1) & run.mask
    return -1


cdef int grow(Run* run) except -1:
    cdef Py_ssize_t capacity = max(64, 2 * run.capacity), k
    cdef State* states = <State*>realloc(run.states, capacity * sizeof(State))
    cdef Py_ssize_t* table
    cdef size_t slot
    if states is NULL:
        raise MemoryError()
    run.states, run.capacity = states, capacity
    table = <Py_ssize_t*>calloc(2 * capacity, sizeof(Py_ssize_t))
    if table is NULL:
        raise MemoryError()
    free(run.table)
    run.table, run.mask = table, 2 * capacity - 1
    for k in range(run.count):
        slot = slot_of(run.mask, run.states[k].node)
        while table[slot]:
            slot = (slot + 1) & run.mask
        table[slot] = k + 1
    return 0


cdef Py_ssize_t add_state(Run* run, PyObject* node) except -1:
    cdef size_t slot
    cdef State* state
    if run.count == run.capacity:
        grow(run)
    state = &run.states[run.count]
    memset(state, 0, sizeof(State))
    state.node, state.outputs = node, (<Node>node).outputs
    state.priority = <uint64_t>-1 if (<Node>node).flags & NODE_ACCUMULATES else (<Node>node).sequence_nr
    if state.outputs > 1:
        state.grads = <PyObject**>calloc(state.outputs, sizeof(PyObject*))
        if state.grads is NULL:
            raise MemoryError()
    slot = slot_of(run.mask, node)
    while run.table[slot]:
        slot = (slot + 1) & run.mask
    run.count += 1
    run.table[slot] = run.count
    return run.count - 1


cdef inline PyObject** grads_of(State* state) noexcept:
    return &state.single if state.grads is NULL else state.grads


cdef void free_run(Run* run) noexcept:
    cdef Py_ssize_t k
    cdef int j
    for k in range(run.count):
        for j in range(run.states[k].outputs if run.states[k].grads is not NULL else 1):
            Py_XDECREF(grads_of(&run.states[k])[j])
        free(run.states[k].grads)
    free(run.states)
    free(run.table)
    free(run.heap)


cdef int push_ready(Run* run, Py_ssize_t index) except -1:
    cdef Py_ssize_t k = run.ready, parent
    cdef Py_ssize_t* heap
    cdef uint64_t mine = run.states[index].priority
    if run.ready == run.heap_capacity:
        heap = <Py_ssize_t*>realloc(run.heap, (2 * run.heap_capacity + 64) * sizeof(Py_ssize_t))
        if heap is NULL:
            raise MemoryError()
        run.heap, run.heap_capacity = heap, 2 * run.heap_capacity + 64
    run.ready += 1
    while k > 0:
        parent = (k - 1) // 2
        if run.states[run.heap[parent]].priority >= mine:
            break
        run.heap[k] = run.heap[parent]
        k = parent
    run.heap[k] = index
    return 0


cdef Py_ssize_t pop_ready(Run* run) noexcept:
    cdef Py_ssize_t first = run.heap[0], last, k = 0, child
    cdef uint64_t mine
    run.ready -= 1
    if run.ready == 0:
        return first
    last = run.heap[run.ready]
    mine = run.states[last].priority
    while True:
        child = 2 * k + 1
        if child >= run.ready:
            break
        if child + 1 < run.ready and run.states[run.heap[child + 1]].priority > run.states[run.heap[child]].priority:
            child += 1
        if run.states[run.heap[child]].priority <= mine:
            break
        run.heap[k] = run.heap[child]
        k = child
    run.heap[k] = last
    return first


cdef int walk(Run* run, Py_ssize_t root, bint everything) except -1:
    """Visit what a root reaches: count the edges into each node and find which nodes lead to what is asked for."""
    cdef Py_ssize_t* stack = NULL
    cdef Py_ssize_t* larger
    cdef Py_ssize_t depth = 1, capacity = 64, index, target_index
    cdef State* state
    cdef Node node, target
    cdef int output_nr
    stack = <Py_ssize_t*>realloc(NULL, capacity * sizeof(Py_ssize_t))
    if stack is NULL:
        raise MemoryError()
    stack[0] = root
    run.states[root].visited = True
    try:
        while depth:
            index = stack[depth - 1]
            state = &run.states[index]
            node = <Node>state.node
            if state.next_edge == node.edges:
                state.needed = state.needed or everything
                depth -= 1
                if depth and (state.needed or state.captured):
                    run.states[stack[depth - 1]].needed = True
                continue
            target = edge(node, state.next_edge, &output_nr)
            state.next_edge += 1
            if target is None:
                continue
            target_index = find_state(run, <PyObject*>target)
            if target_index < 0:
                target_index = add_state(run, <PyObject*>target)
            state = &run.states[target_index]
            state.waiting += 1
            if state.visited:
                if state.needed or state.captured:
                    run.states[index].needed = True
                continue
            state.visited = True
            if depth == capacity:
                larger = <Py_ssize_t*>realloc(stack, 2 * capacity * sizeof(Py_ssize_t))
                if larger is NULL:
                    raise MemoryError()
                stack, capacity = larger, 2 * capacity
            stack[depth] = target_index
            depth += 1
    finally:
        free(stack)
    return 0


# ----- Gradients -----
cdef TensorImpl sum_of(TensorImpl a, TensorImpl b, TensorImpl target, bint private=False):
    cdef Value values[2]
    values[0].tensor, values[1].tensor = <PyObject*>a, <PyObject*>b
    if target is not None:
        map_kernel(add.kernel, a.dtype_nr, a.dtype_nr, 0, 2, values, NULL, 0, target, private)
        target.storage.version += 1
        return target
    return elementwise(add, values, NULL, None, False)


cdef int collect(PyObject** place, PyObject* grad) except -1:
    """Add a gradient to a buffer; takes over the reference to it."""
    cdef TensorImpl result
    cdef PyObject* old = place[0]
    if old is NULL:
        place[0] = grad
        return 0
    try:
        if (not grad_mode()[0] and same_shape(<TensorImpl>old, <TensorImpl>grad)
                and (<TensorImpl>old).dtype_nr == (<TensorImpl>grad).dtype_nr):
            if is_unique(old):
                sum_of(<TensorImpl>old, <TensorImpl>grad, <TensorImpl>old, True)
                return 0
            if is_unique(grad):
                result = sum_of(<TensorImpl>old, <TensorImpl>grad, <TensorImpl>grad, True)
            else:
                result = sum_of(<TensorImpl>old, <TensorImpl>grad, None)
        else:
            result = sum_of(<TensorImpl>old, <TensorImpl>grad, None)
        Py_INCREF(result)
        place[0] = <PyObject*>result
        Py_DECREF(<object>old)
    finally:
        Py_DECREF(<object>grad)
    return 0


cdef bint has_layout_of(TensorImpl grad, TensorImpl variable) noexcept:
    cdef int d
    if grad.flags & variable.flags & CONTIGUOUS:
        return True
    for d in range(grad.ndim):
        if grad.strides[d] != variable.strides[d] and grad.sizes[d] != 1:
            return False
    return True


cdef int accumulate(TensorImpl variable, PyObject* arrived) except -1:
    """Add to `.grad`: in place, or by a new tensor where a graph of the gradient is made."""
    cdef bint unique = is_unique(arrived)
    cdef TensorImpl grad = <TensorImpl>arrived, copy, old, made
    cdef bint create_graph = grad_mode()[0]
    if not same_shape(variable, grad) or variable.dtype_nr != grad.dtype_nr:
        raise RuntimeError(f"a gradient of shape {list(sizes_tuple(grad.ndim, grad.sizes))} and dtype {dtypes[grad.dtype_nr].name} arrived "
                           f"at a leaf of shape {list(sizes_tuple(variable.ndim, variable.sizes))} and dtype "
                           f"{dtypes[variable.dtype_nr].name}")
    if create_graph or variable.gradient is not None and variable.gradient.flags & REQUIRES_GRAD:
        # A new tensor, made with the GIL released: where another thread was quicker, again.
        while True:
            old = variable.gradient
            made = (<object>grad).clone() if old is None else sum_of(old, grad, None)
            if variable.gradient is old:
                break
        variable.gradient = made
        track_reachable(variable)
    elif variable.gradient is None:
        if unique and has_layout_of(grad, variable):
            variable.gradient = grad
        else:
            # A dense parameter gives its strides; anything else means row-major.
            copy = (empty_strided(variable.dtype_nr, variable.ndim, variable.sizes, variable.strides) if is_dense(variable)
                    else empty(variable.dtype_nr, variable.ndim, variable.sizes))
            copy_into(copy, grad)
            variable.gradient = copy
    else:
        sum_of(variable.gradient, grad, variable.gradient)
    return 0


set_accumulate(accumulate)


# ----- Hooks -----
cdef int call_hooks(object table, PyObject** place) except -1:
    """Call hooks on one gradient in the order of their registration; each may replace it."""
    cdef TensorImpl grad
    for hook in list((<dict>table).values()):
        grad = <TensorImpl>place[0]
        result = hook(grad)
        if result is None:
            continue
        if not isinstance(result, TensorImpl):
            raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'; return a Tensor or None")
        if not same_shape(result, grad):
            raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value: it got "
                               f"{list(sizes_tuple(grad.ndim, grad.sizes))} and returned {list((<object>result).shape)}")
        if (<TensorImpl>result).dtype_nr != grad.dtype_nr:
            raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the type of value: it got {(<object>grad).dtype!r} "
                               f"and returned {(<object>result).dtype!r}")
        Py_INCREF(result)
        Py_XDECREF(place[0])
        place[0] = <PyObject*>result
    return 0


cdef int tensor_hooks(Node node, PyObject** grads) except -1:
    """Call what hangs on the gradients of a node's outputs: hooks, then the tensors that keep their gradient."""
    cdef Hooks hooks
    cdef TensorImpl tensor
    if node.flags & NODE_ACCUMULATES:
        tensor = leaf_of(node)
        if tensor.extra is not None and grads[0] is not NULL:
            call_hooks(tensor.extra, grads)
        return 0
    if node.hooks is None:
        return 0
    hooks = node.hooks
    for number, table in list(hooks.tensor.items()):
        if grads[<int>number] is not NULL:
            call_hooks(table, &grads[<int>number])
    for number, reference in list(hooks.retained.items()):
        tensor = reference()
        if tensor is not None and grads[<int>number] is not NULL:
            add_to_grad(tensor, <TensorImpl>grads[<int>number])
    return 0


cdef int add_to_grad(TensorImpl tensor, TensorImpl grad) except -1:
    """Keep the gradient of a non-leaf; as with leaves, what was there is added to, never changed in place."""
    tensor.gradient = grad if tensor.gradient is None else sum_of(tensor.gradient, grad, None)
    if tensor.gradient.node is not None:
        track_reachable(tensor)
    return 0


cdef list grads_list(PyObject** grads, int count):
    return [<object>grads[k] if grads[k] is not NULL else None for k in range(count)]


cdef int replace_grads(object replacement, PyObject** grads, int count) except -1:
    """Take the gradients that a node hook returned."""
    cdef tuple items
    cdef int k
    if replacement is None:
        return 0
    items = replacement if isinstance(replacement, tuple) else (replacement,)
    if len(items) != count:
        raise RuntimeError(f"hooks have changed the number of gradients: expected {count}, got {len(items)}")
    for k in range(count):
        if items[k] is not None and not isinstance(items[k], TensorImpl):
            raise TypeError(f"expected hook to return a Tensor or None, but got {type(items[k]).__name__}")
        Py_XDECREF(grads[k])
        grads[k] = NULL
        if items[k] is not None:
            Py_INCREF(items[k])
            grads[k] = <PyObject*>items[k]
    return 0


# ----- The run -----
cdef bint defer(Run* run, Py_ssize_t index) except -1:
    """Put an accumulation behind all else if its gradient has other readers: they are done then, and it need not copy.

    Not where hooks could see the order.
    """
    cdef State* state = &run.states[index]
    cdef AccumulateGrad node
    if state.deferred or not (<Node>state.node).flags & NODE_ACCUMULATES or state.single is NULL or Py_REFCNT(state.single) == 1:
        return False
    node = <AccumulateGrad>state.node
    if (node.hooks is not None or leaf_of(node).extra is not None or leaf_of(node).gradient is not None
            or (<TensorImpl>state.single).base is not None):
        return False
    state.deferred, state.priority = True, 0
    push_ready(run, index)
    return True


cdef int run_node(Run* run, Py_ssize_t index, bint keep_graph, dict captures, list captured) except -1:
    """Run one node and hand its gradients to the next ones."""
    cdef Node node = <Node>run.states[index].node, target
    cdef PyObject** grads = grads_of(&run.states[index])
    cdef PyObject* few[4]
    cdef PyObject** results = few
    cdef int k, output_nr, outputs = node.outputs, edges = node.edges
    cdef Py_ssize_t next
    cdef PyObject* grad
    cdef bint asked_for
    cdef list held = None
    cdef Hooks hooks = node.hooks if node.hooks is not None else None
    if hooks is not None or node.flags & NODE_ACCUMULATES:
        tensor_hooks(node, grads)
    if run.states[index].captured:
        for k in range(outputs):
            place = captures.get((<size_t><PyObject*>node, k))
            if place is not None:
                captured[place] = <object>grads[k] if grads[k] is not NULL else None
        if not run.states[index].needed:
            return 0
    if edges > 4:
        results = <PyObject**>calloc(edges, sizeof(PyObject*))
        if results is NULL:
            raise MemoryError()
    else:
        memset(few, 0, sizeof(few))
    try:
        if hooks is not None and hooks.pre is not None:
            for hook in list((<dict>hooks.pre).values()):
                replace_grads(hook(tuple(grads_list(grads, outputs))), grads, outputs)
        if hooks is not None and hooks.post is not None:
            held = grads_list(grads, outputs)   # which also keeps them from being overwritten
        node.apply(grads, results)
        if hooks is not None and hooks.post is not None:
            for hook in list((<dict>hooks.post).values()):
                replace_grads(hook(tuple(grads_list(results, edges)), tuple(held)), results, edges)
        for k in range(outputs):
            Py_XDECREF(grads[k])
            grads[k] = NULL
        if not keep_graph:
            node.release()
        for k in range(edges):
            target = edge(node, k, &output_nr)
            if target is None:
                continue
            next = find_state(run, <PyObject*>target)
            asked_for = run.states[next].needed or run.states[next].captured
            if results[k] is not NULL and asked_for:
                grad = results[k]
                results[k] = NULL
                collect(&grads_of(&run.states[next])[output_nr], grad)
            run.states[next].waiting -= 1
            if run.states[next].waiting == 0 and asked_for:
                push_ready(run, next)
    finally:
        for k in range(edges):
            Py_XDECREF(results[k])
        if results != few:
            free(results)
    return 0


def current_run():
    """Return the number of the innermost backward that runs in this thread (0: none), and whether all around are for all leaves."""
    return cg_run, cg_run_whole != 0


def run_backward(tuple tensors, tuple grads, bint keep_graph, bint create_graph, inputs, bint accumulate_grad):
    """Differentiate `tensors`, weighted with `grads`: into the leaves, or as a list of the gradients of `inputs`.

    `inputs` None means all leaves. With `accumulate_grad` gradients of inputs go to their `.grad`, else they are returned
    (None where an input was not reached). Arguments were checked by the caller.
    """
    cdef Run run
    cdef Node node
    cdef TensorImpl tensor
    cdef Py_ssize_t index
    cdef int output_nr, mode = grad_mode()[0], whole = cg_run_whole
    cdef unsigned long long outer = cg_run
    cdef bint everything = inputs is None
    cdef dict captures = {}
    cdef list captured = [], roots = [], targets = []
    global cg_run, cg_run_whole, runs
    memset(&run, 0, sizeof(Run))
    runs += 1
    cg_run, cg_run_whole = runs, whole and everything
    try:
        grow(&run)
        for tensor in inputs or ():
            node = gradient_edge(tensor, &output_nr)
            if node is None:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            targets.append((node, output_nr))
            captured.append(None)
            index = find_state(&run, <PyObject*>node)
            if index < 0:
                index = add_state(&run, <PyObject*>node)
            if accumulate_grad and node.flags & NODE_ACCUMULATES:
                run.states[index].needed = True
            else:
                run.states[index].captured = True
                captures.setdefault((<size_t><PyObject*>node, output_nr), len(captured) - 1)
        for tensor in tensors:
            node = gradient_edge(tensor, &output_nr)
            roots.append((node, output_nr))
            index = find_state(&run, <PyObject*>node)
            if index < 0:
                index = add_state(&run, <PyObject*>node)
            if not run.states[index].visited:
                walk(&run, index, everything)
        for (node, number), value in zip(roots, grads):
            index = find_state(&run, <PyObject*>node)
            Py_INCREF(value)
            collect(&grads_of(&run.states[index])[<int>number], <PyObject*>value)
        for node in {node for node, _ in roots}:
            index = find_state(&run, <PyObject*>node)
            if run.states[index].waiting == 0 and (run.states[index].needed or run.states[index].captured):
                push_ready(&run, index)
        grad_mode()[0] = create_graph
        while run.ready:
            index = pop_ready(&run)
            if defer(&run, index):
                continue
            PyErr_CheckSignals()
            run_node(&run, index, keep_graph, captures, captured)
    finally:
        grad_mode()[0], cg_run, cg_run_whole = mode, outer, whole
        free_run(&run)
    for k, (node, number) in enumerate(targets):
        captured[k] = captured[captures.get((<size_t><PyObject*>node, number), k)]
        if accumulate_grad and captured[k] is not None and not (<TensorImpl>inputs[k]).flags & RETAINS_GRAD:
            add_to_grad(inputs[k], captured[k])
    return captured


# ----- User functions -----
cdef class FunctionNode(Node):
    """The node of a user Function; the Python layer subclasses it and gives it `_run_backward(*grads)`."""

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        cdef int k
        parts = self._run_backward(*grads_list(grads, self.outputs))
        for k in range(self.edges):
            if parts[k] is not None:
                Py_INCREF(<TensorImpl?>parts[k])
                results[k] = <PyObject*>parts[k]
        return 0

    cdef void release(self):
        self._release()

    def _connect(self, tuple inputs, tuple outputs):
        """Make the edges to the input tensors, and this the node of those outputs that are not None."""
        cdef int k
        init_node(self, <int>len(outputs))
        for k in range(<int>len(inputs)):
            connect(self, k, inputs[k])
        track_reachable(self)       # it carries objects of the user, so cycles may go through it
        for k in range(<int>len(outputs)):
            if outputs[k] is not None:
                (<TensorImpl?>outputs[k]).node = None
                attach(outputs[k], self, k)


inherit_destructor(FunctionNode)
