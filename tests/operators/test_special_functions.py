"""Special functions that are no rows of the table: values by mpmath, ends and poles, degrees as data, and refusals."""

import inspect
import math
import re
import sys

import numpy as np
import pytest
from mpmath import mp

import cygrad as cg
from cygrad.func import jvp, vmap
from cygrad.operators._language import of_numbers
from samples import array_of

EPS = 2.0**-52


def of(*numbers, dtype=cg.float64):
    return cg.tensor(numbers, dtype=dtype)


def largest_error(values, true, sizes=None):
    """Return the largest error, relative to the true value or to a larger size, in units of eps."""
    sizes = [abs(y) for y in true] if sizes is None else sizes
    with mp.workprec(200):
        return float(max(abs(mp.mpf(float(value)) - y) / size for value, y, size in zip(values, true, sizes, strict=True))) / EPS


# ----- Incomplete gamma functions -----
def regularized(a, x):
    """Return P(a, x), Q(a, x) and the derivative of P by x."""
    with mp.workprec(1200):
        a, x = mp.mpf(float(a)), mp.mpf(float(x))
        density = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
        below = density * mp.hyp1f1(1, a + 1, x)
        return below, 1 - below, density * a / x


PLACES = [(a, a * ratio) for a in (1e-10, 0.3, 1.0, 2.5, 7.9, 8.0, 30.0, 150.0) for ratio in (1e-3, 0.3, 0.9, 1.0, 1.2, 4.0)]
PLACES += [(a, x) for a in (1e-300, 0.1, 0.5, 1.4) for x in (1e-300, 1e-8, 0.6, 1.3, 1.6, 30.0)] + [(2500.0, 2510.0), (1e4, 9.9e3)]


@pytest.mark.parametrize("part", [0, 1, 2])
def test_incomplete_gamma_functions(part):
    """Within a few eps, and of as many more as the result changes by where an argument is rounded."""
    a, x = (of(*numbers) for numbers in zip(*PLACES, strict=True))
    x.requires_grad_()
    lower, upper = cg.igamma(a, x), cg.igammac(a, x)
    values = [lower, upper, cg.autograd.grad(lower.sum(), x)[0]][part]
    true, sizes = [], []
    for place in PLACES:
        below, above, slope = regularized(*place)
        y = (below, above, slope)[part]
        change = slope * place[1] if part < 2 else slope * (abs(place[0] - place[1]) + 1)
        true.append(y)
        sizes.append(8 * (abs(y) + abs(change)) + 1e-305)
    assert largest_error(array_of(values), true, sizes) <= 1


def test_ends_of_the_incomplete_gamma_functions():
    """As in torch."""
    inf, nan = math.inf, math.nan
    a, x = of(0, 0, 1, -1, 2, inf, inf, 1, nan, 1, 3), of(0, 1, 0, 1, -1, 1, inf, inf, 1, nan, 1e308)
    np.testing.assert_array_equal(array_of(cg.igamma(a, x)), [nan, 1, 0, nan, nan, 0, nan, 1, nan, nan, 1])
    np.testing.assert_array_equal(array_of(cg.igammac(a, x)), [nan, 0, 1, nan, nan, 1, nan, 0, nan, nan, 0])
    at_zero = of(0, 0, 0).requires_grad_()
    slopes = cg.autograd.grad(cg.igamma(of(0.5, 1, 2), at_zero).sum(), at_zero, create_graph=True)[0]
    np.testing.assert_array_equal(array_of(slopes), [inf, 1, 0])
    assert cg.autograd.grad(slopes[1], at_zero)[0][1] == -1


