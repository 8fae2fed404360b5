# cython: cdivision=True
"""Replays of captured programs (see replay.pxd for the contract)."""
cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.capture.captured cimport ARENA, CONSTANTS, FIRST_INPUT, RESIDUALS, fill_arena
from cygrad._core.capture.layouts cimport DETACHED, SAME, VIEW_OF_INPUT, Layout, empty_in, filled, has_strides_of, suits, tensor_in
from cygrad._core.graph.history cimport geometry_of
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.noted_calls cimport tensors_among, tensors_of_node
from cygrad._core.graph.notes cimport CALL, Note
from cygrad._core.graph.rule_nodes cimport record_view
from cygrad._core.graph.tensor cimport CREATED, REQUIRES_GRAD, TensorImpl, address, byte_offset, offset_of, view_of
from cygrad._core.levels.observers cimport begin_event, end_event, is_profiling, profiling_threads
from cygrad._core.memory.storage cimport new_storage, owner_of, settle
from cygrad._core.operands.operands cimport copy_into
from cygrad._core.programs.pending cimport compute_memory, run_own_program
from cygrad._kernels.programs.kernel cimport MAX_TENSORS
from cygrad._kernels.programs.linked cimport MEMBER, run_all_linked, run_linked_between_signals

cdef enum:
    KEPT_ARENA = 1 << 20        # larger ones are given back after a call
    FEW_BASES = 32              # have their pointers on the stack
    STEPS_WITHOUT_GIL = 200
    BYTES_WITHOUT_GIL = 1 << 18


cdef char** pointers_in(char** few, int count) except NULL:
    """Return memory for pointers: the few on the stack, if they suffice."""
    cdef char** pointers = few if count <= FEW_BASES else <char**>malloc(count * sizeof(char*))
    if pointers is NULL:
        raise MemoryError()
    return pointers


cdef void free_pointers(char** pointers, char** few) noexcept:
    if pointers is not few:
        free(pointers)


class GaveUp(Exception):
    """A replay gave up, and has changed nothing."""


