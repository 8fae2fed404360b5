"""Calls: the loops that run the steps of a pass, and where they find their operands.

A pass goes over memory once, block by block. Where it reduces rows, a block is some of them, and a slot may have one number for each row;
else a row is one element.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, MAX_OPERANDS, Operand, cg_cast, cg_loop
from cygrad._kernels.drivers.reduction cimport Producer, cg_reduction
from cygrad._kernels.drivers.sums cimport Sum, SumNumbers
from cygrad._kernels.drivers.traversal cimport PADDING
from cygrad._kernels.programs.steps cimport MAX_BLOCKS, MAX_LAID, MAX_REPEATED, MAX_SLOTS, MAX_STEPS, Program

cdef enum:
    BLOCK_BYTES = 1 << 13       # of a slot, where all of them fit the first-level cache
    SHORT_BLOCK_BYTES = 1 << 9  # arrays that come from memory are read side by side: prefetchers follow that; beside many blocks
    # Of blocks on the stack: a thread of musl has 128 KiB, of which a reduction takes 75 and this 37.
    MEMORY = (MAX_BLOCKS * (SHORT_BLOCK_BYTES + PADDING) + MAX_REPEATED * (SHORT_BLOCK_BYTES + PADDING)
              + MAX_LAID * (2 * SHORT_BLOCK_BYTES + PADDING))

# The data of a running step lie close together: blocks fill the first-level cache.
cdef struct Call:
    cg_loop loop                        # of whole vectors; NULL: a reduction, or a copy
    cg_loop loop_of_rest
    cg_loop stream                      # the loop that writes past the caches, or NULL
    const cg_reduction* reduction
    cg_cast convert                     # of a copy between dtypes
    const void* params
    intptr_t strides[MAX_OPERANDS]
    intptr_t apart[MAX_OPERANDS]        # bytes from a row to the next
    unsigned char places[MAX_OPERANDS]
    unsigned char inputs, dtype
    unsigned char fetched               # inputs (bits) that no step before has read from memory
    bint reduced                        # the output has one number for each row
    bint each                           # whether each row has a scalar, and a call, of its own
    bint shifted                        # the loop of two steps, a map of a difference from a number; of whole vectors, it prefetches itself
    bint long                           # whether it is vector mathematics
    bint is_last                        # no later call of the pass writes its output

# Steps that go over memory once.
cdef struct Pass:
    Producer producer                   # of the slot that is reduced; the first member, so that `make_block` has its pass
    const Program* program
    int itemsize, end                   # of the widest element; of the steps: all, or those before a reduction
    int threads
    bint stream                         # outputs are so large that no cache will hold them until they are read
    int redirected                      # the output that is reduced, which is written to another block; NONE
    bint by_rows
    intptr_t row
    intptr_t length, slot_bytes         # elements of a block; whole lines of a slot's, and of the memory after it, which loops may write
    intptr_t lanes                      # in which loops of this pass run: rows of arrays in place are multiples of it
    int laid_count, ndim                # arrays that are read by traversals, over the joined dims
    intptr_t shape[MAX_DIMS]
    int laid_slots[MAX_LAID]
    Operand laid[MAX_LAID + 1]          # and, while dims are joined, an output
    bint written[MAX_LAID]
    Call calls[MAX_STEPS]
    Sum sums[MAX_STEPS]                 # that calls compute; of no terms: another formula
    SumNumbers numbers[MAX_STEPS]       # of their loops
    int repeated[MAX_REPEATED]          # numbers that have a block,
    bint whole[MAX_REPEATED]            # of more than an element for each row
    bint in_block[MAX_SLOTS]            # the values are made in a block, and copied where the slot has memory
    unsigned char blocks[MAX_SLOTS]     # the numbers of the blocks: values that do not live at one time share one
    int call_count, block_count, repeated_count

# A pass over the steps before `end`, block by block.
cdef void cut_blocks(Pass* part, const Program* program, int end) noexcept nogil
# One pass, block by block of some dense rows; False: the program has no such rows, or a step has no loop for them.
cdef bint cut_rows(Pass* part, const Program* program) noexcept nogil
# The memory of a thread that runs a pass by rows.
cdef intptr_t row_memory(const Pass* part) noexcept nogil
