"""Sums, extrema, statistics and scans, with NumPy's dtypes: of small integers the widest, of integers' means double."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import tensor_class
from cygrad._core.memory.storage import DType, dtype_by_name
from cygrad.numpy_functions.rows import ROWS, is_integer, numpy_dtype, operand, row
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.joining import cat
from cygrad.operators.masking import where as chosen
from cygrad.ops import REDUCTIONS

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

Axis = int | tuple[int, ...] | None


def widest(a: Tensor, dtype: Any) -> DType | None:
    """Return the dtype that NumPy adds and multiplies in: of unsigned integers the widest of them, of other integers int64."""
    return dtype_by_name["uint64"] if dtype is None and a.dtype.is_integer and not a.dtype.is_signed else numpy_dtype(dtype)


def precise(a: Tensor, dtype: Any) -> Tensor:
    """Return a tensor in the dtype that NumPy averages in."""
    if dtype is None and not a.dtype.is_differentiable:
        dtype = np.float64
    return a if dtype is None else a.to(numpy_dtype(dtype))


def reduced(function: Callable[..., Tensor], a: Tensor, axis: Axis, keepdims: bool, **options: Any) -> Tensor:
    """Reduce over axes: NumPy's empty tuple means none, where our operators take it for all."""
    if axis == ():
        return function(a.unsqueeze(-1), -1, **options)
    return function(a, axis, keepdim=bool(keepdims), **options)


