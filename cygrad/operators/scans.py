"""Scans along a dim: sums, products, extrema, logarithms of sums of exponentials; and differences, the inverse of sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute import reductions
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.limits import finfo
from cygrad.operators._language.arguments import (
    ValuesAndIndices,
    checked_operand,
    checked_tensor,
    delivered,
    delivered_together,
    pair_type,
)
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.narrow_floats import of_unrounded_result
from cygrad.operators._language.tangents import linear, selecting
from cygrad.operators.joining import cat, stack
from cygrad.ops.gradients import in_double, times
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.tensor import Tensor
    from cygrad.typing import DTypeLike, Pair


def _scanned(operator: Any, scan: Callable[[Tensor], Tensor], input: Tensor, dtype: DTypeLike | None, out: Tensor | None) -> Tensor:
    """Compute a scan in `dtype`, by default `out`'s."""
    if dtype is None and out is not None:
        dtype = checked_tensor(operator, out, "out", 3).dtype
    return delivered(scan(input) if dtype is None else scan(input._convert(dtype))._convert(dtype), out)


# ----- Sums -----
@operator(dinput=lambda g, dim, reverse: g._cumsum(dim, not reverse), tangent=linear, batch=shifted("dim"))
def _cumsum(input: Tensor, dim: int, reverse: bool) -> Tensor:
    """Return the running sum along a dim, from its end if `reverse`."""
    return recorded(_cumsum, (input,), reductions.cumulate("sum", input, dim, reverse), dim=dim, reverse=reverse)


