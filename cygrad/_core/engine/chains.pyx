# cython: cdivision=True
"""Chains of elementwise nodes (see chains.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_CLEAR, Py_DECREF, Py_INCREF

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.compute.recording cimport ElementwiseNode
from cygrad._core.compute.rows cimport KERNEL, Row
from cygrad._core.engine.accumulation cimport add, collect
from cygrad._core.engine.run cimport Run, State, find_state, grads_of, push_ready
from cygrad._core.graph.history cimport edge
from cygrad._core.graph.modes cimport anomaly_mode, grad_mode
from cygrad._core.graph.node cimport NODE_ACCUMULATES, NODE_PACKED, NODE_RELEASED, Node, RESULT, leaf_of
from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl, address, empty_like, is_unique, settled_address
from cygrad._core.levels.observers cimport profiling_threads, special_tensors
from cygrad._core.operands.operands cimport fits_loop, is_one_number, same_shape
from cygrad._kernels.drivers.elementwise cimport cg_loops_of, takes_numbers
from cygrad._kernels.programs.planning cimport last_reader
from cygrad._kernels.programs.running cimport run_program
from cygrad._kernels.programs.steps cimport (MAX_SLOTS, MAX_STEPS, NONE, Program, Step, add_array, add_block, begin_map,
                                             begin_program, output_of)

cdef enum:
    MAX_NODES = 12          # a signal is answered between chains
    SLOTS = RESULT + 2      # that a partial needs at most


@cython.final
cdef class Chain:
    """A program, while the engine gathers its nodes; slot 0 is the gradient it starts from."""
    cdef Program program
    cdef int dtype
    cdef Py_ssize_t nodes[MAX_NODES]        # states
    cdef int node_count
    cdef bint gradient_is_unshared           # the gradient that the chain starts from has no other reference
    cdef dict wholes        # by slot: the tensor of an output that leaves
    cdef list outgoing      # (state, output number, slot) of gradients that leave the chain; NONE: added to one before
    cdef dict gathered      # by slot: the place of a gradient that is added to the one there
    cdef list skipped       # states behind an edge whose gradient is not needed
    cdef list alive         # the tensors that the steps read

    cdef bint add_node(self, Run* run, Py_ssize_t index, int slot) except -1:
        """Add a node and the nodes behind it; False where it does not fit, and nothing is added then."""
        cdef ElementwiseNode node
        cdef Node target
        cdef State* state
        cdef Row op
        cdef Py_ssize_t next
        cdef int k, output_nr, out
        node = <ElementwiseNode>run.states[index].node
        if not self.fits(node, self.program.slots[slot].number):
            return False
        op = <Row>node.op
        self.nodes[self.node_count] = index
        self.node_count += 1
        self.program.cost = max(self.program.cost, op.cost)
        for k in range(op.arity):
            target = edge(node, k, &output_nr)
            if target is None:
                continue
            next = find_state(run, <PyObject*>target)
            state = &run.states[next]
            if not (state.needed or state.captured):
                self.skipped.append(next)
                continue
            out = slot
            if op.partial_form[k] == KERNEL:
                out = self.add_step(node, op, k, slot)
            self.outgoing.append((next, output_nr, out))
        return True

    cdef bint fits(self, ElementwiseNode node, bint one_number) except -1:
        """Say whether a node's partials are loops over dense arrays of the chain's length and dtype; its gradient may be one number."""
        cdef Row op = <Row>node.op
        cdef TensorImpl saved
        cdef object value
        cdef int k, j, numbers
        if (node.hooks is not None or node.params is not None or node.flags & (NODE_RELEASED | NODE_PACKED)
                or node.dtype != self.dtype or op.masks or self.node_count == MAX_NODES
                or self.program.step_count + op.arity > MAX_STEPS or self.program.slot_count + op.arity * SLOTS > MAX_SLOTS):
            return False
        for k in range(op.arity):
            if (node.next0 if k == 0 else node.next1 if k == 1 else node.next2) is None:
                continue
            if node.input_dtypes[k] != self.dtype:
                return False
            if op.partial_form[k] != KERNEL:
                continue
            numbers = 1 if one_number else 0
            for j in range(RESULT + 1):
                if not op.partial_reads[k] >> j & 1:
                    continue
                value = node.saved_value(j)
                if value is None:
                    numbers += 1
                    continue
                saved = <TensorImpl>value
                if saved.count != self.program.total or not fits_loop(saved, self.dtype):
                    return False
            if not takes_numbers(op.partial_kernel[k], self.dtype, op.partial_kernel[k].inputs, numbers):
                return False
        return True

    cdef int add_step(self, ElementwiseNode node, Row op, int k, int slot) except -1:
        """Add the loop of a partial and return the slot of its output; RuntimeError if a tensor it reads was changed in place."""
        cdef Step* step = &self.program.steps[self.program.step_count]
        cdef TensorImpl saved
        cdef int j
        begin_map(step, op.partial_kernel[k], self.dtype, node.constants if op.params else NULL)
        step.inputs, step.slots[0] = 1, slot
        for j in range(RESULT + 1):
            if not op.partial_reads[k] >> j & 1:
                continue
            saved = node.unpack(j)
            if saved is None:
                step.slots[step.inputs] = add_array(&self.program, <char*>&node.scalars[j], self.dtype, True)
            else:
                self.alive.append(saved)
                self.alive.append(saved.storage)        # other threads may give a tensor other memory meanwhile
                step.slots[step.inputs] = add_array(&self.program, settled_address(saved), self.dtype, False)
            step.inputs += 1
        step.slots[step.inputs] = add_block(&self.program, self.dtype)
        self.program.step_count += 1
        return step.slots[step.inputs]

    cdef int follow(self, Run* run) except -1:
        """Add the nodes that would run next, as long as their gradient comes from the chain alone."""
        cdef Py_ssize_t next
        cdef State* state
        cdef int k = 0, slot
        while k < len(self.outgoing):
            next, _, slot = self.outgoing[k]
            state = &run.states[next]
            if self.depends_on_chain(state) and self.precedes(run, k, state) and self.add_node(run, next, slot):
                del self.outgoing[k]
                k = 0
            else:
                k += 1
        return 0

    cdef bint depends_on_chain(self, State* state):
        """Return True if a node is elementwise, its only gradient comes from the chain, and no other code needs that gradient."""
        if not state.needed or state.captured:
            return False
        if state.missing != 1 or state.outputs != 1 or state.single is not NULL:
            return False
        return isinstance(<object>state.node, ElementwiseNode)

    cdef bint precedes(self, Run* run, int k, State* state) except -1:
        """Say whether a node would run before all that is ready, and the others that the chain's gradients go to, leaves without hooks
        excepted: accumulators run at once."""
        cdef Py_ssize_t next
        cdef Node node
        cdef int j
        if run.ready != 0 and run.states[run.heap[0]].priority >= state.priority:
            return False
        for j in range(<int>len(self.outgoing)):
            next = self.outgoing[j][0]
            node = <Node>run.states[next].node
            if j == k or run.states[next].priority < state.priority:
                continue
            if not node.flags & NODE_ACCUMULATES or node.hooks is not None or leaf_of(node).extra is not None:
                return False
        return True

    cdef int add_sums(self, Run* run, TensorImpl g) except -1:
        """Add gradients with one target to its gradient so far, and to each other, as steps: in the order of the outgoing ones."""
        cdef dict sums = {}         # by place: the outgoing one that later ones are added to, NONE once one did not fit
        cdef PyObject* old
        cdef int k, slot, total
        for k in range(<int>len(self.outgoing)):
            next, number, slot = self.outgoing[k]
            before = sums.get((next, number))
            if before is None:
                sums[next, number] = k
                old = grads_of(&run.states[<Py_ssize_t>next])[<int>number]
                if old is NULL:
                    continue
                total = self.add_sum(self.slot_of_array(<TensorImpl>old, g), slot)
                if total != NONE:
                    self.outgoing[k] = next, number, total
                    self.gathered[total] = next, number
            elif before == NONE:
                continue
            else:
                total = self.add_sum(self.outgoing[before][2], slot)
                if total != NONE:
                    if self.outgoing[before][2] in self.gathered:
                        self.gathered[total] = self.gathered.pop(self.outgoing[before][2])
                    self.outgoing[before] = next, number, total
                    self.outgoing[k] = next, number, NONE
            if total == NONE:
                sums[next, number] = NONE
        return 0

    cdef int slot_of_array(self, TensorImpl old, TensorImpl g) except -2:
        """Return the slot of a gradient that was gathered before, NONE where it is not like the chain's."""
        if self.program.slot_count + 2 > MAX_SLOTS or not same_shape(old, g) or not fits_loop(old, self.dtype):
            return NONE
        return add_array(&self.program, address(old), self.dtype, False)

    cdef int add_sum(self, int a, int b) noexcept:
        """Add the loop of a sum and return the slot of its output, NONE where there is no room, or nothing but numbers."""
        cdef Step* step = &self.program.steps[self.program.step_count]
        if (a == NONE or self.program.step_count == MAX_STEPS or self.program.slot_count + 2 > MAX_SLOTS
                or self.program.slots[a].number and self.program.slots[b].number):
            return NONE
        begin_map(step, add.kernel, self.dtype, NULL)
        step.inputs = 2
        step.slots[0], step.slots[1], step.slots[2] = a, b, add_block(&self.program, self.dtype)
        self.program.step_count += 1
        return step.slots[2]


