"""Elementwise operators whose functions are more than a row of the table: they choose among rows, or have another signature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.dispatch import ops as rows
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import index_argument, normalized_dim
from cygrad._core.operands.arrays import computed, to_array
from cygrad.operators._language.arguments import checked_operand, checked_tensor, delivered, refused
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.conjugation import view_as_complex, view_as_real
from cygrad.ops.dtypes import DTYPES
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Number, Operand


def _clamp_row(minimum: Operand | None, maximum: Operand | None) -> tuple[Any, tuple[Operand | None, ...]]:
    if minimum is None and maximum is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    if maximum is None:
        return rows["clamp_min"], (minimum,)
    if minimum is None:
        return rows["clamp_max"], (maximum,)
    return rows["clamp"], (minimum, maximum)


@operator(aliases=("clip",))
def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements limited to the range from `min` to `max`; either may be None, a number or a tensor.

    The gradient passes where an element is inside, bounds included.

    >>> import cygrad
    >>> cygrad.clamp(cygrad.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    checked_operand(clamp, input)
    op, bounds = _clamp_row(min, max)
    return op(input, *bounds, out=out)


@operator(aliases=("clip_",))
def clamp_(self: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Limit the elements to the range from `min` to `max`, in place."""
    checked_operand(clamp, self)
    op, bounds = _clamp_row(min, max)
    return op.in_place(self, *bounds)


@operator
def pow(input: Operand, exponent: Operand, *, out: Tensor | None = None) -> Tensor:
    """`input` raised to the power `exponent`; one of them may be a number.

    Squares are exact products. Integers to negative powers are refused.

    >>> import cygrad
    >>> cygrad.pow(cygrad.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    if out is None and isinstance(input, TensorImpl):
        return input**exponent
    if not isinstance(exponent, TensorImpl):
        checked_tensor(pow, input)
    return rows["pow"](input, exponent, out=out)


def _non_finite(input: Tensor, nan: float | None, posinf: float | None, neginf: float | None) -> tuple[float, float, float]:
    """Return the replacements of NaN and the infinities; other dtypes have none."""
    if not input.is_floating_point():
        return 0.0, 0.0, 0.0
    row = DTYPES[input.dtype.number]
    return 0.0 if nan is None else nan, float(row.highest) if posinf is None else posinf, float(row.lowest) if neginf is None else neginf


@operator
def nan_to_num(input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None, *,
               out: Tensor | None = None) -> Tensor:
    """Elements with NaN replaced by `nan` (0) and the infinities by `posinf` and `neginf` (the ends of the dtype).

    >>> import cygrad
    >>> cygrad.nan_to_num(cygrad.tensor([cygrad.nan, 1.]))
    tensor([0., 1.])
    """
    if input.is_complex():
        return delivered(view_as_complex(nan_to_num(view_as_real(input), nan, posinf, neginf)), out)
    return rows["nan_to_num"](input, *_non_finite(input, nan, posinf, neginf), out=out)


@operator
def nan_to_num_(self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replace NaN and infinities, in place; see `nan_to_num`."""
    if self.is_complex():
        view_as_real(self).nan_to_num_(nan, posinf, neginf)
        return self
    return rows["nan_to_num"].in_place(self, *_non_finite(self, nan, posinf, neginf))


@operator(in_place=True, aliases=("special_round",))
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Nearest integers, halves to even; `decimals` is the number of digits kept behind the point (negative: set to 0 before it).

    >>> import cygrad
    >>> cygrad.round(cygrad.tensor([0.5, 1.5, 2.567]), decimals=1)
    tensor([0.5000, 1.5000, 2.6000])
    """
    if decimals == 0:
        return rows["round"](input, out=out)
    if not input.is_floating_point():
        raise refused(round, input)
    scale = float(f"1e{min(abs(index_argument(decimals, 'decimals')), 400)}")       # inf from 309 on
    return delivered(rows["round"](input * scale) / scale if decimals > 0 else rows["round"](input / scale) * scale, out)


@operator(in_place=True, aliases=("special_logit",))
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the odds, log(x / (1 - x)); with `eps`, of elements limited to the range from `eps` to 1 - `eps`.

    >>> import cygrad
    >>> cygrad.logit(cygrad.tensor([0.5]))
    tensor([0.])
    """
    return rows["logit"](input if eps is None else input.clamp(eps, 1 - eps), out=out)


@operator(refuses={"c": NO_LOOP}, aliases=("nn_functional_prelu",))
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Rectifier with a learnt slope below 0: one number, or one for each channel (dim 1).

    >>> import cygrad
    >>> cygrad.prelu(cygrad.tensor([-2., 3.]), cygrad.tensor(0.25))
    tensor([-0.5000,  3.0000])
    """
    channels = input.shape[1] if checked_operand(prelu, input).ndim > 1 else 1
    if not input.ndim and weight.numel() != 1:
        raise RuntimeError(f"Not allow zero-dim input tensor. The weight has {weight.numel()} numbers")
    if weight.ndim > 1 and weight.numel() == channels:
        raise RuntimeError(f"{prelu.__name__}: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and channel "
                           f"size = {channels}.")
    if weight.ndim:
        weight = weight.reshape([-1 if d == 1 else 1 for d in range(input.ndim)])
    return rows["where"](input > 0, input, weight * input)


@operator(refuses={"biuc": NO_LOOP}, loop="glu_cpu")
def nn_functional_glu(input: Tensor, dim: int = -1) -> Tensor:
    """Gated linear unit: the first half of the elements along `dim`, times the sigmoid of the second half (Dauphin et al. 2017).

    >>> import cygrad
    >>> cygrad.nn.functional.glu(cygrad.tensor([3., 5., 0., 1e4]))
    tensor([1.5000, 5.0000])
    """
    if not input.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    d = normalized_dim(dim, input.ndim)
    if input.shape[d] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {d} is size {input.shape[d]}")
    return _gated(*checked_operand(nn_functional_glu, input).split(max(input.shape[d] // 2, 1), d)) if input.shape[d] else input.clone()


@rounded_once
def _gated(first: Tensor, second: Tensor) -> Tensor:
    return first * second.sigmoid()


@operator
def positive(input: Tensor) -> Tensor:
    """The tensor itself; RuntimeError for bools.

    >>> import cygrad
    >>> cygrad.positive(cygrad.tensor([-1.]))
    tensor([-1.])
    """
    if input.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported. Use it as it is, or convert it, e.g. with .int().")
    return input


@operator(dx=lambda g, y: g / (3 * y.square()), batch=same, refuses={"c": NO_LOOP})
def _cube_root(x: Tensor) -> Tensor:
    return recorded(_cube_root, (x,), computed(np.asarray(np.cbrt(to_array(checked_operand(_cube_root, x))))))


@operator(method=False, forms=True)
def rsub(input: Tensor, other: Operand, *, alpha: Number = 1) -> Tensor:
    """`other` less a multiple of `input`, `other - alpha * input`.

    >>> import cygrad
    >>> cygrad.rsub(cygrad.tensor([1., 2.]), 3)
    tensor([2., 1.])
    """
    return rows["sub"](other, input) if alpha == 1 else rows["sub_scaled"](other, input, alpha)
