"""The plain tensors behind tensors that stand for examples of `vmap`, or have tangents: kernels compute with these alone.

A form says how a tensor is made of them: None, it is a plain one; (number of a level, form of all examples); (number of a level, form of
the value, form of the tangent). Levels have the numbers of their places in a tuple.
"""
from cygrad._core.graph.tensor cimport TensorImpl

cdef object take_parts(TensorImpl tensor, list parts, tuple levels)
