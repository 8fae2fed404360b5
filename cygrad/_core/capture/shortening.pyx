# cython: cdivision=True
"""Shortening (see shortening.pxd for the contract)."""
cimport cython
from libc.stdint cimport INTPTR_MAX, intptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.capture.grouping cimport is_one_array, is_small_loop, place_at
from cygrad._core.graph.constants cimport run_zeros
from cygrad._core.graph.launches cimport STEADY
from cygrad._core.graph.noted_calls cimport Call
from cygrad._core.graph.notes cimport CALL, FRESH, LAUNCH, Note, Notes, Place, Slot
from cygrad._kernels.drivers.boxes cimport Boxes, add_boxes
from cygrad._kernels.drivers.copying cimport run_move
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT64, cg_itemsize, cg_number
from cygrad._kernels.drivers.sums cimport (MAX_TERMS, NONE, Sum, drop_zero, loop_of_sum, multiply_by, put_in, read_formula,
                                           write_factors, write_numbers)
from cygrad._kernels.programs.kernel cimport MAX_TENSORS
from cygrad._kernels.programs.linked cimport FEW_DOUBLES, LOOP, MAX_PLACES, ElementSum, Loop, kind_of_loop, run_element_sum
from cygrad._kernels.programs.rewriting cimport read_sum
from cygrad._kernels.programs.settings cimport EAGER
from cygrad._kernels.programs.steps cimport Program, converts

cdef enum:
    FIRST_PART = 1
    SECOND_PART = 2
    BOTH_PARTS = 3

# How the steps use a slot.
cdef struct Usage:
    int written         # in which parts
    bint rewritten      # a loop writes a value over another one, all of it
    int renamed         # the slot of its value before the steps that were seen
    int readers         # of this value
    bint is_box         # the last of them adds boxes
    int touches         # by operands of steps
    int terms           # touches as a term of a sum
    Py_ssize_t writer   # the last step so far that has written it; NONE
    Py_ssize_t toucher  # the last one that has read or written it
    bint in_pieces      # single elements were written last
    bint result         # its last value is needed after the program
    Py_ssize_t zeros    # the step that has set it to zeros; NONE
    bint needs_zeros    # a step reads some of them
    intptr_t first, end     # bytes that steps have written since

# How a step is computed.
cdef struct Reading:
    Sum sum             # an operand: MAX_TENSORS times a step, plus its number among the step's places
    bint joined         # the sum has other terms than the step
    bint is_few         # doubles, for which no loop is called
    bint one_by_one     # not in pairs
    bint removed        # another step does this one's work


cdef inline bint is_same_place(const Place* place, const Place* other) noexcept:
    return place.slot == other.slot and place.offset == other.offset


cdef inline bint overlap(const Place* place, const Place* other) noexcept:
    return place.slot == other.slot and place.first < other.end and other.first < place.end


cdef inline bint adds_boxes(const Note* note) noexcept:
    return note.kind == LAUNCH and note.run is add_boxes


cdef inline bint has_few_doubles(const Loop* each) noexcept:
    return each.n <= FEW_DOUBLES and each.dtype == CG_FLOAT64


cdef inline bint writes_one(const Note* note) noexcept:
    """Return True if a step writes one double, or less."""
    cdef const Place* place = &note.places[note.count - 1]
    return note.kind == LAUNCH and place.end - place.first <= <intptr_t>sizeof(double)


cdef inline Place* output_of(Note* note) noexcept:
    return &note.places[note.count - 1]


cdef inline bint fills_slot(const Slot* slot, const Place* place) noexcept:
    return slot.origin == FRESH and place.first == 0 and place.end == <intptr_t>slot.nbytes


cdef bint read_multiple(const Note* note, Sum* sum) noexcept:
    """Read a step of any length as a multiple of its first tensor, which lies as its result does; False where it is none."""
    cdef Program program
    cdef char* places[MAX_TENSORS]
    if note.kind != LAUNCH or note.traits.fuse is NULL or note.count != 2:
        return False
    program.step_count = 0
    places[0], places[1] = place_at(&note.places[0]), place_at(&note.places[1])
    return (note.traits.fuse(&program, note.arguments, places) and program.step_count == 1 and not converts(&program, &program.steps[0])
            and is_one_array(&program, places[0]) and is_one_array(&program, places[1])
            and note.places[0].end - note.places[0].first == note.places[1].end - note.places[1].first
            and read_sum(&program, &program.steps[0], sum) and sum.terms == 1)


