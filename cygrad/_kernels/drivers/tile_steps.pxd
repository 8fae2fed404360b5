"""Maps and reductions of one shape as steps over slots: the types, and the decisions that tiles, rows and passes share.

There are no tensors here. Arrays are row-major, or one number. Each step gives the bits that its own driver gives for the whole.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, MAX_OPERANDS, Operand, cg_kernel, cg_loop
from cygrad._kernels.drivers.reduction cimport cg_reduction

cdef enum:
    MAX_STEPS = 16
    MAX_SLOTS = 24

cdef struct Slot:
    Operand array       # of the whole, stride 0 where it is repeated; data NULL: a thread has memory for a tile of it
    bint reduced        # of size 1 in the reduced dims

cdef struct Step:
    const cg_kernel* kernel         # of a map, else NULL
    const cg_reduction* reduction
    int dtype                       # of the loop
    int masks                       # inputs that are read as bool (bits)
    int inputs
    int slots[MAX_OPERANDS]         # of the inputs, then of the output
    bint joined                     # reads the step before, which nothing else reads, and there is a loop of both:
    const cg_kernel* shifted        # for a map of a difference from a reduced slot; NULL for a reduction of products

# The data of running rows lie close together: the rows themselves fill the first-level cache.
cdef struct RowSlot:
    char* data          # of the first row; NULL: a thread has memory
    intptr_t apart      # bytes from a row to the next; 0: one number everywhere, of which a thread has copies

cdef struct RowStep:
    cg_loop loop                    # of a map, else NULL
    const cg_reduction* reduction
    intptr_t elements               # of the output, a row
    intptr_t piece                  # elements that are computed at once
    intptr_t strides[MAX_OPERANDS]
    unsigned char slots[MAX_OPERANDS]
    unsigned char inputs, dtype
    bint each                       # whether each row has a scalar, and a call, of its own
    bint long                       # whether it is vector mathematics
    bint fetches_own                # whether its loop prefetches its operands of the next rows
    bint fetches                    # whether parts of the next rows are fetched before its pieces

cdef struct Fetched:
    int slot
    intptr_t part       # bytes that are fetched at once

cdef struct Rows:
    int step_count, fetched_count
    RowSlot slots[MAX_SLOTS]
    RowStep steps[MAX_STEPS]
    Fetched fetched[MAX_SLOTS]

cdef struct Tiles:
    int ndim, cost, slot_count, step_count, result
    int itemsize                    # the largest one of a slot
    intptr_t shape[MAX_DIMS]
    char is_reduced[MAX_DIMS]
    Slot slots[MAX_SLOTS]
    Step steps[MAX_STEPS]
    # The cut, which `cut` decides.
    intptr_t row                    # elements of a row, where tiles are some rows, or by passes; else 0
    intptr_t row_count
    Rows rows                       # where tiles are some rows
    bint passes                     # there are no tiles: rows are too long
    int dim                         # that tiles are cut along; -1: there is one tile
    intptr_t size                   # of a tile in that dim
    intptr_t along                  # tiles along that dim
    intptr_t count                  # tiles in all
    intptr_t slot_bytes             # of a thread's memory for one slot
    int threads
    intptr_t streamed               # item size above which no cache will hold the result until it is read

# The elements of an output as one dense row, and how many there are; False where they are not.
cdef bint find_rows(const Tiles* tiles, intptr_t* row, intptr_t* rows) noexcept nogil
cdef bint is_repeated_scalar(const Tiles* tiles, const Slot* slot) noexcept nogil        # of an array: one number in every place
cdef intptr_t streamed_above(const Tiles* tiles, intptr_t total) noexcept nogil
# Decide about threads, and the memory of each for a tile of some elements.
cdef void provide(Tiles* tiles, intptr_t elements, intptr_t total) noexcept nogil
