"""Tiles: maps and folds of one shape that run on a part of the outputs after the other, so that what lies between never leaves the cache.

Knows nothing of tensors. Arrays are row-major, or one number. Each step computes what its own driver computes of the whole, to the bit.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, MAX_OPERANDS, Operand, cg_kernel, cg_loop
from cygrad._kernels.drivers.reduction cimport cg_reduction

cdef enum:
    MAX_STEPS = 16
    MAX_SLOTS = 24

cdef struct Slot:
    Operand array       # of the whole, stride 0 where it is repeated; data NULL: a thread has memory for a tile of it
    bint reduced        # of size 1 in the folded dims
    # Of tiles that are rows:
    intptr_t apart      # bytes from a row to the next
    bint repeated       # one number everywhere: a thread has copies of it
    bint fetched        # ahead of the steps that read it
    intptr_t part       # bytes that are fetched at once

cdef struct Step:
    const cg_kernel* kernel         # of a map, else NULL
    const cg_reduction* reduction
    int dtype                       # of the loop
    int masks                       # inputs that are read as bool (bits)
    int inputs
    int slots[MAX_OPERANDS]         # of the inputs, then of the output
    # Of tiles that are rows:
    cg_loop loop
    intptr_t strides[MAX_OPERANDS]
    intptr_t elements               # of the output, a row
    intptr_t piece                  # elements that are computed at once
    bint fetches                    # whether parts of the next rows are fetched before its pieces
    bint each                       # whether each row has a scalar, and a call, of its own

cdef struct Tiles:
    int ndim, cost, slot_count, step_count, result
    int itemsize                    # the largest one of a slot
    intptr_t shape[MAX_DIMS]
    char folded[MAX_DIMS]
    Slot slots[MAX_SLOTS]
    Step steps[MAX_STEPS]
    # The cut, which `cut` decides.
    intptr_t row                    # elements of a row, where tiles are some rows, or by passes; else 0
    intptr_t rows
    bint passes                     # there are no tiles: rows are too long
    int dim                         # that tiles are cut along; -1: there is one tile
    intptr_t size                   # of a tile in that dim
    intptr_t along                  # tiles along that dim
    intptr_t count                  # tiles in all
    intptr_t slot_bytes             # of a thread's memory for one slot
    int threads
    intptr_t streamed               # item size above which no cache will hold the result until it is read

# Cut the dims before those that are folded into tiles; False: the others alone are too large for one, and there are no passes.
cdef bint cut(Tiles* tiles) noexcept nogil
# `memory`: of `threads` times the slots times `slot_bytes`. False: out of memory.
cdef bint run_tiles(const Tiles* tiles, char* memory) noexcept nogil
