# cython: cdivision=True
"""The program of a looped step, and the memory of a loop (see looped.pxd for the contract)."""
cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from cygrad._core.capture.layouts cimport MADE, SAME, Layout, suits
from cygrad._core.capture.captured cimport ARENA, CONSTANTS, FIRST_INPUT, RESIDUALS, Part, fill_arena
from cygrad._core.capture.replay cimport Replay
from cygrad._core.compute.dispatch cimport Op
from cygrad._core.graph.notes cimport DECISION
from cygrad._core.graph.tensor cimport TensorImpl, empty, value_address
from cygrad._core.memory.storage cimport Storage, new_storage
from cygrad._kernels.drivers.elementwise cimport cg_itemsize
from cygrad._kernels.drivers.traversal cimport PADDING
from cygrad._kernels.programs.linked cimport run_all_linked

from cygrad._core.compute.dispatch import ops

cdef enum:
    MOST_RESIDUAL_BYTES = 1 << 28       # that a loop keeps,
    RESIDUAL_BYTES_PER_KERNEL = 64      # of a step: more of them are sooner computed again

cdef Op add = ops["add"]


cdef bint is_row_major(Layout layout) noexcept:
    cdef intptr_t count = 1
    cdef int d
    if layout.ndim > 8:
        return False
    for d in range(layout.ndim - 1, -1, -1):
        if layout.dims[d] != 1 and layout.dims[8 + d] != count:
            return False
        count *= layout.dims[d]
    return count > 0


cdef size_t layout_bytes(Layout layout) noexcept:
    cdef size_t nbytes = cg_itemsize[layout.dtype]
    cdef int d
    for d in range(layout.ndim):
        nbytes *= layout.dims[d]
    return nbytes


cdef TensorImpl tensor_like(Layout layout):
    """Return a new row-major tensor of a layout's dtype and sizes."""
    return empty(layout.dtype, layout.ndim, layout.dims)


cdef Run run_of(Replay replay, Part part) noexcept:
    return Run(replay.steps, replay.addresses, replay.constants.data, part.first, part.end)


