"""Solves with sparse matrices, direct and iterative, and SciPy's matrices: values against dense solves, all derivatives, refusals."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import gradcheck, gradgradcheck

scipy_sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
LAYOUTS = (cg.sparse_coo, cg.sparse_csr, cg.sparse_csc)
rng = np.random.default_rng(0)
MATRIX = np.where(rng.random((5, 5)) < 0.4, rng.standard_normal((5, 5)), 0) + 4 * np.eye(5)
POSITIVE = MATRIX @ MATRIX.T
DTYPES = (cg.float64, cg.complex128)


def dense_of(matrix, dtype):
    return cg.tensor(matrix * (1 + 0.3j) if dtype is cg.complex128 else matrix)


# ----- Direct -----
DIRECT = {"spsolve": cg.sparse.spsolve, "factorized": lambda A, b: cg.sparse.factorized(A)(b)}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.cases("name", list(DIRECT))
@pytest.mark.cases("shape", [(5,), (5, 2)])
def test_direct_solves(layout, dtype, name, shape):
    solve, dense = DIRECT[name], dense_of(MATRIX, dtype)
    A, b = dense.to_sparse(layout=layout).requires_grad_(), cg.randn(*shape, dtype=dtype).requires_grad_()
    assert cg.allclose(solve(A, b), cg.linalg.solve(dense, b))
    assert gradcheck(solve, (A, b), masked=True, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(solve, (A, b), masked=True, check_fwd_over_rev=True)


@pytest.mark.parametrize("dtype", [cg.float32, cg.complex64], ids=str)
def test_single_precision(dtype):
    A, b = dense_of(MATRIX, cg.float64).to(dtype).to_sparse_csr(), cg.ones(5, dtype=dtype)
    assert cg.sparse.spsolve(A, b).dtype == dtype and cg.allclose(A @ cg.sparse.spsolve(A, b), b, atol=1e-5)


def test_batches_of_sides_and_of_values():
    A = dense_of(MATRIX, cg.float64).to_sparse_csr()
    b, values = cg.randn(3, 5, dtype=cg.float64), cg.stack([A.values(), A.values() * 2])
    solved = cg.func.vmap(lambda b: cg.sparse.spsolve(A, b))(b)
    assert cg.allclose(solved, cg.stack([cg.sparse.spsolve(A, one) for one in b]))
    of = cg.func.vmap(lambda v: cg.sparse.spsolve(cg.sparse_csr_tensor(A.crow_indices(), A.col_indices(), v, A.shape), b[0]))(values)
    assert cg.allclose(of, cg.stack([cg.sparse.spsolve(A, b[0]), cg.sparse.spsolve(A, b[0]) / 2]))


def test_a_backward_factors_nothing_again(monkeypatch):
    from cygrad.operators import sparse_solving
    A, b = dense_of(MATRIX, cg.float64).to_sparse_csr().requires_grad_(), cg.ones(5, dtype=cg.float64)
    x = cg.sparse.spsolve(A, b)
    monkeypatch.setattr(sparse_solving, "_factorized", None)
    first, = cg.autograd.grad(x.square().sum(), A, create_graph=True)
    cg.autograd.grad(first.sum(), A)


# ----- Iterative -----
PRECISE = {"rtol": 1e-13}
ITERATIVE = {
    "gmres": lambda A, b: cg.sparse.gmres(A, b, **PRECISE),
    "columns": lambda A, b: cg.sparse.gmres(A, cg.stack([b, 2 * b], 1), **PRECISE),
    "a dense matrix": lambda A, b: cg.sparse.gmres(A.to_dense(), b, **PRECISE),
    "a function": lambda A, b: cg.sparse.gmres(lambda x, A: A @ x, b, args=(A.to_dense(),), **PRECISE),
    "a matrix as preconditioner": lambda A, b: cg.sparse.gmres(A, b, M=cg.tensor(np.linalg.inv(MATRIX)), **PRECISE),
    "a function as preconditioner": lambda A, b: cg.sparse.gmres(A, b, M=lambda x: x / 4, **PRECISE),
    "a start": lambda A, b: cg.sparse.gmres(A, b, cg.ones(5, dtype=cg.float64), **PRECISE),
}


@pytest.mark.parametrize("name", ITERATIVE)
def test_iterative_solves(name):
    solve, dense = ITERATIVE[name], dense_of(MATRIX, cg.float64)
    A, b = dense.to_sparse_csr().requires_grad_(), cg.randn(5, dtype=cg.float64, requires_grad=True)
    expected = cg.linalg.solve(dense, b)
    assert cg.allclose(solve(A, b), cg.stack([expected, 2 * expected], 1) if name == "columns" else expected)
    assert gradcheck(solve, (A, b), masked=True, check_forward_ad=True)
    assert gradgradcheck(solve, (A, b), masked=True)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_gradients_equal_the_gradients_of_a_direct_solve(name):
    A, b = cg.tensor(POSITIVE).to_sparse_csr().requires_grad_(), cg.randn(5, dtype=cg.float64, requires_grad=True)
    weights = cg.randn(5, dtype=cg.float64)
    results = [cg.autograd.grad(solve(A, b) @ weights, (A, b)) for solve in
               (cg.sparse.spsolve, lambda A, b: getattr(cg.sparse, name)(A, b, **PRECISE))]
    assert all(cg.allclose(one.to_dense(), other.to_dense()) for one, other in zip(*results, strict=True))


def test_complex_iterations():
    A, b = dense_of(MATRIX, cg.complex128).to_sparse_csr().requires_grad_(), cg.randn(5, dtype=cg.complex128).requires_grad_()
    assert gradcheck(lambda A, b: cg.sparse.gmres(A, b, **PRECISE), (A, b), masked=True)


# ----- SciPy's matrices -----
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_matrices_of_scipy(form, kind):
    A = getattr(scipy_sparse, f"{form}_{kind}")(scipy_sparse.coo_array(MATRIX) if kind == "array" else scipy_sparse.coo_matrix(MATRIX))
    for x in (cg.sparse.from_scipy(A), cg.as_tensor(A)):
        assert cg.equal(x.to_dense(), cg.tensor(MATRIX))
        assert (x.to_scipy().toarray() == MATRIX).all() and x.to_scipy().format == (form if form in ("coo", "csc") else "csr")
        if form in ("csr", "csc", "coo"):
            assert np.shares_memory(A.data, x._values().numpy()) and np.shares_memory(x.to_scipy().data, x._values().numpy())
    dense = cg.tensor(MATRIX).to_sparse_csr()
    for product in (A @ dense, dense @ A):
        assert product.layout is not cg.strided and cg.allclose(product.to_dense(), cg.tensor(MATRIX @ MATRIX))


def test_places_of_scipy_are_made_distinct():
    A = scipy_sparse.csr_array((np.array([1.0, 2, 3]), np.array([1, 0, 1]), np.array([0, 3])), (1, 2))
    assert cg.sparse.from_scipy(A).values().tolist() == [2, 4] and A.data.tolist() == [1, 2, 3]
    v = scipy_sparse.coo_array(np.array([0.0, 2, 0]))
    assert cg.sparse.from_scipy(v).to_dense().tolist() == [0, 2, 0]


def test_a_map_of_scipy():
    """SciPy's iterations on a compiled function of tensors."""
    linalg = pytest.importorskip("scipy.sparse.linalg")
    A = cg.tensor(POSITIVE).to_sparse_csr()
    product = cg.compile(lambda x: A.to_dense() @ x)
    operator = linalg.LinearOperator((5, 5), lambda x: product(cg.from_numpy(x)).numpy(), dtype=float)
    x, info = linalg.cg(operator, np.ones(5), rtol=1e-12)
    assert info == 0 and np.allclose(POSITIVE @ x, 1)


