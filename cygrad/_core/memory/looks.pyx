"""Looks at values (see looks.pxd for the contract)."""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

import contextlib
import sys
from pathlib import Path

cdef extern from *:
    """
    static __thread void *cg_looks;
    static void **cg_looks_place(void) { return &cg_looks; }
    """
    void** cg_looks_place() noexcept

# Files of the package, its compiled ones, and Python's.
cdef tuple INSIDE = (str(Path(__file__).parent), "cygrad/", "<frozen", "<formula of ", contextlib.__file__)


@cython.final
cdef class Looks:
    """A count of looks."""


cdef int count_looks_in(Looks looks) except -1:
    cdef PyObject* before = <PyObject*>cg_looks_place()[0]
    if looks is not None:
        Py_INCREF(looks)
    cg_looks_place()[0] = NULL if looks is None else <void*>looks
    Py_XDECREF(before)
    return 0


cdef object line_of_caller():
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def look(str reason not None):
    """Note code that no program can repeat."""
    note_look(reason)


cdef void note_node(unsigned long long sequence_nr) noexcept:
    if cg_looks_place()[0] is not NULL and sequence_nr <= (<Looks>cg_looks_place()[0]).newest_node:
        note_look("its history was asked for, which may be another one in another call")


cdef void note_look(str reason) noexcept:
    cdef Looks looks
    if cg_looks_place()[0] is NULL:
        return
    looks = <Looks>cg_looks_place()[0]
    looks.count += 1
    if looks.count == 1:
        looks.reason = reason
        try:
            looks.line = line_of_caller()
        except MemoryError:
            looks.line = None


cdef int note_question(str reason) except -1:
    if (cg_looks_place()[0] is not NULL and not (<Looks>cg_looks_place()[0]).is_package
            and not sys._getframe().f_code.co_filename.startswith(INSIDE)):
        note_look(reason)
    return 0


cdef object asked_by_package(object function, tuple arguments):
    cdef Looks looks
    if cg_looks_place()[0] is NULL:
        return function(*arguments)
    looks = <Looks>cg_looks_place()[0]
    was_package, looks.is_package = looks.is_package, True
    try:
        return function(*arguments)
    finally:
        looks.is_package = was_package


cdef void note_lasting_look(str reason) noexcept:
    note_look(reason)
    if cg_looks_place()[0] is not NULL:
        (<Looks>cg_looks_place()[0]).lasts = True


cpdef int refuse_change(str reason) except -1:
    """RuntimeError in code that runs besides the call of the user: it would change a tensor from outside once more."""
    if cg_looks_place()[0] is not NULL and (<Looks>cg_looks_place()[0]).repeats:
        note_look(reason)
        raise RuntimeError(reason)
    return 0
