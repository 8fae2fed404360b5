"""Systems, inverses and determinants by factors: in every dtype and layout, with every LAPACK and none, and unsolvable inputs."""

import itertools
import math

import numpy as np
import pytest

import cygrad as cg
from cygrad._core.compute.matrices import MatrixLoop
from cygrad._kernels.matrices.loops import use_lapack
from cygrad.operators import determinants, factorizations, solving

EPS = {"float32": 2e-4, "float64": 1e-11, "complex64": 2e-4, "complex128": 1e-11}
SQUARE = [(1, 1), (2, 2), (3, 3), (2, 3, 4, 4), (5, 5), (0, 0), (0, 3, 3), (2, 0, 0), (40, 40)]
SHAPES = [*SQUARE, (5, 3), (3, 5), (2, 3, 5, 2), (0, 3), (3, 0), (70, 30)]
LAYOUTS = {
    "dense": lambda a: cg.tensor(a),
    "transposed": lambda a: cg.tensor(np.ascontiguousarray(a.swapaxes(-1, -2))).mT,
    "steps": lambda a: cg.tensor(np.repeat(np.repeat(a, 2, -1), 3, -2))[..., ::3, ::2],
    "reversed": lambda a: cg.from_numpy(np.ascontiguousarray(a[..., ::-1, ::-1])).flip((-1, -2)),
}


@pytest.fixture(params=["numpy", "scipy", "none"])
def lapack(request):
    if not use_lapack(request.param) and request.param != "none":
        use_lapack("numpy")
        pytest.skip(f"no LAPACK by {request.param}")
    yield
    use_lapack("numpy")


def drawn(dtype, shape, seed=3):
    array = np.random.default_rng(seed).standard_normal((2, *shape))
    array = array[0] + 1j * array[1] if dtype.startswith("c") else array[0]
    return (array + 2 * math.sqrt(shape[-1]) * np.eye(*shape[-2:])).astype(dtype)


def close(result, expected, dtype):
    expected = np.asarray(expected)
    assert tuple(result.shape) == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=EPS[dtype] * max(1.0, float(np.abs(expected).max(initial=0))))


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("shape", SQUARE)
def test_square_matrices(dtype, layout, shape, lapack):
    array = drawn(dtype, shape)
    a, ones = LAYOUTS[layout](array), np.broadcast_to(np.eye(shape[-1]), shape)
    definite = array @ array.conj().swapaxes(-1, -2)
    b = drawn(dtype, (*shape[:-1], 3), 4)
    close(a @ cg.linalg.inv(a), ones, dtype)
    close(a @ cg.linalg.solve(a, LAYOUTS[layout](b)), b, dtype)
    close(cg.linalg.solve(a, cg.tensor(b.swapaxes(-1, -2)), left=False) @ a, b.swapaxes(-1, -2), dtype)
    if shape[-1] < 40:      # beyond the range of float32
        close(cg.linalg.det(a) / np.linalg.det(array), np.ones(shape[:-2]), dtype)
    for result, expected in zip(cg.linalg.slogdet(a), np.linalg.slogdet(array), strict=True):
        close(result, expected, dtype)
    for upper in (False, True):
        L = cg.linalg.cholesky(LAYOUTS[layout](np.triu(definite) if upper else np.tril(definite)), upper=upper)
        close(L.mH @ L if upper else L @ L.mH, definite, dtype)
        assert cg.equal(L, L.triu() if upper else L.tril())
        close(cg.tensor(definite) @ cg.cholesky_solve(cg.tensor(b), L, upper), b, dtype)
        close(cg.tensor(definite) @ cg.cholesky_inverse(L, upper), ones, dtype)
    for adjoint in (False, True):
        matrix = a.mH if adjoint else a
        close(matrix @ cg.linalg.lu_solve(*cg.linalg.lu_factor(a), cg.tensor(b), adjoint=adjoint), b, dtype)
    for hermitian in (False, True):
        matrix = a + (a.mH if hermitian else a.mT) - 3 * cg.eye(shape[-1], dtype=a.dtype)
        close(matrix @ cg.linalg.ldl_solve(*cg.linalg.ldl_factor(matrix.tril(), hermitian=hermitian), cg.tensor(b), hermitian=hermitian),
              b, dtype)


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("shape", SHAPES)
def test_lu_of_any_shape(dtype, layout, shape, lapack):
    array, k = drawn(dtype, shape), min(shape[-2:])
    a = LAYOUTS[layout](array)
    P, L, U = cg.linalg.lu(a)
    close(P @ L @ U, array, dtype)
    assert cg.equal(L, L.tril()) and cg.equal(U, U.triu()) and (L.diagonal(0, -2, -1) == 1).all()
    assert (tuple(L.shape[-2:]), tuple(U.shape[-2:])) == ((shape[-2], k), (k, shape[-1]))
    assert (L.abs() <= 1 + EPS[dtype] if not a.is_complex() else L.abs() <= math.sqrt(2) + EPS[dtype]).all()


