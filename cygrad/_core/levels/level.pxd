"""Levels: each is one forward-mode differentiation or one vmap in progress; inner ones have higher numbers.

The tangents of a level end with it. A thread sees the levels below its ceiling only. Needs the GIL.
"""
from cpython.object cimport PyObject

cdef class Level:
    cdef readonly unsigned long long number
    cdef readonly Py_ssize_t size           # of the batch; -1: forward mode
    cdef readonly object randomness         # of vmap: "error", "same" or "different"
    cdef readonly Level outer               # in this thread
    cdef readonly bint active
    cdef readonly bint recorded             # whether tangents go where history goes: not seen while grad mode is off
    cdef bint in_backward                   # but in the backward that the level is for
    cdef PyObject* duals                    # linked: the Duals that die with the level

cdef unsigned long long* ceiling() noexcept nogil       # levels from this number on are not seen by this thread
