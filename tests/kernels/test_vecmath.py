"""Vector mathematics: distance from the true value in units in the last place, on every instruction set.

float64 is compared with mpmath at chosen points, float32 with float64 over a sweep of all its bit patterns. The
functions are the rows of the table that consist of one vector function; without special functions, whose zeros and poles
have bounds of their own in test_accuracy.
"""

import functools
import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad._kernels.drivers.elementwise import is_blocked
from cygrad.ops.elementwise import ELEMENTWISE
from truth import DTYPES, TRUE, distance

pytestmark = pytest.mark.slow

LIMIT = 4
FUNCTIONS = [name for name, row in ELEMENTWISE.items() if is_blocked(name) and row.y == f"{name}(x)" and not row.apart]
ODD = [name for name in FUNCTIONS if name in ("asin", "atan", "erf", "expm1", "log1p", "sin", "sinh", "tan", "tanh")]

# Where the tails of the normal distribution are rounded most, of millions of points.
TAILS = {"float64": [12.240435732651736, 22.005766179524493, 24.181417170603179, 25.088267697871338, 25.19840983714845, 26.281120201569117,
                     27.760649462135667, 33.769808806797435, 34.198220072690987, 34.358980121121888, 35.11751802136441, 35.935514413983647],
         "float32": [0.00208077743, 0.479448527, 0.584379375, -0.764603853, -9.30875778]}


# ----- Points -----
@functools.cache
def points(dtype):
    """Return where functions of one argument are tried: float32 everywhere, float64 where something happens."""
    if dtype == "float32":
        swept = np.concatenate([np.arange(0, 2**32, 1499), [2**31]]).astype(np.uint32).view(np.float32)
        return np.concatenate([swept, np.array(TAILS["float32"], np.float32)])
    rng, info = np.random.default_rng(5), np.finfo(np.float64)
    size = np.concatenate([
        [0, 1, 0.5, 2, np.inf, info.max, info.tiny, info.smallest_subnormal, 3 * info.smallest_subnormal],
        10.0 ** rng.uniform(-323, 308, 150), 10.0 ** rng.uniform(-17, 3, 300),
        rng.uniform(0, 1, 250), rng.uniform(0, 8, 250), rng.uniform(0, 760, 150),
        1 + rng.uniform(-1, 1, 150) * 10.0 ** rng.uniform(-15, 0, 150),
        around((np.arange(40) + 0.5) * math.log(2)),
        around(np.array([708.3964185322641, 709.782712893384, 744.4400719213812, 745.1332191019411])),
        around(np.array([math.sqrt(0.5), math.sqrt(2), 0.3, 0.5, 2.5, 5.95, 19.06, 22.0, 26.54, 27.23, 27.4, 45.0])),
        around(np.concatenate([np.arange(1, 60), rng.integers(1, 2**24, 60)]) * (math.pi / 2)),
        2.0**24 + rng.uniform(-9, 9, 20), 10.0 ** rng.uniform(4, 22, 60), TAILS["float64"],
    ])
    return np.concatenate([size, -size, [np.nan]])


def around(values):
    """Return the numbers with their neighbours."""
    return np.concatenate([values, np.nextafter(values, 0), np.nextafter(values, np.inf)])


@functools.cache
def pairs(dtype):
    """Return bases and exponents whose powers fill the range of the dtype, and the special ones."""
    rng, (kind, _, _, top) = np.random.default_rng(6), DTYPES[dtype]
    n = 100_000 if dtype == "float32" else 700
    special = np.array([0, -0.0, 1, -1, 2, -3, 0.5, -2.5, np.inf, -np.inf, np.nan, np.finfo(kind).tiny / 8])
    near_one = 1 + rng.uniform(-1, 1, n) * 10.0 ** rng.uniform(-6, -1, n)
    wide = 2.0 ** rng.uniform(-0.9 * top, 0.9 * top, n)
    base = np.concatenate([wide, near_one, rng.uniform(0.1, 10, n)]).astype(kind)
    with np.errstate(divide="ignore"):
        exponent = rng.uniform(-1.1, 1.1, 3 * n) * top / np.abs(np.log2(base.astype(np.float64)))
    exponent = np.clip(exponent, -1e30, 1e30).astype(kind)
    whole = np.round(rng.uniform(-9, 9, n)).astype(kind)
    return (np.concatenate([base, -base[-n:], np.repeat(special, len(special))]).astype(kind),
            np.concatenate([exponent, whole, np.tile(special, len(special))]).astype(kind))


