# cython: cdivision=True
"""Shortening (see shortening.pxd for the contract)."""
cimport cython
from libc.stdint cimport intptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.notes cimport CALL, FRESH, LAUNCH, Call, Note, Notes, Place, Slot
from cygrad._kernels.drivers.copying cimport run_move
from cygrad._kernels.drivers.elementwise cimport cg_itemsize, cg_number
from cygrad._kernels.drivers.sums cimport Sum, loop_of_sum, put_in, read_formula, write_numbers
from cygrad._kernels.programs.kernel cimport MAX_TENSORS
from cygrad._kernels.programs.linked cimport MAX_PLACES, Loop, run_loop
from cygrad._kernels.programs.settings cimport EAGER

cdef enum:
    NONE = -1
    FIRST_PART = 1
    SECOND_PART = 2
    BOTH_PARTS = 3

# How the steps use a slot.
cdef struct Usage:
    int written         # in which parts
    bint rewritten      # a loop writes a value over another one, all of it
    int renamed         # the slot of its value before the steps that were seen
    int touches         # by operands of steps
    Py_ssize_t writer   # the last step so far that has written it; NONE
    Py_ssize_t toucher  # the last one that has read or written it
    bint result         # its last value is needed after the program

# How a step is computed.
cdef struct Reading:
    Sum sum             # an operand: MAX_TENSORS times a step, plus its number among the step's places
    bint joined         # the sum has the terms of other steps
    bint removed        # another step does this one's work


cdef inline bint is_same_place(const Place* place, const Place* other) noexcept:
    return place.slot == other.slot and place.offset == other.offset


cdef inline bint overlap(const Place* place, const Place* other) noexcept:
    return place.slot == other.slot and place.first < other.end and other.first < place.end


cdef inline bint is_small_loop(const Note* note) noexcept:
    return note.kind == LAUNCH and note.run is run_loop and 0 < (<const Loop*>note.arguments).n < settings.grouped


cdef inline Place* output_of(Note* note) noexcept:
    return &note.places[note.count - 1]


cdef inline bint fills_slot(const Slot* slot, const Place* place) noexcept:
    return slot.origin == FRESH and place.first == 0 and place.end == <intptr_t>slot.nbytes


