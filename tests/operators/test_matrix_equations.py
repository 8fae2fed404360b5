"""Solutions of matrix equations against the equations themselves, their gradients against differences, and errors."""

import numpy as np
import pytest

import cygrad as cg

RNG = np.random.default_rng(3)


def matrix(*shape, is_complex=False):
    a = RNG.standard_normal(shape)
    return cg.tensor(a + 1j * RNG.standard_normal(shape) if is_complex else a)


@pytest.mark.parametrize("is_complex", [False, True])
def test_solutions_fulfil_the_equations(is_complex):
    A, B, Q = matrix(5, 4, 4, is_complex=is_complex), matrix(3, 3, is_complex=is_complex), matrix(5, 4, 3, is_complex=is_complex)
    X = cg.linalg.solve_sylvester(A, B, Q)
    assert X.shape == Q.shape and cg.allclose(A @ X + X @ B, Q, rtol=1e-9, atol=1e-9)
    A = A @ A + cg.eye(4, dtype=A.dtype) * 9
    root = cg.linalg.sqrtm(A)
    assert root.dtype == A.dtype and cg.allclose(root @ root, A, rtol=1e-10, atol=1e-10)
    assert all(bool((cg.linalg.eigvals(each).real > 0).all()) for each in root)


def test_roots_of_hard_matrices():
    for a in ([[4.0, 1.0], [0.0, 4.0]], [[1e-8, 0.0], [1.0, 1e8]], [[0.0, 1.0], [-1.0, 0.0]], [[9.0]]):
        x = cg.linalg.sqrtm(cg.tensor(a, dtype=cg.float64))
        assert cg.allclose(x @ x, cg.tensor(a, dtype=cg.float64), rtol=1e-9, atol=1e-9)
    assert cg.linalg.sqrtm(cg.zeros(2, 0, 0)).shape == (2, 0, 0)
    x = cg.linalg.sqrtm(cg.tensor([[-4.0]], dtype=cg.complex128) + 1e-3j)
    assert cg.allclose(x @ x, cg.tensor([[-4 + 1e-3j]], dtype=cg.complex128)) and x.real.item() > 0


def test_values_are_scipys():
    linalg = pytest.importorskip("scipy.linalg")
    a, b, q = matrix(3, 3), matrix(4, 4), matrix(3, 4)
    expected = linalg.solve_sylvester(a.numpy(), b.numpy(), q.numpy())
    np.testing.assert_allclose(cg.linalg.solve_sylvester(a, b, q).numpy(), expected, rtol=1e-8)
    p = a @ a.T + cg.eye(3, dtype=cg.float64)
    np.testing.assert_allclose(cg.linalg.sqrtm(p).numpy(), linalg.sqrtm(p.numpy()), rtol=1e-9)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: cg.linalg.sqrtm(cg.tensor([[-1.0, 0.0], [0.0, 1.0]])), cg.linalg.LinAlgError, "singular, or has eigenvalues on the negative"),
    (lambda: cg.linalg.sqrtm(cg.zeros(2, 2)), cg.linalg.LinAlgError, "linalg.sqrtm: a matrix is singular"),
    (lambda: cg.linalg.sqrtm(cg.full((2, 2), cg.nan)), cg.linalg.LinAlgError, "non-finite"),
    (lambda: cg.linalg.sqrtm(cg.ones(2, 3)), RuntimeError, "linalg.sqrtm: A must be batches of square matrices"),
    (lambda: cg.linalg.solve_sylvester(cg.eye(2), -cg.eye(2), cg.eye(2)), cg.linalg.LinAlgError, "singular"),
    (lambda: cg.linalg.solve_sylvester(cg.eye(2), cg.eye(3), cg.eye(2)), RuntimeError, "Q must be 2 by 3 matrices, but they are 2 by 2"),
    (lambda: cg.linalg.solve_sylvester(cg.eye(2), cg.eye(2).double(), cg.eye(2)), RuntimeError, "must have the same dtype"),
])
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
