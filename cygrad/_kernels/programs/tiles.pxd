"""Tiles: maps and reductions that run on one part of the outputs after another, so that intermediates never leave the cache."""
from libc.stdint cimport intptr_t

from cygrad._kernels.programs.cuts cimport Cut

# Cut the dims before the reduced ones into tiles; False: the reduced ones alone are too large for one, and there are no passes.
cdef bint choose_cut(Cut* cut) noexcept nogil
# One tile; `memory`: of the slots times `slot_bytes`. False: out of memory.
cdef bint run_tile(const Cut* cut, intptr_t tile, char* memory) noexcept nogil
# All of them, or passes; `memory`: of `threads` times the slots times `slot_bytes`. False: out of memory.
cdef bint run_tiles(const Cut* cut, char* memory) noexcept nogil
