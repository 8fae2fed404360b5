# cython: cdivision=True
"""Captured programs (see captured.pxd for the contract)."""
cimport cython
from libc.limits cimport INT_MAX, USHRT_MAX
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from cygrad._core.capture.grouping cimport StepGroup, group_steps, put_off_numbers
from cygrad._core.capture.layouts cimport DETACHED, MADE, SAME, VIEW_OF_INPUT, Layout, layout_at, with_holes
from cygrad._core.capture.liveness cimport Touches
from cygrad._core.capture.recomputing cimport recompute
from cygrad._core.capture.shortening cimport shorten
from cygrad._core.graph.history cimport edge, gradient_edge
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.node cimport Node, has_gradient_hooks
from cygrad._core.graph.notes cimport CALL, DECISION, FRESH, LAUNCH, OUTSIDE, Note, Place, Slot
from cygrad._core.graph.rule_nodes cimport RuleNode
from cygrad._core.graph.tensor cimport INFERENCE, REQUIRES_GRAD, TensorImpl, byte_offset, needs_grad
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
    MUCH_MEMORY = 1 << 22       # more than an array has whose steps run block by block


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
        if not note.borrowed:
            free(note.arguments)
        note.arguments, note.borrowed = <void*>place, True
    return 0


cdef int input_of_view(TensorImpl view, list inputs) except -2:
    """Return the number of the first input that the gradient of a view meets, by operators that make views; -1: there is none.

    A replay makes the view by one operator: backwards of users and hooks on the way would be lost.
    """
    cdef TensorImpl other
    cdef Node node
    cdef int number, other_number, k
    if view.base is None:
        return -1
    try:
        node = gradient_edge(view, &number)
    except RuntimeError:        # its base was changed, and autograd cannot follow the view
        return -1
    while node is not None:
        for k in range(len(inputs)):
            other = inputs[k]
            if (have_one_base(view, other) and other.storage is view.storage
                    and gradient_edge(other, &other_number) is node and other_number == number):
                return k
        if not isinstance(node, RuleNode) or node.edges != 1 or has_gradient_hooks(node):
            return -1
        node = edge(node, 0, &number)
    return -1


cdef bint have_one_base(TensorImpl view, TensorImpl other) noexcept:
    """Return True if a tensor is a view of another one, or both are views of one; autograd does not follow those in inference mode."""
    return view.base is other or view.base is not None and view.base is other.base or view.flags & other.flags & INFERENCE


cdef int input_in_memory(TensorImpl tensor, list inputs) noexcept:
    """Return the number of the first input in the memory of a tensor without history: of the same base, if there is one; -1: there is
    none.
    """
    cdef TensorImpl other
    cdef int k, first = -1
    for k in range(0 if tensor.flags & REQUIRES_GRAD else len(inputs)):
        other = inputs[k]
        if other.storage is tensor.storage and other.dtype_nr == tensor.dtype_nr:
            if have_one_base(tensor, other):
                return k
            first = k if first < 0 else first
    return first


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


