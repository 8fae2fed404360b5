# cython: cdivision=True
"""Captured programs (see replay.pxd for the contract)."""
cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.limits cimport INT_MAX
from libc.stdint cimport intptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.capture.layouts cimport (DETACHED, MADE, SAME, VIEW_OF_INPUT, Layout, filled, layout_at, suits, tensor_in,
                                           with_holes)
from cygrad._core.graph.launches cimport again_function
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.notes cimport (CALL, CONSTANT, DECISION, FRESH, LAUNCH, OUTSIDE, Call, Note, Notes, Slot, tensors_among,
                                       tensors_of_node)
from cygrad._core.graph.tensor cimport REQUIRES_GRAD, TensorImpl, address, byte_offset, needs_grad
from cygrad._core.memory.sizes cimport bytes_between
from cygrad._core.memory.storage cimport Storage, new_storage, owner_of, settle, settle_value
from cygrad._core.operands.operands cimport copy_into, copy_of
from cygrad._kernels.drivers.elementwise cimport cg_itemsize
from cygrad._kernels.programs.kernel cimport MAX_TENSORS
from cygrad._kernels.programs.linked cimport (KERNEL, LOOP, OUTCOME, PYTHON, STEPS_BETWEEN_SIGNALS, Address, Kernel, LinkedStep,
                                              run_linked, run_loop)

from cygrad._core.operands.strided import as_strided

cdef enum:
    LINE = 64                   # bytes of a cache line; so many may be read and written behind each slot
    LEAST_ARENA = 4096          # so that it begins at a cache line
    KEPT_ARENA = 1 << 20        # larger ones are given back after a call
    STEPS_WITHOUT_GIL = 200
    BYTES_WITHOUT_GIL = 1 << 18


class Uncapturable(Exception):
    """The notes of a function are no program: why, and where."""


class GaveUp(Exception):
    """A replay gave up, and has changed nothing."""


# ----- Memory -----
cdef int share_arguments(Note* note, dict known) except -1:
    """Give equal arguments of steps that do not change them one place."""
    cdef bytes content = (<const char*>note.arguments)[:note.argument_bytes]
    cdef size_t place = known.setdefault(content, <size_t>note.arguments)
    if place != <size_t>note.arguments:
        free(note.arguments)
        note.arguments, note.borrowed = <void*>place, True
    return 0


cdef bint is_constant(Layout layout) noexcept:
    """Say whether a result is a copy of a constant, which is made when all steps have run."""
    return layout is not None and layout.kind == MADE and layout.base == CONSTANTS


cdef size_t rounded(size_t nbytes) noexcept:
    return (nbytes + LINE - 1) // LINE * LINE + LINE


@cython.final
cdef class Room:
    """Memory that is given out and taken back by size."""
    cdef size_t top
    cdef dict free

    cdef intptr_t take(self, size_t nbytes):
        cdef size_t size = rounded(nbytes)
        cdef list places = self.free.get(size)
        if places:
            return places.pop()
        self.top += size
        return self.top - size

    cdef int give(self, size_t nbytes, intptr_t place) except -1:
        self.free.setdefault(rounded(nbytes), []).append(place)
        return 0


cdef Room new_room():
    cdef Room room = Room.__new__(Room)
    room.free = {}
    return room


@cython.final
cdef class Part:
    pass


