"""The engine: walks the graph from the newest node to the oldest and hands gradients on.

Iterative; its state is per run (run.pxd), so runs may nest and meet in several threads. Hooks run in torch's order: those on a
node's gradients, `retain_grad`, the node's before and after it computes; a leaf's after accumulation come before the last.
Signals are answered between nodes. Needs the GIL.
"""
cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_CLEAR, Py_INCREF, Py_XDECREF
from libc.stdint cimport intptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from cygrad._core.engine.accumulation cimport check_arrival, collect
from cygrad._core.engine.gathering cimport add_parts, add_parts_of
from cygrad._core.engine.hooks cimport call_accumulated_hooks, call_posthooks, call_prehooks, call_tensor_hooks, put
from cygrad._core.engine.placement cimport run_placement
from cygrad._core.engine.run cimport (Run, Space, State, find_state, free_run, grads_of, note_history, note_reached, pop_ready,
                                      prepare_run, push_ready, put_off, state_of, walk)
from cygrad._core.engine.weights cimport plain_weights
from cygrad._core.graph.history cimport AccumulateGrad, attach, connect, edge, gradient_edge
from cygrad._core.graph.modes cimport ANOMALY_CHECKS_NAN, anomaly_mode, grad_mode, note_failure
from cygrad._core.graph.node cimport (Hooks, NODE_ACCUMULATES, NODE_PLACES, NODE_STANDS_FOR_SEVERAL, Node, RESULT, grads_list, init_node,
                                      inherit_destructor, leaf_of)
from cygrad._core.graph.notes cimport Notes, current_notes, is_noting
from cygrad._core.graph.rule_nodes cimport EDGE_BITS, RuleNode, skipped_edges
from cygrad._core.graph.saved cimport SavedTensor, set_thread_hooks, thread_hooks
from cygrad._core.graph.tensor cimport SPARSE, SPECIAL, TensorImpl, needs_grad, special_active, tensor_type
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.levels.batches cimport is_special
from cygrad._core.levels.fronts cimport innermost
from cygrad._core.levels.observers cimport BACKWARD, EVALUATION, begin_node, end_event, profiling_threads, special_tensors
from cygrad._core.levels.overrides cimport exchange_overrides_off
from cygrad._core.programs.pending cimport run_own_program

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)

cdef extern from *:
    """
    static __thread void *cg_run;
    static void **cg_run_address(void) { return &cg_run; }
    """
    void** cg_run_address() noexcept


cdef unsigned long long runs = 0    # so far, in all threads
cdef object interruption = None     # called at each node while set: raises in threads that have to stop


def set_interruption(check):
    """Set a function that is called at each node of every backward, or None; signals reach the main thread only."""
    global interruption
    interruption = check


# ----- The run of this thread -----
cdef class RunContext:
    """The context of one backward: callbacks for its end. Hooks use it as a key, weakly."""
    cdef list callbacks
    cdef object __weakref__


def current_run():
    """Return the number of the innermost backward that runs in this thread (0: none), and whether all around are for all leaves."""
    cdef Run* run = <Run*>cg_run_address()[0]
    if run is NULL:
        return 0, True
    return run.number, run.whole != 0


def keeps_graph():
    """Return True if the innermost backward of this thread leaves nodes as they are, so that another one may follow."""
    cdef Run* run = <Run*>cg_run_address()[0]
    return run is NULL or run.keep_graph != 0


def run_address():
    """Return where this thread's innermost run is, for a run in another thread that it waits for."""
    return <size_t>cg_run_address()[0]


def run_context():
    """Return the RunContext of the innermost backward that this thread is in, or None."""
    cdef Run* run = <Run*>cg_run_address()[0]
    if run is NULL:
        return None
    if run.context is NULL:
        context = RunContext()
        Py_INCREF(context)
        run.context = <PyObject*>context
    return <object>run.context


cdef enum:
    DEEPEST = 20    # backwards one inside the other on one stack: about 10 KiB each


cpdef bint nests_deep() noexcept:
    """Return True if this thread's stack holds so many backwards, one inside the other, that it could end."""
    cdef Run* run = <Run*>cg_run_address()[0]
    return run is not NULL and run.depth >= DEEPEST


def evaluating_node():
    """Return the node that this thread's innermost backward is at, or None."""
    cdef Run* run = <Run*>cg_run_address()[0]
    return None if run is NULL or run.evaluating is NULL else <object>run.evaluating


