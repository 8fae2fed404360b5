# cython: cdivision=True
"""The loop of a captured step: `scan`, `fori_loop` and `while_loop` without Python between their steps.

The loop keeps the carried values before every so many steps, a block. Its backward begins with the last block: it runs the steps of the
block again, then, from the last one, the forward and the backward part of each. Where blocks are single steps that leave little for their
backward parts, it keeps that, too, and runs the backward parts alone.
"""
cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, intptr_t
from libc.string cimport memcpy

from cygrad._core.capture.compiled_node cimport arrived_gradients, hand_over
from cygrad._core.capture.layouts cimport Layout, suits
from cygrad._core.capture.loop_gradients cimport Sums, any_nan
from cygrad._core.capture.looped cimport BETWEEN_SIGNALS, CARRIED, MOST, Frame, LoopedStep, Rows, tensor_like
from cygrad._core.capture.captured cimport FIRST_INPUT, rounded
from cygrad._core.graph.history cimport attach, connect
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.node cimport NODE_STANDS_FOR_SEVERAL, Node, finish_node_type, init_node
from cygrad._core.graph.noted_calls cimport noted_call
from cygrad._core.graph.notes cimport is_noting
from cygrad._core.graph.saved cimport check_version
from cygrad._core.graph.tensor cimport TENSOR_TRACKED, TensorImpl, address, empty, value_address
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.memory.looks cimport note_look
from cygrad._core.memory.storage cimport version_of
from cygrad._core.operands.operands cimport copy_into, fits_loop
from cygrad._kernels.drivers.elementwise cimport CG_BOOL, CG_INT64, MAX_DIMS

from cygrad._core.engine.backward import gradients_so_far, replace_gradients

cdef enum:
    LEAST_ROOM = 4              # states: with less memory a block is run again for each of its steps
    FEWEST_STATES = 16          # that a loop keeps
    MOST_STATES = 1 << 12       # that a loop of unknown length keeps
    MOST_STATE_BYTES = 1 << 22
    FEW_BYTES = 1 << 18         # of states, which a backward may keep in any case
    UNTIL_THE_END = -1          # steps: as many as a decision lets run


def run_looped(LoopedStep looped not None, list inputs not None, Py_ssize_t count, Py_ssize_t row, Py_ssize_t step, Py_ssize_t states,
               object rerun):
    """Return the carried values after `count` steps, and the results of all, in the order of the rows; None if a decision comes out
    otherwise than in the capture.

    inputs: the carried values, the tensors whose rows are the slices, constants. row, step: of the first step, and 1 or -1.
    states: how many states may be stored; a block of steps is run again for each one that is not. rerun: returns gradients by the
    function itself.
    """
    cdef Loop loop = new_loop(looped)
    loop.count, loop.row, loop.step = count, row, step
    loop.room = count if states >= count else max(states, <Py_ssize_t>FEWEST_STATES) // 2
    loop.every = (count + loop.room - 1) // loop.room
    loop.keeps_residuals = loop.is_recorded and loop.every == 1 and looped.keeps_residuals(count)
    return run_recorded(loop, inputs, rerun)


def run_looped_while(LoopedStep looped not None, list inputs not None, object rerun):
    """Return the carried values after steps as long as the first decision of a step comes out as in the capture, and an empty list; None if
    another one comes out otherwise, or there is no such step. A step takes no slices, and has no results but carried values.
    """
    cdef Loop loop = new_loop(looped)
    cdef int k
    cdef size_t nbytes = sum([looped.values[k].nbytes for k in range(looped.carried) if looped.is_carried(k)])
    if looped.slices or looped.outputs or looped.first_decision < 0:
        raise ValueError("run_looped_while: a step with a decision, without slices and further results is needed")
    loop.count, loop.step, loop.room = UNTIL_THE_END, 1, MOST_STATES
    while loop.room > FEWEST_STATES and loop.room * nbytes > MOST_STATE_BYTES:
        loop.room //= 2
    return run_recorded(loop, inputs, rerun)


cdef Loop new_loop(LoopedStep looped):
    cdef Loop loop = Loop.__new__(Loop)
    loop.looped, loop.is_recorded = looped, len(looped.recorded) > 0
    return loop


