"""The kind of the arguments of a call: all that a captured program depends on but the values of tensors."""
from cygrad._core.graph.tensor cimport TensorImpl

cdef object kind_of_parts(TensorImpl tensor, list tensors, tuple levels)
cdef object plain_kind(object value)
cdef bint is_plain_value(object value)
