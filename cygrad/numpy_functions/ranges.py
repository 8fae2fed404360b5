"""Numbers in equal steps between tensors, and index tensors made from shapes."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import dtype_by_name
from cygrad._core.operands.arrays import from_array
from cygrad.data.creation import arange
from cygrad.data.limits import promote_types
from cygrad.numpy_functions.reductions import precise
from cygrad.numpy_functions.rows import check_device, numpy_dtype, operand, promoted, row
from cygrad.operators import joining, matrix_functions

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def _ends(*ends: Any) -> list[Tensor]:
    """Return the ends of ranges in floating-point numbers; numbers of Python's have no say beside tensors."""
    numbers = [isinstance(end, (int, float, complex)) for end in ends]
    tensors = [precise(operand(end), None) for end in ends]
    strong = [tensor for tensor, number in zip(tensors, numbers, strict=True) if not number]
    common = promoted(*(strong or tensors))[0].dtype
    if not common.is_complex and any(tensor.is_complex() for tensor in tensors):
        common = promoted(strong[0], tensors[[tensor.is_complex() for tensor in tensors].index(True)])[0].dtype
    return [tensor.to(common) for tensor in tensors]


def _count(num: Any) -> int:
    count = index(num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    return count


def _of_dtype(result: Tensor, dtype: Any) -> Tensor:
    """Return results in a requested dtype, of integers the ones below."""
    dtype = numpy_dtype(dtype)
    if dtype is None:
        return result
    return (result.floor() if dtype.is_integer and result.is_floating_point() else result).to(dtype)


@row(np.linspace)
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0, *,
             device: Any = None) -> Any:
    check_device(device)
    count = _count(num)
    start, stop = _ends(start, stop)
    difference = stop - start
    parts = count - 1 if endpoint else count
    step = difference / parts if parts > 0 else difference * np.nan
    numbers = arange(count, dtype=difference.real.dtype).to(difference.dtype).reshape(-1, *[1] * difference.ndim)
    result = numbers * (step if parts > 0 else difference) + start
    if endpoint and count > 1:
        result = joining.cat([result[:-1], stop.expand(difference.shape).unsqueeze(0)])
    result = _of_dtype(result.movedim(0, axis), dtype)
    return (result, step) if retstep else result


@row(np.logspace)
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> Tensor:
    if np.ndim(base):       # then numbers have a say as well
        start, stop, base = map(operand, (start, stop, base))
    start, stop, base = _ends(start, stop, base)
    exponents = linspace(start, stop, num, endpoint)
    shape = [1] * (max(exponents.ndim - 1, base.ndim) + 1)
    shape[0] = len(exponents)
    exponents = exponents.reshape(len(exponents), *[1] * (len(shape) - exponents.ndim), *exponents.shape[1:])
    return _of_dtype((base ** exponents).movedim(0, axis), dtype)


@row(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """Through logarithms of the ends by their direction, the sign of the first one; both ends are exact."""
    start, stop = _ends(operand(start), operand(stop), operand(0.0))[:2]
    count = _count(num)
    if bool((start == 0).any()) or bool((stop == 0).any()):
        raise ValueError("Geometric sequence cannot include zero")
    shape = (start + stop).shape
    start, stop = start.expand(shape), stop.expand(shape)
    direction = start / start.abs() if start.is_complex() else start.sign().detach()
    first, last = start / direction, stop / direction
    if not start.is_complex() and bool((last < 0).any()):
        raise ValueError("np.geomspace: real ends of different signs have no geometric sequence between them: pass complex numbers")
    result = 10 ** linspace(first.log10(), last.log10(), count, endpoint) * direction
    if count:
        inner, end = result[1:-1] if endpoint and count > 1 else result[1:], [stop.unsqueeze(0)] if endpoint and count > 1 else []
        result = joining.cat([start.unsqueeze(0), inner, *end])
    return _of_dtype(result.movedim(0, axis), dtype)


# ----- Places -----
@row(np.ix_)
def open_mesh(*args: Any) -> tuple[Tensor, ...]:
    result = []
    for number, arg in enumerate(args):
        sequence = operand(arg)
        if sequence.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if not len(sequence):
            sequence = sequence.long()
        places = sequence.nonzero(as_tuple=True)[0] if sequence.dtype.kind == "b" else sequence
        result.append(places.reshape([-1 if number == dim else 1 for dim in range(len(args))]))
    return tuple(result)


def _size_of_matrix(arr: Any) -> tuple[int, int]:
    arr = operand(arr)
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return tuple(arr.shape)


def _triangle(indices: Any) -> Any:
    def of_shape(arr: Any, k: int = 0) -> tuple[Tensor, ...]:
        rows, columns = _size_of_matrix(arr)
        return tuple(from_array(places) for places in indices(rows, k, columns))

    return of_shape


row(np.tril_indices_from)(_triangle(np.tril_indices))
row(np.triu_indices_from)(_triangle(np.triu_indices))


@row(np.diag_indices_from)
def diag_indices_from(arr: Any) -> tuple[Tensor, ...]:
    arr = operand(arr)
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return tuple(arange(arr.shape[0]) for _ in arr.shape)


@row(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    x = operand(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    double = dtype_by_name["float64"]
    dtype = promote_types(x.dtype, double) if x.dtype.is_differentiable else numpy_dtype(np.promote_types(x.dtype.name, int))
    return matrix_functions.vander(x.to(dtype), N, bool(increasing))


@row(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    a = operand(a)
    axis = normalized_dim(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    if not 0 <= start <= a.ndim:
        raise np.exceptions.AxisError(f"'start' arg requires {-a.ndim} <= start < {a.ndim + 1}, but {start} was passed in")
    return a.movedim(axis, start - 1 if axis < start else start)