def will_run(Node node not None):
    """Return True if this thread's innermost backward evaluates a node, or gathers its gradient."""
    cdef Run* run = <Run*>cg_run_address()[0]
    cdef Py_ssize_t index = find_state(run, <PyObject*>node) if run is not NULL else -1
    return index >= 0 and run.states[index].visited and (run.states[index].needed or run.states[index].captured)


def gradients_so_far(Node node not None, tuple edges not None, inputs not None):
    """Return, for edges of the node that this thread's innermost backward is at, the gradients that have arrived where they lead.

    edges: pairs (their number, number of the input). None where nothing has arrived, or no plain tensor like the input, and where hooks see
    the results of the node.
    """
    cdef Run* run = <Run*>cg_run_address()[0]
    cdef PyObject** arrived
    cdef list gradients = [None] * len(edges)
    cdef int k
    if run is NULL or run.evaluating is not <PyObject*>node or node.hooks is not None and node.hooks.post is not None:
        return gradients
    for k, (number, input_number) in enumerate(edges):
        arrived = arrived_gradient(run, node, number)
        if arrived is not NULL and arrived[0] is not NULL and is_plain_like(<object>arrived[0], inputs[input_number]):
            gradients[k] = <object>arrived[0]
    return gradients


def replace_gradients(Node node not None, tuple edges not None, list gradients not None):
    """Drop gradients that `gradients_so_far` has returned: the node returns them with its own parts added."""
    cdef Run* run = <Run*>cg_run_address()[0]
    cdef PyObject** arrived
    for (number, _), gradient in zip(edges, gradients):
        if gradient is not None:
            arrived = arrived_gradient(run, node, number)
            if arrived is NULL or arrived[0] is not <PyObject*>gradient:
                raise RuntimeError("replace_gradients: this is not the gradient that has arrived")
            Py_CLEAR(arrived[0])


cdef bint is_plain_like(object gradient, TensorImpl input) noexcept:
    cdef TensorImpl tensor
    if type(gradient) is not tensor_type:
        return False
    tensor = gradient
    return (not tensor.flags & SPECIAL and tensor.dtype_nr == input.dtype_nr and tensor.ndim == input.ndim
            and not memcmp(tensor.sizes, input.sizes, input.ndim * sizeof(intptr_t)))


cdef PyObject** arrived_gradient(Run* run, Node node, int number) except? NULL:
    """Return where the gradient is that has arrived at the end of an edge; NULL: no gradient is needed there."""
    cdef int output_nr
    cdef Node target
    cdef Py_ssize_t next
    if not 0 <= number < node.edges:
        raise IndexError(f"{node!r} has {node.edges} edges, and {number} is none of them")
    target = edge(node, number, &output_nr)
    next = find_state(run, <PyObject*>target) if target is not None else -1
    if next < 0:
        return NULL
    add_parts_of(run, next)
    return &grads_of(&run.states[next])[output_nr]


def queue_callback(callback):
    """Call a function at the end of the backward that this thread is in; RuntimeError outside of one.

    Callbacks run in the order they came, those that other callbacks queue too, and not after an error.
    """
    cdef RunContext context = run_context()
    if context is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if context.callbacks is None:
        context.callbacks = []
    context.callbacks.append(callback)


cdef int run_callbacks(Run* run) except -1:
    cdef RunContext context
    if run.context is not NULL:
        context = <RunContext>run.context
        for callback in context.callbacks or ():    # sees callbacks that are appended meanwhile
            callback()
    return 0


# ----- Nodes -----
cdef bint defer_accumulation(Run* run, Py_ssize_t index) except -1:
    """Put an accumulation behind all else if its gradient has other readers: they are done then, and it need not copy.

    Not where hooks could see the order.
    """
    cdef State* state = &run.states[index]
    cdef AccumulateGrad node
    if state.deferred or state.single is NULL or Py_REFCNT(state.single) == 1:
        return False
    node = <AccumulateGrad>state.node
    if (node.hooks is not None or leaf_of(node).extra is not None or leaf_of(node).gradient is not None
            or (<TensorImpl>state.single).base is not None):
        return False
    put_off(run, index, 0)
    return True


cdef int capture(Node node, PyObject** grads, dict captures, list captured) except -1:
    """Note the gradients that were asked for."""
    cdef int k
    if node.flags & NODE_ACCUMULATES and grads[0] is not NULL and leaf_of(node).accumulator is <void*>node:
        check_arrival(leaf_of(node), <TensorImpl>grads[0])
    for k in range(node.outputs):
        number = captures.get((<size_t><PyObject*>node, k))
        if number is not None:
            captured[number] = <object>grads[k] if grads[k] is not NULL else None
    return 0


