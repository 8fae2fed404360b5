"""Sums over sparse tensors, and softmax of the values there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.formats import sparse_coo
from cygrad._core.memory.sizes import normalized_dim, normalized_dims
from cygrad.data.creation import int64
from cygrad.operators._sparse.conversion import coalesced
from cygrad.operators._sparse.pattern import index_of, pattern_of_coordinates, summed
from cygrad.operators._sparse.rules import rule

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import DTypeLike


@rule
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    if keepdim and dim is not None:
        result = sum(input, dim, dtype=dtype)
        for d in sorted(normalized_dims(dim, input.ndim)):
            result = result.unsqueeze(d)
        return result
    part = sparse_part(input)
    values = part.inner if dtype is None else part.inner.to(dtype)
    if dtype is None and not values.dtype.is_differentiable:
        values = values.to(int64)
    if dim is None:
        return values.sum()
    pattern = part.pattern
    dims = normalized_dims(dim, input.ndim)
    values_dims = tuple(d - pattern.sparse_dim + 1 for d in dims if d >= pattern.sparse_dim)
    if values_dims:
        values = values.sum(values_dims)
    sparse_dims = [d for d in range(pattern.sparse_dim) if d not in dims]
    shape = [size for d, size in enumerate(pattern.shape) if d not in dims]
    if not sparse_dims:
        return values.sum(0)
    whole = pattern_of_coordinates(pattern.coordinates[sparse_dims], shape, False)
    return coalesced(whole.around(values))


@rule
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    if dim is not None:
        raise NotImplementedError("any() of a sparse tensor is of all elements: use to_dense()")
    return sparse_part(input).inner.any()


@rule
def linalg_vector_norm(input: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    if dim is not None and len(normalized_dims(dim, input.ndim)) not in (0, input.ndim) or keepdim or ord < 0:
        raise RuntimeError("linalg.vector_norm(): the norm of a sparse tensor is of all its elements, without keepdim, and of an order not "
                           "below 0")
    values = sparse_part(coalesced(input) if input.layout is sparse_coo else input).inner
    return values.norm(ord, dtype=dtype) if values.numel() else values.abs().sum(dtype=dtype)


# ----- Over the values of a line: no rules, as elements without a value are no zeros here -----
def softmax(input: Tensor, dim: int, dtype: DTypeLike | None) -> Tensor:
    """Return exp(x) over its sum along a dim, of the values there are."""
    return _normalized("softmax", input, dim, dtype, lambda shifted, total: shifted.exp() / total)


def log_softmax(input: Tensor, dim: int, dtype: DTypeLike | None) -> Tensor:
    """Return the logarithm of `softmax`."""
    return _normalized("log_softmax", input, dim, dtype, lambda shifted, total: shifted - total.log())


def _normalized(name: str, input: Tensor, dim: int, dtype: DTypeLike | None, finish: Any) -> Tensor:
    """Return values computed from x - max, and the sum of their exponentials, over all along a dim with indices; others are -inf."""
    d = normalized_dim(dim, input.ndim)
    part = sparse_part(coalesced(input))
    pattern, values = part.pattern, part.inner if dtype is None else part.inner.to(dtype)
    if d >= pattern.sparse_dim:
        return pattern.around(getattr(values, name)(d - pattern.sparse_dim + 1))
    others = np.delete(pattern.coordinates, d, 0)
    shape = (*pattern.shape[:d], *pattern.shape[d + 1:])
    lines, inverse = pattern_of_coordinates(others, shape, False).coalescence
    line = index_of(np.arange(pattern.entries)) if inverse is None else inverse
    at = line.reshape(-1, *(1 for _ in pattern.dense_shape)).expand(values.shape)
    highest = values.detach().new_full((lines.entries, *pattern.dense_shape), -np.inf).scatter_reduce(0, at, values.detach(), "amax")
    shifted = values - highest.index_select(0, line)
    total = summed(shifted.exp(), lines, line)
    return pattern.around(finish(shifted, total.index_select(0, line))).to_sparse(layout=input.layout)
