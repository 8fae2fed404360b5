# cython: cdivision=True
"""Groups of steps (see grouping.pxd for the contract)."""
cimport cython
from libc.stdint cimport intptr_t, uintptr_t

cimport cygrad._kernels.programs.settings as settings

from cygrad._core.graph.notes cimport FRESH, LAUNCH, OUTSIDE, Note, Place
from cygrad._kernels.drivers.elementwise cimport cg_itemsize
from cygrad._kernels.programs.kernel cimport MAX_TENSORS
from cygrad._kernels.programs.linked cimport Loop, run_loop
from cygrad._kernels.programs.rewriting cimport write_in_place_of_copies
from cygrad._kernels.programs.settings cimport EAGER
from cygrad._kernels.programs.steps cimport DENSE, MAX_STEPS, Extent, Program, Slot, cut_back, extent_of

cdef enum:
    MOST_PASSED = 16            # steps that stay outside of a group though they lie between its steps
    SLOT_SHIFT = 38             # of the number of a slot in a place; bytes in the slot are below

# No address of a processor has this bit and not those above, so a place is never the address of a number.
cdef uintptr_t PLACE = <uintptr_t>1 << 62
cdef int MOST_SLOTS = 1 << 62 - SLOT_SHIFT


@cython.final
cdef class StepGroup:
    pass


cdef char* place_at(const Place* place) noexcept:
    return <char*>(PLACE | <uintptr_t>place.slot << SLOT_SHIFT | <uintptr_t>place.offset)


cdef inline bint is_place(const char* data) noexcept:
    return <uintptr_t>data >> 62 == 1


cdef inline int slot_of_place(const char* data) noexcept:
    return <int>((<uintptr_t>data ^ PLACE) >> SLOT_SHIFT)


cdef inline intptr_t offset_of_place(const char* data) noexcept:
    return <intptr_t>(<uintptr_t>data & (<uintptr_t>1 << SLOT_SHIFT) - 1)


cdef bint touch_in_conflict(const Note* note, int j, const Note* other, int k) noexcept:
    """Return True if two steps touch the same bytes, and one of them writes there."""
    cdef const Place* place = &note.places[j]
    cdef const Place* beside = &other.places[k]
    return (place.slot == beside.slot and (note.written >> j | other.written >> k) & 1
            and place.first < beside.end and beside.first < place.end)


cdef bint conflict(const Note* note, const Note* other) noexcept:
    cdef int j, k
    for j in range(note.count):
        for k in range(other.count):
            if touch_in_conflict(note, j, other, k):
                return True
    return False


cdef bint touches(const Note* note, int slot) noexcept:
    cdef int j
    for j in range(note.count):
        if note.places[j].slot == slot:
            return True
    return False


cdef bint touches_any(const Note* note, set slots) noexcept:
    cdef int j
    for j in range(note.count if slots else 0):
        if note.places[j].slot in slots:
            return True
    return False


cdef bint is_small_loop(const Note* note) noexcept:
    return note.kind == LAUNCH and note.run is run_loop and 0 < (<const Loop*>note.arguments).n < settings.grouped


cdef bint keeps_memory(Notes notes, const Note* note) noexcept:
    """Return True if a large array would live on until a step has run."""
    cdef int j
    for j in range(note.count):
        if <intptr_t>notes.slots[note.places[j].slot].nbytes >= settings.large:
            return True
    return False


cdef int put_off_numbers(Notes notes, Py_ssize_t first, Py_ssize_t end) except -1:
    cdef Note waiting[MOST_PASSED]
    cdef const Note* note
    cdef set reduced = set()
    cdef Py_ssize_t k, place = first
    cdef int count = 0, j
    cdef bint conflicts
    for k in range(first, end if settings.mode != EAGER else first):
        note = &notes.notes[k]
        conflicts = False
        for j in range(count if note.kind == LAUNCH else 0):
            conflicts = conflicts or conflict(note, &waiting[j])
        if (note.kind == LAUNCH and note.traits.large is NULL and count < MOST_PASSED and (conflicts or touches_any(note, reduced))
                and not keeps_memory(notes, note)):
            waiting[count] = note[0]
            count += 1
            continue
        if note.kind != LAUNCH or conflicts or count == MOST_PASSED:
            for j in range(count):
                notes.notes[place + j] = waiting[j]
            place, count = place + count, 0
        if note.traits.large is not NULL and not note.traits.large.makes and is_number(&note.places[note.count - 1]):
            reduced.add(note.places[note.count - 1].slot)
        if place != k:
            notes.notes[place] = note[0]
        place += 1
    for j in range(count):
        notes.notes[place + j] = waiting[j]
    return 0


cdef bint is_one_array(const Program* program, const char* data) noexcept:
    cdef int k, slots = 0
    for k in range(program.slot_count):
        if program.slots[k].data == data:
            if program.slots[k].geometry != DENSE or program.slots[k].number:
                return False
            slots += 1
    return slots == 1


cdef bint agree(const Program* program, const Note* note, const Note* other) noexcept:
    """Return True if two steps may run on one block after the other: the bytes that both touch, and one writes, are one array."""
    cdef int j, k
    for j in range(note.count):
        for k in range(other.count):
            if touch_in_conflict(note, j, other, k) and (
                    note.places[j].offset != other.places[k].offset or not is_one_array(program, place_at(&note.places[j]))):
                return False
    return True


