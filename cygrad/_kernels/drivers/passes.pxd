"""Passes: formulas of tiles whose rows are longer than tiles, and whose results are reduced. Each reduction is a pass over a row.

The maps before a reduction are a program, so nothing of a row's length is written. Operators one by one give the same bits.
"""
from cygrad._kernels.drivers.tile_steps cimport Tiles

# False: the formula has steps that a pass has not.
cdef bint cut_passes(Tiles* tiles) noexcept nogil
# `memory`: of the slots times `slot_bytes`. False: out of memory.
cdef bint run_passes(const Tiles* tiles, char* memory) noexcept nogil
