"""The gradients of a loop's inputs, which grow from its last step to its first."""
from libc.stdint cimport intptr_t

from cygrad._core.capture.looped cimport MOST, Frame, LoopedStep, Rows
from cygrad._kernels.drivers.elementwise cimport cg_loop

# Where the gradient of an input goes, of which each step makes a part.
cdef struct Target:
    int carried                 # the number of the carried value; -1: of a slice or a constant
    int base, ndim              # of the part; base -1: there is none
    intptr_t offset
    intptr_t sizes[8]
    intptr_t strides[8]
    size_t itemsize, component, nbytes      # component: a real number
    char* part                  # of the step, in row-major order
    char* total                 # of a constant, or the rows of slices
    intptr_t stride             # of the rows
    bint is_sum                 # of a constant
    bint any_added
    bint adds                   # parts are added here, not by the step (see `LoopedStep.sums`)
    cg_loop add


# The gradient of a result in the present step: the sum of rows, for stacked values, and of the gradient that the step behind has left.
cdef struct Weight:
    char* data
    char* carried               # NULL: it is not carried
    char* outside               # of the first carried value, which other nodes have read; or NULL
    size_t itemsize, nbytes
    cg_loop add
    bint any_added, has_carried
    bint adds_rows              # the step behind adds its parts to the rows (see `LoopedStep.sums`)
    size_t component            # bytes of a real number


# Rows that are added to a weight; a value that is passed is stacked one step later.
cdef struct Addend:
    int weight
    bint is_passed
    Rows rows

cdef class Sums:
    cdef LoopedStep looped
    cdef Frame frame
    cdef int count, weight_count, first_weight
    cdef Target targets[3 * MOST]
    cdef Py_ssize_t first, last, step   # rows of the first and the last step; 1 or -1
    cdef Weight weights[2 * MOST]
    cdef Addend addends[2 * MOST]
    cdef int addend_count
    cdef int weight_of_carried[MOST]
    cdef list totals
    cdef void set_weights(self, Py_ssize_t row) noexcept nogil
    cdef void begin_sums(self, Py_ssize_t row) noexcept nogil
    cdef void add_rows(self, int number, Py_ssize_t row, char* total, bint* any_added) noexcept nogil
    cdef void add_step(self, Py_ssize_t row) noexcept nogil
    cdef list results(self)

# Return True if there is a NaN among the elements of some tensors; None stands for no tensor.
cdef bint any_nan(list gradients) noexcept