cdef inline void keep_zeros(Usage* usage) noexcept:
    """Note that it is not clear which of the zeros a step has read, or written over."""
    usage.needs_zeros, usage.first, usage.end = True, 0, <intptr_t>INTPTR_MAX      # cast: of an enum, it would be an int


cdef int list_operands(const Sum* sum, int* operands) noexcept:
    """List the operands in the order of a step's places, and return how many there are."""
    cdef int t, count = 0
    for t in range(sum.terms):
        operands[count] = sum.operands[t]
        count += 1
        if sum.seconds[t] != NONE:
            operands[count] = sum.seconds[t]
            count += 1
    return count


cdef inline bint is_multiple(const Sum* sum) noexcept:
    return sum.terms == 1 and sum.seconds[0] == NONE


cdef void write_loop(Loop* each, const Sum* sum) noexcept:
    cdef int t
    for t in range(sum.terms):
        each.strides[t] = cg_itemsize[each.dtype]
    each.kernel = loop_of_sum(sum.terms)
    each.loop, each.inputs, each.number_at, each.has_params = each.kernel.loops[each.dtype], sum.terms, NONE, True
    memset(&each.number, 0, sizeof(cg_number))      # equal arguments become one in a program
    memset(each.params, 0, sizeof(each.params))
    write_numbers(sum, each.dtype, each.params)


cdef void write_elements(Note* note, const Sum* sum, bint one_by_one) noexcept:
    """Write a sum in place of a loop's arguments, which are longer."""
    cdef ElementSum* elements = <ElementSum*>note.arguments
    cdef int t, n = <int>(<Loop*>note.arguments).n
    note.run, note.argument_bytes = run_element_sum, sizeof(ElementSum)
    memset(elements, 0, sizeof(ElementSum))
    elements.n, elements.paired, elements.form = n, 0 if one_by_one else n // 2 * 2, 16 * sum.terms
    for t in range(sum.terms):
        elements.form |= (sum.seconds[t] != NONE) << t
    elements.plain = write_factors(sum, elements.numbers)
    if not elements.plain:
        write_numbers(sum, CG_FLOAT64, elements.numbers)


