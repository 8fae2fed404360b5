"""Maps over one space, block by block: intermediates never leave the cache."""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.reduction cimport cg_reduction
from cygrad._kernels.programs.steps cimport Program

# All steps are maps and copies. Each has the bits that the driver of one gives for the same operands.
cdef void run_blocks(const Program* program) noexcept nogil
# Reduce all elements of an output, which is made block by block and not written to its memory; all other outputs are. -1: out of memory.
cdef int reduce_blocks(const cg_reduction* reduction, const Program* program, int slot, char* output) noexcept nogil
