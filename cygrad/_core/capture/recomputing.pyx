# cython: cdivision=True
"""Recomputing (see recomputing.pxd for the contract)."""
cimport cython
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.capture.grouping cimport is_number
from cygrad._core.graph.noted_calls cimport Call
from cygrad._core.graph.notes cimport CALL, FRESH, LAUNCH, Note, Notes, with_room
from cygrad._kernels.programs.settings cimport EAGER

cdef enum:
    NONE = -1
    SAVING = 4              # a value has at least so many times the bytes that are read to make it again
    MOST_STEPS = 4          # that make it again

# How the steps use a slot.
cdef struct Usage:
    Py_ssize_t maker        # the step that makes its value, if that may run again; NONE
    Py_ssize_t writer       # the last step that writes there; NONE
    Py_ssize_t last_fixed   # the last step that reads the value of the maker itself; NONE
    int group               # the last one that makes the value; NONE
    int copy                # the slot in which it does


cdef inline bint is_large(const Note* note) noexcept:
    return note.kind == LAUNCH and note.traits.large is not NULL


cdef inline intptr_t space_of(const Note* note) noexcept:
    """Return how many elements a large step goes over; 0 where they lie in another order than row-major."""
    return note.traits.large.space_of(note.arguments, note.count - 1 if note.traits.large.makes else 0)


cdef inline bint reads_whole(const Note* note, int j) noexcept:
    """Return True if a large step reads a tensor as it lies, so that the tensor may be pending."""
    return is_large(note) and note.traits.large.space_of(note.arguments, j) != 0


cdef inline bint reduces_dims(const Note* note) noexcept:
    """Return True if a large step has results of some dims, so that its program runs."""
    return not note.traits.large.makes and not is_number(&note.places[note.count - 1])


