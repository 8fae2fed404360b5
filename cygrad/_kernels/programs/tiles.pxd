"""Tiles: maps and reductions of any dims, on one part of the outputs after another. Each step is a call of its driver."""
from libc.stdint cimport intptr_t

from cygrad._kernels.programs.steps cimport Program

cdef struct Tiles:
    const Program* program
    int dim                         # that tiles are cut along; -1: there is one tile
    intptr_t size                   # of a tile in that dim
    intptr_t along                  # tiles along that dim
    intptr_t count                  # tiles in all
    intptr_t slot_bytes             # of a thread's memory for one slot
    int threads
    intptr_t streamed               # item size above which no cache will hold an output until it is read

# Cut the dims before the reduced ones; False: the reduced ones alone are too large for a tile.
cdef bint cut_tiles(Tiles* tiles, const Program* program) noexcept nogil
# One tile; `memory`: of the slots times `slot_bytes`. False: out of memory.
cdef bint run_tile(const Tiles* tiles, intptr_t tile, char* memory) noexcept nogil
# All of them; `memory`: as much for each thread. False: out of memory.
cdef bint run_tiles(const Tiles* tiles, char* memory) noexcept nogil
