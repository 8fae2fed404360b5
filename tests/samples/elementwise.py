"""The rows of the elementwise table in tests: parameters, the function by NumPy and by its definition, allowed errors.

A row needs an entry, or a field of it, only where these are not the usual ones: NumPy's function that the row names or the one of `math`,
mpmath's function of the row's name, and errors of 4 units in the last place of the result.
"""

import math

import mpmath
import numpy as np
from mpmath import mp

from samples.sample import RowSample as row

# ----- By NumPy -----
vector_erf = np.vectorize(math.erf, otypes=[float])
vector_erfc = np.vectorize(math.erfc, otypes=[float])


def vector_ndtr(x):
    """Return the normal distribution: by its series, and far out by erfc, corrected for the rounding of its argument."""
    exact = -x / np.sqrt(np.longdouble(2))
    near = exact.astype(float)
    lost = np.where(np.isfinite(near), exact - near, 0)
    term = series = np.clip(x, -4, 4)
    for k in range(1, 70):
        term = term * x * x / (2 * k + 1)
        series = series + term
    middle = 0.5 + series * np.exp(-x * x / 2) / np.sqrt(2 * np.longdouble("3.14159265358979323846"))
    return np.where(abs(x) < 4, middle, (vector_erfc(near) - 2 / np.sqrt(np.pi) * np.exp(-near * near) * lost) / 2)


def rounding(function):
    """Return a function that leaves integers unchanged, which NumPy may turn into floats."""
    return lambda x: function(x) if x.dtype.kind == "f" else x


def sign(x):
    return x if x.dtype == bool else np.where(x != x, x.dtype.type(0), np.sign(x))      # of NaN 0, as in torch


def truncated_quotient(a, b):
    return np.trunc(a / b) if a.dtype.kind == "f" else a // b + ((a % b != 0) & ((a < 0) != (b < 0)))


# ----- By definition -----
def limited(x, low, high):
    return min(max(x, low), high)


def truncated(x):
    return mp.sign(x) * mp.floor(abs(x))


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def erfc(x):
    return mp.erfc(limited(x, -1000, 1000))  # further out nothing changes that a float could show


def ndtr(x):
    return erfc(-x / mp.sqrt(2)) / 2


def sinc(x):
    return mp.sinpi(x) / (mp.pi * x) if x else mp.mpf(1)


def gelu_tanh(x):
    return x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)))


def mish(x):
    return x * mp.tanh(mp.log1p(mp.exp(x)))


def power(a, b):
    return mp.power(a, b) if a > 0 or b == mp.floor(b) and (a or b >= 0) else mp.nan


def rectified(x, alpha, scale=1, power=1):
    """Return the exponential linear units."""
    return scale * (x if x > 0 else alpha * mp.expm1(x / power))


# ----- Bounds -----
def largest(*sizes):
    """Return the bound: units of the result, or of a larger number, for the reason that its function has."""
    return lambda y, x, dtype: max(abs(y), *(abs(mp.mpf(size(y, x, dtype))) for size in sizes))


def beside(term):
    """A sum that may cancel: the rounding errors of its terms stay."""
    return lambda y, x, dtype: term(*x)


def rounded_exponent(exponent):
    """An exponential whose exponent is rounded first, by which the error is multiplied."""
    return lambda y, x, dtype: y * exponent(*x)


def denormal_factor(other):
    """A product with a number that may be denormal, and then has fewer digits."""
    return lambda y, x, dtype: other(*x) * mp.mpf(float(np.finfo(dtype).tiny))


def first(x):
    return x


def greater(a, b):
    return max(abs(a), abs(b))


def pow_exponent(a, b):
    """Beyond 2**24, b - 1 may be b."""
    return mp.log(abs(a)) * (b - 1) if abs(b) < 2**24 else mp.inf


def beyond_jump(y, x, dtype):
    """Within rounding of softplus's threshold it is open which side the product belongs to."""
    return mp.inf if abs(x[0] * 1.5 - 2) < mp.ldexp(1, -21) else 0


OF_DIFFERENCE = largest(rounded_exponent(lambda a, b: a - b))
OVER_HYPOT = largest(denormal_factor(lambda a, b: 1 / mp.hypot(a, b)))
OF_SOFTPLUS = largest(rounded_exponent(lambda x: 1.5 * x), beyond_jump)
OF_CUBE = rounded_exponent(lambda x: 0.08 * x**3)


