"""Powers of two and of doubles: values at the ends of the range, dtypes, errors."""

import math

import numpy as np
import pytest

import cygrad as cg

ENDS = [0.0, -0.0, 1.0, -3.0, 5e-324, 2.5e-310, 2.2250738585072014e-308, 1.7976931348623157e308, math.inf, -math.inf]
POWERS = [0, 1, -1, 52, -53, -60, 969, -969, -1000, 1023, 1024, -1022, -1030, -1074, -1075, 1100, 2000,
          2097, 2098, -2098, 5000, -5000, 2**40]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ldexp_is_rounded_once(dtype):
    x, power = np.meshgrid(np.array([*ENDS, *np.random.default_rng(0).normal(size=20)]), np.array(POWERS))
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        expected = np.ldexp(x, np.clip(power, -10000, 10000).astype(np.int32))
    result = cg.ldexp(cg.tensor(x), cg.tensor(power))
    np.testing.assert_array_equal(result.numpy(), expected)
    assert np.array_equal(np.signbit(result.numpy()), np.signbit(expected))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_ldexp_of_narrow_floats(dtype):
    x = cg.tensor([1.0, -1.5, 3.0]).to(getattr(cg, dtype))
    for power in (0, 3, -9, -20):
        exponent = cg.tensor([power] * 3)
        assert cg.equal(x.ldexp(exponent), (x.double() * 2.0**power).to(x.dtype)) and x.ldexp(exponent).dtype == x.dtype


