"""Blocks: maps, and reductions of rows, on one block after the other: intermediates never leave the cache.

Each step has the bits that the driver of one gives for the same operands.
"""
from cygrad._kernels.programs.calls cimport Pass
from cygrad._kernels.programs.steps cimport Program

# All steps are maps and copies.
cdef void run_blocks(const Program* program) noexcept nogil
# The last step reduces all elements of a dense output, which is made block by block; all others are maps. `memory`: of `partial_bytes`.
cdef void reduce_blocks(const Program* program, char* memory) noexcept nogil
# `memory`: of `row_memory` for each thread of a pass by rows; NULL where blocks are not rows.
cdef void run_pass(const Pass* part, char* memory) noexcept nogil
