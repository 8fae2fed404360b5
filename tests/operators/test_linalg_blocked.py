"""Large real matrices, which are factored and solved by blocks: sizes around the blocks', hostile numbers, threads."""

import numpy as np
import pytest

import cygrad as cg

SIZES = [25, 49, 70, 257, 300]
EPS = {"float32": np.finfo("float32").eps, "float64": np.finfo("float64").eps}


def drawn(dtype, *shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def residual(triangle, x, b):
    """Return the largest |T x - b| of a row, in units of its |T| |x| + |b|."""
    triangle, x, b = (each.astype(np.longdouble) for each in (triangle, x, b))
    return float((np.abs(triangle @ x - b) / (np.abs(triangle) @ np.abs(x) + np.abs(b))).max())


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("n", SIZES)
def test_factors_and_inverses(dtype, n):
    a, eps = drawn(dtype, n, n), EPS[dtype]
    for array in (a, a[:, : n - 20], a[: n - 20]):
        P, L, U = cg.linalg.lu(cg.tensor(array))
        assert np.abs((P @ L @ U).numpy() - array).max() <= n * eps * float((L.abs() @ U.abs()).max())
        assert L.abs().max() <= 1
    inverse = cg.linalg.inv(cg.tensor(a)).numpy()
    assert np.abs(a @ inverse - np.eye(n)).max() <= n * eps * (np.abs(a) @ np.abs(inverse)).max()
    definite = a @ a.T + n * np.eye(n, dtype=dtype)
    factor = cg.linalg.cholesky(cg.tensor(np.tril(definite))).numpy()
    assert np.abs(factor @ factor.T - definite).max() <= n * eps * definite.max()
    definite[n - 5, n - 5] = -1
    assert cg.linalg.cholesky_ex(cg.tensor(definite)).info == n - 4
    a[:, 20] = 0
    assert cg.linalg.lu_factor_ex(cg.tensor(a)).info == 21


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("shape", [(57, 57), (60, 81), (130, 66), (257, 257)])
def test_reflections(dtype, shape):
    array, eps = drawn(dtype, *shape), EPS[dtype]
    for scale in (1.0, float(np.finfo(dtype).max) / 1e3, float(np.finfo(dtype).tiny)):
        scaled = (array * scale).astype(dtype)
        Q, R = (part.numpy() for part in cg.linalg.qr(cg.tensor(scaled)))
        assert np.abs(Q.T @ Q - np.eye(Q.shape[1])).max() <= max(shape) * eps
        if scale >= 1:
            assert np.abs(Q.astype(np.longdouble) @ R - scaled).max() <= max(shape) * eps * np.abs(scaled).max()
        assert (np.triu(R) == R).all()
    signs = np.sign(np.diagonal(np.linalg.qr(array)[1]))
    np.testing.assert_array_equal(np.sign(np.diagonal(cg.linalg.qr(cg.tensor(array)).R.numpy())), signs)     # LAPACK's
    array[:, 20] = 0
    Q, R = (part.numpy() for part in cg.linalg.qr(cg.tensor(array)))
    assert np.abs(Q @ R - array).max() <= max(shape) * eps * 10


def test_pivots_equal_lapacks():
    linalg = pytest.importorskip("scipy.linalg", reason="SciPy is not installed")
    for n in (30, 100, 300):
        array = drawn("float64", n, n)
        np.testing.assert_array_equal(cg.linalg.lu_factor(cg.tensor(array)).pivots.numpy() - 1, linalg.lu_factor(array)[1])
    array[[216, 37, 21, 99, 299], 0] = [9, -9, 9, 9, -9]     # the first of the largest
    assert cg.linalg.lu_factor(cg.tensor(array)).pivots[0] == 22


def triangles(n):
    """Yield lower triangles that are ill-conditioned, each in its own way."""
    sine, ones = np.sin(1.2) ** np.arange(n), np.tril(np.ones((n, n)), -1)
    left, right = (np.linalg.qr(drawn("float64", n, n + k))[0] for k in (0, 1))
    yield np.tril(drawn("float64", n, n))                                               # 2^n
    yield (np.diag(sine) @ (np.eye(n) - np.cos(1.2) * ones.T)).T                        # Kahan's
    yield np.linalg.qr(left @ np.diag(np.logspace(0, -12, n)) @ right.T)[1].T
    yield np.tril(drawn("float64", n, n)) * np.logspace(30, -30, n)


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("n", SIZES)
def test_solutions_with_any_triangle_have_small_residuals_in_each_row(dtype, n):
    b = drawn(dtype, n, 11)
    for triangle in triangles(n):
        lower = triangle.astype(dtype)
        for upper, array in ((False, lower), (True, lower.T), (True, lower[::-1, ::-1])):
            for a in (cg.tensor(array), cg.tensor(array.T.copy()).mT):
                x = cg.linalg.solve_triangular(a, cg.tensor(b), upper=upper).numpy()
                if np.isfinite(x).all():
                    assert residual(array, x, b) <= 16 * EPS[dtype]
    unit = np.tril(drawn(dtype, n, n), -1) / n
    x = cg.linalg.solve_triangular(cg.tensor(unit), cg.tensor(b), upper=False, unitriangular=True).numpy()
    assert residual(unit + np.eye(n, dtype=dtype), x, b) <= 16 * EPS[dtype]


@pytest.mark.cases("dtype", EPS)
def test_pivots_without_an_inverse_are_divided_by(dtype):
    least = float(np.finfo(dtype).tiny) / 16
    for size in (least, float(np.finfo(dtype).max) / 2):
        b = np.full((40, 3), size, dtype)
        x = cg.linalg.solve_triangular(cg.tensor(np.eye(40, dtype=dtype) * size), cg.tensor(b), upper=False)
        assert (x == 1).all()


def test_elements_solved_before_a_pivot_of_0_stay_finite():
    array = np.tril(drawn("float64", 60, 60)) + 9 * np.eye(60)
    array[37, 37] = 0
    x = cg.linalg.solve_triangular(cg.tensor(array), cg.ones(60, 3, dtype=cg.float64), upper=False)
    assert x[:37].isfinite().all() and x[37].isinf().all() and not x[38:].isfinite().any()


@pytest.mark.cases("function", ["solve", "inv", "cholesky", "lu_factor", "triangle"])
def test_bits_depend_on_neither_threads_nor_columns_nor_places(function):
    n, threads = 900, cg.get_num_threads()
    array = drawn("float64", n, n) + 40 * np.eye(n)
    compute = {
        "solve": lambda a, b: cg.linalg.solve(a, b),
        "inv": lambda a, b: cg.linalg.inv(a),
        "cholesky": lambda a, b: cg.linalg.cholesky(a @ a.mT),
        "lu_factor": lambda a, b: cg.linalg.lu_factor(a).LU,
        "triangle": lambda a, b: cg.linalg.solve_triangular(a, b, upper=True),
    }[function]
    a, b = cg.tensor(array), cg.tensor(drawn("float64", n, n + 1))
    cg.set_num_threads(1)
    try:
        expected = compute(a, b)
        cg.set_num_threads(3)
        assert cg.equal(compute(a, b), expected)
    finally:
        cg.set_num_threads(threads)
    moved = cg.zeros(n * n + 1, dtype=cg.float64)[1:].view(n, n).copy_(a)
    if function in ("solve", "triangle"):
        assert cg.equal(compute(moved, b[:, 3:5]), expected[:, 3:5])
    elif function != "cholesky":
        assert cg.equal(compute(moved, b), expected)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_the_gradient_of_a_large_factor_by_blocks(batch, upper):
    """Of three blocks, the last one smaller: along directions, and again, as the whole formula has it for small matrices."""
    rng, size = np.random.default_rng(0), 200
    half, weight, direction = (cg.tensor(rng.standard_normal((*batch, size, size))) for _ in range(3))
    matrix = (half @ half.mT + size * cg.eye(size, dtype=cg.float64)).requires_grad_()
    direction = direction + direction.mT

    def value(matrix):
        return (cg.linalg.cholesky(matrix, upper=upper) * weight).sum()

    gradient, = cg.autograd.grad(value(matrix), matrix, create_graph=True)
    assert np.array_equal(gradient.detach(), gradient.detach().mT)
    slope, = cg.func.jvp(value, (matrix.detach(),), (direction,))[1:]
    np.testing.assert_allclose((gradient * direction).sum().item(), slope.item(), rtol=1e-10)
    along, = cg.autograd.grad((gradient * direction).sum(), matrix)
    step = 1e-4
    ahead, behind = (cg.autograd.grad(value(moved), moved)[0] for moved in
                     ((matrix.detach() + sign * step * direction).requires_grad_() for sign in (1, -1)))
    np.testing.assert_allclose(along, (ahead - behind) / (2 * step), rtol=0, atol=1e-6 * along.abs().max().item())


def test_a_batch_of_gradients_of_a_large_factor():
    size = 200
    matrix = (cg.rand(size, size, dtype=cg.float64) + size * cg.eye(size, dtype=cg.float64))
    matrix = (matrix + matrix.mT).requires_grad_()
    factor, weights = cg.linalg.cholesky(matrix), cg.rand(3, size, size, dtype=cg.float64)
    many, = cg.autograd.grad(factor, matrix, weights, is_grads_batched=True, retain_graph=True)
    for one, weight in zip(many, weights, strict=True):
        np.testing.assert_allclose(one, cg.autograd.grad(factor, matrix, weight, retain_graph=True)[0], rtol=1e-12, atol=1e-15)
