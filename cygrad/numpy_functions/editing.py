"""Elements inserted and removed, padding, and elements written into tensors, or into arrays where no history is lost."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import from_array
from cygrad.numpy_functions import reductions
from cygrad.numpy_functions.quantiles import _median
from cygrad.numpy_functions.ranges import linspace
from cygrad.numpy_functions.rows import ROWS, arrays, operand, refuse_out, row, values
from cygrad.operators import joining, masking
from cygrad.operators._language.arguments import integers

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def rearranged(a: Tensor, function: Callable[[np.ndarray], np.ndarray], *more: Tensor) -> Tensor:
    """Return the elements, and `more` behind them, in the places where a function of NumPy's puts their numbers."""
    places = from_array(np.ascontiguousarray(function(np.arange(a.numel()).reshape(a.shape))))
    elements = a.reshape(-1)
    if more:
        elements = joining.cat([elements, *(each.reshape(-1).to(a.dtype) for each in more)])
    return elements.take(places)


# ----- More, or fewer elements -----
@row(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    return rearranged(operand(arr), lambda places: np.delete(places, arrays(obj), axis))


@row(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    arr, added = operand(arr), operand(values)
    numbers = np.arange(added.numel()).reshape(added.shape) + arr.numel()
    return rearranged(arr, lambda places: np.insert(places, arrays(obj), numbers, axis), added)


@row(np.resize)
def resize(a: Any, new_shape: Any) -> Tensor:
    a, shape = operand(a), integers(new_shape)
    if any(size < 0 for size in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    return rearranged(a, lambda places: np.resize(places, shape)) if a.numel() else a.new_zeros(shape)


@row(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    filt, sides = operand(filt), str(trim).lower()
    if sides not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = [*range(filt.ndim)] if axis is None else [normalized_dim(dim, filt.ndim) for dim in integers(axis)]
    nonzero = np.argwhere(values(filt))
    key = [slice(None)] * filt.ndim
    for dim in axes:
        first, last = (nonzero[:, dim].min(), nonzero[:, dim].max() + 1) if len(nonzero) else (0, 0)
        key[dim] = slice(int(first) if "f" in sides or not len(nonzero) else None, int(last) if "b" in sides or not len(nonzero) else None)
    return filt[tuple(key)]


row(np.extract)(lambda condition, arr: operand(arr).reshape(-1)[operand(condition).reshape(-1).nonzero(as_tuple=True)[0]])


# ----- Padding -----
SHIFTED = {"edge", "wrap", "reflect", "symmetric"}
STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": ROWS[np.max].function, "minimum": ROWS[np.min].function, "mean": reductions.mean, "median": _median("median", False)}
PADDINGS = {"constant": "constant_values", "linear_ramp": "end_values", **dict.fromkeys(STATISTICS, "stat_length")}


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape of nested sequences, which may hold tensors."""
    return (len(value), *_shape(value[0])) if isinstance(value, (list, tuple)) and value else tuple(np.shape(value))


def _pairs(ndim: int, value: Any) -> list[Any]:
    """Return the values before and behind each axis, of one value for all, one pair for all, or a pair an axis."""
    if isinstance(value, dict):
        pairs = [(0, 0)] * ndim
        for axis, each in value.items():
            pairs[axis] = (each, each) if np.ndim(each) == 0 else tuple(each)
        return pairs
    table = np.empty(_shape(value), object)
    for place in np.ndindex(table.shape):
        entry = value
        for step in place:
            entry = entry[step]
        table[place] = entry
    return np.broadcast_to(table, (ndim, 2)).tolist()


def _beside(a: Tensor, dim: int, width: int, value: Any, before: bool, mode: str, a_shape: Any) -> Tensor:
    """Return the part before or behind an axis."""
    shape = [width if each == dim else size for each, size in enumerate(a.shape)]
    if mode == "constant":
        return operand(value).to(a.dtype).expand(shape)
    if mode == "linear_ramp":
        edge = a.narrow(dim, 0 if before else a.shape[dim] - 1, 1).squeeze(dim)
        ramp = linspace(operand(value).to(edge.dtype) if edge.dtype.is_differentiable else value, edge, width, False, axis=dim)
        if not a.dtype.is_differentiable:
            ramp = ramp.floor()
        return (ramp if before else ramp.flip(dim)).to(a.dtype)
    size = a_shape[dim]
    length = size if value is None else min(int(value), size)
    if length < 1:
        raise ValueError(f"stat_length of {length} yields no value for padding")
    part = a.narrow(dim, 0 if before else size - length, length)
    statistic = STATISTICS[mode](part, axis=dim, keepdims=True)
    return (statistic.round() if a.dtype.is_integer and statistic.dtype.is_differentiable else statistic).to(a.dtype).expand(shape)


@row(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tensor:
    a = operand(array)
    if callable(mode):
        raise TypeError("np.pad is not supported on cygrad tensors with a function as mode: it writes into an array. Call it on "
                        "tensor.detach().numpy()")
    if mode not in {*PADDINGS, *SHIFTED, "empty"}:
        raise ValueError(f"mode {mode!r} is not supported")
    if kwargs.get("reflect_type", "even") != "even":
        raise TypeError("np.pad is not supported on cygrad tensors with reflect_type: leave it out, or call it on tensor.detach().numpy()")
    allowed = {"reflect_type"} if mode in ("reflect", "symmetric") else {PADDINGS.get(mode)}
    if not kwargs.keys() <= allowed:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {kwargs.keys() - allowed}")
    widths = _pairs(a.ndim, arrays(pad_width))
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError("index can't contain negative values")
    if mode in SHIFTED:
        return rearranged(a, lambda places: np.pad(places, widths, mode))
    if mode == "empty":
        mode = "constant"
    value = kwargs.get(PADDINGS[mode], None if mode in STATISTICS else 0)
    beside = _pairs(a.ndim, value)
    for dim, (pair, sides) in enumerate(zip(widths, beside, strict=True)):
        shape = a.shape
        before, behind = (_beside(a, dim, int(width), value, number == 0, mode, shape)
                          for number, (width, value) in enumerate(zip(pair, sides, strict=True)))
        a = joining.cat([before, a, behind], dim)
    return a


# ----- Written -----
def writes(function: Any) -> Callable[[F], F]:
    """Declare the row of a function that writes: into a tensor by operators, into an array by NumPy, where no history is lost."""
    def declare(write: F) -> F:
        first = next(iter(inspect.signature(write).parameters))

        @row(function)
        @wraps(write)
        def written(**arguments: Any) -> None:
            target = arguments.pop(first)
            if isinstance(target, TensorImpl):
                write(target, **arguments)
                return
            refuse_out(function, [*arguments.values()])
            function(target, **arrays(arguments, np.asarray))

        return write

    return declare


def cycled(v: Any, count: int, dtype: Any) -> Tensor:
    """Return as many elements as requested, from the start again behind the last one."""
    elements = operand(v).reshape(-1).to(dtype)
    if not count or len(elements) == count:
        return elements[:count]
    if not len(elements):
        raise ValueError("Cannot insert from an empty array!")
    return elements.take(from_array(np.arange(count) % len(elements)))


def _mask(name: str, mask: Any, target: Tensor) -> Tensor:
    mask = operand(mask)
    if mask.numel() != target.numel():
        raise ValueError(f"{name}: mask and data must be the same size, but the mask has the shape {tuple(mask.shape)} and the data "
                         f"{tuple(target.shape)}")
    return mask.bool().reshape(target.shape)


def _places(name: str, indices: Any) -> Tensor:
    places = operand(indices)
    if not places.dtype.is_integer and places.numel():
        raise TypeError(f"{name}: indices must be integers, not {places.dtype}")
    return places.long()


@writes(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if not isinstance(src, (int, float, complex)) and not np.can_cast(operand(src).dtype.name, dst.dtype.name, casting):
        raise TypeError(f"Cannot cast array data from {operand(src).dtype} to {dst.dtype} according to the rule {casting!r}")
    source = operand(src).to(dst.dtype).expand(dst.shape)
    if where is not True:
        where = operand(where)
        if where.dtype.kind != "b":
            raise TypeError(f"Cannot cast array data from {where.dtype} to bool according to the rule 'safe'")
        source = masking.where(where.expand(dst.shape), source, dst)
    dst.copy_(source)


@writes(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    chosen = _mask("putmask", mask, a)
    if operand(values).numel():
        a.copy_(masking.where(chosen, cycled(values, a.numel(), a.dtype).reshape(a.shape), a))


@writes(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    places = _mask("place", mask, arr).reshape(-1).nonzero(as_tuple=True)[0]
    arr.put_(places, cycled(vals, len(places), arr.dtype))


@writes(np.put)
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    places, size = _places("put", ind).reshape(-1), a.numel()
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if mode != "raise":
        places = places % size if mode == "wrap" else places.clamp(0, size - 1)
    elif bool(((places < -size) | (places >= size)).any()):
        outside = places[(places < -size) | (places >= size)]
        raise IndexError(f"index {int(outside[0])} is out of bounds for axis 0 with size {size}")
    if operand(v).numel():
        a.put_(places, cycled(v, len(places), a.dtype))


@writes(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    places = _places("put_along_axis", indices)
    if axis is None:
        put(arr, places, operand(values).broadcast_to(places.shape))
        return
    dim = normalized_dim(axis, arr.ndim)
    if places.ndim != arr.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    shape = [places.shape[dim] if each == dim else size for each, size in enumerate(arr.shape)]
    numbers = np.arange(arr.numel()).reshape(arr.shape)
    flat = np.take_along_axis(numbers, np.broadcast_to(arrays(places), shape), dim)
    arr.put_(from_array(flat.reshape(-1)), operand(values).to(arr.dtype).broadcast_to(shape).reshape(-1))


@writes(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    marks = np.zeros(a.shape, bool)
    np.fill_diagonal(marks, True, wrap)
    places = np.flatnonzero(marks)
    a.put_(from_array(places), cycled(val, len(places), a.dtype))
