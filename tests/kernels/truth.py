"""True values: every elementwise function and its derivatives with many digits, and distances from them.

TRUE has each function by its definition, not by its formula. Derivatives are quotients of differences of these: no rule of
differentiation is in common with the table.
"""

import ast
import functools

import mpmath
import numpy as np
from mpmath import mp

from cygrad.ops import formula

DTYPES = {"float32": (np.float32, 24, -149, 128), "float64": (np.float64, 53, -1074, 1024)}


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def erfc(x):
    return mp.erfc(limited(x, -1000, 1000))  # further out nothing changes that a float could show


def sinc(x):
    return mp.sinpi(x) / (mp.pi * x) if x else mp.mpf(1)


def gelu_tanh(x):
    return x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)))


def power(a, b):
    return mp.power(a, b) if a > 0 or b == mp.floor(b) and (a or b >= 0) else mp.nan


def limited(x, low, high):
    return min(max(x, low), high)


def rectified(x, alpha, scale=1, power=1):
    """Return the exponential linear units."""
    return scale * (x if x > 0 else alpha * mp.expm1(x / power))


TRUE = {
    "add": lambda a, b: a + b,
    "add_scaled": lambda a, b, alpha: a + alpha * b,
    "sub": lambda a, b: a - b,
    "sub_scaled": lambda a, b, alpha: a - alpha * b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floor_divide": lambda a, b: mp.floor(a / b),
    "trunc_divide": lambda a, b: TRUE["trunc"](a / b),
    "remainder": lambda a, b: a - b * mp.floor(a / b),
    "fmod": lambda a, b: a - b * TRUE["trunc"](a / b),
    "pow": power,
    "neg": lambda x: -x,
    "abs": abs,
    "sign": mp.sign,
    "sgn": mp.sign,
    "angle": lambda x: mp.pi if x < 0 else mp.mpf(0),
    "conj_physical": lambda x: x,
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "lerp": lambda x, end, weight: x + weight * (end - x),
    "addcmul": lambda x, a, b, value: x + value * a * b,
    "addcdiv": lambda x, a, b, value: x + value * a / b,
    "trunc": lambda x: mp.sign(x) * mp.floor(abs(x)),
    "round": mp.nint,
    "frac": lambda x: x - TRUE["trunc"](x),
    "exp2": lambda x: mp.power(2, x),
    "gaussian": lambda x: mp.exp(-x * x / 2),
    "log2": lambda x: mp.log(x) / mp.log(2),
    "logaddexp": lambda a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b))),
    "logaddexp2": lambda a, b: max(a, b) + mp.log1p(mp.power(2, -abs(a - b))) / mp.log(2),
    "xlogy": lambda a, b: a * mp.log(b) if a else mp.mpf(0),
    "logit": lambda x: mp.log(x / (1 - x)),
    "sinc": sinc,
    "deg2rad": lambda x: x * mp.pi / 180,
    "rad2deg": lambda x: x * 180 / mp.pi,
    "erf": lambda x: mp.erf(limited(x, -1000, 1000)),
    "erfc": erfc,
    "ndtr": lambda x: erfc(-x / mp.sqrt(2)) / 2,
    "sigmoid": sigmoid,
    "softplus": lambda x, beta, threshold: x if x * beta > threshold else mp.log1p(mp.exp(x * beta)) / beta,
    "relu": lambda x: max(x, 0),
    "gelu": lambda x: x * erfc(-x / mp.sqrt(2)) / 2,
    "gelu_tanh": gelu_tanh,
    "silu": lambda x: x * sigmoid(x),
    "logsigmoid": lambda x: -mp.log1p(mp.exp(-x)),
    "elu": rectified,
    "selu": lambda x: rectified(x, mp.mpf("1.6732632423543772848170429916717"), mp.mpf("1.0507009873554804934193349852946")),
    "celu": lambda x, alpha: rectified(x, alpha, power=alpha),
    "leaky_relu": lambda x, negative_slope: max(x, 0) + negative_slope * min(x, 0),
    "hardtanh": lambda x, min_val, max_val: limited(x, min_val, max_val),
    "relu6": lambda x: limited(x, 0, 6),
    "softsign": lambda x: x / (1 + abs(x)),
    "mish": lambda x: x * mp.tanh(mp.log1p(mp.exp(x))),
    "hardsigmoid": lambda x: limited(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * limited(x + 3, 0, 6) / 6,
    "softshrink": lambda x, lambd: mp.sign(x) * max(abs(x) - lambd, 0),
    "hardshrink": lambda x, lambd: x if abs(x) > lambd else mp.mpf(0),
    "tanhshrink": lambda x: x - mp.tanh(x),
    "threshold": lambda x, threshold, value: x if x > threshold else mp.mpf(value),
    "maximum": max,
    "minimum": min,
    "fmax": max,
    "fmin": min,
    "copysign": lambda a, b: -abs(a) if b < 0 else abs(a),
    "nextafter": lambda a, b: a,                # within one unit; to the bit in test_elementwise
    "nan_to_num": lambda x, nan, posinf, neginf: x,
    "clamp": lambda x, low, high: min(max(x, low), high),
    "clamp_min": max,
    "clamp_max": min,
    "where": lambda condition, a, b: a if condition else b,
    **{name: getattr(mp, name) for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "exp",
                                            "expm1", "floor", "hypot", "log", "log10", "log1p", "sin", "sinh", "sqrt", "tan", "tanh")},
}
# Those that jump too often for differences: their derivatives between the jumps.
STAIRS = {
    "floor_divide": [lambda a, b: 0, lambda a, b: 0],
    "trunc_divide": [lambda a, b: 0, lambda a, b: 0],
    "remainder": [lambda a, b: 1, lambda a, b: -mp.floor(a / b)],
    "fmod": [lambda a, b: 1, lambda a, b: -TRUE["trunc"](a / b)],
}
SQUARED = {"erf", "erfc", "gaussian", "ndtr", "gelu", "gelu_tanh"}      # exponentials of squares
NAMESPACE = {**TRUE, **formula.CONSTANT_VALUES, "isnan": mp.isnan, "isinf": mp.isinf, "isfinite": mp.isfinite}


