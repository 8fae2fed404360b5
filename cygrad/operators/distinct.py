"""Distinct elements: of all, or of neighbours; the gradient goes to the first of those that are equal.

Loaded at first use.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import from_array, to_array
from cygrad.operators.arguments import checked_tensor, numpy_names
from cygrad.operators.elementwise import publish


def _in_order(rows: np.ndarray) -> np.ndarray:
    """Return the places of the rows in their order, the first column deciding first; equal ones as they stand."""
    if rows.shape[1] == 1:
        return rows[:, 0].argsort(kind="stable")
    return np.lexsort(rows.T[::-1])


def _found(name: str, input: Any, dim: int | None, is_sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    """Return the first of each run of equal slices in their order, or as they stand, and what is asked for besides."""
    checked_tensor(name, input)
    if dim is None:
        shape, d, whole = input.shape, 0, input.reshape(-1)
    else:
        d = normalized_dim(dim, input.ndim)
        if not input.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        shape, whole = input.shape[d:d + 1], input
    size, columns = whole.shape[d], math.prod(whole.shape[:d] + whole.shape[d + 1:])
    if not columns:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: the shape is "
                           f"{list(input.shape)} and dim is {dim}")
    rows = np.moveaxis(to_array(whole), d, 0).reshape(size, columns)
    order = _in_order(rows) if is_sorted else np.arange(size)
    rows = rows[order]
    begins = np.ones(size, bool)
    begins[1:] = (rows[1:] != rows[:-1]).any(1)
    first = begins.nonzero()[0]
    results = [whole.index_select(d, from_array(order[first]))]
    if return_inverse:
        inverse = np.empty(size, np.int64)
        inverse[order] = begins.cumsum() - 1
        results.append(from_array(inverse.reshape(shape)))
    if return_counts:
        results.append(from_array(np.diff(first, append=size)))
    return tuple(results) if len(results) > 1 else results[0]


@numpy_names
def unique(input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """Distinct elements in order, or distinct slices along `dim`; a NaN differs from all.

    With `return_inverse` also where each element of the input went, with `return_counts` how often each one occurs. They are in
    order with `sorted=False`, too. The gradient goes to the first of equal elements.

    >>> import cygrad
    >>> cygrad.unique(cygrad.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    return _found("unique", input, dim, True, return_inverse, return_counts)


@numpy_names
def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """First of each run of equal elements, or of equal slices along `dim`; see `unique`.

    >>> import cygrad
    >>> cygrad.unique_consecutive(cygrad.tensor([3, 3, 1, 3]))
    tensor([3, 1, 3])
    """
    return _found("unique_consecutive", input, dim, False, return_inverse, return_counts)


publish(__name__, globals())
