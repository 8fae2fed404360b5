"""The methods of ufuncs: `reduce`, `accumulate`, `reduceat`, `outer`, `at`, by the ufunc itself, or by an operator for all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import from_array
from cygrad.numpy_functions.dispatch import ROWS
from cygrad.numpy_functions.rows import arrays, numpy_dtype, operand, promoted
from cygrad.operators import joining
from cygrad.ops import REDUCTIONS

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

# By the name of the function of NumPy's that is the same.
_REDUCTIONS = {getattr(np, row.ufunc): ROWS[getattr(np, row.numpy)] for row in REDUCTIONS.values() if row.ufunc and row.numpy}
_REDUCTIONS |= {np.fmax: ROWS[np.nanmax], np.fmin: ROWS[np.nanmin]}
_SCANS: dict[Any, Callable[..., Any]] = {
    np.add: lambda a, axis: ROWS[np.cumsum].function(a, axis), np.multiply: lambda a, axis: ROWS[np.cumprod].function(a, axis),
    np.maximum: lambda a, axis: a.cummax(axis).values, np.minimum: lambda a, axis: a.cummin(axis).values,
    np.logaddexp: lambda a, axis: a.logcumsumexp(axis)}
_TRUTHS = (np.logical_and, np.logical_or, np.logical_xor)


class Method:
    """A method of ufuncs, with the keywords that it takes."""

    def __init__(self, function: Callable[..., Any], *keywords: str) -> None:
        self.function, self.keywords = function, {*keywords}

    def takes(self, ufunc: np.ufunc, keywords: dict[str, Any]) -> bool:
        """Return True if this method of a ufunc exists and takes these keywords."""
        if ufunc.signature is not None or ufunc.nout != 1 or (ufunc.nin != 2 and self.function is not at):
            return False
        return self.keywords >= keywords.keys() or self.function is reduce and ufunc in _REDUCTIONS

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.function(*arguments, **keywords)


def _operand(ufunc: np.ufunc, array: Any, dtype: Any) -> Tensor:
    array = operand(array)
    return array.bool() if ufunc in _TRUTHS else array if dtype is None else array.to(numpy_dtype(dtype))


# ----- Along an axis -----
def reduce(ufunc: np.ufunc, array: Any, axis: Any = 0, **keywords: Any) -> Tensor:
    """Reduce at once where there is an operator for it, else element by element along one axis."""
    row = _REDUCTIONS.get(ufunc)
    if row is not None:
        dtype = keywords.pop("dtype", None)
        array = operand(array) if dtype is None or "dtype" in row.honoured else operand(array).to(numpy_dtype(dtype))
        passed = {"dtype": dtype} if dtype is not None and "dtype" in row.honoured else {}
        return row((array,), {"axis": axis, **passed, **keywords})
    array = _operand(ufunc, array, keywords.get("dtype"))
    dim = _one_axis(ufunc, "reduce", array, axis)
    parts = array.unbind(dim)
    if not parts:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    if ufunc is np.logaddexp:
        result = array.logsumexp(dim)
    else:
        result = parts[0]
        for part in parts[1:]:
            result = ufunc(result, part)
    return result.unsqueeze(dim) if keywords.get("keepdims") else result


def _one_axis(ufunc: np.ufunc, method: str, array: Tensor, axis: Any) -> int:
    if isinstance(axis, tuple) and len(axis) == 1:
        axis, = axis
    if axis is None and array.ndim == 1:
        axis = 0
    if axis is None or isinstance(axis, tuple):
        raise ValueError(f"{ufunc.__name__}.{method} is along one axis of a tensor: pass it as axis, not {axis}")
    if not array.ndim:
        raise TypeError(f"cannot {method} on a scalar")
    return normalized_dim(axis, array.ndim)


def accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None) -> Tensor:
    array = _operand(ufunc, array, dtype)
    dim = _one_axis(ufunc, "accumulate", array, axis)
    if ufunc in _SCANS:
        result = _SCANS[ufunc](array, dim)
        return result if dtype is None else result.to(numpy_dtype(dtype))
    results: list[Tensor] = []
    for part in array.unbind(dim):
        results.append(ufunc(results[-1], part) if results else part)
    return joining.stack(promoted(*results), dim) if results else array.clone()


def reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None) -> Tensor:
    """Reduce from each index to the next one; where that is no larger, the element at the index is the result."""
    array = _operand(ufunc, array, dtype)
    dim = _one_axis(ufunc, "reduceat", array, axis)
    size = array.shape[dim]
    begins = [int(place) for place in np.asarray(arrays(indices)).reshape(-1)]
    for place in begins:
        if not 0 <= place < size:
            raise IndexError(f"index {place} out-of-bounds in {ufunc.__name__}.reduceat [0, {size})")
    parts = [array.narrow(dim, begin, max(end - begin, 1)) for begin, end in zip(begins, [*begins[1:], size], strict=True)]
    return joining.stack([reduce(ufunc, part, dim) for part in parts], dim)


# ----- Of all pairs -----
def outer(ufunc: np.ufunc, a: Any, b: Any) -> Tensor:
    a, b = operand(a), operand(b)
    return ufunc(a.reshape(*a.shape, *[1] * b.ndim), b)


# ----- In place -----
def at(ufunc: np.ufunc, array: Tensor, indices: Any, *others: Any) -> None:
    """Change elements one after the other, also those that the indices name several times: these in as many rounds."""
    shape, numbers = array.shape, np.arange(array.numel())
    chosen = np.asarray(numbers.reshape(shape)[arrays(indices)])
    places = chosen.reshape(-1)
    values = [operand(other).broadcast_to(chosen.shape).reshape(-1) for other in others]
    order = np.argsort(places, kind="stable")
    begins = np.searchsorted(places[order], places[order])
    rounds = np.empty(len(places), np.int64)
    rounds[order] = np.arange(len(places)) - begins
    for number in range(int(rounds.max(initial=-1)) + 1):
        now = from_array(np.flatnonzero(rounds == number))
        where = from_array(places).take(now)
        changed = ufunc(array.take(where), *(value.take(now) for value in values))
        if not np.can_cast(changed.dtype.name, array.dtype.name, "same_kind"):
            raise TypeError(f"Cannot cast ufunc {ufunc.__name__!r} output from {changed.dtype} to {array.dtype} with casting rule "
                            "'same_kind'")
        array.put_(where, changed.to(array.dtype))


METHODS = {"reduce": Method(reduce, "axis", "dtype", "keepdims"), "accumulate": Method(accumulate, "axis", "dtype"),
           "reduceat": Method(reduceat, "axis", "dtype"), "outer": Method(outer), "at": Method(at)}
