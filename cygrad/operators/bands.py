"""Linear maps along dims, each result of a few elements: resampling, and sums over windows."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cygrad._core.compute.bands import sums
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.tangents import linear

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


class Band:
    """A matrix by rows: the places of its entries and their weights, (rows, entries); a place of -1 is none."""

    def __init__(self, places: np.ndarray, weights: np.ndarray | None, size: int) -> None:
        self.places, self.size = np.ascontiguousarray(places, np.int64), size
        self.weights = None if weights is None else np.ascontiguousarray(weights, np.float64)

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


Bands = tuple[tuple[int, Band], ...]        # dims, counted from the end, and the band of each


@lru_cache(256)
def _transposed(bands: Bands) -> Bands:
    return tuple([(dim, band.transposed) for dim, band in reversed(bands)])


@operator(dinput=lambda g, bands: g._banded(_transposed(bands)), tangent=linear, batch=same)
def _banded(input: Tensor, bands: tuple[tuple[int, Band], ...]) -> Tensor:
    """Multiply a matrix of few entries in each row by all vectors along a dim, for some dims in turn."""
    return recorded(_banded, (input,), sums(input, bands), bands=bands)
