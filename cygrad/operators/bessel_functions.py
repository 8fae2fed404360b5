"""Bessel functions and their kin: by SciPy, but spherical ones; i0, i1 and their scaled forms are rows of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad.operators._language.declaration import operator
from cygrad.operators._language.of_numbers import along_elements, by_elements, by_scipy, by_steps, of_numbers, undifferentiable

if TYPE_CHECKING:
    import numpy as np

    from cygrad.tensor import Tensor
    from cygrad.typing import Operand


# ----- Of whole orders -----
def _bessel_j0_by_input(g: Tensor, input: Tensor) -> Tensor:
    return -g * special_bessel_j1(input)


@operator(dinput=_bessel_j0_by_input, tangent=along_elements, batch=by_elements, aliases=("special_j0",), loop="bessel_j0_cpu")
def special_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the first kind of order 0 (DLMF 10.2.2), as `scipy.special.j0`.

    >>> import cygrad
    >>> cygrad.special.bessel_j0(cygrad.tensor([0., 1.]))
    tensor([1.0000, 0.7652])
    """
    return of_numbers(special_bessel_j0, (input,), by_scipy(special_bessel_j0, "j0"), out)


def _bessel_j1_by_input(g: Tensor, input: Tensor) -> Tensor:
    return g * (special_bessel_j0(input) - special_jv(2, input)) / 2


@operator(dinput=_bessel_j1_by_input, tangent=along_elements, batch=by_elements, aliases=("special_j1",), loop="bessel_j1_cpu")
def special_bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the first kind of order 1 (DLMF 10.2.2), as `scipy.special.j1`.

    >>> import cygrad
    >>> cygrad.special.bessel_j1(cygrad.tensor([0., 1.]))
    tensor([0.0000, 0.4401])
    """
    return of_numbers(special_bessel_j1, (input,), by_scipy(special_bessel_j1, "j1"), out)


def _bessel_y0_by_input(g: Tensor, input: Tensor) -> Tensor:
    return -g * special_bessel_y1(input)


@operator(dinput=_bessel_y0_by_input, tangent=along_elements, batch=by_elements, aliases=("special_y0",), loop="bessel_y0_cpu")
def special_bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the second kind of order 0 (DLMF 10.2.3), as `scipy.special.y0`; minus infinity at 0, NaN below.

    >>> import cygrad
    >>> cygrad.special.bessel_y0(cygrad.tensor([0., 1.]))
    tensor([  -inf, 0.0883])
    """
    return of_numbers(special_bessel_y0, (input,), by_scipy(special_bessel_y0, "y0"), out)


def _bessel_y1_by_input(g: Tensor, input: Tensor) -> Tensor:
    return g * (special_bessel_y0(input) - special_bessel_y1(input) / input)


@operator(dinput=_bessel_y1_by_input, tangent=along_elements, batch=by_elements, aliases=("special_y1",), loop="bessel_y1_cpu")
def special_bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the second kind of order 1 (DLMF 10.2.3), as `scipy.special.y1`; minus infinity at 0, NaN below.

    >>> import cygrad
    >>> cygrad.special.bessel_y1(cygrad.tensor([0., 1.]))
    tensor([   -inf, -0.7812])
    """
    return of_numbers(special_bessel_y1, (input,), by_scipy(special_bessel_y1, "y1"), out)


def _modified_bessel_k0_by_input(g: Tensor, input: Tensor) -> Tensor:
    return -g * special_modified_bessel_k1(input)


@operator(dinput=_modified_bessel_k0_by_input, tangent=along_elements, batch=by_elements, aliases=("special_k0",),
          loop="modified_bessel_k0_cpu")
def special_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 0 (DLMF 10.25.3), as `scipy.special.k0`; infinite at 0, NaN below.

    >>> import cygrad
    >>> cygrad.special.modified_bessel_k0(cygrad.tensor([0., 1.]))
    tensor([   inf, 0.4210])
    """
    return of_numbers(special_modified_bessel_k0, (input,), by_scipy(special_modified_bessel_k0, "k0"), out)


def _modified_bessel_k1_by_input(g: Tensor, input: Tensor, y: Tensor) -> Tensor:
    return -g * (special_modified_bessel_k0(input) + y / input)


@operator(dinput=_modified_bessel_k1_by_input, tangent=along_elements, batch=by_elements, aliases=("special_k1",),
          loop="modified_bessel_k1_cpu")
