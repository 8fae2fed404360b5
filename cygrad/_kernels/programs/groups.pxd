"""Groups: maps and copies that run together on one block after the other, with the addresses of their arrays given at each run.

Kernels add themselves to the program of a group, with places instead of addresses: numbers that stand for memory. Operands that overlap are
at different places, but one array is at one place. Numbers, and parameters, have addresses in the arguments of the kernels, which stay.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport Operand, cg_kernel
from cygrad._kernels.programs.steps cimport MAX_SLOTS, Program

cdef struct Group:
    Program program
    int count
    int slots[MAX_SLOTS]        # those that get the addresses, in order

# Add a kernel of arguments and places as a step; False, and nothing is added, where it does not fit.
ctypedef bint (*fuse_function)(Program* program, const void* arguments, char** places) noexcept

# Of a map over inputs and an output, in their order. `fresh`: the memory after the end of the output may be written.
cdef bint fuse_elementwise(Program* program, const cg_kernel* kernel, int dtype, int masks, const void* params, int cost, int inputs,
                           Operand* operands, bint fresh, int ndim, const intptr_t* shape) noexcept
cdef bint fuse_loop(Program* program, const void* arguments, char** places) noexcept
cdef bint fuse_copy(Program* program, const void* arguments, char** places) noexcept
cdef bint fuse_move(Program* program, const void* arguments, char** places) noexcept
cdef int run_group(void* arguments, char** data) noexcept nogil
