"""Quantiles of few and of many elements, with NaN, of 16 bits."""

import itertools

import numpy as np
import pytest

import cygrad as cg

NAN = float("nan")
X = cg.tensor([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]], dtype=cg.float64)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_are_numpys(interpolation):
    stream = np.random.default_rng(2)
    for n, q in itertools.product((1, 2, 5, 8), (0.0, 0.1, 0.5, 0.75, 1.0)):
        a = stream.integers(0, 4, n) / 2
        assert cg.tensor(a).quantile(q, interpolation=interpolation).item() == pytest.approx(np.quantile(a, q, method=interpolation))


def test_nan_in_quantiles():
    x = cg.tensor([[1.0, NAN, 3.0], [1.0, 2.0, 3.0], [NAN, NAN, NAN]])
    assert x.quantile(0.5, 1)[1] == 2 and x.quantile(0.5, 1).isnan().tolist() == [True, False, True]
    assert x.nanquantile(0.5, 1)[:2].tolist() == [2, 2] and x.nanquantile(0.5, 1)[2].isnan()


def test_quantiles_of_16_bits_are_rounded_once():
    x = cg.arange(2000, dtype=cg.float16)
    assert x.quantile(0.1).item() == np.float16(199.9)


def test_a_rank_among_many_elements_is_exact():
    x = cg.arange(2**24 + 3, dtype=cg.int64).double().to(cg.float32)
    assert x.quantile(1.0) == 2**24 + 2


def test_gradient_reaches_the_fractions():
    q = cg.tensor(0.3, dtype=cg.float64, requires_grad=True)
    assert cg.autograd.grad(cg.tensor([1.0, 2.0, 4.0], dtype=cg.float64).quantile(q), q)[0].item() == pytest.approx(2)


def test_numbers_of_numpy():
    x = cg.tensor([3.0, 1.0, 2.0])
    assert x.quantile(np.float32(0.5)).item() == x.nanquantile(np.float16(0.5)).item() == 2
    assert x.quantile(np.int64(1)).item() == 3


REFUSED = [
    (lambda: cg.tensor(1.0).quantile(0.5, 1), IndexError, r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\)"),
    (lambda: cg.tensor(1.0).nanquantile(0.5, -2), IndexError, "Dimension out of range"),
    (lambda: X.quantile(1.5), RuntimeError, r"quantile\(\) q must be in the range \[0, 1\] but got 1.5"),
    (lambda: X.quantile(cg.tensor([0.5, NAN]).double()), RuntimeError, r"quantile\(\) q values must be in the range \[0, 1\]"),
    (lambda: X.quantile(cg.tensor([0.5])), RuntimeError, "q tensor must be same dtype as the input tensor"),
    (lambda: X.quantile(cg.ones(1, 1).double()), RuntimeError, "q must be a scalar or 1D tensor"),
    (lambda: X.long().quantile(0.5), RuntimeError, "input tensor must be either float or double dtype"),
    (lambda: X[:0].quantile(0.5), RuntimeError, "input tensor must be non-empty"),
    (lambda: X.quantile(0.5, interpolation="cubic"), RuntimeError, "interpolation must be one of .*, but got cubic"),
    (lambda: X.quantile("0.5"), TypeError, "argument 'q' .* must be Tensor or float, not str"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
