"""Reductions and scans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.memory.storage import DType, dtype_by_name
from cygrad.array_api.elementwise import checked, functions
from cygrad.array_api.promotion import by_numpy, is_unsigned, tensors_of
from cygrad.operators import joining

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

__all__ = ["all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var"]


def accumulating(dtype: DType) -> DType:
    """Return the dtype in which sums and products of a dtype are given: of integers the widest of their sign."""
    if dtype.is_integer or dtype.kind == "b":
        return dtype_by_name["int64" if dtype.is_signed or dtype.kind == "b" else "uint64"]
    return dtype


def _accumulated(name: str, x: Any, axis: Any, dtype: DType | None, keepdims: bool) -> Tensor:
    """Return a sum or a product; of unsigned integers 64 bits of the product of integers with the same bits."""
    result_dtype = accumulating(checked(name, x).dtype) if dtype is None else dtype
    numbers = x.to(dtype_by_name["int64"] if is_unsigned(result_dtype) else result_dtype)
    axis = tuple(range(x.ndim)) if axis is None else axis
    if axis == ():
        return numbers.to(result_dtype, copy=True)
    return getattr(numbers, name)(axis, keepdims).to(result_dtype)


def sum(x: Any, /, *, axis: Any = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """Return the sum along dims, or of all elements; integers are summed in 64 bits."""
    return _accumulated("sum", x, axis, dtype, keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """Return the product along dims, or of all elements; integers are multiplied in 64 bits."""
    return _accumulated("prod", x, axis, dtype, keepdims)


def _saved_apart(method: str, x: Any, *arguments: Any, **keywords: Any) -> Tensor:
    """Return a reduction whose gradient reads copies of the operand and of the result: SciPy writes into both afterwards."""
    if not x.requires_grad:
        return getattr(x, method)(*arguments, **keywords)
    return getattr(x.clone(), method)(*arguments, **keywords).clone()


def _extreme(name: str, x: Any, axis: Any, keepdims: bool) -> Tensor:
    if is_unsigned(checked(name, x).dtype):
        return by_numpy(getattr(np, name), x, axis=axis, keepdims=keepdims)
    if axis == ():
        return x.clone()
    return _saved_apart(f"a{name}", x, tuple(range(x.ndim)) if axis is None else axis, keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest element along dims, or of all."""
    return _extreme("max", x, axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element along dims, or of all."""
    return _extreme("min", x, axis, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean along dims, or of all elements."""
    return checked("mean", x).clone() if axis == () else x.mean(axis, keepdims)


def _spread(name: str, x: Any, axis: Any, correction: float, keepdims: bool) -> Tensor:
    if axis == ():
        return checked(name, x) * 0 if not correction else getattr(x.unsqueeze(0), name)(0, correction=correction)
    return _saved_apart(name, checked(name, x), axis, correction=correction, keepdim=keepdims)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation along dims, or of all elements; `correction=1` for samples."""
    return _spread("std", x, axis, correction, keepdims)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance along dims, or of all elements; `correction=1` for samples."""
    return _spread("var", x, axis, correction, keepdims)


def _quantified(name: str, x: Any, axis: Any, keepdims: bool) -> Tensor:
    truth = checked(name, x) != 0
    if axis == ():
        return truth
    return getattr(truth, name)(tuple(range(x.ndim)) if axis is None else axis, keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return True if all elements along dims, or all of them, are true."""
    return _quantified("all", x, axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return True if some element along dims, or of all, is true."""
    return _quantified("any", x, axis, keepdims)


def _scanned(name: str, start: int, x: Any, axis: int | None, dtype: DType | None, include_initial: bool) -> Tensor:
    if axis is None and checked(name, x).ndim != 1:
        raise ValueError(f"cumulative_{name[3:]}(): the axis can be left out for a vector only, but the tensor has {x.ndim} dims")
    place = 0 if axis is None else axis
    result_dtype = accumulating(checked(name, x).dtype) if dtype is None else dtype
    result = getattr(x.to(dtype_by_name["int64"] if is_unsigned(result_dtype) else result_dtype), name)(place)
    if include_initial:
        shape = list(x.shape)
        shape[place] = 1
        result = joining.cat([result.new_full(shape, start), result], place)
    return result.to(result_dtype)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False) -> Tensor:
    """Return the sums of the elements up to each along a dim; `include_initial`: with 0 in front."""
    return _scanned("cumsum", 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False) -> Tensor:
    """Return the products of the elements up to each along a dim; `include_initial`: with 1 in front."""
    return _scanned("cumprod", 1, x, axis, dtype, include_initial)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the differences of neighbours along a dim, `n` times; parts may be put before and behind."""
    parts = [part for part in (prepend, checked("diff", x), append) if part is not None]
    result = joining.cat(tensors_of("diff", *parts), axis) if len(parts) > 1 else x
    for _ in range(n):
        size = result.shape[axis]
        if not size:
            return result
        result = functions["subtract"](result.narrow(axis, 1, size - 1), result.narrow(axis, 0, size - 1))
    return result
