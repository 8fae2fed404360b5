"""Gamma numbers, drawn as differentiable functions of their concentration.

F is the distribution function and p the density of the gamma distribution with concentration a. A number x that is drawn at a stays at
the same F as a grows, so dx/da = -(dF/da) / p (Figurnov, Mohamed and Mnih 2018, Implicit reparameterization gradients). `gamma_slope`
computes that by two methods, each without cancellation where it is used:

- x < 8: with Kummer's series of F (DLMF 8.7.1), dx/da = sum over n of t_n (psi(a + 1) - ln x + 1 / (a + 1) + ... + 1 / (a + n)),
  t_n = x^(n + 1) / (a (a + 1) ... (a + n));
- x >= 8: dF/da is an integral of (ln t - psi(a)) p(t) over t < x, or minus the one over t > x. On the side away from the mode p
  falls from x on, t = x exp(-s) or x exp(s), and Gauss and Legendre's rule over s up to exp(-40) has 1e-12.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.operands.arrays import computed, to_array
from cygrad.autograd.function import Function
from cygrad.data.limits import finfo
from cygrad.data.sampling import checked_template, drawn_for
from cygrad.generator import stream_of
from cygrad.operators.joining import stack
from cygrad.operators.shapes import broadcast_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.generator import Generator, Rng
    from cygrad.tensor import Tensor

SERIES_END, TERMS = 8.0, 64     # t_64 at 8 is below 1e-30 of the largest term
NODES, DECAY = 48, 40.0
NORMAL_FROM = 1e8               # from this concentration on, two terms of the expansion by Cornish and Fisher have 1e-12
BLOCK = 1 << 12                 # numbers at a time, so that the nodes of all stay in the cache


# ----- Derivatives -----
def _digamma(a: np.ndarray) -> np.ndarray:
    """Return psi(a) for a > 0: the recurrence up to 10, from there the asymptotic series (DLMF 5.11.2)."""
    a, shift = a.copy(), np.zeros_like(a)
    for _ in range(10):
        small = a < 10
        shift[small] -= 1 / a[small]
        a[small] += 1
    square = 1 / (a * a)
    tail = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square * (1 / 132 - square * 691 / 32760)))))
    return shift + np.log(a) - 0.5 / a - tail


def _by_series(logarithm: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return d ln x / da for x < 8."""
    x, bracket = np.exp(logarithm), _digamma(a + 1) - logarithm
    term, total = 1 / a, np.zeros_like(a)
    for n in range(1, TERMS):
        total += term * bracket
        term = term * x / (a + n)
        bracket = bracket + 1 / (a + n)
    return total


@cache
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights over 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


def _by_integral(logarithm: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return d ln x / da for x >= 8."""
    x = np.exp(logarithm)
    side = np.where(x > a, 1.0, -1.0)
    fall = np.abs(x - a)        # of the exponent at s = 0, and x exp(side s) is its second derivative
    end = 2 * DECAY / (fall + np.sqrt(fall * fall + 2 * DECAY * x))
    for _ in range(8):          # Newton's method, of a convex or concave function: to the place where the exponent is -40
        rise = np.expm1(side * end)
        end += (DECAY - x * (rise - side * end) - fall * end) / np.maximum(x * side * rise + fall, 1e-300)
    nodes, weights = _rule()
    s = end[:, None] * nodes
    exponent = -x[:, None] * (np.expm1(side[:, None] * s) - side[:, None] * s) - fall[:, None] * s
    integrand = np.exp(exponent) * ((logarithm - _digamma(a))[:, None] + side[:, None] * s)
    return side * end * (integrand @ weights)


def gamma_slope(logarithm: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return d ln x / da from the logarithms of gamma numbers x and their concentrations, which broadcast."""
    logarithm, a = np.broadcast_arrays(logarithm, a)
    shape = a.shape
    logarithm, a = logarithm.astype(np.float64).ravel(), a.astype(np.float64).ravel()
    result = np.empty_like(a)
    for start in range(0, a.size, BLOCK):
        block = slice(start, start + BLOCK)
        y, concentration, slopes = logarithm[block], a[block], result[block]
        normal = concentration >= NORMAL_FROM
        few = (y < np.log(SERIES_END)) & ~normal
        many = ~few & ~normal
        slopes[few] = _by_series(y[few], concentration[few])
        slopes[many] = _by_integral(y[many], concentration[many])
        x, large = np.exp(y[normal]), concentration[normal]
        deviation = (x - large) / large
        slopes[normal] = (1 + deviation / 2 + 1 / (6 * large) - deviation * deviation / 6) / x
    return result.reshape(shape)


class _Elementwise(Function):
    """A function of a concentration, a number that was drawn by it, and whether that is a logarithm."""

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, *arguments: Any) -> Any:
        """Apply the function to all examples, whose dim is put in front; a tensor without one broadcasts."""
        *tensors, is_logarithm = (argument if dim is None else argument.movedim(dim, 0)
                                  for argument, dim in zip(arguments, in_dims, strict=True))
        return cls.apply(*tensors, is_logarithm), 0