@cython.final
@cython.binding(False)
cdef class Replay(Captured):
    """A captured program that runs on other inputs."""

    cdef list run_forward(self, list inputs, list state):
        """Return the results for other inputs; `state` gets the storages of the bases."""
        cdef TensorImpl tensor
        cdef char* few[FEW_BASES]
        cdef char** pointers = pointers_in(few, self.bases)
        cdef int k
        try:
            if self.residual_bytes:
                state[RESIDUALS] = new_storage(self.residual_bytes)
                pointers[RESIDUALS] = (<Storage>state[RESIDUALS]).data
                fill_arena(pointers[RESIDUALS], self.residual_bytes)
            state[CONSTANTS], pointers[CONSTANTS] = self.constants, self.constants.data
            for k, tensor in enumerate(inputs):
                state[FIRST_INPUT + k], pointers[FIRST_INPUT + k] = tensor.storage, address(tensor)
            results = self.run(self.forward_part, inputs, state, pointers)
        finally:
            free_pointers(pointers, few)
        if self.runs_backward:          # which leaves nothing pending
            run_own_program()
        return results

    cdef bint takes(self, list gradients) noexcept:
        """Return True if the backward part is for gradients of these layouts."""
        cdef Py_ssize_t k
        for k in range(len(gradients)):
            if (gradients[k] is None) != (self.gradients[k] is None):
                return False
            if gradients[k] is not None and not has_strides_of(<Layout>self.gradients[k], <TensorImpl>gradients[k]):
                return False
        return True

    cpdef Replay program_for(self, list gradients):
        """Return this program or a further one, by its backward part; None: there is none for these layouts."""
        cdef Py_ssize_t k
        if self.takes(gradients):
            return self
        for k in range(len(self.others)):
            if self.others[k] is not None and (<Replay>self.others[k]).takes(gradients):
                return <Replay>self.others[k]
        return None

    cdef list run_backward(self, list inputs, list state, list gradients):
        """Return the gradients of the inputs for gradients of the results; `state` as the forward part left it: memory that no later step
        reads leaves it.
        """
        cdef TensorImpl tensor
        cdef char* few[FEW_BASES]
        cdef char** pointers = pointers_in(few, self.bases)
        cdef int k
        try:
            state += [None] * (self.bases - len(state))
            state[CONSTANTS] = self.constants
            for k in range(1, self.bases):
                if state[k] is not None:
                    pointers[k] = (<Storage>state[k]).data
            for base, tensor in zip(self.input_bases, inputs + gradients):
                pointers[<int>base] = address(tensor)
                state[<int>base] = tensor.storage
            return self.run(self.backward_part, inputs + gradients, state, pointers)
        finally:
            free_pointers(pointers, few)

    cdef list results_of(self, Part part, list inputs, list storages):
        cdef Layout layout
        cdef TensorImpl tensor, view
        cdef list results = []
        for layout in part.results:
            if layout is None:
                results.append(None)
            elif layout.kind == SAME:
                results.append(inputs[layout.base])
            elif layout.kind == VIEW_OF_INPUT or layout.kind == DETACHED:
                tensor = inputs[self.input_bases.index(layout.base)]
                view = tensor_in(layout, tensor.storage, byte_offset(tensor))
                if part is self.forward_part and layout.kind == VIEW_OF_INPUT:
                    view = view_of(tensor, offset_of(view) - offset_of(tensor), view.ndim, view.sizes, view.strides)
                    if layout.has_history:
                        record_view(tensor, view, geometry_of(tensor, view))
                    view.flags = view.flags & ~<unsigned>CREATED | layout.created
                results.append(view)
            else:
                tensor = empty_in(layout) if layout.base == CONSTANTS else tensor_in(layout, storages[layout.base], 0)
                tensor.storage.version = layout.version
                results.append(tensor)
        return results

    cdef int note_changes(self, list results) except -1:
        """Give views of inputs the version of their memory after the changes of the program, where the function has made them later."""
        cdef Layout layout
        cdef TensorImpl view
        for layout, view in zip(self.forward_part.results, results):
            if layout.kind == VIEW_OF_INPUT and layout.is_current:
                view.view_version = view.storage.version
        return 0

    cdef list run(self, Part part, list inputs, list storages, char** pointers):
        """Run a part and return its results. GaveUp, or the error of a call or a signal, with all memory as it was."""
        cdef Storage arena = part.arenas.pop() if part.arenas else new_storage(part.arena_bytes)
        cdef void* scratch = malloc(self.scratch_bytes) if self.scratch_bytes else NULL
        cdef Py_ssize_t k = part.first, stop
        cdef bint released = part.end - part.first >= STEPS_WITHOUT_GIL or part.arena_bytes >= BYTES_WITHOUT_GIL
        cdef list before = None
        if scratch is NULL and self.scratch_bytes:
            raise MemoryError()
        storages[ARENA], pointers[ARENA] = arena, arena.data
        fill_arena(arena.data, part.arena_bytes)
        try:
            for base in part.early:     # which steps meet in any order
                self.storage_of_base(base, storages, pointers)
            if part.restores:
                before = [((<TensorImpl>inputs[number]).storage.version,
                           (<const char*>pointers[<int>self.input_bases[number]] + <intptr_t>first)[:end - first])
                          for number, first, end in part.writes]
            for stop in part.stops:
                self.run_kernels(part, k, stop, pointers, scratch, released)
                self.run_stop(part, stop, part.deaths.get(stop, ()), storages, pointers, scratch)
                k = <Py_ssize_t>stop + 1
            self.run_kernels(part, k, part.end, pointers, scratch, released)
            return self.results_of(part, inputs, storages)
        except BaseException:
            if before is not None:
                for (number, first, end), (version, values) in zip(part.writes, before):
                    (<TensorImpl>inputs[number]).storage.version = version      # calls of Python have counted
                    memcpy(pointers[<int>self.input_bases[number]] + <intptr_t>first, <const char*>values, end - first)
            raise
        finally:
            free(scratch)
            if part.arena_bytes <= KEPT_ARENA:
                part.arenas.append(arena)

    cdef int run_kernels(self, Part part, Py_ssize_t first, Py_ssize_t end, char** pointers, void* scratch, bint released) except -1:
        """Run steps that are kernels, and look for signals between some of them."""
        cdef Py_ssize_t k = first
        if profiling_threads and is_profiling():
            return self.run_observed(first, end, pointers, scratch)
        while k < end:
            if released:
                with nogil:
                    k = run_linked_between_signals(self.steps, k, end, self.addresses, pointers, scratch)
            else:
                k = run_linked_between_signals(self.steps, k, end, self.addresses, pointers, scratch)
            if k < 0:
                raise GaveUp()
            if k <= part.interruptible:
                PyErr_CheckSignals()
        return 0

    cdef int run_observed(self, Py_ssize_t first, Py_ssize_t end, char** pointers, void* scratch) except -1:
        """Run steps as events of a profile, one by one."""
        cdef Py_ssize_t k, token
        for k in range(first, end):
            if self.steps[k].kind != MEMBER:
                token = begin_event(self.step_name(k), None, -1)
                try:
                    if not run_all_linked(self.steps, k, k + 1, self.addresses, pointers, scratch):
                        raise GaveUp()
                finally:
                    end_event(token)
        return 0

    cdef int run_stop(self, Part part, Py_ssize_t k, object dying, list storages, char** pointers, void* scratch) except -1:
        """Run a call, or a step that touches memory which pending programs may compute or read.

        `dying`: bases that no later step touches.
        """
        cdef Note* note = &self.notes.notes[k]
        if note.kind == CALL:
            self.run_call(self.calls[note.outcome], storages, pointers)
        elif note.traits.large is not NULL and settings.fuses and not (profiling_threads and is_profiling()):
            self.run_again(part, k, dying, storages, pointers, scratch)
        else:
            self.run_touching(part, k, storages, pointers, scratch)
        for base in dying:
            storages[base] = None
        return 0

    cdef int run_touching(self, Part part, Py_ssize_t k, list storages, char** pointers, void* scratch) except -1:
        """Run a kernel on memory that pending programs may compute, or read where it writes."""
        cdef Note* note = &self.notes.notes[k]
        cdef Storage storage
        cdef int j
        for j in range(note.count):
            if self.notes.slots[note.places[j].slot].shared:
                storage = owner_of(self.storage_of_base(self.places[k][0][j], storages, pointers))
                compute_memory(storage)
                if note.written >> j & 1:
                    settle(storage)
        return self.run_kernels(part, k, k + 1, pointers, scratch, True)

    cdef Storage storage_of_base(self, int base, list storages, char** pointers):
        """Return the memory of a base: made when it is first touched."""
        cdef Storage storage = storages[base]
        if storage is None:
            storage = new_storage(self.sizes[base - self.first_own])
            storages[base], pointers[base] = storage, storage.data
            fill_arena(storage.data, self.sizes[base - self.first_own])
        return storage

    cdef int run_again(self, Part part, Py_ssize_t k, object dying, list storages, char** pointers, void* scratch) except -1:
        """Run a step on tensors: its result may be pending, in new memory."""
        cdef Note* note = &self.notes.notes[k]
        cdef Storage storage
        cdef TensorImpl result
        cdef intptr_t starts[MAX_TENSORS]
        cdef list operands = []
        cdef int j, base
        for j in range(note.count):
            base = self.places[k][0][j]
            if note.traits.large.makes and j == note.count - 1:
                break
            storage = self.storage_of_base(base, storages, pointers)
            operands.append(storage)
            starts[j] = pointers[base] - storage.data + <intptr_t>self.places[k][1][j]
        storage = None
        for base in dying:      # before: a pending result without another reference is never written
            storages[base] = None
        result = note.traits.large.again(note.arguments, operands, starts)
        if not note.traits.large.makes:
            return 0
        if result is None:
            for j in range(len(operands)):
                storages[self.places[k][0][j]] = operands[j]
            return self.run_touching(part, k, storages, pointers, scratch)
        base = self.places[k][0][note.count - 1]
        storages[base], pointers[base] = result.storage, result.storage.data
        return 0

    cdef int run_call(self, Call call, list storages, char** pointers) except -1:
        """Call a function on tensors over the memory of this replay, and write its results there."""
        cdef Layout layout
        cdef TensorImpl tensor
        cdef Storage storage
        cdef list results, tensors = []
        cdef bint mode = grad_mode()[0]
        cdef Py_ssize_t token
        for k, layout in enumerate(call.layouts):
            storage = self.storage_of_base(layout.base, storages, pointers)
            tensor = tensor_in(layout, storage, pointers[layout.base] - storage.data)
            if call.saved and k < call.argument_count and call.needs_grad[k]:
                tensor.flags |= REQUIRES_GRAD
            tensors.append(tensor)
        token = begin_event(getattr(call.function, "__name__", "call"), None, -1) if profiling_threads else 0
        grad_mode()[0] = bool(call.saved)
        try:
            result = call.function(*filled(call.arguments, tensors), **filled(call.keywords, tensors))
        except MemoryError:
            raise
        except Exception:
            if self.notes.first_message < 0:
                raise GaveUp() from None        # the function raises it, with all that it changes before
            raise
        finally:
            grad_mode()[0] = mode
            end_event(token)
        results = [tensor for tensor in tensors_among(result, []) if not any([tensor is other for other in tensors])]
        if call.saved:
            saved = tensors_of_node(results)
            if len(saved) <= max(call.saved):
                raise GaveUp()
            results += [saved[k] for k in call.saved]
        if len(results) != len(call.layouts) - call.argument_count:
            raise GaveUp()
        for tensor, layout, target in zip(results, call.layouts[call.argument_count:], tensors[call.argument_count:]):
            if not suits(layout, tensor):
                raise GaveUp()
            copy_into(target, tensor)
        return 0
