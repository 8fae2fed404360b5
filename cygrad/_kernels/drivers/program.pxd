"""Programs: several loops that run on one block after the other, so that intermediates never leave the cache.

There are no tensors or nodes here. All arrays are dense, padded, of one length and dtype.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport MAX_OPERANDS, cg_kernel

cdef enum:
    MAX_STEPS = 16
    MAX_SLOTS = 48
    LARGE = 1 << 17         # elements of an array from which memory counts more than calls
    NONE = -1               # in place of a slot

cdef struct Slot:
    char* data              # of a whole array, or of one number; NULL: a block, which the driver makes
    intptr_t stride         # item size, or 0 for a number

cdef struct Step:
    const cg_kernel* kernel
    const void* params
    int inputs
    int slots[MAX_OPERANDS]         # of the inputs, then of the output; a whole array that is an output is new memory, or read before

cdef struct Program:
    int dtype, cost, slot_count, step_count
    intptr_t total          # elements of an array
    Slot slots[MAX_SLOTS]
    Step steps[MAX_STEPS]

cdef int add_block(Program* program) noexcept nogil
# The slot of an array (or a number, stride 0) that steps read.
cdef int add_array(Program* program, char* data, intptr_t stride) noexcept nogil
cdef bint streams(const Program* program, int threads) noexcept nogil
# Where the pass over memory that begins with step `first` ends.
cdef int end_of_pass(const Program* program, int first, bint stream, int redirected) noexcept nogil
# Steps of a pass on the elements from start to stop, which is a whole number of vectors or the end; the output `redirected` goes to
# `block` instead.
cdef void run_program_part(const Program* program, int first, int last, bint stream, intptr_t start, intptr_t stop, int redirected,
                           char* block) noexcept nogil
cdef void run_pass(const Program* program, int first, int last, int threads) noexcept nogil
cdef void run_program(const Program* program) noexcept nogil