def test_names_and_dtypes_of_igamma():
    a, x = of(0.5, 2), of(1, 1.5)
    y = cg.igamma(a, x)
    assert cg.special.gammainc(a, x).equal(y) and a.igamma(x).equal(y) and a.clone().igamma_(x).equal(y)
    assert cg.special.gammaincc(a, x).equal(a.igammac(x))
    assert cg.igamma(a, of(1, 2, dtype=cg.int64)).dtype == cg.float64
    for dtype in (cg.float16, cg.bfloat16, cg.float32):
        narrow = cg.igamma(a.to(dtype), x.to(dtype))
        assert narrow.equal(cg.igamma(a.to(dtype).double(), x.to(dtype).double()).to(dtype))
    for dtype, title in ((cg.int64, "Long"), (cg.bool, "Bool"), (cg.complex128, "ComplexDouble")):
        with pytest.raises(NotImplementedError, match=f"\"igamma_cpu\" not implemented for '{title}'"):
            cg.igamma(a.to(dtype), x.to(dtype))
    with pytest.raises(TypeError, match=r"igamma\(\): argument 'other' \(position 2\) must be Tensor, not int"):
        cg.igamma(a, 2)


REFUSED = {
    "igamma: input": lambda v: cg.igamma(v, of(1)), "igammac: input": lambda v: cg.igammac(v, of(1)),
    "zeta": lambda v: cg.special.zeta(v, of(1)), "jv: v": lambda v: cg.special.jv(v, of(1)), "betainc: a": lambda v: cg.special.betainc(
        v, of(1), of(0.5)), "legendre_polynomial_p: n": lambda v: cg.special.legendre_polynomial_p(of(0.5), v),
}


@pytest.mark.parametrize("words", REFUSED)
def test_there_is_no_derivative_by_an_order(words):
    order = of(2).requires_grad_()
    with pytest.raises(NotImplementedError, match=f"^the derivative for '{words}' is not implemented.$"):
        REFUSED[words](order).backward()
    with pytest.raises(NotImplementedError, match=words):
        jvp(REFUSED[words], (of(2),), (of(1),))


