"""Python's complex numbers: as data, operands, parameters and results; new tensors of complex numbers."""

import cmath
import warnings

import numpy as np
import pytest

import cygrad as cg

COMPLEX = {"complex64": "float32", "complex128": "float64"}


def values(tensor):
    return tensor.detach().numpy()


# ----- Data -----
@pytest.mark.parametrize("data, dtype", [
    (1j, "complex64"), ([1, 2j], "complex64"), ([True, 2j], "complex64"), ([0.5, 2j], "complex64"), ([[1j], [2]], "complex64"),
    (np.complex64(1j), "complex64"), (np.complex128(1j), "complex128"), ([np.complex64(1j)], "complex64"),
    ([cg.tensor(1.0, dtype=cg.float64), 1j], "complex128"), ([cg.tensor(1j), 1.0], "complex64"), (np.array([1j, 2]), "complex128")])
def test_data(data, dtype):
    tensor = cg.tensor(data)
    assert tensor.dtype is getattr(cg, dtype)
    np.testing.assert_array_equal(values(tensor), np.array(data))


def test_the_default_dtype_sets_the_width_of_complex_numbers():
    cg.set_default_dtype(cg.float64)
    try:
        assert cg.tensor(1j).dtype is (cg.ones(2, dtype=cg.int64) * 1j).dtype is cg.full((2,), 1j).dtype is cg.complex128
        assert repr(cg.tensor([1j])) == "tensor([0.+1.j])"
    finally:
        cg.set_default_dtype(cg.float32)
    assert (cg.ones(2, dtype=cg.int64) * 1j).dtype is cg.full((2,), 1j).dtype is cg.complex64


