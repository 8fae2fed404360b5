"""Functions of matrices: the exponential over all norms, in batches and in bad cases; powers and chains of products; their errors."""

import math

import numpy as np
import pytest

import cygrad as cg

RANDOM = np.random.default_rng(3)
KINDS = {"float32": 2e-5, "float64": 2e-13, "complex64": 2e-5, "complex128": 2e-13}


def exact_exponential(a):
    """Return the exponential by a series in steps of a small norm, in NumPy's longest floats."""
    steps = max(0, int(np.ceil(np.log2(max(float(np.abs(a).sum(0).max()), 1e-300)))) + 4)
    a = a.astype(np.clongdouble) / np.longdouble(2) ** steps
    result = term = np.eye(len(a), dtype=a.dtype)
    for k in range(1, 25):
        term = term @ a / k
        result = result + term
    for _ in range(steps):
        result = result @ result
    return result


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("norm", [0, 1e-4, 0.1, 0.6, 1.9, 3.5, 5.5, 30])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_exponential_of_any_norm(dtype, norm, n):
    a = RANDOM.standard_normal((n, n)) + (1j * RANDOM.standard_normal((n, n)) if dtype.startswith("c") else 0)
    a = (a * (norm / np.abs(a).sum(0).max())).astype(dtype)
    exact = exact_exponential(a)
    result = cg.linalg.matrix_exp(cg.tensor(a)).numpy()
    assert result.dtype == a.dtype
    assert np.abs(result - exact).max() <= KINDS[dtype] * max(norm, 1) * np.abs(exact).max()


def test_matrices_of_a_batch_are_computed_as_alone():
    batch = cg.tensor(RANDOM.standard_normal((2, 3, 4, 4)) * np.array([1e-3, 1, 30])[:, None, None])
    together = cg.matrix_exp(batch)
    assert all(cg.equal(together[place], batch[place].matrix_exp()) for place in np.ndindex(2, 3))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_end(value):
    assert cg.matrix_exp(cg.full((2, 2), value)).isnan().any()


def test_the_derivative_in_a_large_direction():
    """A large direction does not scale the block matrix of the derivative so far that the digits of the matrix are lost."""
    a, direction = (cg.tensor(RANDOM.standard_normal((3, 3))) for _ in range(2))
    small, large = (cg.func.jvp(cg.matrix_exp, (a,), (direction * scale,))[1] / scale for scale in (1, 1e18))
    np.testing.assert_allclose(small.numpy(), large.numpy(), rtol=1e-12)


def test_numbers_of_16_bits_are_computed_in_float32():
    assert cg.eye(2).half().matrix_exp().dtype == cg.float16
    np.testing.assert_allclose(cg.eye(2).bfloat16().matrix_exp().float().numpy(), np.e * np.eye(2), rtol=8e-3)


def test_powers_of_integers_and_of_inverses():
    a = np.array([[2, 1], [1, 1]])
    for n in (0, 1, 2, 7):
        np.testing.assert_array_equal(cg.linalg.matrix_power(cg.tensor(a), n).numpy(), np.linalg.matrix_power(a, n))
    np.testing.assert_allclose(cg.matrix_power(cg.tensor(a).double(), -3).numpy(), np.linalg.matrix_power(a, -3))
    assert cg.matrix_power(cg.ones(2, 0, 0), 5).shape == (2, 0, 0)
    x = cg.eye(2)
    assert cg.matrix_power(x, 1) is not x


def test_the_power_0_has_the_gradient_0():
    A = cg.tensor([[1.0, math.nan], [0.0, 2.0]], requires_grad=True)
    power = cg.linalg.matrix_power(A, 0)
    assert power.tolist() == [[1, 0], [0, 1]] and power.requires_grad
    assert cg.autograd.grad(power.sum(), A)[0].tolist() == [[0, 0], [0, 0]]
    assert cg.vmap(lambda a: cg.linalg.matrix_power(a, 0))(cg.ones(3, 2, 2)).tolist() == [[[1, 0], [0, 1]]] * 3
    assert cg.func.jvp(lambda a: cg.linalg.matrix_power(a, 0), (cg.ones(2, 2),), (cg.ones(2, 2),))[1].tolist() == [[0, 0], [0, 0]]


def test_chains_are_multiplied_in_the_cheapest_order():
    sizes = [30, 1, 40, 10, 25]
    matrices = [cg.tensor(RANDOM.standard_normal((m, n))) for m, n in zip(sizes, sizes[1:], strict=False)]
    with cg.autograd.profiler.profile(with_flops=True) as profile:
        product = cg.linalg.multi_dot(matrices)
    np.testing.assert_allclose(product.numpy(), np.linalg.multi_dot([matrix.numpy() for matrix in matrices]))
    assert sum(event.flops for event in profile.function_events if event.name == "aten::matmul") == 2 * (40 * 10 + 10 * 25 + 30 * 25)