# ----- Zeta -----
def test_zeta():
    s, q = (of(*numbers) for numbers in zip((2, 1), (3.5, 0.25), (20, 1e-3), (1.0001, 7), (300, 1.5), (2, -0.5), (3, -1.25), strict=True))
    true = [mp.zeta(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(s[:5], q[:5], strict=True)]
    true += [mp.zeta(2, mp.mpf(1) / 2) + 4, mp.zeta(3, mp.mpf(3) / 4) - 64 - mp.mpf(4) ** 3 / 125]
    sizes = [abs(y) * (16 if b < 0 else 4) for y, b in zip(true, q, strict=True)]
    assert largest_error(array_of(cg.special.zeta(s, q)), true, sizes) <= 1
    inf, nan = math.inf, math.nan
    s, q = of(1, 2, 0.5, 2.5, 2, nan, 2, inf, inf, inf), of(2, -1, 1, -0.5, inf, 1, nan, 2, 1, 0.5)
    np.testing.assert_array_equal(array_of(cg.special.zeta(s, q)), [inf, inf, nan, nan, 0, nan, nan, 0, 1, inf])


def test_numbers_beside_tensors():
    x = of(1.5, 2.5, dtype=cg.float32)
    assert cg.special.zeta(x, 1).dtype == cg.special.zeta(3, x).dtype == cg.float32
    assert cg.special.zeta(x, of(1)).dtype == cg.float64
    assert cg.special.zeta(cg.tensor([2, 3]), 1).dtype == cg.float32
    with pytest.raises(TypeError, match=r"special.zeta\(\)|zeta\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        cg.special.zeta(2, 3)
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        cg.special.zeta(x, "one")


# ----- Polynomials -----
X = [-1.5, -1.0, -0.7, 0.0, 0.3, 1.0, 2.5]


def by_recurrence(first, step):
    def polynomial(n, x):
        before, y = mp.mpf(0), mp.mpf(1)
        for k in range(n):
            before, y = y, first(x) if k == 0 else step(k, x, y, before)
        return y

    return polynomial


def chebyshev(first):
    return by_recurrence(first, lambda k, x, y, before: 2 * x * y - before)


KINDS = {"t": lambda x: x, "u": lambda x: 2 * x, "v": lambda x: 2 * x - 1, "w": lambda x: 2 * x + 1}
POLYNOMIALS = {
    **{f"chebyshev_polynomial_{kind}": chebyshev(first) for kind, first in KINDS.items()},
    **{f"shifted_chebyshev_polynomial_{kind}": lambda n, x, first=first: chebyshev(first)(n, 2 * x - 1) for kind, first in KINDS.items()},
    "hermite_polynomial_h": by_recurrence(lambda x: 2 * x, lambda k, x, y, before: 2 * (x * y - k * before)),
    "hermite_polynomial_he": by_recurrence(lambda x: x, lambda k, x, y, before: x * y - k * before),
    "laguerre_polynomial_l": by_recurrence(lambda x: 1 - x, lambda k, x, y, before: ((2 * k + 1 - x) * y - k * before) / (k + 1)),
    "legendre_polynomial_p": by_recurrence(lambda x: x, lambda k, x, y, before: ((2 * k + 1) * x * y - k * before) / (k + 1)),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    """Each step rounds, and so does the argument: errors in units of the polynomial's size around it."""
    x = [mp.mpf(value) for value in X]
    for n in (0, 1, 2, 7, 30, 63, 64, 100):
        with mp.workprec(300):
            true = [POLYNOMIALS[name](n, value) for value in x]
            sizes = [(n + 2) ** 2 * max(abs(y), *(abs(POLYNOMIALS[name](k, value)) for k in (n - 1, n - 2) if k >= 0), 1)
                     for y, value in zip(true, x, strict=True)]
        assert largest_error(array_of(getattr(cg.special, name)(of(*X), n)), true, sizes) <= 1, n


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_degrees_of_polynomials_are_data(name):
    polynomial = getattr(cg.special, name)
    n = of(-2, -0.5, 0.9, 1.7, 3.2)
    whole = cg.cat([polynomial(of(0.4), degree) for degree in (0, 1, 3)])
    np.testing.assert_array_equal(array_of(polynomial(0.4, n)), [0, 1, 1, whole[1].item(), whole[2].item()])
    assert vmap(lambda x: polynomial(x, cg.tensor([0, 1, 3])))(of(0.4)).equal(whole[None])
    assert polynomial(of(math.nan), 3).isnan() and polynomial(of(0.5), math.nan).isnan()
    assert polynomial(cg.tensor([1, 2]), 2).dtype == cg.float32


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_huge_numbers_overflow_with_their_sign(name):
    """Also where a step in between overflows."""
    x, polynomial = of(-math.inf, -1e308, -1e150, 1e150, 1e308, math.inf), getattr(cg.special, name)
    odd = np.array([-1, -1, -1, 1, 1, 1]) * (-1 if name.startswith("laguerre") else 1)
    np.testing.assert_array_equal(array_of(polynomial(x, 3)), odd * np.inf)
    np.testing.assert_array_equal(array_of(polynomial(x, 4)), [np.inf] * 6)
    if "chebyshev" in name or "legendre" in name:
        assert polynomial(of(3.0), 4000).item() == math.inf


def test_long_polynomials():
    assert cg.special.legendre_polynomial_p(of(1.0, -1.0), 100001).tolist() == pytest.approx([1, -1], abs=1e-9)
    assert cg.special.chebyshev_polynomial_t(of(1.0, -1.0), 10**9 + 1).tolist() == [1, -1]
    assert cg.special.hermite_polynomial_h(of(1.0), 2**20 + 1).isnan()


def test_large_arrays_are_shared_among_threads():
    a, x = cg.full((3000,), 2.5, dtype=cg.float64), cg.linspace(0, 9, 3000, dtype=cg.float64)
    assert cg.igamma(a, x).equal(cg.cat([cg.igamma(a[:7], x[k:k + 7]) for k in range(0, 2996, 7)] + [cg.igamma(a[:4], x[2996:])]))


# ----- Spherical Bessel functions -----
def test_spherical_bessel_j0():
    places = [0.0, 5e-324, 1e-8, 0.5, 1.0, 1.0001, 3.0, 30.0, 1e10]
    true = [mp.sinc(mp.mpf(x)) for x in places]
    assert largest_error(array_of(cg.special.spherical_bessel_j0(of(*places))), true, [4 * abs(y) for y in true]) <= 1
    x = of(*places[2:7]).requires_grad_()
    slopes = cg.autograd.grad(cg.special.spherical_bessel_j0(x).sum(), x)[0]
    with mp.workprec(300):
        true = [mp.cos(t) / t - mp.sin(t) / t**2 for t in map(mp.mpf, places[2:7])]
    assert largest_error(array_of(slopes), true, [6 * abs(y) for y in true]) <= 1
    assert cg.special.spherical_bessel_j0(of(math.inf, -math.inf)).tolist() == [0, 0]


# ----- SciPy's -----
BY_SCIPY = {"bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "modified_bessel_k0": "k0",
            "modified_bessel_k1": "k1", "scaled_modified_bessel_k0": "k0e", "scaled_modified_bessel_k1": "k1e",
            **{name: name for name in (
                "gamma", "rgamma", "gammasgn", "erfcinv", "beta", "betaln", "betainc", "iv", "ive", "jv", "yv", "kv")}}


@pytest.mark.parametrize("name", BY_SCIPY)
def test_functions_of_scipy(name):
    """By their name here and by SciPy's, in each dtype, rounded once; SciPy's ufunc of tensors is the operator."""
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    ufunc, function = getattr(special, BY_SCIPY[name]), getattr(cg.special, name)
    arrays = [np.linspace(0.2, 0.9, 5), np.linspace(1.5, 3, 5), np.linspace(0.1, 0.8, 5)][:ufunc.nin]
    assert getattr(cg.special, BY_SCIPY[name]) is function
    for dtype in (cg.float64, cg.float32, cg.float16, cg.bfloat16):
        tensors = [cg.tensor(array).to(dtype) for array in arrays]
        expected = cg.tensor(ufunc(*[tensor.double().numpy() for tensor in tensors])).to(dtype)
        assert function(*tensors).equal(expected)
        out = cg.empty(5, dtype=dtype)
        assert function(*tensors, out=out) is out and out.equal(expected)
    leaves = [cg.tensor(array).requires_grad_() for array in arrays]
    assert type(ufunc(*leaves).grad_fn) is type(function(*leaves).grad_fn)
    assert function(*[cg.tensor([1] * 2) for _ in arrays]).dtype == cg.float32


def test_the_derivative_of_rgamma_at_poles():
    x = of(0, -1, -2, -3).requires_grad_()
    assert cg.autograd.grad(cg.special.rgamma(x).sum(), x)[0].tolist() == pytest.approx([1, -1, 2, -6])


@pytest.mark.parametrize("name", BY_SCIPY)
def test_without_scipy_the_error_says_how_to_install_it(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    of_numbers._scipy_special.cache_clear()
    function = getattr(cg.special, name)
    words = f'special.{name}() is computed by scipy.special.{BY_SCIPY[name]}, which needs SciPy: pip install "cygrad[special]"'
    with pytest.raises(ImportError, match=re.escape(words)):
        function(*[of(1)] * len(set(inspect.signature(function).parameters) - {"out"}))


def test_torch_special_is_whole():
    names = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln hermite_polynomial_h
    hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log1p log_ndtr log_softmax logit logsumexp
    modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi round
    scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
    shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc softmax spherical_bessel_j0 xlog1py xlogy zeta""".split()
    assert set(names) <= set(dir(cg.special))
    assert [name for name in dir(cg.special) if name.endswith("_") and name[0] != "_"] == []
    assert cg.special.logit(of(0.0, 0.2), 0.1).equal(of(0.1, 0.2).logit())
