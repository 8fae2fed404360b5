"""Cuts: how a program of maps and reductions over one set of dims is cut into parts that run one after the other.

Tiles are parts of the outputs; where they are some dense rows, their steps are calls of loops; where rows are longer than tiles, each
reduction is a pass. Each step gives the bits that its own driver gives for the whole.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport MAX_OPERANDS, cg_loop
from cygrad._kernels.drivers.reduction cimport cg_reduction
from cygrad._kernels.programs.steps cimport MAX_SLOTS, MAX_STEPS, Program

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

cdef struct Cut:
    const Program* program
    int result                      # the slot that leaves the program
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
cdef bint find_rows(const Program* program, intptr_t* row, intptr_t* rows) noexcept nogil
cdef void begin_cut(Cut* cut, const Program* program, int result) noexcept nogil
# Decide about threads, and the memory of each for a tile of some elements.
cdef void provide(Cut* cut, intptr_t elements) noexcept nogil
