"""New tensors."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cygrad._core.memory.storage import DType, dtype_by_name, get_default_dtype
from cygrad._core.operands.arrays import computed
from cygrad.array_api.elementwise import checked
from cygrad.array_api.promotion import is_unsigned
from cygrad.data import creation
from cygrad.device import resolve_device
from cygrad.operators import new_tensors
from cygrad.operators.joining import meshgrid as grid

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like",
    "tril", "triu", "zeros", "zeros_like",
]


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(map(index, shape)) if isinstance(shape, (tuple, list)) else (index(shape),)


def arange(start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return the numbers from `start` up to `stop`, without it, `step` apart; from 0 to `start` where `stop` is None."""
    first, end = (0, start) if stop is None else (start, stop)
    if dtype is not None and is_unsigned(dtype):
        return arange(first, end, step, device=device).to(dtype)
    if (end - first) * step <= 0:       # towards the other side there are none
        usual = get_default_dtype() if any(isinstance(each, float) for each in (first, end, step)) else dtype_by_name["int64"]
        return creation.empty(0, dtype=dtype or usual, device=device)
    return creation.arange(first, end, step, dtype=dtype, device=device)


def asarray(obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return anything array-like as a tensor, sharing its memory where that is possible, unless `copy`."""
    if copy is False and isinstance(obj, (bool, int, float, complex, list, tuple)):
        raise ValueError(f"can't alias the memory of a {type(obj).__name__}; leave copy=False out")
    return creation.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return a tensor with any numbers in it."""
    return creation.empty(_sizes(shape), dtype=dtype, device=device)


def empty_like(x: Any, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return a tensor of the same shape with any numbers in it."""
    return new_tensors.empty_like(checked("empty_like", x), dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return a matrix with ones on diagonal `k`, zeros elsewhere."""
    resolve_device(device)
    return computed(np.eye(n_rows, n_cols, k)).to(dtype or get_default_dtype())


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of another library's array."""
    return creation.from_dlpack(x, device=device, copy=copy)


def full(shape: Any, fill_value: complex, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return a tensor with one number everywhere."""
    return creation.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: complex, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return a tensor of the same shape with one number everywhere."""
    return new_tensors.full_like(checked("full_like", x), fill_value, dtype=dtype, device=device)


def linspace(start: complex, stop: complex, /, num: int, *, dtype: DType | None = None, device: Any = None,
             endpoint: bool = True) -> Tensor:
    """Return `num` numbers in equal steps from `start` to `stop`, which is the last one unless `endpoint` is False."""
    resolve_device(device)
    if dtype is None:
        dtype = get_default_dtype()
        if isinstance(start, complex) or isinstance(stop, complex):
            dtype = dtype_by_name["complex64" if dtype.itemsize == 4 else "complex128"]
    return computed(np.linspace(start, stop, num, endpoint=endpoint)).to(dtype)


def meshgrid(*arrays: Any, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid as tensors of its shape."""
    return tuple(grid(*arrays, indexing=indexing)) if arrays else ()


def ones(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return a tensor of ones."""
    return creation.ones(_sizes(shape), dtype=dtype, device=device)


def ones_like(x: Any, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return a tensor of ones of the same shape."""
    return new_tensors.ones_like(checked("ones_like", x), dtype=dtype, device=device)


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """Return the matrices with zeros above diagonal `k`."""
    return checked("tril", x).tril(k)


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """Return the matrices with zeros below diagonal `k`."""
    return checked("triu", x).triu(k)


def zeros(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return a tensor of zeros."""
    return creation.zeros(_sizes(shape), dtype=dtype, device=device)


def zeros_like(x: Any, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Return a tensor of zeros of the same shape."""
    return new_tensors.zeros_like(checked("zeros_like", x), dtype=dtype, device=device)
