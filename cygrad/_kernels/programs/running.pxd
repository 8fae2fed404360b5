"""Running: the one door of the executors. Programs run fused; where they are checked, step by step as well."""
from cygrad._kernels.drivers.reduction cimport cg_reduction
from cygrad._kernels.programs.cuts cimport Cut
from cygrad._kernels.programs.steps cimport Program

# All steps are maps of arrays that are dense and padded, or of numbers.
cdef void run_program(const Program* program) noexcept nogil
# Reduce all elements of an output, which is made block by block and not written to its memory; all other outputs are. -1: out of memory.
cdef int reduce_program(const cg_reduction* reduction, const Program* program, int slot, char* output) noexcept nogil
# `memory`: of `threads` times the slots times `slot_bytes`. False: out of memory.
cdef bint run_cut(const Cut* cut, char* memory) noexcept nogil
