"""What is special about a tensor: the tangents of forward mode, the batches of vmap, and the levels they belong to.

A level is one forward-mode differentiation or one vmap in progress; inner ones have higher numbers. A tensor with tangents is an
ordinary tensor that has, beside its value, one Dual for each level; views share the Duals of what they are views of, so that what is
written into one of them is seen by all. A batched tensor stands for one example: its geometry is the
example's, and `inner` holds all examples along dim 0. Histories and tangents of a batched tensor are those of `inner`, so the engine
differentiates all examples at once. Needs the GIL.
"""
from cpython.object cimport PyObject

from cygrad._core.graph.tensor cimport TensorImpl

cdef class Level:
    cdef readonly unsigned long long number
    cdef readonly Py_ssize_t size           # of the batch; -1: forward mode
    cdef readonly object randomness         # of vmap: "error", "same" or "different"
    cdef readonly Level outer               # in this thread
    cdef readonly bint active
    cdef readonly bint recorded             # whether tangents go where history goes: not seen while grad mode is off
    cdef bint in_backward                   # but in the backward that the level is for
    cdef PyObject* duals                    # linked: what dies with the level

cdef class Dual:
    cdef Level level
    cdef TensorImpl tangent
    cdef tuple layout                       # sizes, strides, offset that the tangent belongs to; None: those of who has it
    cdef Dual below                         # of a lower level
    cdef PyObject* before                   # in the level's list
    cdef PyObject* behind

cdef class Batch:
    cdef readonly Level level
    cdef readonly TensorImpl inner

cdef unsigned long long* ceiling() noexcept nogil       # levels from this number on are not seen by this thread
cdef Dual visible_dual(TensorImpl tensor)
cdef bint is_special(TensorImpl tensor) except -1
cdef Batch batch_of(TensorImpl tensor)
cdef TensorImpl all_examples(TensorImpl tensor)
cdef Batch plain_batch(TensorImpl tensor)
cdef TensorImpl private_examples(PyObject* object)
cdef TensorImpl tangent_at(TensorImpl tensor, Level level)
cdef int share(TensorImpl view, TensorImpl source) except -1
cdef int add_tangent(TensorImpl tensor, Level level, TensorImpl tangent) except -1
cdef TensorImpl enter(TensorImpl tensor, Level level)
cdef TensorImpl leave(TensorImpl tensor, Level level)
