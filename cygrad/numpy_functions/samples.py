"""Functions that are known at points: interpolated, differentiated, integrated, convolved, unwrapped."""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import dtype_by_name
from cygrad.numpy_functions.reductions import precise
from cygrad.numpy_functions.rows import operand, promoted, row
from cygrad.operators import calculus, joining, sorting
from cygrad.operators._language.arguments import distinct_dims, integers
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.masking import where

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

DOUBLE = dtype_by_name["float64"]


# ----- Interpolation -----
@row(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Tensor:
    """In double precision, as NumPy."""
    x, xp, fp = operand(x).to(DOUBLE), operand(xp).to(DOUBLE), operand(fp)
    fp = fp.to(dtype_by_name["complex128"] if fp.is_complex() else DOUBLE)
    if xp.ndim != 1 or fp.ndim != 1:
        raise ValueError("Data points must be 1-D sequences")
    if len(xp) != len(fp):
        raise ValueError("fp and xp are not of the same length")
    if not len(xp):
        raise ValueError("array of sample points is empty")
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period, left, right = abs(period), None, None
        x, xp = x % period, xp % period
        xp, order = xp.sort()
        fp = fp[order]
        xp = joining.cat([xp[-1:] - period, xp, xp[:1] + period])
        fp = joining.cat([fp[-1:], fp, fp[:1]])
    left, right = fp[0] if left is None else operand(left).to(fp.dtype), fp[-1] if right is None else operand(right).to(fp.dtype)
    if len(xp) == 1:
        inner = fp[0]
    else:
        place = (sorting.searchsorted(xp.detach(), x.detach(), side="right") - 1).clamp(0, len(xp) - 2)
        begin, end = xp[place], xp[place + 1]
        low, high = fp[place], fp[place + 1]
        slope = (high - low) / (end - begin).masked_fill(begin == end, 1)
        from_end = slope * (x - end) + high
        inner = where(x == end, from_end, slope * (x - begin) + low)        # so that all of x has a slope, and the last point its value
        between = where((from_end != from_end) & (low == high), low, from_end)
        inner = where(inner == inner, inner, where(x == begin, low, where(x == end, high, between)))        # beside infinite values
    result = where(x < xp[0], left, where(x > xp[-1], right, inner))
    return where(x == x, result, x)


# ----- Derivatives, integrals, differences -----
@row(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = operand(f)
    f = precise(f, None)
    axes = tuple(range(f.ndim)) if axis is None else distinct_dims(integers(axis), f.ndim)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported" if edge_order > 2 else f"edge_order must be 1 or 2, not {edge_order}")
    spacings = [precise(operand(each), None) for each in varargs] or [operand(1.0).to(f.dtype)]
    if len(spacings) == 1 and not spacings[0].ndim:
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError("invalid number of arguments")
    for spacing, dim in zip(spacings, axes, strict=True):
        if spacing.ndim > 1:
            raise ValueError("distances must be either scalars or 1d")
        if spacing.ndim and len(spacing) != f.shape[dim]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        if f.shape[dim] < edge_order + 1:
            raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required.")
    results = tuple(each.to(f.dtype) for each in calculus.gradient(f, spacing=spacings, dim=axes, edge_order=edge_order))
    return results[0] if len(axes) == 1 else results


@row(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    ary = operand(ary).reshape(-1)
    ends = [operand(end) if end is not None else ary[:0] for end in (to_begin, to_end)]
    for end, name in zip(ends, ("to_begin", "to_end"), strict=True):
        if not np.can_cast(end.dtype.name, ary.dtype.name, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
    before, after = (end.reshape(-1).to(ary.dtype) for end in ends)
    return joining.cat([before, ary.diff(), after])


@row(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * pi) -> Tensor:
    p = operand(p)
    if p.is_complex():
        raise TypeError(f"np.unwrap: p must be real numbers, not {p.dtype}")
    if p.dtype.kind == "b" or p.dtype.is_integer and not p.dtype.is_signed:
        raise TypeError(f"np.unwrap: differences of {p.dtype} wrap around themselves: convert p to signed numbers first")
    whole = isinstance(period, int) and not p.dtype.is_differentiable
    p = p if whole else precise(p, None)
    dim = normalized_dim(axis, p.ndim)
    steps = p.diff(dim=dim)
    high = period // 2 if whole else period / 2
    low = -high if not whole else -(period // 2)
    wrapped = (steps - low) % period + low
    if not whole or period % 2 == 0:
        wrapped = wrapped.masked_fill((wrapped == low) & (steps > 0), high)
    corrections = (wrapped - steps).masked_fill(steps.abs() < (period / 2 if discont is None else discont), 0)
    if not p.shape[dim]:
        return p.clone()
    first, others = p.split([1, p.shape[dim] - 1], dim)
    return joining.cat([first, others + corrections.cumsum(dim).to(p.dtype)], dim)


# ----- Convolutions -----
MODES = {"v": "valid", "s": "same", "f": "full", 0: "valid", 1: "same", 2: "full"}


@rounded_once
def _convolved(a: Tensor, v: Tensor, mode: Any, turned: bool) -> Tensor:
    """Return sums of products of vectors that are shifted against each other, of all shifts, or of those in the middle.

    `turned`: of an even number of shifts that are left out at the ends of "same", where v is the longer one, the lesser is at the end.
    """
    mode = MODES.get(mode, mode)
    if mode not in MODES.values():
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    turned = turned and len(v) > len(a)
    a, v = (a, v) if len(a) >= len(v) else (v, a)
    if mode == "valid":
        return a._vector_convolution(v, True)
    whole = a._vector_convolution(v, False)
    return whole if mode == "full" else whole.narrow(0, (len(v) if turned else len(v) - 1) // 2, len(a))


def _vectors(a: Any, v: Any, *names: str) -> list[Tensor]:
    vectors = [each.reshape(1) if not each.ndim else each for each in promoted(a, v)]
    for vector, name in zip(vectors, names, strict=True):
        if vector.ndim != 1:
            raise ValueError("object too deep for desired array")
        if not len(vector):
            raise ValueError(f"{name} cannot be empty")
    return vectors


@row(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Tensor:
    a, v = _vectors(a, v, "a", "v")
    return _convolved(a, v, mode, False)


@row(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Tensor:
    a, v = _vectors(a, v, "first array argument", "second array argument")
    return _convolved(a, v.flip(0).conj().resolve_conj(), mode, True)