@operator(in_place=True)
def cumsum(input: Tensor, dim: int, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """Running sum along `dim`; integers become int64.

    >>> import cygrad
    >>> cygrad.cumsum(cygrad.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    return _scanned(cumsum, lambda x: _cumsum(x, dim, False), input, dtype, out)


def _log_cumulative_gradient(g: Tensor, input: Tensor, y: Tensor, dim: int) -> Tensor:
    """Return the gradient of logcumsumexp: g is summed by its logarithms, of real numbers the positive and the negative parts."""
    y = y.masked_fill(y == float("-inf"), 0)

    def summed(part: Tensor, there: Tensor) -> Tensor:
        logarithm = part.where(there, 1).log().where(there, finfo(g.real.dtype).min / 2)
        return ((logarithm - y).flip(dim).logcumsumexp(dim).flip(dim) + input).exp()

    return summed(g, g != 0) if g.is_complex() else summed(g, g > 0) - summed(-g, g < 0)


def _running_logarithm(x: Tensor, dim: int) -> Tensor:
    """Return the logarithms of running sums of exponentials of complex numbers, one element of the dim after the other."""
    rows = list(x.unbind(dim))
    for place in range(1, len(rows)):
        rows[place] = rows[place - 1].logaddexp(rows[place])
    return stack(rows, dim)


@operator(dinput=of_unrounded_result(lambda x, dim: x.logcumsumexp(dim), _log_cumulative_gradient), batch=shifted("dim"),
          refuses={"biu": NO_LOOP}, loop="logcumsumexp_out_cpu")
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """log(cumsum(exp(x))) along `dim`, without overflow.

    >>> import cygrad
    >>> cygrad.logcumsumexp(cygrad.zeros(2), 0)
    tensor([0.0000, 0.6931])
    """
    checked_operand(logcumsumexp, input)
    d = normalized_dim(dim, input.ndim)
    if input.is_complex():
        result = unrecorded(lambda: _running_logarithm(input.detach(), d) if input.shape and input.shape[d] else input.clone())
    else:
        array = np.atleast_1d(to_array(input)).astype(np.float64)       # in float32 the rounding errors of long dims add up
        result = computed(np.logaddexp.accumulate(array, d).reshape(tuple(input.shape))).to(input.dtype)
    return delivered(recorded(logcumsumexp, (input,), result, dim=d), out)


# ----- Products -----
def _gradient_at_zeros(x: Tensor, g: Tensor, y: Tensor, dim: int) -> Tensor:
    """Return the gradient of a running product where elements may be zero, or products overflow."""
    if not x.shape or not x.shape[dim]:
        return g
    size = x.shape[dim]
    behind = [g.select(dim, size - 1)]
    for place in range(size - 2, -1, -1):
        behind.append(g.select(dim, place) + times(x.select(dim, place + 1), behind[-1]))
    before = cat([(g == g).to(g.dtype).narrow(dim, 0, 1), y.narrow(dim, 0, size - 1)], dim)
    return times(before, cat([part.unsqueeze(dim) for part in behind[::-1]], dim))


@operator(parts=_gradient_at_zeros)
def _cumprod_gradient(input: Tensor, g: Tensor, y: Tensor, dim: int) -> Tensor:
    """Return the gradient of a running product: each element meets the elements before it and all products behind it."""
    if input.shape and not bool((input == 0).any()) and not bool(y.isinf().any()):
        return (g * y)._cumsum(dim, True) / input
    return _gradient_at_zeros(input, g, y, dim)


def _cumprod_gradient_in_double(g: Tensor, input: Tensor, y: Tensor, dim: int) -> Tensor:
    """Return the gradient from products in double precision, where they neither overflow nor vanish as soon."""
    x = in_double(input)
    return x._cumprod_gradient(in_double(g), y if y.dtype == x.dtype else x.cumprod(dim), dim).to(input.dtype)


@operator(dinput=_cumprod_gradient_in_double, batch=shifted("dim"), in_place=True)
def cumprod(input: Tensor, dim: int, *, dtype: DTypeLike | None = None, out: Tensor | None = None) -> Tensor:
    """Running product along `dim`; integers become int64. The gradient is right also where elements are zero.

    >>> import cygrad
    >>> cygrad.cumprod(cygrad.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """
    def scan(x: Tensor) -> Tensor:
        d = normalized_dim(dim, x.ndim)
        return recorded(cumprod, (x,), unrecorded(lambda: _running_product(x.detach(), d)), dim=d)

    return _scanned(cumprod, scan, input, dtype, out)


def _running_product(x: Tensor, dim: int) -> Tensor:
    y = reductions.cumulate("prod", x, dim)
    if not y.dtype.is_differentiable or not y.numel() or not bool((y.select(dim, -1) if y.ndim else y).isnan().any()):
        return y        # NaN, once met, is never left
    zero = ((x == 0).cumsum(dim) != 0) & (x.isfinite().logical_not().cumsum(dim) == 0)
    return y.where(~zero, 0.0)


# ----- Extrema -----
def _to_their_places(g: Tensor, input_shape: tuple[int, ...], dim: int, indices: Tensor) -> Tensor:
    """Return the gradient of running extrema, which goes to the elements that they are."""
    return g._spread_along(dim, indices, input_shape)


def _running_extremum(operator: Any, ufunc: np.ufunc, pair: type[ValuesAndIndices], input: Tensor, dim: int, out: Pair | None
                      ) -> ValuesAndIndices:
    d = normalized_dim(dim, checked_operand(operator, input).ndim)
    array = np.atleast_1d(to_array(input))
    values = ufunc.accumulate(array, d)
    # The last place at which the running extremum was attained; NaN, once met, is never left.
    shape = [-1 if k == d else 1 for k in range(array.ndim)]
    attained = (array == values) | (array != array) & (values != values)
    indices = np.maximum.accumulate(np.where(attained, np.arange(array.shape[d]).reshape(shape), 0), d)
    result, places = (computed(part.reshape(tuple(input.shape))) for part in (values, indices))
    result = recorded(operator, (input, places), result, 2, dim=d)
    return delivered_together(pair, (result, places), out)


cummax_pair, cummin_pair = pair_type("cummax"), pair_type("cummin")


@operator(dinput=_to_their_places, dindices=None, tangent=selecting, batch=shifted("dim"),
          refuses={"c": NO_LOOP})
def cummax(input: Tensor, dim: int, *, out: Pair | None = None) -> ValuesAndIndices:
    """Largest element up to each along `dim`, with the place of the last such: (values, indices).

    >>> import cygrad
    >>> cygrad.cummax(cygrad.tensor([2., 2.]), 0).indices
    tensor([0, 1])
    """
    return _running_extremum(cummax, np.maximum, cummax_pair, input, dim, out)


@operator(dinput=_to_their_places, dindices=None, tangent=selecting, batch=shifted("dim"),
          refuses={"c": NO_LOOP})
def cummin(input: Tensor, dim: int, *, out: Pair | None = None) -> ValuesAndIndices:
    """Smallest element up to each along `dim`, with the place of the last such: (values, indices).

    >>> import cygrad
    >>> cygrad.cummin(cygrad.tensor([2., 2.]), 0).indices
    tensor([0, 1])
    """
    return _running_extremum(cummin, np.minimum, cummin_pair, input, dim, out)


# ----- Differences -----
@operator
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """Difference of each element and the one before it along `dim`, `n` times; `prepend` and `append` are joined to the ends first.

    >>> import cygrad
    >>> cygrad.diff(cygrad.tensor([1., 3., 6.]))
    tensor([2., 3.])
    """
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional, it is 0-d")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = normalized_dim(dim, input.ndim)
    ends = [end for end in (prepend, append) if end is not None]
    if any(end.ndim != input.ndim for end in ends):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    result = cat([part for part in (prepend, input, append) if part is not None], d) if ends and n else input
    for _ in range(min(n, result.shape[d])):
        size = max(result.shape[d], 1)
        later, earlier = result.narrow(d, min(1, result.shape[d]), size - 1), result.narrow(d, 0, size - 1)
        result = later != earlier if result.dtype.kind == "b" else later - earlier
    return delivered(result.clone() if n == 0 else result, out)
