"""Tangents: a tensor with tangents is an ordinary tensor that has, beside its value, one Dual for each level.

Views share the Duals of their bases, so that all see a write into one of them. The tangents of a batched tensor
are the tangents of all its examples. Needs the GIL.
"""
from cpython.object cimport PyObject

from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.levels.level cimport Level

cdef class Dual:
    cdef Level level
    cdef TensorImpl tangent
    cdef tuple layout                       # sizes, strides, dtype, first byte that the tangent belongs to; None: of the tensor that has it
    cdef Dual below                         # of a lower level
    cdef PyObject* before                   # in the level's list
    cdef PyObject* behind

cdef void unlink_dual(Dual dual) noexcept
cdef Dual visible(Dual dual)
cdef Dual visible_dual(TensorImpl tensor)
cdef TensorImpl tangent_at(TensorImpl tensor, Level level)
cdef TensorImpl arranged_tangent(TensorImpl tensor, Level level)
cdef TensorImpl whole_tangent(TensorImpl tensor, Level level)
cdef int share(TensorImpl view, TensorImpl source) except -1
cdef int refuse_lost_tangent(TensorImpl tensor, str call, object error) except -1
cdef int add_tangent(TensorImpl tensor, Level level, TensorImpl tangent) except -1
