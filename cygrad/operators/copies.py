"""Copies of a tensor, in its dtype or another, writes into all of it, and memory given to it in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from cygrad._core.compute import copies, filling
from cygrad._core.exchange import replacement
from cygrad._core.graph.rules import declare_rule
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import _leave_or_sum
from cygrad._core.memory.formats import contiguous_format
from cygrad._core.memory.looks import refuse_change
from cygrad._core.memory.storage import dtype_by_name
from cygrad.data.creation import ones
from cygrad.operators._language.arguments import delivered
from cygrad.operators._language.batches import in_any_order, is_tensor, same
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.tangents import constant, linear

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad._core.memory.formats import MemoryFormat
    from cygrad.tensor import Tensor
    from cygrad.typing import DTypeLike, Number, Operand


# ----- Copies -----
@operator(copies.clone, dinput=lambda g: g, tangent=linear, batch=in_any_order)
def clone(input: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """Copy that gradients flow through; a dense tensor's dims keep their order unless a memory format is given.

    >>> import cygrad
    >>> cygrad.ones(2).clone()
    tensor([1., 1.])
    """


@operator(copies.contiguous, tangent=linear, batch=in_any_order, function=False)
def contiguous(input: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """The tensor itself if it is dense and row-major, or as a memory format has it, else a copy that is.

    >>> import cygrad
    >>> cygrad.zeros(2, 3).T.contiguous().is_contiguous()
    True
    """


@operator(copies.convert, dinput=lambda g, dtype: g._convert(dtype), node="ToCopyBackward0", tangent=linear, batch=same)
def _convert(input: Tensor, dtype: DTypeLike, copy: bool = False) -> Tensor:
    """Return the tensor in another dtype; itself if it has that dtype and no copy is asked for."""


@operator(copies.detach, tangent=constant, batch=same, copy=True)
def detach(input: Tensor) -> Tensor:
    """Tensor of the same memory, and the same version counter, that needs no gradient.

    >>> import cygrad
    >>> cygrad.ones(2, requires_grad=True).detach().requires_grad
    False
    """


@operator
def detach_(self: Tensor) -> Tensor:
    """Make this tensor a leaf that needs no gradient; RuntimeError for a view.

    A node that has saved it as its result keeps the history; one that has saved it as an operand refuses to differentiate, as in torch.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True) * 2
    >>> x.detach_() is x, x.requires_grad
    (True, False)
    """
    if self._is_view():
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    if self.requires_grad:
        refuse_change("its history was taken away")
    self._forget_history()
    return self


declare_rule("alias", dinput=lambda g: g)
declare_rule("enter", dinput=lambda g, level: _leave_or_sum(g, level), node="ExpandBackward0")


# ----- Writing: the gradient of the former values is zero -----
def _zeros(g: Tensor) -> Tensor:
    return g.new_zeros(g.shape)


def _write(self: Tensor, other: Operand, non_blocking: bool = False) -> Tensor:
    self[...] = other
    return self


@operator(filling.copy_, dself=_zeros, dother=lambda g, shape, dtype: g.sum_to_size(shape)._convert(dtype), node="CopyBackwards",
          parts=_write)
def copy_(self: Tensor, other: Operand, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `other`, broadcast and converted, into this tensor.

    >>> import cygrad
    >>> cygrad.zeros(2).copy_(cygrad.tensor([1, 2]))
    tensor([1., 2.])
    """


@operator(filling.fill_, dself=_zeros,
          parts=lambda self, value: NotImplemented if is_tensor(value) and value.ndim else _write(self, value))
def fill_(self: Tensor, value: Operand) -> Tensor:
    """Set all elements to a number (or a 0-d tensor).

    >>> import cygrad
    >>> cygrad.zeros(2).fill_(3)
    tensor([3., 3.])
    """


@operator(method=False, forms=True)
def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """Copy of the tensor's shape and dtype with a number, or a 0-d tensor, as all elements; the gradient of `input` is 0.

    >>> import cygrad
    >>> cygrad.fill(cygrad.zeros(2), 3)
    tensor([3., 3.])
    """
    if isinstance(value, TensorImpl) and value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    return input.masked_fill(ones((), dtype=dtype_by_name["bool"]), value)


@operator(method=False)
def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Copy of the tensor, row-major.

    >>> import cygrad
    >>> cygrad.alias_copy(cygrad.ones(2))
    tensor([1., 1.])
    """
    return delivered(input.clone(memory_format=contiguous_format), out)


@operator(filling.zero_, dself=_zeros, parts=lambda self: _write(self, 0))
def zero_(self: Tensor) -> Tensor:
    """Set all elements to 0.

    >>> import cygrad
    >>> cygrad.ones(2).zero_()
    tensor([0., 0.])
    """


# ----- Other memory -----
@operator(function=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another."""
    return self.to(other.dtype)


@overload
def resize_(self: Tensor, *size: int, memory_format: MemoryFormat | None = None) -> Tensor: ...
@overload
def resize_(self: Tensor, size: Sequence[int], *, memory_format: MemoryFormat | None = None) -> Tensor: ...
@operator(replacement.resize_, special=False)
def resize_(self: Tensor, *size: Any, memory_format: MemoryFormat | None = None, **keywords: Any) -> Tensor:
    """Give the tensor another shape, and memory format, in place; elements keep their order in memory, and new ones are undefined.

    Where the memory is too small, the tensor gets other memory; tensors and arrays that shared it keep the old one. (In torch
    they would see the new one.) RuntimeError for a tensor that requires grad.

    >>> import cygrad
    >>> cygrad.arange(4).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """


@operator(replacement.resize_as_, special=False)
def resize_as_(self: Tensor, the_template: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
    """Give the tensor the shape of another in place; see `resize_`."""


@operator(replacement.set_, special=False)
def set_(self: Tensor, source: Tensor | None = None, storage_offset: int | None = None, size: Sequence[int] | None = None,
         stride: Sequence[int] | None = None) -> Tensor:
    """Lay the tensor over the memory of `source`: all of it as it is laid out there, or by offset, sizes and strides.

    Both share memory, and each counts its own changes. Without a source the tensor becomes an empty vector.
    RuntimeError for a tensor that requires grad, unless grad mode is off: then it keeps its history, as with `.data =`.

    >>> import cygrad
    >>> cygrad.ones(2).set_(cygrad.zeros(3))
    tensor([0., 0., 0.])
    """