@functools.cache
def quotients(dtype):
    """Return dividends and divisors: near and far apart, whole multiples and their neighbours, special ones."""
    rng, kind, n = np.random.default_rng(7), DTYPES[dtype][0], 4000
    far = 30 if dtype == "float32" else 290
    special = np.array([0, -0.0, 1, -1, 3, -0.1, np.inf, -np.inf, np.nan, np.finfo(kind).max, np.finfo(kind).tiny / 8])
    divisor = (rng.standard_normal(n) * 10.0 ** rng.uniform(-5, 5, n)).astype(kind)
    multiple = divisor * np.round(10.0 ** rng.uniform(0, 9, n)).astype(kind)
    wide = 10.0 ** rng.uniform(-far, far, (2, n))
    below = np.nextafter(multiple, kind(0))
    dividends = [100 * rng.standard_normal(n), multiple, below, wide[0], np.repeat(special, 11)]
    divisors = [divisor, divisor, divisor, wide[1], np.tile(special, 11)]
    return np.concatenate(dividends).astype(kind), np.concatenate(divisors).astype(kind)


def rows_of_erf():
    """Return numbers at each row of the table of erf, and on both sides of where two rows meet."""
    meetings = (np.arange(1024) + 0.5) / 128
    return np.concatenate([np.arange(1024) / 128, meetings, np.nextafter(meetings, 0), np.nextafter(meetings, 8), meetings - 0.003])


# ----- True values -----
@functools.cache
def reference(function, dtype):
    """Return the true values, with more digits than the dtype has."""
    arguments = pairs(dtype) if function == "pow" else (points(dtype),)
    if dtype == "float32":
        with np.errstate(all="ignore"):
            wide = [x.astype(np.float64) for x in arguments]
            return reference_of_float32(function, *wide)
    return np.array([np.longdouble(mpmath.nstr(true_value(function, *map(float, x)), 25))
                     for x in zip(*arguments, strict=True)])


def reference_of_float32(function, *arguments):
    scalar = {"erf": math.erf, "erfc": math.erfc, "ndtr": lambda x: math.erfc(-x * math.sqrt(0.5)) / 2}.get(function)
    if scalar:
        return np.fromiter(map(scalar, arguments[0].tolist()), np.float64, len(arguments[0]))
    definition = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "gaussian": lambda x: np.exp(-x * x / 2),
                  "logit": lambda x: np.log(x / (1 - x)), "acosh": lambda x: np.arccosh(np.where(x < 1, np.nan, x))}    # musl's has more
    if function in definition:
        return definition[function](*arguments)
    numpys = getattr(np, ELEMENTWISE[function].numpy or "", None)
    return numpys(*arguments) if numpys else call(function, *arguments)     # in float64, which is compared with mpmath