# ----- Refusals -----
SINGULAR, ROTATION = cg.tensor([[1.0, 0], [0, 0]]), cg.tensor([[0.0, 1], [-1, 0]])
REFUSED = {
    "singular": (lambda: cg.sparse.spsolve(SINGULAR.to_sparse_csr(), cg.ones(2)), cg.linalg.LinAlgError, "the input matrix is singular"),
    "a zero pivot": (lambda: cg.sparse.factorized(cg.sparse_coo_tensor([[0, 1], [0, 1]], [1.0, 0.0], (2, 2))), cg.linalg.LinAlgError,
                     "singular"),
    "not finite": (lambda: cg.sparse.spsolve(cg.tensor([[1e-320, 0], [0, 1]], dtype=cg.float64).to_sparse_csr(),
                                             cg.ones(2, dtype=cg.float64)), cg.linalg.LinAlgError, "the residual of its finite part is"),
    "dense": (lambda: cg.sparse.spsolve(cg.eye(2), cg.ones(2)), RuntimeError, "A must be a sparse tensor"),
    "not square": (lambda: cg.sparse.spsolve(cg.ones(2, 3).to_sparse(), cg.ones(2)), RuntimeError, "A must be a square matrix"),
    "side of another size": (lambda: cg.sparse.spsolve(cg.eye(2).to_sparse(), cg.ones(3)), RuntimeError, "Incompatible shapes of A and b"),
    "side of another dtype": (lambda: cg.sparse.spsolve(cg.eye(2).to_sparse(), cg.ones(2, dtype=cg.float64)), RuntimeError,
                              "Expected A and b to have the same dtype"),
    "no tensor": (lambda: cg.sparse.spsolve(MATRIX, cg.ones(5)), TypeError, "argument 'A' .* must be Tensor, not ndarray"),
    "no convergence": (lambda: cg.sparse.cg(cg.tensor(POSITIVE).to_sparse_csr(), cg.ones(5, dtype=cg.float64), rtol=1e-12, maxiter=1),
                       RuntimeError, r"sparse.cg: no convergence after 1 iterations: the residual is \S+ times the right side"),
    "breakdown": (lambda: cg.sparse.bicgstab(ROTATION.to_sparse_csr(), cg.tensor([1.0, 0])), RuntimeError, "the residual is"),
    "a number": (lambda: cg.sparse.cg(3, cg.ones(2)), TypeError, "expected a matrix, sparse or dense, or a linear function of a tensor"),
    "sizes": (lambda: cg.sparse.cg(cg.eye(3), cg.ones(2)), RuntimeError, "Incompatible shapes of A and b"),
    "no matrix of SciPy's": (lambda: cg.sparse.from_scipy(MATRIX), TypeError, "expected a sparse matrix or array of SciPy's, not ndarray"),
    "a history": (lambda: cg.eye(2).to_sparse().requires_grad_().to_scipy(), RuntimeError, "requires grad"),
    "values with dims": (lambda: cg.ones(2, 3).to_sparse(1).to_scipy(), RuntimeError, "no sparse arrays whose values have dims"),
    "dense to SciPy": (lambda: cg.eye(2).to_scipy(), RuntimeError, "expected sparse tensor layout but got Strided"),
}