@cython.final
cdef class Shortening:
    """The steps of notes, of which the second part begins at `split`."""
    cdef Notes notes
    cdef Py_ssize_t split
    cdef Reading* steps
    cdef Usage* slots
    cdef dict names             # of joined steps, by the names of both

    def __cinit__(self, Notes notes not None, Py_ssize_t split, set results):
        cdef int slot
        self.notes, self.split, self.names = notes, split, {}
        # A loop may get a slot more.
        self.slots = <Usage*>calloc(max(notes.slot_count + notes.count, 1), sizeof(Usage))
        self.steps = <Reading*>calloc(max(notes.count, 1), sizeof(Reading))
        if self.steps is NULL or self.slots is NULL:
            raise MemoryError()
        for number in results:
            if number >= 0:
                self.slots[<int>number].result = True
        for slot in range(notes.slot_count):
            if notes.slots[slot].shared or slot < notes.forgotten_slots:
                self.slots[slot].result, self.slots[slot].written = True, BOTH_PARTS
        self.find_writes()
        self.separate_values()
        self.drop_zeros()

    def __dealloc__(self):
        free(self.steps)
        free(self.slots)

    # ----- Values -----
    cdef int find_writes(self) except -1:
        """Find the slots that are rewritten: in one part, and not shared."""
        cdef Note* note
        cdef Py_ssize_t k
        cdef int j, part
        for k in range(self.notes.count):
            note, part = &self.notes.notes[k], FIRST_PART if k < self.split else SECOND_PART
            if note.traits.fuse is not NULL and fills_slot(&self.notes.slots[output_of(note).slot], output_of(note)):
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
            if not is_small_loop(note) and not self.goes_into_box(note):
                self.rename(note, note.count)
                continue
            slot = output_of(note).slot
            output_of(note).slot = self.slots[slot].renamed
            if (self.slots[slot].rewritten and self.slots[slot].written != BOTH_PARTS
                    and fills_slot(&notes.slots[slot], output_of(note))):
                self.slots[slot].renamed = notes.new_slot(FRESH, notes.slots[slot].nbytes)
                notes.slots[notes.slot_count - 1].written = True
                self.slots[slot].readers = 0
            self.rename(note, note.count - 1)
        return 0

    cdef bint goes_into_box(self, Note* note) noexcept:
        """Return True if a step makes a multiple that only a sum of boxes reads: this will take it up, so no memory is needed."""
        cdef const Usage* usage = &self.slots[output_of(note).slot]
        cdef Sum sum
        return usage.readers == 1 and usage.is_box and read_multiple(note, &sum)

    cdef int rename(self, Note* note, int count) except -1:
        """Rename the slots of a call, or of a launch's first tensors."""
        cdef Call call
        cdef int j
        if note.kind == CALL:
            call = self.notes.calls[note.outcome]
            for number, _, _ in call.places:
                self.slots[<int>number].readers += 1
                self.slots[<int>number].is_box = False
            call.places = [(self.slots[<int>slot].renamed, offset, writes) for slot, offset, writes in call.places]
        for j in range(count):
            self.slots[note.places[j].slot].readers += 1
            self.slots[note.places[j].slot].is_box = adds_boxes(note)
            note.places[j].slot = self.slots[note.places[j].slot].renamed
        return 0

    # ----- Zeros -----
    cdef int drop_zeros(self) except -1:
        """Leave out terms that are zeros, and the steps that set these where nothing reads them."""
        cdef Usage* usage
        cdef Note* note
        cdef Py_ssize_t k
        cdef int j, slot
        for slot in range(self.notes.slot_count):
            self.slots[slot].zeros = NONE
        for k in range(self.notes.count):
            note = &self.notes.notes[k]
            self.read(k, note)
            if note.kind == CALL:
                for number, _, _ in (<Call>self.notes.calls[note.outcome]).places:
                    keep_zeros(&self.slots[<int>number])
            for j in range(note.count):
                if self.slots[note.places[j].slot].zeros != NONE:
                    self.touch_zeros(&self.slots[note.places[j].slot], k, j)
            usage = &self.slots[note.places[0].slot]
            if note.kind == LAUNCH and note.run is run_zeros and usage.written != BOTH_PARTS:
                if fills_slot(&self.notes.slots[note.places[0].slot], &note.places[0]):
                    self.end_zeros(note.places[0].slot)
                    usage.zeros, usage.needs_zeros, usage.first, usage.end = k, False, 0, 0
        for slot in range(self.notes.slot_count):
            self.end_zeros(slot)
        return 0

    cdef void touch_zeros(self, Usage* usage, Py_ssize_t k, int j) noexcept:
        """Note that a step reads or writes a slot that was set to zeros."""
        cdef Note* note = &self.notes.notes[k]
        cdef const Place* place = &note.places[j]
        cdef bint is_written = usage.first <= place.first and place.end <= usage.end
        cdef bint is_apart = place.end <= usage.first or usage.end <= place.first
        if not note.written >> j & 1:
            usage.needs_zeros |= not is_written and not (is_apart and self.drop_term(k, <int>k * MAX_TENSORS + j))
        elif not is_small_loop(note) and note.run is not run_move:
            keep_zeros(usage)       # not every byte between may be written
        elif usage.first == usage.end:
            usage.first, usage.end = place.first, place.end
        elif place.first <= usage.end and place.end >= usage.first:
            usage.first, usage.end = min(usage.first, place.first), max(usage.end, place.end)
        else:
            keep_zeros(usage)

    cdef bint drop_term(self, Py_ssize_t k, int operand) noexcept:
        cdef Sum* sum = &self.steps[k].sum
        cdef int t
        for t in range(sum.terms):
            if sum.operands[t] == operand and sum.seconds[t] == NONE and drop_zero(sum, t):
                self.steps[k].joined = True
                return True
        return False

    cdef void end_zeros(self, int slot) noexcept:
        cdef const Usage* usage = &self.slots[slot]
        if usage.zeros != NONE and not usage.needs_zeros and usage.end - usage.first == <intptr_t>self.notes.slots[slot].nbytes:
            self.steps[usage.zeros].removed = True

    # ----- Steps that go -----
    cdef int find(self) except -1:
        """Find the steps that others can do, in order."""
        cdef Note* note
        cdef const Sum* sum
        cdef Py_ssize_t k
        cdef int j
        self.count_touches()
        for k in range(self.notes.count):
            note, sum = &self.notes.notes[k], &self.steps[k].sum
            if self.steps[k].removed:
                continue
            if sum.terms:
                self.choose_elements(k, note)
                while self.takes_up_one(k, note):
                    pass
                for j in range(sum.terms):
                    self.slots[self.place_of(sum.operands[j]).slot].toucher = k
                    if sum.seconds[j] != NONE:
                        self.slots[self.place_of(sum.seconds[j]).slot].toucher = k
            elif self.is_written_before(k, note):
                continue
            elif adds_boxes(note):
                for j in range(1, note.count):
                    while self.takes_multiple(k, note, j):
                        pass
            if note.kind == CALL:
                for slot, _, writes in (<Call>self.notes.calls[note.outcome]).places:
                    self.note_touch(slot, k, writes)
            for j in range(note.count):
                self.note_touch(note.places[j].slot, k, note.written >> j & 1)
        return 0

    cdef void choose_elements(self, Py_ssize_t k, Note* note) noexcept:
        """Choose how a sum of a few doubles goes: one by one where it reads a value that was written so, as a load waits for two stores."""
        cdef const Loop* each = <const Loop*>note.arguments
        cdef Reading* step = &self.steps[k]
        cdef int[2 * MAX_TERMS] operands
        cdef int j, count = list_operands(&step.sum, operands)
        if has_few_doubles(each):
            step.is_few = True
            for j in range(count):
                if self.slots[self.place_of(operands[j]).slot].in_pieces and each.n > 1:
                    step.one_by_one = True
            step.joined |= step.one_by_one or kind_of_loop(each) == LOOP
        elif step.sum.seconds[0] != NONE:
            step.sum.terms = 0

    cdef inline void note_touch(self, int slot, Py_ssize_t k, bint writes) noexcept:
        self.slots[slot].toucher = k
        if writes:
            self.slots[slot].writer = k
            self.slots[slot].in_pieces = self.steps[k].one_by_one or writes_one(&self.notes.notes[k])

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
            for j in range(self.steps[k].sum.terms):
                if self.steps[k].sum.seconds[j] == NONE:
                    self.slots[self.place_of(self.steps[k].sum.operands[j]).slot].terms += 1
        return 0

    cdef void read(self, Py_ssize_t k, const Note* note) noexcept:
        """Read a step as a sum, of no terms where it computes another formula, or goes over a large array."""
        cdef const Loop* each = <const Loop*>note.arguments
        cdef int[MAX_PLACES] operands
        cdef int j, places = 0
        if not is_small_loop(note) or each.out_dtype != each.dtype:
            return
        for j in range(each.inputs):
            operands[j] = NONE
            if j != each.number_at:
                operands[j] = <int>k * MAX_TENSORS + places
                places += 1
        read_formula(each.kernel, each.dtype, operands, each.number_at, &each.number, each.params, has_few_doubles(each),
                     &self.steps[k].sum)

    cdef bint takes_up_one(self, Py_ssize_t k, Note* note) except -1:
        cdef int t
        for t in range(self.steps[k].sum.terms - 1, -1, -1):
            if self.take_up(k, note, self.steps[k].sum.operands[t]):
                return True
        return False

    cdef bint take_up(self, Py_ssize_t k, Note* note, int operand) except -1:
        """Put the sum that computes an operand in its place, if nothing else reads it or it is a multiple that all may compute; False where
        it may not be."""
        cdef const Place* place = self.place_of(operand)
        cdef int slot = place.slot
        cdef Py_ssize_t writer = self.slots[slot].writer
        cdef Note* before
        cdef const Loop* each = <const Loop*>note.arguments
        cdef const Loop* inner
        cdef Sum* source
        cdef Sum joined = self.steps[k].sum
        if not self.is_made_for_steps(k, slot) or not self.steps[writer].sum.terms:
            return False
        source = &self.steps[writer].sum
        if self.slots[slot].touches != 2 and not (is_multiple(source) and self.is_cheap_again(k, slot)):
            return False
        before = &self.notes.notes[writer]
        inner = <const Loop*>before.arguments
        if inner.n != each.n or inner.dtype != each.dtype or not is_same_place(output_of(before), place):
            return False
        if (not put_in(&joined, operand, source) or not self.are_as_read(&joined, output_of(note))
                or joined.scale != 1 and not self.steps[k].is_few):
            return False
        self.steps[k].sum, self.steps[k].joined = joined, True
        self.slots[slot].touches -= 1
        self.slots[slot].terms -= 1
        if self.slots[slot].touches == 1:
            source.terms, self.steps[writer].removed = 0, True
        else:
            self.slots[self.place_of(source.operands[0]).slot].touches += 1
            self.slots[self.place_of(source.operands[0]).slot].terms += 1
        note.name = self.joined_name(before.name, note.name)
        return True

    cdef bint is_cheap_again(self, Py_ssize_t k, int slot) noexcept:
        """Return True if a step may as well multiply an operand itself: element by element, where sums alone read it."""
        return self.steps[k].is_few and self.slots[slot].touches == self.slots[slot].terms + 1

    cdef bint takes_multiple(self, Py_ssize_t k, Note* note, int j) except -1:
        """Let a sum of boxes multiply one of them, where it is a multiple that nothing else reads."""
        cdef Boxes* boxes = <Boxes*>note.arguments
        cdef Place* place = &note.places[j]
        cdef Py_ssize_t writer = self.slots[place.slot].writer
        cdef Note* before
        cdef Sum sum
        if not self.is_inner(k, place.slot) or self.steps[writer].joined:
            return False
        before = &self.notes.notes[writer]
        if (not read_multiple(before, &sum) or not is_same_place(output_of(before), place) or output_of(before).end != place.end
                or overlap(&before.places[0], &note.places[0]) or self.slots[before.places[0].slot].writer >= writer
                or not multiply_by(&boxes.boxes[j - 1].factor, &sum)):
            return False
        place[0] = before.places[0]
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
        return self.slots[slot].touches == 2 and self.is_made_for_steps(k, slot)

    cdef bint is_made_for_steps(self, Py_ssize_t k, int slot) noexcept:
        """Return True if a step of the same part has made the value of a slot, which is no result."""
        return (self.slots[slot].writer >= (self.split if k >= self.split else 0)
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
        """Return True if a step has room for the operands of a sum, and these have the values that their steps read, up to the last one,
        whose output is where an operand is or apart."""
        cdef const Place* place
        cdef int[2 * MAX_TERMS] operands
        cdef int k, count = list_operands(sum, operands)
        for k in range(count):
            place = self.place_of(operands[k])
            if (self.slots[place.slot].writer >= operands[k] // MAX_TENSORS
                    or overlap(place, output) and not is_same_place(place, output)):
                return False
        return count < MAX_PLACES

    # ----- Joined steps -----
    cdef int write(self, Py_ssize_t k) except -1:
        """Make a step its sum."""
        cdef Note* note = &self.notes.notes[k]
        cdef const Sum* sum = &self.steps[k].sum
        cdef Place[MAX_PLACES] places
        cdef int[2 * MAX_TERMS] operands
        cdef int j, count = list_operands(sum, operands)
        for j in range(count):
            places[j] = self.place_of(operands[j])[0]
        places[count] = output_of(note)[0]
        for j in range(count + 1):
            note.places[j] = places[j]
        note.count, note.written, note.traits = count + 1, 1 << count, &STEADY
        if self.steps[k].is_few:
            write_elements(note, sum, self.steps[k].one_by_one)
        else:
            write_loop(<Loop*>note.arguments, sum)
        return 0

    cdef Py_ssize_t finish(self) except -1:
        """Make the joined steps, remove those that they compute, and return how many are left in the first part."""
        cdef Notes notes = self.notes
        cdef Py_ssize_t k, left = 0, split = self.split, message = notes.first_message
        for k in range(notes.count):
            if self.steps[k].joined and not self.steps[k].removed:
                self.write(k)
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


cdef Py_ssize_t shorten(Notes notes, Py_ssize_t split, set results) except -1:
    cdef Shortening steps
    if settings.mode == EAGER:
        return split
    steps = Shortening(notes, split, results)
    steps.find()
    return steps.finish()