@cython.final
cdef class Recomputing:
    """The steps of notes, in groups that run together, and those that run again."""
    cdef Notes notes
    cdef Py_ssize_t split
    cdef Usage* slots
    cdef int group
    cdef Note* steps            # with those that run again,
    cdef Py_ssize_t count, room
    cdef Py_ssize_t new_split, new_message

    def __cinit__(self, Notes notes not None, Py_ssize_t split, set results):
        cdef const Note* note
        cdef Usage* usage
        cdef Py_ssize_t k
        cdef int j, slot
        self.notes, self.split = notes, split
        self.new_split, self.new_message = split, notes.first_message
        self.slots = <Usage*>malloc(max(notes.slot_count, 1) * sizeof(Usage))
        if self.slots is NULL:
            raise MemoryError()
        for slot in range(notes.slot_count):
            self.slots[slot] = Usage(NONE, NONE, NONE, NONE, slot)
        for k in range(notes.count):
            note = &notes.notes[k]
            if note.kind == CALL:
                for number, _, writes in (<Call>notes.calls[note.outcome]).places:
                    self.slots[<int>number].last_fixed = k
                    if writes:
                        self.slots[<int>number].maker, self.slots[<int>number].writer = NONE, k
            for j in range(note.count):
                usage = &self.slots[note.places[j].slot]
                if not note.written >> j & 1:
                    if not reads_whole(note, j) or k >= split > usage.writer:
                        usage.last_fixed = k
                    continue
                may_repeat = (is_large(note) and note.traits.large.repeat is not NULL and usage.writer == NONE
                              and note.places[j].slot not in results)
                usage.maker, usage.writer = k if may_repeat else NONE, k

    def __dealloc__(self):
        free(self.slots)
        free(self.steps)

    cdef int put_steps(self) except -1:
        """Put the steps in order, each after those that make its operands again."""
        cdef const Note* note
        cdef intptr_t space = 0
        cdef Py_ssize_t k, count
        cdef int j
        for k in range(self.notes.count):
            note, count = &self.notes.notes[k], self.count
            self.group += k == self.split
            if is_large(note):
                if space_of(note) != space:
                    space, self.group = space_of(note), self.group + 1
                for j in range(note.count - 1):
                    self.make_again(k, j)
            self.new_split += self.count - count if k < self.split else 0
            self.new_message += self.count - count if k < self.notes.first_message else 0
            self.put_step(k)
            self.group += is_large(note) and reduces_dims(note)
        return 0

    cdef int make_again(self, Py_ssize_t k, int j) except -1:
        """Put the steps that make an operand of a large step, if another group has made it, it is read as it lies, and need not stay."""
        cdef const Note* note = &self.notes.notes[k]
        cdef const Note* maker
        cdef int slot = note.places[j].slot
        cdef bytes arguments
        cdef list steps = []
        if self.slots[slot].group == self.group or self.slots[slot].last_fixed > k or not reads_whole(note, j):
            return 0
        self.find_steps(k, slot, steps)
        for number in steps:
            maker = &self.notes.notes[<Py_ssize_t>number]
            slot = maker.places[maker.count - 1].slot
            self.slots[slot].copy = self.notes.new_slot(FRESH, self.notes.slots[slot].nbytes)
            self.notes.slots[self.slots[slot].copy].written = True
            self.put_step(number)
            arguments = (<const char*>maker.arguments)[:maker.argument_bytes]
            maker.traits.large.repeat(<char*>arguments)
            self.notes.owners.append(arguments)
            self.steps[self.count - 1].arguments, self.steps[self.count - 1].borrowed = <char*>arguments, True
        return 0

    cdef intptr_t find_steps(self, Py_ssize_t k, int slot, list steps) except -2:
        """Add the steps that make a value again for a step, in order, and return the bytes that they read; NONE if that is no gain."""
        cdef Py_ssize_t maker = self.slots[slot].maker, count = len(steps)
        cdef const Note* note
        cdef intptr_t nbytes = 0, fewer
        cdef int j, operand
        if maker == NONE or (maker < self.split) != (k < self.split):
            return NONE
        note = &self.notes.notes[maker]
        for j in range(note.count - 1):
            operand, fewer = note.places[j].slot, NONE
            if self.slots[operand].writer > maker:      # it has other values now
                nbytes = self.notes.slots[slot].nbytes
            elif self.slots[operand].group != self.group and self.slots[operand].maker not in steps:
                if reads_whole(note, j):
                    fewer = self.find_steps(k, operand, steps)
                nbytes += note.places[j].end - note.places[j].first if fewer == NONE else fewer
        if nbytes * SAVING > <intptr_t>self.notes.slots[slot].nbytes or len(steps) == MOST_STEPS:
            del steps[count:]
            return NONE
        steps.append(maker)
        return nbytes

    cdef int put_step(self, Py_ssize_t k) except -1:
        """Put a step behind the others. It reads the values that its group makes."""
        cdef Note* note
        cdef int j, slot
        self.steps = <Note*>with_room(self.steps, self.count, &self.room, sizeof(Note))
        note = &self.steps[self.count]
        note[0] = self.notes.notes[k]
        self.count += 1
        for j in range(note.count):
            slot = note.places[j].slot
            if self.slots[slot].maker == NONE:
                continue
            if note.written >> j & 1:
                self.slots[slot].group = self.group
            if self.slots[slot].group == self.group:
                note.places[j].slot = self.slots[slot].copy
        return 0

    cdef Py_ssize_t finish(self) noexcept:
        """Give the notes these steps, and return the first one of the second part."""
        if self.count > self.notes.count:
            self.notes.notes, self.steps = self.steps, self.notes.notes
            self.notes.count, self.notes.room, self.notes.first_message = self.count, self.room, self.new_message
        return self.new_split


cdef Py_ssize_t recompute(Notes notes, Py_ssize_t split, set results) except -1:
    cdef Recomputing steps
    cdef Py_ssize_t k, large = 0
    for k in range(notes.count if settings.mode != EAGER else 0):
        large += is_large(&notes.notes[k])
    if large < 2:
        return split
    steps = Recomputing(notes, split, results)
    steps.put_steps()
    return steps.finish()