# ----- The rows -----
ROWS = {
    "add": row(true=lambda a, b: a + b),
    "add_scaled": row(parameters={"alpha": 3}, numpy=lambda a, b, alpha: a + b * np.array(alpha, b.dtype),
        true=lambda a, b, alpha: a + alpha * b),
    "sub": row(true=lambda a, b: a - b),
    "sub_scaled": row(parameters={"alpha": 3}, numpy=lambda a, b, alpha: a - b * np.array(alpha, b.dtype),
        true=lambda a, b, alpha: a - alpha * b),
    "mul": row(true=lambda a, b: a * b),
    "div": row(true=lambda a, b: a / b),
    "floor_divide": row(true=lambda a, b: mp.floor(a / b), slopes=[lambda a, b: 0, lambda a, b: 0]),
    "trunc_divide": row(numpy=truncated_quotient,
        true=lambda a, b: truncated(a / b),
        slopes=[lambda a, b: 0, lambda a, b: 0]),
    "remainder": row(true=lambda a, b: a - b * mp.floor(a / b), slopes=[lambda a, b: 1, lambda a, b: -mp.floor(a / b)]),
    "fmod": row(true=lambda a, b: a - b * truncated(a / b), slopes=[lambda a, b: 1, lambda a, b: -truncated(a / b)]),
    "pow": row(true=power, bounds={"a": largest(rounded_exponent(pow_exponent))}),
    "gcd": row(),
    "lcm": row(numpy=lambda a, b: abs(np.lcm(a, b))),      # NumPy leaves the sign of one that overflows, torch does not
    "neg": row(true=lambda x: -x, complex_true=lambda z: -z),
    "abs": row(true=abs, complex_true=abs),
    "sign": row(numpy=sign, true=mp.sign),
    "sgn": row(numpy=sign, true=mp.sign, complex_true=lambda z: z / abs(z)),
    "angle": row(numpy=lambda x: np.where(x < 0, x.dtype.type(np.pi), np.where(x != x, x, x.dtype.type(0))),
        true=lambda x: mp.pi if x < 0 else mp.mpf(0), complex_true=mpmath.arg),
    "conj_physical": row(true=lambda x: x, complex_true=mpmath.conj),
    "reciprocal": row(true=lambda x: 1 / x, complex_true=lambda z: 1 / z),
    "square": row(true=lambda x: x * x, complex_true=lambda z: z * z),
    "rsqrt": row(numpy=lambda x: 1 / np.sqrt(x), true=lambda x: 1 / mp.sqrt(x), complex_true=lambda z: 1 / mpmath.sqrt(z)),
    "lerp": row(numpy=lambda x, end, w: np.where(abs(w) < 0.5, x + w * (end - x), end - (end - x) * (1 - w)),
        true=lambda x, end, weight: x + weight * (end - x), bounds={None: largest(beside(lambda x, end, weight: greater(x, end - x)))}),
    "addcmul": row(parameters={"value": 3}, numpy=lambda x, a, b, value: x + np.array(value, x.dtype) * a * b,
        true=lambda x, a, b, value: x + value * a * b,
        bounds={None: largest(beside(lambda x, a, b: 3 * a * b))}),
    "addcdiv": row(parameters={"value": 2}, numpy=lambda x, a, b, value: x + value * (a / b), true=lambda x, a, b, value: x + value * a / b,
        bounds={None: largest(beside(lambda x, a, b: 2 * a / b))}),
    "floor": row(numpy=rounding(np.floor)),
    "ceil": row(numpy=rounding(np.ceil)),
    "trunc": row(numpy=rounding(np.trunc), true=truncated),
    "round": row(numpy=rounding(np.rint), true=mp.nint),
    "frac": row(numpy=lambda x: x - np.trunc(x), true=lambda x: x - truncated(x)),
    "expm1": row(complex_true=lambda z: mpmath.exp(z) - 1, exponential=1),
    "exp2": row(true=lambda x: mp.power(2, x), complex_true=lambda z: mpmath.exp(z * mp.ln2), exponential=1),
    "log1p": row(complex_true=lambda z: mpmath.log(1 + z)),
    "log2": row(true=lambda x: mp.log(x) / mp.log(2), complex_true=lambda z: mpmath.log(z) / mp.ln2),
    "log10": row(complex_true=lambda z: mpmath.log(z) / mp.ln10),
    "logaddexp": row(true=lambda a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b))),
        bounds={None: largest(beside(greater)), "a": OF_DIFFERENCE, "b": OF_DIFFERENCE}),
    "logaddexp2": row(true=lambda a, b: max(a, b) + mp.log1p(mp.power(2, -abs(a - b))) / mp.log(2),
        bounds={None: largest(beside(greater)), "a": OF_DIFFERENCE, "b": OF_DIFFERENCE}),
    "xlogy": row(numpy=lambda a, b: np.where((a == 0) & (b == b), 0, a * np.log(b)), true=lambda a, b: a * mp.log(b) if a else mp.mpf(0)),
    "logit": row(numpy=lambda x: np.where(abs(x - 0.5) < 0.2, np.log1p((2 * x - 1) / (1 - x)), np.log(x / (1 - x))),
        true=lambda x: mp.log(x / (1 - x))),
    "atan2": row(bounds={"a": OVER_HYPOT, "b": OVER_HYPOT}),
    "sinc": row(numpy=np.sinc, true=sinc, bounds={"x": largest(beside(lambda x: 1 / x if abs(x) > 0.2 else 0))},
        complex_true=lambda z: mpmath.sin(mp.pi * z) / (mp.pi * z), complex_bound=lambda z: 4 + 4 * abs(z), exponential=1),
    "deg2rad": row(numpy=lambda x: x * (math.pi / 180), true=lambda x: x * mp.pi / 180),
    "rad2deg": row(numpy=lambda x: x * (180 / math.pi), true=lambda x: x * 180 / mp.pi),
    "erf": row(true=lambda x: mp.erf(limited(x, -1000, 1000)), exponential=2),
    "erfc": row(true=erfc, exponential=2),
    "ndtr": row(numpy=vector_ndtr, true=ndtr, exponential=2),
    "gaussian": row(numpy=lambda x: np.exp(-x * x / 2), true=lambda x: mp.exp(-x * x / 2), exponential=2),
    "sigmoid": row(numpy=lambda x: 1 / (1 + np.exp(-x)), true=sigmoid, complex_true=lambda z: 1 / (1 + mpmath.exp(-z)), exponential=1),
    "softplus": row(parameters={"beta": 1.5, "threshold": 2.0},
        numpy=lambda x, beta, threshold: np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta),
        true=lambda x, beta, threshold: x if x * beta > threshold else mp.log1p(mp.exp(x * beta)) / beta,
        bounds={None: OF_SOFTPLUS, "x": OF_SOFTPLUS}),
    "relu": row(numpy=lambda x: np.maximum(x, 0), true=lambda x: max(x, 0)),
    "gelu": row(numpy=lambda x: x / 2 * (1 + vector_erf(x / np.sqrt(np.longdouble(2)))), true=lambda x: x * ndtr(x),
        bounds={None: largest(denormal_factor(first)), "x": largest(denormal_factor(lambda x: x * x), beside(ndtr))},
        exponential=2),
    "gelu_tanh": row(numpy=lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.longdouble(math.pi)) * (x + 0.044715 * x**3))), true=gelu_tanh,
        bounds={None: largest(denormal_factor(first), OF_CUBE),
                "x": largest(denormal_factor(lambda x: x**3), OF_CUBE, beside(lambda x: gelu_tanh(x) / x))},
        exponential=2),
    "silu": row(numpy=lambda x: x / (1 + np.exp(-x)), true=lambda x: x * sigmoid(x),
        bounds={None: largest(denormal_factor(first)), "x": largest(denormal_factor(first), beside(sigmoid))},
        complex_true=lambda z: z / (1 + mpmath.exp(-z)), complex_bound=lambda z: 6, exponential=1),
    "logsigmoid": row(numpy=lambda x: np.minimum(x, 0) - np.log1p(np.exp(-abs(x))), true=lambda x: -mp.log1p(mp.exp(-x))),
    "elu": row(parameters={"alpha": 1.5}, numpy=lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)), true=rectified),
    "selu": row(numpy=lambda x: 1.0507009873554805 * np.where(x > 0, x, np.longdouble(1.6732632423543772) * np.expm1(x)),
        true=lambda x: rectified(x, mp.mpf("1.6732632423543772848170429916717"), mp.mpf("1.0507009873554804934193349852946"))),
    "celu": row(parameters={"alpha": 1.5}, numpy=lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
        true=lambda x, alpha: rectified(x, alpha, power=alpha), bounds={"x": largest(rounded_exponent(lambda x: x / 1.5))}),
    "leaky_relu": row(parameters={"negative_slope": 0.125}, numpy=lambda x, negative_slope: np.where(x > 0, x, x * negative_slope),
        true=lambda x, negative_slope: max(x, 0) + negative_slope * min(x, 0)),
    "hardtanh": row(parameters={"min_val": 0, "max_val": 2}, numpy=lambda x, min_val, max_val: np.minimum(np.maximum(x, min_val), max_val),
        true=lambda x, min_val, max_val: limited(x, min_val, max_val)),
    "relu6": row(numpy=lambda x: np.minimum(np.maximum(x, 0), 6), true=lambda x: limited(x, 0, 6)),
    "softsign": row(numpy=lambda x: x / (1 + abs(x)), true=lambda x: x / (1 + abs(x)), complex_true=lambda z: z / (1 + abs(z))),
    "mish": row(numpy=lambda x: x * np.tanh(np.logaddexp(x, 0)), true=mish,
        bounds={None: largest(denormal_factor(first)), "x": largest(denormal_factor(first), beside(lambda x: mish(x) / x))}),
    "hardsigmoid": row(numpy=lambda x: np.minimum(np.maximum(x + 3, 0), 6) / 6, true=lambda x: limited(x + 3, 0, 6) / 6),
    "hardswish": row(numpy=lambda x: x * (np.minimum(np.maximum(x + 3, 0), 6) / 6), true=lambda x: x * limited(x + 3, 0, 6) / 6),
    "softshrink": row(parameters={"lambd": 0.75},
        numpy=lambda x, lambd: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0)),
        true=lambda x, lambd: mp.sign(x) * max(abs(x) - lambd, 0)),
    "hardshrink": row(parameters={"lambd": 0.75}, numpy=lambda x, lambd: np.where(abs(x) <= lambd, 0, x),
        true=lambda x, lambd: x if abs(x) > lambd else mp.mpf(0)),
    "tanhshrink": row(numpy=lambda x: x - np.tanh(x), true=lambda x: x - mp.tanh(x), bounds={None: largest(beside(first))},
        complex_true=lambda z: z - mpmath.tanh(z), complex_bound=lambda z: 4 + 8 / abs(z) ** 2, exponential=1),
    "threshold": row(parameters={"threshold": 1, "value": 7},
        numpy=lambda x, threshold, value: np.where(x <= threshold, np.array(value, x.dtype), x),
        true=lambda x, threshold, value: x if x > threshold else mp.mpf(value)),
    "maximum": row(true=max),
    "minimum": row(true=min),
    "fmax": row(true=max),
    "fmin": row(true=min),
    "copysign": row(true=lambda a, b: -abs(a) if b < 0 else abs(a)),
    "heaviside": row(numpy=lambda x, values: np.where(x == 0, values, (x > 0).astype(values.dtype)),
        true=lambda x, values: values if x == 0 else mp.mpf(x > 0)),
    "nextafter": row(true=lambda a, b: a, slopes=[lambda a, b: int(a != b), lambda a, b: 0]),   # one unit; to the bit in test_elementwise
    "nan_to_num": row(parameters={"nan": 1.0, "posinf": 2.0, "neginf": -2.0}, numpy=np.nan_to_num, true=lambda x, nan, posinf, neginf: x),
    "clamp": row(numpy=lambda x, low, high: np.minimum(np.maximum(x, low), high), true=lambda x, low, high: min(max(x, low), high)),
    "clamp_min": row(numpy=np.maximum, true=max),
    "clamp_max": row(numpy=np.minimum, true=min),
    "where": row(numpy=np.where, true=lambda condition, a, b: a if condition else b),
    "isreal": row(numpy=np.isreal),
    "isposinf": row(numpy=np.isposinf),
    "isneginf": row(numpy=np.isneginf),
    "isclose": row(parameters={"rtol": 0.25, "atol": 0.125, "equal_nan": True}, numpy=np.isclose),
    **{name: row(exponential=1) for name in ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