cdef int check_nan(Node node, PyObject** results) except -1:
    """Refuse a gradient that is not a number; in anomaly mode only."""
    cdef int k, mode = grad_mode()[0]
    grad_mode()[0] = False
    try:
        for k in range(node.edges):
            if results[k] is not NULL and (<object>innermost(<TensorImpl>results[k])).isnan().any():
                raise RuntimeError(f"Function '{(<object>node).name()}' returned nan values in its {k}th output.")
    finally:
        grad_mode()[0] = mode
    return 0


cdef int make_dense(Node node, PyObject** grads) except -1:
    """Have a node that computes with gradients see no sparse one: leaves, hooks and `grad` do."""
    cdef int k
    for k in range(node.outputs):
        if grads[k] is not NULL and (<TensorImpl>grads[k]).flags & SPARSE:
            put(&grads[k], (<object><TensorImpl>grads[k]).to_dense())
    return 0


cdef inline int compute(Node node, PyObject** grads, PyObject** results) except -1:
    """Let a node compute."""
    node.apply(grads, results)
    if node.flags & NODE_ACCUMULATES:
        call_accumulated_hooks(<AccumulateGrad>node)
    return 0


cdef int compute_observed(Node node, PyObject** grads, PyObject** results) except -1:
    """Let a node compute, as an event of a profile."""
    cdef Py_ssize_t token = begin_node(BACKWARD, node, grads)
    try:
        return compute(node, grads, results)
    finally:
        end_event(token)


cdef bint leads_on(Run* run, Node node) except -1:
    """Return True if a result of a node is needed: not behind a non-leaf of which only the `.grad` is requested. A rule leaves out the
    results that are not."""
    cdef Py_ssize_t next
    cdef int k, output_nr
    cdef bint result = False
    cdef unsigned long long skipped = 0
    for k in range(node.edges):
        target = edge(node, k, &output_nr)
        if target is not None:
            next = find_state(run, <PyObject*>target)
            if run.states[next].needed or run.states[next].captured:
                result = True
            elif k < EDGE_BITS:
                skipped |= 1ULL << k
    if result and isinstance(node, RuleNode):
        skipped_edges()[0] = skipped
    return result


cdef inline int hand_on(Run* run, Node node, PyObject** results) except -1:
    """Hand the gradients of a node's inputs to the next nodes. `results` NULL: no gradient has reached the node, which has not run."""
    cdef Node target
    cdef Py_ssize_t next
    cdef int k, output_nr
    cdef PyObject* grad
    cdef bint asked_for
    for k in range(node.edges):
        target = edge(node, k, &output_nr)
        if target is None:
            continue
        next = find_state(run, <PyObject*>target)
        asked_for = run.states[next].needed or run.states[next].captured
        add_parts_of(run, next)
        if results is not NULL and (results[k] is not NULL or not node.flags & NODE_STANDS_FOR_SEVERAL):
            run.states[next].reached = True
        if results is not NULL and results[k] is not NULL and asked_for:
            grad = results[k]
            results[k] = NULL
            collect(&grads_of(&run.states[next])[output_nr], grad)
        run.states[next].missing -= 1
        if run.states[next].missing == 0 and asked_for:
            push_ready(run, next)
    return 0


