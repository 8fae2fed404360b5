"""Tensors that are written whole: copied into, filled, set to zero.

The functions are the methods of Tensor too: their first argument is the tensor.
"""
from cygrad._core.compute.indexing cimport scalar_like, set_item
from cygrad._core.compute.inplace cimport check_in_place, cut_history
from cygrad._core.graph.rules cimport needs_node
from cygrad._core.graph.tensor cimport TensorImpl, count_change
from cygrad._core.operands.operands cimport copy_into


def copy_(TensorImpl self not None, other, non_blocking=False):
    """Copy the elements of `other`, broadcast and converted, into this tensor."""
    set_item(self, Ellipsis, other)
    return self


def fill_(TensorImpl self not None, value):
    """Set all elements to a number (or a 0-d tensor)."""
    if isinstance(value, TensorImpl) and (<TensorImpl>value).ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {(<TensorImpl>value).ndim} dimensions.")
    set_item(self, Ellipsis, value)
    return self


def zero_(TensorImpl self not None):
    """Set all elements to 0."""
    check_in_place(self, False)
    copy_into(self, scalar_like(self, 0))
    count_change(self)
    if needs_node(self, None):
        cut_history(self, True)
    return self
