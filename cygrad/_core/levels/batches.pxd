"""Batches: a batched tensor stands for one example of those that vmap computes all at once.

Its geometry is the example's, and `inner` holds all examples along dim 0. It has the history and the tangents of `inner`, so the engine
differentiates all examples at once. Needs the GIL.
"""
from cpython.object cimport PyObject

from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.levels.fronts cimport Front
from cygrad._core.levels.level cimport Level

cdef class Batch(Front):
    cdef readonly Level level

cdef bint is_special(TensorImpl tensor) except -1
cdef Batch batch_of(TensorImpl tensor)
cdef list levels_of_batch(TensorImpl tensor)
cdef Batch kernel_batch(TensorImpl tensor)
cdef TensorImpl private_examples(PyObject* object)
cdef TensorImpl enter(TensorImpl tensor, Level level)
cdef TensorImpl leave(TensorImpl tensor, Level level)
