"""Copies in place of views: the results of `x[i]` while notes follow the place that a tensor i names.

A program has no views at places that it reads. A copy has the same values as long as neither is written: its memory is read-only, and
notes ask whether the whole was written since.
"""
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.storage cimport Storage

cdef class PartCopies:
    cdef dict copies            # number of a storage: the storage, the storage of the whole, and its version then
    cdef int add(self, TensorImpl copy, TensorImpl whole) except -1
    # A copy whose whole was written since.
    cdef bint is_stale(self, Storage storage) except -1
