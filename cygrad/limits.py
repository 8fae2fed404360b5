"""Limits of dtypes, `finfo` and `iinfo`, and promotion."""

from __future__ import annotations

from typing import Any

import numpy as np

from cygrad._core.storage import DType, dtype_by_name, get_default_dtype, resolve_dtype
from cygrad.ops import dtypes


class finfo:
    """Limits of a floating-point dtype: bits, eps, max, min, tiny, smallest_normal, resolution.

    >>> import cygrad
    >>> cygrad.finfo(cygrad.float32).bits
    32
    """

    def __init__(self, type: Any = None) -> None:
        wanted = get_default_dtype() if type is None else resolve_dtype(type)
        if wanted.kind != "f":
            raise TypeError(f"cygrad.finfo() requires a floating point input type. Use cygrad.iinfo to handle '{wanted.name}'")
        info = np.finfo(wanted.name)
        self.dtype, self.bits = wanted.name, info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(info.resolution)

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")


class iinfo:
    """Limits of an integer dtype: bits, max, min.

    >>> import cygrad
    >>> cygrad.iinfo(cygrad.int8).max
    127
    """

    def __init__(self, type: Any) -> None:
        wanted = resolve_dtype(type)
        if wanted.kind != "i":
            raise TypeError(f"cygrad.iinfo() requires an integer input type. Use cygrad.finfo to handle '{wanted.name}'"
                            if wanted.kind == "f" else f"cygrad.iinfo() does not take '{wanted.name}'")
        info = np.iinfo(wanted.name)
        self.dtype, self.bits, self.max, self.min = wanted.name, info.bits, int(info.max), int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def promoted(a: DType, b: DType) -> DType:
    """Return the smallest dtype that holds both."""
    rows = dtypes.DTYPES
    return dtype_by_name[dtypes.promote(rows[dtypes.NUMBER[a.name]], rows[dtypes.NUMBER[b.name]]).name]
