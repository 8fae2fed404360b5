"""Counts of elements by their value: of integers, and by intervals along one dim or several."""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.creation import check_room
from cygrad.operators._language.arguments import checked_operand, delivered, delivered_together, integers, shown_as
from cygrad.operators._language.batches import dynamic_shape
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.tangents import constant
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Pair, Real


# ----- Of integers -----
@operator(refuses=dict.fromkeys("bfc", NO_LOOP))
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Count of each number in a vector of non-negative integers, or the sum of its weights; at least `minlength` results.

    Sums are float32 where the weights are, else float64, and differentiable.

    >>> import cygrad
    >>> cygrad.bincount(cygrad.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    checked_operand(bincount, input)
    if index(minlength) < 0:
        raise RuntimeError(f"minlength should be >= 0, got {minlength}")
    numbers = to_array(input)
    if numbers.ndim != 1 or numbers.min(initial=0) < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    size = max(minlength, int(numbers.max()) + 1 if numbers.size else 0)
    check_room(size)
    if weights is None:
        return computed(np.bincount(numbers, minlength=minlength))
    if weights.ndim != 1 or len(weights) != len(input):
        raise RuntimeError(f"weights should be 1-d and have the same length as input, {len(input)}, not the shape {list(weights.shape)}")
    weights = weights if weights.dtype.name == "float32" else weights.double()
    return weights.new_zeros(size).index_add(0, input.long(), weights)


# ----- By intervals -----
@shown_as("histogram")
class Histogram(NamedTuple):
    """Counts, or sums of weights, in the intervals between edges."""

    hist: Tensor
    bin_edges: Tensor


@shown_as("histogramdd")
class HistogramOfSeveral(NamedTuple):
    """Counts, or sums of weights, in boxes, and the edges along each dim."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _extremes(column: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """Return the smallest and the largest element; `low`, `high` where there are none."""
    return (float(column.min()), float(column.max())) if column.size else (low, high)


def _widened(name: str, low: float, high: float, margin: float) -> tuple[float, float]:
    """Return a range, wider by a margin at both ends where these are equal."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low}, {high}] is not finite")
    return (low - margin, high + margin) if low == high else (low, high)


