"""Elementwise operators on sparse tensors: rows of the table, computed on the values where they leave zeros at zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.creation import scalar_tensor
from cygrad._core.compute.dispatch import ops as rows
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.formats import sparse_coo
from cygrad.operators._sparse.conversion import coalesced
from cygrad.operators._sparse.pattern import in_order, index_of, pattern_of_coordinates, unnoted
from cygrad.operators._sparse.rules import changed_in_place, rule

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def _refused(name: str) -> NotImplementedError:
    return NotImplementedError(f"{name}() is not implemented for sparse tensors and these operands: its result would not be sparse. Use "
                               "to_dense(), or values()")


def _keeps_zeros(name: str, operands: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Return True if a row is 0 where its tensors are: a product with infinity or NaN counts, as it has places with values only."""
    zeros = (scalar_tensor(0, x.dtype) if isinstance(x, TensorImpl) and sparse_part(x) is not None else
             x.detach() if isinstance(x, TensorImpl) else x for x in operands)
    result = rows[name](*zeros, **keywords).item()
    return result == 0 or result != result


_keeps_zeros_by_numbers = unnoted(_keeps_zeros)     # without dense operands, whose values would decide


@rule
def elementwise(name: str, *operands: Any, **keywords: Any) -> Any:
    """Return the result of a row, of its name, with a sparse operand; `name_` computes in place."""
    if name.endswith("_") and name not in rows:
        return changed_in_place(name, *operands, **keywords)
    sparse = [x for x in operands if isinstance(x, TensorImpl) and sparse_part(x) is not None]
    dense = [x for x in (*operands, *keywords.values()) if isinstance(x, TensorImpl) and sparse_part(x) is None]
    keeps_zeros = _keeps_zeros if dense else _keeps_zeros_by_numbers
    if any(x.ndim for x in dense) or not keeps_zeros(name, operands, keywords):
        raise _refused(name)
    if len(sparse) == 1:
        (only,) = sparse
        part = sparse_part(_distinct(only))
        return part.around(rows[name](*(part.inner if x is only else x for x in operands), **keywords))
    if len(operands) != len(sparse) or len(sparse) > 2:
        raise _refused(name)
    first, *others = _with_same_places(*sparse)
    part = sparse_part(first)
    result = part.around(rows[name](part.inner, *(sparse_part(x).inner for x in others), **keywords))
    return result.to_sparse(layout=sparse[0].layout)


def _distinct(input: Tensor) -> Tensor:
    """Return a sparse tensor of distinct places: values at one place count by their sum."""
    return coalesced(input) if input.layout is sparse_coo else input


def _have_same_places(first: Tensor, second: Tensor) -> bool:
    a, b = sparse_part(first).pattern, sparse_part(second).pattern
    return a.layout is b.layout and a.same_places(b)


def _coalesced_pair(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return two sparse tensors, coalesced; RuntimeError where their sizes or their numbers of sparse dims differ."""
    if tuple(first.shape) != tuple(second.shape):
        raise RuntimeError(f"The size of sparse tensors must match: {list(first.shape)} and {list(second.shape)}")
    pair = coalesced(first), coalesced(second)
    dims = [sparse_part(each).pattern.sparse_dim for each in pair]
    if dims[0] != dims[1]:
        raise RuntimeError(f"sparse tensors must have as many sparse dims: {dims[0]} and {dims[1]}")
    return pair


def _with_same_places(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return two sparse tensors with the places of both, zeros where one has none."""
    first, second = _distinct(first), _distinct(second)
    if tuple(first.shape) == tuple(second.shape) and _have_same_places(first, second):
        return first, second
    first, second = _coalesced_pair(first, second)
    coordinates = np.concatenate([sparse_part(each).pattern.coordinates for each in (first, second)], 1)
    union, _ = pattern_of_coordinates(coordinates, first.shape, False).coalescence
    return union.around(union.values_at(first)), union.around(union.values_at(second))


# ----- Sums -----
@rule
def add(input: Any, other: Any) -> Any:
    return _sum("add", input, other)


@rule
def sub(input: Any, other: Any) -> Any:
    return _sum("sub", input, other)


def _sum(name: str, input: Any, other: Any) -> Any:
    left, right = sparse_part(input), sparse_part(other)
    if left is not None and right is not None:
        return elementwise(name, input, other)
    dense = other if right is None else input
    if not isinstance(dense, TensorImpl) or not dense.ndim and (input if right is None else other).ndim:
        raise _refused(name)
    return rows[name](input.to_dense() if right is None else input, other if right is None else other.to_dense())


# ----- Products -----
@rule
def mul(input: Any, other: Any) -> Any:
    left, right = sparse_part(input), sparse_part(other)
    if left is None or right is None:
        sparse, factor = (input, other) if right is None else (other, input)
        return _scaled("mul", sparse, factor)
    first, second = _distinct(input), _distinct(other)
    if _have_same_places(first, second):
        return elementwise("mul", first, second)
    a, b = map(sparse_part, _coalesced_pair(first, second))
    _, at_a, at_b = np.intersect1d(a.pattern.keys, b.pattern.keys, True, return_indices=True)
    common = a.pattern.selected(at_a)
    return common.around(in_order(a.inner, index_of(at_a)) * in_order(b.inner, index_of(at_b))).to_sparse(layout=input.layout)


@rule
def div(input: Any, other: Any) -> Any:
    if sparse_part(other) is not None:
        raise RuntimeError("Sparse division requires a dense divisor: a sparse one has zeros")
    return _scaled("div", input, other)


def _scaled(name: str, sparse: Tensor, factor: Any) -> Tensor:
    """Return a sparse tensor times a number or a dense tensor, or divided by it, at its own places."""
    part = sparse_part(sparse)
    if isinstance(factor, TensorImpl) and factor.ndim:
        if np.broadcast_shapes(sparse.shape, factor.shape) != tuple(sparse.shape):
            raise RuntimeError(f"{name}(): a dense factor of shape {list(factor.shape)} does not broadcast to the sparse tensor of shape "
                               f"{list(sparse.shape)}")
        factor = _elements_at(part.pattern, factor)
    return part.around(rows[name](part.inner, factor))


def _elements_at(pattern: Any, dense: Tensor) -> Tensor:
    """Return the elements of a dense tensor, broadcast to the shape of a pattern, at its places; nothing of that shape is made."""
    dense = dense.reshape(*(1 for _ in range(len(pattern.shape) - dense.ndim)), *dense.shape)
    sizes = dense.shape[:pattern.sparse_dim]
    keys = np.zeros(pattern.entries, np.int64)
    for size, line in zip(sizes, pattern.coordinates, strict=True):
        keys = keys * size + (line if size > 1 else 0)
    return dense.reshape(math.prod(sizes), *dense.shape[pattern.sparse_dim:]).index_select(0, index_of(keys))


@rule
def add_(self: Tensor, other: Any) -> Tensor:
    part = sparse_part(other)
    if sparse_part(self) is not None or part is None or not self.is_contiguous():
        return changed_in_place("add_", self, other)
    if tuple(self.shape) != tuple(other.shape):
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(other.shape)}")
    pattern = part.pattern
    self.view(math.prod(pattern.sparse_shape), *pattern.dense_shape).index_add_(0, pattern.places, part.inner.to(self.dtype))
    return self
