"""Linear maps along one dim, each result of a few elements: resampling, and sums over windows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.operands.arrays import computed, to_array
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.tangents import linear

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


class Tap(NamedTuple):
    """One term of results: the rows that have it (None: all), where it is read, and its weights (None: all are 1)."""

    rows: np.ndarray | None
    places: np.ndarray | slice
    weights: np.ndarray | None


def _compact(places: np.ndarray) -> np.ndarray | slice:
    """Return places as a slice where they have the same distance, so that they are read without a copy."""
    if len(places) < 2:
        return slice(int(places[0]), int(places[0]) + 1) if len(places) else slice(0)
    step = int(places[1] - places[0])
    if step <= 0 or (np.diff(places) != step).any():
        return places
    return slice(int(places[0]), int(places[-1]) + 1, step)


class Band:
    """A matrix by rows: the places of its entries and their weights, (rows, entries); a place of -1 is none."""

    def __init__(self, places: np.ndarray, weights: np.ndarray | None, size: int) -> None:
        self.places, self.weights, self.size = places, weights, size

    @cached_property
    def _taps(self) -> dict[tuple[str, int], list[Tap]]:
        return {}

    def taps(self, dtype: np.dtype, behind: int) -> list[Tap]:
        """Return the terms of rows, with weights of a dtype for a dim with as many behind it."""
        if self.weights is None:
            dtype, behind = np.dtype(bool), 0
        result = self._taps.get((dtype.char, behind))
        if result is None:
            result = self._taps[dtype.char, behind] = [self._tap(k, dtype, behind) for k in range(self.places.shape[1])]
        return result

    def _tap(self, k: int, dtype: np.dtype, behind: int) -> Tap:
        places, weights = self.places[:, k], None if self.weights is None else self.weights[:, k]
        rows = None if (places >= 0).all() else np.flatnonzero(places >= 0)
        if rows is not None:
            places, weights = places[rows], None if weights is None else weights[rows]
        return Tap(rows, _compact(places), None if weights is None else weights.astype(dtype).reshape([-1] + [1] * behind))

    @cached_property
    def within(self) -> np.ndarray:
        """Return the places of rows; where a row has fewer, its first again."""
        first = np.take_along_axis(self.places, (self.places >= 0).argmax(1)[:, None], 1)
        return np.where(self.places >= 0, self.places, first)

    @cached_property
    def transposed(self) -> Band:
        """Return the transposed matrix."""
        rows, entries = np.nonzero(self.places >= 0)
        columns = self.places[rows, entries]
        order = np.argsort(columns, kind="stable")
        counts = np.bincount(columns, minlength=self.size)
        number = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)      # of an entry in its column
        shape = (self.size, int(counts.max(initial=0)))
        places = np.full(shape, -1)
        places[columns[order], number] = rows[order]
        weights = None
        if self.weights is not None:
            weights = np.zeros(shape)
            weights[columns[order], number] = self.weights[rows, entries][order]
        return Band(places, weights, len(self.places))

    @cached_property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        if self.places.shape != (self.size, self.places.shape[1]) or (self.places[:, 0] != np.arange(self.size)).any():
            return False
        rest = self.places[:, 1:] < 0 if self.weights is None else (self.places[:, 1:] < 0) | (self.weights[:, 1:] == 0)
        return bool(rest.all()) and (self.weights is None or bool((self.weights[:, 0] == 1).all()))


@operator(dinput=lambda g, dim, band: g._banded(dim, band.transposed), tangent=linear, batch=shifted("dim"))
def _banded(input: Tensor, dim: int, band: Band) -> Tensor:
    """Multiply a matrix of few entries in each row by all vectors along a dim."""
    array = to_array(input)
    before = (slice(None),) * dim
    shape = (*array.shape[:dim], len(band.places), *array.shape[dim + 1:])
    result = None
    for rows, places, weights in band.taps(array.real.dtype if array.dtype.kind == "c" else array.dtype, array.ndim - 1 - dim):
        part = array[*before, places] if isinstance(places, slice) else array.take(places, dim)
        if weights is not None:
            part = part * weights
        if result is None and rows is None:
            result = part.copy() if weights is None and part.base is not None else part
            continue
        if result is None:
            result = np.zeros(shape, array.dtype)
        if rows is None:
            result += part
        else:
            key: Any = (*before, rows)
            result[key] += part
    return recorded(_banded, (input,), computed(np.zeros(shape, array.dtype) if result is None else result), dim=dim, band=band)
