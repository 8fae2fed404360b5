# cython: cdivision=True
"""Captured programs (see captured.pxd for the contract)."""
cimport cython
from libc.limits cimport INT_MAX
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from cygrad._core.capture.grouping cimport StepGroup, group_steps, put_off_numbers
from cygrad._core.capture.layouts cimport DETACHED, MADE, SAME, VIEW_OF_INPUT, Layout, layout_at, with_holes
from cygrad._core.capture.shortening cimport shorten
from cygrad._core.graph.notes cimport CALL, CONSTANT, DECISION, FRESH, LAUNCH, OUTSIDE, Note, Place, Slot
from cygrad._core.graph.tensor cimport TensorImpl, byte_offset, needs_grad
from cygrad._core.memory.sizes cimport bytes_between
from cygrad._core.memory.storage cimport Storage, new_storage, owner_of
from cygrad._kernels.drivers.copying cimport move_bytes, run_move
from cygrad._kernels.drivers.elementwise cimport block_bytes, cg_itemsize
from cygrad._kernels.programs.groups cimport run_group
from cygrad._kernels.programs.linked cimport (APART, CALL_SITES, ELEMENT_KINDS, KERNEL, LOOP, MAX_PLACES, MEMBER, MOVE, NO_OUTCOME,
                                              PYTHON, STEPS_BETWEEN_SIGNALS, Address, ElementSum, Kernel, LinkedStep, Loop, kind_of_loop,
                                              kind_of_sum, run_element_sum, run_loop)

cdef extern from "system/poison.h" nogil:
    bint cg_poisons         # memory behind the end, in a build with the address sanitizer

cdef int arena_byte = -1        # that new memory of replays is filled with; -1: none
cdef bint reuses_memory = True

cdef enum:
    LINE = 64                   # bytes of a cache line, and at least of a vector: loops may write behind a slot, up to the end of its line
    LEAST_ARENA = 4096          # so that it begins at a cache line


class Uncapturable(Exception):
    """The notes of a function are no program: why, and where."""


# ----- Memory -----
def exchange_arenas(int byte, bint reuses):
    """Fill the memory of replays with a byte before each (-1: do not), and plan memory that later values of a program reuse, or apart from
    each other, with gaps; return the settings before. For tests.
    """
    global arena_byte, reuses_memory
    before = arena_byte, reuses_memory
    arena_byte, reuses_memory = byte, reuses
    return before


cdef void fill_arena(char* data, size_t nbytes) noexcept:
    if arena_byte >= 0:
        memset(data, arena_byte, nbytes)


cdef int share_arguments(Note* note, dict known) except -1:
    """Give equal arguments of steps one place: a step that changes them gets a copy."""
    cdef bytes content = (<const char*>note.arguments)[:note.argument_bytes]
    cdef size_t place = known.setdefault(content, <size_t>note.arguments)
    if place != <size_t>note.arguments:
        free(note.arguments)
        note.arguments, note.borrowed = <void*>place, True
    return 0


cdef bint is_constant(Layout layout) noexcept:
    """Return True if a result is a copy of a constant, which is made when all steps have run."""
    return layout is not None and layout.kind == MADE and layout.base == CONSTANTS


cdef int find_lives(list used, list first, list last) except -1:
    """Find the first and the last step that touches each slot; -1: there is none."""
    cdef Py_ssize_t k
    cdef int number
    first[:] = last[:] = [-1] * len(first)
    for k in range(len(used)):
        for number in used[k]:
            if first[number] < 0:
                first[number] = k
            last[number] = k
    return 0