cdef bint run_chain(Run* run, Py_ssize_t index, bint keep_graph) except -1:
    """Compute a ready node and those that follow it; False where there is no gain, or hooks could see the difference."""
    cdef State* state = &run.states[index]
    cdef TensorImpl g
    cdef Chain chain
    cdef PyObject* part
    cdef PyObject** reference
    cdef Py_ssize_t next
    cdef int k, number, slot
    if (settings.mode == settings.EAGER or special_tensors() or profiling_threads or anomaly_mode or grad_mode()[0] or state.single is NULL
            or (<TensorImpl>state.single).count < settings.large or state.captured or not isinstance(<object>state.node, ElementwiseNode)):
        return False
    chain = Chain.__new__(Chain)
    chain.gradient_is_unshared = is_unique(state.single)
    g = <TensorImpl>state.single
    if cg_loops_of[g.dtype_nr] != g.dtype_nr:
        return False
    chain.dtype = g.dtype_nr
    begin_program(&chain.program, 1, &g.count)
    chain.wholes, chain.outgoing, chain.gathered, chain.skipped, chain.alive = {0: g}, [], {}, [], [g.storage]
    if not fits_loop(g, g.dtype_nr) and (g.flags & CONTIGUOUS or not is_one_number(g)):
        return False
    add_array(&chain.program, address(g), g.dtype_nr, not g.flags & CONTIGUOUS)
    if not chain.add_node(run, index, 0):
        return False
    chain.follow(run)
    chain.add_sums(run, g)
    if chain.program.step_count < 2:
        return False
    assign(run, chain, g)
    with nogil:
        run_program(&chain.program)
    for k in range(chain.node_count):
        state = &run.states[chain.nodes[k]]
        if k:
            state.missing = 0
        if not keep_graph:
            (<Node>state.node).release()
    for next in chain.skipped:
        run.states[next].missing -= 1
    for next, number, slot in chain.outgoing:
        if slot != NONE:
            part, reference = <PyObject*>chain.wholes[slot], &grads_of(&run.states[next])[number]
            Py_INCREF(<object>part)
            if slot in chain.gathered:
                Py_CLEAR(reference[0])
            collect(reference, part)
        run.states[next].missing -= 1
        if run.states[next].missing == 0:
            push_ready(run, next)
    state = &run.states[index]
    Py_DECREF(g)
    state.single = NULL
    return True


