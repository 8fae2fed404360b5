"""Distinct elements, and sets of them. NumPy finds their places, and they are taken there: the gradient goes to the first of equal ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.operands.arrays import from_array
from cygrad.numpy_functions.rows import is_integer, operand, promoted, row, values
from cygrad.operators import joining

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@row(np.unique)
def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None, *,
           equal_nan: bool = True, sorted: bool = True) -> Any:
    ar = operand(ar)
    if not is_integer(axis) and axis is not None:
        raise TypeError(f"np.unique: axis must be an integer or None, not {axis!r}")
    _, index, inverse, counts = np.unique(values(ar), True, True, True, axis, equal_nan=equal_nan)
    places = from_array(index)
    distinct = ar.reshape(-1).take(places) if axis is None else ar.index_select(axis, places)
    others = [from_array(each) for each, requested in ((index, return_index), (inverse, return_inverse), (counts, return_counts))
              if requested]
    return (distinct, *others) if others else distinct


class Distinct(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class Counts(NamedTuple):
    values: Tensor
    counts: Tensor


class Inverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


row(np.unique_all)(lambda x: Distinct(*unique(x, True, True, True, equal_nan=False)))
row(np.unique_counts)(lambda x: Counts(*unique(x, return_counts=True, equal_nan=False)))
row(np.unique_inverse)(lambda x: Inverse(*unique(x, return_inverse=True, equal_nan=False)))
row(np.unique_values)(lambda x: unique(x, equal_nan=False))


# ----- Sets -----
def _vectors(ar1: Any, ar2: Any) -> list[Tensor]:
    return [tensor.reshape(-1) for tensor in promoted(ar1, ar2)]


@row(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Tensor:
    return unique(joining.cat(_vectors(ar1, ar2)))


@row(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    first, second = _vectors(ar1, ar2)
    _, *indices = np.intersect1d(values(first), values(second), assume_unique, return_indices=True)
    places = [from_array(index) for index in indices]
    common = first.take(places[0])
    return (common, *places) if return_indices else common


@row(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    first, second = (operand(each).reshape(-1) for each in (ar1, ar2))
    first = first if assume_unique else unique(first)
    return first[from_array(np.isin(values(first), values(second), assume_unique=assume_unique, invert=True))]


@row(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """Of all elements in order, those that differ from both neighbours."""
    several = [tensor if assume_unique else unique(tensor) for tensor in _vectors(ar1, ar2)]
    elements = joining.cat(several)
    order = np.argsort(values(elements), kind="stable")
    ordered = values(elements)[order]
    changes = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]]) if ordered.size else np.array([True])
    return elements.take(from_array(order[changes[1:] & changes[:-1]]))