cdef bint may_join(Notes notes, const Note* note) noexcept:
    cdef const Place* place
    cdef int j
    if note.traits.fuse is NULL:
        return False
    for j in range(note.count):
        place = &note.places[j]
        if notes.slots[place.slot].shared or notes.slots[place.slot].nbytes >> SLOT_SHIFT or place.slot >= MOST_SLOTS:
            return False
        if note.written >> j & 1 and notes.slots[place.slot].origin == OUTSIDE:
            return False        # other code sees its changes in order
    return True


cdef bint join_step(Notes notes, Program* program, list members, list passed, Py_ssize_t number) except -1:
    """Add a step to a program of others, before those that it passed; False where it does not fit."""
    cdef Note* note = &notes.notes[number]
    cdef Extent before = extent_of(program)
    cdef char* places[MAX_TENSORS]
    cdef Py_ssize_t k
    cdef int j
    for k in passed:
        if conflict(note, &notes.notes[k]):
            return False
    for j in range(note.count):
        places[j] = place_at(&note.places[j])
    if not note.traits.fuse(program, note.arguments, places):
        return False
    for k in members + [number]:
        if not agree(program, note, &notes.notes[k]):
            cut_back(program, &before)
            return False
    return True


cdef list members_from(Notes notes, Program* program, Py_ssize_t first, Py_ssize_t end):
    """Return the numbers of the steps that make a group with a first one."""
    cdef list members = [], passed = []
    cdef Py_ssize_t k
    program.step_count = 0
    for k in range(first, end):
        if notes.notes[k].kind != LAUNCH or len(passed) > MOST_PASSED:
            break
        if may_join(notes, &notes.notes[k]) and join_step(notes, program, members, passed, k):
            members.append(k)
            if program.total < settings.grouped:
                break
        elif not members:
            break
        else:
            passed.append(k)
    return members


cdef bint suits_next(Notes notes, list members, Py_ssize_t end) except -1:
    """Return True if the last step of a group may as well begin the next one: no value that it reads dies in this group, and the next step
    that touches its result can join it there. Then this group need not write the result."""
    cdef Py_ssize_t last = members[len(members) - 1], k
    cdef Note* note = &notes.notes[last]
    cdef Note* other
    cdef const Place* output = &note.places[note.count - 1]
    cdef int j
    for j in range(note.count - 1):
        if notes.slots[note.places[j].slot].uses == len([k for k in members if touches(&notes.notes[k], note.places[j].slot)]):
            return False
    for k in range(last + 1, min(end, last + 2 + MOST_PASSED)):
        other = &notes.notes[k]
        if other.kind != LAUNCH:
            return False
        for j in range(other.count):
            if other.places[j].slot == output.slot:
                return other.traits.fuse is not NULL and other.places[j].end - other.places[j].first == output.end - output.first
    return False


cdef int reorder(Notes notes, list members) except -1:
    """Move steps side by side, to the first of them."""
    cdef Note moved[MAX_STEPS]
    cdef Py_ssize_t first = members[0], k, last = members[len(members) - 1]
    cdef int count = 0, others = 0
    for k in members:
        moved[count] = notes.notes[k]
        count += 1
    for k in range(last, first - 1, -1):        # the others go to the end, the last one first
        if k not in members:
            notes.notes[last - others] = notes.notes[k]
            others += 1
    for k in range(count):
        notes.notes[first + k] = moved[k]
    return 0


cdef int find_inner(Notes notes, StepGroup group) except -1:
    """Take the memory of values that only this group touches, and find the arrays that get addresses."""
    cdef Program* program = &group.group.program
    cdef Slot* slot
    cdef Note* note
    cdef dict touched = {}      # slot -> steps
    cdef Py_ssize_t k
    cdef int j, number
    for k in range(group.first, group.end):
        note = &notes.notes[k]
        for number in {note.places[j].slot for j in range(note.count)}:
            touched[number] = touched.get(number, 0) + 1
    for k in range(program.slot_count):
        slot = &program.slots[k]
        if is_place(slot.data):
            number = slot_of_place(slot.data)
            if (notes.slots[number].origin == FRESH and touched[number] == notes.slots[number].uses and not notes.slots[number].placed
                    and is_one_array(program, slot.data)
                    and program.total * cg_itemsize[slot.dtype] == <intptr_t>notes.slots[number].nbytes):
                slot.data = NULL
    write_in_place_of_copies(program)
    for k in range(program.slot_count):
        slot = &program.slots[k]
        if is_place(slot.data):
            group.group.slots[group.group.count] = <int>k
            group.group.count += 1
            group.places.append((slot_of_place(slot.data), offset_of_place(slot.data)))
    return 0


cdef list group_steps(Notes notes, Py_ssize_t first, Py_ssize_t end):
    cdef StepGroup group = None
    cdef Program* program
    cdef list members, groups = []
    cdef Py_ssize_t k = first if settings.mode != EAGER else end
    while k < end:
        if is_small_loop(&notes.notes[k]) or not may_join(notes, &notes.notes[k]):
            k += 1
            continue
        if group is None:
            group = StepGroup.__new__(StepGroup)
        program = &group.group.program
        members = members_from(notes, program, k, end)
        while len(members) > 1 and suits_next(notes, members, end):
            members = members_from(notes, program, k, members[len(members) - 1])
        if len(members) < 2:
            k += 1
            continue
        reorder(notes, members)
        group.first, group.end, group.places = k, k + len(members), []
        find_inner(notes, group)
        groups.append(group)
        k, group = group.end, None
    return groups