cdef int run_node(Run* run, Py_ssize_t index, bint keep_graph, dict captures, list captured) except -1:
    """Run one node and hand its gradients to the next ones."""
    cdef Node node = <Node>run.states[index].node
    cdef PyObject** grads = grads_of(&run.states[index])
    cdef PyObject* few[4]
    cdef PyObject** results = few
    cdef int k, edges = node.edges
    cdef bint computes, needed = run.states[index].needed, is_captured = run.states[index].captured
    cdef tuple incoming = None
    cdef Hooks hooks = node.hooks
    if hooks is not None or isinstance(node, FunctionNode):
        add_parts(run)      # code of the user may change gradients
    if is_captured and (needed or run.between):     # before the hooks, as torch does where the node runs too
        capture(node, grads, captures, captured)
        if not needed:
            return 0
    if hooks is not None or node.flags & NODE_ACCUMULATES:
        call_tensor_hooks(node, grads)
    if not needed:
        capture(node, grads, captures, captured)
        return 0
    if edges > 4:
        results = <PyObject**>calloc(edges, sizeof(PyObject*))
        if results is NULL:
            raise MemoryError()
    else:
        memset(few, 0, sizeof(few))
    try:
        if hooks is not None and hooks.pre is not None:
            call_prehooks(hooks, grads, node.outputs)
        if hooks is not None and hooks.post is not None:
            incoming = tuple(grads_list(grads, node.outputs))       # which also keeps them from being overwritten
        if special_tensors() and not node.flags & NODE_ACCUMULATES:
            make_dense(node, grads)
        computes = run.everything or edges == 0 or leads_on(run, node)
        if profiling_threads and computes:
            compute_observed(node, grads, results)
        elif computes:
            compute(node, grads, results)
        if incoming is not None:
            call_posthooks(hooks, results, edges, incoming)
        for k in range(node.outputs):
            Py_XDECREF(grads[k])
            grads[k] = NULL
        if computes and not keep_graph:
            node.release()
        if anomaly_mode & ANOMALY_CHECKS_NAN:
            check_nan(node, results)
        hand_on(run, node, results)
    finally:
        for k in range(edges):
            Py_XDECREF(results[k])
        if results != few:
            free(results)
    return 0


# ----- Backward -----
cdef Node node_behind(object item, int* output_nr):
    """Return the node of a tensor or GradientEdge, None where a tensor needs no gradient."""
    if isinstance(item, TensorImpl):
        return gradient_edge(item, output_nr)
    node, number = item[0], item[1]
    if not isinstance(node, Node):
        raise RuntimeError(f"GradientEdge's first object must be an autograd.graph.Node but got {type(node).__name__}")
    output_nr[0] = number
    return node


cdef tuple plain_tensors(value):
    """Return a tensor, or tensors in a tuple or a list, as a tuple; an empty one for anything else."""
    if isinstance(value, TensorImpl):
        return (value,)
    if type(value) is not tuple and type(value) is not list:
        return ()
    for item in value:
        if not isinstance(item, TensorImpl):
            return ()
    return tuple(value)


cdef int holds_special(tuple tensors) except -1:
    """Return True if a tensor, or None, of a tuple is special."""
    for item in tensors:
        if item is not None and is_special(<TensorImpl>item):
            return True
    return False


def run_plain(outputs, grads, inputs, int keep_graph):
    """Run a backward of arguments that only need a check of their types, into all leaves or, with `inputs`, returning their gradients.

    None, and nothing has run, where there is anything else: GradientEdges, weights of other dtypes, special tensors, a deep nest.
    """
    cdef tuple ends = plain_tensors(outputs), targets = None
    if inputs is not None:
        targets = plain_tensors(inputs)
    if nests_deep() or not ends or inputs is not None and not targets:
        return None
    cdef tuple weights = (None,) * len(ends) if grads is None else (grads,) if isinstance(grads, TensorImpl) else plain_tensors(grads)
    if special_active and (holds_special(ends) or holds_special(weights) or targets is not None and holds_special(targets)):
        return None
    weights = plain_weights(ends, weights)
    return None if weights is None else run_backward(ends, weights, keep_graph, False, targets, targets is None)


