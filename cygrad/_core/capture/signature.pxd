"""The kind of the arguments of a call: of all values in them, and of the memory that tensors share.

Kernels compute with the plain tensors behind tensors that stand for examples of `vmap`, or have tangents. A form says how a tensor is made
of them: None, it is a plain one; (number of a level, form of all examples); (number of a level, form of the value, form of the tangent).
Levels have the numbers of their places in a tuple.
"""
from cygrad._core.graph.tensor cimport TensorImpl

# The kind of a tensor; the plain ones behind it are appended.
cdef object kind_of_parts(TensorImpl tensor, list tensors, tuple levels, bint may_have_hooks=?)

cdef class Parts:
    cdef readonly list tensors, objects, others
    cdef dict known     # where floats are tensors: containers by id, as a second place of one has the tensors of the first
