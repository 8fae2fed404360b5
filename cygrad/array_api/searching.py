"""Searching, sorting, indexing, and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.operands.arrays import to_array
from cygrad.array_api.elementwise import checked
from cygrad.array_api.promotion import by_numpy, is_unsigned, tensors_of
from cygrad.operators import lookup, sorting

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

__all__ = [
    "argmax", "argmin", "argsort", "count_nonzero", "isin", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "where",
]


# ----- Searching -----
def _place(name: str, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    if is_unsigned(checked(name, x).dtype):
        return by_numpy(getattr(np, name), x, axis=axis, keepdims=keepdims)
    return getattr(x, name)(axis, keepdims)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the place of the largest element, along a dim or of all."""
    return _place("argmax", x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the place of the smallest element, along a dim or of all."""
    return _place("argmin", x, axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the number of elements that are not 0, along dims or of all."""
    return (checked("count_nonzero", x) != 0).sum(axis, keepdims)


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """Return the places of the elements that are not 0, an index tensor for each dim."""
    if not checked("nonzero", x).ndim:
        raise ValueError("nonzero() expected a tensor with dims, but got one without")
    return tuple(lookup.nonzero(x, as_tuple=True))


def searchsorted(x1: Any, x2: Any, /, *, side: Literal["left", "right"] = "left", sorter: Any = None) -> Tensor:
    """Return the places at which numbers would go into a sorted vector."""
    boundaries, values = tensors_of("searchsorted", x1, x2)
    if is_unsigned(boundaries.dtype):
        return by_numpy(np.searchsorted, boundaries, values, side=side, sorter=sorter if sorter is None else to_array(sorter))
    if sorter is not None:
        boundaries = boundaries[sorter]
    return sorting.searchsorted(boundaries, values, side=side)


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """Return the elements of `x1` where a condition holds, elsewhere the elements of `x2`; both may be numbers, but not both."""
    left, right = tensors_of("where", x1, x2)
    return left.where(checked("where", condition), right)


# ----- Sorting -----
def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the places of the elements in order, along a dim."""
    return checked("argsort", x).sort(dim=axis, descending=descending, stable=stable).indices


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements in order, along a dim."""
    return checked("sort", x).sort(dim=axis, descending=descending, stable=stable).values


# ----- Indexing -----
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Return the parts along a dim at indices; the dim may be left out for a vector."""
    if axis is None and checked("take", x).ndim != 1:
        raise ValueError(f"take(): the axis can be left out for a vector only, but the tensor has {x.ndim} dims")
    place = 0 if axis is None else axis
    result = checked("take", x).index_select(place, indices.reshape(-1))
    before = place % x.ndim
    return result.reshape((*x.shape[:before], *indices.shape, *x.shape[before + 1:]))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """Return the elements along a dim at indices of each place of the other dims."""
    return checked("take_along_axis", x).take_along_dim(indices, axis)


# ----- Sets -----
class UniqueAll(NamedTuple):
    """The results of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The results of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The results of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Any, /) -> UniqueAll:
    """Return the distinct elements in order, the place of the first of each, the place of each element among them, and how often it occurs.

    Each NaN is distinct.

    >>> import cygrad
    >>> cygrad.array_api.unique_all(cygrad.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """
    values, first, inverse, counts = by_numpy(np.unique_all, checked("unique_all", x).detach())
    return UniqueAll(x.reshape(-1)[first] if x.requires_grad else values.to(x.dtype), first, inverse, counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the distinct elements in order, and how often each occurs."""
    result = unique_all(x)
    return UniqueCounts(result.values, result.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the distinct elements in order, and the place of each element among them."""
    result = unique_all(x)
    return UniqueInverse(result.values, result.inverse_indices)


def unique_values(x: Any, /) -> Tensor:
    """Return the distinct elements in order."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Say of each element whether it is among others, or is not."""
    elements, others = tensors_of("isin", x1, x2)
    if not isinstance(elements, TensorImpl) or is_unsigned(elements.dtype):
        return by_numpy(np.isin, elements, others, invert=invert)
    return sorting.isin(elements, others, invert=invert)
