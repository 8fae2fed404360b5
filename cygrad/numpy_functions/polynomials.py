"""Polynomials, as vectors of coefficients, the highest power first."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.memory.storage import dtype_by_name
from cygrad.data.creation import arange
from cygrad.data.limits import promote_types
from cygrad.numpy_functions import matrices
from cygrad.numpy_functions.ranges import vander
from cygrad.numpy_functions.reductions import precise
from cygrad.numpy_functions.rows import operand, promoted, row
from cygrad.numpy_functions.samples import convolve
from cygrad.operators import joining

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def coefficients(*polynomials: Any) -> list[Tensor]:
    return [each.reshape(1) if not each.ndim else each for each in promoted(*polynomials)]


def without_zeros(p: Tensor) -> Tensor:
    """Return coefficients from the highest one on that is not 0, at least the last one."""
    places = p.detach().nonzero(as_tuple=True)[0]
    return p[int(places[0]):] if len(places) else p.new_zeros(1)


# ----- Values -----
@row(np.polyval)
def polyval(p: Any, x: Any) -> Tensor:
    p, x = promoted(p, x)
    y = x.new_zeros(x.shape)
    for coefficient in p.unbind(0):
        y = y * x + coefficient
    return y


# ----- Arithmetic -----
def _aligned(a1: Any, a2: Any) -> list[Tensor]:
    both = coefficients(a1, a2)
    length = max(len(p) for p in both)
    return [joining.cat([p.new_zeros(length - len(p)), p]) for p in both]


@row(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Tensor:
    a1, a2 = _aligned(a1, a2)
    return a1 + a2


@row(np.polysub)
def polysub(a1: Any, a2: Any) -> Tensor:
    a1, a2 = _aligned(a1, a2)
    return a1 - a2


@row(np.polymul)
def polymul(a1: Any, a2: Any) -> Tensor:
    return convolve(*map(without_zeros, coefficients(a1, a2)))


@row(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """The quotient and the remainder, by long division; leading coefficients of the remainder that are close to 0 are left out."""
    rest, v = (precise(each, None) for each in coefficients(u, v))
    count = len(rest) - len(v) + 1
    scale = 1 / v[0]
    quotient: list[Tensor] = []
    for _ in range(count):
        factor = scale * rest[len(quotient)]
        begin = len(quotient)
        product = joining.cat([rest.new_zeros(begin), factor * v, rest.new_zeros(len(rest) - begin - len(v))])
        quotient.append(factor)
        rest = rest - product
    values = rest.detach().abs().tolist()
    first = 0
    while first < len(values) - 1 and values[first] <= 1e-8:
        first += 1
    return joining.stack(quotient) if quotient else rest.new_zeros(1), rest[first:]


# ----- Calculus -----
def _order(m: Any, name: str) -> int:
    m = int(m)
    if m < 0:
        raise ValueError(f"Order of {name} must be positive (see {'polyint' if name == 'derivative' else 'polyder'})")
    return m


def _in_double(p: Tensor) -> Tensor:
    """Return coefficients in the dtype of NumPy's products with powers, which are long integers."""
    return p.to(promote_types(p.dtype, dtype_by_name["float64"])) if p.dtype.is_differentiable else p


@row(np.polyder)
def polyder(p: Any, m: int = 1) -> Tensor:
    p = operand(p)
    for _ in range(_order(m, "derivative")):
        p = _in_double(p)
        p = p[:-1] * arange(len(p) - 1, 0, -1)
    return p


@row(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    order = _order(m, "integral")
    p = operand(p)
    constants = precise(p, None).new_zeros(order) if k is None else operand(k).reshape(-1)
    if len(constants) == 1 and order > 1:
        constants = constants.expand(order)
    if len(constants) < order:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for constant in constants[:order].unbind(0):
        p = _in_double(precise(p, None))
        p = joining.cat(promoted(p / arange(len(p), 0, -1), constant.reshape(1)))
    return p


# ----- Roots -----
@row(np.roots)
def roots(p: Any) -> Tensor:
    """The eigenvalues of the companion matrix; a trailing coefficient of 0 is a root of 0."""
    p, = coefficients(p)
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    places = p.detach().nonzero(as_tuple=True)[0]
    p = precise(p, None)
    double = dtype_by_name["float64"]
    if not len(places):
        return p.new_zeros(0, dtype=double)
    zeros = len(p) - int(places[-1]) - 1
    p = p[int(places[0]):int(places[-1]) + 1]
    size = len(p) - 1
    if size:
        below = p.new_ones(size - 1).diag(-1) if size > 1 else p.new_zeros(1, 1)
        results = matrices.eigvals(joining.cat([(-p[1:] / p[0]).unsqueeze(0), below[1:]]))
    else:
        results = p.new_zeros(0, dtype=double)
    return joining.cat([results, results.new_zeros(zeros)])


@row(np.poly)
def poly(seq_of_zeros: Any) -> Tensor:
    zeros, = coefficients(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.shape[0]:
        zeros = matrices.eigvals(zeros)
    elif zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    zeros = precise(zeros, None)
    result = zeros.new_ones(1)
    for zero in zeros.unbind(0):
        result = joining.cat([result, result.new_zeros(1)]) - joining.cat([result.new_zeros(1), zero * result])
    if result.is_complex():
        numbers = zeros.detach().numpy()
        if np.all(np.sort(numbers) == np.sort(numbers.conj())):
            return result.real
    return result


# ----- Fits -----
@row(np.polyfit)
def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool | str = False) -> Any:
    """Least squares, of columns that are scaled to length 1."""
    degree = int(deg)
    x, y = precise(operand(x), None), precise(operand(y), None)
    if degree < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not len(x):
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if len(x) != len(y):
        raise TypeError("expected x and y to have same length")
    rcond = len(x) * float(np.finfo(x.dtype.dtype).eps) if rcond is None else rcond
    left, right = vander(x, degree + 1), y.to(promoted(y, operand(0.0))[0].dtype)
    if w is not None:
        weights = precise(operand(w), None)
        if weights.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if len(weights) != len(y):
            raise TypeError("expected w and y to have the same length")
        left, right = left * weights.unsqueeze(-1), right * (weights.unsqueeze(-1) if right.ndim == 2 else weights)
    scale = (left * left).sum(0).sqrt()
    left = left / scale
    solution, residuals, rank, singular_values = matrices.lstsq(left, right, rcond)
    result = solution / (scale if solution.ndim == 1 else scale.unsqueeze(-1))
    if rank != degree + 1 and not full:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=5)
    if full:
        return result, residuals, rank, singular_values, rcond
    if not cov:
        return result
    base = matrices.linalg.inv(left.T @ left) / (scale.unsqueeze(-1) * scale)
    factor: Any = 1.0
    if cov != "unscaled":
        if len(x) <= degree + 1:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (len(x) - degree - 1)
    return result, base * factor if y.ndim == 1 else base.unsqueeze(-1) * factor