class _Slope(_Elementwise):
    """The derivative of the number by the concentration; it has none itself."""

    @staticmethod
    def forward(concentration: Tensor, draw: Tensor, is_logarithm: bool) -> Tensor:
        numbers, a = to_array(draw), to_array(concentration)
        slopes = gamma_slope(numbers, a) if is_logarithm else gamma_slope(np.log(numbers), a) * numbers
        return computed(slopes).to(draw.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented: a gamma number has first derivatives only")

    jvp = backward


class _Number(_Elementwise):
    """The number, as a function of the concentration."""

    @staticmethod
    def forward(concentration: Tensor, draw: Tensor, is_logarithm: bool) -> Tensor:
        return draw.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        concentration, draw, ctx.is_logarithm = inputs
        ctx.save_for_backward(concentration, draw)
        ctx.save_for_forward(concentration, draw)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * _Slope.apply(*ctx.saved_tensors, ctx.is_logarithm), None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return tangents[0] * _Slope.apply(*ctx.saved_tensors, ctx.is_logarithm)


# ----- Draws -----
def _number(function: str, concentration: Tensor, draw: Callable[[np.ndarray], np.ndarray], is_logarithm: bool) -> Tensor:
    def checked(a: np.ndarray) -> np.ndarray:
        outside = ~((a > 0) & (a < np.inf))
        if outside.any():
            raise RuntimeError(f"{function} expects all elements of concentration > 0.0 and finite, but found {a[outside][0]}")
        return draw(a)

    return _Number.apply(concentration, drawn_for(checked, concentration), is_logarithm)


def gamma_number(function: str, concentration: Tensor, stream: np.random.Generator) -> Tensor:
    """Return gamma numbers, the smallest normal number of the dtype where they are below it; errors name the function."""
    smallest = finfo(concentration.dtype).tiny
    return _number(function, concentration, lambda a: np.maximum(stream.standard_gamma(a.astype(np.float64)), smallest), False)


def gamma_logarithm(function: str, concentration: Tensor, stream: np.random.Generator) -> Tensor:
    """Return logarithms of gamma numbers, which have no smallest: x(a) is x(a + 1) u^(1 / a), with u uniform in 0 to 1."""
    def draw(a: np.ndarray) -> np.ndarray:
        return np.log(stream.standard_gamma(a + 1)) - stream.standard_exponential(a.shape) / a

    return _number(function, concentration, draw, True)


# ----- Functions of cygrad.random -----
def standard_gamma(concentration: Tensor, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Return numbers drawn from gamma distributions of scale 1, one for each concentration, differentiable with respect to these.

    The gradient is the implicit one: how a number moves with its concentration, at the same value of the distribution function.
    There is no second derivative. The result has the shape and dtype of `concentration`, and is at least the
    smallest normal number; multiply it by a scale, divide it by a rate.

    Raises:
        RuntimeError: a concentration that is not above 0 or not finite.
        NotImplementedError: a dtype that is not floating-point; the second derivative.

    Example:
        >>> import cygrad
        >>> concentration = cygrad.full((20000,), 3.0, requires_grad=True)
        >>> cygrad.random.standard_gamma(concentration, rng=0).mean().backward()
        >>> abs(concentration.grad.sum().item() - 1) < 0.01     # the mean is the concentration
        True
    """
    return gamma_number("standard_gamma", _concentration("standard_gamma", concentration), stream_of(generator, rng))


def beta(concentration1: Tensor, concentration0: Tensor, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Return numbers drawn from beta distributions with density x^(concentration1 - 1) (1 - x)^(concentration0 - 1), differentiable.

    Both broadcast; gradients and errors are as in `standard_gamma`.

    Example:
        >>> import cygrad
        >>> x = cygrad.random.beta(cygrad.full((10000,), 2.0), cygrad.tensor(6.0), rng=0)
        >>> abs(x.mean().item() - 0.25) < 0.01
        True
    """
    both = [_concentration("beta", each) for each in (concentration1, concentration0)]
    return _dirichlet("beta", stack(broadcast_tensors(*both), -1), stream_of(generator, rng))[..., 0]


def dirichlet(concentration: Tensor, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Return numbers drawn from Dirichlet distributions with the concentrations of the last dim, which sum to 1 there; differentiable.

    They are gamma numbers over their sum, computed from logarithms, so that small concentrations are exact, too. For several draws
    expand the concentrations. Gradients and errors are as in `standard_gamma`.

    Example:
        >>> import cygrad
        >>> x = cygrad.random.dirichlet(cygrad.tensor([1.0, 3.0]).expand(10000, 2), rng=0)
        >>> (x.mean(0) - cygrad.tensor([0.25, 0.75])).abs().max().item() < 0.01
        True
    """
    return _dirichlet("dirichlet", _concentration("dirichlet", concentration), stream_of(generator, rng))


def _dirichlet(function: str, concentration: Tensor, stream: np.random.Generator) -> Tensor:
    return gamma_logarithm(function, concentration.double(), stream).softmax(-1).to(concentration.dtype)


def _concentration(function: str, value: Any) -> Tensor:
    checked_template(value, "concentration")
    if not value.is_floating_point():
        raise NotImplementedError(f"\"{function}\" not implemented for '{value.dtype.name}': expected a floating-point dtype")
    return value
