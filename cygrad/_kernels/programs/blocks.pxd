"""Blocks: maps, and reductions of rows, on one block after the other: intermediates never leave the cache.

Each step has the bits that the driver of one gives for the same operands.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.programs.calls cimport Pass
from cygrad._kernels.programs.steps cimport Program

cdef enum:
    PLACE = 128         # bytes of a single number: loops may run over the end

# All steps are maps and copies.
cdef void run_blocks(const Program* program) noexcept nogil
# One step reduces all elements of a dense output, which is made block by block; those before are maps, those after it maps of single
# numbers. `memory`: of `bytes_of_reduction` for the elements of an array and the steps from the reduction on.
cdef intptr_t bytes_of_reduction(intptr_t total, int steps) noexcept nogil
cdef void reduce_blocks(const Program* program, char* memory) noexcept nogil
# `memory`: of `row_memory` for each thread of a pass by rows; NULL where blocks are not rows.
cdef void run_pass(const Pass* part, char* memory) noexcept nogil