def real(value):
    """Return results that are no real numbers, such as the logarithm of -1, as NaN."""
    return value if isinstance(value, mpmath.mpf) else mp.nan if isinstance(value, mpmath.mpc) else mp.mpf(value)


def evaluated(function, arguments):
    try:
        return real(function(*arguments))
    except (ZeroDivisionError, ValueError):
        return mp.nan


def with_digits(function, arguments):
    """Return a context with digits enough for sums of powers of the arguments and of their exponentials."""
    sizes = [abs(x) for x in arguments if x]
    exponents = [min(size, 1100) ** (2 if function in SQUARED else 1) for size in sizes]
    whole = max([exponent for exponent in exponents if exponent < 1100], default=0)      # larger ones give 0 or overflow
    return mp.workprec(120 + 2 * sum(abs(mp.mag(size)) for size in sizes) + 3 * int(whole))


@functools.cache
def value(name, arguments, **parameters):
    with with_digits(name, arguments):
        return evaluated(functools.partial(TRUE[name], **parameters), [mp.mpf(x) for x in arguments])


def derivative(name, arguments, position, **parameters):
    """Return the partial derivative for an argument; NaN at 0, and where those to the left and to the right differ."""
    function = functools.partial(TRUE[name], **parameters)
    with with_digits(name, arguments), mp.extraprec(220):
        arguments = [mp.mpf(x) for x in arguments]
        if name in STAIRS:
            return evaluated(STAIRS[name][position], arguments)
        x = arguments[position]
        step = mp.ldexp(min(abs(x), 1), -90)
        left, middle, right = (evaluated(function, [*arguments[:position], x + k * step, *arguments[position + 1:]]) for k in (-1, 0, 1))
        slope, bend = right - left, right + left - 2 * middle
        return slope / (2 * step) if x and abs(bend) <= mp.ldexp(abs(slope), -30) else mp.nan


def reading(tree):
    """Return a formula as a function of the real numbers that it names."""
    code = compile(ast.unparse(formula.for_numbers(tree, is_complex=False)), "<formula>", "eval")
    return lambda **numbers: eval(code, NAMESPACE, numbers)


def extended(number):
    """Return a number of mpmath as a longdouble; infinite where it is larger."""
    if not mp.isfinite(number):
        return np.longdouble(float(number))
    _, mantissa, exponent, length = number._mpf_
    drop = max(0, length - 64)
    with np.errstate(over="ignore", under="ignore"):
        size = np.ldexp(np.longdouble(int(mantissa) >> drop), max(-30000, min(exponent + drop, 30000)))
    return -size if number < 0 else size


def ulp(number, dtype):
    """Return the distance of neighbouring floats at a number of mpmath, however large."""
    _, digits, lowest, _ = DTYPES[dtype]
    if not mp.isfinite(number):
        return np.longdouble(np.inf)
    return extended(mp.ldexp(1, max(mp.mag(number) - digits, lowest) if number else lowest))


def distance(values, true, dtype):
    """Return |values - true| in units in the last place; overflow counts as the number that would come next."""
    _, digits, lowest, top = DTYPES[dtype]
    edge = np.ldexp(true.dtype.type(1), top)
    values, bounded = np.clip(values.astype(true.dtype), -edge, edge), np.clip(true, -edge, edge)
    exponent = np.where(bounded == 0, lowest, np.maximum(np.frexp(bounded)[1] - digits, lowest))
    error = np.abs(values - bounded) / np.ldexp(true.dtype.type(1), exponent)
    return np.where(np.isnan(true), np.where(np.isnan(values), 0, np.inf), np.where(np.isnan(values), np.inf, error))


