"""Reading data: numbers and nested sequences of them into an array, with torch's errors.

Elements may run code of the user, which may change the very lists that are read: they are read once, into a snapshot.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, NoReturn

import numpy as np

from cygrad._core.entry.operators import warn_of_scalar
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.storage import DType, dtype_by_name, get_default_dtype
from cygrad._core.operands.arrays import refuse_sparse, to_array
from cygrad._core.operands.operands import common_dtype
from cygrad.ops.dtypes import DTYPES, common

MAX_DEPTH = 64
_NUMBERS = bool | int | float | complex | np.generic


def read_array(data: Any, dtype: DType | None) -> tuple[np.ndarray, DType]:
    """Return data as an array of numbers, and the dtype that it is to have: the argument, its own, or the one of Python's numbers."""
    array = own_array(data)
    if array is not None:
        array = _checked(array)
        if dtype is not None and isinstance(data, np.generic):
            check_range(array, dtype)
        return array, dtype or _own_dtype(array)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type {type(data).__name__!r}")
    results: set[Any] = set()
    snapshot = _snapshot(data, 0, results)
    try:
        array = np.array(snapshot)
        if array.dtype.kind == "f" and results == {int} and dtype is not None and not dtype.is_signed:
            array = np.array(snapshot, np.uint64)       # of some integers beyond int64 NumPy makes floats
        if array.dtype == object and dtype is not None and not _holds_sequences(array):
            if any(item is None for item in array.flat):
                raise TypeError     # NumPy would make NaN of it
            array = array.astype(dtype.loops.name)      # by __float__ and __index__ of the elements
    except OverflowError as error:
        raise OverflowError(f"value cannot be converted to {'a float' if dtype is None else dtype.name} without overflow: the data has an "
                            "integer beyond its range") from error
    except (ValueError, TypeError):
        _explain(snapshot, dtype)
        raise
    if not _has_numbers(array):
        _explain(snapshot, dtype)
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    dtype = _inferred(array, results) if dtype is None else dtype
    check_range(array, dtype)
    return array, dtype


def own_array(data: Any) -> np.ndarray | None:
    """Return data that names its dtype as an array, without a copy where that is possible; None for numbers and sequences."""
    if isinstance(data, (np.ndarray, np.generic)):
        return np.asarray(data)
    if isinstance(data, (list, tuple, int, float, complex, str, bytes, TensorImpl)):
        return None
    refuse_sparse(data)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return np.asarray(data)
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    try:
        return np.asarray(memoryview(data))
    except TypeError:
        return None


def _own_dtype(array: np.ndarray) -> DType:
    dtype = _same_dtype(array.dtype)
    if dtype is None:
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}. The only supported types are: "
                        f"{', '.join(sorted({dtype.name for dtype in dtype_by_name.values()}))}")
    return dtype


@functools.lru_cache
def _same_dtype(dtype: np.dtype) -> DType | None:
    """Return our dtype of the same name, or None; remembered, since NumPy puts the name together at each look."""
    return dtype_by_name.get(dtype.name)


def _inferred(array: np.ndarray, result: set[Any]) -> DType:
    """Return the dtype of nested sequences: of all arrays and tensors in it and of the types of Python's numbers, promoted."""
    if array.dtype == np.uint64 and np.dtype("uint64") not in result:
        raise RuntimeError(f"Overflow when unpacking long: {array.max()} does not fit int64")
    named = [item if isinstance(item, DType) else get_default_dtype() if item is float else common_dtype(item(), item())
             if isinstance(item, type) else _own_dtype(np.empty(0, item)) for item in result]
    if not named:
        return get_default_dtype() if array.dtype.kind == "f" else _own_dtype(array)
    return dtype_by_name[functools.reduce(common, [DTYPES[dtype.number] for dtype in named]).name]


def check_range(array: np.ndarray, dtype: DType) -> None:
    """Refuse numbers that an integer dtype does not hold, NaN among them, and complex numbers for a real one."""
    if array.dtype.kind == "c" and not dtype.is_complex and dtype.kind != "b" and (array.ndim or array.imag):
        raise TypeError("must be real number, not complex" if dtype.is_floating_point else
                        "'complex' object cannot be interpreted as an integer")
    if not dtype.is_integer or array.dtype.kind not in "iuf" or not array.size or np.can_cast(array.dtype, dtype.name):
        return
    row = DTYPES[dtype.number]
    wraps = not row.signed and row.itemsize < 8 and array.dtype.kind == "i"     # negative integers are written modulo the size
    for number in (array.min().item(), array.max().item()):     # Python compares integers and floats exactly
        if not (-row.highest if wraps else row.lowest) <= number <= row.highest:
            raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow: {number} is outside of its "
                               "range")


