"""Vectors compared with others of the same shape, and vectors of norm 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad.data.limits import promote_types
from cygrad.operators._language.arguments import delivered
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.norms import linalg_vector_norm
from cygrad.operators.shapes import broadcast_tensors
from cygrad.ops.dtypes import DTYPES, NUMBER

if TYPE_CHECKING:
    from cygrad._core.memory.storage import DType
    from cygrad.tensor import Tensor


@rounded_once
def _normalized(input: Tensor, p: float, dim: int | tuple[int, ...], eps: float) -> Tensor:
    return input / linalg_vector_norm(input, p, dim, True).clamp_min(eps)


@operator
def nn_functional_normalize(input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Tensor | None = None
                            ) -> Tensor:
    """Vectors along `dim` divided by their p-norms, or by `eps` where a norm is smaller.

    >>> import cygrad
    >>> cygrad.nn.functional.normalize(cygrad.tensor([[3., 4.], [0., 0.]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return delivered(_normalized(input, p, dim, eps), out)


def _with_dims(x: Tensor, ndim: int, dtype: DType) -> Tensor:
    """Return a tensor in a dtype, with dims of one element in front."""
    x = x if x.dtype is dtype else x.to(dtype)
    return x if x.ndim == ndim else x[(None,) * (ndim - x.ndim)]


@rounded_once
def _cosine(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    return (_normalized(x1, 2.0, dim, eps) * _normalized(x2, 2.0, dim, eps)).sum(dim)


@operator(method=False, aliases=("nn_functional_cosine_similarity",))
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along `dim`: the sum of products of both, each divided by its norm or `eps`.

    Shapes broadcast, and `dim` is one of their common shape. RuntimeError unless the common dtype is a float.

    >>> import cygrad
    >>> cygrad.cosine_similarity(cygrad.tensor([[1., 1.]]), cygrad.tensor([[0., 2.]]))
    tensor([0.7071])
    """
    dtype = x1.dtype if x1.dtype is x2.dtype else promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        title = DTYPES[NUMBER[dtype.name]].title
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {title}; convert one of them first")
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    ndim = max(x1.ndim, x2.ndim)
    a, b = (_with_dims(x, ndim, dtype) for x in (x1, x2))
    if a.shape != b.shape:
        a, b = broadcast_tensors(a, b)
    return _cosine(a, b, dim, eps)


@operator(method=False, aliases=("nn_functional_pairwise_distance",))
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Distances of vectors along the last dim: the p-norms of x1 - x2 + eps; shapes broadcast.

    `eps` keeps the gradient of equal vectors finite, as in torch.

    >>> import cygrad
    >>> cygrad.pairwise_distance(cygrad.tensor([[0., 0.]]), cygrad.tensor([[3., 4.]]))
    tensor([5.0000])
    """
    return _distance(x1, x2, p, eps, keepdim)


@rounded_once
def _distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    return linalg_vector_norm(x1 - x2 + eps, p, -1, keepdim)
