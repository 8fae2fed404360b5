"""Limits of dtypes, `finfo` and `iinfo`, and promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.memory.storage import DType, dtype_by_name, get_default_dtype, resolve_dtype
from cygrad._core.operands.operands import castable, common_dtype
from cygrad.ops.dtypes import DTYPES, NUMBER, common

if TYPE_CHECKING:
    from cygrad.typing import Operand


class Limits:
    """The common part of `finfo` and `iinfo`: equal for equal dtypes."""

    dtype: str

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.dtype == other.dtype

    __hash__ = None     # type: ignore[assignment]      # as torch's


class finfo(Limits):
    """Limits of a floating-point dtype, of a complex one its parts': bits, eps, max, min, tiny, smallest_normal, resolution.

    >>> import cygrad
    >>> cygrad.finfo(cygrad.float16)
    finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)
    """

    def __init__(self, type: Any = None) -> None:
        row = DTYPES[get_default_dtype().number] if type is None else DTYPES[resolve_dtype(type).number]
        if not row.is_differentiable:
            raise TypeError(f"cygrad.finfo() requires a floating point input type. Use cygrad.iinfo to handle '{row.name}'")
        row = DTYPES[NUMBER[row.real]] if row.real else row
        self.dtype, self.bits, self.eps, self.resolution = row.name, 8 * row.itemsize, row.eps, row.resolution
        self.max, self.min = float(row.highest), float(row.lowest)
        self.tiny = self.smallest_normal = row.tiny

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")


class iinfo(Limits):
    """Limits of an integer dtype: bits, max, min.

    >>> import cygrad
    >>> cygrad.iinfo(cygrad.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, type: Any) -> None:
        row = DTYPES[resolve_dtype(type).number]
        if row.is_differentiable:
            raise TypeError(f"cygrad.iinfo() requires an integer input type. Use cygrad.finfo to handle '{row.name}'")
        if not row.is_integer:
            raise TypeError(f"cygrad.{row.name} is not supported by cygrad.iinfo: it has no limits but False and True")
        self.dtype, self.bits, self.max, self.min = row.name, 8 * row.itemsize, int(row.highest), int(row.lowest)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def promote_types(type1: DType, type2: DType) -> DType:
    """Return the smallest dtype that holds both.

    uint16, uint32 and uint64 go with themselves and with floating-point dtypes, as in torch; RuntimeError for another.

    >>> import cygrad
    >>> cygrad.promote_types(cygrad.int8, cygrad.uint8)
    cygrad.int16
    """
    a, b = (DTYPES[resolve_dtype(type).number] for type in (type1, type2))
    return dtype_by_name[common(a, b).name]


def result_type(tensor: Operand, other: Operand) -> DType:
    """Return the dtype that an operator computes in with two operands, tensors or numbers.

    Tensors with dims decide; 0-d tensors, and below them numbers, count only where they are of a higher kind (bool, integer, floating
    point, complex). TypeError for other values.

    >>> import cygrad
    >>> cygrad.result_type(cygrad.ones(2), cygrad.tensor(1, dtype=cygrad.float64))
    cygrad.float32
    >>> cygrad.result_type(cygrad.tensor([1]), 0.5)
    cygrad.float32
    """
    return common_dtype(tensor, other)


def can_cast(from_: DType, to: DType) -> bool:
    """Return True if results of one dtype may be written into a tensor of another: results of a higher kind may not.

    >>> import cygrad
    >>> cygrad.can_cast(cygrad.float64, cygrad.float32), cygrad.can_cast(cygrad.float32, cygrad.int64)
    (True, False)
    """
    return castable(resolve_dtype(from_), resolve_dtype(to))