@pytest.mark.cases("n", [2, 12, 60])
def test_an_element_of_a_batch_has_the_bits_that_it_has_alone(n):
    batch = cg.tensor(drawn("float64", (3, n, n)))
    for function in (cg.linalg.inv, cg.linalg.det, lambda a: cg.linalg.cholesky(a @ a.mT), lambda a: cg.linalg.lu_factor(a).LU):
        assert cg.equal(function(batch)[1], function(batch[1].clone()))


def hilbert(n):
    places = np.arange(n)
    return 1 / (places[:, None] + places + 1.0)


@pytest.mark.cases("n", [9, 30])
def test_ill_conditioned_systems_have_a_small_backward_error(n, lapack):
    """|A x - b| is within some eps of |A| |x|, at a condition of 1e12 and more."""
    left, _ = np.linalg.qr(drawn("float64", (n, n)))
    for matrix in (hilbert(9), left @ np.diag(np.logspace(0, -12, n)) @ left.T):
        a, b = cg.tensor(matrix), cg.ones(matrix.shape[0], dtype=cg.float64)
        for x in (cg.linalg.solve(a, b), cg.linalg.lu_solve(*cg.linalg.lu_factor(a), b.unsqueeze(-1))[:, 0],
                  cg.linalg.ldl_solve(*cg.linalg.ldl_factor(a), b.unsqueeze(-1))[:, 0]):
            assert (a @ x - b).abs().max() <= 100 * 2.2e-16 * np.linalg.norm(matrix, 2) * x.norm()


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("shape", [(3, 3), (20, 20), (40, 40), (30, 45), (70, 30)])
def test_factors_of_numbers_below_the_normal_range(dtype, shape, lapack):
    array = (drawn("complex128" if dtype.startswith("c") else "float64", shape, 7) * float(np.finfo(dtype).tiny) / 100).astype(dtype)
    P, L, U = (part.numpy().astype("clongdouble") for part in cg.linalg.lu(cg.tensor(array)))
    error = np.abs(P @ L @ U - array).max() / float(np.finfo(dtype).smallest_subnormal)
    assert error <= 4 * max(shape) * (1 + np.abs(L).max())


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("n", [1, 3, 12, 40])
def test_pivots_may_be_too_small_to_have_an_inverse(dtype, n):
    """Pivots below the smallest normal number: computed by quotients, as LAPACK does, and by reflections of scaled columns."""
    if n == 40 and dtype.startswith("c"):
        pytest.skip("BLAS inverts pivots")
    least = float(np.finfo(dtype).tiny) / 64
    a, ones = cg.tensor((drawn(dtype, (n, n)) * least).astype(dtype)), np.ones((n, 1), dtype)
    b = a @ cg.tensor(ones)
    for X in (cg.linalg.solve(a, b), cg.linalg.solve(a.mT, b.mT, left=False).mT, cg.linalg.lu_solve(*cg.linalg.lu_factor(a), b)):
        np.testing.assert_allclose(X.numpy(), ones, rtol=1e-3)
    for upper in (False, True):
        triangle = a.triu() if upper else a.tril()
        X = cg.linalg.solve_triangular(triangle, triangle @ cg.tensor(ones), upper=upper)
        np.testing.assert_allclose(X.numpy(), ones, rtol=1e-3)
    assert cg.linalg.det(a).isfinite() and cg.linalg.slogdet(a).logabsdet.isfinite()
    Q, R = cg.linalg.qr(a)
    close(Q.mH @ Q, np.eye(n), dtype)
    assert (Q @ R - a).abs().max() <= 1e-3 * a.abs().max()


