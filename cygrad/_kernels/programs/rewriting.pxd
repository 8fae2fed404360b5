"""Rewriting: fewer steps with the same bits.

Sums, differences and multiples of arrays, one after the other, are one loop. A value that is copied is made at the place of the copy.
"""
from cygrad._kernels.drivers.sums cimport Sum
from cygrad._kernels.programs.steps cimport Program, Step

# Read a step as a sum of multiples of slots; False where it is none.
cdef bint read_sum(const Program* program, const Step* step, Sum* sum) noexcept nogil
# Make values that have no memory where a step copies them.
cdef void write_in_place_of_copies(Program* program) noexcept nogil
