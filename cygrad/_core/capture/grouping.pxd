"""Grouping: maps and copies over one space run together, block by block, so that values between them never leave the cache.

Steps that lie apart come together where no step between them touches the bytes that they write, or writes bytes that they read.
"""
from libc.stdint cimport intptr_t

from cygrad._core.graph.notes cimport Notes, Place
from cygrad._kernels.programs.groups cimport Group
from cygrad._kernels.programs.steps cimport Program

cdef class StepGroup:
    cdef Group group
    cdef Py_ssize_t first, end      # steps
    cdef list places                # (slot, offset) of the arrays that get addresses

# A place as the address of an operand in a program.
cdef char* place_at(const Place* place) noexcept
# Return True if one row-major slot of a program has an address.
cdef bint is_one_array(const Program* program, const char* data) noexcept
# Move small steps that read a reduction of a large array, and those that read their results, behind large steps: these join the program of
# the reduction then, as in eager.
cdef int put_off_numbers(Notes notes, Py_ssize_t first, Py_ssize_t end) except -1
# Group the steps of a part, which get another order. `untouched`: slots that steps of groups may not touch; `uses`: how many steps touch
# each slot; `placed`: by slot, not None: its memory is needed after the program. `inner` gets the slots that need no memory.
cdef list group_steps(Notes notes, Py_ssize_t first, Py_ssize_t end, set untouched, list uses, list placed, set inner)
