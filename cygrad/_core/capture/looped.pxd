"""The program of a step that a loop runs, and the memory of a loop.

A step takes carried values, slices of tensors and constants, and returns the carried values of the next step and results.
"""
from libc.stdint cimport int64_t, intptr_t

from cygrad._core.capture.layouts cimport Layout
from cygrad._core.capture.replay cimport Replay
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._kernels.programs.linked cimport Address, LinkedStep

cdef enum:
    MOST = 64                   # values of a kind: carried ones, slices, results
    BETWEEN_SIGNALS = 1024      # steps

# Values of a loop that require gradients.
cdef enum Kind:
    CARRIED                     # by the last step
    STACKED                     # a result of each step
    PASSED                      # a carried value that each step returns as it is

# A result of each step.
cdef struct StepValue:
    int base
    intptr_t offset
    size_t nbytes
    bint stays                  # a carried value that each step returns as it is: one tensor, as a constant is

# A row of a tensor for each step.
cdef struct Rows:
    char* data
    intptr_t stride             # bytes

# The steps of a part of a program.
cdef struct Run:
    const LinkedStep* steps
    const Address* addresses
    char* constants
    Py_ssize_t first, end

cdef class LoopedStep:
    cdef Replay replay, reverse             # the programs of the forward and of the backward part
    cdef int carried, slices, outputs
    cdef StepValue values[MOST]             # carried: results of a step
    cdef StepValue results[MOST]
    cdef list layouts, result_layouts
    cdef readonly tuple differentiable
    cdef tuple summed_edges             # (number among `differentiable`, of the input), of gradients that are added to sums from outside
    cdef readonly bint fits             # a loop can run the program
    cdef readonly Py_ssize_t first_decision     # of the forward part; -1: it has none
    cdef bint is_reversed_alone         # the backward part of a step reads no result of it but carried ones
    cdef tuple sums                     # numbers of the inputs whose gradients the backward part adds to sums
    cdef list recorded                  # the values of the loop that require gradients: (their kind, number, place of the gradient)

    cdef bint can_loop(self)
    cdef bint can_reverse(self, Replay replay)
    cdef int find_summed_edges(self) except -1
    cdef bint reads_results(self) except -1
    cdef bint keeps_residuals(self, Py_ssize_t count) noexcept
    cdef bint is_slice(self, int number) noexcept
    cdef bint is_carried(self, int number) noexcept

cdef class Frame:
    cdef Run forward, backward
    cdef Py_ssize_t first_decision
    cdef int carried, slice_count, output_count
    cdef StepValue values[MOST]
    cdef StepValue outputs[MOST]
    cdef Rows slices[MOST]
    cdef char** pointers
    cdef void* scratch
    cdef size_t state_bytes             # of all carried values
    cdef size_t residual_bytes          # of the values of a step that the backward part reads, in whole lines
    cdef list storages                  # keep the memory
    cdef char* take(self, size_t nbytes) except NULL
    cdef void copy_state(self, char* target) noexcept nogil
    cdef void set_state(self, const char* source) noexcept nogil
    cdef void set_row(self, Py_ssize_t row) noexcept nogil
    cdef void set_step(self, Py_ssize_t row, char* states, char* residuals) noexcept nogil
    cdef bint run_forward(self, Py_ssize_t row) noexcept nogil
    cdef bint run_backward(self) noexcept nogil
    cdef bint run(self, const Run* part, Py_ssize_t first, Py_ssize_t end) noexcept nogil
    cdef void hand_on(self) noexcept nogil
    cdef void drop_every_other(self, char* states, Py_ssize_t count) noexcept nogil
    cdef bint fails_first_decision(self) noexcept nogil
    cdef Py_ssize_t run_while(self, Py_ssize_t room, int64_t* every, char* states) except? -2
    cdef bint run_steps(self, Py_ssize_t count, Py_ssize_t row, Py_ssize_t step, Py_ssize_t every, char* states, Rows* rows,
                        char* residuals) except -1

cdef TensorImpl tensor_like(Layout layout)
cdef size_t layout_bytes(Layout layout) noexcept
