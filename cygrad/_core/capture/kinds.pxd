"""Kinds of tensors and of plain values: all that a captured program depends on but the values of tensors.

The comparisons are the quick part of a call: `has_signature` makes no kinds. Behind a sparse tensor are its values; its kind has the
pattern of their places, too.
"""
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.storage cimport Storage

# The kind of a tensor that stands for no others.
cdef object kind_of(TensorImpl tensor, bint may_have_hooks)
# A tensor outside of levels is of a kind; the plain one behind it is appended.
cdef bint is_of_kind(TensorImpl tensor, tuple kind, list tensors, bint may_have_hooks) except -1
cdef bint has_pattern(TensorImpl tensor) noexcept
# The pattern of a sparse tensor, and how often its index tensors were changed: the first half of its kind.
cdef tuple pattern_kind(TensorImpl tensor)
cdef object plain_kind(object value)
cdef bint is_plain_value(object value)
# The settings that bits and dtypes of results depend on, as a number.
cdef int result_settings() noexcept
# The 0-d tensor that a float is as an input.
cdef TensorImpl tensor_of_float(object value)
# Two owners of memory are one, or both have memory of NumPy or another library that overlaps.
cdef bint owners_overlap(Storage a, Storage b)
# Which tensors lie in the memory of others, and how far from them.
cpdef object shared_memory(list tensors)
# The places where objects are first met; () if all are different ones.
cdef object shared_objects(list objects)
