"""Limits of dtypes, `finfo` and `iinfo`, and promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.memory.storage import DType, dtype_by_name, get_default_dtype, resolve_dtype
from cygrad._core.operands.operands import castable, common_dtype
from cygrad.ops import dtypes

if TYPE_CHECKING:
    from cygrad.typing import Operand


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


def promote_types(type1: DType, type2: DType) -> DType:
    """Return the smallest dtype that holds both.

    >>> import cygrad
    >>> cygrad.promote_types(cygrad.int8, cygrad.uint8)
    cygrad.int16
    """
    a, b = (dtypes.DTYPES[resolve_dtype(type).number] for type in (type1, type2))
    return dtype_by_name[dtypes.promote(a, b).name]


def result_type(tensor: Operand, other: Operand) -> DType:
    """Return the dtype that an operator computes in with two operands, tensors or numbers.

    Tensors with dims decide; 0-d tensors, and below them numbers, count only where they are of a higher kind (bool, integer, floating
    point). TypeError for what is neither.

    >>> import cygrad
    >>> cygrad.result_type(cygrad.ones(2), cygrad.tensor(1, dtype=cygrad.float64))
    cygrad.float32
    >>> cygrad.result_type(cygrad.tensor([1]), 0.5)
    cygrad.float32
    """
    return common_dtype(tensor, other)


def can_cast(from_: DType, to: DType) -> bool:
    """Say whether results of one dtype may be written into a tensor of another: those of a higher kind may not.

    >>> import cygrad
    >>> cygrad.can_cast(cygrad.float64, cygrad.float32), cygrad.can_cast(cygrad.float32, cygrad.int64)
    (True, False)
    """
    return castable(resolve_dtype(from_), resolve_dtype(to))
