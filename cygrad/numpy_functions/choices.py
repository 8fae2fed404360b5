"""Elements chosen among several tensors by conditions or numbers, and functions applied to parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad.numpy_functions.elements import NUMBERS, where
from cygrad.numpy_functions.rows import operand, operands, promoted, row
from cygrad.operators import joining, new_tensors
from cygrad.operators._language.arguments import integers

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@row(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    conditions = operands(condlist)
    for number, condition in enumerate(conditions):
        if condition.dtype.kind != "b":
            raise TypeError(f"invalid entry {number} in condlist: should be boolean ndarray")
    choices: list[Any] = [choice if isinstance(choice, NUMBERS) else operand(choice) for choice in (*choicelist, default)]
    tensors = iter(promoted(*(choice for choice in choices if isinstance(choice, TensorImpl))))
    choices = [next(tensors) if isinstance(choice, TensorImpl) else choice for choice in choices]
    result = choices[-1]
    for condition, choice in zip(conditions[::-1], choices[-2::-1], strict=True):
        result = where(condition, choice, result)
    return result


@row(np.choose)
def choose(a: Any, choices: Any, mode: str = "raise") -> Tensor:
    numbers, several = operand(a), promoted(*operands(choices))
    if not numbers.dtype.is_integer and numbers.dtype.kind != "b":
        raise TypeError(f"np.choose: a must be integers, not {numbers.dtype}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    shape, count = np.broadcast_shapes(numbers.shape, *(each.shape for each in several)), len(several)
    numbers = numbers.long().expand(shape)
    if mode == "raise":
        if bool(((numbers < 0) | (numbers >= count)).any()):
            raise ValueError("invalid entry in choice array")
    else:
        numbers = numbers % count if mode == "wrap" else numbers.clamp(0, count - 1)
    return joining.stack([each.expand(shape) for each in several]).gather(0, numbers.unsqueeze(0)).squeeze(0)


@row(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Call each function with the elements where its condition holds, alone."""
    x = operand(x)
    if isinstance(condlist, (bool, np.bool_)) or (isinstance(condlist, TensorImpl) and condlist.ndim <= 1 and x.ndim) or (
            not isinstance(condlist, TensorImpl) and x.ndim and not isinstance(condlist[0], (list, np.ndarray, TensorImpl))):
        condlist = [condlist]
    conditions = [condition.bool().broadcast_to(x.shape) for condition in operands(condlist)]
    if len(conditions) == len(funclist) - 1:
        otherwise = ~joining.stack(conditions).any(0)
        conditions.append(otherwise)
    if len(conditions) != len(funclist):
        count = len(conditions)
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are expected")
    result = new_tensors.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        part = x[condition]
        if not part.numel():
            continue
        values = operand(function(part, *args, **kw) if callable(function) else function).to(x.dtype)
        result = result.masked_scatter(condition, values.expand(part.shape))
    return result


# ----- Functions of parts -----
@row(np.apply_along_axis)
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    arr = operand(arr)
    dim = normalized_dim(axis, arr.ndim)
    rows = arr.movedim(dim, -1)
    outer = rows.shape[:-1]
    if 0 in outer:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [operand(func1d(part, *args, **kwargs)) for part in rows.reshape(-1, rows.shape[-1]).unbind(0)]
    results = [result.to(results[0].dtype) for result in results]
    whole = joining.stack(results).reshape(*outer, *results[0].shape)
    own = range(results[0].ndim)
    return whole.movedim([len(outer) + each for each in own], [dim + each for each in own]) if len(own) else whole


@row(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Tensor:
    result = operand(a)
    ndim = result.ndim
    for axis in integers(axes):
        dim = axis + ndim if axis < 0 else axis
        reduced = operand(func(result, dim))
        result = reduced if reduced.ndim == result.ndim else reduced.unsqueeze(dim)
        if result.ndim != ndim:
            raise ValueError("function is not returning an array of the correct shape")
    return result
