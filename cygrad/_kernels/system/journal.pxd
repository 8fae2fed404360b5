"""Choices and their reasons, for the standard library's logger `cygrad` at DEBUG."""

ctypedef int (*note_function)() except -1

# Have a function leave its note between two instructions of the main thread: handlers are foreign code, which must not run within a
# loop. False: there was no room, ask again.
cdef bint note_soon(note_function function) noexcept nogil
# Raise an error between two instructions of this thread, by its class: it comes of the handler of a signal, where there is no place for it.
cdef int raise_soon(object error) except -1
