"""Operators that move, select and join places of sparse tensors: values are put in another order, and nothing else is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.formats import sparse_coo
from cygrad._core.memory.sizes import integers, normalized_dim
from cygrad._core.operands.arrays import to_array
from cygrad.operators import joining
from cygrad.operators._sparse.conversion import coalesced
from cygrad.operators._sparse.pattern import in_order, index_of, pattern_of_coordinates
from cygrad.operators._sparse.rules import RULES, rule

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


# ----- The order of dims -----
@rule
def permute(input: Tensor, *dims: Any) -> Tensor:
    order = [normalized_dim(dim, input.ndim) for dim in (integers(dims[0]) if len(dims) == 1 else dims)]
    if sorted(order) != list(range(input.ndim)):
        raise RuntimeError(f"permute(sparse_coo): the dims {order} are no order of the {input.ndim} dims of the tensor")
    part = sparse_part(input)
    pattern = part.pattern
    if order == [1, 0] and pattern.sparse_dim == 2:
        return pattern.transposed.around(part.inner)
    n = pattern.sparse_dim
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError(f"permute(sparse_coo): the first {n} dims have indices, the others are dims of the values: they do not mix in "
                           f"{order}")
    result = pattern_of_coordinates(pattern.coordinates[order[:n]], [pattern.shape[d] for d in order], order == sorted(order))
    return result.around(part.inner.permute(0, *(d - n + 1 for d in order[n:]))).to_sparse(layout=input.layout)


@rule
def transpose(input: Tensor, dim0: Any = None, dim1: Any = None) -> Tensor:
    order = list(range(input.ndim))
    first, second = normalized_dim(dim0, input.ndim), normalized_dim(dim1, input.ndim)
    order[first], order[second] = order[second], order[first]
    return permute(input, order)


@rule
def t(input: Tensor) -> Tensor:
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return permute(input, list(range(input.ndim))[::-1])


for _name in ("T", "mT"):
    RULES[_name] = t


# ----- Parts -----
@rule
def select(input: Tensor, dim: int, index: int) -> Tensor:
    d = normalized_dim(dim, input.ndim)
    size = input.shape[d]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}")
    part = sparse_part(input)
    pattern = part.pattern
    shape = [*pattern.shape[:d], *pattern.shape[d + 1:]]
    if d >= pattern.sparse_dim:
        values = part.inner.select(d - pattern.sparse_dim + 1, index)
        return pattern_of_coordinates(pattern.coordinates, shape, pattern.is_coalesced).around(values)
    at = np.flatnonzero(pattern.coordinates[d] == index % size)
    if pattern.sparse_dim == 1:     # no dim with indices is left: the sum of the values there
        return in_order(part.inner, index_of(at)).sum(0, dtype=part.inner.dtype)
    coordinates = np.delete(pattern.coordinates[:, at], d, 0)
    return pattern_of_coordinates(coordinates, shape, pattern.is_coalesced).around(in_order(part.inner, index_of(at)))


@rule
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(select(input, dim, index) for index in range(input.shape[dim]))


@rule
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    d = normalized_dim(dim, input.ndim)
    size = input.shape[d]
    start = start + size if start < 0 else start
    if length < 0 or not 0 <= start <= size - length:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return _part(input, d, range(start, start + length))


@rule
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    d = normalized_dim(dim, input.ndim)
    numbers, size = to_array(index), input.shape[d]
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < size):
        raise IndexError(f"index_select(): index out of range for dimension {d} with size {size}")
    return _part(input, d, numbers.reshape(-1))


def _part(input: Tensor, d: int, numbers: Sequence[int] | np.ndarray) -> Tensor:
    """Return the slices of some numbers along a dim, in their order."""
    part = sparse_part(input)
    pattern = part.pattern
    shape = [*pattern.shape[:d], len(numbers), *pattern.shape[d + 1:]]
    if d >= pattern.sparse_dim:
        values = part.inner.index_select(d - pattern.sparse_dim + 1, index_of(np.asarray(numbers, np.int64)))
        return pattern_of_coordinates(pattern.coordinates, shape, pattern.is_coalesced).around(values)
    along = pattern.coordinates[d]
    order = np.argsort(along, kind="stable")
    first, last = (np.searchsorted(along[order], numbers, side) for side in ("left", "right"))
    counts = last - first
    at = order[np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)] if counts.sum() else order[:0]
    coordinates = pattern.coordinates[:, at]
    coordinates[d] = np.repeat(np.arange(len(numbers)), counts)
    result = pattern_of_coordinates(coordinates, shape, False).around(in_order(part.inner, index_of(at)))
    return (coalesced(result) if pattern.is_coalesced else result).to_sparse(layout=input.layout)


@rule
def __getitem__(input: Tensor, key: Any) -> Tensor:
    dim = 0
    for item in key if isinstance(key, tuple) else (key,):
        if isinstance(item, slice):
            start, stop, step = item.indices(input.shape[dim])
            input = input if (start, stop, step) == (0, input.shape[dim], 1) else _part(input, dim, range(start, stop, step))
            dim += 1
        elif hasattr(item, "__index__") and not isinstance(item, bool) and not getattr(item, "ndim", 0):
            input = select(input, dim, int(item))
        else:
            raise NotImplementedError(f"a sparse tensor is indexed by integers and slices, not by {type(item).__name__}: use "
                                      "index_select(), or to_dense()")
    return input


@rule
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    d = normalized_dim(dim, input.ndim + 1)
    part = sparse_part(coalesced(input) if input.layout is not sparse_coo else input)
    pattern = part.pattern
    shape = [*pattern.shape[:d], 1, *pattern.shape[d:]]
    if d > pattern.sparse_dim:
        return pattern_of_coordinates(pattern.coordinates, shape, pattern.is_coalesced).around(
            part.inner.unsqueeze(d - pattern.sparse_dim + 1))
    return pattern_of_coordinates(np.insert(pattern.coordinates, d, 0, 0), shape, pattern.is_coalesced).around(part.inner)


# ----- Joining -----
@rule
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    parts = [sparse_part(tensor) for tensor in tensors]
    if any(part is None for part in parts):
        raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found: all tensors have to be sparse")
    first = parts[0].pattern
    d = normalized_dim(dim, len(first.shape))
    for number, part in enumerate(parts):
        others = [(*part.pattern.shape[:d], *part.pattern.shape[d + 1:]), part.pattern.sparse_dim]
        if others != [(*first.shape[:d], *first.shape[d + 1:]), first.sparse_dim]:
            raise RuntimeError(f"All tensors must have the same shape: {list(part.pattern.shape)} (except in the concatenating dimension) "
                               f"and as many sparse dims: this does not hold for tensor {number}")
    ends = np.cumsum([part.pattern.shape[d] for part in parts])
    shape = [*first.shape[:d], int(ends[-1]), *first.shape[d + 1:]]
    if d >= first.sparse_dim:
        return _cat_of_values(parts, d, ends, shape)
    coordinates = [part.pattern.coordinates.copy() for part in parts]
    for moved, end, part in zip(coordinates, ends, parts, strict=True):
        moved[d] += end - part.pattern.shape[d]
    pattern = pattern_of_coordinates(np.concatenate(coordinates, 1), shape, not d and all(part.pattern.is_coalesced for part in parts))
    result = pattern.around(joining.cat([part.inner for part in parts]))
    return result.to_sparse(layout=first.layout)


@rule
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return cat([tensor.unsqueeze(dim) for tensor in tensors], dim)


def _cat_of_values(parts: list[Any], d: int, ends: np.ndarray, shape: list[int]) -> Tensor:
    """Join along a dim of the values: each has zeros in the others' places."""
    coordinates, values = [], []
    for part, end in zip(parts, ends, strict=True):
        before, here = int(end) - part.pattern.shape[d], d - part.pattern.sparse_dim + 1
        sizes = list(part.inner.shape)
        blocks = [part.inner.new_zeros((*sizes[:here], n, *sizes[here + 1:])) for n in (before, shape[d] - int(end))]
        values.append(joining.cat([blocks[0], part.inner, blocks[1]], here))
        coordinates.append(part.pattern.coordinates)
    return pattern_of_coordinates(np.concatenate(coordinates, 1), shape, False).around(joining.cat(values))
