"""Programs: several loops that run on one block after the other, so that what lies between them never leaves the cache.

Knows nothing of tensors or nodes. All arrays are dense, of one length and dtype.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.elementwise cimport cg_kernel

cdef enum:
    MAX_STEPS = 24
    MAX_SLOTS = MAX_STEPS + 1
    MAX_INPUTS = 5

cdef struct Slot:
    char* data              # of a whole array, or of one number; NULL: a block, which the driver makes
    intptr_t stride         # item size, or 0 for a number

cdef struct Step:
    const cg_kernel* kernel
    int inputs
    int source              # slot of the first input
    int target              # slot of the output; all whole arrays that are targets are new, padded memory
    char* data[MAX_INPUTS]          # of the other inputs
    intptr_t strides[MAX_INPUTS]
    const void* params

cdef int run_program(Slot* slots, int slot_count, const Step* steps, int step_count, int dtype, intptr_t total, int cost) noexcept nogil
