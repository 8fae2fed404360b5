"""Factories that few programs use: numbers spaced by a factor, a range with its end, a number as a tensor, memory in an order of dims."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cygrad._core.compute.creation import arange_into, empty_tensor
from cygrad._core.compute.creation import scalar_tensor as tensor_of_number
from cygrad._core.memory.formats import check_layout
from cygrad._core.memory.sizes import index_argument, size_from_arguments
from cygrad._core.memory.storage import get_default_dtype, resolve_dtype
from cygrad.data.creation import dtype_of_result, empty_strided, finished, placed, spaced
from cygrad.device import resolve_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad._core.memory.formats import Layout
    from cygrad.tensor import Tensor
    from cygrad.typing import Device, DTypeLike, Number, Real


def logspace(start: Tensor | Number, end: Tensor | Number, steps: int, base: Real = 10.0, *, dtype: DTypeLike | None = None,
             device: Device = None, requires_grad: bool = False, out: Tensor | None = None, layout: Layout | None = None,
             pin_memory: bool = False) -> Tensor:
    """Return `steps` powers of `base`, with evenly spaced exponents from `start` to `end`, both included.

    >>> import cygrad
    >>> cygrad.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if isinstance(base, complex) or not hasattr(type(base), "__float__"):
        raise TypeError(f"logspace(): argument 'base' (position 4) must be float, not {type(base).__name__}")
    factor = float(base)

    def powers(exponents: np.ndarray) -> np.ndarray:
        negative = factor < 0 and np.iscomplexobj(exponents)
        return np.power(complex(factor) if negative else factor, exponents)

    return spaced("logspace", start, end, steps, powers, dtype, device, requires_grad, out, layout)


def range(start: Real, end: Real, step: Real = 1, *, dtype: DTypeLike | None = None, device: Device = None, requires_grad: bool = False,
          out: Tensor | None = None, layout: Layout | None = None, pin_memory: bool = False) -> Tensor:
    """Return the numbers from `start` to `end`, both included, `step` apart; warns, as torch does: `arange` is the present form.

    RuntimeError for a step of 0 or in the other direction, and for ends that are not finite.

    >>> import cygrad, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cygrad.range(1, 2, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    for name, value in (("start", start), ("end", end), ("step", step)):
        if isinstance(value, complex):
            raise RuntimeError(f"value cannot be converted to type double without overflow: {name} is {value}")
        if isinstance(value, str) or not hasattr(type(value), "__float__"):
            raise TypeError(f"range(): argument '{name}' must be Number, not {type(value).__name__}")
    result_dtype = dtype_of_result(dtype, out, get_default_dtype())
    first, last, distance = float(start), float(end), float(step)
    if result_dtype.kind == "b":
        raise NotImplementedError("\"range_cpu\" not implemented for 'Bool'; give another dtype")
    if distance == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if not (last >= first if distance > 0 else last <= first):
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: {start}, {end} and {step}")
    resolve_device(device)
    check_layout("range", layout)
    count = math.floor((last - first) / distance) + 1
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's "
                  "range builtin. Instead, use cygrad.arange, which produces values in [start, end).", UserWarning, stacklevel=2)
    return placed(arange_into(empty_tensor((count,), result_dtype), start, step), out, requires_grad)


def scalar_tensor(s: Number, *, dtype: DTypeLike | None = None, device: Device = None, requires_grad: bool = False,
                  layout: Layout | None = None, pin_memory: bool = False) -> Tensor:
    """Return a number as a 0-d tensor, of the default dtype unless another is given; RuntimeError where that does not hold the number.

    >>> import cygrad
    >>> cygrad.scalar_tensor(3)
    tensor(3.)
    """
    if hasattr(type(s), "__operand__"):     # a number that is an input of a program
        tensor = cast("Any", s).__operand__().detach()
        return finished(tensor.to(get_default_dtype() if dtype is None else dtype, copy=True), requires_grad)
    if not isinstance(s, (int, float, complex, np.number, np.bool_)):
        raise TypeError(f"scalar_tensor(): argument 's' (position 1) must be Number, not {type(s).__name__}")
    resolve_device(device)
    check_layout("scalar_tensor", layout)
    number: Any = s.item() if isinstance(s, np.generic) else s
    return finished(tensor_of_number(number, get_default_dtype() if dtype is None else resolve_dtype(dtype)), requires_grad)


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, dtype: DTypeLike | None = None, device: Device = None,
                   requires_grad: bool = False, layout: Layout | None = None, pin_memory: bool = False) -> Tensor:
    """Return an unset tensor whose dims lie in memory in the order that `physical_layout` gives, the outermost first.

    >>> import cygrad
    >>> cygrad.empty_permuted((2, 3, 4), (2, 0, 1)).stride()
    (3, 1, 6)
    """
    check_layout("empty_permuted", layout)
    if not isinstance(physical_layout, (tuple, list)):
        raise TypeError("empty_permuted(): argument 'physical_layout' (position 2) must be tuple of ints, not "
                        f"{type(physical_layout).__name__}")
    sizes, order = size_from_arguments((size,), "empty_permuted"), [index_argument(dim, "physical_layout") for dim in physical_layout]
    if len(order) != len(sizes):
        raise RuntimeError("Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
                           f"{len(sizes)} is not equal to len(physical_layout) = {len(order)}")
    for place, dim in enumerate(order):
        if not 0 <= dim < len(sizes):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(sizes) - 1}, but got {dim} at index {place}). "
                               "Negative dims are not supported here, in torch neither")
    if len({*order}) != len(order):
        raise RuntimeError(f"Duplicate dim not allowed: {order}")
    strides, step = [0] * len(order), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(sizes[dim], 1)
    return empty_strided(sizes, strides, dtype=dtype, device=device, requires_grad=requires_grad)