cpdef list run_backward(tuple outputs, tuple grads, int keep_graph, int create_graph, inputs, bint accumulate_grad,
                        bint between=False, size_t outer=0):
    """Differentiate `outputs`, weighted with `grads`: into the leaves, or as a list of the gradients of `inputs`.

    Outputs and inputs are tensors or GradientEdges. `inputs` None means all leaves. With `accumulate_grad` gradients go to the
    `.grad` of the inputs, else they are returned (None where an input was not reached). Weights were checked by the caller.
    `between`: the graph ends at the inputs, so that one which another was computed from gets no gradient through that one; their hooks are
    not called.
    `outer`: the run_address() of a thread that waits for this one, for the run inside it.
    """
    cdef Run run
    cdef Space space
    cdef Run* before = <Run*>cg_run_address()[0]
    cdef Notes notes = None
    cdef Node node
    cdef Py_ssize_t index, k, event = 0
    cdef int output_nr, mode = grad_mode()[0], overrides = exchange_overrides_off(-1)
    global runs
    cdef dict captures = {}
    cdef list captured = [], roots = [], targets = []
    cdef object hooks = thread_hooks()      # a hook that unpacks may enter or leave others, which ends with its node
    prepare_run(&run, &space)
    runs += 1
    run.number, run.everything, run.outer = runs, inputs is None, before if outer == 0 else <Run*>outer
    run.whole = run.everything and (run.outer is NULL or run.outer.whole)
    run.keep_graph, run.between = keep_graph != 0, between
    run.depth = 1 if before is NULL else before.depth + 1
    try:
        for item in inputs or ():
            node = node_behind(item, &output_nr)
            if node is None and not (isinstance(item, TensorImpl) and needs_grad(item)):
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            targets.append((node, output_nr))
            captured.append(None)
            if node is None:        # a view that was made without a history, of a tensor that has one: nothing reaches it
                continue
            index = state_of(&run, <PyObject*>node)
            if accumulate_grad:     # a non-leaf retains its gradient: nothing is captured, but its node's hooks run
                run.states[index].needed = True
            else:
                run.states[index].captured = True
                run.states[index].visited = between
                captures.setdefault((<size_t><PyObject*>node, output_nr), len(captured) - 1)
        for item in outputs:
            node = node_behind(item, &output_nr)
            if node is None:
                raise RuntimeError(f"element {len(roots)} of tensors does not require grad and does not have a grad_fn")
            if output_nr < 0 or output_nr >= node.outputs:
                raise IndexError(f"{node!r} has {node.outputs} outputs, and a GradientEdge names output {output_nr}")
            roots.append(node)
            index = state_of(&run, <PyObject*>node)
            if not run.states[index].visited:
                walk(&run, index)
        notes = current_notes() if is_noting() else None
        if notes is not None and not between:
            note_history(notes, roots, targets, accumulate_grad)
        if profiling_threads:
            event = begin_node(EVALUATION, None, NULL)
            end_event(begin_node(BACKWARD, None, NULL))
        if len(grads) != len(roots):
            raise ValueError(f"run_backward() takes a weight for each of {len(roots)} outputs, not {len(grads)}")
        for k in range(len(roots)):
            node, value = node_behind(outputs[k], &output_nr), <TensorImpl?>grads[k]
            index = find_state(&run, <PyObject*>node)
            Py_INCREF(value)
            collect(&grads_of(&run.states[index])[output_nr], <PyObject*>value)
            run.states[index].reached = True
        for node in roots if len(roots) == 1 else set(roots):
            index = find_state(&run, <PyObject*>node)
            if run.states[index].missing == 0 and (run.states[index].needed or run.states[index].captured):
                push_ready(&run, index)
        end_event(event)
        grad_mode()[0] = create_graph != 0
        exchange_overrides_off(2)       # the formulas of gradients are no calls of users
        cg_run_address()[0] = &run
        while run.ready:
            set_thread_hooks(hooks)
            index = pop_ready(&run)
            run.evaluating = run.states[index].node
            if not run.states[index].reached:       # a node before it that stands for several has an edge there
                if run.states[index].needed:
                    hand_on(&run, <Node>run.evaluating, NULL)
                continue
            if (<Node>run.evaluating).flags & NODE_ACCUMULATES and defer_accumulation(&run, index):
                continue
            PyErr_CheckSignals()
            if interruption is not None:
                interruption()
            if profiling_threads:
                event = begin_node(EVALUATION, <Node>run.evaluating, NULL)
            elif (<Node>run.evaluating).flags & NODE_PLACES and run_placement(&run, index, keep_graph):
                continue
            run_node(&run, index, keep_graph, captures, captured)
            if event:
                end_event(event)
        run.evaluating = NULL
        run_own_program()       # whose operands the graph need not keep
        if notes is not None:
            notes.ran_backward = True
        run_callbacks(&run)
    except BaseException:
        if anomaly_mode and run.evaluating is not NULL:
            note_failure(<Node>run.evaluating)
        raise
    finally:
        end_event(event)
        cg_run_address()[0] = before
        grad_mode()[0] = mode
        set_thread_hooks(hooks)
        exchange_overrides_off(overrides)
        if notes is not None and not between:
            note_reached(&run, notes.reached)
        free_run(&run)
    for k, (node, number) in enumerate(targets):
        if node is not None:
            captured[k] = captured[captures.get((<size_t><PyObject*>node, number), k)]
    return captured


# ----- User functions -----
@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
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

    cdef object saved_value(self, int number):
        """Return the saved value that is an output, for its tangent: a Function may save its outputs at any places."""
        cdef SavedTensor saved
        for saved in self._saved:
            if saved.is_output and saved.output_nr == number - RESULT:
                return saved
        return None

    cdef void release(self):
        self._release()

    cdef bint frees_values(self) except -1:
        return bool(self._saved)

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
