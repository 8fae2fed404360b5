"""`np.fft`, by the operators of `cygrad.fft`: integers count as double, and numbers of 16 bits as single."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad import fft
from cygrad.numpy_functions.reductions import precise
from cygrad.numpy_functions.rows import operand, row

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.tensor import Tensor


def numbers(value: Any) -> Tensor:
    x = precise(operand(value), None)
    return x.to(x.dtype.loops)


def _along(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda a, n=None, axis=-1, norm=None: transform(numbers(a), n, axis, norm)


def _across(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda a, s=None, axes=None, norm=None: transform(numbers(a), s, axes, norm)


def _of_planes(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda a, s=None, axes=(-2, -1), norm=None: transform(numbers(a), s, axes, norm)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    row(getattr(np.fft, _name))(_along(getattr(fft, _name)))
for _name in ("fft", "ifft", "rfft", "irfft"):
    row(getattr(np.fft, f"{_name}n"))(_across(getattr(fft, f"{_name}n")))
    row(getattr(np.fft, f"{_name}2"))(_of_planes(getattr(fft, f"{_name}2")))

row(np.fft.fftshift)(lambda x, axes=None: fft.fftshift(operand(x), axes))
row(np.fft.ifftshift)(lambda x, axes=None: fft.ifftshift(operand(x), axes))