def special_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 1 (DLMF 10.25.3), as `scipy.special.k1`; infinite at 0, NaN below.

    >>> import cygrad
    >>> cygrad.special.modified_bessel_k1(cygrad.tensor([0., 1.]))
    tensor([   inf, 0.6019])
    """
    return of_numbers(special_modified_bessel_k1, (input,), by_scipy(special_modified_bessel_k1, "k1"), out)


def _scaled_modified_bessel_k0_by_input(g: Tensor, input: Tensor, y: Tensor) -> Tensor:
    return g * (y - special_scaled_modified_bessel_k1(input))


@operator(dinput=_scaled_modified_bessel_k0_by_input, tangent=along_elements, batch=by_elements, aliases=("special_k0e",),
          loop="scaled_modified_bessel_k0_cpu")
def special_scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """modified_bessel_k0 times exp(input), which does not underflow, as `scipy.special.k0e`.

    >>> import cygrad
    >>> cygrad.special.scaled_modified_bessel_k0(cygrad.tensor([1., 1000.]))
    tensor([1.1445, 0.0396])
    """
    return of_numbers(special_scaled_modified_bessel_k0, (input,), by_scipy(special_scaled_modified_bessel_k0, "k0e"), out)


def _scaled_modified_bessel_k1_by_input(g: Tensor, input: Tensor, y: Tensor) -> Tensor:
    return g * (y - special_scaled_modified_bessel_k0(input) - y / input)


@operator(dinput=_scaled_modified_bessel_k1_by_input, tangent=along_elements, batch=by_elements, aliases=("special_k1e",),
          loop="scaled_modified_bessel_k1_cpu")
def special_scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """modified_bessel_k1 times exp(input), which does not underflow, as `scipy.special.k1e`.

    >>> import cygrad
    >>> cygrad.special.scaled_modified_bessel_k1(cygrad.tensor([1., 1000.]))
    tensor([1.6362, 0.0396])
    """
    return of_numbers(special_scaled_modified_bessel_k1, (input,), by_scipy(special_scaled_modified_bessel_k1, "k1e"), out)


# ----- Of any order, without a derivative by it -----
def _jv_by_input(g: Tensor, v: Tensor, input: Tensor) -> Tensor:
    return g * (special_jv(v - 1, input) - special_jv(v + 1, input)) / 2


@operator(dv=undifferentiable("jv: v"), dinput=_jv_by_input, tangent=along_elements, batch=by_elements, aliases=("special_jn",))
def special_jv(v: Operand, input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the first kind of order `v` (DLMF 10.2.2), as `scipy.special.jv`; differentiable by `input`.

    >>> import cygrad
    >>> cygrad.special.jv(2, cygrad.tensor([0., 1.]))
    tensor([0.0000, 0.1149])
    """
    return of_numbers(special_jv, (v, input), by_scipy(special_jv, "jv"), out)


def _yv_by_input(g: Tensor, v: Tensor, input: Tensor) -> Tensor:
    return g * (special_yv(v - 1, input) - special_yv(v + 1, input)) / 2


