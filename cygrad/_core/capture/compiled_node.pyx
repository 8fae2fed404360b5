"""The node of a captured function, and its calls: the backward part of the program turns gradients of results into gradients of inputs."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from cygrad._core.capture.captured cimport FIRST_INPUT
from cygrad._core.capture.layouts cimport Layout, empty_in, has_strides_of
from cygrad._core.capture.replay cimport Replay
from cygrad._core.graph.history cimport attach, connect, edge
from cygrad._core.graph.modes cimport anomaly_mode, cg_function_modes, grad_mode
from cygrad._core.graph.node cimport (NODE_ACCUMULATES, NODE_PLACES, NODE_RELEASED, NODE_STANDS_FOR_SEVERAL, Node, finish_node_type,
                                      grads_list, init_node)
from cygrad._core.graph.notes cimport is_noting
from cygrad._core.graph.rule_nodes cimport RuleNode
from cygrad._core.graph.rules cimport RuleOp
from cygrad._core.graph.saved cimport SavedTensor, check_version, hook_pairs, packs_by_default, released_error
from cygrad._core.graph.tensor cimport SPECIAL, TENSOR_TRACKED, TensorImpl, count_change, needs_grad, shallow_copy, tensor_type
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.levels.observers cimport begin_event, end_event, is_profiling, profiling_threads
from cygrad._core.memory.storage cimport Storage, borrow, owner_of, version_of, visible_version
from cygrad._core.operands.operands cimport copy_into

from cygrad._core.capture.replay import GaveUp
from cygrad._core.engine.backward import FunctionNode, gradients_so_far, keeps_graph, replace_gradients
from cygrad._core.levels.level import innermost_level


cdef extern from *:
    """
    static __thread int cg_suspensions;
    static int *cg_suspensions_place(void) { return &cg_suspensions; }
    """
    int* cg_suspensions_place() noexcept


cdef class CompiledNode(Node):
    """A call of a captured function. `saved0` is a tuple: (program, inputs, their versions, the watched results, their versions, storages,
    rerun)."""
    cdef bint stays         # a backward that did not keep the graph has left values for others

    cdef str node_name(self):
        return "CompiledFunctionBackward"

    cdef void release(self):
        if not self.stays:
            Node.release(self)

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        cdef Replay replay, program = None
        cdef TensorImpl tensor
        cdef list gradients, sums, computed = None
        cdef int number
        cdef bint whole
        gradients = arrived_gradients(self, grads, &whole)
        if gradients is None:
            return 0
        replay, inputs, input_versions, outputs, output_versions, state, rerun = self.saved0
        if self.hooks is not None and any([self.hooks.tensor.get(number) for number in replay.nested]):
            raise RuntimeError(f"compile(): a hook on a result of {replay.name} gets a part of its gradient, as another result of the call "
                               "is computed from it: call register_hook() in the function")
        sums = gradients_so_far(self, replay.read_often, inputs)
        gradients += sums
        if whole:
            program = replay.program_for(gradients)
            if program is None:
                program = rerun.program_for(inputs, are_unchanged(inputs, input_versions), gradients)
        if self.stays:
            rerun.check_freed(program)
        for number, tensor, version in zip(range(len(inputs)), inputs, input_versions):
            if version_of(tensor.storage) != version and is_saved(replay, program, inputs, number):
                check_version(tensor, version, tensor.node, self)
        for number, tensor, version in zip(replay.result_bases, outputs, output_versions):
            if version_of((<TensorImpl>tensor).storage) != version and number in (replay if program is None else program).reads_back:
                check_version(tensor, version, self, self)
        if program is not None:
            if program.guards:
                rerun.check_values(inputs, program.guards)
            if keeps_graph():
                state = list(state)
            elif program.frees is None:
                self.saved0 = None      # the residuals die one by one
            else:
                state, self.stays = list(state), True
                rerun.note_freed(program)
            if program is replay:
                sums = [None] * len(sums)       # which it does not add to
            weights = [weight_of(gradient, layout) for gradient, layout in zip(gradients, program.gradients) if layout is not None]
            outside = list(inputs) + weights
            versions = versions_to_be(outside, program.changes_back)
            try:
                computed = program.run_backward(list(inputs), state, weights)
                count_changes(outside, program.changes_back, versions)
            except GaveUp:      # a decision by the values of gradients
                pass
        if computed is None:
            computed = rerun(inputs, gradients[:len(replay.recorded)] + sums, bool(grad_mode()[0]))
        replace_gradients(self, replay.read_often, sums)
        return hand_over(self, computed, results)


finish_node_type(CompiledNode)


cdef bint is_saved(Replay replay, Replay program, tuple inputs, int number) except -1:
    """Return True if a backward part, or the function (None), reads an input as it was at the call: not one that hooks alone read and
    change."""
    cdef Storage storage = (<TensorImpl>inputs[number]).storage
    cdef list changes = (replay if program is None else program).changes_back
    if program is not None and number + FIRST_INPUT not in program.reads_back:
        return False
    if not any([place < len(inputs) and (<TensorImpl>inputs[place]).storage is storage for place, _ in changes]):
        return True
    return number in replay.saved_by_functions or any([
        FIRST_INPUT <= base < FIRST_INPUT + len(inputs) and (<TensorImpl>inputs[base - FIRST_INPUT]).storage is storage
        for base in replay.reads_forward])


def saved_by_functions(list nodes not None, list inputs not None):
    """Return the numbers of the inputs whose memory user Functions among some nodes save, without reading it perhaps."""
    cdef SavedTensor saved
    cdef set storages = set()
    for node in nodes:
        if isinstance(node, FunctionNode):
            for saved in node._saved:
                tensor = saved.packed if saved.tensor is None else saved.tensor
                if isinstance(tensor, TensorImpl):
                    storages.add(id((<TensorImpl>tensor).storage))
    return frozenset([number for number, tensor in enumerate(inputs) if id((<TensorImpl>tensor).storage) in storages])


cdef bint are_unchanged(tuple tensors, tuple versions):
    cdef Py_ssize_t k
    for k in range(len(tensors)):
        if version_of((<TensorImpl>tensors[k]).storage) != <unsigned long long>versions[k]:
            return False
    return True


cdef list arrived_gradients(Node node, PyObject** grads, bint* whole):
    cdef list gradients
    cdef bint any_arrived = False
    if node.flags & NODE_RELEASED or node.saved0 is None:
        raise released_error()
    gradients, whole[0] = grads_list(grads, node.outputs), not grad_mode()[0]
    for gradient in gradients:
        if gradient is not None:
            whole[0] = whole[0] and type(gradient) is tensor_type and not (<TensorImpl>gradient).flags & SPECIAL
            any_arrived = True
    return gradients if any_arrived else None


cdef int hand_over(Node node, list gradients, PyObject** results) except -1:
    """Give the edges of a node their gradients."""
    cdef int k, output_nr
    for k in range(node.edges):
        if edge(node, k, &output_nr) is not None and gradients[k] is not None:
            gradient = gradients[k]
            Py_INCREF(gradient)
            results[k] = <PyObject*>gradient
    return 0


cdef TensorImpl weight_of(TensorImpl gradient, Layout layout):
    """Return a gradient as the program has noted it: in its strides, since the order of sums depends on them, in memory with padding."""
    cdef TensorImpl copy
    if gradient.storage.padded and has_strides_of(layout, gradient):
        return gradient
    copy = empty_in(layout)
    copy_into(copy, gradient)
    return copy


def suspend_replays(int change):
    """Count a reason of this thread to run functions as they are (1), or its end (-1)."""
    cg_suspensions_place()[0] += change


def sees_results_alone():
    """Return True if only the results of calls, and kernels, are seen: there is no anomaly mode or hook in this thread."""
    return not (cg_suspensions_place()[0] or anomaly_mode or cg_function_modes or hook_pairs and packs_by_default())


def may_replay():
    """Return True if a captured function may be replayed: its steps are not seen, or noted, and there is no transform around it."""
    return not is_noting() and sees_results_alone() and innermost_level() is None


def in_profile():
    """Return True if this thread is profiled."""
    return bool(profiling_threads) and is_profiling()


cdef list versions_to_be(object inputs, list changes):
    """Return the versions that inputs have after the changes of a part."""
    return [visible_version((<TensorImpl>inputs[number]).storage.version) + count for number, count in changes]


cdef int count_changes(object inputs, list changes, list versions) except -1:
    """Count the changes of inputs that a part of a program has made; its calls of Python have counted theirs, also those by `.data`."""
    cdef TensorImpl tensor
    cdef long long surplus
    cdef Py_ssize_t k
    for k in range(len(changes)):
        tensor = inputs[changes[k][0]]
        surplus = visible_version(tensor.storage.version) - <long long>versions[k]
        if surplus > 0:
            tensor.storage.version -= surplus
        if changes[k][1] == 0:
            tensor = shallow_copy(tensor)
            tensor.storage = borrow(tensor.storage)
            count_change(tensor)
            continue
        while visible_version(tensor.storage.version) < versions[k]:
            count_change(tensor)
    return 0


def versions_of(list tensors not None):
    """Return how often tensors were changed."""
    return [visible_version((<TensorImpl?>tensor).storage.version) for tensor in tensors]


def changes_since(list before not None, list tensors not None):
    """Return how often the first tensors were changed since they had these versions."""
    return [now - old for now, old in zip(versions_of(tensors[:len(before)]), before)]


def changes_by_counter(list inputs not None, list counts not None, tuple written not None):
    """Return the numbers of inputs that were changed, each with how often; one number for each counter.

    `counts`: how often the first inputs were changed. Where none is known, one that a program has written counts as one change. 0: it was
    written under another counter, as by `.data`.
    """
    cdef dict changes = {}
    for number, count in enumerate(counts):
        counter = id((<TensorImpl?>inputs[number]).storage)
        if count > changes.get(counter, (0, 0))[1]:
            changes[counter] = number, count
    for number in written:
        changes.setdefault(id((<TensorImpl?>inputs[number]).storage), (number, 0 if number < len(counts) else 1))
    return [*changes.values()]


def replayed(Replay replay not None, list inputs not None, tuple differentiable not None, object rerun):
    """Return the results of a program for inputs, recorded where `differentiable` has numbers of inputs."""
    cdef Py_ssize_t token = begin_event(replay.name, tuple(inputs), -1) if profiling_threads else 0
    cdef list state = [None] * replay.bases, results, versions = versions_to_be(inputs, replay.changes) if replay.changes else None
    cdef TensorImpl tensor
    try:
        results = replay.run_forward(inputs, state)
    finally:
        end_event(token)
    if replay.changes:
        count_changes(inputs, replay.changes, versions)
        replay.note_changes(results)
    if replay.released:
        attach_node(results, replay.released, inputs, differentiable, None)
    if replay.recorded:
        outputs = tuple([shallow_copy(<TensorImpl>results[number]) for number in replay.watched])
        saved = (replay, tuple(inputs), tuple([version_of((<TensorImpl>tensor).storage) for tensor in inputs]), outputs,
                 tuple([version_of((<TensorImpl>tensor).storage) for tensor in outputs]), state, rerun)
        attach_node(results, replay.recorded, inputs, differentiable, saved)
    return results


cdef int attach_node(list results, tuple numbers, list inputs, tuple differentiable, tuple saved) except -1:
    """Make results the outputs of a node with edges to inputs. Without saved values it is one that a backward has freed."""
    cdef CompiledNode node = CompiledNode.__new__(CompiledNode)
    cdef bint tracked = False
    cdef int k
    init_node(node, len(numbers))
    node.saved0 = saved
    node.flags |= NODE_STANDS_FOR_SEVERAL
    if saved is None:
        node.flags |= NODE_RELEASED
    for k, number in enumerate(differentiable):
        connect(node, k, inputs[number])
        tracked = tracked or (<TensorImpl>inputs[number]).flags & TENSOR_TRACKED != 0
    for k, number in enumerate(numbers):
        attach(results[number], node, k)
    if tracked:
        track_reachable(node)
    return 0


def recorded_results(list results not None, list inputs not None):
    """Return the results that require gradients and have memory of their own, which are the outputs of a node."""
    cdef set outside = {id(owner_of((<TensorImpl?>tensor).storage)) for tensor in inputs}
    return [tensor for tensor in results if needs_grad(<TensorImpl?>tensor) and id(owner_of((<TensorImpl>tensor).storage)) not in outside]


def graph_between(list results not None, inputs):
    """Return the nodes from results to the nodes of inputs, in the order of the edges, and the edges to nodes of inputs, of results, and to
    leaves.

    An edge counts twice where elements are added one by one to a gradient that has arrived at its end.
    """
    cdef set ends = {id(tensor.grad_fn) for tensor in inputs}
    cdef set met = set(ends), adding = set()
    cdef list waiting = [result.grad_fn for result in results][::-1], nodes = [], edges = []
    cdef set roots = {id(node) for node in waiting}
    cdef Node node, other
    cdef int k, number
    cdef bint adds
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in met:
            continue
        met.add(id(node))
        nodes.append(node)
        for k in range(node.edges - 1, -1, -1):
            other = edge(node, k, &number)
            waiting.append(other)
            if other is None:
                continue
            adds = k == 0 and node.flags & NODE_PLACES and ((<RuleOp>(<RuleNode>node).op).adds or id(node) in adding)
            if other.flags & NODE_ACCUMULATES or id(other) in ends:
                edges += [(other, number)] * (2 if adds else 1)
                continue
            if adds:
                adding.add(id(other))       # where it places its gradient, too, elements of the first one are added
            if id(other) in roots:
                edges.append((other, number))
    return nodes, edges


def are_released(list nodes not None):
    """Return True if a backward without `retain_graph` has freed values of some nodes."""
    cdef Node node
    for node in nodes:
        if node.flags & NODE_RELEASED:
            return True
    return False
