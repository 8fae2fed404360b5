"""Discrete Fourier transforms: adjoints, dtypes, refusals, libraries."""

import functools
import itertools
import sys

import numpy as np
import pytest

import cygrad as cg
from cygrad._core.compute.matrices import set_planner
from cygrad.operators import fourier
from cygrad.operators.fourier import by_functions
from samples import array_of, same_bits

TRANSFORMS = [name for name in dir(cg.fft) if "fft" in name and not name.endswith(("shift", "freq"))]
ALONG = [name for name in TRANSFORMS if name.endswith("fft")]
SIZES = (None, 1, 2, 5, 6, 7)
NORMS = (None, "backward", "ortho", "forward")


def takes_real_numbers(name):
    return name.startswith(("rfft", "ihfft"))


def planned_by_loops(x):
    return fourier._by_loops("fft", x.shape, (0,), "backward", x.dtype, None)


def inner(a, b):
    return float((a.conj() * b).sum().real)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_gradient_is_the_adjoint(name):
    """<A x, y> = <x, A* y>, where both are vectors of real numbers: of any size, odd and even, cut and filled."""
    rng, transform = np.random.default_rng(3), getattr(cg.fft, name)
    for size, norm in itertools.product(SIZES, NORMS):
        extent = {"n": size} if name in ALONG else {"s": None if size is None else (size, 3)}
        x = rng.standard_normal((3, 4)) + (0 if takes_real_numbers(name) else 1j * rng.standard_normal((3, 4)))
        leaf = cg.tensor(x, requires_grad=True)
        result = transform(leaf, **extent, norm=norm)
        weights = rng.standard_normal(result.shape) + (1j * rng.standard_normal(result.shape) if result.is_complex() else 0)
        gradient, = cg.autograd.grad(result, leaf, cg.tensor(weights))
        assert inner(array_of(result), weights) == pytest.approx(inner(x, array_of(gradient)), rel=1e-12)


@pytest.mark.parametrize("name", ALONG)
def test_sizes_of_1_and_inverses(name):
    """A transform of one number is that number; a transform and its inverse give the numbers back."""
    assert getattr(cg.fft, name)(cg.tensor([3.0]), n=1).tolist() == [3.0]
    inverse = name.removeprefix("i") if name.startswith("i") else f"i{name}"
    for n, norm in itertools.product((1, 2, 3, 8, 9), NORMS):
        x = cg.randn(2, n, dtype=cg.float64)
        if name == "irfft" or name == "hfft":
            x = getattr(cg.fft, inverse)(x)
        there = getattr(cg.fft, name)(x, norm=norm, **{"n": n} if name in ("irfft", "hfft") else {})
        back = getattr(cg.fft, inverse)(there, norm=norm, **{"n": n} if inverse in ("irfft", "hfft") else {})
        assert cg.allclose(back.real, x.real) and (not x.is_complex() or cg.allclose(back.imag, x.imag))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64", "complex64", "complex128"])
def test_dtypes(dtype):
    """float32 stays single, integers and bools count as the default dtype."""
    dtype = getattr(cg, dtype)
    x, real = cg.ones(4, dtype=dtype), dtype.to_real() if dtype.is_differentiable else cg.float32
    assert cg.fft.fft(x).dtype == cg.fft.ifftn(x).dtype == real.to_complex()
    assert cg.fft.irfft(x).dtype == cg.fft.hfft(x).dtype == real
    if not dtype.is_complex:
        assert cg.fft.rfft(x).dtype == cg.fft.ihfft(x).dtype == real.to_complex()
    assert np.fft.fft(x).dtype == (dtype.to_complex() if dtype.is_differentiable else cg.complex128)
    for empty in (cg.fft.fft(x.expand(0, 4)), cg.fft.fftn(x.expand(0, 4), dim=1)):
        assert empty.shape == (0, 4)
    assert cg.fft.fftn(x[0]).dtype == real.to_complex() and cg.fft.fftn(x[0]).shape == ()


def test_frequencies():
    for n, d in itertools.product((1, 2, 5, 6), (1.0, 0.25)):
        assert np.allclose(array_of(cg.fft.fftfreq(n, d)), np.fft.fftfreq(n, d))
        assert np.allclose(array_of(cg.fft.rfftfreq(n, d, dtype=cg.float64)), np.fft.rfftfreq(n, d), rtol=1e-15)
    assert cg.fft.fftfreq(0).shape == (0,) and cg.fft.rfftfreq(0).shape == (1,)
    assert cg.fft.fftfreq(3, requires_grad=True).requires_grad
    out = cg.empty(3, dtype=cg.float64)
    assert cg.fft.fftfreq(3, out=out) is out and out.tolist() == [0, 1 / 3, -1 / 3]


X = cg.ones(3, 4)
@pytest.mark.parametrize("six", [np.int64(6), cg.tensor(6), cg.tensor([6])], ids=repr)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_sizes_are_integers_of_any_type(name, six):
    function, x = getattr(cg.fft, name), cg.tensor([1.0, 2.0, 3.0, 4.0])
    assert cg.equal(function(x, six), function(x, 6))


