"""Norms of the elements as vectors, and of differences."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from cygrad._core.compute.reductions import lie_between
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import resolve_dtype
from cygrad.data.limits import finfo
from cygrad.operators import public_name
from cygrad.operators._language.arguments import delivered, normalized_dims, refused
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators._language.tiled import tiled
from cygrad.ops.dtypes import DTYPES, NUMBER, common
from cygrad.ops.gradients import keep_dims, shared_among
from cygrad.ops.refusals import NOT_FLOATING

if TYPE_CHECKING:
    from cygrad._core.memory.storage import DType
    from cygrad.tensor import Tensor
    from cygrad.typing import Dims, DTypeLike


@tiled
def _squared(x: Tensor, dim: tuple[int, ...]) -> Tensor:
    return (x * x).sum(dim, keepdim=True)


@cache
def _normal_squares(dtype: DType) -> tuple[float, float]:
    """Return the bounds of sums of squares that are right: beyond them some square overflowed, or underflowed squares may be missed."""
    limits = finfo(dtype)
    return limits.tiny / limits.eps**2, limits.max


def accurate_squares(squared: Tensor) -> Tensor | None:
    """Return which sums of squares are accurate; None if all of them are."""
    least, most = _normal_squares(squared.dtype)
    if lie_between(squared, least, most):
        return None
    return (squared >= least) & (squared <= most)


def _euclidean(x: Tensor, dim: tuple[int, ...]) -> Tensor:
    """Return the root of the sum of squares; where that is too large or too small, of elements that are scaled first."""
    squared = _squared(x, dim)
    accurate = accurate_squares(squared)
    return squared.sqrt_() if accurate is None else squared.sqrt_().where(accurate, _scaled_euclidean(x, dim))


def scaled(size: Tensor, dim: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Divide sizes by the largest one, so that no power overflows; and return that."""
    largest = size.amax(dim, keepdim=True)
    scale = largest.masked_fill((largest == 0) | (largest == math.inf), 1)
    return size.div_(scale), scale


@tiled
def _scaled_euclidean(x: Tensor, dim: tuple[int, ...]) -> Tensor:
    size, scale = scaled(x.abs(), dim)
    return size.square_().sum(dim, keepdim=True).sqrt_().mul_(scale)


@tiled
def _euclidean_gradient(g: Tensor, x: Tensor, y: Tensor, dim: tuple[int, ...]) -> Tensor:
    return g * (x / y.masked_fill(y == 0, 1))


def _norm_gradient(g: Tensor, x: Tensor, y: Tensor, dim: tuple[int, ...], ord: float) -> Tensor:
    """Return the gradient of a norm in terms of x / y, which neither overflows nor vanishes; 0 where the norm is 0."""
    g, y = keep_dims(g, x.shape, dim), keep_dims(y, x.shape, dim)
    if ord == 0:
        return g.new_zeros(x.shape)
    if ord == 1:
        return x.sign() * g
    if abs(ord) == float("inf"):
        return x.sign() * shared_among(g, x.abs(), y, dim)
    if ord == 2:
        return _euclidean_gradient(g, x, y, dim)
    ratio = x / y.masked_fill(y == 0, 1)
    zero = (ratio == 0) | (y == 0)
    return g * ratio.sign() * ratio.abs().masked_fill(zero, 1).pow(ord - 1).masked_fill(zero, 0)


def in_dtype(operator: Any, x: Tensor, dtype: DTypeLike | None) -> Tensor:
    """Return a tensor in the dtype that a norm is computed in: one of its kind, and not narrower; RuntimeError where it is another."""
    name = public_name(operator.name)
    if not x.dtype.is_differentiable:
        raise refused(operator, x)
    if dtype is None:
        return x
    chosen = resolve_dtype(dtype)
    before, after = (DTYPES[NUMBER[each.name]] for each in (x.dtype, chosen))
    if not chosen.is_differentiable:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {after.title}")
    if chosen.is_complex != x.dtype.is_complex:
        kind = "complex" if x.dtype.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {after.title}")
    if common(before, after) is not after:
        raise RuntimeError(f"{name}: the dtype of the input ({before.title}) should be convertible without narrowing to the "
                           f"specified dtype ({after.title})")
    return x.to(chosen)


def _norm_of_sizes(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None,
                   out: Tensor | None = None) -> Any:
    """Return the norm of complex numbers, which is the norm of their absolute values."""
    x = in_dtype(linalg_vector_norm, x, dtype)
    return linalg_vector_norm(x.abs(), ord, dim, keepdim, out=out) if x.is_complex() else NotImplemented


@operator(dx=_norm_gradient, node="LinalgVectorNormBackward0", batch=shifted("dim"), parts=_norm_of_sizes,
          refuses={"biu": NOT_FLOATING})
