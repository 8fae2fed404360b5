"""Tiles: maps and reductions that run on one part of the outputs after another, so that intermediates never leave the cache."""
from libc.stdint cimport intptr_t

from cygrad._kernels.programs.planning cimport Plan

# Cut the dims before the reduced ones; False: the reduced ones alone are too large for a tile.
cdef bint cut_tiles(Plan* plan) noexcept nogil
# One tile, some rows too; `memory`: of the slots times `slot_bytes`. False: out of memory.
cdef bint run_tile(const Plan* plan, intptr_t tile, char* memory) noexcept nogil
# All of them; `memory`: of `memory_bytes`. False: out of memory.
cdef bint run_tiles(const Plan* plan, char* memory) noexcept nogil
