"""Reductions: the rows of the table, the extrema with their places, and counts.

The tangents and batches of the reductions of the table follow from their rows.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from cygrad._core.compute import reductions as compiled
from cygrad._core.entry.operator_object import Declaration, make_operator
from cygrad._core.graph.rules import rule_op
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad.operators._language.arguments import (
    ValuesAndIndices,
    check_dtype,
    checked_operand,
    delivered,
    delivered_together,
    normalized_dims,
    pair_type,
    shown_as,
)
from cygrad.operators._language.batches import named_arguments, shifted
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.tangents import constant, first_linear, selecting
from cygrad.operators._language.tiled import tiled
from cygrad.ops import REDUCTIONS, Reduction
from cygrad.ops.gradients import attained, keep_dims
from cygrad.ops.refusals import NO_LOOP, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Dims, DTypeLike, Pair


# ----- The table -----
def _summed(contribution: Callable[..., Tensor]) -> Callable[..., Tensor | None]:
    """Return the rule of a tangent to which each element adds something."""
    def tangent(tangent_of: Any, operator: Any, result: Tensor, input: Tensor, *arguments: Any, **keywords: Any) -> Tensor | None:
        t = tangent_of(input)
        if t is None:
            return None
        call = named_arguments(operator, (input, *arguments), keywords).arguments
        dims = normalized_dims(call["dim"], input.ndim)
        return contribution(t.to(result.dtype), input.to(result.dtype), dims).sum(dims, call["keepdim"])

    return tangent


def _tangent(row: Reduction) -> Callable[..., Any] | str:
    if row.gradient is None:
        return constant
    if not isinstance(row.tangent, str):
        return _summed(row.tangent)
    return first_linear if row.tangent == "linear" else row.tangent


def _of_row(row: Reduction) -> Any:
    """Return the operator of a row of the table."""
    def reduction(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None
                  ) -> Tensor:
        """{row.doc}

        Over all dims, or those in `dim` (`axis`); `keepdim` (`keepdims`) keeps them as size 1. `dtype` converts first, `out` takes the
        result.

        >>> import cygrad
        >>> cygrad.{row.name}(cygrad.ones(2, 3), dim=0).shape
        cygrad.Size([3])
        """

    reduction.__name__ = reduction.__qualname__ = row.name
    reduction.__doc__ = cleandoc(reduction.__doc__ or "").format(row=row)
    declaration = Declaration(row.gradient and rule_op(row.name), _tangent(row), shifted("dim", none=row.result == "truth"))
    return make_operator(row.name, compiled.make_reduction(compiled.ops[row.name]), declaration, reduction)


for _row in REDUCTIONS.values():
    globals().update(dict.fromkeys((_row.name, *_row.aliases), _of_row(_row)))


# ----- Extrema -----
@tiled
def _shared(g: Tensor, x: Tensor, y: Tensor, dim: Dims) -> Tensor:
    mask = attained(x, y)
    return mask * (g / mask.sum(dim, keepdim=True))


@operator(parts=lambda input, g, y, dim: _shared(g, input, y, dim))
def _share_among(input: Tensor, g: Tensor, y: Tensor, dim: Dims) -> Tensor:
    """Share the gradient of an extremum evenly among the elements that attain it; g and y have the dims of the input."""
    return _shared(g, input, y, dim)


def _to_its_place(g: Tensor, input_shape: tuple[int, ...], indices: Tensor, dim: int) -> Tensor:
    """Return the gradient of extrema along a dim, which goes to the elements that they are."""
    return keep_dims(g, input_shape, (dim,))._spread_along(dim, indices, input_shape)


def _into_its_place(whole: Tensor, g: Tensor, input_shape: Sequence[int], indices: Tensor, dim: int) -> None:
    whole.scatter_add_(dim, indices, keep_dims(g, input_shape, (dim,)))


def _of_all(name: str, elementwise: str) -> Callable[..., Any]:
    """Return the function of an extremum without a dim: of all elements, or of the elements of two tensors."""
    refuse(f"{name}_all", {"c": NO_LOOP}, f"{name}_all")

    def parts(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None, out: Any = None) -> Any:
        other = dim if isinstance(dim, TensorImpl) else other
        if other is not None:
            return getattr(input, elementwise)(other, out=out)
        if dim is not None:
            check_dtype(name, input)
            return NotImplemented
        check_dtype(f"{name}_all", input)
        if input.numel() == 0:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                               "Specify the reduction dim with the 'dim' argument.")
        if keepdim:
            raise TypeError(f"{name}() takes keepdim together with dim only; a{name}() reduces all dims with keepdim")
        return getattr(input, "a" + name)(out=out)

    return parts


def _extremum(operator: Any, pair: type[ValuesAndIndices], input: Tensor, dim: Any, keepdim: bool, other: Tensor | None, out: Any) -> Any:
    """Return an extremum of all or of two tensors; or those along a dim and their places."""
    result = operator.declaration.parts(input, dim, keepdim, other=other, out=out)
    if result is not NotImplemented:
        return result
    name = operator.name
    values, indices = compiled.extremum("a" + name, input, dim, keepdim, name)
    d = normalized_dim(dim, input.ndim)
    full_indices = indices if keepdim or not input.ndim else indices.unsqueeze(d)
    recorded(operator, (input, full_indices), values, 2, dim=d)
    return delivered_together(pair, (values, indices), out)


max_pair, min_pair = pair_type("max"), pair_type("min")


@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool = False, *, out: Pair | None = None) -> ValuesAndIndices: ...
@operator(dinput=_to_its_place, dindices=None, into=_into_its_place,  # type: ignore[misc]  # dim may be `other`
          tangent=selecting, batch=shifted("dim"),
          parts=_of_all("max", "maximum"),
          refuses={"c": RuntimeError("{name}(): does not support complex input")}, forms=True)
def max(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None,
        out: Tensor | Pair | None = None) -> Tensor | ValuesAndIndices:
    """Largest element of all; (values, indices) along `dim`, of the first such; or the maximum of two tensors.

    The gradient goes to the element at the index; of all, it is shared at ties.

    >>> import cygrad
    >>> cygrad.max(cygrad.tensor([[2., 2.]]), dim=1).indices
    tensor([0])
    """
    return _extremum(max, max_pair, input, dim, keepdim, other, out)


@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool = False, *, out: Pair | None = None) -> ValuesAndIndices: ...
@operator(dinput=_to_its_place, dindices=None, into=_into_its_place,  # type: ignore[misc]  # dim may be `other`
          tangent=selecting, batch=shifted("dim"),
          parts=_of_all("min", "minimum"),
          refuses={"c": RuntimeError("{name}(): does not support complex input")}, forms=True)
def min(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None,
        out: Tensor | Pair | None = None) -> Tensor | ValuesAndIndices:
    """Smallest element of all; (values, indices) along `dim`, of the first such; or the minimum of two tensors.

    The gradient goes to the element at the index; of all, it is shared at ties.

    >>> import cygrad
    >>> cygrad.min(cygrad.tensor([[2., 2.]]), dim=1).indices
    tensor([0])
    """
    return _extremum(min, min_pair, input, dim, keepdim, other, out)


@shown_as("aminmax")
class MinimumAndMaximum(NamedTuple):
    """The results of `aminmax`."""

    min: Tensor
    max: Tensor


@operator(refuses={"c": NO_LOOP})
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Pair | None = None) -> MinimumAndMaximum:
    """Smallest and largest element of all, or along `dim`: (min, max). Equal ones share the gradient.

    >>> import cygrad
    >>> cygrad.aminmax(cygrad.tensor([3., 1., 2.])).max
    tensor(3.)
    """
    if not checked_operand(aminmax, input).numel() and dim is None:
        raise RuntimeError(f"{aminmax.__name__}(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    if dim is not None:
        dim = normalized_dim(dim, input.ndim)
        if input.ndim and not input.shape[dim]:
            raise IndexError(f"{aminmax.__name__}: Expected reduction dim {dim} to have non-zero size.")
    return delivered_together(MinimumAndMaximum, (input.amin(dim, keepdim), input.amax(dim, keepdim)), out)


# ----- Places of extrema -----
def _place_of_all(name: str) -> Callable[..., Any]:
    """Return the place of an extremum without a dim: among all elements in their order."""
    def parts(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is not None:
            return NotImplemented
        check_dtype(name, input)
        if input.numel() == 0:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        place = getattr(input.detach().reshape(-1), name)(0)
        return place.reshape([1] * input.ndim) if keepdim else place

    return parts


def _place(operator: Any, extremum: str, input: Tensor, dim: Any, keepdim: bool, out: Tensor | None) -> Tensor:
    place = operator.declaration.parts(input, dim, keepdim)
    if place is NotImplemented:
        place = compiled.extremum(extremum, checked_operand(operator, input), dim, keepdim, operator.name)[1]
    return delivered(place, out)


@operator(tangent=constant, batch=shifted("dim"), parts=_place_of_all("argmax"),
          refuses={"c": RuntimeError("{name}(): does not support complex input"), "b": RuntimeError("{name}(): does not support bool "
                                     "input")})
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Index of the first largest element along `dim`, or in all.

    >>> import cygrad
    >>> cygrad.argmax(cygrad.tensor([1., 3., 2.]))
    tensor(1)
    """
    return _place(argmax, "amax", input, dim, keepdim, out)


@operator(tangent=constant, batch=shifted("dim"), parts=_place_of_all("argmin"),
          refuses={"c": RuntimeError("{name}(): does not support complex input"), "b": RuntimeError("{name}(): does not support bool "
                                     "input")})
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Index of the first smallest element along `dim`, or in all.

    >>> import cygrad
    >>> cygrad.argmin(cygrad.tensor([3., 1., 2.]))
    tensor(1)
    """
    return _place(argmin, "amin", input, dim, keepdim, out)


# ----- Counts -----
@operator
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Number of elements that are not 0, over all dims or those in `dim`.

    >>> import cygrad
    >>> cygrad.count_nonzero(cygrad.tensor([0, 5]))
    tensor(1)
    """
    return (input != 0).sum(dim)
