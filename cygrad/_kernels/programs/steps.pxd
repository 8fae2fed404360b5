"""Programs: loops that run together, as steps over slots. The one representation of pending results and tiled formulas.

There are no tensors or nodes here. Arrays are row-major, or one number in every place.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, MAX_OPERANDS, cg_kernel
from cygrad._kernels.drivers.reduction cimport cg_reduction

cdef enum:
    MAX_STEPS = 16
    MAX_SLOTS = 48
    NONE = -1               # in place of a slot or a step

cdef struct Slot:
    char* data              # NULL: an executor has memory for a part of it
    int dtype               # of the memory
    bint number             # one number in every place
    bint reduced            # of size 1 in the reduced dims
    bint padded             # 64 bytes may be read after its end

cdef struct Step:
    const cg_kernel* kernel         # of a map, else NULL
    const cg_reduction* reduction
    const void* params
    int dtype                       # of the loop
    int masks                       # inputs that are read as bool (bits)
    int inputs
    int slots[MAX_OPERANDS]         # of the inputs, then of the output; a whole array that is an output is new memory, or read before
    bint joined                     # reads the step before, which nothing else reads, and there is a loop of both:
    const cg_kernel* shifted        # for a map of a difference from a reduced slot; NULL for a reduction of products

cdef struct Program:
    int ndim, cost, slot_count, step_count
    intptr_t total                  # elements of an array
    intptr_t shape[MAX_DIMS]
    char is_reduced[MAX_DIMS]
    Slot slots[MAX_SLOTS]
    Step steps[MAX_STEPS]

# An empty program over arrays of one dim.
cdef void begin_program(Program* program, intptr_t total) noexcept nogil
# A map without masks, whose slots follow.
cdef void begin_map(Step* step, const cg_kernel* kernel, int dtype, const void* params) noexcept nogil
cdef int add_block(Program* program, int dtype) noexcept nogil
# The slot of an array, or of a number, that steps read.
cdef int add_array(Program* program, char* data, int dtype, bint number) noexcept nogil

cdef inline int output_of(const Step* step) noexcept nogil:
    return step.slots[step.inputs]