def _has_numbers(array: np.ndarray) -> bool:
    """Return True if the elements are numbers: NumPy's, or numbers of a dtype of another package."""
    return array.dtype.kind in "biufc" or array.dtype.name in dtype_by_name


def _checked(array: np.ndarray) -> np.ndarray:
    if not array.dtype.isnative:
        raise ValueError(f"given numpy array has byte order different from the native byte order: {array.dtype!r}. "
                         "Convert it with array.astype(array.dtype.newbyteorder('='))")
    if not _has_numbers(array):
        raise TypeError(f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only supported types are: bool, integers "
                        "and floating-point numbers")
    return array


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (hasattr(value, "__len__") and hasattr(value, "__getitem__")
                                               and not isinstance(value, (str, bytes, dict, np.generic, TensorImpl)))


def _snapshot(data: Any, depth: int, result: set[Any]) -> Any:
    """Copy nested sequences into lists, and tensors into the arrays they hold; collect the dtypes and types of numbers found."""
    if depth > MAX_DEPTH:
        raise ValueError(f"too many nested sequences: tensors have at most {MAX_DEPTH} dimensions")
    if isinstance(data, TensorImpl):
        warn_of_scalar(data, stacklevel=frames_inside())
        array = to_array(data.detach())
        result.add(data.dtype)
        return array.item() if array.ndim == 0 else array
    if isinstance(data, (list, tuple)):
        return [_snapshot(item, depth + 1, result) for item in tuple(data)]
    if isinstance(data, (np.generic, np.ndarray)):
        result.add(data.dtype)
        return data
    if isinstance(data, (int, float, complex)):
        result.add(bool if isinstance(data, bool) else int if isinstance(data, int) else float if isinstance(data, float) else complex)
        return data
    own = own_array(data)
    if own is not None:
        result.add(own.dtype)
        return own
    return [_snapshot(item, depth + 1, result) for item in list(data)] if _is_sequence(data) else data


def frames_inside() -> int:
    """Return how many frames of this package lie between the caller's and the user's: the frames that a warning leaves out."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cygrad":
        frame, count = frame.f_back, count + 1
    return count


def _holds_sequences(array: np.ndarray) -> bool:
    return any(_is_sequence(item) for item in array.flat)


def _explain(snapshot: Any, dtype: DType | None) -> NoReturn | None:
    """Raise the error of nested sequences that are no array of numbers; return if there is none."""
    sizes = []
    first = snapshot
    while _is_sequence(first):
        sizes.append(len(first))
        first = first[0] if len(first) else 0.0

    def check(item: Any, dim: int) -> None:
        if dim < len(sizes):
            if not _is_sequence(item):
                raise TypeError(f"not a sequence: expected one of length {sizes[dim]} at dim {dim}, got {type(item).__name__}")
            if len(item) != sizes[dim]:
                raise ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(item)})")
            for part in item:
                check(part, dim + 1)
        elif _is_sequence(item):
            raise TypeError(f"must be real number, not {type(item).__name__}: the elements beside it at dim {dim} are numbers")
        elif isinstance(item, (str, bytes)):
            raise ValueError(f"too many dimensions {type(item).__name__!r}")
        elif isinstance(item, int) and not -2**63 <= item < 2**63:
            raise RuntimeError(f"Overflow when unpacking long: {item} does not fit int64")
        elif dtype is not None and not isinstance(item, _NUMBERS) and (item is None or not hasattr(type(item), "__float__")):
            raise TypeError(f"must be real number, not {type(item).__name__}" if dtype.is_differentiable else
                            f"'{type(item).__name__}' object cannot be interpreted as an integer")
        elif not isinstance(item, _NUMBERS):
            raise RuntimeError(f"Could not infer dtype of {type(item).__name__}")

    check(snapshot, 0)
    return None
