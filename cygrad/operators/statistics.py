"""Variance and standard deviation, with the mean or alone, the mean of elements that are not NaN, and the most frequent element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cygrad._core.memory.sizes import normalized_dim
from cygrad.data.creation import arange
from cygrad.operators._language.arguments import (
    ValuesAndIndices,
    checked_operand,
    delivered,
    delivered_together,
    normalized_dims,
    pair_type,
)
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator, recorded, recorded_together, unrecorded
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators._language.tiled import tiled
from cygrad.operators.norms import accurate_squares, linalg_vector_norm, scaled
from cygrad.operators.sorting import sort
from cygrad.ops.gradients import keep_dims
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Dims, DTypeLike, Pair


# ----- Formulas -----
@tiled
def _squared_differences(x: Tensor, dim: tuple[int, ...]) -> Tensor:
    return (x - x.mean(dim, keepdim=True)).square_().sum(dim, keepdim=True)


@tiled
def _scaled_deviation(x: Tensor, degrees: float, dim: tuple[int, ...]) -> Tensor:
    size, scale = scaled((x - x.mean(dim, keepdim=True)).abs(), dim)
    return size.square_().sum(dim, keepdim=True).div_(degrees).sqrt_().mul_(scale)


@rounded_once
def _spread_of(x: Tensor, degrees: float, dim: tuple[int, ...], root: bool) -> Tensor:
    """Return the sum of squared differences from the mean by the degrees of freedom, or its root.

    Where squares leave the range, differences are scaled first, in float64, whose range holds all squares of float32.
    """
    squared = _squared_differences(x, dim)
    accurate = accurate_squares(squared) if x.numel() else None
    variance = squared / degrees
    spread = variance.sqrt_() if root else variance
    if accurate is None:
        return spread
    deviation = _scaled_deviation(x.double(), degrees, dim)
    return spread.where(accurate, (deviation if root else deviation.square_()).to(x.dtype))


@tiled
def _times_differences(g: Tensor, x: Tensor, factor: float, dim: tuple[int, ...]) -> Tensor:
    return g * factor * (x - x.mean(dim, keepdim=True))


@tiled
def _times_relative_differences(g: Tensor, x: Tensor, y: Tensor, factor: float, dim: tuple[int, ...]) -> Tensor:
    return g * ((x - x.mean(dim, keepdim=True)) / y.masked_fill(y == 0, 1) * factor)


# ----- Gradients -----
def _variance_gradient(g: Tensor, input: Tensor, dim: tuple[int, ...], scale: float) -> Tensor:
    """Return the gradient of the sum of squared differences from the mean, times `scale`."""
    return _times_differences(keep_dims(g, input.shape, dim), input, 2 * scale, dim)


def _deviation_gradient(g: Tensor, input: Tensor, y: Tensor, dim: tuple[int, ...], scale: float) -> Tensor:
    """Return the gradient of a deviation y in terms of quotients by y, which neither overflow nor vanish; 0 where y is 0."""
    g, y = keep_dims(g, input.shape, dim), keep_dims(y, input.shape, dim)
    return _times_relative_differences(g, input, y, scale, dim)


def _with_mean(gs: Sequence[Tensor | None], input: Tensor, dim: tuple[int, ...], spread_gradient: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the gradient of a variance or deviation and a mean, either of which may have none."""
    g, g_mean = gs
    parts = [] if g is None else [spread_gradient(g)]
    if g_mean is not None:
        g_mean = keep_dims(g_mean, input.shape, dim)
        parts.append(g_mean.expand(input.shape) / (math.prod(input.shape) / max(g_mean.numel(), 1)))
    return sum(parts[1:], parts[0])


# ----- Arguments -----
def _correction(dim: Dims, unbiased: bool | None, correction: float | None) -> tuple[Dims, float]:
    """Return the dims and the correction, 1 where nothing asks for another; a bool in the place of the dims is `unbiased`."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return dim, correction if correction is not None else 1 if unbiased is None else int(unbiased)


def _degrees(input: Tensor, dims: tuple[int, ...], correction: float) -> float:
    """Return the degrees of freedom: the count of elements that are reduced, less the correction."""
    shape = input.shape
    return math.prod([shape[d] for d in dims] if shape else ()) - correction


def _scale(degrees: float, dim: Dims) -> float:
    """Return the factor of the gradient of a variance; torch's where no degree of freedom is left: infinite, negative over named dims."""
    return 1 / degrees if degrees > 0 or degrees and dim is not None else math.inf


def _batched(level: Any, operator: Any, input: Tensor, dim: Dims = None, unbiased: bool | None = None, *arguments: Any, **keywords: Any
             ) -> Tensor:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return shifted("dim")(level, operator, input, dim, unbiased, *arguments, **keywords)


# ----- Variance -----
def _check_differentiable(subject: str, input: Tensor) -> None:
    """Refuse integers and bools; `subject`: torch's word for the functions that refuse them."""
    if not input.dtype.is_differentiable:
        raise RuntimeError(f"{subject} only support floating point and complex dtypes, got {input.dtype}; convert it first, "
                           "e.g. with .float()")


def _spread(operator: Any, root: bool, input: Tensor, dim: Dims, correction: float, keepdim: bool) -> Tensor:
    """Compute a variance, or its root, by two passes: the mean, then the differences from it. Complex numbers have the sum of the
    variances of both parts."""
    _check_differentiable("std and var", input)
    dims = normalized_dims(dim, input.ndim)
    degrees = _degrees(input, dims, correction)

    def compute() -> Tensor:
        x, divisor = input.detach(), max(degrees, 0.0)
        if x.is_complex():
            pairs = (x if x.ndim else x.reshape(1)).view_as_real()      # of a scalar, in a dim of size 1
            parts = _spread_of(pairs, divisor, dims or (0,), root)
            result = linalg_vector_norm(parts, dim=-1) if root else parts.sum(-1)
            result = result.reshape([1 if d in dims else n for d, n in enumerate(x.shape)])
        else:
            result = _spread_of(x, divisor, dims, root)
        return result if keepdim else result.squeeze(dims)

    return recorded(operator, (input,), unrecorded(compute), dim=dims, scale=_scale(degrees, dim))


