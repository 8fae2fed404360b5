"""Levels: each is one forward-mode differentiation or one vmap in progress; inner ones have higher numbers.

The tangents of a level end with it. While a value at a level is computed, the thread sees neither that level nor higher ones, but levels
that begin in the meantime. Needs the GIL.
"""
from cpython.object cimport PyObject

cdef class Level:
    cdef readonly unsigned long long number
    cdef readonly Py_ssize_t size           # of the batch; -1: forward mode
    cdef readonly object randomness         # of vmap: "error", "same" or "different"
    cdef readonly Level outer               # in this thread
    cdef readonly bint active
    cdef void* resumed_by                   # a thread in which it goes on after its end; NULL: none
    cdef readonly bint recorded             # whether tangents go where history goes: not seen while grad mode is off
    cdef bint in_backward                   # but in the backward that the level is for
    cdef PyObject* duals                    # linked: the Duals that die with the level

cdef struct Hidden:                         # levels out of sight, by their numbers; linked, as one is hidden while others are
    unsigned long long first, last
    bint is_shown                           # in sight again, which were hidden before
    Hidden* outer

cdef void hide(Hidden* hidden, Level level) noexcept        # the level, and all higher ones that there are now, from this thread
cdef void show(Hidden* hidden) noexcept                     # them again
cpdef tuple active_levels()
cdef bint is_active(Level level) noexcept
cdef bint is_visible(Level level) noexcept                  # whether this thread sees tangents of the level, unless it has ended