cdef int assign(Run* run, Chain chain, TensorImpl g) except -1:
    """Give whole arrays to the gradients that leave the chain: a gathered gradient without other references is added to in place, and
    the last of the others may take the memory of the gradient the chain starts from."""
    cdef set leaving = {slot for _, _, slot in chain.outgoing}
    cdef Program* program = &chain.program
    cdef PyObject* old
    cdef int k, slot, last = last_reader(&chain.program, 0, 0, chain.program.step_count)
    cdef bint gradient_is_unshared = chain.gradient_is_unshared and 0 not in leaving and not program.slots[0].number
    for k in range(program.step_count - 1, -1, -1):
        slot = output_of(&program.steps[k])
        if slot not in leaving:
            continue
        old = NULL
        if slot in chain.gathered:
            next, number = chain.gathered[slot]
            old = grads_of(&run.states[<Py_ssize_t>next])[<int>number]
        if old is not NULL and is_unique(old):
            chain.wholes[slot] = <TensorImpl>old
        elif gradient_is_unshared and k >= last:
            gradient_is_unshared = False
            chain.wholes[slot] = g
        else:
            chain.wholes[slot] = empty_like(g, chain.dtype)
        program.slots[slot].data = settled_address(<TensorImpl>chain.wholes[slot])
    return 0