# ----- Unsolvable inputs -----
SINGULAR = {
    "solve": lambda a: cg.linalg.solve(a, cg.ones(a.shape[-1], 1).double()),
    "inv": cg.linalg.inv,
    "lu_factor": cg.linalg.lu_factor,
    "lu_factor_ex": lambda a: cg.linalg.lu_factor_ex(a, check_errors=True),
    "ldl_factor": lambda a: cg.linalg.ldl_factor(a * 0),
    "ldl_factor_ex": lambda a: cg.linalg.ldl_factor_ex(a * 0, check_errors=True),
    "solve_ex": lambda a: cg.linalg.solve_ex(a, cg.ones(a.shape[-1], 1).double(), check_errors=True),
    "cholesky": cg.linalg.cholesky,
    "cholesky_ex": lambda a: cg.linalg.cholesky_ex(a, check_errors=True),
    "inv_ex": lambda a: cg.linalg.inv_ex(a, check_errors=True),
}


@pytest.mark.cases("function", SINGULAR)
@pytest.mark.cases("n", [3, 50])
def test_a_singular_matrix_is_named(function, n):
    good = cg.eye(n, dtype=cg.float64)
    bad = cg.eye(n, dtype=cg.float64)
    bad[1, 1] = 0
    for matrix, words in ((bad, r"linalg\.\w+: (?!\()"), (cg.stack([bad, good]), r"\(Batch element 0\)")):
        with pytest.raises(cg.linalg.LinAlgError, match=words):
            SINGULAR[function](matrix)
    with pytest.raises(RuntimeError):
        cg.vmap(SINGULAR[function])(cg.stack([good, bad]))


def test_info_is_the_place_of_the_failure():
    bad = cg.tensor([[1.0, 0, 0], [0, 0, 0], [0, 0, 1]])
    assert cg.linalg.inv_ex(bad).info == 2 and cg.linalg.solve_ex(bad, cg.ones(3)).info == 2 and cg.linalg.lu_factor_ex(bad).info == 2
    assert cg.linalg.cholesky_ex(cg.stack([bad, cg.eye(3), -bad])).info.tolist() == [2, 0, 1]
    with pytest.raises(cg.linalg.LinAlgError, match="diagonal element 2 is zero"):
        cg.cholesky_inverse(bad)


@pytest.mark.cases("value", [math.nan, math.inf, -math.inf])
@pytest.mark.cases("n", [3, 60])
@pytest.mark.cases("dtype", ["float32", "complex128"])
def test_numbers_that_are_not_finite_neither_hang_nor_crash(value, n, dtype, lapack):
    for places in ([(0, 0)], [(n - 1, 0)], [(n - 1, n - 1)], [(i, j) for i in range(n) for j in range(n)]):
        array = drawn(dtype, (n, n))
        array = array @ array.conj().T
        for i, j in places:
            array[i, j] = value
        a = cg.tensor(array)
        b = cg.ones(n, 2, dtype=a.dtype)
        if math.isnan(value):
            assert cg.linalg.cholesky_ex(a).info > 0
            assert cg.linalg.det(a).isnan()
        assert not cg.linalg.inv_ex(a).inverse.isfinite().all() or not math.isnan(value)
        cg.linalg.cholesky_ex(a), cg.linalg.lu_factor_ex(a), cg.linalg.solve_ex(a, b), cg.linalg.slogdet(a)
        for hermitian in (False, True):
            factors = cg.linalg.ldl_factor_ex(a, hermitian=hermitian)
            cg.linalg.ldl_solve(factors.LD, factors.pivots, b, hermitian=hermitian)