@cython.final
@cython.binding(False)
cdef class Replay:
    """A program of notes, from the tensors of its inputs to its results.

    `inputs`: the tensors from outside; `results`: tensors; `gradients`: of the results, from which the backward part, the notes from number
    `split` on, makes `back`, tensors or None.
    """

    def __cinit__(self, Notes notes not None, list inputs, list results, Py_ssize_t split, list gradients, list back):
        self.notes, self.calls = notes, notes.calls
        self.inputs = <int>len(inputs)
        self.forward_part, self.backward_part = Part.__new__(Part), Part.__new__(Part)
        self.forward_part.first, self.forward_part.end = 0, split
        self.backward_part.first, self.backward_part.end = split, notes.count
        self.forward_part.arenas, self.backward_part.arenas, self.sizes, self.late, self.places = [], [], [], [], {}
        self.plan(inputs + gradients, results, back)

    def __dealloc__(self):
        free(self.steps)
        free(self.kernels)
        free(self.addresses)

    def __len__(self):
        return self.notes.count

    def described(self):
        """Return the names of the steps' kernels, the functions that are called, how many decisions there are, and bytes of memory."""
        names = [self.notes.notes[k].name.decode() for k in range(self.notes.count)]
        decisions = len([k for k in range(self.notes.count) if self.notes.notes[k].kind == DECISION])
        arena = max(self.forward_part.arena_bytes, self.backward_part.arena_bytes)
        return names, [(<Call>call).function for call in self.calls], decisions, arena, self.residual_bytes

    @property
    def fails_after_call(self):
        """Whether a call, which may draw random numbers, comes before a step that may give the replay up."""
        calls = [k for k in range(self.forward_part.end) if self.notes.notes[k].kind == CALL]
        return bool(calls) and any([self.notes.notes[k].kind != LAUNCH for k in range(calls[0] + 1, self.forward_part.end)])

    # ----- The plan -----
    cdef int plan(self, list inputs, list results, list back) except -1:
        cdef Notes notes = self.notes
        cdef int number, k
        cdef list bases = [None] * notes.slot_count         # of each slot: (base, offset of its first byte)
        cdef list first = [-1] * notes.slot_count, last = [-1] * notes.slot_count
        cdef list used = [self.slots_of(k) for k in range(notes.count)]
        cdef Py_ssize_t split = self.forward_part.end
        if notes.failed:
            raise Uncapturable("there was no memory to note it")
        self.bases = self.first_own = FIRST_INPUT + <int>len(inputs)
        for k in range(notes.count):
            for number in used[k]:
                if first[number] < 0:
                    first[number] = k
                last[number] = k
        for number in range(notes.slot_count):
            if notes.slots[number].origin == OUTSIDE and first[number] >= 0:
                bases[number] = self.base_of_outside(number, inputs)
        self.place_constants(bases)
        self.find_shared(used)
        self.forward_part.results = [self.place_result(tensor, inputs, bases) for tensor in results]
        self.backward_part.results = [None if tensor is None else self.place_result(tensor, inputs, bases) for tensor in back]
        self.place_rest(bases, first, last, used)
        self.link(bases)
        for part in (self.forward_part, self.backward_part):
            self.find_writes(part, bases)
            self.find_stops(part, used, last, bases)
        self.written = tuple(sorted({number for number, _, _ in self.forward_part.writes}))
        self.recorded = tuple([k for k, tensor in enumerate(results) if needs_grad(<TensorImpl>tensor)
                               and (<Layout>self.forward_part.results[k]).kind == MADE])
        self.result_bases = tuple([(<Layout>self.forward_part.results[k]).base for k in self.recorded])
        self.reads_back = tuple(sorted({bases[number][0] for k in range(split, notes.count) for number in used[k]}))
        return 0

    cdef list slots_of(self, Py_ssize_t k):
        """Return the slots that a step touches."""
        cdef Note* note = &self.notes.notes[k]
        cdef int j
        if note.kind == CALL:
            return [place[0] for place in (<Call>self.calls[note.outcome]).places]
        return [note.places[j].slot for j in range(note.count)]

    cdef tuple base_of_outside(self, int number, list inputs):
        """Return the base of memory that was there before: of an input in which all lies that steps touch."""
        cdef Slot* slot = &self.notes.slots[number]
        cdef Storage storage = self.notes.outside[number]
        cdef TensorImpl tensor
        cdef intptr_t first, end, offset, reached = slot.first
        cdef list parts = []
        cdef int k
        if slot.first >= slot.end:
            return CONSTANTS, 0         # no element is touched
        for k, tensor in enumerate(inputs):
            if owner_of(tensor.storage) is storage and tensor.count:
                offset = byte_offset(tensor)
                bytes_between(tensor.ndim, tensor.sizes, tensor.strides, cg_itemsize[tensor.dtype_nr], &first, &end)
                parts.append((offset + first, offset + end, FIRST_INPUT + k, -offset))
        for first, end, _, _ in sorted(parts):
            if first <= reached:
                reached = max(reached, end)
        if parts and reached >= slot.end:
            return parts[0][2], parts[0][3]     # the others lie there as they do now: that is guarded
        raise Uncapturable("it reads more of a tensor's memory than the tensor that it names" if parts else
                           "it reads a tensor that is neither an argument nor found by a name that its code uses: give it as an argument")

    cdef int place_constants(self, list bases) except -1:
        cdef Room room = new_room()
        cdef int number
        cdef bytes values
        for number, values in self.notes.constants.items():
            bases[number] = CONSTANTS, room.take(len(values))
        self.constants = new_storage(max(room.top, <size_t>1))
        for number, values in self.notes.constants.items():
            memcpy(self.constants.data + <intptr_t>bases[number][1], <const char*>values, len(values))
        return 0

    cdef Layout place_result(self, TensorImpl tensor, list inputs, list bases):
        """Return the layout of a result; one that a step has made gets a base of its own for its memory."""
        cdef Storage storage = owner_of(tensor.storage)
        cdef int number, k
        cdef TensorImpl other
        for k in range(len(inputs)):
            if inputs[k] is tensor:
                return layout_at(tensor, SAME, k, 0)
        for k in range(len(inputs)):
            other = inputs[k]
            if owner_of(other.storage) is storage:
                if other.dtype_nr != tensor.dtype_nr or other.storage is not tensor.storage:
                    raise Uncapturable("a result is a view of an argument as another dtype, or by .data: return a copy, by .clone()")
                return layout_at(tensor, DETACHED if needs_grad(other) and not needs_grad(tensor) else VIEW_OF_INPUT, FIRST_INPUT + k,
                                 byte_offset(tensor) - byte_offset(other))
        number = self.notes.number_of(storage)
        if tensor.count == 0:
            return layout_at(tensor, MADE, CONSTANTS, 0)
        if number < 0 or not self.notes.slots[number].written and self.notes.slots[number].origin != CONSTANT:
            raise Uncapturable("a result was not computed by its operators")
        if bases[number] is None:
            self.add_base(number, number in self.shared, bases)
        return layout_at(tensor, MADE, bases[number][0], byte_offset(tensor) + bases[number][1])

    cdef int add_base(self, int number, bint late, list bases) except -1:
        """Give a slot a base of its own."""
        bases[number] = self.bases, 0
        self.bases += 1
        self.sizes.append(self.notes.slots[number].nbytes)
        self.late.append(late)
        return 0

    cdef int place_rest(self, list bases, list first, list last, list used) except -1:
        """Place the slots that die in a part in its arena, each where another one has died before, and residuals side by side."""
        cdef Room residuals = new_room(), room
        cdef Part part
        cdef Py_ssize_t split = self.forward_part.end, k
        cdef int number
        cdef set mine = set()
        for part in (self.forward_part, self.backward_part):
            room = new_room()
            for k in range(part.first, part.end):
                for number in used[k]:
                    if bases[number] is not None:
                        continue
                    if number in self.shared:
                        self.add_base(number, True, bases)
                    elif first[number] < split <= last[number]:
                        bases[number] = RESIDUALS, residuals.take(self.notes.slots[number].nbytes)
                    else:
                        bases[number] = ARENA, room.take(self.notes.slots[number].nbytes)
                        mine.add(number)
                for number in used[k]:
                    if last[number] == k and number in mine:
                        mine.discard(number)
                        room.give(self.notes.slots[number].nbytes, bases[number][1])
            part.arena_bytes = max(room.top, <size_t>LEAST_ARENA)
        self.residual_bytes = residuals.top
        return 0

    cdef int find_shared(self, list used) except -1:
        """Find the slots that steps whose results may be pending touch: other steps must not meet them in the arena."""
        cdef Note* note
        cdef Py_ssize_t k
        self.shared = set()
        for k in range(self.notes.count):
            note = &self.notes.notes[k]
            if note.again is not NULL:
                self.shared.update(used[k])
        return 0

    cdef int find_stops(self, Part part, list used, list last, list bases) except -1:
        """Find the steps that are run one by one, and where memory that may be pending dies: a result that dies is never written."""
        cdef Py_ssize_t k
        cdef int number
        cdef list layouts = self.forward_part.results + self.backward_part.results
        cdef set results = {(<Layout>layout).base for layout in layouts if layout is not None}
        cdef Note* note
        cdef int j
        part.stops, part.deaths = [], {}
        part.early = sorted({bases[number][0] for k in range(part.first, part.end) for number in used[k]
                             if bases[number][0] >= self.first_own and not self.late[<int>bases[number][0] - self.first_own]})
        for k in range(part.first, part.end):
            if self.notes.notes[k].kind == CALL or any([number in self.shared for number in used[k]]):
                part.stops.append(k)
                note = &self.notes.notes[k]
                self.places[k] = ([bases[note.places[j].slot][0] for j in range(note.count)],
                                  [note.places[j].offset + <intptr_t>bases[note.places[j].slot][1] for j in range(note.count)])
                dying = [bases[number][0] for number in used[k] if number in self.shared and last[number] == k
                         and self.notes.slots[number].origin == FRESH and bases[number][0] not in results]
                if dying:
                    part.deaths[k] = dying
        return 0

    cdef int link(self, list bases) except -1:
        """Make the steps: loops with their operands, the others with addresses apart."""
        cdef Note* note
        cdef LinkedStep* step
        cdef Kernel* kernel
        cdef Py_ssize_t k
        cdef int j, count = 0
        cdef dict shared = {}       # arguments: equal ones are one
        for k in range(self.notes.count):
            count += self.notes.notes[k].count
        self.steps = <LinkedStep*>calloc(max(self.notes.count, 1), sizeof(LinkedStep))
        self.kernels = <Kernel*>calloc(max(self.notes.count, 1), sizeof(Kernel))
        self.addresses = <Address*>calloc(max(count, 1), sizeof(Address))
        if self.steps is NULL or self.kernels is NULL or self.addresses is NULL:
            raise MemoryError()
        count = 0
        for k in range(self.notes.count):
            note, step = &self.notes.notes[k], &self.steps[k]
            step.kind = PYTHON if note.kind == CALL else OUTCOME if note.kind == DECISION else KERNEL
            if note.steady:
                share_arguments(note, shared)
            if note.run is run_loop and self.link_loop(note, step, bases):
                step.content = note.arguments
                continue
            kernel = &self.kernels[k]
            step.content = kernel
            kernel.run, kernel.arguments, kernel.argument_bytes = note.run, note.arguments, 0 if note.steady else note.argument_bytes
            kernel.first, kernel.count, kernel.outcome = count, note.count, note.outcome
            self.scratch_bytes = max(self.scratch_bytes, kernel.argument_bytes)
            for j in range(note.count):
                self.addresses[count].base = bases[note.places[j].slot][0]
                self.addresses[count].offset = note.places[j].offset + <intptr_t>bases[note.places[j].slot][1]
                count += 1
        for call in self.calls:
            self.lay_out(call, bases)
        return 0

    cdef bint link_loop(self, Note* note, LinkedStep* step, list bases) except -1:
        """Link a loop; False where its places do not fit into the step."""
        cdef intptr_t offset
        cdef int j, base
        for j in range(note.count):
            base = bases[note.places[j].slot][0]
            offset = note.places[j].offset + <intptr_t>bases[note.places[j].slot][1]
            if base > 0xffff or not -INT_MAX <= offset <= INT_MAX:
                return False
            step.bases[j], step.offsets[j] = base, <int>offset
        step.kind, step.count = LOOP, note.count
        return True

    cdef int lay_out(self, Call call, list bases) except -1:
        """Replace the tensors of a call by their layouts: it keeps no memory."""
        cdef list layouts = []
        cdef TensorImpl tensor
        for tensor, (slot, offset, _) in zip(call.inputs + call.outputs, call.places):
            layouts.append(layout_at(tensor, MADE, bases[slot][0], offset + bases[slot][1]))
        numbers = {id(tensor): k for k, tensor in enumerate(call.inputs)}
        call.arguments, call.keywords = with_holes(call.arguments, numbers), with_holes(call.keywords, numbers)
        call.layouts, call.argument_count = layouts, <int>len(call.inputs)
        call.inputs = call.outputs = None
        return 0

    cdef int find_writes(self, Part part, list bases) except -1:
        """Find the memory of inputs that a part writes, and whether a step behind the first such write may fail."""
        cdef Note* note
        cdef Slot* slot
        cdef intptr_t offset
        cdef dict written = {}
        cdef Py_ssize_t k
        cdef int j
        part.interruptible = part.end
        for k in range(part.first, part.end):
            note = &self.notes.notes[k]
            if written and (not note.safe or note.kind != LAUNCH):
                part.restores = True
            if note.kind == CALL:
                places = [(place[0], place[2]) for place in (<Call>self.calls[note.outcome]).places]
            else:
                places = [(note.places[j].slot, note.written >> j & 1) for j in range(note.count)]
            for number, writes in places:
                slot = &self.notes.slots[number]
                if writes and slot.origin == OUTSIDE and slot.end > slot.first:
                    offset = bases[number][1]
                    part.interruptible = min(part.interruptible, k)
                    written[number] = bases[number][0] - FIRST_INPUT, slot.first + offset, slot.end + offset
        part.writes = [*written.values()]
        if any([is_constant(layout) for layout in part.results]) or part.restores or part.end - part.interruptible > STEPS_BETWEEN_SIGNALS:
            part.restores, part.interruptible = bool(written), part.end
        return 0

    # ----- Replays -----
    cdef list run_forward(self, list inputs, list state):
        """Return the results for other inputs; `state` gets the storages that the backward part needs."""
        cdef TensorImpl tensor
        cdef char** pointers = <char**>malloc(self.bases * sizeof(char*))
        cdef list storages = [None, None, self.constants]
        cdef int k
        if pointers is NULL:
            raise MemoryError()
        try:
            if self.residual_bytes:
                storages[RESIDUALS] = new_storage(self.residual_bytes)
                pointers[RESIDUALS] = (<Storage>storages[RESIDUALS]).data
            pointers[CONSTANTS] = self.constants.data
            for k, tensor in enumerate(inputs):
                pointers[FIRST_INPUT + k] = address(tensor)
                storages.append(tensor.storage)
            storages += [None] * (self.bases - len(storages))
            results = self.run(self.forward_part, inputs, storages, pointers)
        finally:
            free(pointers)
        state[:] = storages
        return results

    cdef list run_backward(self, list inputs, list state, list gradients):
        """Return the gradients of the inputs for gradients of the results; `state` as the forward part left it."""
        cdef TensorImpl tensor
        cdef char** pointers = <char**>malloc(self.bases * sizeof(char*))
        cdef list storages = list(state)
        cdef int k
        if pointers is NULL:
            raise MemoryError()
        try:
            for k in range(1, self.bases):
                if storages[k] is not None:
                    pointers[k] = (<Storage>storages[k]).data
            for k, tensor in enumerate(inputs + gradients):
                pointers[FIRST_INPUT + k] = address(tensor)
                storages[FIRST_INPUT + k] = tensor.storage
            return self.run(self.backward_part, inputs + gradients, storages, pointers)
        finally:
            free(pointers)

    cdef list results_of(self, Part part, list inputs, list storages):
        cdef Layout layout
        cdef TensorImpl tensor
        cdef list results = []
        for layout in part.results:
            if layout is None:
                results.append(None)
            elif layout.kind == SAME:
                results.append(inputs[layout.base])
            elif layout.kind == VIEW_OF_INPUT or layout.kind == DETACHED:
                tensor = inputs[layout.base - FIRST_INPUT]
                view = tensor_in(layout, tensor.storage, byte_offset(tensor))
                if part is self.forward_part and layout.kind == VIEW_OF_INPUT:
                    view = as_strided(tensor, view.shape, view.stride(), view.storage_offset())
                results.append(view)
            else:
                tensor = tensor_in(layout, storages[layout.base], 0)
                results.append(tensor if layout.base != CONSTANTS else copy_of(tensor, tensor.dtype_nr))
        return results

    cdef list run(self, Part part, list inputs, list storages, char** pointers):
        """Run a part and return its results. GaveUp, or the error of a call or a signal, with all memory as it was."""
        cdef Storage arena = part.arenas.pop() if part.arenas else new_storage(part.arena_bytes)
        cdef void* scratch = malloc(max(self.scratch_bytes, <size_t>1))
        cdef Py_ssize_t k = part.first, stop
        cdef bint released = part.end - part.first >= STEPS_WITHOUT_GIL or part.arena_bytes >= BYTES_WITHOUT_GIL
        cdef list before = None
        if scratch is NULL:
            raise MemoryError()
        storages[ARENA], pointers[ARENA] = arena, arena.data
        try:
            for base in part.early:     # which steps meet in any order
                self.storage_of_base(base, storages, pointers)
            if part.restores:
                before = [(<const char*>pointers[FIRST_INPUT + number] + <intptr_t>first)[:end - first]
                          for number, first, end in part.writes]
            for stop in part.stops:
                self.run_kernels(part, k, stop, pointers, scratch, released)
                self.run_stop(part, stop, part.deaths.get(stop, ()), storages, pointers, scratch)
                k = <Py_ssize_t>stop + 1
            self.run_kernels(part, k, part.end, pointers, scratch, released)
            return self.results_of(part, inputs, storages)
        except BaseException:
            if before is not None:
                for (number, first, end), values in zip(part.writes, before):
                    memcpy(pointers[FIRST_INPUT + number] + <intptr_t>first, <const char*>values, end - first)
            raise
        finally:
            free(scratch)
            if part.arena_bytes <= KEPT_ARENA:
                part.arenas.append(arena)

    cdef int run_kernels(self, Part part, Py_ssize_t first, Py_ssize_t end, char** pointers, void* scratch, bint released) except -1:
        """Run steps that are kernels, and look for signals between some of them."""
        cdef Py_ssize_t k = first, stop
        while k < end:
            stop = min(k + STEPS_BETWEEN_SIGNALS, end)
            if released:
                with nogil:
                    k = run_linked(self.steps, k, stop, self.addresses, pointers, scratch)
            else:
                k = run_linked(self.steps, k, stop, self.addresses, pointers, scratch)
            if k < stop:
                raise GaveUp()
            if k <= part.interruptible:
                PyErr_CheckSignals()
        return 0

    cdef int run_stop(self, Part part, Py_ssize_t k, object dying, list storages, char** pointers, void* scratch) except -1:
        """Run a call, or a step that touches memory which pending programs may compute or read.

        `dying`: bases that no later step touches.
        """
        cdef Note* note = &self.notes.notes[k]
        if note.kind == CALL:
            self.run_call(self.calls[note.outcome], storages, pointers)
        elif note.again is not NULL and settings.fuses:
            self.run_again(k, dying, storages, pointers)
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
            if note.places[j].slot in self.shared:
                storage = self.storage_of_base(self.places[k][0][j], storages, pointers)
                if note.written >> j & 1:
                    settle(owner_of(storage))
                else:
                    settle_value(owner_of(storage))
        return self.run_kernels(part, k, k + 1, pointers, scratch, False)

    cdef Storage storage_of_base(self, int base, list storages, char** pointers):
        """Return the memory of a base: made when it is first touched."""
        cdef Storage storage = storages[base]
        if storage is None:
            storage = new_storage(self.sizes[base - self.first_own])
            storages[base], pointers[base] = storage, storage.data
        return storage

    cdef int run_again(self, Py_ssize_t k, object dying, list storages, char** pointers) except -1:
        """Run a step on tensors: its result may be pending, in new memory."""
        cdef Note* note = &self.notes.notes[k]
        cdef Storage storage
        cdef TensorImpl result
        cdef intptr_t starts[MAX_TENSORS]
        cdef list operands = []
        cdef int j, base
        for j in range(note.count):
            base = self.places[k][0][j]
            if note.makes and j == note.count - 1:
                break
            storage = self.storage_of_base(base, storages, pointers)
            operands.append(storage)
            starts[j] = pointers[base] - storage.data + <intptr_t>self.places[k][1][j]
        storage = None
        for base in dying:      # before: a pending result without another reference is never written
            storages[base] = None
        result = (<again_function>note.again)(note.arguments, operands, starts)
        if note.makes:
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
        for k, layout in enumerate(call.layouts):
            storage = self.storage_of_base(layout.base, storages, pointers)
            tensor = tensor_in(layout, storage, pointers[layout.base] - storage.data)
            if call.saved and k < call.argument_count and call.needs_grad[k]:
                tensor.flags |= REQUIRES_GRAD
            tensors.append(tensor)
        grad_mode()[0] = bool(call.saved)
        try:
            result = call.function(*filled(call.arguments, tensors), **filled(call.keywords, tensors))
        finally:
            grad_mode()[0] = mode
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
