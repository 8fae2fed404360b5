"""Reading data: numbers and nested sequences of them into an array, with torch's errors.

Elements may run code of the user, which may change the very lists that are read: they are read once, into a snapshot.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from cygrad._core.tensor import TensorImpl

MAX_DEPTH = 64
_NUMBERS = bool | int | float | complex | np.generic


def read_array(data: Any, dtype: str | None) -> np.ndarray:
    """Return data as an array of numbers; `dtype` (a NumPy name) is what it will become, if that is known."""
    if isinstance(data, np.ndarray | np.generic):
        return _checked(np.asarray(data))
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type {type(data).__name__!r}")
    snapshot = _snapshot(data, 0)
    try:
        array = np.array(snapshot)
        if array.dtype == object and dtype is not None and not _holds_sequences(array):
            array = array.astype(dtype)     # by __float__ and __index__ of the elements
    except (ValueError, TypeError):
        _explain(snapshot)
        raise
    if array.dtype == object or array.dtype.kind not in "biufc":
        _explain(snapshot)
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    return array


def _checked(array: np.ndarray) -> np.ndarray:
    if not array.dtype.isnative:
        raise ValueError(f"given numpy array has byte order different from the native byte order: {array.dtype!r}. "
                         "Convert it with array.astype(array.dtype.newbyteorder('='))")
    if array.dtype.kind not in "biufc":
        raise TypeError(f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only supported types are: bool, integers "
                        "and floating-point numbers")
    return array


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple) or (hasattr(value, "__len__") and hasattr(value, "__getitem__")
                                               and not isinstance(value, str | bytes | dict | np.generic | TensorImpl))


def _snapshot(data: Any, depth: int) -> Any:
    """Copy nested sequences into lists, and tensors into the arrays they hold."""
    if depth > MAX_DEPTH:
        raise ValueError(f"too many nested sequences: tensors have at most {MAX_DEPTH} dimensions")
    if isinstance(data, TensorImpl):
        array = data.detach().numpy()
        return array.item() if array.ndim == 0 else array
    if isinstance(data, list | tuple):
        return [_snapshot(item, depth + 1) for item in tuple(data)]
    if isinstance(data, np.ndarray | np.generic | int | float):
        return data
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__") or isinstance(data, bytearray | memoryview):
        return np.array(data)
    return [_snapshot(item, depth + 1) for item in list(data)] if _is_sequence(data) else data


def _holds_sequences(array: np.ndarray) -> bool:
    return any(_is_sequence(item) for item in array.flat)


def _explain(snapshot: Any) -> NoReturn | None:
    """Raise what is wrong with nested sequences that are no array of numbers; return if nothing is."""
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
        elif isinstance(item, str | bytes):
            raise ValueError(f"too many dimensions {type(item).__name__!r}")
        elif isinstance(item, int) and not -2**63 <= item < 2**63:
            raise RuntimeError(f"Overflow when unpacking long: {item} does not fit int64")
        elif not isinstance(item, _NUMBERS):
            raise RuntimeError(f"Could not infer dtype of {type(item).__name__}")

    check(snapshot, 0)
    return None
