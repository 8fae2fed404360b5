"""Norms: of the elements as vectors, and of differences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cygrad.operators.arguments import checked_tensor, delivered, normalized_dims
from cygrad.operators.batches import shifted
from cygrad.operators.declaration import operator, recorded, unrecorded
from cygrad.operators.tiled import tiled
from cygrad.ops.gradients import keep_dims, shared_among

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Dims, DTypeLike


@tiled
def _euclidean(x: Tensor, dim: tuple[int, ...]) -> Tensor:
    """Return the root of the sum of squares, of elements that are scaled so that no square overflows."""
    size = x.abs()
    largest = size.amax(dim, keepdim=True)
    scale = largest.masked_fill((largest == 0) | (largest == math.inf), 1)
    return size.div_(scale).square_().sum(dim, keepdim=True).sqrt_().mul_(scale)


@tiled
def _euclidean_gradient(g: Tensor, x: Tensor, y: Tensor, dim: tuple[int, ...]) -> Tensor:
    return g * (x / y.masked_fill(y == 0, 1))


def _norm_gradient(g: Tensor, input: Tensor, y: Tensor, dim: tuple[int, ...], p: float) -> Tensor:
    """Return the gradient of a norm in terms of input / y, which neither overflows nor vanishes; 0 where the norm is 0."""
    g, y = keep_dims(g, input.shape, dim), keep_dims(y, input.shape, dim)
    if p == 0:
        return g.new_zeros(input.shape)
    if p == 1:
        return input.sign() * g
    if abs(p) == float("inf"):
        return input.sign() * shared_among(g, input.abs(), y, dim)
    if p == 2:
        return _euclidean_gradient(g, input, y, dim)
    ratio = input / y.masked_fill(y == 0, 1)
    zero = ratio == 0
    return g * ratio.sign() * ratio.abs().masked_fill(zero, 1).pow(p - 1).masked_fill(zero, 0)


def _norm_of_sizes(input: Tensor, p: float | str | None = "fro", dim: Dims = None, keepdim: bool = False, out: Tensor | None = None,
                   dtype: DTypeLike | None = None) -> Any:
    """Return the norm of complex numbers, which is that of their absolute values."""
    x = input if dtype is None else input.to(dtype)
    return norm(x.abs(), p, dim, keepdim, out) if x.is_complex() else NotImplemented


@operator(dinput=_norm_gradient, node="LinalgVectorNormBackward0", batch=shifted("dim"), parts=_norm_of_sizes)
def norm(input: Tensor, p: float | str | None = "fro", dim: Dims = None, keepdim: bool = False, out: Tensor | None = None,
         dtype: DTypeLike | None = None) -> Tensor:
    """Norm of the elements as a vector, over all dims or those in `dim`: (sum of |x|^p)^(1/p), "fro" being 2.

    `p` may be 0 (the count of elements that are not 0), inf or -inf. Large and small elements are scaled first, so that no power
    overflows. The gradient is 0 where the norm is 0.

    >>> import cygrad
    >>> cygrad.norm(cygrad.tensor([3., 4.]))
    tensor(5.)
    """
    x = checked_tensor("norm", input) if dtype is None else input.to(dtype)
    if p == "nuc":
        raise NotImplementedError("norm(): p='nuc' is the sum of singular values, which this version does not compute; use "
                                  "numpy.linalg.norm")
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if x.is_complex():
        return _norm_of_sizes(x, p, dim, keepdim, out)
    if not x.is_floating_point():
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype}; convert it first")
    order = 2.0 if p is None or p == "fro" else float(p)
    dims = normalized_dims(dim, x.ndim)
    if x.numel() == 0 and (order < 0 or order == math.inf):
        empty = "on an empty tensor" if dim is None else f"on the dimension {dims[0]}, which is empty,"
        if dim is None or any(x.shape[d] == 0 for d in dims):
            raise RuntimeError(f"linalg.vector_norm cannot compute the {order} norm {empty} because the operation does not have an "
                               "identity")
    result = unrecorded(lambda: _norm(x.detach(), order, dims, keepdim))
    return delivered(recorded(norm, (x,), result, dim=dims, p=order), out)


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
    largest = size.amax(dims, keepdim=True)
    scale = largest.masked_fill((largest == 0) | (largest == math.inf), 1)
    size = size / scale
    result = size.pow(p).sum(dims, keepdim=True).pow(1 / p) * scale
    return result if keepdim else result.squeeze(dims)


@operator
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Norm of the difference of two tensors, which broadcast.

    >>> import cygrad
    >>> cygrad.dist(cygrad.tensor([3., 4.]), cygrad.zeros(2))
    tensor(5.)
    """
    return norm(checked_tensor("dist", input) - other, p)
