"""True values: every elementwise function and its derivatives with many digits, and distances from them.

TRUE has each function by its definition, not by its formula (samples/elementwise.py). Derivatives are quotients of differences of these:
no rule of differentiation is in common with the table.
"""

import ast
import functools

import mpmath
import numpy as np
from mpmath import mp

from cygrad.ops import ELEMENTWISE, formula
from samples import row_sample

DTYPES = {"float32": (np.float32, 24, -149, 128), "float64": (np.float64, 53, -1074, 1024)}


TRUE = {name: row_sample(name).true or getattr(mp, name) for name in ELEMENTWISE if row_sample(name).true or hasattr(mp, name)}
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
    exponents = [min(size, 1100) ** (2 if row_sample(function).exponential == 2 else 1) for size in sizes]
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
        if row_sample(name).slopes:
            return evaluated(row_sample(name).slopes[position], arguments)
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


