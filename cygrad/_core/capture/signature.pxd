"""The kind of the arguments of a call: all that a captured program depends on but the values of tensors.

Kernels compute with the plain tensors behind tensors that stand for examples of `vmap`, or have tangents. A form says how a tensor is made
of them: None, it is a plain one; (number of a level, form of all examples); (number of a level, form of the value, form of the tangent).
Levels have the numbers of their places in a tuple. Behind a sparse tensor are its values; its kind has the pattern of their places.
"""
from cygrad._core.graph.tensor cimport TensorImpl

cdef object kind_of_parts(TensorImpl tensor, list tensors, tuple levels, bint may_have_hooks=?)
cdef bint is_of_kind(TensorImpl tensor, tuple kind, list tensors, bint may_have_hooks) except -1
cdef object plain_kind(object value)
cdef bint is_plain_value(object value)
