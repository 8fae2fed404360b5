"""Functions beside the gamma function: incomplete ones, of Hurwitz and of Euler; SciPy computes those that say so."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING

from cygrad._core.compute.dispatch import ops as rows
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.of_numbers import along_elements, by_elements, by_scipy, by_steps, of_numbers, undifferentiable
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Operand


# ----- Incomplete gamma functions -----
def _igamma_by_other(g: Tensor, input: Tensor, other: Tensor) -> Tensor:
    return g * _igamma_slope(input, other)


@operator(dinput=undifferentiable("igamma: input"), dother=_igamma_by_other, tangent=along_elements, batch=by_elements,
          node="IgammaBackward0", aliases=("special_gammainc",), in_place=True, refuses={"biu": NO_LOOP})
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Regularized lower incomplete gamma function of order `input`, up to `other` (DLMF 8.2.4).

    The integral of t ** (input - 1) * exp(-t) from 0 to `other`, over gamma(input). NaN where one is negative, where both are 0, and
    where both are infinite. Series and continued fraction (DLMF 8.11.4, 8.9.2), of large orders Temme's expansion (DLMF 8.12).
    Differentiable by `other`, as in torch.

    >>> import cygrad
    >>> cygrad.igamma(cygrad.tensor([1., 2.]), cygrad.tensor([1., 1.]))
    tensor([0.6321, 0.2642])
    """
    return of_numbers(igamma, (input, other), by_steps("lower_gamma"), out)


def _igammac_by_other(g: Tensor, input: Tensor, other: Tensor) -> Tensor:
    return -g * _igamma_slope(input, other)


@operator(dinput=undifferentiable("igammac: input"), dother=_igammac_by_other, tangent=along_elements, batch=by_elements,
          node="IgammacBackward0", aliases=("special_gammaincc",), in_place=True, refuses={"biu": NO_LOOP})
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Regularized upper incomplete gamma function, 1 - igamma(input, other), accurate where it is tiny (DLMF 8.2.4).

    >>> import cygrad
    >>> cygrad.igammac(cygrad.tensor([1., 2.]), cygrad.tensor([1., 1.]))
    tensor([0.3679, 0.7358])
    """
    return of_numbers(igammac, (input, other), by_steps("upper_gamma"), out)


def _slope_by_other(g: Tensor, input: Tensor, other: Tensor) -> Tensor:
    """Return g times (input - 1) / other - 1, whose quotient is 0 where `input` is 1, at the end 0 too."""
    is_one = input == 1
    return g * (((input - 1) / other.masked_fill(is_one, 1)) - 1) * _igamma_slope(input, other)


@operator(dinput=undifferentiable("igamma: input"), dother=_slope_by_other, tangent=along_elements, batch=by_elements, function=False,
          method=False)
def _igamma_slope(input: Tensor, other: Tensor) -> Tensor:
    """Derivative of igamma by `other`: other ** (input - 1) * exp(-other) / gamma(input)."""
    return of_numbers(_igamma_slope, (input, other), by_steps("lower_gamma_slope"))


# ----- Zeta -----
def _zeta_by_other(g: Tensor, input: Tensor, other: Tensor) -> Tensor:
    return g * -input * special_zeta(input + 1, other)


@operator(dinput=undifferentiable("zeta"), dother=_zeta_by_other, tangent=along_elements, batch=by_elements, node="SpecialZetaBackward0",
          loop="zeta_cpu", forms=True)
def special_zeta(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz's zeta function: the sum of (other + k) ** -input for k = 0, 1, 2, ... (DLMF 25.11.1).

    By the sum of Euler and Maclaurin. Infinite where `input` is 1 and at the poles `other` = 0, -1, -2, ...; NaN where `input` is less than
    1, and left of 0 where it is no whole number. Differentiable by `other`, as in torch.

    >>> import cygrad
    >>> cygrad.special.zeta(cygrad.tensor([2., 4.]), 1)
    tensor([1.6449, 1.0823])
    """
    return of_numbers(special_zeta, (input, other), by_steps("zeta"), out)


