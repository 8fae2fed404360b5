"""Fronts: tensors without elements of their own (see fronts.pxd for the contract)."""
cimport cython

from cygrad._core.graph.tensor cimport FRONT, TensorImpl, special_active


@cython.binding(False)
cdef class Front:
    """The tensor behind one that has no elements; `around(inner)` of each kind makes a front of another tensor."""

    def __cinit__(self):
        global special_active
        special_active += 1     # also of a batch that outlives its level: it is refused, so operators have to look

    def __dealloc__(self):
        global special_active
        special_active -= 1


cdef Front front_of(TensorImpl tensor):
    """Return the Front of a tensor that is one."""
    return <Front>tensor.special


cdef TensorImpl innermost(TensorImpl tensor):
    """Return the tensor that holds the elements, the history and the tangents of a front; any other as it is."""
    while tensor.flags & FRONT:
        tensor = front_of(tensor).inner
    return tensor
