"""Products of vectors: dot, outer, cross and their kin, and the products of `cygrad.linalg` along a dim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute import products as compiled
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import computed, to_array
from cygrad._core.operands.operands import broadcast_shape
from cygrad.operators._language.arguments import check_ndim, checked_operand, delivered
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.flops import of_product
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators._language.tangents import bilinear
from cygrad.operators.joining import cat
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP, NOT_FLOATING

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@operator(compiled.dot, flops=of_product(), dinput=lambda g, tensor: g * tensor, dtensor=lambda g, input: g * input,
          parts=lambda a, b: a.matmul(b) if a.ndim == b.ndim == 1 and a.shape == b.shape and a.dtype == b.dtype else NotImplemented)
def dot(input: Tensor | np.ndarray, tensor: Tensor | np.ndarray, *, out: Tensor | None = None) -> Tensor:
    """Return the inner product of two vectors of one size.

    >>> import cygrad
    >>> cygrad.dot(cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.]))
    tensor(11.)
    """


@operator(aliases=("ger",))
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix of the products of the elements of two vectors.

    >>> import cygrad
    >>> cygrad.outer(cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    check_ndim(outer.__name__ + ": Expected 1-D argument self, but got {}-D", input, 1)
    check_ndim(outer.__name__ + ": Expected 1-D argument vec2, but got {}-D", vec2, 1)
    return delivered(input.unsqueeze(1) * vec2, out)


@operator(flops=of_product())
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inner product of the conjugate of a vector and another.

    >>> import cygrad
    >>> cygrad.vdot(cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.]))
    tensor(11.)
    """
    return dot(input.conj(), other, out=out)


# ----- Along a dim -----
@operator(dinput=lambda g, other, dim: _cross(other, g, dim), dother=lambda g, input, dim: _cross(g, input, dim), tangent=bilinear,
          batch=shifted("dim"),
          refuses={"b": NO_LOOP}, loop="cross")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Cross products of the vectors along `dim`; the other dims broadcast.

    >>> import cygrad
    >>> cygrad.linalg.cross(cygrad.tensor([1., 0., 0.]), cygrad.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    if checked_operand(linalg_cross, input).ndim != other.ndim:
        raise RuntimeError(f"linalg.cross: inputs must have the same number of dimensions. Got {input.ndim} and {other.ndim}")
    d = normalized_dim(dim, input.ndim)
    if input.ndim == 0 or input.shape[d] != 3 or other.shape[d] != 3:
        sizes = (tensor.shape[d] if tensor.ndim else 1 for tensor in (input, other))
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {' and '.join(map(str, sizes))}")
    shape = broadcast_shape(input, other)
    a, b = (tensor if tensor.shape == shape else tensor.expand(shape) for tensor in (input, other))

    return delivered(recorded(linalg_cross, (a, b), unrecorded(lambda: _cross_products(a.detach(), b.detach(), d)), dim=d), out)


@rounded_once
def _cross_products(a: Tensor, b: Tensor, dim: int) -> Tensor:
    (x, y, z), (u, v, w) = a.unbind(dim), b.unbind(dim)
    return cat([part.unsqueeze(dim) for part in (y * w - z * v, z * u - x * w, x * v - y * u)], dim)


def _cross(input: Tensor, other: Tensor, dim: int) -> Tensor:
    return linalg_cross(input, other, dim=dim)


@operator
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Cross products of the vectors along `dim` (default: the first of size 3).

    >>> import cygrad
    >>> cygrad.cross(cygrad.tensor([1., 0., 0.]), cygrad.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    if dim is None:
        if 3 not in input.shape:
            raise RuntimeError(f"no dimension of size 3 in input: {list(input.shape)}")
        dim = tuple(input.shape).index(3)
    return linalg_cross(input, other, dim=dim, out=out)


@operator(refuses={"biu": NOT_FLOATING})
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Inner products of the vectors along `dim`, the first conjugated; the other dims broadcast.

    >>> import cygrad
    >>> cygrad.linalg.vecdot(cygrad.tensor([[1., 2.], [0., 1.]]), cygrad.tensor([3., 4.]))
    tensor([11.,  4.])
    """
    checked_operand(linalg_vecdot, x)
    if x.dtype != checked_operand(linalg_vecdot, y).dtype:
        first, second = (DTYPES[NUMBER[tensor.dtype.name]].title for tensor in (x, y))
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {first} and y of type {second} "
                           "instead")
    return delivered(_sum_of_products(x.conj(), y, dim), out)


@rounded_once
def _sum_of_products(x: Tensor, y: Tensor, dim: int) -> Tensor:
    return (x * y).sum(dim)


# ----- Shifted against each other -----
def _convolved_examples(level: Any, operator: Any, a: Tensor, v: Tensor, valid: bool) -> Tensor:
    """Multiply the windows of a vector, between zeros where all overlaps count, by the other one."""
    zeros = a.new_zeros(0 if valid else v.shape[0] - 1)
    return (cat([zeros, a, zeros]).unfold(0, v.shape[0], 1) * v.flip(0)).sum(-1)


@operator(da=lambda g, v, valid: g._vector_convolution(v.flip(0), not valid),
          dv=lambda g, a, valid: a._vector_convolution(g.flip(0), True).flip(0) if valid else g._vector_convolution(a.flip(0), True),
          tangent=bilinear, batch=_convolved_examples, node="ConvolutionBackward0")
def _vector_convolution(a: Tensor, v: Tensor, valid: bool) -> Tensor:
    """Sums of products of two vectors of one dtype, at each shift at which they overlap, or (`valid`) at which all of v, the shorter, does.

    Each gradient is the other kind, of the other vector backwards.
    """
    if a.ndim != 1 or v.ndim != 1 or not len(v) or len(a) < (len(v) if valid else 1):
        raise RuntimeError(f"there are no convolutions of vectors of the shapes {list(a.shape)} and {list(v.shape)}")
    result = np.convolve(to_array(a), to_array(v), "valid" if valid else "full")
    return recorded(_vector_convolution, (a, v), computed(result), valid=valid)
