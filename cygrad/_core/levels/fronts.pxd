"""Fronts: tensors that have the geometry of an operand and no elements: `inner` has these, with the history and the tangents.

A batched tensor is the front of all examples, a sparse tensor of its values. `around` makes the same kind of front of another tensor, for
code that changes a history and computes nothing. Needs the GIL.
"""
from cygrad._core.graph.tensor cimport TensorImpl

cdef class Front:
    cdef readonly TensorImpl inner

cdef Front front_of(TensorImpl tensor)
cdef TensorImpl innermost(TensorImpl tensor)
