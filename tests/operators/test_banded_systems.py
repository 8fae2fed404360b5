"""Solutions by matrices of few diagonals against dense ones, whichever code computes their factors, and errors."""

import numpy as np
import pytest

import cygrad as cg
from cygrad._kernels.matrices.loops import use_lapack

RNG = np.random.default_rng(3)
SHAPES = [(0, 0, 4), (1, 1, 4), (2, 0, 4), (0, 3, 5), (5, 6, 4), (1, 1, 1), (3, 2, 60), (17, 4, 60), (30, 25, 100), (1, 1, 0)]
DTYPES = ["float32", "float64", "complex64", "complex128"]
LIBRARIES = ["numpy", "scipy", "none"]


@pytest.fixture(params=LIBRARIES)
def library(request):
    """LAPACK of one library alone, or none at all."""
    if not use_lapack(request.param) and request.param != "none":
        use_lapack("numpy")
        pytest.skip(f"{request.param} has no LAPACK to call")
    yield request.param
    use_lapack("numpy")


def drawn(dtype, *shape):
    numbers = RNG.standard_normal(shape) + (1j * RNG.standard_normal(shape) if dtype.startswith("complex") else 0)
    return numbers.astype(dtype)


def dense(ab, below, above):
    """Return the matrix of bands, and write NaN in all elements of these that are outside of it."""
    n = ab.shape[1]
    matrix, rows = np.zeros((n, n), ab.dtype), np.arange(n) + np.arange(below + above + 1)[:, None] - above
    inside = (rows >= 0) & (rows < n)
    matrix[rows[inside], np.broadcast_to(np.arange(n), rows.shape)[inside]] = ab[inside]
    ab[~inside] = np.nan
    return matrix


def close(x, y):
    return np.abs(x - y).max(initial=0) <= 1e3 * np.finfo(x.dtype).eps * np.abs(y).max(initial=0)


@pytest.mark.cases("shape", SHAPES)
@pytest.mark.cases("dtype", DTYPES)
def test_values(library, shape, dtype):
    below, above, n = shape
    ab = drawn(dtype, below + above + 1, n)
    ab[above] += 2 * (below + above) + 1
    matrix = dense(ab, below, above)
    for b in (drawn(dtype, n), drawn(dtype, n, 3)):
        assert close(cg.linalg.solve_banded((below, above), cg.tensor(ab), cg.tensor(b)).numpy(), np.linalg.solve(matrix, b))
    side, weights = cg.tensor(b, requires_grad=True), drawn(dtype, n, 3)
    x = cg.linalg.solve_banded((below, above), cg.tensor(ab).mT.contiguous().mT, side)
    adjoint, = cg.autograd.grad(x, side, cg.tensor(weights))
    assert close(x.detach().numpy(), np.linalg.solve(matrix, b)) and close(adjoint.numpy(), np.linalg.solve(matrix.conj().T, weights))


@pytest.mark.cases("shape", SHAPES)
@pytest.mark.cases("dtype", DTYPES)
def test_values_of_definite_matrices(library, shape, dtype):
    below, _, n = shape
    ab = drawn(dtype, below + 1, n)
    ab[0] = np.abs(ab[0]) + 4 * below + 1
    half = dense(ab, below, 0)
    matrix = half + np.tril(half, -1).conj().T
    for b in (drawn(dtype, n), drawn(dtype, n, 3)):
        expected = np.linalg.solve(matrix, b)
        assert close(cg.linalg.solveh_banded(cg.tensor(ab), cg.tensor(b), lower=True).numpy(), expected)
        upper = np.stack([np.concatenate([ab[k][n - min(k, n):], ab[k][:n - min(k, n)].conj()]) for k in range(below, -1, -1)])
        assert close(cg.linalg.solveh_banded(cg.tensor(upper), cg.tensor(b)).numpy(), expected)


@pytest.mark.parametrize("is_complex", [False, True])
def test_tiny_pivots(library, is_complex):
    """Where LAPACK divides by a pivot that has no inverse, factors are computed again."""
    n, tiny = 60, np.finfo(np.float64).tiny / 8
    ab = np.zeros((36, n), np.complex128 if is_complex else np.float64)
    ab[17] = tiny
    x = cg.linalg.solve_banded((18, 17), cg.tensor(ab), cg.tensor(ab[17] * 2)).numpy()
    assert (x == 2).all()


def test_a_backward_factors_nothing_again(monkeypatch):
    from cygrad.operators import banded_systems
    ab, b = cg.tensor([[0.0, 1, 1], [4, 4, 4], [1, 1, 0]], dtype=cg.float64, requires_grad=True), cg.ones(3, dtype=cg.float64)
    x = cg.linalg.solve_banded((1, 1), ab, b)
    monkeypatch.setattr(banded_systems, "_lu", None)
    first, = cg.autograd.grad(x.square().sum(), ab, create_graph=True)
    cg.autograd.grad(first.sum(), ab)


def test_gradients_outside_of_the_matrix_are_zero():
    ab = cg.tensor([[cg.nan, 1, 1], [4, 4, 4], [1, 1, cg.nan]], dtype=cg.float64, requires_grad=True)
    gradient, = cg.autograd.grad(cg.linalg.solve_banded((1, 1), ab, cg.ones(3, dtype=cg.float64)).sum(), ab)
    assert gradient[0, 0] == gradient[2, 2] == 0 and gradient.isfinite().all()


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: cg.linalg.solve_banded((1, 1), cg.ones(2, 3), cg.ones(3)), RuntimeError, r"l \+ u \+ 1 rows.*it has 2 for \(1, 1\)"),
    (lambda: cg.linalg.solve_banded((-1, 2), cg.ones(2, 3), cg.ones(3)), RuntimeError, r"l \+ u \+ 1 rows"),
    (lambda: cg.linalg.solve_banded((1, 0), cg.ones(2, 3), cg.ones(2)), RuntimeError, "b must have 3 rows"),
    (lambda: cg.linalg.solve_banded((1, 0), cg.ones(2, 3), cg.ones(3).double()), RuntimeError, "Expected ab and b to have the same dtype"),
    (lambda: cg.linalg.solve_banded((1, 0), cg.ones(2, 3).int(), cg.ones(3)), RuntimeError, "Expected a floating point or complex tensor"),
    (lambda: cg.linalg.solve_banded((1, 0), cg.zeros(2, 3), cg.ones(3)), cg.linalg.LinAlgError, "solve_banded: The solver failed because"),
    (lambda: cg.linalg.solve_banded((0, 0), cg.tensor([[[1.0, 1]], [[1, 0]]]), cg.ones(2)), cg.linalg.LinAlgError, "Batch element 1"),
    (lambda: cg.linalg.solveh_banded(cg.tensor([[1.0, 1], [2, 0]]), cg.ones(2), lower=True), cg.linalg.LinAlgError,
     "leading minor of order 2 is not positive-definite"),
    (lambda: cg.linalg.solveh_banded(cg.ones(0, 2), cg.ones(2)), RuntimeError, "a row for each diagonal, but it has none"),
    (lambda: cg.linalg.solveh_banded(cg.ones(1, 2), cg.ones(3)), RuntimeError, "b must have 2 rows"),
])
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
