"""Distances between vectors: of all pairs from two sets, or from one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cygrad._core.compute.distances import distances_by_differences, distances_of_pairs, products_of_pairs, pulled_pairs, pulled_rows
from cygrad._core.operands.arrays import computed, to_array
from cygrad.operators._language.batches import aligned_matrices, matrices
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.tangents import bilinear
from cygrad.operators._language.tiled import tiled
from cygrad.operators.norms import linalg_vector_norm
from cygrad.ops.dtypes import DTYPES, NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor

COMPUTE_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
COLUMNS = 25        # so many coordinates, or points of both sets, are few: differences are formed


# ----- Euclidean, of all pairs -----
def _squares_by_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return squared distances as |a|^2 + |b|^2 - 2 a.b; pairs so close that this cancels are computed by differences."""
    center = a.sum(-2, keepdims=True) / max(a.shape[-2], 1)
    a, b = a - center, b - center
    sizes = (a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :]
    squares = a @ (-2 * b).swapaxes(-1, -2)
    squares += sizes
    close = ~(squares > 1e-2 * sizes)
    if close.any():
        *_, i, j = places = close.nonzero()
        outer = np.array(places[:-2], np.int64).reshape(-1, len(i))
        rows = (np.broadcast_to(x, close.shape[:-2] + x.shape[-2:]) for x in (a, b))
        first, second = (x[(*outer, k)] for x, k in zip(rows, (i, j), strict=True))
        squares[close] = ((first - second) ** 2).sum(-1)
    return squares


@tiled
def _over_distances(g: Tensor, y: Tensor, dim: int) -> Tensor:
    zero = y == 0
    return (g / y.masked_fill(zero, 1)).masked_fill(zero, 0)


def _toward(weights: Tensor, x1: Tensor, x2: Tensor, by_products: bool) -> Tensor:
    """Return the gradient for the first set: the sum over the second one of weights times x1 - x2."""
    if not by_products and max(weights.shape[-2:]) <= COLUMNS:
        return weights._pull(x1, x2)
    center = x1.mean(-2, keepdim=True)
    return weights.sum(-1, keepdim=True) * (x1 - center) - weights @ (x2 - center)


def _sums_of_differences(h: Tensor, x1: Tensor, x2: Tensor) -> Tensor:
    """Return the inner products of h and x1 - x2, for all pairs."""
    center = x1.mean(-2, keepdim=True)
    return (h * (x1 - center)).sum(-1, keepdim=True) - h @ (x2 - center).mT


@operator(dinput=lambda g, x1, x2, input_shape: _sums_of_differences(g, x1, x2).sum_to_size(input_shape),
          dx1=lambda g, input, x1_shape: (input.sum(-1, keepdim=True) * g).sum_to_size(x1_shape),
          dx2=lambda g, input, x2_shape: (input.mT @ g).neg().sum_to_size(x2_shape), batch=aligned_matrices)
def _pull(input: Tensor, x1: Tensor, x2: Tensor) -> Tensor:
    """Return the sums over the second set of weights, the input, times x1 - x2, by the differences."""
    tensors: Sequence[Tensor] = (input.detach(), x1.detach(), x2.detach())
    if max(input.ndim, x1.ndim, x2.ndim) > 2 and not input.shape[:-2] == x1.shape[:-2] == x2.shape[:-2]:
        outer = np.broadcast_shapes(*[x.shape[:-2] for x in tensors])
        tensors = [x.expand(*outer, *x.shape[-2:]) for x in tensors]
    return recorded(_pull, (input, x1, x2), pulled_rows(*tensors))


# The weights of differences are g / y, and 0 where the distance y is 0.
@operator(shared=lambda g, y: _over_distances(g, y, -1),
          dx1=lambda shared, x1, x2, x1_shape, by_products: _toward(shared, x1, x2, by_products).sum_to_size(x1_shape),
          dx2=lambda shared, x1, x2, x2_shape, by_products: _toward(shared.mT, x2, x1, by_products).sum_to_size(x2_shape),
          node="CdistBackward0", batch=aligned_matrices)