# ----- Reductions of the table -----
def _reduction(name: str, result_kind: str, ufunc: np.ufunc) -> Callable[..., Tensor]:
    """Return the row of a reduction that is a ufunc's: `initial` is one element more, `where` gives the start to the others."""
    start = ufunc.identity

    def reduction(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Tensor:
        a, initial = operand(a), None if initial is None else operand(initial)
        if initial is not None and initial.ndim:
            raise ValueError(f"np.{name}: initial is one number, not a tensor of shape {tuple(initial.shape)}")
        if where is not True:
            if initial is None and start is None:
                raise ValueError(f"reduction operation {ufunc.__name__!r} does not have an identity, so to use a where mask one has to "
                                 "specify 'initial'")
            a = chosen(operand(where).bool(), a, initial.to(a.dtype) if start is None else start)
        options = {"dtype": widest(a, dtype)} if result_kind == "widest" else {}
        result = reduced(getattr(tensor_class(), name), a, axis, keepdims, **options)
        if result_kind == "truth":
            result = result.bool()
        return result if initial is None else ufunc(result, initial.to(result.dtype))

    return reduction


for _row in REDUCTIONS.values():
    if _row.numpy and _row.ufunc:
        row(getattr(np, _row.numpy))(_reduction(_row.name, _row.result, getattr(np, _row.ufunc)))
row(np.max)(ROWS[np.amax].function)
row(np.min)(ROWS[np.amin].function)


@row(np.nansum)
def nansum(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    a = operand(a)
    return reduced(tensor_class().nansum, a, axis, keepdims, dtype=widest(a, dtype))


# ----- Beside NaN -----
def _instead_of_nan(a: Any, value: float) -> tuple[Tensor, Tensor]:
    """Return a tensor with a value in the place of NaN, and where NaN is."""
    a = operand(a)
    missing = a.isnan()
    return (a.masked_fill(missing, value) if a.dtype.is_differentiable else a), missing


def _beside_nan(name: str, neutral: float) -> Callable[..., Tensor]:
    """Return the row of a reduction, or of a scan, in which NaN counts as another number."""
    function = ROWS[getattr(np, name)].function

    def product(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Tensor:
        return function(_instead_of_nan(a, neutral)[0], axis, dtype, keepdims, initial, where)

    def running(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
        return function(_instead_of_nan(a, neutral)[0], axis, dtype)

    return running if name.startswith("cum") else product


def _extremum_beside_nan(name: str, least: float) -> Callable[..., Tensor]:
    """Return the row of an extremum: NaN where all are NaN, unless an initial value is one of the elements."""
    function = ROWS[getattr(np, name)].function

    def extremum(a: Any, axis: Axis = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Tensor:
        others, missing = _instead_of_nan(a, least)
        result = function(others, axis, keepdims=keepdims, initial=initial, where=where)
        if initial is not None or not result.dtype.is_differentiable:
            return result
        return result.masked_fill(reduced(tensor_class().all, missing, axis, keepdims), np.nan)

    return extremum


def _place_beside_nan(name: str, least: float) -> Callable[..., Tensor]:
    place = _place(name)

    def place_beside_nan(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        others, missing = _instead_of_nan(a, least)
        if missing.numel() and bool(np.all(missing, axis).any()):
            raise ValueError("All-NaN slice encountered")
        return place(others, axis, keepdims=keepdims)

    return place_beside_nan


def _of_real_dtype(name: str, a: Tensor, dtype: Any) -> Tensor:
    """Return a tensor in the dtype that a variance is computed in, which must hold its numbers."""
    requested = numpy_dtype(dtype)
    if requested is not None and a.is_complex() and not requested.is_complex:
        raise TypeError(f"np.{name} of complex numbers is not supported with dtype={dtype}: leave it out, and convert the result")
    return precise(a, dtype)


def _spread_beside_nan(name: str, root: bool) -> Callable[..., Tensor]:
    @rounded_once
    def formula(a: Tensor, axis: Axis, keepdims: bool, degrees_less: float) -> Tensor:
        missing = a.isnan()
        total, count = tensor_class().sum, reduced(tensor_class().sum, ~missing, axis, True)
        mean = reduced(total, a.masked_fill(missing, 0), axis, True) / count
        differences = (a - mean).masked_fill(missing, 0)
        squares = reduced(total, differences.abs().square() if a.is_complex() else differences.square(), axis, True)
        degrees = (count - degrees_less).to(squares.dtype)
        result = squares / degrees.masked_fill(degrees <= 0, np.nan)
        if root:        # whose slope at 0 counts as 0
            result = chosen(squares == 0, result, result.masked_fill(squares == 0, 1).sqrt())
        return result if keepdims or axis == () else result.squeeze(axis) if axis is not None else result.reshape(())

    def spread(a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *, correction: float | None = None,
               ) -> Tensor:
        if correction is not None and ddof:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        return formula(_of_real_dtype(name, operand(a), dtype), axis, keepdims, correction or ddof)

    return spread


@row(np.count_nonzero)
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    return reduced(tensor_class().sum, operand(a).bool(), axis, keepdims)


@row(np.ptp)
def peak_to_peak(a: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return np.max(operand(a), axis, keepdims=keepdims) - np.min(operand(a), axis, keepdims=keepdims)


# ----- Where an extremum is -----
def _place(name: str) -> Callable[..., Tensor]:
    def place(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        a = operand(a)
        a = a.byte() if a.dtype.kind == "b" else a
        result = getattr(a, name)(axis)
        if not keepdims:
            return result
        return result.reshape((1,) * a.ndim) if axis is None else result.unsqueeze(axis)

    return place


row(np.argmax)(_place("argmax"))
row(np.argmin)(_place("argmin"))
row(np.nanargmax)(_place_beside_nan("argmax", -np.inf))
row(np.nanargmin)(_place_beside_nan("argmin", np.inf))
row(np.nanmax)(_extremum_beside_nan("max", -np.inf))
row(np.nanmin)(_extremum_beside_nan("min", np.inf))
row(np.nanprod)(_beside_nan("prod", 1))


# ----- Statistics -----
@row(np.mean)
def mean(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    return reduced(tensor_class().mean, precise(operand(a), dtype), axis, keepdims)


@row(np.nanmean)
def nanmean(a: Any, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    return reduced(tensor_class().nanmean, precise(operand(a), dtype), axis, keepdims)


def _spread(name: str) -> Callable[..., Tensor]:
    def spread(a: Any, axis: Axis = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *, correction: float | None = None,
               ) -> Tensor:
        if correction is not None and ddof:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        a = _of_real_dtype(name, operand(a), dtype)
        return reduced(getattr(tensor_class(), name), a, axis, keepdims, correction=correction or ddof)

    return spread


row(np.var)(_spread("var"))
row(np.std)(_spread("std"))


@row(np.average)
def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    a = precise(operand(a), None)
    weights = a.new_ones(a.shape, dtype=a.dtype) if weights is None else precise(operand(weights), None)
    if weights.shape != a.shape:
        if not is_integer(axis) or weights.shape != (a.shape[axis],):
            raise TypeError("np.average: weights of another shape than a are of one axis, which axis names, and have its length")
        weights = weights.reshape(-1, *[1] * (a.ndim - 1 - axis % a.ndim))
    total = np.sum(weights.expand(a.shape), axis, keepdims=keepdims)
    result = np.sum(a * weights, axis, keepdims=keepdims) / total
    return (result, total) if returned else result


row(np.nanvar)(_spread_beside_nan("nanvar", False))
row(np.nanstd)(_spread_beside_nan("nanstd", True))


# ----- Along an axis -----
def _running(name: str) -> Callable[..., Tensor]:
    def running(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
        a = operand(a)
        dtype = widest(a, dtype)
        return getattr(a.ravel(), name)(0, dtype=dtype) if axis is None else getattr(a, name)(axis, dtype=dtype)

    return running


row(np.cumsum)(_running("cumsum"))
row(np.cumprod)(_running("cumprod"))


row(np.nancumsum)(_beside_nan("cumsum", 0))
row(np.nancumprod)(_beside_nan("cumprod", 1))


def _from_the_start(name: str, start: int) -> Callable[..., Tensor]:
    running = ROWS[getattr(np, name)].function

    def cumulative(x: Any, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
        x = operand(x)
        if axis is None:
            if x.ndim != 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        result = running(x.unsqueeze(0) if not x.ndim else x, axis, dtype)
        if not include_initial:
            return result
        shape = [1 if dim == axis % x.ndim else size for dim, size in enumerate(x.shape)]
        return cat([result.new_full(shape, start), result], axis)

    return cumulative


if hasattr(np, "cumulative_sum"):       # from NumPy 2.1 on
    row(np.cumulative_sum)(_from_the_start("cumsum", 0))
    row(np.cumulative_prod)(_from_the_start("cumprod", 1))


@row(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    a = operand(a)
    shape = [1 if dim == axis % a.ndim else size for dim, size in enumerate(a.shape)] if a.ndim else []
    ends = [None if end is None else operand(end) for end in (prepend, append)]
    before, after = (end.expand(shape) if end is not None and not end.ndim else end for end in ends)
    return a.diff(n, axis, before, after)


@row(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    y = operand(y).movedim(axis, -1)
    pairs = y[..., 1:] + y[..., :-1]
    if x is None:
        return (dx * precise(pairs, None) / 2).sum(-1)
    x = operand(x)
    return (precise((x if x.ndim == 1 else x.movedim(axis, -1)).diff() * pairs, None) / 2).sum(-1)
