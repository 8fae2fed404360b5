"""Shortening: steps over small arrays that another step can do, with the same bits, are removed.

- Steps that add, subtract and scale become the step that reads them: a sum of multiples.
- A value that is only copied is written at the place of the copy.

Groups (`grouping`) do the same with large arrays.
"""
from cygrad._core.graph.notes cimport Notes

# Shorten both parts of a program, and return the first step of the second part. `results`: slots whose last values are needed after the
# program. Shared slots, and slots of forgotten steps, are left as they are.
cdef Py_ssize_t shorten(Notes notes, Py_ssize_t split, set results) except -1
