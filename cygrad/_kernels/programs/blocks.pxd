"""Blocks: maps, and reductions of rows, on one block after the other: intermediates never leave the cache.

Each step has the bits that the driver of one gives for the same operands.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.programs.calls cimport Pass
from cygrad._kernels.programs.steps cimport Program, Step

cdef enum:
    PLACE = 128         # bytes of a single number: loops may run over the end

# Steps are maps and copies; or one reduces all elements of a dense output, which is made block by block, and those after it are maps of
# single numbers. `memory`: `partial_bytes` of the elements of an array, for a reduction.
cdef void run_blocks(const Program* program, char* memory) noexcept nogil
# A map of single numbers, all of which have memory.
cdef void run_on_number(const Program* program, const Step* step) noexcept nogil
# `memory`: of `row_memory` for each thread of a pass by rows; NULL where blocks are not rows.
cdef void run_pass(const Pass* part, char* memory) noexcept nogil
