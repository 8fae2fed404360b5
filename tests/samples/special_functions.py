"""The rows of special functions in tests: their definitions by mpmath, and by sums in extended precision near 0.

Definitions are computed with 340 bits at most, which a float64 and a quotient of differences need: more would take mpmath minutes.
"""

import functools
import itertools
import math

import mpmath
import numpy as np
from mpmath import mp

import cygrad as cg
from samples.elementwise import beside, largest
from samples.sample import RowSample as row
from samples.sample import refused_otherwise, sample

NEAR = 7        # operands that the tests draw, for which sums in extended precision are right; mpmath has no time for all of them


# ----- By definition -----
def definition(function):
    """Return a definition of finite numbers that is computed with no more bits than it needs."""
    @functools.wraps(function)
    def limited(*x):
        with mp.workprec(min(mp.prec, 340)):
            return mp.mpf(function(*x))

    return limited


def is_pole(x):
    return x <= 0 and x == mp.floor(x)


@definition
def lgamma(x):
    if is_pole(x):
        return mp.inf
    return mp.loggamma(x) if x > 0 else mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)


def right_digamma(n, x):
    """Return digamma, trigamma, ... right of 0: far out by three terms, which are enough from 1e60 on."""
    if x < mp.mpf(10) ** 60:
        return mp.polygamma(n, x)
    return mp.log(x) if n == 0 else (-1) ** (n + 1) * mp.factorial(n - 1) / x**n


@definition
def digamma(x):
    if is_pole(x):
        return mp.nan if x else mp.inf
    return right_digamma(0, x) if x > 0 else right_digamma(0, 1 - x) - mp.pi * mp.cospi(x) / mp.sinpi(x)


@definition
def trigamma(x):
    if is_pole(x):
        return mp.inf
    return right_digamma(1, x) if x > 0 else (mp.pi / mp.sinpi(x)) ** 2 - right_digamma(1, 1 - x)


@definition
def zeta(s, q):
    """NaN for orders beyond 3000, where neither the first term nor the sum of Euler and Maclaurin is near."""
    if s <= 1:
        return mp.inf if s == 1 else mp.nan
    if q <= 0 and s != mp.floor(s):
        return mp.nan
    if is_pole(q):
        return mp.inf
    if q < 0:
        r = q - mp.nint(q)
        r = r if r > 0 else 1 + r
        return right_zeta(s, r) + (-1) ** int(s) * (right_zeta(s, 1 - r) - right_zeta(s, 1 - q))
    return right_zeta(s, q)


@definition
def polygamma(x, n):
    return (-1) ** (int(n) + 1) * mp.factorial(n) * zeta(n + 1, x)


def right_zeta(s, q, terms=60, rest=30):
    if s * mp.log1p(1 / q) > 300:
        return q**-s
    if s > 3000:
        return mp.nan
    n = terms + int(s) // 2
    w, total = q + n, sum((q + k) ** -s for k in range(n))
    total += w ** (1 - s) / (s - 1) + w**-s / 2
    return total + sum(mp.bernoulli(2 * j) / mp.factorial(2 * j) * mp.rf(s, 2 * j - 1) * w ** (1 - s - 2 * j) for j in range(1, rest))


def inverse_erfc(u):
    """Return the number whose erfc is u <= 1, by Newton's method on its logarithm."""
    y = mp.sqrt(-mp.log(u)) if u < 0.9 else mp.mpf(0.1)
    for _ in range(100):
        value = mp.erfc(y)
        step = mp.log(value / u) * value * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
        y += step
        if abs(step) <= mp.ldexp(abs(y), 20 - mp.prec):
            break
    return y


@definition
def erfinv(x):
    if abs(x) >= 1:
        return x * mp.inf if abs(x) == 1 else mp.nan
    return mp.erfinv(x) if abs(x) < 0.5 else mp.sign(x) * inverse_erfc(1 - abs(x))


@definition
def ndtri(x):
    if not 0 < x < 1:
        return mp.mpf({0: "-inf", 1: "inf"}.get(x, "nan"))
    if abs(x - 0.5) < 0.25:
        return mp.sqrt(2) * mp.erfinv(2 * x - 1)
    return mp.sqrt(2) * (-inverse_erfc(2 * x) if x < 0.5 else inverse_erfc(2 - 2 * x))


@definition
def erfcx(x):
    """Beyond 20 by its asymptotic series."""
    if x > 20:
        terms = itertools.accumulate(range(1, 120), lambda term, k: -term * (2 * k - 1) / (2 * x * x), initial=mp.mpf(1))
        return mp.fsum(terms) / (x * mp.sqrt(mp.pi))
    with mp.extraprec(int(3 * x * x) if x > 0 else 40):
        return mp.inf if x < -100 else mp.exp(x * x) * mp.erfc(x)