def true_value(function, x, *exponent):
    outside = (x <= {"pow": 0, "log": 0, "log2": 0, "log10": 0, "logit": 0, "log1p": -1}.get(function, -math.inf)
               or function == "acosh" and x < 1 or function == "atanh" and abs(x) >= 1
               or function in ("asin", "acos") and abs(x) > 1 or function == "logit" and x >= 1)
    if outside or not all(map(math.isfinite, (x, *exponent))):
        with np.errstate(all="ignore"):
            return mpmath.mpf(reference_of_float32(function, np.array([x]), *(np.array([e]) for e in exponent))[0])
    if function not in ("log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "atan", "asinh", "acosh"):
        x = max(-1e4, min(x, 1e4))  # further out nothing changes, but mpmath would write down exp(1e308)
    with mpmath.workdps(350 if 0 < abs(x) < 1e-15 or abs(x) > 1e15 else 40):
        return +(mpmath.power(x, *exponent) if exponent else TRUE[function](mpmath.mpf(x)))


# ----- Results of one instruction set -----
def results(names):
    """Return the results of this process; runs once per instruction set."""
    results = {}
    for dtype in DTYPES:
        for function in sorted({*FUNCTIONS} & {*names}):
            results[f"{function} {dtype}"] = call(function, points(dtype))
            results[f"{function} {dtype} in pieces"] = in_pieces(function, points(dtype))
        results[f"pow {dtype}"] = call("pow", *pairs(dtype))
        results[f"pow {dtype} in pieces"] = in_pieces("pow", *pairs(dtype))
        for function in ("remainder", "floor_divide"):
            results[f"{function} {dtype}"] = call(function, *quotients(dtype))
    results["erf of rows"] = call("erf", rows_of_erf())
    return results


def call(function, *arrays):
    return getattr(cg, function)(*map(cg.from_numpy, arrays)).numpy()


def some(array):
    return array[::len(array) // 3000 + 1]


def in_pieces(function, *arrays):
    """Return the results for some of the elements, computed 1, 2, 3, ... at a time."""
    ends = [n * (n + 1) // 2 for n in range(80)]
    pieces = ([some(x)[start:end] for x in arrays] for start, end in pairwise(ends) if start < len(some(arrays[0])))
    return np.concatenate([call(function, *piece) for piece in pieces])


# ----- Tests -----
@pytest.mark.parametrize("dtype", DTYPES)
def test_neighbours_are_exact(dtype):
    """Of zeros, denormals, powers of two, the largest number and infinities: in all directions."""
    info = np.finfo(dtype)
    sizes = [0, info.smallest_subnormal, info.tiny, 1, 2, info.max, np.inf]
    with np.errstate(all="ignore"):
        around = np.nextafter(np.array(sizes, dtype)[:, None], np.array([-np.inf, 0, np.inf], dtype)).ravel()
        starts = np.concatenate([around, -around, np.array([*sizes, -0.0, np.nan], dtype)])
        a, b = np.meshgrid(starts, starts)
        expected = np.nextafter(a, b)
    x, y = cg.tensor(a), cg.tensor(b)
    for tensor in (cg.nextafter(x, y), cg.nextafter(x.T, y.T).T, x.nextafter_(y)):
        assert samples.same_bits(samples.array_of(tensor), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [*FUNCTIONS, "pow"])
def test_accuracy(level, function, dtype):
    values, true = level[f"{function} {dtype}"], reference(function, dtype)
    assert values.dtype == dtype
    errors = distance(values, true, dtype)
    worst = int(errors.argmax())
    arguments = [x[worst] for x in (pairs(dtype) if function == "pow" else (points(dtype),))]
    assert errors[worst] <= LIMIT, f"{function}({arguments}) = {values[worst]!r}, not {true[worst]!r}"


def test_each_row_of_the_table_of_erf(level):
    """Within 4 units in the last place; the C library's own erf is within one."""
    true = np.array([math.erf(x) for x in rows_of_erf()])
    assert distance(level["erf of rows"], true.astype(np.longdouble), "float64").max() <= LIMIT - 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [*FUNCTIONS, "pow"])
def test_bits_do_not_depend_on_the_position(level, function, dtype):
    pieces, whole = level[f"{function} {dtype} in pieces"], level[f"{function} {dtype}"]
    assert np.array_equal(pieces, some(whole), equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", ODD)
def test_odd_functions_keep_the_sign_of_zero(level, function, dtype):
    zeros = points(dtype) == 0
    assert np.array_equal(np.signbit(level[f"{function} {dtype}"][zeros]), np.signbit(points(dtype)[zeros]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", ["remainder", "floor_divide"])
def test_division_with_remainder_is_numpys(level, function, dtype):
    with np.errstate(all="ignore"):
        expected = getattr(np, function)(*quotients(dtype))
    values = level[f"{function} {dtype}"]
    different = np.flatnonzero((values != expected) & ~(np.isnan(values) & np.isnan(expected)))
    assert not len(different), [array[different[0]] for array in (*quotients(dtype), values, expected)]
