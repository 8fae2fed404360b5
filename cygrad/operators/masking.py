"""Elements chosen by a mask: from one of two tensors, filled, taken out, or replaced."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, overload

from cygrad._core.compute.dispatch import ops as rows
from cygrad._core.compute.indexing import checked_key, put_values
from cygrad._core.compute.lookups import fill_where
from cygrad._core.operands.operands import broadcast_shape
from cygrad.operators._language.arguments import delivered
from cygrad.operators._language.batches import dynamic_shape
from cygrad.operators._language.declaration import IN_PLACE, changed_numbers, changing, operator, recorded
from cygrad.operators._language.places import value_for, vector_of
from cygrad.operators._language.tangents import filling, first_linear, linear
from cygrad.ops.gradients import padded

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Number, Operand


# ----- From one of two -----
def _where_method(self: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """Return elements of this tensor where `condition` holds, of `other` elsewhere."""
    return where(condition, self, other)


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@operator(method=_where_method)
def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None, *, out: Tensor | None = None) -> Any:
    """Elements of `input` where `condition` holds, of `other` elsewhere; the method is `input.where(condition, other)`.

    `condition` is a bool tensor; all three broadcast. With the condition alone: the indices where it holds, one tensor a dim.

    >>> import cygrad
    >>> cygrad.where(cygrad.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition.dtype.kind != "b" and condition.dtype.name != "uint8":
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}")
    return rows["where"](condition, input, other, out=out)


# ----- Masks -----
def _check_mask(message: str, mask: Tensor) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(f"{message} {mask.dtype}; compare, or convert it with .bool()")


def _check_reach(input: Tensor, mask: Tensor) -> None:
    """Refuse a mask that broadcasts to more than the target."""
    shape = broadcast_shape(mask, input)
    if shape != tuple(input.shape):
        raise RuntimeError(f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(shape)}")


def _chosen(input: Tensor, mask: Tensor) -> tuple[Any, int]:
    """Return an index of the elements where a mask holds, which broadcasts to the target, and how many there are."""
    _check_reach(input, mask)
    key, (count,) = checked_key(vector_of(input), (vector_of(mask.expand(input.shape)),))
    return key, count


def _target(input: Tensor, mask: Tensor, out: Tensor | None) -> Tensor:
    """Return the target: the input broadcast to the mask; in place that cannot be."""
    return input if out is IN_PLACE else input.expand(broadcast_shape(mask, input))


# ----- Fill -----
_FILL = "masked_fill_ only supports boolean masks, but got mask with dtype"


def _filled_batch(level, operator, x, mask, value):
    _check_mask(_FILL, mask)
    value = value_for(masked_fill, x, value)
    return value.where(mask, x)


@operator(dinput=lambda g, mask: g.masked_fill(mask, 0), dvalue=lambda g, mask: g.where(mask, 0.0).sum(), dmask=None,
          tangent=filling, batch=_filled_batch, in_place=changing, forms=True)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `value`, a number or a 0-d tensor, where the bool tensor `mask` holds.

    >>> import cygrad
    >>> cygrad.masked_fill(cygrad.ones(2), cygrad.tensor([True, False]), 0)
    tensor([0., 1.])
    """
    _check_mask(_FILL, mask)
    filling = value_for(masked_fill, input, value)
    if out is not IN_PLACE:
        x = input if input.shape == mask.shape else _target(input, mask, out)
        result = rows["where"](mask, filling.detach(), x.detach()).contiguous()
        return delivered(recorded(masked_fill, (x, filling, mask), result), out)
    _check_reach(input, mask)
    return changed_numbers(masked_fill, (input, filling, mask), lambda numbers: fill_where(numbers, mask, filling), out)


# ----- Take out, and replace -----
_SELECT = "masked_select: expected BoolTensor for mask, got"


def _selected_batch(level, operator, x, mask):
    """Select by a mask that is the same for all examples; by another the results would differ in shape."""
    _check_mask(_SELECT, mask)
    if level.holds(mask):
        dynamic_shape(level, operator)
    shape = broadcast_shape(mask, x)
    return x.expand(shape)[mask.expand(shape)]


@operator(dinput=lambda g, input_shape, mask: g.new_zeros(input_shape).masked_scatter(mask, g), dmask=None,
          tangent=first_linear, batch=_selected_batch)
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Vector of the elements where the bool tensor `mask` holds; both broadcast.

    >>> import cygrad
    >>> cygrad.masked_select(cygrad.tensor([1., 2.]), cygrad.tensor([True, False]))
    tensor([1.])
    """
    _check_mask(_SELECT, mask)
    input = _target(input, mask, out)
    return delivered(recorded(masked_select, (input, mask), vector_of(input)[_chosen(input, mask)[0]]), out)


def _check_source(input: Tensor, mask: Tensor, source: Tensor) -> None:
    _check_mask("masked_scatter_ only supports boolean masks, but got mask with dtype", mask)
    if input.dtype != source.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got {input.dtype} and {source.dtype}")


def _scattered_batch(level, operator, x, mask, source):
    """Number the places where the mask holds, and take the source's elements by these numbers."""
    _check_source(x, mask, source)
    shape = broadcast_shape(mask, x)
    mask, x = mask.expand(shape), x.expand(shape)
    numbers = (mask.reshape(-1).cumsum(0) - 1).clamp(0)
    try:
        return source.reshape(-1)[numbers].reshape(shape).where(mask, x)
    except IndexError:
        raise RuntimeError(f"Number of elements of source < number of ones in mask: it has {source.numel()}") from None


@operator(dinput=lambda g, mask: g.masked_fill(mask, 0),
          dsource=lambda g, mask, source_shape: padded(g.masked_select(mask), (prod(source_shape),)).reshape(source_shape), dmask=None,
          tangent=linear, batch=_scattered_batch, in_place=changing)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with the elements of `source`, in their order, where the bool tensor `mask` holds.

    >>> import cygrad
    >>> cygrad.masked_scatter(cygrad.zeros(3), cygrad.tensor([True, False, True]), cygrad.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    input = _target(input, mask, out)
    _check_source(input, mask, source)
    key, count = _chosen(input, mask)
    if source.numel() < count:
        raise RuntimeError(f"Number of elements of source < number of ones in mask: {source.numel()} < {count}")
    values = source.detach().reshape(-1)[:count]
    return changed_numbers(masked_scatter, (input, source, mask), lambda numbers: put_values(vector_of(numbers), key, values, False), out)