def _counts(columns: Sequence[np.ndarray], edges: Sequence[np.ndarray], weights: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
    """Count points, one coordinate of each in a column, in the boxes between edges; the last box of an axis has its upper edge, too."""
    sizes = [len(each) - 1 for each in edges]
    inside, places = np.ones(len(columns[0]), bool), np.zeros(len(columns[0]), np.int64)
    for column, border, size in zip(columns, edges, sizes, strict=True):
        number = np.searchsorted(border, column, "right") - 1
        number[column == border[-1]] = size - 1
        inside &= (number >= 0) & (number < size) & (column == column)
        places = places * size + number
    chosen = None if weights is None else weights[inside]
    return np.bincount(places[inside], chosen, math.prod(sizes)).astype(dtype).reshape(sizes)


@operator(tangent=constant, batch=dynamic_shape, refuses=dict.fromkeys("biu", NO_LOOP) | {"c": NO_LOOP}, loop="histogram_cpu")
def histc(input: Tensor, bins: int = 100, min: Real = 0, max: Real = 0, *, out: Tensor | None = None) -> Tensor:
    """Counts of elements in `bins` intervals of equal width from `min` to `max`; where both are equal, from the least to the largest one.

    Elements outside, and NaN, are not counted. The counts are of the input's dtype.

    >>> import cygrad
    >>> cygrad.histc(cygrad.tensor([1., 2., 1.]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    values = to_array(checked_operand(histc, input)).reshape(-1).astype(np.float64)
    count = index(bins)
    if count < 1:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension 0")
    check_room(count)
    if min > max:
        raise RuntimeError(f"torch.histc: max must be larger than min, got {min} and {max}")
    low, high = _widened("torch.histc", *(_extremes(values, min, max) if min == max else (min, max)), 1)
    values = values[(values >= low) & (values <= high)]
    places = np.minimum(((values - low) / (high - low) * count).astype(np.int64), count - 1)
    return delivered(computed(np.bincount(places, minlength=count).astype(np.float64)).to(input.dtype), out)


def _checked_columns(function: Any, input: Tensor, bins: Sequence[Any]) -> None:
    """Refuse edges that do not fit the points."""
    for d, border in enumerate(bins):
        if isinstance(border, TensorImpl):
            if border.ndim != 1:
                raise RuntimeError(f"torch.histogramdd: bins tensor should have one dimension, but got {border.ndim} dimensions in the "
                                   f"bins tensor for dimension {d}")
            if border.dtype != input.dtype:
                raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                                   f"{input.dtype} and bins for dimension {d} with dtype {border.dtype}")
            if border.isnan().any():
                raise RuntimeError(f"torch.{function.name}(): bins must be numbers, but got {border.tolist()} for dimension {d}")
        count = len(border) - 1 if isinstance(border, TensorImpl) else border
        if count < 1:
            raise RuntimeError(f"torch.{function.name}(): bins must be > 0, but got {count} for dimension {d}")


def _edges(columns: Sequence[np.ndarray], bins: Sequence[Any], range: Sequence[float] | None, dtype: np.dtype) -> list[np.ndarray]:
    """Return the edges along each axis: given, or of equal intervals over a range or over the elements."""
    results = []
    for d, (column, border) in enumerate(zip(columns, bins, strict=True)):
        if isinstance(border, TensorImpl):
            results.append(to_array(border))
            continue
        low, high = _extremes(column, 0, 1) if range is None else range[2 * d:2 * d + 2]
        if low > high:
            raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension {d}")
        results.append(np.linspace(*_widened("torch.histogramdd", low, high, 0.5), border + 1, dtype=dtype))
    return results


def _histogram(function: Any, input: Tensor, points: np.ndarray, bins: Sequence[Any], range: Sequence[float] | None, weight: Tensor | None,
               density: bool) -> tuple[Tensor, list[Tensor]]:
    _checked_columns(function, input, bins)
    if range is not None and len(range) != 2 * len(bins):
        raise RuntimeError(f"torch.histogramdd: for a {len(bins)}-dimensional histogram range should have {2 * len(bins)} elements, but "
                           f"got {len(range)}")
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
                           f"but got input {input.dtype}, and weight {weight.dtype}")
    if weight is not None and weight.numel() != len(points):
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
                           f"its innermost dimension, but got input with shape {list(points.shape)} and weight with shape "
                           f"{list(weight.shape)}")
    columns = [points[:, d] for d in np.arange(len(bins))]
    check_room(math.prod(len(border) - 1 if isinstance(border, TensorImpl) else border + 1 for border in bins))
    edges = _edges(columns, bins, range, points.dtype)
    hist = _counts(columns, edges, None if weight is None else to_array(weight).reshape(-1), points.dtype)
    if density:
        volume = np.ones(())
        for border in edges:
            volume = volume[..., None] * np.diff(border)
        with np.errstate(invalid="ignore"):         # of no elements the density is NaN
            hist = (hist / hist.sum() / volume).astype(points.dtype)
    return computed(hist).to(input.dtype), [computed(border).to(input.dtype) for border in edges]


NO_INTEGERS = dict.fromkeys("biuc", NO_LOOP)


@operator(tangent=constant, batch=dynamic_shape, refuses=NO_INTEGERS, loop="histogramdd")
def histogram(input: Tensor, bins: int | Tensor = 100, *, range: Sequence[float] | None = None, weight: Tensor | None = None,
              density: bool = False, out: Pair | None = None) -> Histogram:
    """Counts of elements in intervals, with the edges: (hist, bin_edges). `bins` is their number, or a vector of edges that increase.

    Intervals of equal width go over `range`, by default from the least to the largest element. `weight` has the shape of the input;
    `density` divides by the sum and the widths. An interval has its lower edge, the last one its upper edge, too.

    >>> import cygrad
    >>> cygrad.histogram(cygrad.tensor([1., 2., 1.]), bins=4, range=(0., 3.), weight=cygrad.tensor([1., 2., 4.])).hist
    tensor([0., 5., 2., 0.])
    """
    points = to_array(checked_operand(histogram, input)).reshape(-1, 1)
    hist, (edges,) = _histogram(histogram, input, points, (bins if isinstance(bins, TensorImpl) else index(bins),), range, weight,
                                density)
    return delivered_together(Histogram, (hist, edges), out)


@operator(tangent=constant, batch=dynamic_shape, refuses=NO_INTEGERS, loop="histogramdd", method=False)
def histogramdd(input: Tensor, bins: int | Sequence[int] | Sequence[Tensor], *, range: Sequence[float] | None = None,
                weight: Tensor | None = None, density: bool = False) -> HistogramOfSeveral:
    """Counts of points in boxes, with the edges along each dim: (hist, bin_edges). The coordinates of a point are the input's last dim.

    `bins` are the numbers of intervals along each dim, one number for all, or vectors of edges; `range` has two numbers a dim. See
    `histogram`.

    >>> import cygrad
    >>> cygrad.histogramdd(cygrad.tensor([[0., 1.], [1., 0.], [2., 0.], [2., 2.]]), bins=[3, 3]).hist
    tensor([[0., 1., 0.],
            [1., 0., 0.],
            [1., 0., 1.]])
    """
    array = to_array(checked_operand(histogramdd, input))
    if array.ndim < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {array.ndim}")
    if isinstance(bins, (tuple, list)) and any(isinstance(border, TensorImpl) for border in bins):
        borders: Sequence[Any] = bins
    else:
        borders = integers(bins) if isinstance(bins, (tuple, list)) else (index(bins),) * array.shape[-1]    # type: ignore[arg-type]
    if len(borders) != array.shape[-1]:
        raise RuntimeError(f"{histogramdd.__name__}: The size of bins must be equal to the innermost dimension of the input.")
    hist, edges = _histogram(histogramdd, input, array.reshape(-1, array.shape[-1]), borders, range, weight, density)
    return HistogramOfSeveral(hist, tuple(edges))
