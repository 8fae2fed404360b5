"""Medians, percentiles and quantiles, by all of NumPy's methods; beside NaN by those that torch has as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad.numpy_functions.reductions import Axis, precise
from cygrad.numpy_functions.rows import operand, promoted, row
from cygrad.operators import quantiles
from cygrad.operators._language.arguments import distinct_dims, integers
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.masking import where

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

# Where the ranks are n q + alpha + q (1 - alpha - beta) - 1: (alpha, beta), of Hyndman and Fan, "Sample quantiles in statistical packages".
CONTINUOUS = {
    "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0), "linear": (1, 1), "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8)}
ELEMENTS = {"lower", "higher", "nearest"}       # these take an element as it is


def along_one(a: Tensor, axis: Axis) -> tuple[Tensor, list[int]]:
    """Return a tensor with the axes to reduce joined as the last one, and the shape of a result that keeps them."""
    axes = range(a.ndim) if axis is None else distinct_dims(integers(axis), a.ndim)
    others = [dim for dim in range(a.ndim) if dim not in axes]
    rows = a.permute(*others, *sorted(axes)).reshape([*(a.shape[dim] for dim in others), -1 if a.numel() else 0])
    return rows, [1 if dim in axes else size for dim, size in enumerate(a.shape)]


# ----- Medians -----
@rounded_once
def _middle(rows: Tensor, skips_nan: bool) -> Tensor:
    """Return the mean of the two middle elements of each row, which are one element of an odd count. NaN sorts last."""
    ordered = rows.sort(-1).values
    if skips_nan:
        count = (ordered == ordered).sum(-1, keepdim=True)
        low, high = (ordered.gather(-1, place) for place in (((count - 1) // 2).clamp(min=0), count // 2))
        return ((low + high) / 2).squeeze(-1)
    size, last = ordered.shape[-1], ordered[..., -1]
    return where(last == last, (ordered[..., (size - 1) // 2] + ordered[..., size // 2]) / 2, last)


def _median(name: str, skips_nan: bool) -> Callable[..., Tensor]:
    def median(a: Any, axis: Axis = None, overwrite_input: bool = False, keepdims: bool = False) -> Tensor:
        """Of no elements NaN, as their mean is; `overwrite_input` allows a faster way, which is not taken."""
        a = checked(name, operand(a))
        rows, reduced_shape = along_one(a, axis)
        result = _middle(rows, skips_nan) if rows.shape[-1] and rows.numel() else rows.mean(-1)
        return result.reshape(reduced_shape) if keepdims else result

    return median


def checked(name: str, a: Tensor) -> Tensor:
    if a.is_complex():
        raise TypeError(f"np.{name}: a must be an array of real numbers, not of {a.dtype}")
    return precise(a, None)


row(np.median)(_median("median", False))
row(np.nanmedian)(_median("nanmedian", True))


# ----- Quantiles -----
def _fractions(q: Tensor, method: str, count: int) -> tuple[Tensor, str]:
    """Return fractions at which torch's interpolation has the elements that a method of NumPy's has at q."""
    if method in quantiles.INTERPOLATIONS:
        return q, method
    if method in CONTINUOUS:
        alpha, beta = CONTINUOUS[method]
        ranks, interpolation = count * q + (alpha + q * (1 - alpha - beta) - 1), "linear"
    else:
        ranks, interpolation = count * q - 1, "nearest"
        if method == "closest_observation":
            below = (ranks - 0.5).floor()
            ranks = where((below == ranks - 0.5) & (below % 2 == 1), below, below + 1)
        else:
            ranks = ranks.ceil()
    return (ranks / max(count - 1, 1)).clamp(0, 1), interpolation


def _elements(rows: Tensor, q: Tensor, interpolation: str) -> Tensor:
    """Return elements of rows of integers, which doubles would round."""
    ranks = q * (rows.shape[-1] - 1)
    places = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[interpolation]()
    return rows.sort(-1).values.index_select(-1, places.long()).movedim(-1, 0)


def _quantile(name: str, operator: Any, scale: float) -> Callable[..., Tensor]:
    skips_nan = operator is quantiles.nanquantile

    def quantile(a: Any, q: Any, axis: Axis = None, overwrite_input: bool = False, method: str = "linear", keepdims: bool = False,
                 ) -> Tensor:
        """The fractions are the first axes of the result; `overwrite_input` allows a faster way, which is not taken."""
        if method not in {*CONTINUOUS, *quantiles.INTERPOLATIONS, "inverted_cdf", "averaged_inverted_cdf", "closest_observation"}:
            raise ValueError(f"{method!r} is not a valid method of np.{name}")
        if skips_nan and method not in quantiles.INTERPOLATIONS:
            raise TypeError(f"np.{name} is not supported on cygrad tensors with method={method!r}: its ranks differ from row to row. Call "
                            "it on tensor.detach().numpy()")
        elements = operand(a)
        a = checked(name, elements)
        requested = operand(q)
        if scale == 1 and not requested.dtype.is_differentiable:        # 0 or 1: the least element, or the largest one
            fractions, method = requested.to(a.dtype), "nearest"
        elif isinstance(q, (int, float)):
            fractions = requested.to(a.dtype) / scale
        else:
            a, fractions = promoted(a, precise(requested, None) / scale)
        if not bool(((fractions >= 0) & (fractions <= 1)).all()):
            raise ValueError(f"{'Percentiles' if scale == 100 else 'Quantiles'} must be in the range [0, {scale:g}]")
        rows, reduced_shape = along_one(a, axis)
        flat = fractions.reshape(-1)
        if method == "averaged_inverted_cdf":       # the mean of both elements where the rank lies between no two
            ranks = rows.shape[-1] * flat
            both = [(place / max(rows.shape[-1] - 1, 1)).clamp(0, 1) for place in (ranks.ceil() - 1, ranks.floor())]
            parts = [operator(rows, each, -1, interpolation="nearest") for each in both]
            result = (parts[0] + parts[1]) / 2
        else:
            flat, interpolation = _fractions(flat, method, rows.shape[-1])
            if interpolation in ELEMENTS and not elements.dtype.is_differentiable and rows.numel():
                result = _elements(along_one(elements, axis)[0], flat, interpolation)
            else:
                result = operator(rows, flat, -1, interpolation=interpolation)
                result = result.to(elements.dtype) if interpolation in ELEMENTS else result
        return result.reshape([*fractions.shape, *(reduced_shape if keepdims else result.shape[1:])])

    return quantile


for _name, _operator, _scale in (("quantile", quantiles.quantile, 1), ("percentile", quantiles.quantile, 100),
                                 ("nanquantile", quantiles.nanquantile, 1), ("nanpercentile", quantiles.nanquantile, 100)):
    row(getattr(np, _name))(_quantile(_name, _operator, _scale))
