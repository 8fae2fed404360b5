"""`with` statements whose end is not lost where a signal arrives just then: Ctrl-C, for example."""

cimport cython

cdef enum:
    MOST_TRIES = 8      # of an end: handlers may raise again, but one with an error of its own must not run for ever


@cython.binding(False)
cdef class restoring:
    """Run `begin` on entry, whose result `as` has, and `end(kind)` on exit, with the type of the exception or None; also if `begin` fails.

    No code of Python runs between the functions and the `with` statement, so no handler of a signal does, unless a profiler or a debugger
    in Python is set. A handler may interrupt the functions: `end` runs again then, and its exception is raised when the work is done. So
    `end` must have the same effect after another one, or a part of one.
    """
    cdef object begin, end

    def __init__(self, end, begin=None):
        self.end, self.begin = end, begin

    def __enter__(self):
        if self.begin is None:
            return None
        try:
            return self.begin()
        except BaseException as error:
            self.__exit__(type(error))
            raise

    def __exit__(self, kind, *rest):
        cdef object first = None
        cdef int _
        for _ in range(MOST_TRIES):
            try:
                self.end(kind)
                break
            except BaseException as error:
                if first is None:
                    first = error
        if first is not None:
            raise first
