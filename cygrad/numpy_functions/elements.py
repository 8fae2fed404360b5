"""Elements chosen, compared, sorted and rounded, and tensors made like others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad.numpy_functions.rows import numpy_dtype, operand, promoted, row
from cygrad.operators import comparison, masking, new_tensors, sorting
from cygrad.operators._language.arguments import integers

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


NUMBERS = (bool, int, float, complex)


# ----- Chosen -----
@row(np.where)
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    chosen = operand(condition).bool()
    if x is None and y is None:
        return chosen.nonzero(as_tuple=True)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    x, y = (value if isinstance(value, NUMBERS) else operand(value) for value in (x, y))
    if not (isinstance(x, TensorImpl) or isinstance(y, TensorImpl)):
        x, y = promoted(x, y)
    return masking.where(chosen, x, y)


@row(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    a = operand(a)
    low, high = (bound if bound is None or isinstance(bound, NUMBERS) else operand(bound)
                 for bound in (a_min if min is None else min, a_max if max is None else max))
    if low is None and high is None:
        return a.clone()
    if low is None or high is None or isinstance(low, NUMBERS) == isinstance(high, NUMBERS):
        return a.clamp(low, high)
    return a.clamp(min=low).clamp(max=high)


@row(np.take)
def take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    a, places = operand(a), operand(indices)
    if places.dtype.kind not in "iu":
        raise TypeError(f"np.take: indices must be integers, not {places.dtype}")
    return a.take(places) if axis is None else a[(slice(None),) * normalized_dim(axis, a.ndim) + (places,)]


@row(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    return operand(arr).take_along_dim(operand(indices), axis)


@row(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    condition = operand(condition)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return take(a, condition.nonzero(as_tuple=True)[0], axis)


@row(np.nonzero)
def nonzero(a: Any) -> tuple[Tensor, ...]:
    a = operand(a)
    if not a.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    return a.nonzero(as_tuple=True)


row(np.flatnonzero)(lambda a: operand(a).ravel().nonzero(as_tuple=True)[0])
row(np.argwhere)(lambda a: operand(a).nonzero())


# ----- In order -----
def _sorting(which: int) -> Callable[..., Tensor]:
    """Return values or places in order; of whichever `kind`, since all give the same values and ours is stable."""
    def sort(a: Any, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None) -> Tensor:
        a = operand(a)
        a, axis = (a.ravel(), 0) if axis is None else (a, axis)
        return sorting.sort(a, axis, stable=True)[which]

    return sort


row(np.sort)(_sorting(0))
row(np.argsort)(_sorting(1))


@row(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    a, v = promoted(a, v)
    return sorting.searchsorted(a, v, side=side, sorter=None if sorter is None else operand(sorter))  # type: ignore[arg-type]


# ----- Compared -----
@row(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Tensor:
    a, b = promoted(a, b)
    return comparison.isclose(a, b, rtol, atol, equal_nan)


@row(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    return sorting.isin(*promoted(element, test_elements), assume_unique=bool(assume_unique), invert=bool(invert))


row(np.isposinf)(lambda x: operand(x).isposinf())
row(np.isneginf)(lambda x: operand(x).isneginf())
row(np.isreal)(lambda x: operand(x).isreal())
row(np.iscomplex)(lambda x: ~operand(x).isreal())


# ----- Rounded, and parts of complex numbers -----
row(np.round, np.around)(lambda a, decimals=0: operand(a).round(decimals=decimals))
row(np.fix)(lambda x: operand(x).trunc())
row(np.nan_to_num)(lambda x, nan=0.0, posinf=None, neginf=None: operand(x).nan_to_num(nan, posinf, neginf))
row(np.sinc)(lambda x: operand(x).sinc())
row(np.real)(lambda val: operand(val).real)


@row(np.imag)
def imag(val: Any) -> Tensor:
    val = operand(val)
    return val.imag if val.is_complex() else new_tensors.zeros_like(val)


@row(np.angle)
def angle(z: Any, deg: bool = False) -> Tensor:
    result = operand(z).angle()
    return result.rad2deg() if deg else result


# ----- Like others -----
@row(np.empty_like)
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    prototype = operand(prototype)
    return prototype.new_empty(prototype.shape if shape is None else integers(shape), dtype=numpy_dtype(dtype) or prototype.dtype)


@row(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    return empty_like(a, dtype, shape).copy_(operand(fill_value))


row(np.zeros_like)(lambda a, dtype=None, shape=None: empty_like(a, dtype, shape).zero_())
row(np.ones_like)(lambda a, dtype=None, shape=None: empty_like(a, dtype, shape).fill_(1))
