"""Powers of two taken apart and multiplied by, and powers in double precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.storage import dtype_by_name, get_default_dtype
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.limits import finfo
from cygrad.operators._language.arguments import checked_operand, checked_tensor, delivered, delivered_together, shown
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import operator, recorded_together
from cygrad.operators._language.narrow_floats import rounded_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad._core.memory.storage import DType
    from cygrad.tensor import Tensor
    from cygrad.typing import Number, Operand, Pair


class MantissaAndExponent(NamedTuple):
    """The results of `frexp`."""

    mantissa: Tensor
    exponent: Tensor

    def __repr__(self) -> str:
        return shown(self, "frexp")


# ----- Powers of two -----
def _frexp_gradient(gs: Sequence[Any], y1: Tensor) -> Tensor:
    return ldexp(gs[0], -y1)


@operator(dinput=_frexp_gradient, batch=same,
          refuses={kind: RuntimeError("torch.frexp() only supports floating-point dtypes, got {dtype}") for kind in "biuc"})
def frexp(input: Tensor, *, out: Pair | None = None) -> MantissaAndExponent:
    """Each element as mantissa * 2 ** exponent, the mantissa from 0.5 to below 1 in size, the exponent int32; 0, infinities and NaN have
    the exponent 0.

    The gradient goes through the mantissa: g / 2 ** exponent.

    >>> import cygrad
    >>> mantissa, exponent = cygrad.frexp(cygrad.tensor([3., -0.25]))
    >>> mantissa, exponent.tolist()
    (tensor([ 0.7500, -0.5000]), [2, -1])
    """
    checked_operand(frexp, input)
    wide = to_array(input.detach().to(input.dtype.loops))
    mantissa, exponent = np.frexp(wide)
    exponent = np.where(np.isfinite(wide), exponent, 0).astype(np.int32)
    results = computed(np.asarray(mantissa)).to(input.dtype), computed(exponent)
    return delivered_together(MantissaAndExponent, recorded_together(frexp, (input,), results), out)


def _times_power_of_two(x: Tensor, exponent: Tensor) -> Tensor:
    """Return x * 2 ** exponent for integers, rounded once: by factors that are normal numbers, of which only the last may leave the range.

    As musl's scalbn does it: a step below the least normal number leaves so much that a further one is more than its digits.
    """
    limits = finfo(x.dtype)
    highest, lowest = float(np.frexp(limits.max)[1]) - 1, float(np.frexp(limits.tiny)[1]) - 1
    step_down = lowest - float(np.frexp(limits.eps)[1]) + 1     # by which a normal number may stop being one, but not lose its size
    rest = exponent.to(x.dtype).clamp(3 * step_down, 3 * highest)
    for _ in range(2):
        step = rest.clamp(max=highest).masked_fill(rest < lowest, step_down)
        x, rest = x * step.exp2(), rest - step
    return x * rest.clamp(lowest, highest).exp2()


def _scaled_by(x: Tensor, exponent: Tensor) -> Tensor:
    """Return x * 2 ** exponent, of 16-bit floats computed in float32."""
    if x.is_complex():
        scaled = _times_power_of_two(x.view_as_real(), exponent.unsqueeze(-1))
        return scaled.contiguous().view_as_complex()
    return _times_power_of_two(x.to(x.dtype.loops), exponent).to(x.dtype)


@rounded_once
def _times_exp2(x: Tensor, exponent: Tensor) -> Tensor:
    return x * exponent.exp2()


@operator(in_place=True)
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` times 2 to the power `other`, which broadcast: the inverse of `frexp`.

    Integers are exponents of a product that is rounded once, in the dtype of `input` (of integers: the default dtype); floats are
    exponents in the common dtype.

    >>> import cygrad
    >>> cygrad.ldexp(cygrad.tensor([1., 3.]), cygrad.tensor([2, -1]))
    tensor([4.0000, 1.5000])
    """
    x = input if input.dtype.is_differentiable else input.to(get_default_dtype())
    if not other.dtype.is_differentiable:
        return delivered(_scaled_by(x, other), out)
    return delivered(_times_exp2(x, other), out)


# ----- In double precision -----
def _double(*operands: Any) -> DType:
    """Return float64, or complex128 where an operand is complex."""
    is_complex = any(operand.is_complex() if isinstance(operand, TensorImpl) else isinstance(operand, complex) for operand in operands)
    return dtype_by_name["complex128" if is_complex else "float64"]


def _check_target(operator: Any, role: str, target: Tensor, dtype: DType) -> None:
    if target.dtype != dtype:
        raise RuntimeError(f"the {role} given to {operator.name} has dtype {target.dtype.name} but the operation's result requires dtype "
                           f"{dtype.name}")


def _in_double(operand: Any, dtype: DType) -> Any:
    return operand.to(dtype) if isinstance(operand, TensorImpl) else operand


@operator(forms=True)
def float_power(input: Operand, exponent: Operand, *, out: Tensor | None = None) -> Tensor:
    """`input` raised to the power `exponent`, computed in float64, or complex128; one of them may be a number.

    Integers to negative powers are their inverses. RuntimeError for `out` of another dtype.

    >>> import cygrad
    >>> cygrad.float_power(cygrad.tensor([1, 2]), -1)
    tensor([1.0000, 0.5000], dtype=cygrad.float64)
    """
    dtype = _double(input, exponent)
    if out is not None:
        _check_target(float_power, "output", out, dtype)
    if not isinstance(exponent, TensorImpl):
        checked_tensor(float_power, input)
    return delivered(_in_double(input, dtype) ** _in_double(exponent, dtype), out)


@operator
def float_power_(self: Tensor, exponent: Tensor | Number) -> Tensor:
    """Raise float64 or complex128 numbers to a power, in place; RuntimeError for another dtype. See `float_power`."""
    dtype = _double(self, exponent)
    _check_target(float_power_, "base", self, dtype)
    return self.pow_(_in_double(exponent, dtype))
