"""State of one backward (see run.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from cygrad._core.graph.history cimport edge, lead_to_each_other
from cygrad._core.graph.node cimport NODE_ACCUMULATES, Node, leaf_of

cdef enum:
    NOT_AN_INPUT = -1       # the number of a root's output


cdef void prepare_run(Run* run, Space* space) noexcept:
    memset(run, 0, sizeof(Run))
    memset(space.table, 0, sizeof(space.table))
    run.states, run.table, run.heap = space.states, space.table, space.heap
    run.capacity = run.heap_capacity = SMALL
    run.mask = 2 * SMALL - 1


cdef void* enlarged(void* memory, Py_ssize_t capacity, size_t item_bytes) except NULL:
    """Return an array of twice the capacity with the same items; the old one is freed unless it is on the stack."""
    cdef void* larger = realloc(NULL if capacity == SMALL else memory, 2 * capacity * item_bytes)
    if larger is NULL:
        raise MemoryError()
    if capacity == SMALL:
        memcpy(larger, memory, capacity * item_bytes)
    return larger


cdef int grow(Run* run) except -1:
    cdef Py_ssize_t* table = <Py_ssize_t*>calloc(4 * run.capacity, sizeof(Py_ssize_t))
    cdef Py_ssize_t k
    cdef size_t slot
    if table is NULL:
        raise MemoryError()
    try:
        run.states = <State*>enlarged(run.states, run.capacity, sizeof(State))
    except MemoryError:
        free(table)
        raise
    if run.capacity > SMALL:
        free(run.table)
    run.table, run.mask, run.capacity = table, 4 * run.capacity - 1, 2 * run.capacity
    for k in range(run.count):
        slot = slot_of(run.mask, run.states[k].node)
        while table[slot]:
            slot = (slot + 1) & run.mask
        table[slot] = k + 1
    return 0


cdef Py_ssize_t state_of(Run* run, PyObject* node) except -1:
    """Return the index of a node's state, made if there is none."""
    cdef size_t slot
    cdef State* state
    cdef Py_ssize_t index = find_state(run, node)
    if index >= 0:
        return index
    if run.count == run.capacity:
        grow(run)
    state = &run.states[run.count]
    memset(state, 0, sizeof(State))
    state.node, state.outputs = node, (<Node>node).outputs
    state.priority = (<Node>node).sequence_nr
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


cdef void free_run(Run* run) noexcept:
    cdef Py_ssize_t k
    cdef int j
    for k in range(run.count):
        for j in range(run.states[k].outputs if run.states[k].grads is not NULL else 1):
            Py_XDECREF(grads_of(&run.states[k])[j])
        free(run.states[k].grads)
    Py_XDECREF(run.context)
    Py_XDECREF(run.gathering)
    if run.capacity > SMALL:
        free(run.states)
        free(run.table)
    if run.heap_capacity > SMALL:
        free(run.heap)


cdef inline bint is_before(Run* run, Py_ssize_t a, Py_ssize_t b) noexcept:
    """Return True if a node runs before another one; of nodes that were put behind the same one, the newest, and leaves (-1) at last."""
    if run.states[a].priority != run.states[b].priority:
        return run.states[a].priority > run.states[b].priority
    return (<Node>run.states[a].node).sequence_nr + 1 > (<Node>run.states[b].node).sequence_nr + 1


cdef int push_ready(Run* run, Py_ssize_t index) except -1:
    cdef Py_ssize_t k = run.ready, parent
    if run.ready == run.heap_capacity:
        run.heap = <Py_ssize_t*>enlarged(run.heap, run.heap_capacity, sizeof(Py_ssize_t))
        run.heap_capacity *= 2
    run.ready += 1
    while k > 0:
        parent = (k - 1) // 2
        if not is_before(run, index, run.heap[parent]):
            break
        run.heap[k] = run.heap[parent]
        k = parent
    run.heap[k] = index
    return 0


