"""Rewriting: fewer steps with the same bits.

A sum or difference with a multiple of an array is one loop. A value that is copied is made at the place of the copy.
"""
from cygrad._kernels.drivers.elementwise cimport cg_kernel
from cygrad._kernels.programs.steps cimport Program, Step

# A product of two operands, as operator or as gradient.
cdef bint is_product(const Step* step) noexcept nogil
# The loop of a step and the step before, a product with a number, which are called with (a, b) and the number as its parameter; or NULL.
cdef const cg_kernel* scaled_loop(const Program* program, int k, int* slots, const void** params) noexcept nogil
# Make values that have no memory where a step copies them.
cdef void write_in_place_of_copies(Program* program) noexcept nogil