cdef object run_recorded(Loop loop, list inputs, object rerun):
    """Return the carried values and the results of a loop, with their node; None if a decision comes out otherwise."""
    cdef LoopedStep looped = loop.looped
    cdef bint tracked = False
    cdef TensorImpl tensor
    cdef LoopNode node
    cdef int k
    outcome = noted_call(loop.scan_steps, tuple(inputs), {}, True)
    if outcome is None:
        return None
    last, stacked, history, count_and_block = outcome
    if not loop.is_recorded:
        return last, stacked
    node = LoopNode.__new__(LoopNode)
    init_node(node, <int>len(looped.recorded))
    node.flags |= NODE_STANDS_FOR_SEVERAL
    for k, number in enumerate(looped.differentiable):
        connect(node, k, inputs[number])
        tracked = tracked or (<TensorImpl>inputs[number]).flags & TENSOR_TRACKED != 0
    versions = tuple([version_of((<TensorImpl>tensor).storage) for tensor in inputs])
    node.saved0 = loop, tuple(inputs), versions, history, count_and_block, rerun
    for k, (kind, number, _) in enumerate(looped.recorded):
        attach(last[number] if kind == CARRIED else stacked[number], node, k)
    if tracked:
        track_reachable(node)
    return last, stacked


cdef int check_operands(LoopedStep looped, tuple inputs, Py_ssize_t count, Py_ssize_t first, Py_ssize_t last) except -1:
    """Refuse operands that the memory of a loop does not fit."""
    cdef TensorImpl tensor
    cdef int k
    if not looped.fits or len(inputs) != looped.replay.inputs or count < 1 and count != UNTIL_THE_END:
        raise ValueError("run_looped: a step that fits, its inputs and at least one step are needed")
    for k in range(len(inputs)):
        tensor = <TensorImpl?>inputs[k]
        if k < looped.carried and not suits(looped.layouts[k], tensor):
            raise ValueError(f"run_looped: carried value {k} is not like the result of a step")
        if looped.carried <= k < looped.carried + looped.slices and (not tensor.ndim or min(first, last) < 0
                                                                     or max(first, last) >= tensor.sizes[0]):
            raise ValueError(f"run_looped: input {k} has no rows {first} to {last}")
    return 0