@cython.final
cdef class Shortening:
    """The steps of notes, of which the second part begins at `split`."""
    cdef Notes notes
    cdef Py_ssize_t split
    cdef Reading* steps
    cdef Usage* slots
    cdef dict names             # of joined steps, by the names of both

    def __cinit__(self, Notes notes not None, Py_ssize_t split, set shared, set results):
        self.notes, self.split, self.names = notes, split, {}
        # A loop may get a slot more.
        self.slots = <Usage*>calloc(max(notes.slot_count + notes.count, 1), sizeof(Usage))
        self.steps = <Reading*>calloc(max(notes.count, 1), sizeof(Reading))
        if self.steps is NULL or self.slots is NULL:
            raise MemoryError()
        for number in shared | results:
            if number >= 0:
                self.slots[<int>number].result = True
        self.find_writes(shared)
        self.separate_values()

    def __dealloc__(self):
        free(self.steps)
        free(self.slots)

    # ----- Values -----
    cdef int find_writes(self, set shared) except -1:
        """Find the slots that are rewritten: in one part, and not shared."""
        cdef Note* note
        cdef Py_ssize_t k
        cdef int j, part
        for number in shared:
            self.slots[<int>number].written = BOTH_PARTS
        for k in range(self.notes.count):
            note, part = &self.notes.notes[k], FIRST_PART if k < self.split else SECOND_PART
            if is_small_loop(note) and fills_slot(&self.notes.slots[output_of(note).slot], output_of(note)):
                self.slots[output_of(note).slot].rewritten |= self.slots[output_of(note).slot].written != 0
            if note.kind == CALL:
                for number, _, writes in (<Call>self.notes.calls[note.outcome]).places:
                    self.slots[<int>number].written |= part if writes else 0
            for j in range(note.count):
                self.slots[note.places[j].slot].written |= part if note.written >> j & 1 else 0
        return 0

    cdef int separate_values(self) except -1:
        """Give values over which loops write others slots of their own: both may live. The last value of a slot keeps it."""
        cdef Notes notes = self.notes
        cdef Note* note
        cdef Py_ssize_t k
        cdef int slot
        for slot in range(notes.slot_count):
            self.slots[slot].renamed = slot
        for k in range(notes.count - 1, -1, -1):
            note = &notes.notes[k]
            if not is_small_loop(note):
                self.rename(note, note.count)
                continue
            slot = output_of(note).slot
            output_of(note).slot = self.slots[slot].renamed
            if (self.slots[slot].rewritten and self.slots[slot].written != BOTH_PARTS
                    and fills_slot(&notes.slots[slot], output_of(note))):
                self.slots[slot].renamed = notes.new_slot(FRESH, notes.slots[slot].nbytes)
                notes.slots[notes.slot_count - 1].written = True
            self.rename(note, note.count - 1)
        return 0

    cdef int rename(self, Note* note, int count) except -1:
        """Rename the slots of a call, or of a launch's first tensors."""
        cdef Call call
        cdef int j
        if note.kind == CALL:
            call = self.notes.calls[note.outcome]
            call.places = [(self.slots[<int>slot].renamed, offset, writes) for slot, offset, writes in call.places]
        for j in range(count):
            note.places[j].slot = self.slots[note.places[j].slot].renamed
        return 0

    # ----- Steps that go -----
    cdef int find(self) except -1:
        """Find the steps that others can do, in order."""
        cdef Note* note
        cdef Py_ssize_t k
        cdef int j
        self.count_touches()
        for k in range(self.notes.count):
            note = &self.notes.notes[k]
            if self.read(k, note):
                while self.takes_up_one(k, note):
                    pass
                for j in range(self.steps[k].sum.terms):
                    self.slots[self.place_of(self.steps[k].sum.operands[j]).slot].toucher = k
            elif self.is_written_before(k, note):
                continue
            if note.kind == CALL:
                for slot, _, writes in (<Call>self.notes.calls[note.outcome]).places:
                    self.note_touch(slot, k, writes)
            for j in range(note.count):
                self.note_touch(note.places[j].slot, k, note.written >> j & 1)
        return 0

    cdef inline void note_touch(self, int slot, Py_ssize_t k, bint writes) noexcept:
        self.slots[slot].toucher = k
        if writes:
            self.slots[slot].writer = k

    cdef int count_touches(self) except -1:
        cdef Note* note
        cdef Py_ssize_t k
        cdef int j, slot
        for slot in range(self.notes.slot_count):
            self.slots[slot].writer = self.slots[slot].toucher = NONE
        for k in range(self.notes.count):
            note = &self.notes.notes[k]
            if note.kind == CALL:
                for number, _, _ in (<Call>self.notes.calls[note.outcome]).places:
                    self.slots[<int>number].touches += 1
            for j in range(note.count):
                self.slots[note.places[j].slot].touches += 1
        return 0

    cdef bint read(self, Py_ssize_t k, const Note* note) noexcept:
        """Read a step as a sum; False: it computes another formula, or goes over a large array."""
        cdef const Loop* each = <const Loop*>note.arguments
        cdef int[MAX_PLACES] operands
        cdef int j, places = 0
        if not is_small_loop(note) or each.out_dtype != each.dtype:
            return False
        for j in range(each.inputs):
            operands[j] = NONE
            if j != each.number_at:
                operands[j] = <int>k * MAX_TENSORS + places
                places += 1
        return read_formula(each.kernel, each.dtype, operands, each.number_at, &each.number, each.params, &self.steps[k].sum)

    cdef bint takes_up_one(self, Py_ssize_t k, Note* note) except -1:
        cdef int t
        for t in range(self.steps[k].sum.terms - 1, -1, -1):
            if self.take_up(k, note, self.steps[k].sum.operands[t]):
                return True
        return False

    cdef bint take_up(self, Py_ssize_t k, Note* note, int operand) except -1:
        """Put the sum that computes an operand, which nothing else reads, in its place; False where it may not be."""
        cdef const Place* place = self.place_of(operand)
        cdef int slot = place.slot
        cdef Py_ssize_t writer = self.slots[slot].writer
        cdef Note* before
        cdef const Loop* each = <const Loop*>note.arguments
        cdef const Loop* inner
        cdef Sum joined = self.steps[k].sum
        if not self.is_inner(k, slot) or not self.steps[writer].sum.terms:
            return False
        before = &self.notes.notes[writer]
        inner = <const Loop*>before.arguments
        if inner.n != each.n or inner.dtype != each.dtype or not is_same_place(output_of(before), place):
            return False
        if not put_in(&joined, operand, &self.steps[writer].sum) or not self.are_as_read(&joined, output_of(note)):
            return False
        self.steps[k].sum, self.steps[k].joined = joined, True
        self.steps[writer].sum.terms, self.steps[writer].removed = 0, True
        note.name = self.joined_name(before.name, note.name)
        return True

    cdef bint is_written_before(self, Py_ssize_t k, const Note* note) except -1:
        """Return True if a step copies a value that nothing else reads, and the loop that makes the value now writes it there."""
        cdef const Place* source = &note.places[0]
        cdef const Place* target = &note.places[1]
        cdef Usage* usage = &self.slots[source.slot]
        cdef Note* before
        cdef const Loop* each
        if (note.kind != LAUNCH or note.run is not run_move or not self.is_inner(k, source.slot)
                or self.notes.slots[target.slot].origin != FRESH or self.slots[target.slot].written == BOTH_PARTS):
            return False
        before = &self.notes.notes[usage.writer]
        each = <const Loop*>before.arguments
        if (not is_small_loop(before) or each.kernel.blocked[each.dtype] or not is_same_place(output_of(before), source)
                or output_of(before).end != source.end or self.slots[target.slot].toucher >= usage.writer):
            return False
        output_of(before)[0] = target[0]
        self.note_touch(target.slot, usage.writer, True)
        self.steps[k].removed = True
        return True

    cdef bint is_inner(self, Py_ssize_t k, int slot) noexcept:
        """Return True if a step of the same part has made the value of a slot, for a step alone."""
        return (self.slots[slot].writer >= (self.split if k >= self.split else 0) and self.slots[slot].touches == 2
                and not self.slots[slot].result and self.notes.slots[slot].origin == FRESH)

    cdef const char* joined_name(self, const char* first, const char* second) except NULL:
        cdef tuple key = (<size_t>first, <size_t>second)
        cdef bytes name = self.names.get(key)
        if name is None:
            self.names[key] = name = first + b" + " + second
        return name

    cdef inline const Place* place_of(self, Py_ssize_t operand) noexcept:
        return &self.notes.notes[operand // MAX_TENSORS].places[operand % MAX_TENSORS]

    cdef bint are_as_read(self, const Sum* sum, const Place* output) noexcept:
        """Return True if the operands of a sum have the values that their steps read, up to the last one, whose output is where an operand
        is or apart."""
        cdef const Place* place
        cdef int t
        for t in range(sum.terms):
            place = self.place_of(sum.operands[t])
            if (self.slots[place.slot].writer >= sum.operands[t] // MAX_TENSORS
                    or overlap(place, output) and not is_same_place(place, output)):
                return False
        return True

    # ----- Joined steps -----
    cdef int write(self, Note* note, const Sum* sum) except -1:
        """Make a step the loop of its sum."""
        cdef Loop* each = <Loop*>note.arguments
        cdef Place[MAX_PLACES] places
        cdef int t
        for t in range(sum.terms):
            places[t], each.strides[t] = self.place_of(sum.operands[t])[0], cg_itemsize[each.dtype]
        places[sum.terms] = output_of(note)[0]
        for t in range(sum.terms + 1):
            note.places[t] = places[t]
        note.count, note.written, note.fuse = sum.terms + 1, 1 << sum.terms, NULL
        each.kernel = loop_of_sum(sum.terms)
        each.loop, each.inputs, each.number_at, each.has_params = each.kernel.loops[each.dtype], sum.terms, NONE, True
        memset(&each.number, 0, sizeof(cg_number))      # equal arguments become one in a program
        memset(each.params, 0, sizeof(each.params))
        write_numbers(sum, each.dtype, each.params)
        return 0

    cdef Py_ssize_t finish(self) except -1:
        """Make the joined steps, remove those that they compute, and return how many are left in the first part."""
        cdef Notes notes = self.notes
        cdef Py_ssize_t k, left = 0, split = self.split, message = notes.first_message
        for k in range(notes.count):
            if self.steps[k].joined and not self.steps[k].removed:
                self.write(&notes.notes[k], &self.steps[k].sum)
        for k in range(notes.count):
            if self.steps[k].removed:
                free(notes.notes[k].arguments)
                split -= k < self.split
                notes.first_message -= k < message
            else:
                notes.notes[left] = notes.notes[k]
                left += 1
        notes.count = left
        notes.owners += self.names.values()
        return split


cdef Py_ssize_t shorten(Notes notes, Py_ssize_t split, set shared, set results) except -1:
    cdef Shortening steps
    if settings.mode == EAGER:
        return split
    steps = Shortening(notes, split, shared, results)
    steps.find()
    return steps.finish()
