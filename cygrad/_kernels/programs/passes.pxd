"""Passes: programs whose rows are longer than tiles, and whose results are reduced. Each reduction is a pass over a row.

The maps before a reduction run block by block, so nothing of a row's length is written. Operators one by one give the same bits.
"""
from cygrad._kernels.programs.cuts cimport Cut

# False: the program has steps that a pass has not.
cdef bint cut_passes(Cut* cut) noexcept nogil
# `memory`: of the slots times `slot_bytes`. False: out of memory.
cdef bint run_passes(const Cut* cut, char* memory) noexcept nogil
