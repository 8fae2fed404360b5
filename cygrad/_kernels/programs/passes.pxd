"""Passes: programs of one long row, or of rows that are longer than tiles, whose results are reduced. Each reduction is a pass over a row.

The maps before a reduction run block by block, so nothing of a row's length is written. Operators one by one give the same bits: rows are
longer than a block of the reduction driver.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.programs.steps cimport Program

# False: the program has steps that a pass has not.
cdef bint cut_passes(const Program* program, intptr_t* memory_bytes) noexcept nogil
# `memory`: of `memory_bytes`. False: out of memory.
cdef bint run_passes(const Program* program, char* memory) noexcept nogil
