"""Sums of steps: steps that add, subtract and scale small arrays become one, a sum of multiples, with the same bits.

Large arrays are summed so by groups (`grouping`, `programs.calls`).
"""
from cygrad._core.graph.notes cimport Notes

# Join the steps of both parts of a program, and return the first step of the second part. `shared`: slots that are left as they are;
# `results`: slots whose last values are needed after the program.
cdef Py_ssize_t join_sums(Notes notes, Py_ssize_t split, set shared, set results) except -1