@pytest.mark.parametrize("call, error, message", [
    (lambda: cg.tensor([1, 2j], dtype=cg.float64), TypeError, "must be real number, not complex"),
    (lambda: cg.tensor([1, 2 + 0j], dtype=cg.int64), TypeError, "'complex' object cannot be interpreted as an integer"),
    (lambda: cg.zeros(2).fill_(1j), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: cg.zeros(2, dtype=cg.float64).fill_(1j), RuntimeError, "value cannot be converted to type double without overflow"),
    (lambda: cg.zeros(2, dtype=cg.uint8).fill_(1j), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
    (lambda: cg.zeros(2).__setitem__(0, 1j), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: cg.full((2,), 1j, dtype=cg.float32), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: cg.full_like(cg.zeros(2), 1j), RuntimeError, "value cannot be converted to type float without overflow"),
    (lambda: cg.zeros(2, dtype=cg.complex64).fill_(1e300j), RuntimeError, "value cannot be converted to type c10::complex<float> without"),
    (lambda: cg.zeros(2).add_(1j), RuntimeError, "result type complex64 can't be cast to the desired output type float32"),
    (lambda: cg.tensor([1j]).abs_(), RuntimeError, "In-place abs is not supported for complex tensors"),
    (lambda: cg.bucketize(cg.tensor([1j]), cg.ones(2)), NotImplementedError, "searchsorted"),
    (lambda: cg.add(cg.ones(2), cg.ones(2), alpha=1j), RuntimeError, "For non-complex input tensors, argument alpha must not be a complex"),
    (lambda: float(cg.tensor(1j)), RuntimeError, "value cannot be converted to type double without overflow"),
    (lambda: int(cg.tensor(1j)), RuntimeError, "value cannot be converted to type int64_t without overflow"),
    (lambda: [0][cg.tensor(1j)], TypeError, "only integer tensors of a single element can be converted to an index"),
    (lambda: cg.arange(3, dtype=cg.complex64), NotImplementedError, "\"arange_cpu\" not implemented for 'ComplexFloat'"),
    (lambda: cg.arange(3j), RuntimeError, "value cannot be converted to type double without overflow"),
    (lambda: cg.linspace(0, 1j, 3, dtype=cg.float32), RuntimeError, "torch.linspace.*can't be safely cast"),
    (lambda: cg.randint(3, (2,), dtype=cg.complex64), RuntimeError, "check_random_bounds handles only integral, floating-point"),
    (lambda: cg.randperm(3, dtype=cg.complex64), NotImplementedError, "\"randperm\" not implemented for 'complex64'"),
    (lambda: cg.empty(2, dtype=cg.complex64).exponential_(), RuntimeError, "Exponential distribution is a continuous"),
    (lambda: cg.empty(2, dtype=cg.complex64).log_normal_(), NotImplementedError, "\"log_normal\" not implemented"),
    (lambda: cg.empty(2, dtype=cg.complex64).geometric_(0.5), NotImplementedError, "\"geometric_\" not implemented"),
    (lambda: cg.normal(cg.ones(2), cg.ones(2) * 1j), RuntimeError, "normal expects standard deviation to be non-complex"),
    (lambda: cg.empty(2, dtype=cg.complex64).bernoulli_(), NotImplementedError, "\"bernoulli\" not implemented"),
])
def test_calls_that_take_no_complex_numbers(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_complex_number_without_an_imaginary_part_is_a_real_one():
    assert cg.zeros(2).fill_(2 + 0j).tolist() == [2.0, 2.0]
    assert cg.zeros(2, dtype=cg.int64).fill_(2 + 0j).tolist() == [2, 2]
    assert float(cg.tensor(2 + 0j)) == 2.0 and int(cg.tensor(2 + 0j)) == 2
    assert cg.zeros(2, dtype=cg.bool).fill_(1j).tolist() == [True, True]


def test_numbers_come_out():
    x = cg.tensor([1 + 2j, -0.5])
    assert x.tolist() == [1 + 2j, -0.5 + 0j] and x[0].item() == complex(x[0]) == 1 + 2j
    assert complex(cg.tensor(2)) == 2 + 0j and bool(cg.tensor(1j)) and not bool(cg.tensor(0j))


# ----- Operands -----
@pytest.mark.parametrize("left, expected", [("bool", "complex64"), ("uint8", "complex64"), ("int64", "complex64"), ("float32", "complex64"),
                                            ("float64", "complex128"), ("complex64", "complex64"), ("complex128", "complex128")])
@pytest.mark.parametrize("dims", [0, 1])
def test_numbers_are_weak(left, expected, dims):
    x = cg.tensor(2).to(getattr(cg, left)).expand((3,) * dims).contiguous()
    for result, array in ((x * 2j, values(x) * 2j), (2j * x, values(x) * 2j), (x + 1j, values(x) + 1j), (1j / x, 1j / values(x)),
                          (cg.where(x == x, x, 1j), values(x) + 0j)):
        assert result.dtype is getattr(cg, expected)
        np.testing.assert_allclose(values(result), array)


def test_the_power_0_is_1_everywhere():
    x = cg.tensor([0j, 1 + 1j, -2], requires_grad=True)
    for zero in 0, 0.0, 0j:
        y = x**zero
        assert y.dtype is x.dtype and y.tolist() == cg.pow(x, zero).tolist() == [1, 1, 1]
        assert cg.autograd.grad(y, x, cg.ones_like(y))[0].tolist() == [0, 0, 0]


def test_zero_dimensional_tensors_are_weak():
    # Among floating-point and complex numbers, the tensors that have dims decide the width.
    assert (cg.ones(2) * cg.tensor(1j, dtype=cg.complex128)).dtype is cg.complex64
    assert (cg.ones(2, dtype=cg.float64) * cg.tensor(1j)).dtype is cg.complex128
    assert (cg.ones(2, dtype=cg.int64) * cg.tensor(1j, dtype=cg.complex128)).dtype is cg.complex128
    assert (cg.ones((), dtype=cg.float64) * cg.tensor([1j])).dtype is cg.complex64
    assert (cg.ones(2, dtype=cg.float64) * cg.tensor([1j])).dtype is cg.complex128


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("call, gradients", [
    (lambda a, b: cg.add(a, b, alpha=2j), lambda g, a, b: (g, g * -2j)),
    (lambda a, b: cg.sub(a, b, alpha=2j), lambda g, a, b: (g, g * 2j)),
    (lambda a, b: cg.addcmul(a, b, b, value=1 + 1j), lambda g, a, b: (g, g * np.conj(2 * (1 + 1j) * b))),
    (lambda a, b: cg.lerp(a, b, 0.25 + 1j), lambda g, a, b: (g * (0.75 + 1j), g * (0.25 - 1j))),
    (lambda a, b: a * 2j + b / (1 + 1j), lambda g, a, b: (g * -2j, g / (1 - 1j))),
    (lambda a, b: (a - 1j) * (3 - b), lambda g, a, b: (g * np.conj(3 - b), -g * np.conj(a - 1j))),
])
def test_complex_parameters_and_constants_have_gradients(dtype, call, gradients):
    a, b = (cg.tensor([1 + 2j, -0.5, 3j], dtype=getattr(cg, dtype)) * factor for factor in (1, 0.5 - 1j))
    g = cg.tensor([1j, 2 - 1j, 1], dtype=getattr(cg, dtype))
    leaves = [x.clone().requires_grad_() for x in (a, b)]
    for gradient, other in zip(cg.autograd.grad(call(*leaves), leaves, g), gradients(*map(values, (g, a, b))), strict=True):
        np.testing.assert_allclose(values(gradient), other, rtol=1e-5)


def test_a_real_operand_takes_the_real_part_of_its_gradient_without_a_warning():
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x * (2 - 1j)).backward(cg.tensor([1j, 1 + 1j]))
    assert x.grad.tolist() == [-1.0, 1.0]


def test_long_chains_of_large_tensors_take_complex_constants():
    x = cg.full((40000,), 0.5 + 0.5j, dtype=cg.complex128, requires_grad=True)
    y = (x * 1j + 2) * (1 - 1j)         # a pending result
    np.testing.assert_allclose(values(y), (values(x) * 1j + 2) * (1 - 1j))
    y.backward(cg.ones_like(y))
    np.testing.assert_allclose(values(x.grad), np.full(40000, np.conj(1j * (1 - 1j))))


def test_assignment():
    x = cg.zeros(3, dtype=cg.complex64)
    x[0], x[1:] = 1j, cg.tensor([2.0, 3.0])
    x[cg.tensor([True, False, True])] = 5j
    assert x.tolist() == [5j, 2, 5j] and x.fill_(1 - 1j).tolist() == [1 - 1j] * 3


# ----- Conversion -----
def test_a_conversion_warns_of_lost_imaginary_parts():
    x = cg.tensor([1 + 2j, 3j])
    for convert in (lambda: x.to(cg.float32), lambda: x.float(), lambda: cg.zeros(2).copy_(x), lambda: cg.tensor(np.array([1 + 2j, 3j]),
                    dtype=cg.float32)):
        with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part") as caught:
            assert convert().tolist() == [1.0, 0.0]
        assert len(caught) == 1 and caught[0].filename == __file__
    for part in 0, [0, 1]:
        target = cg.zeros(2)
        with pytest.warns(UserWarning, match="discards the imaginary part") as caught:
            target[part] = x[part]
        assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.bool().tolist() == [True, True] and cg.ones(2).to(cg.complex64).tolist() == [1, 1]


# ----- New tensors -----
@pytest.mark.parametrize("dtype", COMPLEX)
def test_factories(dtype):
    kind = getattr(cg, dtype)
    tensors = {"zeros": cg.zeros(2, dtype=kind), "ones": cg.ones(2, dtype=kind), "eye": cg.eye(2, dtype=kind),
               "full": cg.full((2,), 1j, dtype=kind), "ones_like": cg.ones_like(cg.ones(2), dtype=kind),
               "full_like": cg.full_like(cg.ones(2, dtype=kind), 1j), "new_full": cg.ones(2, dtype=kind).new_full((2,), 1j),
               "linspace": cg.linspace(1, 1j, 3, dtype=kind)}
    assert {tensor.dtype for tensor in tensors.values()} == {kind} and all(tensor.is_complex() for tensor in tensors.values())
    assert tensors["eye"].tolist() == [[1, 0], [0, 1]] and tensors["full"].tolist() == tensors["full_like"].tolist() == [1j, 1j]
    assert tensors["linspace"].tolist() == [1, 0.5 + 0.5j, 1j] and cg.linspace(0, 1j, 2).dtype is cg.complex64
    assert not tensors["ones"].is_floating_point() and tensors["ones"].requires_grad_().requires_grad


@pytest.mark.parametrize("dtype", COMPLEX)
def test_random_numbers(dtype):
    kind = getattr(cg, dtype)
    normal = values(cg.randn(20000, dtype=kind, rng=0))
    assert abs(normal.real.var() - 0.5) < 0.02 and abs(normal.imag.var() - 0.5) < 0.02 and abs(np.mean(normal.real * normal.imag)) < 0.02
    even = values(cg.rand(20000, dtype=kind, rng=0))
    for part in even.real, even.imag:
        assert part.min() >= 0 and part.max() < 1 and abs(part.mean() - 0.5) < 0.02
    around = values(cg.empty(20000, dtype=kind).normal_(1, 2, rng=0))     # the mean holds for both parts, as in torch
    assert abs(around.mean() - (1 + 1j)) < 0.1 and abs(around.var() - 4) < 0.2
    transposed = cg.empty(3, 2, dtype=kind).t().uniform_(2, 3, rng=0)
    assert values(transposed).tolist() == values(cg.empty(2, 3, dtype=kind).uniform_(2, 3, rng=0)).tolist()
    assert cg.randn_like(transposed).dtype is cg.rand_like(transposed).dtype is kind and cg.rand((), dtype=kind).ndim == 0


# ----- Conjugates -----
def test_conjugates_and_adjoints():
    x = cg.tensor([[1 + 2j, 3j], [4, 5 - 1j]])
    expected = values(x).conj()
    for result in x.conj(), cg.conj_physical(x), x.conj().resolve_conj():
        np.testing.assert_array_equal(values(result), expected)
    for result in x.H, x.mH, x.adjoint(), cg.adjoint(x):
        np.testing.assert_array_equal(values(result), expected.T)
    real = cg.ones(2, 2)
    assert real.conj() is real and real.H._is_view() and not x.conj().is_conj() and not cg.is_conj(x) and not x.is_neg()
    assert x.isreal().tolist() == [[False, False], [True, False]] and cg.isreal(real).all() and cg.isreal(cg.tensor([1])).all()
    assert cg.isreal(cg.tensor([complex(0, cmath.nan)])).tolist() == [False]
