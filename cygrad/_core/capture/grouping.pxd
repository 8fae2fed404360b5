"""Grouping: maps and copies over one space run together, block by block, so that values between them never leave the cache.

Steps that lie apart come together where no step between them touches the bytes that they write, or writes bytes that they read.
"""
from libc.stdint cimport intptr_t

from cygrad._core.graph.notes cimport Note, Notes, Place
from cygrad._kernels.programs.groups cimport Group
from cygrad._kernels.programs.steps cimport Program

cdef enum:
    LARGEST_NUMBER = 16     # bytes

cdef class StepGroup:
    cdef Group group
    cdef Py_ssize_t first, end      # steps
    cdef list places                # (slot, offset) of the arrays that get addresses

# A place as the address of an operand in a program.
cdef char* place_at(const Place* place) noexcept
# Return True if one row-major slot of a program has an address.
cdef bint is_one_array(const Program* program, const char* data) noexcept
# Return True if a place is of one number.
cdef inline bint is_number(const Place* place) noexcept:
    return place.end - place.first <= LARGEST_NUMBER

# Return True if a step is one loop over few elements.
cdef bint is_small_loop(const Note* note) noexcept
# Move small steps that read a number which a large array is reduced to, and those that read their results, behind large steps: these join
# the program of the reduction then, as in eager.
cdef int put_off_numbers(Notes notes, Py_ssize_t first, Py_ssize_t end) except -1
# Group the steps of a part, which get another order. No group touches shared slots, and it keeps values in slots that have a place.
cdef list group_steps(Notes notes, Py_ssize_t first, Py_ssize_t end)