cdef size_t rounded(size_t nbytes) noexcept:
    return max((nbytes + LINE - 1) // LINE * LINE, <size_t>LINE)


@cython.final
cdef class Room:
    """Memory that is given out and taken back by size."""
    cdef size_t top
    cdef dict free

    cdef intptr_t take(self, size_t nbytes):
        cdef size_t size = rounded(nbytes)
        cdef list places = self.free.get(size)
        if not reuses_memory:
            self.top += self.top // LINE % 3 * LINE
        elif places:
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


@cython.binding(False)
cdef class Captured:
    """A program of notes, from the tensors of its inputs to its results.

    `inputs`: the tensors from outside; `results`: tensors; `gradients`: of the results, from which the backward part, the notes from number
    `split` on, makes `back`, tensors or None. `before`: a program whose forward part runs in place of one: the steps of that are forgotten.
    """

    def __cinit__(self, Notes notes not None, list inputs, list results, Py_ssize_t split, list gradients, list back, str name,
                  Captured before=None):
        self.gradients = [None if each is None else layout_at(each, MADE, 0, 0) for each in gradients]
        self.others, self.guards, self.frees, self.released, self.read_often = [], [], None, (), ()
        self.name, self.notes, self.calls = name, notes, notes.calls
        self.inputs, self.changes, self.changes_back = <int>len(inputs), [], []
        self.forward_part, self.backward_part = Part.__new__(Part), Part.__new__(Part)
        self.forward_part.first, self.forward_part.end = 0, split
        self.backward_part.first, self.backward_part.end = split, notes.count
        self.forward_part.arenas, self.backward_part.arenas, self.sizes, self.late, self.places = [], [], [], [], {}
        self.plan(inputs + [each for each in gradients if each is not None], results, back, before)
        notes.forget_tensors()

    def __dealloc__(self):
        free(self.steps)
        free(self.kernels)
        free(self.addresses)

    def __len__(self):
        return self.notes.count

    cdef str step_name(self, Py_ssize_t k):
        """Return the name of a step's kernel; of a group, the names of its steps."""
        cdef Py_ssize_t end = k + 1
        while end < self.notes.count and self.steps[end].kind == MEMBER:
            end += 1
        return " + ".join([self.notes.notes[number].name.decode() for number in range(k, end)])

    def described(self):
        """Return the names of the steps' kernels, the first step and the end of each group of them that runs block by block, how many steps
        run as eager's, the functions that are called and why, how many decisions there are, and bytes of memory."""
        names = [self.notes.notes[k].name.decode() for k in range(self.notes.count)]
        decisions = len([k for k in range(self.notes.count) if self.notes.notes[k].kind == DECISION])
        arena = max(self.forward_part.arena_bytes, self.backward_part.arena_bytes)
        groups = [((<StepGroup>group).first, (<StepGroup>group).end) for group in self.groups]
        large = len(self.forward_part.stops) + len(self.backward_part.stops) - len(self.calls)
        calls = [((<Call>call).function, (<Call>call).reason) for call in self.calls]
        return names, groups, large, calls, decisions, arena, self.residual_bytes

    @property
    def fails_after_call(self):
        """Whether a call, which may draw random numbers, comes before a step that may give the replay up."""
        calls = [k for k in range(self.forward_part.end) if self.notes.notes[k].kind == CALL]
        return bool(calls) and any([self.notes.notes[k].kind != LAUNCH for k in range(calls[0] + 1, self.forward_part.end)])

    # ----- The plan -----
    cdef int plan(self, list inputs, list results, list back, Captured before) except -1:
        cdef Notes notes = self.notes
        cdef int number, k
        cdef Py_ssize_t split
        cdef list bases, first, last, used
        if notes.failed:
            raise Uncapturable("there was no memory to note it")
        put_off_numbers(notes, 0, self.forward_part.end)
        put_off_numbers(notes, self.backward_part.first, notes.count)
        self.find_shared()
        untouched = set(range(notes.forgotten_slots))
        if before is not None:
            self.shared |= before.shared & untouched
        split = shorten(notes, self.forward_part.end, self.shared | untouched, self.slots_of_results(results + back))
        self.forward_part.end = self.backward_part.first = split
        self.backward_part.end = notes.count
        bases = [None] * notes.slot_count       # of each slot: (base, offset of its first byte)
        first, last = [-1] * notes.slot_count, [-1] * notes.slot_count
        used = [self.slots_of(k) for k in range(notes.count)]
        self.number_bases(<int>len(inputs), before)
        find_lives(used, first, last)
        for number in range(notes.slot_count):
            if notes.slots[number].origin == OUTSIDE and first[number] >= 0:
                bases[number] = self.base_of_outside(number, inputs)
        self.place_constants(bases)
        self.forward_part.results = [self.place_result(tensor, inputs, bases) for tensor in results]
        if before is not None:
            self.take_places(before, bases)
        self.backward_part.results = [None if tensor is None else self.place_result(tensor, inputs, bases) for tensor in back]
        self.make_groups(used, first, last, bases)
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

    cdef int number_bases(self, int count, Captured before) except -1:
        """Number the bases of inputs: those that a program before does not have come behind its bases."""
        cdef int further
        self.bases, self.input_bases = FIRST_INPUT + count, [*range(FIRST_INPUT, FIRST_INPUT + count)]
        if before is not None:
            further = max(self.bases - before.first_own, 0)
            self.bases = before.bases + further
            self.input_bases[count - further:] = range(before.bases, self.bases)
        self.first_own = self.bases
        return 0

    cdef int take_places(self, Captured before, list bases) except -1:
        """Place the values of the forward part, which another program runs, where that keeps them."""
        cdef Slot* slot
        cdef int number
        for number in range(self.notes.forgotten_slots):
            slot = &before.notes.slots[number]
            if self.notes.slots[number].origin == FRESH and slot.base:
                bases[number] = slot.base, slot.place
        self.forward_part.results = before.forward_part.results
        return 0

    cdef int make_groups(self, list used, list first, list last, list bases) except -1:
        """Group maps: a group touches its slots at its first step. Values within have no place."""
        cdef StepGroup group
        cdef list uses = [0] * self.notes.slot_count
        cdef set inner = set()
        cdef Py_ssize_t k
        cdef int number
        for k in range(self.notes.count):
            for number in set(used[k]):
                uses[number] += 1
        self.groups = []
        for part in (self.forward_part, self.backward_part):
            self.groups += group_steps(self.notes, part.first, part.end, self.shared, uses, bases, inner)
        if self.groups:
            used[:] = [self.slots_of(k) for k in range(self.notes.count)]
            for group in self.groups:
                used[group.first] = [number for number, _ in group.places]
                for k in range(group.first + 1, group.end):
                    used[k] = []
            find_lives(used, first, last)
        return 0

    cdef list slots_of(self, Py_ssize_t k):
        """Return the slots that a step touches."""
        cdef Note* note = &self.notes.notes[k]
        cdef int j
        if note.kind == CALL:
            return [place[0] for place in (<Call>self.calls[note.outcome]).places]
        return [note.places[j].slot for j in range(note.count)]

    cdef set slots_of_results(self, list results):
        """Return the slots of the tensors among some results."""
        cdef TensorImpl tensor
        return {self.notes.number_of(owner_of(tensor.storage)) for tensor in results if tensor is not None}

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
                parts.append((offset + first, offset + end, self.input_bases[k], -offset))
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
                return layout_at(tensor, DETACHED if needs_grad(other) and not needs_grad(tensor) else VIEW_OF_INPUT, self.input_bases[k],
                                 byte_offset(tensor) - byte_offset(other))
        number = self.notes.number_of(storage)
        if tensor.count == 0:
            return layout_at(tensor, MADE, CONSTANTS, 0)
        if number < 0 or not self.notes.slots[number].written and self.notes.slots[number].origin != CONSTANT:
            raise Uncapturable("a result was not computed by its operators")
        if number < self.notes.forgotten_slots and self.notes.slots[number].origin == FRESH:
            raise Uncapturable("a gradient is a value of the function itself")
        if bases[number] is None:
            self.add_base(number, number in self.shared, bases)
        return layout_at(tensor, MADE, bases[number][0], byte_offset(tensor) + bases[number][1])

    cdef int add_base(self, int number, bint late, list bases) except -1:
        """Give a slot a base of its own."""
        bases[number] = self.bases, 0
        self.notes.slots[number].base = self.bases
        self.bases += 1
        self.sizes.append(self.notes.slots[number].nbytes)
        self.late.append(late)
        return 0

    cdef int place_rest(self, list bases, list first, list last, list used) except -1:
        """Place the slots that die in a part in its arena, each where another one has died before, and residuals side by side."""
        cdef Room residuals = new_room(), room
        cdef Part part
        cdef Slot* slot
        cdef Py_ssize_t split = self.forward_part.end, k
        cdef int number
        cdef set mine = set()
        for part in (self.forward_part, self.backward_part):
            room = new_room()
            for k in range(part.first, part.end):
                for number in used[k]:
                    if bases[number] is not None:
                        continue
                    slot = &self.notes.slots[number]
                    if number < self.notes.forgotten_slots:
                        raise Uncapturable("its backward reads values that it does not read for other gradients")
                    if number in self.shared:
                        self.add_base(number, True, bases)
                        if last[number] < split:
                            slot.base = 0
                    elif first[number] < split <= last[number]:
                        slot.base, slot.place = RESIDUALS, residuals.take(slot.nbytes)
                        bases[number] = RESIDUALS, slot.place
                    else:
                        bases[number] = ARENA, room.take(slot.nbytes)
                        mine.add(number)
                for number in used[k]:
                    if last[number] == k and number in mine:
                        mine.discard(number)
                        room.give(self.notes.slots[number].nbytes, bases[number][1])
            part.arena_bytes = max(room.top, <size_t>LEAST_ARENA)
        self.residual_bytes = residuals.top
        return 0

    cdef int find_shared(self) except -1:
        """Find the slots that steps whose results may be pending touch: other steps must not meet them in the arena."""
        cdef Note* note
        cdef Py_ssize_t k
        self.shared = set()
        for k in range(self.notes.count):
            note = &self.notes.notes[k]
            if note.traits.again is not NULL:
                self.shared.update(self.slots_of(k))
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
                         and self.notes.slots[number].origin == FRESH and bases[number][0] not in results
                         and bases[number][0] != RESIDUALS]
                if dying:
                    part.deaths[k] = dying
        return 0

    cdef int link(self, list bases) except -1:
        """Make the steps."""
        cdef StepGroup group
        cdef Py_ssize_t k, count = 0
        cdef dict arguments = {}, kernels = {}      # equal ones are one
        cdef dict loops = {}        # numbers of them
        for k in range(self.notes.count):
            count += self.notes.notes[k].count
        self.steps = <LinkedStep*>calloc(max(self.notes.count, 1), sizeof(LinkedStep))
        self.kernels = <Kernel*>calloc(max(self.notes.count, 1), sizeof(Kernel))
        self.addresses = <Address*>calloc(max(count, 1), sizeof(Address))
        if self.steps is NULL or self.kernels is NULL or self.addresses is NULL:
            raise MemoryError()
        for group in self.groups:
            for k in range(group.first + 1, group.end):
                self.steps[k].kind = MEMBER
            self.link_kernel(&self.steps[group.first], run_group, &group.group, 0, NO_OUTCOME, kernels)
            self.link_addresses(&self.steps[group.first], group.places, bases)
        for k in range(self.notes.count):
            if self.steps[k].content is NULL and self.steps[k].kind != MEMBER:
                self.link_note(&self.notes.notes[k], &self.steps[k], arguments, kernels, loops, bases)
        for call in self.calls:
            self.lay_out(call, bases)
        self.argument_sets = len(arguments)
        return 0

    cdef int link_kernel(self, LinkedStep* step, kernel_function run, void* arguments, size_t argument_bytes, int outcome,
                         dict known) except -1:
        cdef Kernel* kernel = &self.kernels[<int>known.setdefault((<size_t>run, <size_t>arguments, outcome), len(known))]
        kernel.run, kernel.arguments, kernel.argument_bytes, kernel.outcome = run, arguments, argument_bytes, outcome
        step.content = kernel
        self.scratch_bytes = max(self.scratch_bytes, argument_bytes)
        return 0

    cdef int link_addresses(self, LinkedStep* step, list places, list bases) except -1:
        """Link a step whose places do not fit into it."""
        step.kind, step.count, step.offsets[0], step.offsets[1] = APART, 0, self.address_count, <int>len(places)
        for slot, offset in places:
            self.addresses[self.address_count] = Address(bases[slot][0], offset + bases[slot][1])
            self.address_count += 1
        return 0

    cdef int link_note(self, Note* note, LinkedStep* step, dict arguments, dict kernels, dict loops, list bases) except -1:
        cdef Loop* each
        cdef int j
        if note.kind == CALL:
            step.kind = PYTHON
            return 0
        if note.run is run_loop and kind_of_loop(<const Loop*>note.arguments) == LOOP:
            self.run_over_end(note)
        share_arguments(note, arguments)
        each = <Loop*>note.arguments
        if note.run is run_loop and self.link_places(note, step, kind_of_loop(each), bases):
            if step.kind < ELEMENT_KINDS:
                step.content, step.count = &each.number, <unsigned char>each.n
            else:
                step.content, step.count = each, loops.setdefault(<size_t>each.loop, len(loops)) % CALL_SITES
            return 0
        if note.run is run_element_sum and self.link_places(note, step, kind_of_sum(<const ElementSum*>note.arguments), bases):
            step.content = note.arguments
            return 0
        if note.run is run_move and move_bytes(note.arguments) == sizeof(double) and self.link_places(note, step, MOVE, bases):
            return 0
        self.link_kernel(step, note.run, note.arguments, 0 if note.traits.steady else note.argument_bytes,
                         note.outcome if note.kind == DECISION else NO_OUTCOME, kernels)
        if not self.link_places(note, step, KERNEL if note.traits.steady else APART, bases):
            self.link_addresses(step, [(note.places[j].slot, note.places[j].offset) for j in range(note.count)], bases)
        return 0

    cdef int run_over_end(self, const Note* note) except -1:
        """Let a loop go over whole vectors where there is room behind the end: then its stores and the loads of other loops are as wide."""
        cdef Loop* each = <Loop*>note.arguments
        cdef const Place* output = &note.places[note.count - 1]
        cdef intptr_t lanes = block_bytes(each.dtype) // cg_itemsize[each.dtype]
        cdef int j
        if cg_poisons or each.n < 2 or output.first % LINE or output.end != <intptr_t>self.notes.slots[output.slot].nbytes:
            return 0
        for j in range(note.count):
            if self.notes.slots[note.places[j].slot].origin == OUTSIDE:
                return 0
        each.n = (each.n + lanes - 1) // lanes * lanes
        return 0

    cdef bint link_places(self, Note* note, LinkedStep* step, int kind, list bases) except -1:
        """Link a step whose places are its own; False where they do not fit into it."""
        cdef intptr_t offset
        cdef int j, base
        if note.count > MAX_PLACES:
            return False
        for j in range(note.count):
            base = bases[note.places[j].slot][0]
            offset = note.places[j].offset + <intptr_t>bases[note.places[j].slot][1]
            if base > 0xffff or not -INT_MAX <= offset <= INT_MAX:
                return False
            step.bases[j], step.offsets[j] = base, <int>offset
        step.kind, step.count = kind, note.count
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
            if written and (not note.traits.safe or note.kind != LAUNCH):
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
                    written[number] = self.input_bases.index(bases[number][0]), slot.first + offset, slot.end + offset
        part.writes = [*written.values()]
        if any([is_constant(layout) for layout in part.results]) or part.restores or part.end - part.interruptible > STEPS_BETWEEN_SIGNALS:
            part.restores, part.interruptible = bool(written), part.end
        return 0
