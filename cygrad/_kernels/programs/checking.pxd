"""Checks of programs: the same steps one by one in other memory that is full of NaN, and a comparison of bits.

A plan decides which steps of a program are needed, which values live in blocks, and which arrays are written over. A fault
of a plan is a fault of bits here. The first one is printed, all are counted.
"""
from cygrad._kernels.programs.steps cimport Program
from cygrad._kernels.programs.tiles cimport Tiles

cdef struct Check:
    Program program     # the same steps, in other memory
    Tiles whole          # its only tile
    char* memory

# Run the steps, before the program itself may write over their operands. False: there is no memory for it, and no check.
cdef bint begin_check(Check* check, const Program* program) noexcept nogil
# Compare the results of the program, unless it has failed.
cdef void end_check(Check* check, const Program* program, bint failed) noexcept nogil
# Count a kernel that ran twice; a fault, if the results differ.
cdef void count_kernel(const char* name, bint same) noexcept nogil
