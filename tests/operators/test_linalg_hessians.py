"""Second derivatives of functions by factorisation, at matrices of every rank at which they exist, beside differences of mpmath."""

import itertools

import mpmath
import numpy as np
import pytest

import cygrad as cg
from cygrad.func import grad, hessian, jacfwd, jacrev, jvp, vmap

N = 4
FULL, NEARLY, ALL = (N,), (N - 1, N), (0, 1, N - 2, N - 1, N)
B = np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0], [-1.0, 0.25]])


def mp_matrix(array):
    return mpmath.matrix(array.tolist())


def above(M):
    """Return R of QR with a positive diagonal."""
    _, R = mpmath.qr(M, mode="skinny")
    return [R[i, j] * mpmath.conj(mpmath.sign(R[i, i])) for i in range(R.rows) for j in range(R.cols)]


def singular_values(M):
    return list(mpmath.svd_c(M * mpmath.mpc(1), compute_uv=False))


def leading_pair(M):
    U, _, V = mpmath.svd_c(M * mpmath.mpc(1))
    return list(U[:, 0] * V[0, :])


def place(z):
    """Return the key by which eigenvalues are sorted, conjugate ones too."""
    return z.real + 1.4 * z.imag if isinstance(z, mpmath.mpc) or z.is_complex() else z


def eigenvalues(M):
    return sorted(mpmath.eig(M * mpmath.mpc(1), left=False, right=False), key=place)


def leading_eigenvector(M):
    values, vectors = mpmath.eig(M * mpmath.mpc(1))
    v = vectors[:, max(range(N), key=lambda k: place(values[k]))]
    return list(v * v.H / (v.H * v)[0])


def hermitian_values(M):
    return list(mpmath.eighe(M * mpmath.mpc(1), eigvals_only=True))


def hermitian_leader(M):
    _, vectors = mpmath.eighe(M * mpmath.mpc(1))
    return list(vectors[:, N - 1] * vectors[:, N - 1].H)


def pseudoinverse(M):
    return mpmath.inverse(M.H * M) * M.H


def triangle(M):
    return mpmath.matrix(N, N) + mpmath.matrix([[M[i, j] if j <= i else 0 for j in range(N)] for i in range(N)])


def in_order(values):
    return values[place(values.detach()).argsort()]


def leader(pair):
    v = pair[1][:, place(pair[0].detach()).argmax().item()]
    return v.unsqueeze(-1) * v.conj() / (v * v.conj()).real.sum()


def positive(R):
    return R * R.diagonal().sgn().conj().unsqueeze(-1)


