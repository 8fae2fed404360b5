"""Ufuncs that are no operators: parts and powers of numbers, angles in degrees, steps, and functions of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.operands.arrays import from_array
from cygrad.numpy_functions.elements import NUMBERS
from cygrad.numpy_functions.reductions import precise
from cygrad.numpy_functions.rows import arrays, operand, promoted, row
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.masking import where

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def _pair(x1: Any, x2: Any) -> list[Tensor]:
    """Return two operands in their common dtype; a number of Python's has none beside a tensor that can hold its kind."""
    x1, x2 = (x if isinstance(x, NUMBERS) else operand(x) for x in (x1, x2))
    for number, other in ((x1, x2), (x2, x1)):
        if isinstance(number, NUMBERS) and np.can_cast(operand(number).dtype.name, other.dtype.name, "same_kind"):
            number = operand(number).to(other.dtype)
            return [number, other] if other is x2 else [other, number]
    return promoted(x1, x2)


# ----- Special functions -----
@row(np.i0)
def i0(x: Any) -> Tensor:
    x = precise(operand(x), None)
    if x.is_complex():
        raise TypeError("i0 not supported for complex values")
    return x.i0()


# ----- Angles -----
row(np.degrees)(lambda x: precise(operand(x), None).rad2deg())
row(np.radians)(lambda x: precise(operand(x), None).deg2rad())


# ----- Signs and steps -----
@row(np.fabs)
def fabs(x: Any) -> Tensor:
    x = precise(operand(x), None)
    if x.is_complex():
        raise TypeError(f"np.fabs: x must be real numbers, not {x.dtype}: use np.abs")
    return x.abs()


@row(np.heaviside)
def heaviside(x1: Any, x2: Any) -> Tensor:
    x1, x2 = (precise(x, None) for x in _pair(x1, x2))
    step = where(x1 < 0, 0.0, where(x1 > 0, 1.0, x1))
    return where(x1 == 0, x2, step)


# ----- Parts -----
@row(np.divmod)
def divmod(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


@row(np.modf)
def modf(x: Any) -> tuple[Tensor, Tensor]:
    """The fraction and the whole number, both with the sign of x."""
    x = precise(operand(x), None)
    whole = x.trunc()
    return (x - whole).masked_fill(x.isinf(), 0).copysign(x), whole


@row(np.frexp)
def frexp(x: Any) -> tuple[Tensor, Tensor]:
    """The mantissa, from 0.5 to 1, and the exponent, which has no derivative."""
    mantissa, exponent = precise(operand(x), None).frexp()
    return mantissa, exponent


@row(np.ldexp)
def ldexp(x1: Any, x2: Any) -> Tensor:
    powers = operand(x2)
    if not powers.dtype.is_integer:
        raise TypeError(f"np.ldexp: x2 must be integers, not {powers.dtype}")
    return precise(operand(x1), None).ldexp(powers)


@row(np.spacing)
def spacing(x: Any) -> Tensor:
    """The distance to the next number that is farther from 0, with the sign of x."""
    x = precise(operand(x), None)
    return x.nextafter(x.new_full((), np.inf).copysign(x)) - x


# ----- Powers -----
@row(np.cbrt)
def cbrt(x: Any) -> Tensor:
    x = precise(operand(x), None)
    if x.is_complex():
        raise TypeError(f"np.cbrt: x must be real numbers, not {x.dtype}")
    return rounded_once(type(x)._cube_root)(x)


@row(np.float_power)
def float_power(x1: Any, x2: Any) -> Tensor:
    return operand(x1).float_power(operand(x2))


# ----- Of integers: NumPy computes it, and it has no derivative -----
row(np.bitwise_count)(lambda x: from_array(np.asarray(np.bitwise_count(arrays(operand(x))))))
