"""Programs: several loops that run on one block after the other, so that what lies between them never leaves the cache.

Knows nothing of tensors or nodes. All arrays are dense, padded, of one length and dtype.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.elementwise cimport cg_kernel

cdef enum:
    MAX_STEPS = 16
    MAX_SLOTS = 48
    MAX_INPUTS = 5

cdef struct Slot:
    char* data              # of a whole array, or of one number; NULL: a block, which the driver makes
    intptr_t stride         # item size, or 0 for a number

cdef struct Step:
    const cg_kernel* kernel
    const void* params
    int inputs
    int slots[MAX_INPUTS + 1]       # of the inputs, then of the output; a whole array that is an output is new memory

cdef struct Program:
    int dtype, cost, slot_count, step_count
    intptr_t total          # elements of an array
    Slot slots[MAX_SLOTS]
    Step steps[MAX_STEPS]

cdef int add_block(Program* program) noexcept nogil
# The slot of an array (or a number, stride 0) that steps read.
cdef int add_array(Program* program, char* data, intptr_t stride) noexcept nogil
cdef bint streams(const Program* program, int threads) noexcept nogil
# The elements from start to stop, which is a whole number of vectors or the end; the output `redirected` goes to `block` instead.
cdef void run_part(const Program* program, bint stream, intptr_t start, intptr_t stop, int redirected, char* block) noexcept nogil
# A block that begins at a vector's place: past the caches if streamed, but for less than a vector at the end.
cdef void write(char* target, const char* block, intptr_t nbytes, bint stream) noexcept nogil
cdef void run_program(const Program* program) noexcept nogil