def linalg_vector_norm(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None,
                       out: Tensor | None = None) -> Tensor:
    """Norm of the elements as a vector, over all dims or those in `dim`: (sum of |x|^ord)^(1/ord).

    `ord` may be 0 (the count of elements that are not 0), inf or -inf. Large and small elements are scaled first, so that no power
    overflows. The gradient is 0 where the norm is 0.

    >>> import cygrad
    >>> cygrad.linalg.vector_norm(cygrad.tensor([3., 4.]))
    tensor(5.)
    """
    if isinstance(ord, str) or not hasattr(type(ord), "__float__"):
        function: Any = linalg_vector_norm
        raise TypeError(f"{function.name}(): argument 'ord' (position 2) must be Number, not {type(ord).__name__}")
    return vector_norm(x, ord, dim, keepdim, dtype, out)


def vector_norm(x: Tensor, ord: float, dim: Dims, keepdim: bool, dtype: DTypeLike | None, out: Tensor | None) -> Tensor:
    """Return the result of `linalg.vector_norm` for a tensor that is not special."""
    if dtype is not None or not x.is_floating_point():
        x = in_dtype(linalg_vector_norm, x, dtype)
        if x.is_complex():
            return linalg_vector_norm(x.abs(), ord, dim, keepdim, out=out)
    order, dims = float(ord), normalized_dims(dim, x.ndim)
    if x.numel() == 0 and (order < 0 or order == math.inf):
        empty = "on an empty tensor" if dim is None else f"on the dimension {dims[0]}, which is empty,"
        if dim is None or any(x.shape[d] == 0 for d in dims):
            raise RuntimeError(f"linalg.vector_norm cannot compute the {order} norm {empty} because the operation does not have an "
                               "identity")
    result = _norm(x.detach(), order, dims, keepdim)
    return delivered(recorded(linalg_vector_norm, (x,), result, dim=dims, ord=order), out)


@rounded_once
def _norm(x: Tensor, p: float, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    if p == 2 and x.numel():
        result = _euclidean(x, dims)
        return result if keepdim else result.squeeze(dims)
    size = x.abs()
    if p == 0:
        return (x != 0).sum(dims, keepdim=keepdim).to(x.dtype)
    if p == 1 or not x.numel():
        return size.sum(dims, keepdim=keepdim)
    if p == math.inf:
        return size.amax(dims, keepdim=keepdim)
    if p == -math.inf:
        return size.amin(dims, keepdim=keepdim)
    size, scale = scaled(size, dims)
    result = size.pow(p).sum(dims, keepdim=True).pow(1 / p) * scale
    return result if keepdim else result.squeeze(dims)


@operator
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Norm of the difference of two tensors, which broadcast.

    >>> import cygrad
    >>> cygrad.dist(cygrad.tensor([3., 4.]), cygrad.zeros(2))
    tensor(5.)
    """
    return linalg_vector_norm(input - other, p)


@operator(in_place=True)
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
    """Copy in which each slice along `dim` has the p-norm `maxnorm` at most: others are scaled by maxnorm / (norm + 1e-7), as in torch.

    RuntimeError for less than two dims, for p not above 0, and for a negative `maxnorm`.

    >>> import cygrad
    >>> cygrad.renorm(cygrad.tensor([[3., 4.], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    order, limit = (number_argument(renorm, name, value) for name, value in (("p", p), ("maxnorm", maxnorm)))
    if not order > 0:
        raise RuntimeError(f"{renorm.__name__}: non-positive-norm not supported, got p = {order}")
    if not limit >= 0:
        raise RuntimeError(f"{renorm.__name__}: expected maxnorm to be >= 0 but got {limit}")
    if input.ndim < 2:
        raise RuntimeError(f"{renorm.__name__}: input needs at least 2 dimensions, got {input.ndim} dimensions")
    d = normalized_dim(dim, input.ndim)
    return delivered(_with_norm_below(input, order, tuple(k for k in range(input.ndim) if k != d), limit).contiguous(), out)


def number_argument(operator: Any, name: str, value: Any) -> float:
    """Return an argument that is a real number."""
    if isinstance(value, complex):
        raise RuntimeError(f"{operator.name}: {name} must be real-valued, got {value}")
    if isinstance(value, str) or not hasattr(type(value), "__float__"):
        raise TypeError(f"{operator.name}(): argument '{name}' must be Number, not {type(value).__name__}")
    return float(value)


@rounded_once
def _with_norm_below(x: Tensor, p: float, dims: tuple[int, ...], limit: float) -> Tensor:
    norm = linalg_vector_norm(x, p, dims, keepdim=True)
    return x * (limit / (norm + 1e-7)).where(norm > limit, 1.0)
