"""Replays of captured programs.

A replay gives up before anything that others see has changed: where a decision has another outcome, a call other results, or memory is
missing. Threads may run one program side by side.
"""
from libc.stdint cimport intptr_t

from cygrad._core.capture.captured cimport Captured, Part
from cygrad._core.graph.noted_calls cimport Call
from cygrad._core.memory.storage cimport Storage

cdef class Replay(Captured):
    cdef bint takes(self, list gradients) noexcept
    cpdef Replay program_for(self, list gradients)
    cdef list results_of(self, Part part, list inputs, list storages)
    cdef int note_changes(self, list results) except -1
    cdef int run_kernels(self, Part part, Py_ssize_t first, Py_ssize_t end, char** pointers, void* scratch, bint released) except -1
    cdef int run_observed(self, Py_ssize_t first, Py_ssize_t end, char** pointers, void* scratch) except -1
    cdef int run_stop(self, Part part, Py_ssize_t k, object dying, list storages, char** pointers, void* scratch) except -1
    cdef int run_touching(self, Part part, Py_ssize_t k, list storages, char** pointers, void* scratch) except -1
    cdef int run_again(self, Part part, Py_ssize_t k, object dying, list storages, char** pointers, void* scratch) except -1
    cdef Storage storage_of_base(self, int base, list storages, char** pointers)
    cdef int run_call(self, Call call, list storages, char** pointers) except -1
    cdef list run_forward(self, list inputs, list state)
    cdef list run_backward(self, list inputs, list state, list gradients)
    cdef list run(self, Part part, list inputs, list storages, char** pointers)