@pytest.mark.cases("name", list(REFUSED))
def test_refusals(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()


# ----- Captured -----
def weighted_loss(solve, A, b):
    """Return the square of a solution, with its gradients."""
    x = solve(A, b)
    return x.detach(), *cg.autograd.grad((x * x).sum(), (A, b))


CAPTURED = {
    "spsolve": cg.sparse.spsolve,
    "factorized": lambda A, b: cg.sparse.factorized(A)(b),
    "two sides": lambda A, b: cg.sparse.factorized(A)(cg.sparse.factorized(A)(b)),
    "the adjoint": lambda A, b: cg.sparse.spsolve(A.t(), b),
    "cg": lambda A, b: cg.sparse.cg(A, b),
    "gmres with a preconditioner": lambda A, b: cg.sparse.gmres(A, b, M=cg.eye(5, dtype=cg.float64) / 4),
    "a start": lambda A, b: cg.sparse.bicgstab(A, b, b),
    "a dense matrix": lambda A, b: cg.sparse.gmres(A.to_dense(), b, rtol=1e-12),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@pytest.mark.cases("name", list(CAPTURED))
def test_solves_are_captured(layout, name):
    solve = CAPTURED[name]
    compiled, pattern = cg.compile(solve, fullgraph=True), cg.tensor(POSITIVE).to_sparse(layout=layout)
    for number in range(3):
        A, b = (pattern * (1 + number / 4)).requires_grad_(), (cg.arange(5.0, dtype=cg.float64) - number).requires_grad_()
        for one, other in zip(weighted_loss(compiled, A, b), weighted_loss(solve, A, b), strict=True):
            assert cg.equal(one.to_dense(), other.to_dense())
    assert compiled.cache_info() == (2, 1, 0, 1)


def test_steps_of_an_implicit_method_are_captured():
    """Heat in a rod: the matrix depends on a parameter, and a solve is a step."""
    places = cg.tensor(np.diag(np.ones(5)) + np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)).to_sparse_csr()
    laplacian = cg.tensor(np.diag(np.full(5, 2.0)) - np.diag(np.ones(4), 1) - np.diag(np.ones(4), -1))

    def end(u, rate):
        A = (cg.eye(5, dtype=cg.float64) + rate * laplacian).sparse_mask(places)
        for _ in range(4):
            u = cg.sparse.spsolve(A, u)
        return u.square().sum()

    compiled = cg.compile(end, fullgraph=True)
    for number in range(3):
        u, rate = cg.arange(5.0, dtype=cg.float64).requires_grad_(), cg.tensor(0.1 + number, dtype=cg.float64, requires_grad=True)
        assert all(map(cg.equal, cg.autograd.grad(compiled(u, rate), (u, rate)), cg.autograd.grad(end(u, rate), (u, rate))))
    assert compiled.cache_info().hits == 2


def test_factors_that_a_function_names():
    A, side = cg.tensor(POSITIVE).to_sparse_csr(), cg.ones(5, dtype=cg.float64)
    solve = cg.sparse.factorized(A)
    compiled = cg.compile(lambda b: solve(b), fullgraph=True)
    for number in range(3):
        assert cg.equal(compiled(side + number), cg.sparse.spsolve(A, side + number))
    A.values().mul_(2)
    assert cg.equal(solve(side), cg.sparse.spsolve(A, side)) and cg.equal(compiled(side), cg.sparse.spsolve(A, side))
    assert compiled.cache_info() == (3, 1, 0, 1)


def test_a_singular_matrix_in_a_captured_function():
    A, compiled = cg.eye(2).to_sparse_csr(), cg.compile(cg.sparse.spsolve, fullgraph=True)
    for matrix in (A, A * 2):
        compiled(matrix, cg.ones(2))
    for solve in (compiled, cg.sparse.spsolve):
        with pytest.raises(cg.linalg.LinAlgError, match="the input matrix is singular"):
            solve(A * 0, cg.ones(2))
    assert cg.equal(compiled(A * 4, cg.ones(2)), cg.full((2,), 0.25))


def test_a_solution_of_zeros_has_memory_of_its_own():
    b = cg.zeros(2)
    cg.sparse.cg(cg.eye(2).to_sparse_csr(), b).add_(1)
    assert b.tolist() == [0, 0]
