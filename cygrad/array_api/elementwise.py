"""Functions of each element, and of two tensors that broadcast. The tables have the standard's names and the methods of tensors."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad.array_api.promotion import by_numpy, is_unsigned, tensors_of
from cygrad.operators import conjugation

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

# The standard's names of functions; with the method's, where that is another one.
UNARY = """abs acos acosh asin asinh atan atanh bitwise_invert:bitwise_not ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p
    log2 log10 logical_not negative positive reciprocal round signbit sin sinh square sqrt tan tanh trunc conj"""
BINARY = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal:eq greater:gt
    greater_equal:ge hypot less:lt less_equal:le logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter
    not_equal:ne pow remainder subtract:sub"""


def checked(function: str, x: Any) -> Tensor:
    """Return an argument that has to be a tensor."""
    if not isinstance(x, TensorImpl):
        raise TypeError(f"{function}(): argument 'x' must be Tensor, not {type(x).__name__}")
    return x


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, method or name) for name, _, method in (word.partition(":") for word in text.split())]


def _described(function: Any, name: str, parameters: tuple[str, ...], doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__signature__ = Signature([Parameter(each, Parameter.POSITIONAL_ONLY) for each in parameters])
    return function


def _of_one(name: str, method: str) -> Any:
    def function(x: Any, /) -> Any:
        if is_unsigned(checked(name, x).dtype):
            return by_numpy(getattr(np, name), x)
        return getattr(x, method)()

    return _described(function, name, ("x",), f"Do as `Tensor.{method}` does.")


def _of_two(name: str, method: str) -> Any:
    def function(x1: Any, x2: Any, /) -> Any:
        left, right = tensors_of(name, x1, x2)
        if is_unsigned(left.dtype):
            return by_numpy(getattr(np, name), left, right)
        return getattr(left, method)(right)

    return _described(function, name, ("x1", "x2"), f"Do as `Tensor.{method}` does, with the standard's promotion.")


def real(x: Any, /) -> Tensor:
    """Return the real parts."""
    return conjugation.real(checked("real", x))


def imag(x: Any, /) -> Tensor:
    """Return the imaginary parts, which of real numbers are 0."""
    return conjugation.imag(x) if checked("imag", x).is_complex() else x.new_zeros(x.shape)


def sign(x: Any, /) -> Tensor:
    """Return the signs, of complex numbers the numbers over their absolute values; NaN has none."""
    if is_unsigned(checked("sign", x).dtype):
        return by_numpy(np.sign, x)
    if not x.is_floating_point():
        return x.sgn()
    return x.sign().where(~x.isnan(), x)


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """Return the quotients rounded down; where an operand is infinite, the standard has the quotient itself, unlike Python."""
    left, right = tensors_of("floor_divide", x1, x2)
    if is_unsigned(left.dtype):
        return by_numpy(np.floor_divide, left, right)
    result = left.floor_divide(right)
    return result.where(~(left.isinf() | right.isinf()), left / right) if left.is_floating_point() else result


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Return the elements, not below `min` and not above `max`: numbers or tensors, which do not change the dtype."""
    result = checked("clip", x)
    for bound, name in ((min, "maximum"), (max, "minimum")):
        if bound is not None:
            result = functions[name](result, bound.to(x.dtype) if isinstance(bound, TensorImpl) else bound)
    return result if min is not None or max is not None else x.clone()


functions: dict[str, Any] = {
    **{name: _of_one(name, method) for name, method in _pairs(UNARY)},
    **{name: _of_two(name, method) for name, method in _pairs(BINARY)},
    "real": real,
    "imag": imag,
    "sign": sign,
    "floor_divide": floor_divide,
    "clip": clip,
}