@operator(dv=undifferentiable("yv: v"), dinput=_yv_by_input, tangent=along_elements, batch=by_elements, aliases=("special_yn",))
def special_yv(v: Operand, input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the second kind of order `v` (DLMF 10.2.3), as `scipy.special.yv`; differentiable by `input`.

    >>> import cygrad
    >>> cygrad.special.yv(2, cygrad.tensor([0., 1.]))
    tensor([   -inf, -1.6507])
    """
    return of_numbers(special_yv, (v, input), by_scipy(special_yv, "yv"), out)


def _iv_by_input(g: Tensor, v: Tensor, input: Tensor) -> Tensor:
    return g * (special_iv(v - 1, input) + special_iv(v + 1, input)) / 2


@operator(dv=undifferentiable("iv: v"), dinput=_iv_by_input, tangent=along_elements, batch=by_elements)
def special_iv(v: Operand, input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order `v` (DLMF 10.25.2), as `scipy.special.iv`; differentiable by `input`.

    >>> import cygrad
    >>> cygrad.special.iv(2, cygrad.tensor([0., 1.]))
    tensor([0.0000, 0.1357])
    """
    return of_numbers(special_iv, (v, input), by_scipy(special_iv, "iv"), out)


def _ive_by_input(g: Tensor, v: Tensor, input: Tensor, y: Tensor) -> Tensor:
    return g * ((special_ive(v - 1, input) + special_ive(v + 1, input)) / 2 - input.sign() * y)


@operator(dv=undifferentiable("ive: v"), dinput=_ive_by_input, tangent=along_elements, batch=by_elements)
def special_ive(v: Operand, input: Operand, *, out: Tensor | None = None) -> Tensor:
    """iv times exp(-|input|), which does not overflow, as `scipy.special.ive`; differentiable by `input`.

    >>> import cygrad
    >>> cygrad.special.ive(2, cygrad.tensor([1., 1000.]))
    tensor([0.0499, 0.0126])
    """
    return of_numbers(special_ive, (v, input), by_scipy(special_ive, "ive"), out)


def _kv_by_input(g: Tensor, v: Tensor, input: Tensor) -> Tensor:
    return g * (special_kv(v - 1, input) + special_kv(v + 1, input)) / -2


@operator(dv=undifferentiable("kv: v"), dinput=_kv_by_input, tangent=along_elements, batch=by_elements, aliases=("special_kn",))
def special_kv(v: Operand, input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order `v` (DLMF 10.25.3), as `scipy.special.kv`; differentiable by `input`.

    >>> import cygrad
    >>> cygrad.special.kv(2, cygrad.tensor([0., 1.]))
    tensor([   inf, 1.6248])
    """
    return of_numbers(special_kv, (v, input), by_scipy(special_kv, "kv"), out)


# ----- Airy's function -----
def _airy(part: int) -> Any:
    """Return the function of arrays that is one of Ai and its derivative."""
    airy = by_scipy(special_airy_ai, "airy")

    def compute(x: np.ndarray) -> np.ndarray:
        result: np.ndarray = airy(x)[part]
        return result

    return compute


def _airy_ai_by_input(g: Tensor, input: Tensor) -> Tensor:
    return g * _airy_ai_slope(input)


@operator(dinput=_airy_ai_by_input, tangent=along_elements, batch=by_elements, loop="airy_ai_cpu")
def special_airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Airy's function Ai (DLMF 9.2.2), the first of `scipy.special.airy`.

    >>> import cygrad
    >>> cygrad.special.airy_ai(cygrad.tensor([-1., 0., 1.]))
    tensor([0.5356, 0.3550, 0.1353])
    """
    return of_numbers(special_airy_ai, (input,), _airy(0), out)


def _airy_ai_slope_by_input(g: Tensor, input: Tensor) -> Tensor:
    return g * input * special_airy_ai(input)


@operator(dinput=_airy_ai_slope_by_input, tangent=along_elements, batch=by_elements, function=False, method=False)
def _airy_ai_slope(input: Tensor) -> Tensor:
    """Derivative of Airy's function, whose own derivative is the function times its argument."""
    return of_numbers(_airy_ai_slope, (input,), _airy(1))


# ----- Spherical -----
def _slope_of_order(g: Tensor, input: Tensor, order: int) -> Tensor:
    above = g * _spherical_bessel(input, order + 1)
    return (order * g * _spherical_bessel(input, order - 1) - (order + 1) * above) / (2 * order + 1) if order else -above


@operator(dinput=_slope_of_order, tangent=along_elements, batch=by_elements, function=False, method=False)
def _spherical_bessel(input: Tensor, order: int) -> Tensor:
    """Of a whole order (DLMF 10.47.3); its derivative has the orders beside it (DLMF 10.51.2)."""
    return of_numbers(_spherical_bessel, (input,), by_steps("spherical_bessel", order), order=order)


def _spherical_bessel_j0_by_input(g: Tensor, input: Tensor) -> Tensor:
    return -g * _spherical_bessel(input, 1)


@operator(dinput=_spherical_bessel_j0_by_input, tangent=along_elements, batch=by_elements, loop="spherical_bessel_j0_cpu")
def special_spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Spherical Bessel function of the first kind of order 0, sin(x) / x (DLMF 10.49.3).

    >>> import cygrad
    >>> cygrad.special.spherical_bessel_j0(cygrad.tensor([0., 1.]))
    tensor([1.0000, 0.8415])
    """
    return of_numbers(special_spherical_bessel_j0, (input,), by_steps("spherical_bessel"), out)