# ----- Euler's functions, by SciPy -----
@operator(dinput=lambda g, y, input: g * y * input.digamma(), tangent=along_elements, batch=by_elements)
def special_gamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The gamma function (DLMF 5.2.1), as `scipy.special.gamma`; see `lgamma` for its logarithm.

    >>> import cygrad
    >>> cygrad.special.gamma(cygrad.tensor([0.5, 5.]))
    tensor([ 1.7725, 24.0000])
    """
    return of_numbers(special_gamma, (input,), by_scipy(special_gamma, "gamma"), out)


def _slope_of_rgamma(g: Tensor, input: Tensor) -> Tensor:
    """Right of 1/2 -digamma / gamma; left of it by reflection (DLMF 5.5.3), where both are infinite at poles."""
    left = input < 0.5
    right, mirrored = input.masked_fill(left, 1), 1 - input.masked_fill(~left, 0)
    turns = pi * input.masked_fill(~left, 0).remainder(2)
    slope = special_gamma(mirrored) * (turns.cos() - mirrored.digamma() * turns.sin() / pi)
    return g * slope.where(left, -special_rgamma(right) * right.digamma())


@operator(dinput=_slope_of_rgamma, tangent=along_elements, batch=by_elements)
def special_rgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """One over the gamma function, 0 at its poles, as `scipy.special.rgamma`.

    >>> import cygrad
    >>> cygrad.special.rgamma(cygrad.tensor([-1., 0.5, 5.]))
    tensor([0.0000, 0.5642, 0.0417])
    """
    return of_numbers(special_rgamma, (input,), by_scipy(special_rgamma, "rgamma"), out)


@operator(dinput=lambda g, input: g * 0, tangent=along_elements, batch=by_elements)
def special_gammasgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sign of the gamma function, as `scipy.special.gammasgn`; gamma is gammasgn * exp(gammaln).

    >>> import cygrad
    >>> cygrad.special.gammasgn(cygrad.tensor([-1.5, -0.5, 0.5]))
    tensor([ 1., -1.,  1.])
    """
    return of_numbers(special_gammasgn, (input,), by_scipy(special_gammasgn, "gammasgn"), out)


@operator(da=lambda g, a, b, y: g * y * (a.digamma() - (a + b).digamma()), db=lambda g, a, b, y: g * y * (b.digamma() - (a + b).digamma()),
          tangent=along_elements, batch=by_elements)
def special_beta(a: Operand, b: Operand, *, out: Tensor | None = None) -> Tensor:
    """The beta function, gamma(a) gamma(b) / gamma(a + b) (DLMF 5.12.1), as `scipy.special.beta`.

    >>> import cygrad
    >>> cygrad.special.beta(cygrad.tensor([1., 2.]), 3)
    tensor([0.3333, 0.0833])
    """
    return of_numbers(special_beta, (a, b), by_scipy(special_beta, "beta"), out)


@operator(da=lambda g, a, b: g * (a.digamma() - (a + b).digamma()), db=lambda g, a, b: g * (b.digamma() - (a + b).digamma()),
          tangent=along_elements, batch=by_elements)
def special_betaln(a: Operand, b: Operand, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the absolute value of the beta function, as `scipy.special.betaln`.

    >>> import cygrad
    >>> cygrad.special.betaln(cygrad.tensor([1., 2.]), 3)
    tensor([-1.0986, -2.4849])
    """
    return of_numbers(special_betaln, (a, b), by_scipy(special_betaln, "betaln"), out)


def _betainc_by_x(g: Tensor, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    return g * (rows['xlogy'](a - 1, x) + rows['xlog1py'](b - 1, -x) - special_betaln(a, b)).exp()


@operator(da=undifferentiable("betainc: a"), db=undifferentiable("betainc: b"), dx=_betainc_by_x, tangent=along_elements,
          batch=by_elements)
def special_betainc(a: Operand, b: Operand, x: Operand, *, out: Tensor | None = None) -> Tensor:
    """Regularized incomplete beta function of 0 <= x <= 1 (DLMF 8.17.2), as `scipy.special.betainc`; differentiable by `x`.

    >>> import cygrad
    >>> cygrad.special.betainc(2, 3, cygrad.tensor([0.2, 0.5]))
    tensor([0.1808, 0.6875])
    """
    return of_numbers(special_betainc, (a, b, x), by_scipy(special_betainc, "betainc"), out)


# ----- Error function -----
@operator(dinput=lambda g, y: g * (-sqrt(pi) / 2) * (y * y).exp(), tangent=along_elements, batch=by_elements)
def special_erfcinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inverse of erfc, accurate for tiny numbers, as `scipy.special.erfcinv`.

    >>> import cygrad
    >>> cygrad.special.erfcinv(cygrad.tensor([0.5, 1e-30]))
    tensor([0.4769, 8.1486])
    """
    return of_numbers(special_erfcinv, (input,), by_scipy(special_erfcinv, "erfcinv"), out)