# Function of cygrad.linalg: (call, the same by mpmath, kind of matrix, ranks at which it has second derivatives).
TABLE = {
    "det": (cg.linalg.det, lambda M: [mpmath.det(M)], "any", ALL),
    "slogdet": (lambda x: cg.linalg.slogdet(x).logabsdet, lambda M: [mpmath.log(abs(mpmath.det(M)))], "any", FULL),
    "inv": (cg.linalg.inv, mpmath.inverse, "any", FULL),
    "inv_ex": (lambda x: cg.linalg.inv_ex(x).inverse, mpmath.inverse, "any", FULL),
    "tensorinv": (lambda x: cg.linalg.tensorinv(x, 1), mpmath.inverse, "any", FULL),
    "solve": (lambda x: cg.linalg.solve(x, rhs(x)), lambda M: mpmath.inverse(M) * mp_matrix(B), "any", FULL),
    "solve_ex": (lambda x: cg.linalg.solve_ex(x, rhs(x)).result, lambda M: mpmath.inverse(M) * mp_matrix(B), "any", FULL),
    "tensorsolve": (lambda x: cg.linalg.tensorsolve(x, rhs(x)[:, 0]), lambda M: mpmath.inverse(M) * mp_matrix(B[:, :1]), "any", FULL),
    "solve_triangular": (lambda x: cg.linalg.solve_triangular(x, rhs(x), upper=False),
                         lambda M: mpmath.inverse(triangle(M)) * mp_matrix(B), "any", FULL),
    "lu_solve": (lambda x: cg.linalg.lu_solve(*cg.linalg.lu_factor(x), rhs(x)), lambda M: mpmath.inverse(M) * mp_matrix(B), "any", FULL),
    "lu": (lambda x: cg.linalg.lu(x).U.diagonal().abs().log().sum(), lambda M: [mpmath.log(abs(mpmath.det(M)))], "any", FULL),
    "cholesky": (cg.linalg.cholesky, mpmath.cholesky, "positive", FULL),
    "cholesky_ex": (lambda x: cg.linalg.cholesky_ex(x).L, mpmath.cholesky, "positive", FULL),
    "qr": (lambda x: positive(cg.linalg.qr(x).R), above, "tall", (N - 1,)),
    "svdvals": (cg.linalg.svdvals, singular_values, "any", NEARLY),
    "svd": (lambda x: (lambda U, S, Vh: U[:, :1] @ Vh[:1])(*cg.linalg.svd(x)), leading_pair, "any", FULL),
    "eigvalsh": (cg.linalg.eigvalsh, hermitian_values, "Hermitian", NEARLY),
    "eigh": (lambda x: leader(cg.linalg.eigh(x)), hermitian_leader, "Hermitian", NEARLY),
    "eigvals": (lambda x: in_order(cg.linalg.eigvals(x)), eigenvalues, "any", NEARLY),
    "eig": (lambda x: leader(cg.linalg.eig(x)), leading_eigenvector, "any", NEARLY),
    "pinv": (cg.linalg.pinv, pseudoinverse, "tall", (N - 1,)),
    "lstsq": (lambda x: cg.linalg.lstsq(x, rhs(x)).solution, lambda M: pseudoinverse(M) * mp_matrix(B), "tall", (N - 1,)),
    "matrix_norm": (lambda x: cg.linalg.matrix_norm(x, 2), lambda M: singular_values(M)[:1], "any", NEARLY),
    "norm": (lambda x: cg.linalg.norm(x, "nuc"), lambda M: [sum(singular_values(M))], "any", FULL),
    "cond": (cg.linalg.cond, lambda M: [singular_values(M)[0] / singular_values(M)[-1]], "any", FULL),
    "matrix_exp": (lambda x: cg.linalg.matrix_exp(x / 8), lambda M: mpmath.expm(M / 8), "any", ALL),
    "sqrtm": (lambda x: cg.linalg.sqrtm(x / 8 + unit(x)), lambda M: mpmath.sqrtm(M / 8 + mpmath.eye(N)), "any", ALL),
    "solve_sylvester": (lambda x: cg.linalg.solve_sylvester(x + 20 * unit(x), x + 20 * unit(x), unit(x)),
                        lambda M: mpmath.inverse(M + 20 * mpmath.eye(N)) / 2, "any", ALL),
    "solve_banded": (lambda x: cg.linalg.solve_banded((3, 0), lower_bands(x), rhs(x)), lambda M: mpmath.inverse(triangle(M)) * mp_matrix(B),
                     "any", FULL),
    "solveh_banded": (lambda x: cg.linalg.solveh_banded(lower_bands(x), rhs(x), lower=True), lambda M: mpmath.inverse(M) * mp_matrix(B),
                      "positive", FULL),
    "matrix_power": (lambda x: cg.linalg.matrix_power(x, -2), lambda M: mpmath.inverse(M * M), "any", FULL),
}
# Functions without a factorisation, or without a derivative.
OTHERS = {"cross", "diagonal", "matmul", "multi_dot", "vander", "vecdot", "vector_norm", "matrix_rank", "ldl_factor", "ldl_factor_ex",
          "ldl_solve", "householder_product", "lu_factor", "lu_factor_ex"}  # fmt: skip