# ----- Steps -----
@cython.final
@cython.binding(False)
cdef class Loop:
    """A loop, forward and backward: functions of tensors, which are calls of a program if a function with the loop is captured.

    They return None where a decision comes out otherwise than in the capture.
    """
    cdef LoopedStep looped
    cdef Py_ssize_t count, row, step    # steps; the row of the first one, and 1 or -1
    cdef Py_ssize_t every, room         # the steps of a block, and states that a backward may keep beside
    cdef bint is_recorded, keeps_residuals

    cdef size_t state_room(self, Frame frame) noexcept:
        """Return the bytes of the states that are kept: with residuals, of the last one, too, in whole lines."""
        return rounded(frame.state_bytes * (self.room + 1)) if self.keeps_residuals else frame.state_bytes * self.room

    def scan_steps(self, *inputs):
        """Return the carried values, the results of all steps, and, if it is recorded, the carried values before each block, and of a loop
        of unknown length how many steps there were, and the steps of a block.
        """
        cdef LoopedStep looped = self.looped
        cdef Py_ssize_t last_row = self.row + (self.count - 1) * self.step
        cdef list stacked = [], last = []
        cdef Rows rows[MOST]
        cdef intptr_t sizes[MAX_DIMS + 1]
        cdef TensorImpl tensor, history = None, count_and_block = None
        cdef Layout layout
        cdef Frame frame
        cdef char* states
        cdef char* residuals = NULL
        cdef int64_t counts[2]
        cdef int k, d
        note_look("it is a loop")
        check_operands(looped, inputs, self.count, self.row, last_row)
        frame = Frame(looped, list(inputs))
        if self.is_recorded:
            sizes[0] = <intptr_t>(self.state_room(frame) + (frame.residual_bytes * self.count if self.keeps_residuals else 0))
            sizes[0] = max(sizes[0], <intptr_t>1)
            history = empty(CG_BOOL, 1, sizes)
        for k, layout in enumerate(looped.result_layouts):
            sizes[0] = self.count
            for d in range(layout.ndim):
                sizes[d + 1] = layout.dims[d]
            tensor = empty(layout.dtype, layout.ndim + 1, sizes)
            stacked.append(tensor)
            rows[k].stride = <intptr_t>looped.results[k].nbytes
            rows[k].data = address(tensor) - min(self.row, last_row) * rows[k].stride
        for k in range(looped.carried):
            if looped.is_carried(k):
                memcpy(frame.pointers[FIRST_INPUT + k], value_address(<TensorImpl>inputs[k]), looped.values[k].nbytes)
        states = NULL if history is None else address(history)
        if self.keeps_residuals:
            residuals = states + self.state_room(frame)
        if self.count == UNTIL_THE_END:
            counts[1] = 1
            counts[0] = frame.run_while(self.room, &counts[1], states)
            if counts[0] <= 0:
                return None
            sizes[0] = 2
            count_and_block = empty(CG_INT64, 1, sizes)
            memcpy(address(count_and_block), counts, sizeof(counts))
        elif not frame.run_steps(self.count, self.row, self.step, self.every, states, rows, residuals):
            return None
        if self.keeps_residuals:
            frame.copy_state(states + self.count * frame.state_bytes)
        for k in range(looped.carried):
            if not looped.is_carried(k):
                last.append(inputs[k])
                continue
            tensor = tensor_like(looped.layouts[k])
            memcpy(address(tensor), frame.pointers[FIRST_INPUT + k], looped.values[k].nbytes)
            last.append(tensor)
        return last, stacked, history, count_and_block

    def reverse_steps(self, inputs, TensorImpl history, TensorImpl count_and_block, gradients, sums, reached):
        """Return the gradients of the differentiable inputs from gradients of the recorded results.

        sums: that have arrived for `summed_edges`, or None. reached: which inputs have gradients; None: all. None where NaN may come of
        zeros in place of gradients that have not arrived.
        """
        note_look("it is a loop")
        cdef Frame frame = Frame(self.looped, list(inputs))
        cdef list weights = [None if each is None else row_major_gradient(each) for each in gradients + sums]      # Sums reads their memory
        cdef Py_ssize_t count = self.count, every = self.every, room
        cdef Sums totals
        cdef char* states = value_address(history)
        cdef char* spare
        cdef char* residuals
        if count_and_block is not None:
            count, every = (<int64_t*>value_address(count_and_block))[0], (<int64_t*>value_address(count_and_block))[1]
        totals = Sums(self.looped, frame, list(inputs), weights[:len(gradients)], weights[len(gradients):], self.row, self.step, count)
        room = max(self.room, min(every, <Py_ssize_t>(FEW_BYTES // max(frame.state_bytes, <size_t>1))))
        spare = NULL if every == 1 else frame.take(frame.state_bytes * room)
        residuals = states + self.state_room(frame) if self.keeps_residuals else NULL
        if not (self.reverse_each(frame, totals, 0, count, states, residuals) if every == 1 else
                self.reverse_blocks(frame, totals, 0, count, every, states, spare, room)):
            return None
        computed = totals.results()
        if reached is None:
            return computed
        computed = [each if is_reached else None for each, is_reached in zip(computed, reached)]
        return None if any_nan(computed) else computed

    cdef bint reverse_blocks(self, Frame frame, Sums sums, Py_ssize_t first, Py_ssize_t count, Py_ssize_t every, char* states, char* spare,
                             Py_ssize_t room) except -1:
        """Reverse steps from the states before each block; False if a decision comes out otherwise. `spare` has room for more states."""
        cdef Py_ssize_t block
        for block in range((count - 1) // every, -1, -1):
            if not self.reverse(frame, sums, first + block * every, min(every, count - block * every), states + block * frame.state_bytes,
                                spare, room):
                return False
        return True

    cdef bint reverse(self, Frame frame, Sums sums, Py_ssize_t first, Py_ssize_t count, char* state, char* spare,
                      Py_ssize_t room) except -1:
        """Reverse steps from the state before the first one."""
        cdef Py_ssize_t blocks = count, every = 1, row = self.row + first * self.step
        if room < LEAST_ROOM and count > room:      # from the first state each time
            for k in range(count - 1, -1, -1):
                frame.set_state(state)
                if not frame.run_steps(k, row, self.step, 1, NULL, NULL, NULL):
                    return False
                frame.copy_state(spare)
                if not self.reverse_each(frame, sums, first + k, 1, spare, NULL):
                    return False
            return True
        if count > room:
            blocks = room // 2
            every = (count + blocks - 1) // blocks
            blocks = (count + every - 1) // every
        frame.set_state(state)
        if not frame.run_steps((blocks - 1) * every, row, self.step, every, spare, NULL, NULL):
            return False
        frame.copy_state(spare + (blocks - 1) * frame.state_bytes)
        if every == 1:
            return self.reverse_each(frame, sums, first, count, spare, NULL)
        return self.reverse_blocks(frame, sums, first, count, every, spare, spare + blocks * frame.state_bytes, room - blocks)

    cdef bint reverse_each(self, Frame frame, Sums sums, Py_ssize_t first, Py_ssize_t count, char* states, char* residuals) except -1:
        """Reverse steps from the states before each, and from the residuals of each, unless they are NULL."""
        cdef Py_ssize_t k = count - 1, row = self.row + (first + k) * self.step
        cdef bint runs = True
        while k >= 0:
            with nogil:
                while k >= 0:
                    if residuals is NULL:
                        frame.set_state(states + k * frame.state_bytes)
                    else:
                        frame.set_step(row, states + k * frame.state_bytes, residuals + k * frame.residual_bytes)
                    sums.set_weights(row)
                    sums.begin_sums(row)
                    runs = (residuals is not NULL or frame.run_forward(row)) and frame.run_backward()
                    if not runs:
                        break
                    sums.add_step(row)
                    row -= self.step
                    k -= 1
                    if k % BETWEEN_SIGNALS == 0:
                        break
            if not runs:
                return False
            PyErr_CheckSignals()
        return True


cdef class LoopNode(Node):
    """A loop. `saved0` is a tuple: (Loop, inputs, their versions, the carried values before each block, counts of `scan_steps`, rerun)."""
    cdef str node_name(self):
        return "ScanBackward"

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        cdef Loop loop
        cdef TensorImpl tensor
        cdef list gradients, sums, computed = None
        cdef tuple edges
        cdef int k
        cdef bint whole
        gradients = arrived_gradients(self, grads, &whole)
        if gradients is None:
            return 0
        loop, inputs, versions, history, count_and_block, rerun = self.saved0
        whole, edges = whole and not rerun.sees_tangents(), loop.looped.summed_edges
        for k, (tensor, version) in enumerate(zip(inputs, versions)):
            # The loop has copies of carried values.
            if version_of(tensor.storage) != version and not (loop.looped.is_carried(k) and whole):
                check_version(tensor, version, tensor.node, self)
        if whole:
            sums = [None] * len(edges) if rerun.forms else gradients_so_far(self, edges, inputs)
            reached = None
            if any([each is None for each in gradients]):
                reached = rerun.reached(steps_of(loop, count_and_block), gradients)
            computed = noted_call(loop.reverse_steps, (list(inputs), history, count_and_block, gradients, sums, reached), {}, True)
            if computed is not None:
                sums = [total if computed[k] is not None else None for (k, _), total in zip(edges, sums)]
                replace_gradients(self, edges, sums)
        if computed is None:
            computed = rerun(steps_of(loop, count_and_block), gradients, bool(grad_mode()[0]))
        elif rerun.forms:
            computed = rerun.delivered(computed)
        return hand_over(self, computed, results)


finish_node_type(LoopNode)


cdef Py_ssize_t steps_of(Loop loop, TensorImpl count_and_block):
    """Return how many steps a loop has taken; UNTIL_THE_END where no number is known that holds for a replay, too."""
    if count_and_block is None or is_noting():
        return loop.count
    return (<int64_t*>value_address(count_and_block))[0]


cdef TensorImpl row_major_gradient(TensorImpl gradient):
    """Return a gradient row-major; a plain copy keeps dense strides."""
    cdef TensorImpl copy
    if fits_loop(gradient, gradient.dtype_nr):
        return gradient
    copy = empty(gradient.dtype_nr, gradient.ndim, gradient.sizes)
    copy_into(copy, gradient)
    return copy