@cython.final
@cython.binding(False)
cdef class LoopedStep:
    """The program of a step, from which loops are run.

    `carry`, `outputs`: the numbers of the results that are carried on, and of the others. The inputs of the program are `carry`, `slices`,
    then constants; `differentiable` are the numbers of those that require gradients.
    """
    def __init__(self, Replay replay not None, list carry not None, int slices, list outputs not None, tuple differentiable not None):
        self.replay, self.reverse, self.sums = replay, replay, ()
        self.carried, self.slices, self.outputs = <int>len(carry), slices, <int>len(outputs)
        self.differentiable = differentiable
        if not all([0 <= number < len(replay.forward_part.results) for number in carry + outputs]):
            raise ValueError("LoopedStep: there are no such results")
        self.layouts = [replay.forward_part.results[number] for number in carry]
        self.result_layouts = [replay.forward_part.results[number] for number in outputs]
        weights = {number: place for place, number in enumerate(replay.recorded)}
        self.recorded = [(CARRIED, k, weights[number]) for k, number in enumerate(carry) if number in weights]
        for k, number in enumerate(outputs):        # in the order of y: the engine adds the gradients of the last stack first
            layout = self.result_layouts[k]
            if number in weights:
                self.recorded.append((STACKED, k, weights[number]))
            elif (<Layout>layout).kind == SAME and (<Layout>layout).base in differentiable:
                self.recorded.append((PASSED, k, (<Layout>layout).base))
        self.fits = self.can_loop()
        self.is_reversed_alone = not self.reads_results()
        self.find_summed_edges()
        decisions = [k for k in range(replay.forward_part.first, replay.forward_part.end) if replay.notes.notes[k].kind == DECISION]
        self.first_decision = decisions[0] if decisions else -1

    @property
    def recorded_results(self):
        """The results that require gradients, in the order of the node's outputs, the carry first: whether one is carried, its number."""
        return [(kind == CARRIED, number) for kind, number, _ in self.recorded]

    @property
    def stays(self):
        """Of each carried value, whether each step returns it as it is."""
        return [self.values[k].stays for k in range(self.carried)]

    @property
    def constants(self):
        """The number of inputs that are the same in each step, besides carried ones."""
        return self.replay.inputs - self.carried - self.slices

    @property
    def nbytes(self):
        """The memory of a step, but for inputs and constants."""
        cdef Replay replay = self.replay
        return max(replay.forward_part.arena_bytes, replay.backward_part.arena_bytes) + replay.residual_bytes + sum(replay.sizes)

    def takes(self, list carried not None):
        """Return True if values are like the results that are carried on: with another outcome of a decision, these may be others."""
        return all([suits(layout, <TensorImpl?>tensor) for layout, tensor in zip(self.layouts, carried, strict=True)])

    def gradients_with_sums(self, list inputs not None):
        """Return tensors like the gradients that a backward part reads which adds to sums: of the results, then for each input that is read
        often the sum. Slices have none: no other step reads them.
        """
        cdef list sums = [None if self.is_slice(number) else inputs[number] for _, number in self.replay.read_often]
        return [tensor_like(layout) for layout in self.replay.gradients[:len(self.replay.recorded)]] + [
            None if tensor is None else empty((<TensorImpl?>tensor).dtype_nr, (<TensorImpl>tensor).ndim, (<TensorImpl>tensor).sizes)
            for tensor in sums]

    def reverse_by(self, Replay reverse not None):
        """Take the backward part from another program, which adds the gradients of some inputs to sums, if a loop can run it."""
        cdef list sums = reverse.gradients[len(self.replay.recorded):]
        if reverse.inputs < self.replay.inputs or len(sums) != len(self.replay.read_often):
            raise ValueError("LoopedStep: the program has other inputs and results")
        if self.can_reverse(reverse):
            self.reverse = reverse
            self.sums = tuple([number for (_, number), layout in zip(self.replay.read_often, sums) if layout is not None])
            self.is_reversed_alone = not self.reads_results()
            self.find_summed_edges()

    cdef int find_summed_edges(self) except -1:
        cdef set passed = {number for kind, _, number in self.recorded if kind == PASSED}
        self.summed_edges = tuple([(k, number) for k, number in enumerate(self.differentiable) if not self.is_slice(number)
                                   and (number in self.sums or number in passed or not self.is_carried(number))])
        return 0

    cdef bint reads_results(self) except -1:
        """Return True if the backward part reads results of the step that are not carried."""
        cdef set carried = {(<Layout>layout).base for layout in self.layouts}
        return any([(<Layout>layout).kind == MADE and (<Layout>layout).base not in carried
                    and (<Layout>layout).base in self.reverse.reads_back for layout in self.result_layouts])

    cdef bint keeps_residuals(self, Py_ssize_t count) noexcept:
        """Return True if a loop of so many steps keeps the values that the backward parts read, and runs no forward part again."""
        cdef Part part = self.replay.forward_part
        cdef size_t nbytes = self.replay.residual_bytes
        return (self.is_reversed_alone and nbytes <= <size_t>(RESIDUAL_BYTES_PER_KERNEL * (part.end - part.first))
                and nbytes * <size_t>count <= MOST_RESIDUAL_BYTES)

    cdef bint can_reverse(self, Replay replay):
        """Return True if the backward part of a program has kernels alone."""
        cdef Layout layout
        for layout in replay.backward_part.results:
            if layout is not None and (layout.ndim > 8 or add.kernel.loops[layout.dtype] is NULL):
                return False
        return not (replay.calls or replay.backward_part.stops)

    cdef bint can_loop(self):
        """Return True if the program has kernels alone, and leads from carried values in memory of their own to others like them."""
        cdef Replay replay = self.replay
        cdef Layout layout
        cdef int k
        cdef set bases = set()
        if max(self.carried, self.slices, self.outputs, 1) > MOST or len(self.differentiable) > 3 * MOST:
            return False
        if replay.forward_part.stops or replay.written or not self.can_reverse(replay):
            return False
        if not all([is_row_major(<Layout>layout) for layout in self.layouts + self.result_layouts]):
            return False
        for k, layout in enumerate(self.layouts):
            self.values[k].base, self.values[k].nbytes = layout.base, layout_bytes(layout)
            self.values[k].stays = layout.kind == SAME and layout.base == k
            if self.values[k].stays:
                continue
            if (layout.kind != MADE or layout.base < replay.first_own or layout.base in bases or layout.offset
                    or replay.sizes[layout.base - replay.first_own] != self.values[k].nbytes):
                return False
            bases.add(layout.base)
        for k, layout in enumerate(self.result_layouts):
            self.results[k].base, self.results[k].offset, self.results[k].nbytes = layout.base, layout.offset, layout_bytes(layout)
            if layout.kind == SAME and self.is_carried(layout.base):
                self.results[k].base += FIRST_INPUT
            elif layout.kind != MADE or layout.base < replay.first_own:
                return False
        return ([number for number in self.differentiable if self.is_carried(number)]
                == [k for kind, k, _ in self.recorded if kind == CARRIED])

    cdef bint is_carried(self, int number) noexcept:
        """Return True if an input is another value in each step."""
        return number < self.carried and not self.values[number].stays

    cdef bint is_slice(self, int number) noexcept:
        return self.carried <= number < self.carried + self.slices