cdef int put_off(Run* run, Py_ssize_t index, uint64_t priority) except -1:
    run.states[index].deferred, run.states[index].priority = True, priority
    return push_ready(run, index)


cdef Py_ssize_t pop_ready(Run* run) noexcept:
    cdef Py_ssize_t first = run.heap[0], last, k = 0, child
    run.ready -= 1
    if run.ready == 0:
        return first
    last = run.heap[run.ready]
    while True:
        child = 2 * k + 1
        if child >= run.ready:
            break
        if child + 1 < run.ready and is_before(run, run.heap[child + 1], run.heap[child]):
            child += 1
        if not is_before(run, run.heap[child], last):
            break
        run.heap[k] = run.heap[child]
        k = child
    run.heap[k] = last
    return first


cdef int walk(Run* run, Py_ssize_t root) except -1:
    """Visit the nodes that a root reaches: count the edges into each, and mark which lead to inputs whose gradients are needed."""
    cdef Py_ssize_t first[SMALL]
    cdef Py_ssize_t* stack = first
    cdef Py_ssize_t depth = 1, capacity = SMALL, index, target_index
    cdef State* state
    cdef Node node, target
    cdef int output_nr
    stack[0] = root
    run.states[root].visited = True
    try:
        while depth:
            index = stack[depth - 1]
            state = &run.states[index]
            node = <Node>state.node
            if state.next_edge == node.edges:
                state.needed = state.needed or run.everything
                depth -= 1
                if depth and (state.needed or state.captured):
                    run.states[stack[depth - 1]].needed = True
                continue
            target = edge(node, state.next_edge, &output_nr)
            state.next_edge += 1
            if target is None:
                continue
            target_index = state_of(run, <PyObject*>target)
            state = &run.states[target_index]
            state.missing += 1
            if state.visited:
                if state.needed or state.captured:
                    run.states[index].needed = True
                continue
            state.visited = True
            if depth == capacity:
                stack = <Py_ssize_t*>enlarged(stack, capacity, sizeof(Py_ssize_t))
                capacity *= 2
            stack[depth] = target_index
            depth += 1
    finally:
        if capacity > SMALL:
            free(stack)
    return 0


cdef int note_reached(Run* run, dict reached) except -1:
    cdef Py_ssize_t k
    cdef Node node
    for k in range(run.count):
        node = <Node>run.states[k].node
        if run.states[k].reached and (run.states[k].needed or run.states[k].captured):
            number = id(leaf_of(node) if node.flags & NODE_ACCUMULATES else node)
            reached[number] = reached.get(number, False) or run.states[k].needed
    return 0


cdef int note_history(Notes notes, list roots, list targets, bint accumulates) except -1:
    """Inputs may have such nodes as long as none leads to another one, which a guard compares."""
    cdef list stack = [(node, NOT_AN_INPUT) for node in roots], old
    cdef set seen = set(), ends = {(id(node), number) for node, number in targets}
    cdef unsigned long long newest = notes.looks.newest_node
    cdef Node node, target
    cdef int k, output_nr
    while stack:
        node, number = stack.pop()
        if (id(node), number) in ends and (node.sequence_nr <= newest or len(ends) == 1):
            notes.ran_history_outside |= accumulates and node.sequence_nr <= newest
            continue        # its history counts where there are other inputs; of an old one the guard compares that
        if node.sequence_nr <= newest:
            notes.ran_history_outside = True
            return 0
        if id(node) in seen:
            continue
        seen.add(id(node))
        for k in range(node.edges):
            target = edge(node, k, &output_nr)
            if target is not None:
                stack.append((target, output_nr))
    old = [node for node, _ in targets if node is not None and (<Node>node).sequence_nr <= newest]
    if old and len(ends) > 1:
        has_leaves = any([node is not None and (<Node>node).flags & NODE_ACCUMULATES for node, _ in targets])
        notes.ran_history_outside |= has_leaves or lead_to_each_other(old)
        notes.independent_histories += old
    return 0
