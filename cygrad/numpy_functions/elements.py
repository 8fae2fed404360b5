"""Elements chosen, compared, sorted and rounded, and tensors made like others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import dtype_by_name
from cygrad._core.operands.arrays import from_array
from cygrad.numpy_functions.rows import arrays, check_device, numpy_dtype, operand, operands, promoted, row
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


@row(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """Places in the order of the last key, of equal ones in the order of the key before it: stable sorts, by the first key first."""
    several = operands(keys)
    if not several:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if any(key.shape != several[0].shape for key in several):
        raise ValueError("all keys need to be the same shape")
    order = None
    for key in several:
        key = key if key.ndim else key.reshape(1)
        order = key.argsort(axis) if order is None else order.gather(axis, key.gather(axis, order).argsort(axis))
    return order.reshape(several[0].shape)  # type: ignore[union-attr]


def _parting(which: int) -> Callable[..., Tensor]:
    """Return values or places in order: then any element has the smaller ones before it, and the larger ones behind it."""
    def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Tensor:
        if kind != "introselect":
            raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
        a = operand(a)
        size = a.numel() if axis is None else a.shape[normalized_dim(axis, a.ndim)] if a.ndim else 1
        for rank in integers(kth.tolist() if hasattr(kth, "tolist") else kth):
            if not -size <= rank < size:
                raise ValueError(f"kth(={rank}) out of bounds ({size})")
        return _sorting(which)(a, axis)

    return partition


row(np.partition)(_parting(0))
row(np.argpartition)(_parting(1))


@row(np.sort_complex)
def sort_complex(a: Any) -> Tensor:
    """In the order of real parts, of equal ones in the order of imaginary parts; small integers are single numbers then."""
    a = operand(a)
    if not a.is_complex():
        return a.sort(-1).values.to(dtype_by_name["complex64" if a.dtype.itemsize < 4 and a.dtype.is_integer else "complex128"])
    return a.take_along_dim(lexsort((a.imag, a.real)), -1)


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


@row(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Tensor:
    a = operand(a)
    if not a.is_complex():
        return a
    largest = float(np.finfo(a.dtype.name).eps) * tol if tol > 1 else tol
    return a.real if bool((a.detach().imag.abs() < largest).all()) else a


if hasattr(np, "astype"):       # from NumPy 2.1 on
    @row(np.astype)
    def astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Tensor:
        check_device(device)
        return operand(x).to(numpy_dtype(dtype), copy=bool(copy))


# ----- Numbers of places and of bits: NumPy computes integers, which have no derivative -----
@row(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Tensor:
    indices = arrays(multi_index)
    return from_array(np.asarray(np.ravel_multi_index(tuple(indices), dims, mode, order)))


@row(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Tensor, ...]:
    return tuple(from_array(np.array(places)) for places in np.unravel_index(arrays(indices), shape, order))


@row(np.packbits)
def packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Tensor:
    return from_array(np.packbits(arrays(a), axis, bitorder))


@row(np.unpackbits)
def unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Tensor:
    return from_array(np.unpackbits(arrays(a), axis, count, bitorder))


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
