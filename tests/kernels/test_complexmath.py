"""Complex functions: distance from the true number, special values, bits at each position, on every instruction set.

The functions are the rows of the table that take one complex number. Special values are NumPy's, which follow C's Annex G; signs
that it leaves open are not compared.
"""

import functools
import warnings

import mpmath
import numpy as np
import pytest
from mpmath import mp

import cygrad as cg
import samples
import truth
from cygrad.ops import ELEMENTWISE
from cygrad.ops.dtypes import DTYPES as TABLE

DTYPES = [row.name for row in TABLE if row.kind == "c"]
UNARY = [name for name, row in ELEMENTWISE.items() if "c" in row.kinds and row.operands == ("x",) and not row.params
         and row.result != "bool" and hasattr(cg, name)]


@functools.cache
def points(dtype):
    """Return numbers of all sizes and directions, near 1, -1, i and -i, near poles and where the exponential leaves the range."""
    rng, n = np.random.default_rng(8), 20
    top, last = (300, 709) if dtype == "complex128" else (36, 88)

    def around():
        return np.exp(1j * rng.uniform(-np.pi, np.pi, n))

    def sizes(low, high):
        return 10.0 ** rng.uniform(low, high, n)

    groups = [around() * sizes(-4, 1.5), around() * sizes(-top, top), sizes(-top, top) - 1j * sizes(-top, top),
              *(center + around() * sizes(-9, 0) for center in (1, -1, 1j, -1j)), around() * (1 + 1e-7 * around()),
              rng.uniform(-20, 20, n) + 1j * (np.pi / 2 * rng.integers(-9, 9, n) + 1e-6 * rng.standard_normal(n)),
              rng.uniform(-1.02, 1.02, n) * last + 1j * rng.uniform(-9, 9, n)]
    return np.concatenate(groups).astype(dtype)


@functools.cache
def grid(dtype):
    parts = [0.0, -0.0, 1, -1, 2.5, -2.5, 4, -4, 0.5, -0.5, np.inf, -np.inf, np.nan]       # sines of 4 and -4 change the sign
    return np.array([complex(x, y) for x in parts for y in parts], dtype)


def pairs(dtype):
    return [array.ravel() for array in np.meshgrid(grid(dtype), grid(dtype))]


@functools.cache
def reference(name, dtype):
    function = samples.row_sample(name).complex_true or getattr(mpmath, name)
    values = []
    for z in map(complex, points(dtype)):
        with np.errstate(all="ignore"), truth.with_digits(name, (z.real, z.imag)):
            values.append(function(mpmath.mpc(z)) if not samples.row_sample(name).exponential or abs(z) < 2000 else None)
    return values


def call(name, *arrays):
    return samples.array_of(getattr(cg, name)(*map(cg.tensor, arrays)))


def results(names):
    """Return the results of this process; runs once per instruction set."""
    results = {}
    for dtype in DTYPES:
        for name in sorted({*UNARY} & {*names}):
            values = results[f"{name} {dtype}"] = call(name, points(dtype))
            results[f"{name} {dtype} of the grid"] = call(name, grid(dtype))
            ends = np.cumsum(np.arange(20))
            pieces = [call(name, points(dtype)[start:end]) for start, end in zip(ends, [*ends[1:], len(values)], strict=True)]
            results[f"{name} {dtype} in pieces"] = np.concatenate(pieces)
        results[f"exp2 {dtype} of turns"] = call("exp2", turns(dtype))
        for name in ("mul", "div", "pow", "eq"):
            results[f"{name} {dtype}"] = call(name, *pairs(dtype))
            pieces = [call(name, *(x[k:k + 7] for x in pairs(dtype))) for k in range(0, 700, 7)]
            results[f"{name} {dtype} in pieces"] = np.concatenate(pieces)
    return results


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_distance_from_the_true_number(level, name, dtype):
    info, bound = np.finfo(dtype), samples.row_sample(name).complex_bound
    for z, value, true in zip(points(dtype), level[f"{name} {dtype}"], reference(name, dtype), strict=True):
        if true is None or not 4 * info.tiny < abs(true) < info.max / 4:
            continue
        error = abs(mpmath.mpc(complex(value)) - true) / abs(true) / float(info.eps)
        assert error <= (bound(complex(z)) if bound else 4), f"{name}({z!r}) = {value!r}, not {complex(true)!r}: {float(error):.3g} eps"


@functools.cache
def turns(dtype):
    """Return numbers whose imaginary parts are of all sizes."""
    rng, top = np.random.default_rng(2), 300 if dtype == "complex128" else 36
    return (rng.uniform(-3, 3, 400) + 1j * 10 ** np.linspace(-2, top, 400)).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_two_that_turn_often(level, dtype):
    """Their size follows the real part, however often they turn; the angle is right as long as it is larger than its error."""
    z, values, eps = turns(dtype), level[f"exp2 {dtype} of turns"].astype(complex), float(np.finfo(dtype).eps)
    assert (abs(abs(values) / 2.0 ** z.real.astype(float) - 1) <= 4 * eps).all()
    with mp.workprec(200):
        for number, value in zip(z[z.imag < eps ** -0.5], values, strict=False):
            true = mpmath.exp(mpmath.mpc(complex(number)) * mp.ln2)
            assert abs(mpmath.mpc(value) - true) <= 4 * eps * abs(true), number


def known_parts(array):
    """Return the parts, the sign of a zero beside NaN taken away: Annex G leaves it open."""
    if array.dtype.kind != "c":
        return [array]
    return [np.where((part == 0) & np.isnan(other), 0, part) for part, other in ((array.real, array.imag), (array.imag, array.real))]