@definition
def log_ndtr(x):
    if x < -5:
        return mp.log(erfcx(-x / mp.sqrt(2)) / 2) - x * x / 2
    return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x < 100 else mp.mpf(0)


def entr(x):
    return -x * mp.log(x) if x > 0 else mp.mpf(0) if x == 0 else -mp.inf


def xlog1py(a, b):
    return mp.mpf(0) if a == 0 else a * mp.log1p(b)


@definition
def bessel_i(order, scaled, x):
    """Far out by its asymptotic series (DLMF 10.40.1)."""
    m, sign = abs(x), -1 if order and x < 0 else 1
    if m < 1000:
        return mp.besseli(order, x) * (mp.exp(-m) if scaled else 1)
    terms = itertools.accumulate(range(1, 60), lambda term, k: -term * (4 * order - (2 * k - 1) ** 2) / (8 * k * m), initial=mp.mpf(1))
    return sign * mp.fsum(terms) / mp.sqrt(2 * mp.pi * m) if scaled else sign * mp.inf


# ----- By sums in extended precision -----
PI = np.longdouble("3.14159265358979323846264338327950288")
BERNOULLI = [1 / np.longdouble(6), -1 / np.longdouble(30), 1 / np.longdouble(42), -1 / np.longdouble(30), 5 / np.longdouble(66),
             -691 / np.longdouble(2730), 7 / np.longdouble(6)]


def odd(function):
    """Return an odd function, whose zeros have the sign of its operand."""
    return lambda x: np.copysign(function(x), x)


def many_lgamma(x):
    """Return Stirling's series of x + 30, less a logarithm."""
    w, product = x + 30, np.prod([x + k for k in range(30)], axis=0)
    rest = sum(b / (2 * k * (2 * k - 1) * w ** (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1))
    return (w - 0.5) * np.log(w) - w + np.log(2 * PI) / 2 + rest - np.log(product)


def many_digamma(x):
    w = x + 30
    return np.log(w) - 0.5 / w - sum(b / (2 * k * w ** (2 * k)) for k, b in enumerate(BERNOULLI, 1)) - sum(1 / (x + k) for k in range(30))


def many_zeta(s, q):
    w, factor = q + 30, s / 2
    total = sum((q + k) ** -s for k in range(30)) + w ** (1 - s) / (s - 1) + w**-s / 2
    for k, b in enumerate(BERNOULLI, 1):
        total = total + b * factor * w ** (1 - s - 2 * k)
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2))
    return total


def many_erf(x):
    term = series = x
    for k in range(1, 70):
        term = term * 2 * x * x / (2 * k + 1)
        series = series + term
    return series * np.exp(-x * x) * 2 / np.sqrt(PI)


def many_erfinv(x):
    y = x * np.sqrt(PI) / 2
    for _ in range(9):
        y = y + (x - many_erf(y)) * np.exp(y * y) * np.sqrt(PI) / 2
    return y


def many_bessel_i(order, x):
    term = series = (x / 2) ** order
    for k in range(1, 30):
        term = term * x * x / (4 * k * (k + order))
        series = series + term
    return series


def reference(true, many, low=mp.nan, high=mp.nan):
    """Return a row's function of arrays: near 0 a sum, of others its definition. `low` and `high` are its limits at infinity."""
    def of_numbers(*x):
        if any(map(mp.isnan, x)):
            return mp.nan
        return true(*x) if all(map(mp.isfinite, x)) else high if x[0] > 0 else low

    def compute(*arrays):
        arrays = np.broadcast_arrays(*arrays)
        if all((abs(array) < NEAR).all() for array in arrays):
            return many(*arrays)
        with mp.workprec(200):
            results = [of_numbers(*(mp.mpf(float(word)) for word in x)) for x in zip(*(array.ravel() for array in arrays), strict=True)]
            return np.array([np.longdouble(mpmath.nstr(y, 25)) for y in results], np.longdouble).reshape(arrays[0].shape)

    return compute


# ----- Bounds -----
def left(size):
    """Left of 0 two terms that cancel, of an argument that is rounded."""
    return beside(lambda x: size(x) if x < 0 else 0)


OF_DIGAMMA = largest(left(lambda x: 1 + abs(digamma(1 - x))))