def test_ldexp_of_other_dtypes():
    assert cg.ldexp(cg.tensor([1, 3]), cg.tensor([2, -1])).tolist() == [4, 1.5]
    assert cg.ldexp(cg.tensor([1, 3]), cg.tensor([2, -1])).dtype == cg.float32
    assert cg.ldexp(cg.tensor([1 + 2j]), cg.tensor([3])).tolist() == [8 + 16j]
    assert cg.ldexp(cg.ones(2), cg.tensor([0.5, 2.0], dtype=cg.float64)).dtype == cg.float64
    assert cg.ldexp(cg.ones(2), cg.tensor(2.0, dtype=cg.float64)).dtype == cg.float32
    np.testing.assert_allclose(cg.ldexp(cg.tensor([3.0]), cg.tensor([0.5])).numpy(), [3 * 2**0.5], rtol=1e-6)
    assert cg.ldexp(cg.ones(2, 1), cg.arange(3)).shape == (2, 3) and cg.ldexp(cg.ones(0), cg.arange(0)).shape == (0,)
    with pytest.raises(TypeError, match=r"ldexp\(\): argument 'other' \(position 2\) must be Tensor, not int"):
        cg.ldexp(cg.ones(2), 3)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        cg.ones(2, dtype=cg.int64).ldexp_(cg.tensor([1, 2]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_frexp_and_back(dtype):
    x = np.array([*ENDS, 0.3, -1e-40, 1e30, math.nan]).astype(dtype)
    mantissa, exponent = cg.frexp(cg.tensor(x))
    finite = np.isfinite(x)
    one, other = np.frexp(x)
    np.testing.assert_array_equal(mantissa.numpy(), one)
    assert exponent.dtype == cg.int32 and np.array_equal(exponent.numpy()[finite], other[finite]) and not exponent.numpy()[~finite].any()
    np.testing.assert_array_equal(cg.ldexp(mantissa, exponent).numpy(), x)


def test_frexp_of_narrow_floats_and_refused_dtypes():
    for dtype in (cg.float16, cg.bfloat16):
        result = cg.frexp(cg.tensor([6.0, 2.0**-14], dtype=dtype))
        assert result.mantissa.dtype == dtype and result.mantissa.tolist() == [0.75, 0.5] and result.exponent.tolist() == [3, -13]
    for x in (cg.tensor([1]), cg.tensor([1j]), cg.tensor([True])):
        with pytest.raises(RuntimeError, match=r"torch.frexp\(\) only supports floating-point dtypes"):
            cg.frexp(x)
    out = cg.empty(2), cg.empty(2, dtype=cg.int32)
    assert cg.frexp(cg.tensor([1.0, 8.0]), out=out).exponent is out[1] and out[1].tolist() == [1, 4]
    assert repr(cg.frexp(cg.tensor(1.0))).startswith("cygrad.return_types.frexp(\nmantissa=tensor(0.5000),")


def test_float_power():
    assert cg.float_power(cg.tensor([1, 2]), -2).tolist() == [1, 0.25] and cg.float_power(cg.tensor(2), 3).dtype == cg.float64
    assert cg.float_power(2, cg.tensor([3.0])).tolist() == [8]
    assert cg.float_power(cg.tensor([2.0], dtype=cg.float16), cg.tensor([0.5])).item() == pytest.approx(2**0.5, abs=1e-15)
    assert cg.float_power(cg.tensor([2.0]), 2j).dtype == cg.complex128
    x = cg.tensor([2.0], dtype=cg.float64)
    assert x.float_power_(2) is x and x.item() == 4
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype float32 but .* requires dtype float64"):
        cg.ones(2).float_power_(2)
    with pytest.raises(RuntimeError, match="the output given to float_power has dtype float32"):
        cg.float_power(cg.ones(2), 2, out=cg.empty(2))
    with pytest.raises(TypeError, match=r"float_power\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        cg.float_power(2, 3)


# ----- Rows of integers, and steps -----
def test_divisors_and_multiples():
    least = -(2**63)
    a, b = cg.tensor([12, -12, 0, 0, 7, least, 2**62]), cg.tensor([18, 8, 5, 0, 1, least, 6])
    assert cg.gcd(a, b).tolist() == [6, 4, 5, 0, 1, least, 2]
    assert cg.lcm(a, b).tolist()[:5] == [36, 24, 0, 0, 7]
    for dtype in ("uint8", "int8", "int16", "int32"):
        kind = getattr(cg, dtype)
        numbers = np.arange(1, 60, dtype=dtype)
        result = cg.gcd(cg.tensor(numbers[:, None]), cg.tensor(numbers))
        assert result.dtype == kind
        np.testing.assert_array_equal(result.numpy(), np.gcd.outer(numbers, numbers))
    assert type(np.gcd(cg.tensor([4]), cg.tensor([6]))) is cg.Tensor
    for function in (cg.gcd, cg.lcm):
        with pytest.raises(NotImplementedError, match=f"\"{function.__name__}_cpu\" not implemented for"):
            function(cg.ones(2), cg.ones(2))


def test_the_step():
    x = cg.tensor([-1.0, 0.0, 2.0, -0.0, math.nan, math.inf], requires_grad=True)
    values = cg.tensor(0.5, requires_grad=True)
    y = cg.heaviside(x, values)
    assert y.tolist() == [0, 0.5, 1, 0.5, 0, 1]
    y.sum().backward()
    assert x.grad.tolist() == [0] * 6 and values.grad.item() == 2
    assert cg.heaviside(cg.tensor([True, False]), cg.tensor(True)).tolist() == [True, True]
    with pytest.raises(RuntimeError, match="heaviside is not yet implemented for complex tensors"):
        cg.heaviside(cg.tensor([1j]), cg.tensor([1j]))


NUMBERS = [("add", (2.0, 3.0), 5.0, "float32"), ("add", (2, 3), 5, "int64"), ("add", (2, 1j), 2 + 1j, "complex64"),
           ("mul", (2, True), 2, "int64"),
           ("sub", (2, 3.5), -1.5, "float32"), ("div", (3, 2), 1.5, "float32"), ("floor_divide", (5, 3), 1, "int64"),
           ("add", (True, True), True, "bool")]


@pytest.mark.parametrize(("function", "numbers", "expected", "dtype"), NUMBERS, ids=str)
def test_arithmetic_of_two_numbers(function, numbers, expected, dtype):
    result = getattr(cg, function)(*numbers)
    assert (result.item(), result.dtype, result.shape) == (expected, getattr(cg, dtype), ())


def test_other_operators_refuse_two_numbers():
    assert cg.add(2, 3, alpha=2).item() == 8 and cg.div(5, 3, rounding_mode="trunc").item() == 1
    for function in (cg.maximum, cg.pow, cg.eq, cg.fmod, cg.gcd):
        with pytest.raises(TypeError, match="must be Tensor, not int"):
            function(2, 3)
    with pytest.raises(RuntimeError, match="with two bool tensors"):
        cg.sub(True, True)
