"""Choices and their reasons, for the standard library's logger `cygrad` at DEBUG."""

# Have a function leave its note between two instructions of the main thread: handlers are foreign code, which must not run within a
# loop. False: there was no room, ask again.
cdef bint note_soon(int (*function)(void*) except -1) noexcept nogil
