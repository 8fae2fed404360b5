"""Running: the one door of the executors. Programs run fused; where they are checked, step by step as well."""
from cygrad._kernels.programs.planning cimport Plan, Program

# Choose the way of a program; False: its reductions are too large for all of them.
cdef bint plan_program(Plan* plan, const Program* program) noexcept nogil
# `memory`: of `memory_bytes`. -1: out of memory.
cdef int run_program(const Plan* plan, char* memory) noexcept nogil
