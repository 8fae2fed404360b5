"""Dtypes: conversion, kinds, limits, promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.storage import DType, dtype_by_name
from cygrad.array_api.elementwise import checked
from cygrad.array_api.promotion import common_dtype, promoted
from cygrad.data import limits
from cygrad.device import resolve_device

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

KINDS = {
    "bool": "b", "signed integer": "signed", "unsigned integer": "unsigned", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}


def astype(x: Any, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return a tensor in another dtype; itself where it has that dtype, and no copy is asked for."""
    resolve_device(device)
    return checked("astype", x).to(dtype=dtype, copy=copy)


def can_cast(from_: Any, to: DType, /) -> bool:
    """Return True if a dtype, or a tensor of it, is promoted to another one by meeting it."""
    dtype = from_.dtype if isinstance(from_, TensorImpl) else from_
    try:
        return promoted(dtype, to) == to
    except (TypeError, RuntimeError):       # the two have no common dtype
        return False


def isdtype(dtype: DType, kind: Any) -> bool:
    """Return True if a dtype is of a kind, given by name or as a dtype, or of one of several.

    >>> import cygrad
    >>> cygrad.array_api.isdtype(cygrad.int8, ("signed integer", "bool"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, DType):
        return dtype == kind
    if kind not in KINDS:
        raise ValueError(f"unknown kind of dtype: {kind!r}; the kinds are {', '.join(map(repr, KINDS))}")
    if KINDS[kind] in ("signed", "unsigned"):
        return dtype.is_integer and dtype.is_signed == (KINDS[kind] == "signed")
    return dtype.kind in KINDS[kind]


def _of_type(value: Any) -> Any:
    return value.dtype if isinstance(value, TensorImpl) else value


def _with_dtype(limits: Any) -> Any:
    limits.dtype = dtype_by_name[limits.dtype]
    return limits


def finfo(type: Any, /) -> Any:
    """Return the limits of a floating-point dtype, or of the dtype of a tensor; the `dtype` of the result is no text."""
    return _with_dtype(limits.finfo(_of_type(type)))


def iinfo(type: Any, /) -> Any:
    """Return the limits of an integer dtype, or of the dtype of a tensor; the `dtype` of the result is no text."""
    return _with_dtype(limits.iinfo(_of_type(type)))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype that tensors, dtypes and numbers have together."""
    return common_dtype(*arrays_and_dtypes)
