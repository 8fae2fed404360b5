"""Recomputing: large values that cost less to compute again than to write and read.

Steps over large arrays run together as long as they go over one space. A value that later ones read, as a backward reads the differences of
all pairs, would be written to memory, and read again. If cheap steps make it from much less memory, they run again before the later steps.
"""
from cygrad._core.graph.notes cimport Notes

# Add such steps to both parts of a program, and return the first step of the second part. `results`: slots that are read after the program.
cdef Py_ssize_t recompute(Notes notes, Py_ssize_t split, set results) except -1
