"""Promotion as the array API standard has it: by dtypes alone, whether a tensor has dims or not; numbers of Python have no say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.storage import DType, dtype_by_name
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.creation import full
from cygrad.data.limits import promote_types

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

NUMBERS = (bool, int, float, complex)


def promoted(one: DType, other: DType) -> DType:
    """Return the dtype of a result of two; TypeError where the standard has none: of uint64 and a signed integer."""
    if not (one.is_integer and other.is_integer):
        return one if one == other else promote_types(one, other)
    result = np.promote_types(one.name, other.name)
    if result.kind == "f":
        raise TypeError(f"no integer dtype holds the numbers of both {one.name} and {other.name}: convert one of the operands")
    return dtype_by_name[result.name]


def common_dtype(*operands: Any) -> DType:
    """Return the dtype of tensors, dtypes and numbers together; a number decides only where it is of a higher kind than all others."""
    dtypes = [each if isinstance(each, DType) else each.dtype for each in operands if isinstance(each, (DType, TensorImpl))]
    numbers = [each for each in operands if not isinstance(each, (DType, TensorImpl))]
    for each in numbers:
        if not isinstance(each, NUMBERS):
            raise TypeError(f"expected a tensor, a dtype or a number, not {type(each).__name__}")
    if not dtypes:
        raise ValueError("at least one tensor or dtype is required, but all are numbers")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promoted(result, dtype)
    for number in numbers:
        if _rank(number) > "biufc".index(result.kind) and not (isinstance(number, int) and result.is_integer):
            result = promote_types(result, _dtype_of_number(number, result))
    return result


def _rank(number: Any) -> int:
    return 0 if isinstance(number, bool) else 1 if isinstance(number, int) else 3 if isinstance(number, float) else 4


def _dtype_of_number(number: Any, partner: DType) -> DType:
    """Return the dtype of a number of a higher kind than its partner's."""
    if isinstance(number, int):
        return dtype_by_name["int64"]
    single = partner.is_floating_point and partner.itemsize < 8
    if isinstance(number, float):
        return dtype_by_name["float32"]
    return dtype_by_name["complex64" if single else "complex128"]


def tensors_of(function: str, *operands: Any) -> list[Tensor]:
    """Return operands, of which one is a tensor, as tensors of their common dtype."""
    if not any(isinstance(each, TensorImpl) for each in operands):
        raise TypeError(f"{function}() expected a tensor, but got {', '.join(type(each).__name__ for each in operands)}")
    dtype = common_dtype(*operands)
    return [each.to(dtype) if isinstance(each, TensorImpl) else full((), each, dtype=dtype) for each in operands]


def is_unsigned(dtype: DType) -> bool:
    """Whether it is an unsigned dtype that operators of tensors do not compute with."""
    return dtype.kind == "u"


def by_numpy(function: Any, *tensors: Any, **keywords: Any) -> Any:
    """Return the result of NumPy's function for tensors of integers, which have no derivative."""
    result = function(*[to_array(each) if isinstance(each, TensorImpl) else each for each in tensors], **keywords)
    return tuple(map(computed, result)) if isinstance(result, tuple) else computed(np.asarray(result))
