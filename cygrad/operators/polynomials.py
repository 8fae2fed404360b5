"""Orthogonal polynomials, whose degree is data: numbers or a tensor, cut to whole ones; polynomials of a negative degree are 0.

They are computed by their recurrences of three terms, Chebyshev's from degree 64 on by trigonometric functions. Derivatives are polynomials
of other families, whose own derivatives are of the same (DLMF 18.9.19, 18.9.23); there is none by the degree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators._language.of_numbers import along_elements, by_elements, by_steps, of_numbers, undifferentiable

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Operand


# ----- Families of derivatives -----
def _gegenbauer_by_input(g: Tensor, input: Tensor, n: Tensor, order: float) -> Tensor:
    return g * 2 * order * _gegenbauer(input, n.trunc() - 1, order + 1)


@operator(dinput=_gegenbauer_by_input, dn=undifferentiable("gegenbauer: n"), tangent=along_elements, batch=by_elements, function=False,
          method=False)
def _gegenbauer(input: Tensor, n: Tensor, order: float) -> Tensor:
    """Gegenbauer's polynomials of a positive order, which are Legendre's for 1/2, and Chebyshev's of the second kind for 1."""
    return of_numbers(_gegenbauer, (input, n), by_steps("gegenbauer", order), order=order)


def _laguerre_by_input(g: Tensor, input: Tensor, n: Tensor, order: float) -> Tensor:
    return -g * _laguerre(input, n.trunc() - 1, order + 1)


@operator(dinput=_laguerre_by_input, dn=undifferentiable("laguerre: n"), tangent=along_elements, batch=by_elements, function=False,
          method=False)
def _laguerre(input: Tensor, n: Tensor, order: float) -> Tensor:
    """Laguerre's generalized polynomials, which are his own for order 0."""
    return of_numbers(_laguerre, (input, n), by_steps("laguerre", order), order=order)


# ----- Chebyshev's -----
def _slope_of_t(input: Tensor, n: Tensor) -> Tensor:
    degree = n.trunc()
    return degree * special_chebyshev_polynomial_u(input, degree - 1)


def _slope_of_u(input: Tensor, n: Tensor) -> Tensor:
    return 2 * _gegenbauer(input, n.trunc() - 1, 2)


@rounded_once
def _slope_of_v(input: Tensor, n: Tensor) -> Tensor:
    return 2 * (_gegenbauer(input, n.trunc() - 1, 2) - _gegenbauer(input, n.trunc() - 2, 2))


@rounded_once
def _slope_of_w(input: Tensor, n: Tensor) -> Tensor:
    return 2 * (_gegenbauer(input, n.trunc() - 1, 2) + _gegenbauer(input, n.trunc() - 2, 2))


def _shifted_slope(slope: Any) -> Any:
    return rounded_once(lambda input, n: 2 * slope(2 * input - 1, n))


def _shifted(name: str) -> Any:
    compute = by_steps(name)
    return lambda x, n: compute(2 * x - 1, n)


@operator(dinput=lambda g, input, n: g * _slope_of_t(input, n), dn=undifferentiable("chebyshev_polynomial_t: n"),
          tangent=along_elements, batch=by_elements,
          loop="chebyshev_polynomial_t_cpu", forms=True)
