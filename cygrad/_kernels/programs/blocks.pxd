"""Maps over one space, block by block: intermediates never leave the cache."""
from cygrad._kernels.programs.steps cimport Program

# All steps are maps and copies. Each has the bits that the driver of one gives for the same operands.
cdef void run_blocks(const Program* program) noexcept nogil
# The last step reduces all elements of an output that has no memory, and is made block by block; all others are maps. -1: out of memory.
cdef int reduce_blocks(const Program* program) noexcept nogil
