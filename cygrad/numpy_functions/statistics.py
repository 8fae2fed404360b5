"""Covariances, correlations, and counts of elements by their value or by intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.storage import dtype_by_name
from cygrad.data.limits import promote_types
from cygrad.numpy_functions.elements import NUMBERS
from cygrad.numpy_functions.ranges import linspace
from cygrad.numpy_functions.reductions import precise
from cygrad.numpy_functions.rows import is_integer, numpy_dtype, operand, operands, promoted, row
from cygrad.operators import covariance, histograms, joining, sorting

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

DOUBLE = dtype_by_name["float64"]


# ----- Covariances -----
def _variables(m: Any, y: Any, rowvar: bool, dtype: Any) -> Tensor:
    """Return variables as rows, in double precision unless another dtype is requested."""
    several = []
    for variables in (m, y) if y is not None else (m,):
        x = operand(variables)
        if x.ndim > 2:
            raise ValueError(f"{'m' if variables is m else 'y'} has more than 2 dimensions")
        x = x.to(promote_types(x.dtype, DOUBLE) if dtype is None else numpy_dtype(dtype))
        several.append(x.reshape(1, -1) if x.ndim < 2 else x if rowvar else x.T)
    return joining.cat(promoted(*several), 0) if y is not None else several[0]


@row(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None, aweights: Any = None,
        *, dtype: Any = None) -> Tensor:
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    correction = (0 if bias else 1) if ddof is None else int(ddof)
    importances = None if aweights is None else operand(aweights).to(DOUBLE)
    counts = None if fweights is None else operand(fweights)
    if counts is not None and not counts.dtype.is_integer:
        if not bool((counts == counts.round()).all()):
            raise TypeError("fweights must be integer")
        counts = counts.long()
    return covariance.cov(_variables(m, y, rowvar, dtype), correction=correction, fweights=counts, aweights=importances)


@row(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    return covariance.corrcoef(_variables(x, y, rowvar, dtype))


# ----- Counts -----
@row(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    x = operand(x)
    if x.dtype.kind == "b":
        x = x.long()
    if not x.dtype.is_integer:
        raise TypeError(f"Cannot cast array data from {x.dtype} to int64 according to the rule 'safe'")
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    if x.ndim != 1 or (len(x) and int(x.min()) < 0):
        raise ValueError("np.bincount: x must be a vector of numbers that are not negative")
    if weights is not None:
        weights = operand(weights).to(DOUBLE)
        if weights.shape != x.shape:
            raise ValueError("The weights and list don't have the same length.")
    return histograms.bincount(x, weights, minlength)


@row(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    x, bins = promoted(x, bins)
    if x.is_complex():
        raise TypeError("x may not be complex")
    if bins.ndim != 1:
        raise ValueError(f"np.digitize: bins must be a vector, not of {bins.ndim} dims")
    side = "left" if right else "right"
    if bool((bins[1:] >= bins[:-1]).all()):
        return sorting.searchsorted(bins, x, side=side)  # type: ignore[arg-type]
    if not bool((bins[1:] <= bins[:-1]).all()):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return len(bins) - sorting.searchsorted(bins.flip(0), x, side=side)  # type: ignore[arg-type]


# ----- Histograms -----
def _edges(a: Tensor, bins: Any, limits: Any, weights: Any) -> Tensor:
    """Return the edges of intervals: those that are passed, or of equal width over a range, or from the least to the largest element.

    They have gradients, of the least and the largest element. NumPy chooses their count where `bins` names a way to do so.
    """
    if a.is_complex():
        raise TypeError(f"np.histogram: there are no intervals of complex numbers, but a is {a.dtype}")
    if not isinstance(bins, str) and np.ndim(bins) == 1:
        edges = operand(bins)
        if not bool((edges[1:] >= edges[:-1]).all()):       # NaN, too
            raise ValueError("`bins` must increase monotonically, when an array")
        return edges
    if isinstance(bins, str):
        bins = len(np.histogram_bin_edges(a.detach().numpy(), bins, limits, weights)) - 1
    if np.ndim(bins):
        raise ValueError("`bins` must be 1d, when an array")
    if not is_integer(bins):
        raise TypeError("`bins` must be an integer, a string, or an array")
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if limits is None and not a.numel():
        limits = (0, 1)
    first, last = (operand(limit).to(precise(a, None).dtype) if isinstance(limit, NUMBERS) else operand(limit)
                   for limit in ((a.min(), a.max()) if limits is None else limits))
    low, high = float(first.detach()), float(last.detach())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"{'autodetected' if limits is None else 'supplied'} range of [{low}, {high}] is not finite")
    if low > high:
        raise ValueError("max must be larger than min in range parameter.")
    if low == high:
        first, last = first - 0.5, last + 0.5
    return linspace(first, last, int(bins) + 1)


def _counted(columns: Sequence[Tensor], edges: Sequence[Tensor], weights: Tensor | None) -> Tensor:
    """Count points, one coordinate of each in a column, or add their weights, in the boxes between edges; the last one has both of its."""
    sizes = [len(each) - 1 for each in edges]
    inside: Any = True
    places: Any = 0
    for column, border, size in zip(columns, edges, sizes, strict=True):
        x, borders = (each.detach() for each in promoted(column, border))
        numbers = sorting.searchsorted(borders, x, side="right") - 1
        numbers = numbers.masked_fill(x == borders[-1], size - 1)
        inside = (numbers >= 0) & (numbers < size) & inside
        places = places * size + numbers
    if weights is not None:
        return weights.new_zeros(prod(sizes)).index_add(0, places[inside], weights.reshape(-1)[inside]).reshape(sizes)
    return histograms.bincount(places[inside], None, prod(sizes)).reshape(sizes)


def _density(counts: Tensor, edges: Sequence[Tensor]) -> Tensor:
    """Return counts as a density: divided by their sum and the sizes of boxes."""
    counts = counts.to(DOUBLE)
    volumes = reduce(lambda volume, border: volume.unsqueeze(-1) * border.diff(), edges[1:], edges[0].diff())
    return counts / volumes / counts.sum()


def _flat_weights(a: Tensor, weights: Any) -> Tensor | None:
    if weights is None:
        return None
    weights = operand(weights)
    if weights.shape != a.shape:
        raise ValueError("weights should have the same shape as a.")
    return weights.reshape(-1)


@row(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    a = operand(a)
    return _edges(a.reshape(-1), bins, range, _flat_weights(a, weights))


@row(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None) -> tuple[Tensor, Tensor]:
    a = operand(a)
    weights = _flat_weights(a, weights)
    a = a.reshape(-1)
    edges = _edges(a, bins, range, weights)
    counts = _counted([a], [edges], weights)
    return (_density(counts, [edges]) if density else counts), edges


@row(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None,
                ) -> tuple[Tensor, tuple[Tensor, ...]]:
    if isinstance(sample, (TensorImpl, np.ndarray)):
        points = operand(sample)
        columns = [*(points.reshape(-1, 1) if points.ndim < 2 else points).unbind(1)]
    else:
        columns = operands(sample)
    bins = [bins] * len(columns) if is_integer(bins) else [*bins]
    if len(bins) != len(columns):
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * len(columns) if range is None else [*range]
    if len(ranges) != len(columns):
        raise ValueError("range argument must have one entry per dimension")
    edges = tuple(_edges(*each, None) for each in zip(columns, bins, ranges, strict=True))
    counts = _counted(columns, edges, None if weights is None else operand(weights).to(DOUBLE)).to(DOUBLE)
    return (_density(counts, edges) if density else counts), edges


@row(np.histogram2d)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None,
                ) -> tuple[Tensor, Tensor, Tensor]:
    x, y = operand(x), operand(y)
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    if not is_integer(bins) and len(bins) not in (1, 2):        # edges, of both
        bins = [bins, bins]
    counts, (first, second) = histogramdd([x, y], bins, range, density, weights)
    return counts, first, second
