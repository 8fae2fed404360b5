"""Liveness (see liveness.pxd for the contract)."""
cimport cython
from libc.stdlib cimport calloc, free

from cygrad._core.capture.grouping cimport StepGroup
from cygrad._core.graph.noted_calls cimport Call
from cygrad._core.graph.notes cimport CALL, Note, Notes, Slot, with_room


@cython.final
cdef class Touches:
    """The touches of the steps of some notes. `groups`, in order: a group touches its arrays at its first step."""

    def __cinit__(self, Notes notes not None, list groups):
        cdef StepGroup group
        cdef Note* note
        cdef Py_ssize_t k, number = 0
        cdef int j
        self.notes, self.starts = notes, <Py_ssize_t*>calloc(notes.count + 1, sizeof(Py_ssize_t))
        if self.starts is NULL:
            raise MemoryError()
        for k in range(notes.slot_count):
            notes.slots[k].first_step, notes.slots[k].last_step, notes.slots[k].uses = -1, -1, 0
        for k in range(notes.count):
            note = &notes.notes[k]
            self.starts[k] = self.count
            if number < len(groups) and k == (<StepGroup>groups[number]).end:
                number += 1
            group = groups[number] if number < len(groups) else None
            if group is not None and k >= group.first:
                for slot, _ in (group.places if k == group.first else ()):
                    self.add(k, slot)
            elif note.kind == CALL:
                for slot, _, _ in (<Call>notes.calls[note.outcome]).places:
                    self.add(k, slot)
            else:
                for j in range(note.count):
                    self.add(k, note.places[j].slot)
        self.starts[notes.count] = self.count

    def __dealloc__(self):
        free(self.slots)
        free(self.starts)

    cdef int add(self, Py_ssize_t k, int number) except -1:
        cdef Slot* slot = &self.notes.slots[number]
        self.slots = <int*>with_room(self.slots, self.count, &self.room, sizeof(int))
        self.slots[self.count] = number
        self.count += 1
        slot.uses += slot.last_step != k
        slot.first_step, slot.last_step = k if slot.first_step < 0 else slot.first_step, k
        return 0
