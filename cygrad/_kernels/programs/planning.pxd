"""Planning: how long the values of a program live, which of its steps are needed, and by which parts it runs.

Parts of programs with reductions are tiles of the outputs. Where a tile is some dense rows, its steps are calls of loops; where rows are
longer than tiles, each reduction is a pass. Each step gives the bits that its own driver gives for the whole.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport MAX_OPERANDS, cg_loop
from cygrad._kernels.drivers.reduction cimport cg_reduction
from cygrad._kernels.programs.steps cimport MAX_SLOTS, MAX_STEPS, Program

cdef enum Way:
    BLOCKS          # of maps alone, over any geometries
    REDUCED_BLOCKS  # the last step, and no other, reduces, and all elements
    TILES           # of any dims, where each step is a call of a driver
    ROWS            # where a tile is some rows
    PASSES          # over rows that are longer than tiles

# The data of running rows lie close together: the rows themselves fill the first-level cache.
cdef struct RowSlot:
    char* data          # of the first row; NULL: a thread has memory
    intptr_t apart      # bytes from a row to the next; 0: one number everywhere, of which a thread has copies

cdef struct RowStep:
    cg_loop loop                    # of a map, else NULL
    const cg_reduction* reduction
    const void* params
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

cdef struct Plan:
    const Program* program
    Way way
    intptr_t row, row_count         # elements of a row, and rows, of ROWS and PASSES
    Rows rows
    int dim                         # that tiles are cut along; -1: there is one tile
    intptr_t size                   # of a tile in that dim, or in rows
    intptr_t along                  # tiles along that dim
    intptr_t count                  # tiles in all
    intptr_t slot_bytes             # of a thread's memory for one slot
    int threads
    intptr_t memory_bytes           # of the memory of all threads
    intptr_t streamed               # item size above which no cache will hold an output until it is read

# Among the steps from `first` up to `last`, which is not one of them; NONE if there is none.
cdef int last_reader(const Program* program, int slot, int first, int last) noexcept nogil
# The value that a slot has before step `first` is read by it or a later one, up to `last`, which is not one of them.
cdef bint is_live(const Program* program, int slot, int first, int last) noexcept nogil
# Mark the steps before `last` that compute the slots of `needed`, and all that these steps read. Slots `at_hand` need no step; NULL: none.
cdef void mark_needed(const Program* program, int last, const bint* at_hand, bint* needed, bint* marked) noexcept nogil
# The elements of an output as one dense row, and how many there are; False where they are not.
cdef bint find_rows(Plan* plan) noexcept nogil
# Decide about threads, and the memory of each for `slot_bytes` of each slot.
cdef void provide(Plan* plan, intptr_t slot_bytes, int threads) noexcept nogil
# The bytes of a slot for some elements of the widest dtype.
cdef intptr_t bytes_of_elements(const Program* program, intptr_t elements) noexcept nogil
