"""Variance and standard deviation, with the mean or alone, and the mean of what is not NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cygrad.operators.arguments import checked_operand, checked_tensor, delivered, normalized_dims
from cygrad.operators.batches import shifted
from cygrad.operators.declaration import operator, recorded, recorded_together, unrecorded
from cygrad.operators.tiled import tiled
from cygrad.ops.gradients import keep_dims

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.tensor import Tensor
    from cygrad.typing import Dims, DTypeLike, Pair


# ----- Formulas -----
@tiled
def _squared_differences(x: Tensor, dim: tuple[int, ...]) -> Tensor:
    return (x - x.mean(dim, keepdim=True)).square_().sum(dim, keepdim=True)


@tiled
def _times_differences(g: Tensor, x: Tensor, factor: float, dim: tuple[int, ...]) -> Tensor:
    return g * factor * (x - x.mean(dim, keepdim=True))


def _of_both_parts(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return the sums of squared differences of the real and the imaginary parts of complex numbers, added."""
    total = _squared_differences((x if x.ndim else x.reshape(1)).view_as_real(), dims or (0,)).sum(-1)
    return total if x.ndim else total.reshape(())


# ----- Gradients -----
def _variance_gradient(g: Tensor, input: Tensor, dim: tuple[int, ...], scale: float) -> Tensor:
    """Return the gradient of the sum of squared differences from the mean, times `scale`."""
    return _times_differences(keep_dims(g, input.shape, dim), input, 2 * scale, dim)


def _per_deviation(g: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of a variance from that of its root y; 0 where that is 0."""
    return (g / (2 * y.masked_fill(y == 0, 1))).masked_fill(y == 0, 0)


def _with_mean(g: Tensor | None, g_mean: Tensor | None, input: Tensor, dim: tuple[int, ...], scale: float) -> Tensor:
    """Return the gradient of a variance and a mean, either of which may have none."""
    parts = [] if g is None else [_variance_gradient(g, input, dim, scale)]
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
    """Return what the squares of differences are divided by."""
    return max(math.prod(input.shape[d] for d in dims if input.ndim) - correction, 0)


def _scale(degrees: float) -> float:
    return 1 / degrees if degrees else math.nan


def _batched(level: Any, operator: Any, input: Tensor, dim: Dims = None, unbiased: bool | None = None, *arguments: Any, **keywords: Any
             ) -> Tensor:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return shifted("dim")(level, operator, input, dim, unbiased, *arguments, **keywords)


# ----- Variance -----
def _spread(operator: Any, finish: Callable[[Tensor], Tensor], input: Tensor, dim: Dims, correction: float, keepdim: bool) -> Tensor:
    """Compute by two passes: the mean, then the squares of the differences from it, which of complex numbers are those of both parts."""
    if not checked_tensor(operator.__name__, input).dtype.is_differentiable:
        raise RuntimeError(f"std and var only support floating point and complex dtypes, got {input.dtype}; convert it first, "
                           "e.g. with .float()")
    dims = normalized_dims(dim, input.ndim)
    degrees = _degrees(input, dims, correction)

    def compute() -> Tensor:
        total = _of_both_parts(input.detach(), dims) if input.is_complex() else _squared_differences(input.detach(), dims)
        variance = finish(total / degrees if degrees else total / 0.0)
        return variance if keepdim else variance.squeeze(dims)

    return recorded(operator, (input,), unrecorded(compute), dim=dims, scale=_scale(degrees))


@operator(dinput=_variance_gradient, batch=_batched)
def var(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None,
        out: Tensor | None = None, ddof: float | None = None) -> Tensor:
    """Variance of the elements, over all dims or those in `dim`, divided by n - `correction` (default 1).

    >>> import cygrad
    >>> cygrad.var(cygrad.tensor([1., 2., 3.]))
    tensor(1.)
    """
    dim, given = _correction(dim, unbiased, ddof if correction is None else correction)
    return delivered(_spread(var, lambda variance: variance, input, dim, given, keepdim), out)


@operator(dinput=lambda g, input, y, dim, scale: _variance_gradient(_per_deviation(g, y), input, dim, scale), batch=_batched)
def std(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None,
        out: Tensor | None = None, ddof: float | None = None) -> Tensor:
    """Standard deviation of the elements, over all dims or those in `dim`, divided by n - `correction` (default 1).

    >>> import cygrad
    >>> cygrad.std(cygrad.tensor([1., 2., 3.]))
    tensor(1.)
    """
    dim, given = _correction(dim, unbiased, ddof if correction is None else correction)
    return delivered(_spread(std, lambda variance: variance.sqrt_(), input, dim, given, keepdim), out)


# ----- With the mean -----
def _and_mean(spread: str) -> Callable[..., Pair]:
    """Return what computes a variance or its root, and the mean."""
    def both(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
             ) -> Pair:
        dim, given = _correction(dim, unbiased, correction)
        return getattr(input, spread)(dim, keepdim=keepdim, correction=given), input.mean(dim, keepdim=keepdim)

    return both


def _together(operator: Any, input: Tensor, dim: Dims, unbiased: bool | None, keepdim: bool, correction: float | None) -> Pair:
    if not checked_tensor(operator.__name__, input).dtype.is_differentiable:
        raise RuntimeError(f"{operator.__name__} only support floating point and complex dtypes, got {input.dtype}; convert it first, "
                           "e.g. with .float()")
    both = unrecorded(lambda: operator.declaration.parts(input, dim, unbiased, keepdim, correction=correction))
    dim, given = _correction(dim, unbiased, correction)
    dims = normalized_dims(dim, input.ndim)
    return recorded_together(operator, (input,), both, dim=dims, scale=_scale(_degrees(input, dims, given)))


@operator(dinput=lambda gs, input, dim, scale: _with_mean(gs[0], gs[1], input, dim, scale), parts=_and_mean("var"), method=False)
def var_mean(input: Tensor, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
             ) -> Pair:
    """Variance and mean of the elements, over all dims or those in `dim`; see `var`.

    >>> import cygrad
    >>> cygrad.var_mean(cygrad.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    return _together(var_mean, input, dim, unbiased, keepdim, correction)


@operator(dinput=lambda gs, input, y, dim, scale: _with_mean(None if gs[0] is None else _per_deviation(gs[0], y), gs[1], input, dim, scale),
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
@operator
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """Mean of the elements that are not NaN; NaN where there are none.

    >>> import cygrad
    >>> cygrad.nanmean(cygrad.tensor([1., cygrad.nan, 3.]))
    tensor(2.)
    """
    x = checked_operand("nanmean", checked_tensor("nanmean", input) if dtype is None else input.to(dtype))
    return delivered(x.nansum(dim, keepdim=keepdim) / (x == x).sum(dim, keepdim=keepdim), out)