@pytest.mark.cases("pivots", [[0, 2, 3], [1, 2, 4], [1, 2, -(2**31)], [2**31 - 1, 1, 1], [1, 2, -2], [-1, 1, -1]])
def test_invalid_pivots_do_no_harm(pivots):
    tensor, a = cg.tensor(pivots, dtype=cg.int32), cg.eye(3)
    for call in (lambda: cg.linalg.lu_solve(a, tensor, a), lambda: cg.lu_unpack(a, tensor)):
        with pytest.raises(RuntimeError, match="[Pp]ivots"):
            call()
    many = cg.cat([cg.arange(1, 38).int(), tensor + 37 * tensor.sign() if max(map(abs, pivots)) < 5 else tensor])
    for hermitian, (matrix, places) in itertools.product((False, True), ((a, tensor), (cg.eye(40), many))):
        if all(1 <= abs(pivot) <= 3 for pivot in pivots):       # blocks of two rows that are none
            assert cg.linalg.ldl_solve(matrix, places, matrix, hermitian=hermitian).isnan().all()
        else:
            with pytest.raises(RuntimeError, match=r"Pivots given to ldl_solve must all satisfy \|pivot\| [<>]= (1|LD.size)"):
                cg.linalg.ldl_solve(matrix, places, matrix, hermitian=hermitian)


@pytest.mark.cases("shape", [(2,), (1, 2), (2, 2), (3, 1), (3, 3, 2), (0, 2)])
def test_pivots_of_another_shape_are_refused(shape):
    with pytest.raises(RuntimeError, match=r"Expected LD.shape\[:-1\] and pivots.shape to be the same, but got pivots with shape \["):
        cg.linalg.ldl_solve(cg.eye(2).expand(3, 2, 2), cg.ones(shape, dtype=cg.int32), cg.ones(2, 1))


@pytest.mark.cases("dtype", ["int8", "int16", "int32", "int64", "float32", "bool"])
def test_pivots_may_have_the_integer_dtypes_that_torch_takes(dtype):
    a, b = cg.tensor([[2.0, 1.0], [1.0, 1.0]]), cg.tensor([[3.0], [2.0]])
    for (factors, pivots), solve, is_exact in ((cg.linalg.ldl_factor(a), cg.linalg.ldl_solve, dtype.startswith("int")),
                                            (cg.linalg.lu_factor(a), cg.linalg.lu_solve, dtype == "int32")):
        if is_exact:
            assert solve(factors, pivots.to(getattr(cg, dtype)), b).tolist() == [[1.0], [1.0]]
        else:
            with pytest.raises(RuntimeError, match="pivots"):
                solve(factors, pivots.to(getattr(cg, dtype)), b)


# ----- Gradients -----
SINGULAR_MATRICES = [[[1.0, 2], [2, 4]], [[1.0, 2, 3], [4, 5, 6], [7, 8, 9]], [[1.0, 0], [0, 0]], [[0.0, 0], [0, 0]],
                     [[1.0, 1, 1], [1, 1, 1], [1, 1, 1]]]


