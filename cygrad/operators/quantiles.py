"""Quantiles: elements at fractions of the sorted order, and between two of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.creation import scalar_tensor
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import dtype_by_name
from cygrad.operators._language.arguments import all_examples, delivered
from cygrad.operators._language.declaration import operator

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Real

RANKS = dtype_by_name["float64"]
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _number(function: Any, q: Real) -> float:
    """Return a fraction that is no tensor."""
    if isinstance(q, np.generic):
        q = q.item()
    if not isinstance(q, (int, float)):
        raise TypeError(f"{function.name}(): argument 'q' (position 2) must be Tensor or float, not {type(q).__name__}")
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
    return float(q)


def _vector(input: Tensor, q: Tensor) -> Tensor:
    """Return fractions, of a vector or a 0-d tensor, in float64: the ranks of millions of elements are no numbers of float32."""
    if q.ndim > 1:
        raise RuntimeError(f"quantile() q must be a scalar or 1D tensor, but got {q.ndim} dims")
    if q.dtype != input.dtype:
        raise RuntimeError(f"quantile() q tensor must be same dtype as the input tensor, but got {q.dtype} and {input.dtype}")
    values = all_examples(q)
    if not bool(((values >= 0) & (values <= 1)).all()):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q.to(RANKS)


def _check(input: Tensor, interpolation: str) -> None:
    """Refuse integers, no elements, and unknown interpolations; torch's words name `quantile` in errors of `nanquantile`, too."""
    if not input.is_floating_point():
        raise RuntimeError(f"quantile() input tensor must be either float or double dtype, but got {input.dtype}")
    if not input.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")


def _of_fraction(rows: Tensor, q: float, interpolation: str) -> Tensor:
    """Return one quantile of the last dim, whose rank is the same in all rows. NaN sorts last, so a row with NaN has it at the end."""
    ordered = rows.sort(-1).values
    rank, end = q * (ordered.shape[-1] - 1), ordered.select(-1, -1)
    below, above = math.floor(rank), math.ceil(rank)
    if interpolation in ("lower", "higher", "nearest"):
        result = ordered.select(-1, {"lower": below, "higher": above, "nearest": round(rank)}[interpolation])
    else:
        exact = rows.dtype.loops        # between two elements of 16 bits the result is rounded once
        least, most = (ordered.select(-1, place).to(exact) for place in (below, above))
        result = least.lerp(most, rank - below if interpolation == "linear" else 0.5).to(rows.dtype)
    return result.where(end == end, end)


def _of_rows(rows: Tensor, q: Tensor, interpolation: str, skips_nan: bool) -> Tensor:
    """Return the quantiles of the last dim, which they lie along in the result. NaN sorts last, so a row with NaN has it at the end."""
    ordered = rows.sort(-1).values
    last = ordered.shape[-1] - 1
    if skips_nan:
        ranks = (q * ((ordered == ordered).sum(-1, keepdim=True) - 1)).clamp(min=0)
    else:
        end = ordered[..., -1:]
        ranks = (q * last).where(end == end, float(last))
    if interpolation in ("lower", "higher", "nearest"):
        places = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[interpolation]()
        return ordered.gather(-1, places.long())
    below, above = ranks.floor(), ranks.ceil()
    exact = rows.dtype.loops        # between two elements of 16 bits the result is rounded once
    least, most = (ordered.gather(-1, rank.long()).to(exact) for rank in (below, above))
    return least.lerp(most, (ranks - below).to(exact) if interpolation == "linear" else 0.5).to(rows.dtype)


def _quantile(function: Any, input: Tensor, q: Tensor | Real, dim: int | None, keepdim: bool, interpolation: str,
              skips_nan: bool) -> Tensor:
    fraction = q if isinstance(q, TensorImpl) else _number(function, q)
    _check(input, interpolation)
    d = None if dim is None else normalized_dim(dim, input.ndim)
    if d is None or not input.ndim:
        rows, sizes = input.reshape(-1), (1,) * input.ndim
    else:
        rows, sizes = input.movedim(d, -1), (*input.shape[:d], 1, *input.shape[d + 1:])
    if isinstance(fraction, float) and not skips_nan:
        result = _of_fraction(rows, fraction, interpolation)
        return result.reshape(sizes) if keepdim else result
    fractions = scalar_tensor(fraction, RANKS) if isinstance(fraction, float) else _vector(input, fraction)
    count = (fractions.numel(),)
    results = _of_rows(rows, fractions.reshape(-1).expand((*rows.shape[:-1], *count)), interpolation, skips_nan).movedim(-1, 0)
    if keepdim:
        results = results.reshape((*count, *sizes))
    return results if fractions.ndim else results.squeeze(0)


@operator(forms=True)
def quantile(input: Tensor, q: Tensor | Real, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
             out: Tensor | None = None) -> Tensor:
    """Elements at fractions `q` of the sorted order, over all elements or along `dim`; NaN where there is one.

    `q` is a number from 0 to 1, or a vector of some, which are the first dim of the result. Where the rank q (n - 1) lies between two
    elements, `interpolation` is "linear", "lower", "higher", "midpoint" or "nearest". Type 7 of Hyndman and Fan, "Sample quantiles in
    statistical packages" (1996). RuntimeError for integers, no elements, and fractions outside of 0 to 1.

    >>> import cygrad
    >>> cygrad.quantile(cygrad.tensor([4., 1., 3., 2.]), 0.5)
    tensor(2.5000)
    """
    return delivered(_quantile(quantile, input, q, dim, keepdim, interpolation, False), out)


@operator(forms=True)
def nanquantile(input: Tensor, q: Tensor | Real, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
                out: Tensor | None = None) -> Tensor:
    """Quantiles of the elements that are not NaN; NaN where all are. See `quantile`.

    >>> import cygrad
    >>> cygrad.nanquantile(cygrad.tensor([1., cygrad.nan, 3.]), 0.5)
    tensor(2.)
    """
    return delivered(_quantile(nanquantile, input, q, dim, keepdim, interpolation, True), out)