@cython.final
cdef class Frame:
    """The memory in which the steps of a loop run: a pointer for each base of the program."""
    def __cinit__(self, LoopedStep step, list inputs):
        cdef Replay replay = step.replay, reverse = step.reverse
        cdef TensorImpl tensor
        cdef int k, base
        self.forward, self.backward = run_of(replay, replay.forward_part), run_of(reverse, reverse.backward_part)
        self.carried, self.slice_count, self.output_count = step.carried, step.slices, step.outputs
        self.first_decision = step.first_decision
        self.values, self.outputs, self.storages = step.values, step.results, []
        self.pointers = <char**>calloc(max(replay.bases, reverse.bases), sizeof(char*))
        self.scratch = malloc(max(replay.scratch_bytes, reverse.scratch_bytes, <size_t>1))
        if self.pointers is NULL or self.scratch is NULL:
            raise MemoryError()
        self.pointers[ARENA] = self.take(max(replay.forward_part.arena_bytes, reverse.backward_part.arena_bytes))
        self.pointers[RESIDUALS] = self.take(replay.residual_bytes)
        self.residual_bytes = replay.residual_bytes
        for program in {replay, reverse}:
            for base in range((<Replay>program).first_own, (<Replay>program).bases):
                self.pointers[base] = self.take((<Replay>program).sizes[base - (<Replay>program).first_own])
        for k in range(self.carried):
            if self.values[k].stays:
                self.pointers[FIRST_INPUT + k] = value_address(<TensorImpl>inputs[k])
                continue
            self.pointers[FIRST_INPUT + k] = self.take(self.values[k].nbytes)
            self.state_bytes += self.values[k].nbytes
        for k in range(self.slice_count):
            tensor = inputs[self.carried + k]
            self.slices[k].data = value_address(tensor)
            self.slices[k].stride = tensor.strides[0] * <intptr_t>cg_itemsize[tensor.dtype_nr]
        for k in range(self.carried + self.slice_count, replay.inputs):
            self.pointers[FIRST_INPUT + k] = value_address(<TensorImpl>inputs[k])

    def __dealloc__(self):
        free(self.pointers)
        free(self.scratch)

    cdef char* take(self, size_t nbytes) except NULL:
        """Return memory, with room behind it for whole vectors: zeros, as vector mathematics is slow on large numbers there, too."""
        cdef Storage storage = new_storage(nbytes + PADDING)
        memset(storage.data, 0, nbytes + PADDING)
        fill_arena(storage.data, nbytes)
        self.storages.append(storage)
        return storage.data

    cdef void copy_state(self, char* target) noexcept nogil:
        cdef int k
        for k in range(self.carried):
            if not self.values[k].stays:
                memcpy(target, self.pointers[FIRST_INPUT + k], self.values[k].nbytes)
                target += self.values[k].nbytes

    cdef void set_state(self, const char* source) noexcept nogil:
        cdef int k
        for k in range(self.carried):
            if not self.values[k].stays:
                memcpy(self.pointers[FIRST_INPUT + k], source, self.values[k].nbytes)
                source += self.values[k].nbytes

    cdef void set_row(self, Py_ssize_t row) noexcept nogil:
        cdef int k
        for k in range(self.slice_count):
            self.pointers[FIRST_INPUT + self.carried + k] = self.slices[k].data + row * self.slices[k].stride

    cdef void set_step(self, Py_ssize_t row, char* states, char* residuals) noexcept nogil:
        """Have the backward part read a step: its slices, the carried values before and behind it, its residuals."""
        cdef int k
        self.set_row(row)
        self.pointers[RESIDUALS] = residuals
        for k in range(self.carried):
            if not self.values[k].stays:
                self.pointers[FIRST_INPUT + k], self.pointers[self.values[k].base] = states, states + self.state_bytes
                states += self.values[k].nbytes

    cdef bint run_forward(self, Py_ssize_t row) noexcept nogil:
        """Run the forward part on the slices of a row; False if a decision comes out otherwise."""
        self.set_row(row)
        return self.run(&self.forward, self.forward.first, self.forward.end)

    cdef bint run_backward(self) noexcept nogil:
        return self.run(&self.backward, self.backward.first, self.backward.end)

    cdef bint run(self, const Run* part, Py_ssize_t first, Py_ssize_t end) noexcept nogil:
        self.pointers[CONSTANTS] = part.constants
        return run_all_linked(part.steps, first, end, part.addresses, self.pointers, self.scratch)

    cdef void hand_on(self) noexcept nogil:
        """Make the carried results of a step the carried values of the next one."""
        cdef char* value
        cdef int k
        for k in range(self.carried):
            if not self.values[k].stays:
                value = self.pointers[FIRST_INPUT + k]
                self.pointers[FIRST_INPUT + k] = self.pointers[self.values[k].base]
                self.pointers[self.values[k].base] = value

    cdef Py_ssize_t run_while(self, Py_ssize_t room, int64_t* every, char* states) except? -2:
        """Run steps as long as the first decision comes out as in the capture, and return how many; -1 if another one comes out otherwise.
        `states` gets the carried values before each block; where there are `room` of them, every other one is left, for blocks of twice the
        steps.
        """
        cdef Py_ssize_t k = 0
        cdef bint runs = True
        while runs:
            with nogil:
                while runs:
                    if states is not NULL and k % every[0] == 0:
                        if k // every[0] == room:
                            self.drop_every_other(states, room)
                            every[0] *= 2
                        self.copy_state(states + k // every[0] * self.state_bytes)
                    runs = self.run_forward(0)
                    if runs:
                        self.hand_on()
                        k += 1
                        if k % BETWEEN_SIGNALS == 0:
                            break
            PyErr_CheckSignals()
        return k if self.fails_first_decision() else -1

    cdef void drop_every_other(self, char* states, Py_ssize_t count) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(1, count // 2):
            memcpy(states + k * self.state_bytes, states + 2 * k * self.state_bytes, self.state_bytes)

    cdef bint fails_first_decision(self) noexcept nogil:
        """Return True if a step, which did not come to its end, ended at its first decision."""
        cdef Py_ssize_t decision = self.first_decision
        return self.run(&self.forward, self.forward.first, decision) and not self.run(&self.forward, decision, decision + 1)

    cdef bint run_steps(self, Py_ssize_t count, Py_ssize_t row, Py_ssize_t step, Py_ssize_t every, char* states, Rows* rows,
                        char* residuals) except -1:
        """Run steps; `states` gets the carried values before each block, `rows` the results, `residuals` the values for backward parts.

        False if a decision comes out otherwise.
        """
        cdef Py_ssize_t k = 0, stop
        cdef int j
        while k < count:
            stop = min(k + BETWEEN_SIGNALS, count)
            with nogil:
                while k < stop:
                    if states is not NULL and k % every == 0:
                        self.copy_state(states + k // every * self.state_bytes)
                    if residuals is not NULL:
                        self.pointers[RESIDUALS] = residuals + k * self.residual_bytes
                    if not self.run_forward(row):
                        break
                    if rows is not NULL:
                        for j in range(self.output_count):
                            memcpy(rows[j].data + row * rows[j].stride, self.pointers[self.outputs[j].base] + self.outputs[j].offset,
                                   self.outputs[j].nbytes)
                    self.hand_on()
                    k += 1
                    row += step
            if k < stop:
                return False
            PyErr_CheckSignals()
        return True