def special_chebyshev_polynomial_t(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomials of the first kind, of degree `n`: cos(n t) for x = cos(t) (DLMF 18.5.1).

    >>> import cygrad
    >>> cygrad.special.chebyshev_polynomial_t(cygrad.tensor([0.25, 1.5]), 3)
    tensor([-0.6875,  9.0000])
    """
    return of_numbers(special_chebyshev_polynomial_t, (input, n), by_steps("chebyshev_t"), out)


@operator(dinput=lambda g, input, n: g * _slope_of_u(input, n), dn=undifferentiable("chebyshev_polynomial_u: n"),
          tangent=along_elements, batch=by_elements,
          loop="chebyshev_polynomial_u_cpu", forms=True)
def special_chebyshev_polynomial_u(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomials of the second kind, of degree `n`: sin((n + 1) t) / sin(t) for x = cos(t) (DLMF 18.5.2).

    >>> import cygrad
    >>> cygrad.special.chebyshev_polynomial_u(cygrad.tensor([0.25, 1.5]), 3)
    tensor([-0.8750, 21.0000])
    """
    return of_numbers(special_chebyshev_polynomial_u, (input, n), by_steps("chebyshev_u"), out)


@operator(dinput=lambda g, input, n: g * _slope_of_v(input, n), dn=undifferentiable("chebyshev_polynomial_v: n"),
          tangent=along_elements, batch=by_elements,
          loop="chebyshev_polynomial_v_cpu", forms=True)
def special_chebyshev_polynomial_v(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomials of the third kind, of degree `n`: cos((n + 1/2) t) / cos(t / 2) (DLMF 18.5).

    >>> import cygrad
    >>> cygrad.special.chebyshev_polynomial_v(cygrad.tensor([0.25, 1.5]), 3)
    tensor([-0.1250, 13.0000])
    """
    return of_numbers(special_chebyshev_polynomial_v, (input, n), by_steps("chebyshev_v"), out)


@operator(dinput=lambda g, input, n: g * _slope_of_w(input, n), dn=undifferentiable("chebyshev_polynomial_w: n"),
          tangent=along_elements, batch=by_elements,
          loop="chebyshev_polynomial_w_cpu", forms=True)
def special_chebyshev_polynomial_w(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomials of the fourth kind, of degree `n`: sin((n + 1/2) t) / sin(t / 2) (DLMF 18.5).

    >>> import cygrad
    >>> cygrad.special.chebyshev_polynomial_w(cygrad.tensor([0.25, 1.5]), 3)
    tensor([-1.6250, 29.0000])
    """
    return of_numbers(special_chebyshev_polynomial_w, (input, n), by_steps("chebyshev_w"), out)


_shifted_slope_of_t = _shifted_slope(_slope_of_t)


@operator(dinput=lambda g, input, n: g * _shifted_slope_of_t(input, n), dn=undifferentiable("shifted_chebyshev_polynomial_t: n"),
          tangent=along_elements, batch=by_elements,
          loop="shifted_chebyshev_polynomial_t_cpu", forms=True)
def special_shifted_chebyshev_polynomial_t(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomials of the first kind of 2 * input - 1, of degree `n`.

    >>> import cygrad
    >>> cygrad.special.shifted_chebyshev_polynomial_t(cygrad.tensor([0.25, 1.5]), 3)
    tensor([ 1., 26.])
    """
    return of_numbers(special_shifted_chebyshev_polynomial_t, (input, n), _shifted("chebyshev_t"), out)


_shifted_slope_of_u = _shifted_slope(_slope_of_u)


@operator(dinput=lambda g, input, n: g * _shifted_slope_of_u(input, n), dn=undifferentiable("shifted_chebyshev_polynomial_u: n"),
          tangent=along_elements, batch=by_elements,
          loop="shifted_chebyshev_polynomial_u_cpu", forms=True)
def special_shifted_chebyshev_polynomial_u(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomials of the second kind of 2 * input - 1, of degree `n`.

    >>> import cygrad
    >>> cygrad.special.shifted_chebyshev_polynomial_u(cygrad.tensor([0.25, 1.5]), 3)
    tensor([ 1., 56.])
    """
    return of_numbers(special_shifted_chebyshev_polynomial_u, (input, n), _shifted("chebyshev_u"), out)


_shifted_slope_of_v = _shifted_slope(_slope_of_v)


@operator(dinput=lambda g, input, n: g * _shifted_slope_of_v(input, n), dn=undifferentiable("shifted_chebyshev_polynomial_v: n"),
          tangent=along_elements, batch=by_elements,
          loop="shifted_chebyshev_polynomial_v_cpu", forms=True)
def special_shifted_chebyshev_polynomial_v(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomials of the third kind of 2 * input - 1, of degree `n`.

    >>> import cygrad
    >>> cygrad.special.shifted_chebyshev_polynomial_v(cygrad.tensor([0.25, 1.5]), 3)
    tensor([ 1., 41.])
    """
    return of_numbers(special_shifted_chebyshev_polynomial_v, (input, n), _shifted("chebyshev_v"), out)


_shifted_slope_of_w = _shifted_slope(_slope_of_w)


@operator(dinput=lambda g, input, n: g * _shifted_slope_of_w(input, n), dn=undifferentiable("shifted_chebyshev_polynomial_w: n"),
          tangent=along_elements, batch=by_elements,
          loop="shifted_chebyshev_polynomial_w_cpu", forms=True)
def special_shifted_chebyshev_polynomial_w(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomials of the fourth kind of 2 * input - 1, of degree `n`.

    >>> import cygrad
    >>> cygrad.special.shifted_chebyshev_polynomial_w(cygrad.tensor([0.25, 1.5]), 3)
    tensor([ 1., 71.])
    """
    return of_numbers(special_shifted_chebyshev_polynomial_w, (input, n), _shifted("chebyshev_w"), out)


# ----- Hermite's, Laguerre's and Legendre's -----

def _hermite_polynomial_h_by_input(g: Tensor, input: Tensor, n: Tensor) -> Tensor:
    return g * 2 * n.trunc() * special_hermite_polynomial_h(input, n.trunc() - 1)


@operator(dinput=_hermite_polynomial_h_by_input, dn=undifferentiable("hermite_polynomial_h: n"), tangent=along_elements,
          batch=by_elements, loop="hermite_polynomial_h_cpu", forms=True)
def special_hermite_polynomial_h(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Hermite's polynomials of physicists, of degree `n`, orthogonal beside exp(-x * x) (DLMF 18.3); NaN beyond degree 2 ** 20.

    >>> import cygrad
    >>> cygrad.special.hermite_polynomial_h(cygrad.tensor([0.25, 1.5]), 3)
    tensor([-2.8750,  9.0000])
    """
    return of_numbers(special_hermite_polynomial_h, (input, n), by_steps("hermite_h"), out)


def _hermite_polynomial_he_by_input(g: Tensor, input: Tensor, n: Tensor) -> Tensor:
    return g * n.trunc() * special_hermite_polynomial_he(input, n.trunc() - 1)


@operator(dinput=_hermite_polynomial_he_by_input, dn=undifferentiable("hermite_polynomial_he: n"), tangent=along_elements,
          batch=by_elements, loop="hermite_polynomial_he_cpu", forms=True)
def special_hermite_polynomial_he(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Hermite's polynomials of probability, of degree `n`, orthogonal beside exp(-x * x / 2) (DLMF 18.3); NaN beyond degree 2 ** 20.

    >>> import cygrad
    >>> cygrad.special.hermite_polynomial_he(cygrad.tensor([0.25, 1.5]), 3)
    tensor([-0.7344, -1.1250])
    """
    return of_numbers(special_hermite_polynomial_he, (input, n), by_steps("hermite_he"), out)


def _laguerre_polynomial_l_by_input(g: Tensor, input: Tensor, n: Tensor) -> Tensor:
    return g * -_laguerre(input, n.trunc() - 1, 1)


@operator(dinput=_laguerre_polynomial_l_by_input, dn=undifferentiable("laguerre_polynomial_l: n"), tangent=along_elements,
          batch=by_elements, loop="laguerre_polynomial_l_cpu", forms=True)
def special_laguerre_polynomial_l(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Laguerre's polynomials, of degree `n`, orthogonal beside exp(-x) (DLMF 18.3); NaN beyond degree 2 ** 20.

    >>> import cygrad
    >>> cygrad.special.laguerre_polynomial_l(cygrad.tensor([0.25, 1.5]), 3)
    tensor([ 0.3411, -0.6875])
    """
    return of_numbers(special_laguerre_polynomial_l, (input, n), by_steps("laguerre"), out)


def _legendre_polynomial_p_by_input(g: Tensor, input: Tensor, n: Tensor) -> Tensor:
    return g * _gegenbauer(input, n.trunc() - 1, 1.5)


@operator(dinput=_legendre_polynomial_p_by_input, dn=undifferentiable("legendre_polynomial_p: n"), tangent=along_elements,
          batch=by_elements, loop="legendre_polynomial_p_cpu", forms=True)
def special_legendre_polynomial_p(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """Legendre's polynomials, of degree `n` (DLMF 18.3); NaN beyond degree 2 ** 20.

    >>> import cygrad
    >>> cygrad.special.legendre_polynomial_p(cygrad.tensor([0.25, 1.5]), 3)
    tensor([-0.3359,  6.1875])
    """
    return of_numbers(special_legendre_polynomial_p, (input, n), by_steps("gegenbauer", 0.5), out)