def differs(values, expected):
    """Say where numbers differ by more than rounding, in infinities, NaN or the sign of zero."""
    wrong = np.zeros(values.shape, bool)
    for a, b in zip(known_parts(values), known_parts(expected), strict=True):
        with np.errstate(invalid="ignore"):
            near = abs(a - b) <= 32 * np.finfo(a.dtype).eps * np.maximum(1, abs(b))
        near &= np.isfinite(a) & np.isfinite(b) & ((a != 0) | (b != 0))
        wrong |= ~(near | (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b))
    return wrong


ODD_ONES = {        # where torch and NumPy differ from each other, or NumPy has no function
    "angle": np.angle, "reciprocal": lambda z: np.divide(1, z), "rsqrt": lambda z: np.divide(1, np.sqrt(z)),
    "sgn": lambda z: np.where(z == 0, 0, z.real / abs(z) + 1j * (z.imag / abs(z))),
}
OPEN = {            # signs that are not specified, and limits that NumPy does not have
    "acos": lambda z: z.imag == 0, "sinh": lambda z: np.isinf(z.real) & ~np.isfinite(z.imag), "neg": lambda z: False,
    "sin": lambda z: np.isinf(z.imag) & ~np.isfinite(z.real), "log1p": lambda z: np.isnan(z) | (z == 0), "cosh": np.isnan,
    "exp2": lambda z: np.isinf(z.real), "tanh": lambda z: np.isinf(z.real), "tan": lambda z: np.isinf(z.imag),
    "sgn": lambda z: ~np.isfinite(z) | (z.real == 0) | (z.imag == 0), "rsqrt": lambda z: ~np.isfinite(z) | (z == 0),
    "expm1": lambda z: np.isinf(z.real), "asin": lambda z: np.isinf(z.real) & np.isnan(z.imag),
    "asinh": lambda z: np.isnan(z.real) & np.isinf(z.imag), "acosh": lambda z: (z.real == 0) & np.isnan(z.imag),     # as C99 had it
    "exp": lambda z: np.isinf(z.real) & ~np.isfinite(z.imag),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in UNARY if name in ODD_ONES or ELEMENTWISE[name].numpy])
def test_special_values_are_numpys(level, name, dtype):
    z = grid(dtype)
    with np.errstate(all="ignore"):
        expected = (ODD_ONES.get(name) or getattr(np, ELEMENTWISE[name].numpy))(z)
        wrong = differs(level[f"{name} {dtype} of the grid"], expected.astype(level[f"{name} {dtype} of the grid"].dtype))
        wrong &= ~np.broadcast_to(OPEN.get(name, lambda z: False)(z), z.shape)
    assert not wrong.any(), [(z[k], level[f"{name} {dtype} of the grid"][k], expected[k]) for k in np.flatnonzero(wrong)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["mul", "div"])
def test_special_products_and_quotients_are_numpys(level, name, dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = {"mul": np.multiply, "div": np.divide}[name](a, b)
    wrong = differs(level[f"{name} {dtype}"], expected)
    assert not wrong.any(), [(a[k], b[k], level[f"{name} {dtype}"][k], expected[k]) for k in np.flatnonzero(wrong)[:4]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_zero_and_one(level, dtype):
    """0 ** 0 is no number, as in torch; NumPy has 1. A number to the power 1 stays as it is."""
    a, b = pairs(dtype)
    values = level[f"pow {dtype}"]
    assert np.isnan(values[(a == 0) & (b == 0)]).all()
    assert (values[(a == 1) & np.isfinite(b) & (a.imag == 0)] == 1).all()
    assert np.array_equal(values[b == 1], a[b == 1], equal_nan=True)
    assert (values[(a == 0) & (b.real > 0) & np.isfinite(b)] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*UNARY, "mul", "div", "pow", "eq"])
def test_bits_do_not_depend_on_the_position(level, name, dtype):
    pieces = level[f"{name} {dtype} in pieces"]
    assert np.array_equal(pieces, level[f"{name} {dtype}"][:len(pieces)], equal_nan=pieces.dtype.kind != "b")


# ----- Casts and reductions -----
@pytest.mark.parametrize("target", [row.name for row in TABLE if row.buffer_format])
@pytest.mark.parametrize("source", [row.name for row in TABLE if row.buffer_format])
def test_casts_take_the_real_part(source, target):
    if not {source, target} & set(DTYPES):
        pytest.skip("no complex number")
    values = np.array([0, 1, 3, 100, 7], source) * (1 if source not in DTYPES else np.array([1, 1 + 2j, 1j, 1, 1 - 1j], source))
    expected = values != 0 if target == "bool" else (values if target in DTYPES else values.real).astype(target)
    x = cg.tensor(values)
    for tensor, there in ((x, expected), (x[::2], expected[::2]), (x[1:2].expand(9), np.repeat(expected[1:2], 9))):
        values = samples.array_of(tensor.to(getattr(cg, target)))
        assert values.dtype == there.dtype
        assert values.tobytes() == there.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 130, 5000])
def test_reductions(dtype, n):
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((n, 3)) + 1j * rng.standard_normal((n, 3))).astype(dtype)
    x /= np.maximum(abs(x), 1e-3)       # so that products stay in the range
    eps = np.finfo(dtype).eps
    for dim in (0, 1, None):
        along = () if dim is None else (dim,)
        for name in ("sum", "prod", "mean"):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = getattr(np, name)(x.astype(np.complex128), axis=dim)
            values = samples.array_of(getattr(cg, name)(cg.tensor(x), *along))
            assert values.dtype == dtype
            assert np.allclose(values, expected, rtol=64 * eps, atol=64 * eps * max(n, 1) ** 0.5, equal_nan=True), (name, dim)
        for name in ("any", "all"):
            result = samples.array_of(getattr(cg, name)(cg.tensor(x), *along))
            assert np.array_equal(result, getattr(np, name)(x != 0, axis=dim))