ROWS = {
    "lgamma": row(true=lgamma, slopes=[digamma], numpy=reference(lgamma, many_lgamma, mp.inf, mp.inf),
        bounds={None: largest(left(lambda x: 2 + lgamma(1 - x))), "x": OF_DIGAMMA}),
    "digamma": row(true=digamma, slopes=[trigamma], numpy=lambda x: np.where(x == 0, -np.copysign(np.inf, x),
        reference(digamma, many_digamma, mp.nan, mp.inf)(x)), bounds={None: OF_DIGAMMA}),
    "trigamma": row(true=trigamma, slopes=[lambda x: polygamma(x, 2)],
        numpy=reference(trigamma, lambda x: many_zeta(np.longdouble(2), x), mp.nan, mp.mpf(0)),
        bounds={"x": largest(left(lambda x: 32))}),
    "higher_polygamma": row(parameters={"order": 3}, true=lambda x, order: polygamma(x, order),
        slopes=[lambda x: polygamma(x, 4)],
        numpy=lambda x, order: reference(lambda x: polygamma(x, order), lambda x: (-1) ** (order + 1) * math.factorial(order) * many_zeta(
            np.longdouble(order + 1), x), mp.nan, mp.mpf(0))(x),
        bounds={None: largest(left(lambda x: mp.mpf(2) ** 10)), "x": largest(left(lambda x: mp.mpf(2) ** 12))}),
    "erfinv": row(true=erfinv, numpy=odd(reference(erfinv, many_erfinv))),
    "ndtri": row(true=ndtri, numpy=reference(ndtri, lambda x: many_erfinv(2 * x - 1) * np.sqrt(np.longdouble(2)))),
    "erfcx": row(true=erfcx, slopes=[lambda x: 2 * x * erfcx(x) - 2 / mp.sqrt(mp.pi)],
        numpy=reference(erfcx, lambda x: np.exp(x * x) * (1 - many_erf(x)), mp.inf, mp.mpf(0)),
        bounds={"x": largest(beside(lambda x: 1.13))}),
    "log_ndtr": row(true=log_ndtr, slopes=[lambda x: mp.sqrt(2 / mp.pi) / erfcx(-x / mp.sqrt(2))],
        numpy=lambda x: -abs(reference(log_ndtr, lambda x: np.log(0.5 + many_erf(x / np.sqrt(np.longdouble(2))) / 2), -mp.inf,
            mp.mpf(0))(x))),
    "entr": row(true=entr, numpy=lambda x: np.where(x > 0, -x * np.log(x), np.where(x == 0, 0, np.where(x < 0, -np.inf, x))),
        bounds={"x": largest(beside(lambda x: 1))}),
    "xlog1py": row(true=xlog1py, numpy=lambda a, b: np.where((a == 0) & (b == b), 0, a * np.log1p(b))),
    "i0": row(true=functools.partial(bessel_i, 0, False), slopes=[functools.partial(bessel_i, 1, False)],
        numpy=reference(functools.partial(bessel_i, 0, False),
        functools.partial(many_bessel_i, 0), mp.inf, mp.inf)),
    "i0e": row(true=functools.partial(bessel_i, 0, True),
        slopes=[lambda x: bessel_i(1, True, x) - mp.sign(x) * bessel_i(0, True, x)],
        numpy=reference(functools.partial(bessel_i, 0, True),
        lambda x: many_bessel_i(0, x) * np.exp(-abs(x)), mp.mpf(0), mp.mpf(0)),
        bounds={"x": largest(beside(lambda x: bessel_i(0, True, x)))}),
    "i1": row(true=functools.partial(bessel_i, 1, False), numpy=odd(reference(functools.partial(bessel_i, 1, False),
        functools.partial(many_bessel_i, 1), -mp.inf, mp.inf)), bounds={"x": largest(beside(lambda x: bessel_i(0, False, x)))}),
    "i1e": row(true=functools.partial(bessel_i, 1, True), numpy=odd(reference(functools.partial(bessel_i, 1, True),
        lambda x: many_bessel_i(1, x) * np.exp(-abs(x)), mp.mpf(0), mp.mpf(0))),
        bounds={"x": largest(beside(lambda x: bessel_i(0, True, x)))}),
}

REAL = {"complex numbers": "lgamma and its derivatives are of real numbers, as in torch"}

SAMPLES = {
    "polygamma": [sample(lambda x, n=n: cg.polygamma(n, x * x + 0.5), (2, 3), exempt=REAL) for n in (0, 1, 2, 4)],
    "mvlgamma": refused_otherwise([sample(lambda x, p=p: cg.mvlgamma(x * x + 2, p), (2, 3), exempt=REAL) for p in (1, 3)]),
}
