"""Passes: formulas of tiles whose rows are longer than tiles, and whose results are reduced. Each fold is a pass over a row.

The maps before a fold are a program, so nothing of a row's length is written. The bits are those of operators one by one.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.tiles cimport Slot, Tiles

# The elements of an output as one dense row, and how many there are; False where they are not.
cdef bint find_rows(const Tiles* tiles, intptr_t* row, intptr_t* rows) noexcept nogil
cdef bint is_number(const Tiles* tiles, const Slot* slot) noexcept nogil        # of an array: one number in every place
# False: the formula has steps that a pass has not.
cdef bint cut_passes(Tiles* tiles) noexcept nogil
# `memory`: of the slots times `slot_bytes`. False: out of memory.
cdef bint run_passes(const Tiles* tiles, char* memory) noexcept nogil
