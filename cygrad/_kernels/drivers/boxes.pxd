"""Sums of boxes: dense arrays that are added, in their order, to parts of a dense one, which is written once.

There are no tensors here. No GIL is needed.
"""
from libc.stdint cimport intptr_t

cdef enum:
    MAX_BOXES = 7       # and the whole make the tensors of a launch
    BOX_DIMS = 4

cdef struct Box:
    intptr_t starts[BOX_DIMS]
    intptr_t sizes[BOX_DIMS]
    double factor                   # by which the elements are multiplied

cdef struct Boxes:
    int dtype, ndim, count
    bint fresh                      # the whole is not set: the first box is copied, the others are added to it or to zeros
    intptr_t sizes[BOX_DIMS]        # of the whole
    Box boxes[MAX_BOXES]

# Arrays of a dtype can be added.
cdef bint has_loop(int dtype) noexcept nogil
# The addresses are of the whole, and then of the boxes.
cdef int add_boxes(void* arguments, char** data) noexcept nogil