# Complex vectors are unique up to a phase, and a backward through their tangents is refused, since these depend on it.
WITH_PHASES = {"svd", "eigh", "eig"}
MODES = {
    "reverse over reverse": lambda f, x, e: in_direction(lambda a: in_direction(f, a, e), x, e),
    "forward over reverse": lambda f, x, e: jvp(lambda a: in_direction(f, a, e), (x,), (e,))[1],
    "reverse over forward": lambda f, x, e: in_direction(lambda a: jvp(f, (a,), (e,))[1], x, e),
    "forward over forward": lambda f, x, e: jvp(lambda a: jvp(f, (a,), (e,))[1], (x,), (e,))[1],
}


def unit(x):
    return cg.eye(N, dtype=x.dtype)


def lower_bands(x):
    """Return the diagonals of the lower triangle as rows, zeros behind them."""
    return cg.stack([cg.cat([x.diagonal(-k), x.new_zeros(k)]) for k in range(N)])


def rhs(x):
    return cg.tensor(B, dtype=x.dtype)


def in_direction(f, x, direction):
    """Return the derivative of a real function in a direction, by a backward."""
    g = grad(f)(x)
    return (g.conj() * direction).real.sum() if x.is_complex() else (g * direction).sum()


def operands(kind, rank, is_complex):
    """Return a matrix whose rank is exact, and a direction."""
    rng = np.random.default_rng(10 * rank + is_complex)

    def integers(*shape):
        return rng.integers(-3, 4, shape) + (1j * rng.integers(-3, 4, shape) if is_complex else 0.0)

    columns = N - 1 if kind == "tall" else N
    while True:
        left = integers(N, rank)
        scales = np.arange(1, rank + 1) * (1 if kind == "positive" else (-1) ** np.arange(rank))
        a = left * scales @ left.conj().T if kind in ("Hermitian", "positive") else left @ integers(rank, columns)
        if np.linalg.matrix_rank(a) == rank:
            break
    direction = integers(N, columns) / 4
    return a, direction + direction.conj().T if kind in ("Hermitian", "positive") else direction


def weighted(values, weights):
    """Return a real number that depends on both parts of all values."""
    return sum(w * value.real + v * value.imag for (w, v), value in zip(weights, values, strict=True))