cdef inline void place_slot(Slot* slot, int base, intptr_t offset) noexcept:
    slot.placed, slot.base, slot.offset = True, base, offset


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
        self.others, self.guards, self.frees, self.released, self.read_often, self.nested = [], [], None, (), (), ()
        self.name, self.notes, self.calls = name, notes, notes.calls
        self.inputs, self.changes, self.changes_back, self.saved_by_functions = <int>len(inputs), [], [], frozenset()
        self.forward_part, self.backward_part = Part.__new__(Part), Part.__new__(Part)
        self.forward_part.first, self.forward_part.end = 0, split
        self.backward_part.first, self.backward_part.end = split, notes.count
        self.forward_part.arenas, self.backward_part.arenas, self.sizes, self.late, self.places = [], [], [], [], {}
        self.groups = []
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
        cdef Touches touches
        cdef Py_ssize_t split
        if notes.failed:
            raise Uncapturable("there was no memory to note it")
        put_off_numbers(notes, 0, self.forward_part.end)
        put_off_numbers(notes, self.backward_part.first, notes.count)
        outputs = self.slots_of_results(results + back)
        split = recompute(notes, self.forward_part.end, outputs)
        self.find_shared(before)
        split = shorten(notes, split, outputs)
        self.forward_part.end = self.backward_part.first = split
        self.backward_part.end = notes.count
        self.number_bases(<int>len(inputs), before)
        touches = Touches(notes, [])
        self.place_inputs(inputs)
        self.place_constants()
        self.forward_part.results = [self.place_result(tensor, inputs) for tensor in results]
        if before is not None:
            self.take_places(before)
        self.backward_part.results = [None if tensor is None else self.place_result(tensor, inputs) for tensor in back]
        for part in (self.forward_part, self.backward_part):
            self.groups += group_steps(notes, (<Part>part).first, (<Part>part).end)
        if self.groups:
            touches = Touches(notes, self.groups)
        self.place_rest(touches)
        self.link()
        for part in (self.forward_part, self.backward_part):
            self.find_writes(part)
            self.find_stops(part, touches)
        self.written, self.written_back = [tuple(sorted({number for number, _, _ in (<Part>part).writes}))
                                           for part in (self.forward_part, self.backward_part)]
        self.recorded = tuple([k for k, tensor in enumerate(results) if needs_grad(<TensorImpl>tensor)
                               and (<Layout>self.forward_part.results[k]).kind == MADE])
        self.watched = tuple([k for k, tensor in enumerate(results)
                              if (<Layout>self.forward_part.results[k]).kind == MADE and (<TensorImpl>tensor).count])
        self.result_bases = tuple([(<Layout>self.forward_part.results[k]).base for k in self.watched])
        self.reads_back = tuple(self.bases_in(self.backward_part, touches))
        self.reads_forward = tuple(self.bases_in(self.forward_part, touches))
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

    cdef int take_places(self, Captured before) except -1:
        """Place the values of the forward part, which another program runs, where that keeps them."""
        cdef const Slot* other
        cdef Slot* slot
        cdef int number
        for number in range(self.notes.forgotten_slots):
            slot, other = &self.notes.slots[number], &before.notes.slots[number]
            if slot.origin == FRESH and other.lasting:
                place_slot(slot, other.base, other.offset)
        self.forward_part.results = before.forward_part.results
        return 0

    cdef set slots_of_results(self, list results):
        """Return the slots of the tensors among some results."""
        cdef TensorImpl tensor
        return {self.notes.number_of(owner_of(tensor.storage)) for tensor in results if tensor is not None}

    cdef int place_inputs(self, list inputs) except -1:
        """Place the memory that was there before, where steps touch it."""
        cdef int number
        for number in range(self.notes.slot_count):
            if self.notes.slots[number].origin == OUTSIDE and self.notes.slots[number].uses:
                base, offset = self.place_outside(number, inputs)
                place_slot(&self.notes.slots[number], base, offset)
        return 0

    cdef tuple place_outside(self, int number, list inputs):
        """Return the place of memory from outside: in an input in which all lies that steps touch."""
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

    cdef int place_constants(self) except -1:
        cdef Room room = new_room()
        cdef int number
        cdef bytes values
        for number, values in self.notes.constants.items():
            place_slot(&self.notes.slots[number], CONSTANTS, room.take(len(values)))
        self.constants = new_storage(max(room.top, <size_t>1))
        for number, values in self.notes.constants.items():
            memcpy(self.constants.data + self.notes.slots[number].offset, <const char*>values, len(values))
        return 0

    cdef Layout place_result(self, TensorImpl tensor, list inputs):
        """Return the layout of a result; one that a step has made gets a base of its own for its memory."""
        cdef Storage storage = owner_of(tensor.storage)
        cdef Slot* slot
        cdef int number, k
        cdef TensorImpl other
        for k in range(len(inputs)):
            if inputs[k] is tensor:
                return layout_at(tensor, SAME, k, 0)
        # A replay has the mode of the call.
        k = input_of_view(tensor, inputs) if needs_grad(tensor) and grad_mode()[0] else input_in_memory(tensor, inputs)
        if k >= 0 and (<TensorImpl>inputs[k]).dtype_nr == tensor.dtype_nr:
            other = inputs[k]
            return layout_at(tensor, VIEW_OF_INPUT if have_one_base(tensor, other) else DETACHED, self.input_bases[k],
                             byte_offset(tensor) - byte_offset(other))
        if any([owner_of((<TensorImpl>other).storage) is storage for other in inputs]):
            raise Uncapturable("a result is a view of an argument as another dtype, by .data, or with another history: return a copy, "
                               "by .clone()")
        number = self.notes.number_of(storage)
        if tensor.count == 0:
            return layout_at(tensor, MADE, CONSTANTS, 0)
        slot = &self.notes.slots[number]
        if number < 0 or not slot.written:
            raise Uncapturable("a result was not computed by its operators")
        if number < self.notes.forgotten_slots and slot.origin == FRESH:
            raise Uncapturable("a gradient is a value of the function itself")
        if not slot.placed:
            self.add_base(slot, slot.shared)
            slot.lasting = True
        return layout_at(tensor, MADE, slot.base, byte_offset(tensor) + slot.offset)

    cdef int add_base(self, Slot* slot, bint late) except -1:
        """Give a slot a base of its own."""
        place_slot(slot, self.bases, 0)
        self.bases += 1
        self.sizes.append(slot.nbytes)
        self.late.append(late)
        return 0

    cdef int place_rest(self, Touches touches) except -1:
        """Place the slots that die in a part in its arena, each where another one has died before, and residuals side by side."""
        cdef Room residuals = new_room(), room
        cdef Part part
        cdef Slot* slot
        cdef Py_ssize_t split = self.forward_part.end, k, j
        for part in (self.forward_part, self.backward_part):
            room = new_room()
            for k in range(part.first, part.end):
                for j in range(touches.starts[k], touches.starts[k + 1]):
                    slot = &self.notes.slots[touches.slots[j]]
                    if slot.placed:
                        continue
                    if touches.slots[j] < self.notes.forgotten_slots:
                        raise Uncapturable("its backward reads values that it does not read for other gradients")
                    slot.lasting = slot.first_step < split <= slot.last_step
                    if slot.shared:
                        self.add_base(slot, True)
                        slot.lasting = slot.last_step >= split
                    elif slot.lasting:
                        place_slot(slot, RESIDUALS, residuals.take(slot.nbytes))
                    else:
                        place_slot(slot, ARENA, room.take(slot.nbytes))
                for j in range(touches.starts[k], touches.starts[k + 1]):
                    slot = &self.notes.slots[touches.slots[j]]
                    if slot.last_step == k and slot.base == ARENA:
                        room.give(slot.nbytes, slot.offset)
                        slot.last_step = -1     # a step may touch it twice
            part.arena_bytes = max(room.top, <size_t>LEAST_ARENA)
        self.residual_bytes = residuals.top
        return 0

    cdef int find_shared(self, Captured before) except -1:
        """Find the slots that steps whose results may be pending touch: other steps must not meet them in the arena.

        Beside such steps, which run one by one, much memory is not in the arena either: it is given back when its value dies.
        """
        cdef Note* note
        cdef Py_ssize_t k
        cdef int j
        cdef bint has_large_steps = False
        for k in range(self.notes.count):
            note = &self.notes.notes[k]
            has_large_steps |= note.traits.large is not NULL
            for j in range(note.count if note.traits.large is not NULL else 0):
                self.notes.slots[note.places[j].slot].shared = True
        for k in range(self.notes.slot_count if has_large_steps else 0):
            self.notes.slots[k].shared |= self.notes.slots[k].origin == FRESH and self.notes.slots[k].nbytes >= MUCH_MEMORY
        for k in range(self.notes.forgotten_slots):
            self.notes.slots[k].shared |= before.notes.slots[k].shared
        return 0

    cdef list bases_in(self, Part part, Touches touches):
        """Return the bases that the steps of a part touch, in order."""
        cdef bytearray touched = bytearray(self.bases)
        cdef Py_ssize_t j
        for j in range(touches.starts[part.first], touches.starts[part.end]):
            touched[self.notes.slots[touches.slots[j]].base] = 1
        return [base for base, is_touched in enumerate(touched) if is_touched]

    cdef int find_stops(self, Part part, Touches touches) except -1:
        """Find the steps that are run one by one, and where memory that may be pending dies: a result that dies is never written."""
        cdef const Slot* slots = self.notes.slots
        cdef const Slot* slot
        cdef const Note* note
        cdef list layouts = self.forward_part.results + self.backward_part.results, dying
        cdef set results = {(<Layout>layout).base for layout in layouts if layout is not None}
        cdef Py_ssize_t k, j
        cdef bint stops
        part.stops, part.deaths = [], {}
        part.early = [base for base in self.bases_in(part, touches) if base >= self.first_own and not self.late[base - self.first_own]]
        for k in range(part.first, part.end):
            note, stops, dying = &self.notes.notes[k], self.notes.notes[k].kind == CALL, []
            for j in range(touches.starts[k], touches.starts[k + 1]):
                slot = &slots[touches.slots[j]]
                stops = stops or slot.shared
                if slot.shared and slot.last_step == k and slot.origin == FRESH and slot.base not in results and slot.base != RESIDUALS:
                    dying.append(slot.base)
            if stops:
                part.stops.append(k)
                self.places[k] = ([slots[note.places[j].slot].base for j in range(note.count)],
                                  [note.places[j].offset + slots[note.places[j].slot].offset for j in range(note.count)])
            if dying:
                part.deaths[k] = dying
        return 0

    cdef int link(self) except -1:
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
            self.link_addresses(&self.steps[group.first], group.places)
        for k in range(self.notes.count):
            if self.steps[k].content is NULL and self.steps[k].kind != MEMBER:
                self.link_note(&self.notes.notes[k], &self.steps[k], arguments, kernels, loops)
        for call in self.calls:
            self.lay_out(call)
        self.argument_sets = len(arguments)
        return 0

    cdef int link_kernel(self, LinkedStep* step, kernel_function run, void* arguments, size_t argument_bytes, int outcome,
                         dict known) except -1:
        cdef Kernel* kernel = &self.kernels[<int>known.setdefault((<size_t>run, <size_t>arguments, outcome), len(known))]
        kernel.run, kernel.arguments, kernel.argument_bytes, kernel.outcome = run, arguments, argument_bytes, outcome
        step.content = kernel
        self.scratch_bytes = max(self.scratch_bytes, argument_bytes)
        return 0

    cdef int link_addresses(self, LinkedStep* step, list places) except -1:
        """Link a step whose places do not fit into it."""
        cdef const Slot* slot
        step.kind, step.count, step.offsets[0], step.offsets[1] = APART, 0, self.address_count, <int>len(places)
        for number, offset in places:
            slot = &self.notes.slots[<int>number]
            self.addresses[self.address_count] = Address(slot.base, <intptr_t>offset + slot.offset)
            self.address_count += 1
        return 0

    cdef int link_note(self, Note* note, LinkedStep* step, dict arguments, dict kernels, dict loops) except -1:
        cdef Loop* each
        cdef int j
        if note.kind == CALL:
            step.kind = PYTHON
            return 0
        if note.run is run_loop and kind_of_loop(<const Loop*>note.arguments) == LOOP:
            self.run_over_end(note)
        share_arguments(note, arguments)
        each = <Loop*>note.arguments
        if note.run is run_loop and self.link_places(note, step, kind_of_loop(each)):
            if step.kind < ELEMENT_KINDS:
                step.content, step.count = &each.number, <unsigned char>each.n
            else:
                step.content, step.count = each, loops.setdefault(<size_t>each.loop, len(loops)) % CALL_SITES
            return 0
        if note.run is run_element_sum and self.link_places(note, step, kind_of_sum(<const ElementSum*>note.arguments)):
            step.content = note.arguments
            return 0
        if note.run is run_move and move_bytes(note.arguments) == sizeof(double) and self.link_places(note, step, MOVE):
            return 0
        self.link_kernel(step, note.run, note.arguments, 0 if note.traits.steady else note.argument_bytes,
                         note.outcome if note.kind == DECISION else NO_OUTCOME, kernels)
        if not self.link_places(note, step, KERNEL if note.traits.steady else APART):
            self.link_addresses(step, [(note.places[j].slot, note.places[j].offset) for j in range(note.count)])
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

    cdef bint link_places(self, const Note* note, LinkedStep* step, int kind) noexcept:
        """Link a step whose places are its own; False where they do not fit into it."""
        cdef const Slot* slot
        cdef intptr_t offset
        cdef int j
        if note.count > MAX_PLACES:
            return False
        for j in range(note.count):
            slot = &self.notes.slots[note.places[j].slot]
            offset = note.places[j].offset + slot.offset
            if slot.base > USHRT_MAX or not -INT_MAX <= offset <= INT_MAX:
                return False
            step.bases[j], step.offsets[j] = slot.base, <int>offset
        step.kind, step.count = kind, note.count
        return True

    cdef int lay_out(self, Call call) except -1:
        """Replace the tensors of a call by their layouts: it keeps no memory."""
        cdef list layouts = []
        cdef const Slot* slot
        cdef TensorImpl tensor
        for tensor, (number, offset, _) in zip(call.inputs + call.outputs, call.places):
            slot = &self.notes.slots[<int>number]
            layouts.append(layout_at(tensor, MADE, slot.base, <intptr_t>offset + slot.offset))
        numbers = {id(tensor): k for k, tensor in enumerate(call.inputs)}
        call.arguments, call.keywords = with_holes(call.arguments, numbers), with_holes(call.keywords, numbers)
        call.layouts, call.argument_count = layouts, <int>len(call.inputs)
        call.inputs = call.outputs = None
        return 0

    cdef int find_writes(self, Part part) except -1:
        """Find the memory of inputs that a part writes, and whether a step behind the first such write may fail."""
        cdef const Note* note
        cdef dict written = {}
        cdef Py_ssize_t k
        cdef int j
        part.interruptible = part.end
        for k in range(part.first, part.end):
            note = &self.notes.notes[k]
            if written and (not note.traits.safe or note.kind != LAUNCH):
                part.restores = True
            if note.kind == CALL:
                for number, _, writes in (<Call>self.calls[note.outcome]).places:
                    if writes:
                        self.add_write(part, k, number, written)
            for j in range(note.count):
                if note.written >> j & 1:
                    self.add_write(part, k, note.places[j].slot, written)
        part.writes = [*written.values()]
        if part.restores or part.end - part.interruptible > STEPS_BETWEEN_SIGNALS:
            part.restores, part.interruptible = bool(written), part.end
        return 0

    cdef int add_write(self, Part part, Py_ssize_t k, int number, dict written) except -1:
        """Add the memory of a slot that a step writes, if others see it."""
        cdef const Slot* slot = &self.notes.slots[number]
        if slot.origin == OUTSIDE and slot.end > slot.first:
            part.interruptible = min(part.interruptible, k)
            written[number] = self.input_bases.index(slot.base), slot.first + slot.offset, slot.end + slot.offset
        return 0