def _euclidean_dist(x1: Tensor, x2: Tensor, by_products: bool) -> Tensor:
    """Return the Euclidean distances of all pairs."""
    if by_products:
        squares = _squares_by_products(to_array(x1), to_array(x2))
        result = computed(np.sqrt(squares, out=squares))
    else:
        a, b = x1.detach(), x2.detach()
        if max(x1.ndim, x2.ndim) > 2 and x1.shape[:-2] != x2.shape[:-2]:
            outer = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
            a, b = (x.expand(*outer, *x.shape[-2:]) for x in (a, b))
        result = distances_by_differences(a, b.mT)
    return recorded(_euclidean_dist, (x1, x2), result, by_products=by_products)


def _check_sets(x1: Tensor, x2: Tensor, p: float, compute_mode: str | None) -> None:
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {DTYPES[NUMBER[x.dtype.name]].title}")
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if x1.dtype != x2.dtype:
        first, second = (DTYPES[NUMBER[x.dtype.name]].title for x in (x1, x2))
        raise RuntimeError(f"expected scalar type {first} but found {second}")
    if not p >= 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")
    if compute_mode is not None and compute_mode not in COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode; there are {', '.join(COMPUTE_MODES)}")


@operator(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Distances of all pairs of vectors, one of each set: the p-norms of x1[i] - x2[j].

    The vectors are the rows of two matrices (n, m) and (k, m), the result is (n, k); dims in front broadcast. Sets of many vectors with
    many coordinates are compared by products of matrices; equal vectors have the distance 0, and the gradient 0.

    >>> import cygrad
    >>> cygrad.cdist(cygrad.tensor([[0., 0.], [3., 0.]]), cygrad.tensor([[3., 4.]]))
    tensor([[5.],
            [4.]])
    """
    _check_sets(x1, x2, p, compute_mode)
    if p == 2 and x1.dtype.loops is x1.dtype:
        many = max(x1.shape[-2], x2.shape[-2]) > COLUMNS < x1.shape[-1]
        by_products = compute_mode == COMPUTE_MODES[1] or many and compute_mode != COMPUTE_MODES[2]
        return x1._euclidean_dist(x2, by_products)
    return linalg_vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def _pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of both members of all pairs, as `np.triu_indices(count, 1)` does without its matrix."""
    rows = np.arange(count)
    behind = rows[::-1]         # members behind each one
    first = rows.repeat(behind)
    return first, np.arange(len(first)) - (behind.cumsum() - count)[first]


@operator(dinput=lambda g, other: g._pull_pairs(other), dother=lambda g, input: g._pull_pairs(input), tangent=bilinear, batch=matrices)
def _products_of_pairs(input: Tensor, other: Tensor) -> Tensor:
    """Return, for all pairs of rows, the inner product of their difference in one matrix and in another."""
    return recorded(_products_of_pairs, (input, other), products_of_pairs(input, other))


@operator(dinput=lambda g, other: g._products_of_pairs(other), dother=lambda g, input: input._pull_pairs(g), tangent=bilinear,
          batch=matrices)
def _pull_pairs(input: Tensor, other: Tensor) -> Tensor:
    """Return, for each row of the other matrix, the sum of its differences from all other rows, times the weights of the pairs."""
    return recorded(_pull_pairs, (input, other), pulled_pairs(input, other))


@operator(dinput=lambda g, input, y: _over_distances(g, y, -1)._pull_pairs(input), node="PdistBackward0", batch=matrices)
def _pair_distances(input: Tensor) -> Tensor:
    """Return the Euclidean distances of all pairs of rows."""
    return recorded(_pair_distances, (input,), distances_of_pairs(input))


@operator(method=False, aliases=("nn_functional_pdist",))
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Distances of all pairs of rows of a matrix (n, m), as a vector: of rows 0 and 1, 0 and 2, ..., n (n - 1) / 2 of them.

    >>> import cygrad
    >>> cygrad.pdist(cygrad.tensor([[0., 0.], [3., 4.], [3., 0.]]))
    tensor([5., 3., 4.])
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got {p}")
    if p == 2 and input.dtype.loops is input.dtype:
        return input._pair_distances()
    first, second = map(computed, _pairs(len(input)))
    return linalg_vector_norm(input.index_select(0, first) - input.index_select(0, second), p, -1)