def cases():
    """Return the kinds of all cases: (name, rank, whether complex)."""
    return [(name, rank, is_complex) for name, (_, _, _, ranks) in TABLE.items() for rank in ranks for is_complex in (False, True)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.cases(("name", "rank", "is_complex"), cases())
def test_second_derivatives(mode, name, rank, is_complex):
    call, true, kind, _ = TABLE[name]
    a, direction = operands(kind, rank, is_complex)
    weights = [(1 + k % 3, 0.5 - k % 2) for k in range(N * N)]
    nonzero = slice(None if name != "svdvals" else rank)    # the least singular value has a corner at 0

    def f(x):
        y = call(x).reshape(-1)[nonzero]
        w, v = np.array(weights[:y.numel()]).T
        return (y.real * cg.tensor(w) + y.imag * cg.tensor(v)).sum() if y.is_complex() else (y * cg.tensor(w)).sum()

    def exact(t):
        values = list(true(mp_matrix(a) + t * mp_matrix(direction)))[nonzero]
        return weighted([mpmath.mpc(value) for value in values], weights[:len(values)])

    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -15
        expected = float((exact(h) - 2 * exact(0) + exact(-h)) / h**2)
    x, e = cg.tensor(a), cg.tensor(direction, dtype=cg.complex128 if is_complex else cg.float64)
    if mode == "reverse over forward" and name in WITH_PHASES and (is_complex or name == "eig"):
        with pytest.raises(RuntimeError, match="ill-defined"):
            MODES[mode](f, x, e)
        return
    result = MODES[mode](f, x, e).item()
    assert abs(result - expected) <= 1e-9 * max(1, abs(expected)), (result, expected)


def test_every_function_of_linear_algebra_is_here():
    public = {name for name in dir(cg.linalg) if not name.startswith("_") and name[0].islower()}
    assert public - OTHERS == set(TABLE), "give second derivatives in TABLE, or the name in OTHERS"
    assert public - set(TABLE) >= OTHERS


# ----- Determinants, whole -----
def minors(A):
    """Return the second derivatives of det: signed determinants without two rows and two columns."""
    n = len(A)
    result = np.zeros((n,) * 4, A.dtype)
    for i, j, k, m in itertools.product(range(n), repeat=4):
        if i != k and j != m:
            rows, columns = ([d for d in range(n) if d not in pair] for pair in ((i, k), (j, m)))
            sign = (-1) ** (i + j + k + m) * (1 if (i < k) == (j < m) else -1)
            result[i, j, k, m] = sign * np.linalg.det(A[np.ix_(rows, columns)])
    return result


RNG = np.random.default_rng(1)
DEGENERATE = {
    "ones": np.ones((3, 3)), "zeros": np.zeros((3, 3)), "eye": np.eye(3), "rank 2": RNG.random((3, 2)) @ RNG.random((2, 3)),
    "regular": RNG.random((3, 3)), "diagonal": np.diag([2.0, 0, 0]), "twice": np.diag([2.0, 2, 0]),
    "graded": np.diag([1, 1e-9, 1e-9]) @ RNG.random((3, 3)), "nearly": np.diag([1, 1, 1e-12]) @ RNG.random((3, 3)),
    "small": np.eye(3) * 1e-30,
}  # fmt: skip


@pytest.mark.cases("outer", [jacrev, jacfwd])
@pytest.mark.cases("inner", [jacrev, jacfwd])
@pytest.mark.cases("name", DEGENERATE)
def test_hessians_of_determinants(outer, inner, name):
    a = DEGENERATE[name]
    result = outer(inner(cg.linalg.det))(cg.tensor(a)).numpy()
    np.testing.assert_allclose(result, minors(a), rtol=1e-9, atol=1e-14 * np.abs(a).max())


def test_hessians_of_determinants_of_a_batch_of_any_ranks():
    batch = np.stack([*DEGENERATE.values()])
    expected = np.stack([minors(a) for a in DEGENERATE.values()])
    np.testing.assert_allclose(vmap(hessian(cg.linalg.det))(cg.tensor(batch)).numpy(), expected, rtol=1e-9, atol=1e-14)
    whole = hessian(lambda x: cg.linalg.det(x).sum())(cg.tensor(batch)).numpy()
    for k in range(len(batch)):
        np.testing.assert_allclose(whole[k, :, :, k], expected[k], rtol=1e-9, atol=1e-14)


def test_third_derivatives_of_determinants():
    signs = np.zeros((3, 3, 3))
    for places in itertools.permutations(range(3)):
        signs[places] = np.linalg.det(np.eye(3)[list(places)])
    expected = np.einsum("ace,bdf->abcdef", signs, signs)
    for a in DEGENERATE.values():
        np.testing.assert_allclose(jacrev(jacrev(jacrev(cg.linalg.det)))(cg.tensor(a)).numpy(), expected, atol=1e-5)


@pytest.mark.cases("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.cases("n", [0, 1, 2, 5, 40])
def test_every_size_has_a_second_derivative_of_its_dtype(n, dtype):
    for rank in {0, n // 2, max(n - 1, 0), n}:
        left, right = (cg.randn(n, rank, dtype=getattr(cg, dtype), rng=k) for k in (1, 2))
        x = (left @ right.mT / max(n, 1)).requires_grad_()
        first, = cg.autograd.grad(cg.linalg.det(x).abs(), x, create_graph=True)
        second, = cg.autograd.grad(first.abs().sum(), x)
        assert second.dtype == x.dtype and second.shape == x.shape and not second.isnan().any()