@operator(dinput=_variance_gradient, batch=_batched)
def var(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None,
        out: Tensor | None = None, ddof: float | None = None) -> Tensor:
    """Variance of the elements, over all dims or those in `dim`, divided by n - `correction` (default 1).

    >>> import cygrad
    >>> cygrad.var(cygrad.tensor([1., 2., 3.]))
    tensor(1.)
    """
    dim, correction = _correction(dim, unbiased, ddof if correction is None else correction)
    return delivered(_spread(var, False, input, dim, correction, keepdim), out)


@operator(dinput=_deviation_gradient, batch=_batched)
def std(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None,
        out: Tensor | None = None, ddof: float | None = None) -> Tensor:
    """Standard deviation of the elements, over all dims or those in `dim`, divided by n - `correction` (default 1).

    >>> import cygrad
    >>> cygrad.std(cygrad.tensor([1., 2., 3.]))
    tensor(1.)
    """
    dim, correction = _correction(dim, unbiased, ddof if correction is None else correction)
    return delivered(_spread(std, True, input, dim, correction, keepdim), out)


# ----- With the mean -----
def _and_mean(spread: str) -> Callable[..., Pair]:
    """Return a function that computes a variance or its root, and the mean."""
    def both(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
             ) -> Pair:
        dim, correction = _correction(dim, unbiased, correction)
        return getattr(input, spread)(dim, keepdim=keepdim, correction=correction), input.mean(dim, keepdim=keepdim)

    return both


def _together(operator: Any, input: Tensor, dim: Dims, unbiased: bool | None, keepdim: bool, correction: float | None) -> Pair:
    _check_differentiable(operator.name, input)
    both = unrecorded(lambda: operator.declaration.parts(input, dim, unbiased, keepdim, correction=correction))
    dim, correction = _correction(dim, unbiased, correction)
    dims = normalized_dims(dim, input.ndim)
    return recorded_together(operator, (input,), both, dim=dims, scale=_scale(_degrees(input, dims, correction), dim))


@operator(dinput=lambda gs, input, dim, scale: _with_mean(gs, input, dim, lambda g: _variance_gradient(g, input, dim, scale)),
          parts=_and_mean("var"), method=False)
def var_mean(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
             ) -> Pair:
    """Variance and mean of the elements, over all dims or those in `dim`; see `var`.

    >>> import cygrad
    >>> cygrad.var_mean(cygrad.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    return _together(var_mean, input, dim, unbiased, keepdim, correction)


@operator(dinput=lambda gs, input, y, dim, scale: _with_mean(gs, input, dim, lambda g: _deviation_gradient(g, input, y, dim, scale)),
          parts=_and_mean("std"), method=False)
def std_mean(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
             ) -> Pair:
    """Standard deviation and mean of the elements, over all dims or those in `dim`; see `std`.

    >>> import cygrad
    >>> cygrad.std_mean(cygrad.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    return _together(std_mean, input, dim, unbiased, keepdim, correction)


# ----- Beside NaN -----
@operator(
    refuses={"c": RuntimeError("nansum on CPU does not support complex inputs"), "biu": RuntimeError("nanmean(): expected input to have "
                               "floating point or complex dtype but got {dtype}; convert it first")},
)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """Mean of the elements that are not NaN; NaN where there are none.

    >>> import cygrad
    >>> cygrad.nanmean(cygrad.tensor([1., cygrad.nan, 3.]))
    tensor(2.)
    """
    x = checked_operand(nanmean, input if dtype is None else input._convert(dtype))
    return delivered(_mean_beside_nan(x, dim, keepdim), out)


@rounded_once
def _mean_beside_nan(x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    return x.nansum(dim, keepdim=keepdim) / (x == x).sum(dim, keepdim=keepdim)


# ----- The most frequent element -----
_Mode = pair_type("mode")


@operator(refuses={"c": NO_LOOP}, loop="mode_cpu")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Pair | None = None) -> ValuesAndIndices:
    """The most frequent element along `dim`, the smallest of several, and where it stands last: (values, indices).

    Found in the sorted elements, where the longest run is. Each NaN is an element of its own. The gradient goes to the element that
    the index names. IndexError for a dim of size 0.

    >>> import cygrad
    >>> values, indices = cygrad.mode(cygrad.tensor([3, 1, 3, 2]))
    >>> values, indices
    (tensor(3), tensor(2))
    """
    d, x = normalized_dim(dim, checked_operand(mode, input).ndim), input if input.ndim else input.reshape(1)
    if not x.shape[d]:
        raise IndexError(f"{mode.__name__}(): Expected reduction dim {d} to have non-zero size.")
    in_order, places = sort(x.detach(), d, stable=True)
    position = arange(x.shape[d]).reshape([-1 if k == d else 1 for k in range(x.ndim)])
    begins = in_order != in_order.roll(1, d)
    run = position - position.where(begins, 0).cummax(d).values      # less 1: how many equal ones stand before
    index = places.gather(d, run.argmax(d, keepdim=True))
    values = x.gather(d, index)
    return delivered_together(_Mode, (values, index) if keepdim and input.ndim else (values.squeeze(d), index.squeeze(d)), out)