REFUSED = [
    (lambda: cg.fft.irfft(X, True), TypeError, "argument 'n' .*must be int, not bool"),
    (lambda: cg.fft.fft(X, n=0), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: cg.fft.fftn(X, s=(0, 2)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: cg.fft.irfft(X, n=-1), RuntimeError, r"Invalid number of data points \(-1\) specified"),
    (lambda: cg.fft.irfft(cg.ones(1)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: cg.fft.fft(cg.ones(0)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: cg.fft.fft(X, norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
    (lambda: cg.fft.fft(X, norm=3), TypeError, "norm"),
    (lambda: cg.fft.fft(X, n=2.5), TypeError, "argument 'n' must be int"),
    (lambda: cg.fft.fft(cg.ones(())), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: cg.fft.irfftn(cg.ones(()), dim=(0,)), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda: cg.fft.fft(X, dim=2), IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"),
    (lambda: cg.fft.fft2(cg.ones(3)), IndexError, "Dimension out of range"),
    (lambda: cg.fft.fftn(X, s=(1, 2, 3)), RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions."),
    (lambda: cg.fft.fftn(X, s=(2,), dim=(0, 1)), RuntimeError, "When given, dim and shape arguments must have the same length"),
    (lambda: cg.fft.fftn(X, dim=(0, -2)), RuntimeError, "FFT dims must be unique"),
    (lambda: cg.fft.rfftn(X, dim=()), RuntimeError, "rfftn must transform at least one axis"),
    (lambda: cg.fft.hfftn(X, dim=()), RuntimeError, "hfftn must transform at least one axis"),
    (lambda: cg.fft.rfft(X.cfloat()), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda: cg.fft.ihfft(X.cdouble()), RuntimeError, "ihfft expects a real input tensor, but got ComplexDouble"),
    (lambda: cg.fft.fft(X.half()), RuntimeError, "Unsupported dtype Half"),
    (lambda: cg.fft.irfft(X.bfloat16()), RuntimeError, "Unsupported dtype BFloat16"),
    (lambda: cg.fft.fft([1.0, 2.0]), TypeError, r"fft_fft\(\): argument 'input' \(position 1\) must be Tensor, not list"),
    (lambda: X._fft_c2c((5,), "backward", True), IndexError, "there are no transforms of . dims along"),
    (lambda: X._fft_r2c((), "backward"), IndexError, "there are no transforms of . dims along"),
    (lambda: X._fft_c2r((0,), "backward", -1), RuntimeError, "a transform takes at least 1 number, not -1"),
    (lambda: X.bool()._fft_c2c((0,), "backward", True), RuntimeError, "fft takes no cygrad.bool"),
    (lambda: cg.fft.fftfreq(-1), RuntimeError, r"Trying to create tensor with negative dimension -1"),
    (lambda: cg.fft.fftfreq(4, dtype=cg.int64), RuntimeError, "fftfreq requires a floating point or complex dtype"),
    (lambda: cg.config.set_fft_library("fftw"), ValueError, "set_fft_library.. takes \"numpy\" or \"scipy\", not 'fftw'"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_an_absent_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match=r'pip install "cygrad\[special\]"'):
        cg.config.set_fft_library("scipy")
    assert cg.fft.fft(cg.tensor([1.0, 2.0])).tolist() == [3, -1]


def test_scipy_gives_the_same_numbers():
    pytest.importorskip("scipy", reason="SciPy is not installed")
    x = cg.randn(5, 6, dtype=cg.float64)
    expected = {name: getattr(cg.fft, name)(x) for name in TRANSFORMS}
    cg.config.set_fft_library("scipy", workers=2)
    try:
        assert all(cg.allclose(getattr(cg.fft, name)(x), expected[name], atol=1e-12) for name in TRANSFORMS)
    finally:
        cg.config.set_fft_library("numpy")


@pytest.mark.parametrize("name", TRANSFORMS)
def test_without_the_loops_the_functions_give_the_same(name):
    """NumPy's loops are not public: a version that has others is used by its functions. These compute floats in doubles, at times."""
    for dtype, size, norm, dim in itertools.product((cg.float32, cg.float64, cg.complex64, cg.complex128), (5, 6), NORMS, (0, -1)):
        x = cg.randn(size, size, dtype=dtype)
        x = x.real if takes_real_numbers(name) else x
        call = functools.partial(getattr(cg.fft, name), x, norm=norm, **({"dim": dim} if name in ALONG else {}))
        set_planner(by_functions(np.fft), 0)
        expected = call()
        cg.config.set_fft_library("numpy")
        assert planned_by_loops(x)
        if dtype.to_real() is cg.float64:
            assert same_bits(array_of(call()), array_of(expected))
        else:
            assert cg.allclose(call(), expected, rtol=0, atol=1e-6 * float(expected.abs().max()))