@pytest.mark.cases("matrix", SINGULAR_MATRICES)
def test_the_gradient_of_a_determinant_is_right_at_singular_matrices(matrix):
    a = cg.tensor(matrix, dtype=cg.float64, requires_grad=True)
    n = a.shape[0]
    array = a.detach().numpy()
    cofactors = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(array, i, 0), j, 1)) for j in range(n)] for i in range(n)]
    (gradient,) = cg.autograd.grad(cg.linalg.det(a), a)
    np.testing.assert_allclose(gradient.numpy(), cofactors, atol=1e-12)


def test_no_derivative_factorises_again(monkeypatch):
    calls = []

    class Counted:
        def __init__(self, loop: MatrixLoop) -> None:
            self.loop = loop

        def __call__(self, *tensors):
            calls.append(tensors)
            return self.loop(*tensors)

    for module, name in ((solving, "_lu_factor"), (determinants, "_lu_factor"), (factorizations, "_lu"), (factorizations, "_cholesky")):
        monkeypatch.setattr(module, name, Counted(getattr(module, name)))
    a = cg.tensor(drawn("float64", (2, 3, 3)))
    definite = a @ a.mT
    for function in (lambda x: cg.linalg.solve(x, a), cg.linalg.inv, cg.linalg.det, lambda x: cg.linalg.slogdet(x).logabsdet,
                     cg.linalg.cholesky, lambda x: cg.linalg.lu_factor(x).LU):
        calls.clear()
        x = definite.clone().requires_grad_()
        (first,) = cg.autograd.grad(function(x).sum(), x, create_graph=True)
        (second,) = cg.autograd.grad((first * first).sum(), x, create_graph=True)
        cg.autograd.grad(second.sum(), x)
        assert len(calls) == 1


def test_pivots_that_change_before_the_backward_change_nothing():
    a, b = cg.tensor(drawn("float64", (3, 3)))[[2, 0, 1]], cg.ones(3, 1, dtype=cg.float64)
    for factor, solve in ((cg.linalg.lu_factor, cg.linalg.lu_solve), (lambda x: cg.linalg.ldl_factor(x + x.mT), cg.linalg.ldl_solve)):
        factors, pivots = factor(a)
        expected, side = [], b.clone().requires_grad_()
        for change in (False, True):
            result = solve(factors, pivots, side)
            pivots.fill_(1) if change else None
            expected.append(cg.autograd.grad(result.sum(), side)[0])
        assert cg.equal(*expected)


# ----- Names -----
def test_results_have_names_and_are_written_into_out():
    a = cg.tensor(drawn("float64", (3, 3)))
    for function, fields in ((cg.linalg.lu_factor_ex, "LU pivots info"), (cg.linalg.lu, "P L U"), (cg.linalg.inv_ex, "inverse info"),
                             (cg.linalg.slogdet, "sign logabsdet"), (cg.linalg.cholesky_ex, "L info"), (cg.linalg.ldl_factor, "LD pivots")):
        results = function(a)
        assert list(results._fields) == fields.split()
        out = tuple(result.new_empty(result.shape) for result in results)
        for written, target, result in zip(function(a, out=out), out, results, strict=True):
            assert written is target and cg.equal(written, result)
        assert repr(results).startswith(f"cygrad.return_types.{function.name}(\n{results._fields[0]}=tensor")
        with pytest.raises(TypeError, match="'out' must be tuple"):
            function(a, out=a)


def test_b_may_be_vectors():
    a = cg.tensor(drawn("float64", (2, 3, 3)))
    assert cg.linalg.solve(a, cg.ones(3).double()).shape == (2, 3)
    assert cg.linalg.solve(a, cg.ones(2, 3).double()).shape == (2, 3)
    assert cg.linalg.solve(a, cg.ones(3, 3).double()).shape == (2, 3, 3)
    assert cg.linalg.solve(a[:, None], cg.ones(4, 3, 5).double()).shape == (2, 4, 3, 5)
    with pytest.raises(RuntimeError, match=r"Incompatible shapes of A and B for the equation AX = B \(3x3 and 2x1\)"):
        cg.linalg.solve(a, cg.ones(2).double())
