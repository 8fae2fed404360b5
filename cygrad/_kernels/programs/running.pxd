"""Running: the one door of the executors. Programs run fused; where they are checked, step by step as well."""
from libc.stdint cimport intptr_t

from cygrad._kernels.programs.calls cimport Pass
from cygrad._kernels.programs.steps cimport Program
from cygrad._kernels.programs.tiles cimport Tiles

cdef enum Way:
    BLOCKS          # of maps, over any geometries; the last step, but maps of single numbers, may reduce all elements of a dense array
    ROWS            # blocks of some rows
    TILES           # of any dims, where each step is a call of a driver
    PASSES          # over one long row, or rows that are longer than tiles

cdef struct Plan:
    const Program* program
    Way way
    intptr_t memory_bytes
    Pass rows
    Tiles tiles

# Choose the way of a program of maps, and at last a reduction of all elements and maps of single numbers, or none.
cdef void plan_blocks(Plan* plan, const Program* program) noexcept nogil
# Choose the way of any program; False: its reductions are too large for all of them.
cdef bint plan_program(Plan* plan, const Program* program) noexcept nogil
# `memory`: of `memory_bytes`. -1: out of memory.
cdef int run_program(const Plan* plan, char* memory) noexcept nogil
