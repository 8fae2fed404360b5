"""Liveness: which slots each step touches, and which steps touch a slot.

Values within a group of steps have no slot. `first_step`, `last_step` and `uses` of the slots are set as well.
"""
from cygrad._core.graph.notes cimport Notes

cdef class Touches:
    cdef Notes notes
    cdef int* slots
    cdef Py_ssize_t* starts     # of the slots of each step, and the end
    cdef Py_ssize_t count, room
    cdef int add(self, Py_ssize_t k, int number) except -1