@pytest.mark.parametrize("call,error,words", [
    (lambda: cg.linalg.matrix_exp(cg.ones(2, 3)), RuntimeError, "2 by 3"),
    (lambda: cg.linalg.matrix_exp(cg.ones(2)), RuntimeError, "at least 2 dimensions"),
    (lambda: cg.linalg.matrix_exp(cg.ones(2, 2).int()), RuntimeError, "floating point or complex"),
    (lambda: cg.linalg.matrix_power(cg.ones(2, 2), 1.5), TypeError, "int"),
    (lambda: cg.linalg.matrix_power(cg.zeros(2, 2), -1), cg.linalg.LinAlgError, "singular"),
    (lambda: cg.linalg.multi_dot([cg.ones(2)]), RuntimeError, "at least 2 tensors"),
    (lambda: cg.linalg.multi_dot([cg.ones(2, 2, 2), cg.ones(2)]), RuntimeError, "first tensor must be 1D or 2D but got 3D"),
    (lambda: cg.linalg.multi_dot([cg.ones(2, 2), cg.ones(2), cg.ones(2)]), RuntimeError, "tensor 1 must be 2D but got 1D"),
    (lambda: cg.linalg.multi_dot([cg.ones(2, 2), cg.ones(2, 2).double()]), RuntimeError, "same dtype"),
    (lambda: cg.linalg.multi_dot([cg.ones(2, 2), cg.ones(3, 2)]), RuntimeError, r"\[2, 2\] and \[3, 2\]"),
    (lambda: cg.linalg.multi_dot(cg.ones(2, 2)), TypeError, "tuple of Tensors"),
    (lambda: cg.chain_matmul(), RuntimeError, "one or more"),
    (lambda: cg.linalg.vander(cg.tensor(2.)), RuntimeError, "greater than 1"),
    (lambda: cg.linalg.vander(cg.ones(2).bool(), N=2), RuntimeError, "linalg.vander supports floating point, complex, and integer tensors"),
    (lambda: cg.linalg.inv_ex(cg.eye(2).half()), RuntimeError, "linalg.inv: Low precision dtypes not supported. Got Half"),
    (lambda: cg.linalg.cond(cg.eye(2).half(), 1), RuntimeError, "linalg.inv: Low precision dtypes not supported. Got Half"),
    (lambda: cg.linalg.solve_ex(cg.eye(2).int(), cg.eye(2)), RuntimeError, "linalg.solve: Expected a floating point or complex tensor"),
    (lambda: cg.linalg.ldl_factor_ex(cg.eye(2).half()), NotImplementedError, "\"ldl_factor_kernel_cpu\" not implemented for 'Half'"),
    (lambda: cg.linalg.ldl_factor_ex(cg.eye(2).int()), RuntimeError, "Expected a floating point or complex tensor as input. Got Int"),
    (lambda: cg.linalg.householder_product(cg.eye(2).half(), cg.ones(2).half()), NotImplementedError, "\"orgqr_cpu\" not implemented"),
    (lambda: cg.linalg.norm(cg.eye(2).half(), "nuc"), RuntimeError, "linalg.matrix_norm: Low precision dtypes not supported. Got Half"),
    (lambda: cg.pinverse(cg.eye(2).half()), RuntimeError, "tensor with 2 or more dimensions of float, double, cfloat or cdouble"),
    (lambda: cg.vander(cg.ones(2, 2)), RuntimeError, "one-dimensional"),
    (lambda: cg.vander(cg.ones(2), -1), RuntimeError, "non-negative"),
])
def test_wrong_arguments_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_vandermonde_matrices_of_few_columns():
    x = cg.tensor([1., 2., 3.])
    assert cg.vander(x, 0).shape == (3, 0) and cg.vander(x, 1).tolist() == [[1.], [1.], [1.]]
    assert cg.vander(cg.tensor([], dtype=cg.float32)).shape == (0, 0)
    assert cg.linalg.vander(cg.tensor([1, 2], dtype=cg.int8)).dtype == cg.int64
    np.testing.assert_array_equal(cg.vander(x, 3, True).numpy(), np.vander(x.numpy(), 3, True))


@pytest.mark.parametrize("function", [cg.linalg.inv, cg.linalg.cholesky, cg.linalg.lu_factor, cg.cholesky_inverse,
                                      lambda a: cg.linalg.solve(a, cg.ones(2)), lambda a: cg.linalg.eigh(a / a.sum())])
def test_a_failure_inside_of_vmap_names_the_example(function):
    matrices = cg.stack([cg.eye(2), cg.eye(2), cg.zeros(2, 2)])
    with pytest.raises(cg.linalg.LinAlgError, match="Batch element 2"):
        cg.func.vmap(function)(matrices)
