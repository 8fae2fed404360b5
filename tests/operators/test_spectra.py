"""Eigenvalues and singular values: their factors, in every dtype and layout, and torch's errors for unsolvable inputs."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import cygrad as cg
from cygrad._core.compute.matrices import our_loop
from cygrad._kernels.matrices.loops import use_lapack

EPS = {"float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}
SQUARE = [(1, 1), (2, 2), (5, 5), (2, 3, 4, 4), (0, 0), (0, 3, 3), (2, 0, 0), (40, 40)]
SHAPES = [*SQUARE, (4, 3), (7, 12), (5, 3), (3, 5), (2, 3, 5, 2), (0, 3), (3, 0), (2, 0, 3), (60, 20), (2, 26, 25), (31, 40)]
LAYOUTS = {
    "dense": lambda a: cg.tensor(a),
    "transposed": lambda a: cg.tensor(np.ascontiguousarray(a.swapaxes(-1, -2))).mT,
    "steps": lambda a: cg.tensor(np.repeat(np.repeat(a, 2, -1), 3, -2))[..., ::3, ::2],
}


def drawn(dtype, shape, seed=3):
    array = np.random.default_rng(seed).standard_normal((2, *shape))
    return (array[0] + 1j * array[1] if dtype.startswith("c") else array[0]).astype(dtype)


def hermitian(dtype, shape):
    array = drawn(dtype, shape)
    return array + array.swapaxes(-1, -2).conj()


def close(result, expected, dtype):
    size = max(1.0, float(np.abs(expected).max(initial=0)))
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=0, atol=EPS[dtype] * size)


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("shape", [*SQUARE, (2, 25, 25)])
def test_hermitian_matrices(dtype, layout, shape):
    array = hermitian(dtype, shape)
    a = LAYOUTS[layout](array)
    for triangle in ("L", "U"):
        values, vectors = cg.linalg.eigh(a, triangle)
        assert (values.dtype, vectors.dtype) == (a.dtype.to_real(), a.dtype)
        close((vectors * values.unsqueeze(-2).to(a.dtype) @ vectors.mH).resolve_conj().numpy(), array, dtype)
        close((vectors.mH @ vectors).numpy(), np.broadcast_to(np.eye(shape[-1]), shape), dtype)
        close(cg.linalg.eigvalsh(a, triangle).numpy(), np.linalg.eigvalsh(array), dtype)
        assert (values.diff() >= 0).all()


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("shape", SHAPES)
def test_singular_values(dtype, layout, shape):
    array = drawn(dtype, shape)
    a, p = LAYOUTS[layout](array), min(shape[-2:])
    expected = np.linalg.svd(array, compute_uv=False) if array.size else np.zeros((*shape[:-2], p))
    for full in (False, True):
        U, S, Vh = cg.linalg.svd(a, full)
        m, n = shape[-2:] if full else (p, p)
        assert (tuple(U.shape), tuple(Vh.shape), S.dtype) == ((*shape[:-1], m), (*shape[:-2], n, shape[-1]), a.dtype.to_real())
        close((U[..., :p] * S.unsqueeze(-2).to(a.dtype) @ Vh[..., :p, :]).numpy(), array, dtype)
        close((U.mH @ U).numpy(), np.broadcast_to(np.eye(m), (*shape[:-2], m, m)), dtype)
        close((Vh @ Vh.mH).numpy(), np.broadcast_to(np.eye(n), (*shape[:-2], n, n)), dtype)
        close(S.numpy(), expected, dtype)
    close(cg.linalg.svdvals(a).numpy(), expected, dtype)
    U, S, V = a.svd()
    close((U * S.unsqueeze(-2).to(a.dtype) @ V.mH).numpy(), array, dtype)
    assert all(not part.any() for part in cg.svd(a, compute_uv=False)[::2])


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("shape", SQUARE)
def test_any_square_matrices(dtype, layout, shape):
    array = drawn(dtype, shape)
    a = LAYOUTS[layout](array)
    values, vectors = cg.linalg.eig(a)
    assert values.dtype == vectors.dtype == a.dtype.to_complex()
    close((a.to(values.dtype) @ vectors).numpy(), (vectors * values.unsqueeze(-2)).numpy(), dtype)
    close(cg.linalg.vector_norm(vectors, dim=-2).numpy(), np.ones((*shape[:-2], shape[-1])), dtype)
    alone = cg.linalg.eigvals(a)
    close(alone.sum(-1).numpy(), np.trace(array, axis1=-2, axis2=-1).astype(alone.numpy().dtype), dtype)
    close(alone.abs().sort(-1).values.numpy(), values.abs().sort(-1).values.numpy(), dtype)


def test_a_matrix_of_a_batch_has_the_bits_that_it_has_alone():
    for size in (3, 30):
        a = cg.tensor(drawn("float64", (7, size, size)))
        for together, alone in zip(cg.linalg.svd(a), cg.linalg.svd(a[5].clone()), strict=True):
            assert cg.equal(together[5], alone)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("size", [2, 3, 4, 9])
def test_vectors_of_small_matrices_have_the_signs_that_lapack_gives_them(dtype, size):
    a = hermitian(dtype, (40, size, size))
    for triangle in ("L", "U"):
        for result, expected in zip(cg.linalg.eigh(cg.tensor(a), triangle), np.linalg.eigh(a, triangle), strict=True):
            close(result.numpy(), expected, dtype)
    for shape in ((size, size), (size + size // 2, size), (size, size + size // 2)):
        b = drawn(dtype, (40, *shape))
        for full in (False, True):
            for result, expected in zip(cg.linalg.svd(cg.tensor(b), full), np.linalg.svd(b, full), strict=True):
                close(result.numpy(), expected, dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("size", [3, 4, 7])     # in larger ones the roundings of BLAS's kernel decide some signs
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_signs_are_lapacks_where_a_column_begins_with_zero(dtype, size, zero):
    """A reflection begins below the diagonal for eigenvalues, above it for eigenvalues of the upper triangle, on it for singular values."""
    for corner, triangle in ((0, "L"), (size - 2, "U")):
        a = hermitian(dtype, (20, size, size))
        a[:, corner, corner + 1] = a[:, corner + 1, corner] = zero
        for result, expected in zip(cg.linalg.eigh(cg.tensor(a), triangle), np.linalg.eigh(a, triangle), strict=True):
            close(result.numpy(), expected, dtype)
    for shape in ((size, size), (size + 1, size), (size, size + 1)):
        b = drawn(dtype, (20, *shape))
        b[:, 0, 0] = zero
        b[10:, 0, 1:] = b[10:, 1:, 0] = 0
        b[10:, -1, 0] = b[10:, 0, -1] = 1
        for result, expected in zip(cg.linalg.svd(cg.tensor(b), False), np.linalg.svd(b, False), strict=True):
            close(result.numpy(), expected, dtype)


def unusual_matrices(n):
    """Yield matrices at the ends of the range, with equal values, with zeros."""
    array, steps = drawn("float64", (n, n)), np.arange(n)
    yield np.zeros((n, n))
    yield np.ones((n, n))
    yield -np.eye(n) * steps
    yield np.eye(n)[::-1]
    yield np.eye(n, k=1)
    yield np.linalg.qr(array)[0]
    yield np.diag(np.where(steps, 1, np.finfo("float64").max))
    yield np.diag(np.where(steps, 1, np.finfo("float32").max))
    yield np.outer(array[0], array[0])
    for size in (1e-320, 1e-300, 1e-160, 1e160, 1e307):
        yield array / 10 * size
    for grades in (10.0 ** (-280 / n * steps), 10.0 ** (-280 / n * steps[::-1]), np.where(steps < n // 2, 1, 1e-200)):
        yield array * grades
        yield array * grades[:, None]
        yield (array + array.T) * np.minimum(grades, grades[:, None])


def check_product(left, weights, right, whole):
    """Check the backward error of left diag(weights) right, and that its columns and rows are orthonormal."""
    size, eps, least = max(whole.shape), np.finfo(whole.dtype).eps, float(np.finfo(whole.dtype).smallest_subnormal)
    scale = float(np.abs(whole).max()) or 1.0
    left, weights, right = (part.numpy().astype("float64") for part in (left, weights, right))
    assert np.abs(left * (weights / scale) @ right - whole / scale).max() < 30 * size * eps + 4 * size * least / scale
    one = np.eye(len(weights))
    assert np.abs(left.T @ left - one).max() < 30 * size * eps > np.abs(right @ right.T - one).max()


def check_eigenvalues(a):
    for triangle, whole in (("L", np.tril(a) + np.tril(a, -1).T), ("U", np.triu(a) + np.triu(a, 1).T)):
        values, vectors = cg.linalg.eigh(cg.tensor(a), triangle)
        check_product(vectors, values, vectors.mT, whole)
        assert (values.diff() >= 0).all()


def check_singular_values(a):
    for part in (a, a[:, : len(a) * 3 // 4 + 1], a[: len(a) * 3 // 4 + 1]):
        U, S, Vh = cg.linalg.svd(cg.tensor(part), False)
        check_product(U, S, Vh, part)
        assert (S.diff() <= 0).all() and (S >= 0).all()
        numbers = np.finfo(a.dtype)
        alone = (cg.linalg.svdvals(cg.tensor(part)) - S).abs().max()
        assert alone <= 30 * len(a) * float(numbers.eps) * S[0] + 4 * len(a) * float(numbers.smallest_subnormal)


@pytest.mark.parametrize("size", [2, 3, 4, 9, 24, 25, 70])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unusual_matrices_by_their_backward_error(dtype, size):
    for array in unusual_matrices(size):
        with np.errstate(over="ignore"):
            a = array.astype(dtype)
        if np.isfinite(a).all():
            check_eigenvalues(a)
            check_singular_values(a)


@pytest.mark.cases("dtype", ["float32", "float64"])
@pytest.mark.cases("size", [201, 512, 513])
def test_large_matrices_by_their_backward_error(dtype, size):
    a = drawn(dtype, (size, size))
    if size == 201:
        graded = (a * np.logspace(0, -30, size)).astype(dtype)
        check_eigenvalues(graded)
        check_singular_values(graded)
    else:
        values, vectors = cg.linalg.eigh(cg.tensor(a))
        check_product(vectors, values, vectors.mT, np.tril(a) + np.tril(a, -1).T)


def test_large_matrices_have_the_bits_that_one_thread_gives_them_anywhere():
    a, threads = cg.tensor(hermitian("float64", (300, 300))), cg.get_num_threads()
    moved = cg.zeros(300 * 300 + 1, dtype=cg.float64)[1:].view(300, 300).copy_(a)
    runs = []
    try:
        for count in (1, 3):
            cg.set_num_threads(count)
            runs += [(*cg.linalg.eigh(x), cg.linalg.eigvalsh(x), *cg.linalg.svd(x), cg.linalg.svdvals(x)) for x in (a, moved)]
    finally:
        cg.set_num_threads(threads)
    assert all(cg.equal(part, first) for parts in runs[1:] for part, first in zip(parts, runs[0], strict=True))


@pytest.mark.parametrize("where", ["numpy", "scipy", "none"])
def test_large_matrices_have_their_spectra_with_any_lapack_and_none(where):
    try:
        if use_lapack(where) or where == "none":
            for dtype in ("float32", "float64"):
                check_eigenvalues(drawn(dtype, (40, 40)))
                check_singular_values(drawn(dtype, (40, 40)))
                a = hermitian(dtype, (40, 40))
                for values in (our_loop("eigh_lower")(cg.tensor(a))[0], cg.linalg.eigvalsh(cg.tensor(a))):
                    close(values.numpy(), np.linalg.eigvalsh(a), dtype)
    finally:
        use_lapack("numpy")


GRADED = [(2240, 30, 30), (3249, 30, 28), (6224, 50, 28), (6876, 50, 24), *((seed, n, span) for seed, n, span in
          zip(range(15), [3, 24, 25, 33, 50] * 3, [8, 12, 18, 24, 30] * 3, strict=True))]


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("case", GRADED)
def test_values_alone_of_graded_matrices(dtype, case):
    """LAPACK's iterations of squares lost digits of the first values, in float32 of all values above a hundredth of the norm."""
    seed, n, span = case
    numbers = np.random.default_rng(seed)
    grades = 10.0 ** (-span * numbers.permutation(n) / n)
    chain = np.diag(grades) + np.diag(grades[:-1], 1) + np.diag(grades[:-1], -1)
    full = hermitian(dtype, (n, n)) * np.minimum(grades, grades[:, None])
    for a in (chain, chain * 1e12, chain * 1e-12, full, full * 1e12, full * 1e-6, full[::-1, ::-1]):
        a = a.astype(dtype)
        exact = np.linalg.eigh(a.astype(np.result_type(a, "float64")))[0]
        bound = 3 * n * np.finfo(dtype).eps * np.abs(exact).max()
        for result, expected in ((cg.linalg.eigvalsh(cg.tensor(a)), exact), (cg.linalg.eigvalsh(cg.tensor(a), "U"), exact),
                                 (cg.linalg.svdvals(cg.tensor(a)), np.sort(np.abs(exact))[::-1])):
            assert np.abs(result.numpy() - expected).max() <= bound


def test_loops_of_spectra_end_with_numbers_that_are_not_finite():
    for n in (2, 3, 9, 24, 30):
        for number in (np.nan, np.inf, np.finfo("float64").max):
            a = drawn("float64", (30, n, n))
            a[np.arange(30), np.arange(30) % n, np.arange(30) // n % n] = number
            for name in ("eigh_lower", "eigh_upper", "eigvalsh_lower", "svd", "svd_full", "svdvals"):
                our_loop(name)(cg.tensor(a))


def test_ill_conditioned_matrices_by_their_backward_error():
    u, _, v = np.linalg.svd(drawn("float64", (20, 20)))
    a = cg.tensor(u * np.logspace(0, -12, 20) @ v)
    U, S, Vh = cg.linalg.svd(a)
    assert (U * S @ Vh - a).abs().max() < 1e-15 and (S[-1] - 1e-12).abs() < 1e-15
    values, vectors = cg.linalg.eigh(a.mT @ a)
    assert (vectors * values @ vectors.mT - a.mT @ a).abs().max() < 1e-15


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(9, 6), (2, 6, 9)])
def test_random_vectors_find_all_of_a_low_rank(dtype, shape):
    a = cg.tensor(drawn(dtype, (*shape[:-1], 2)) @ drawn(dtype, (*shape[:-2], 2, shape[-1])))
    for U, S, V in (cg.svd_lowrank(a, q=4), cg.svd_lowrank(a + 1, q=3, niter=0, M=cg.ones(shape, dtype=a.dtype)),
                    cg.pca_lowrank(a, 3, center=False)):
        close((U * S.unsqueeze(-2) @ V.mH).numpy(), a.numpy(), dtype)
    U, S, V = cg.pca_lowrank(a)
    close((U * S.unsqueeze(-2) @ V.mH).numpy(), (a - a.mean(-2, keepdim=True)).numpy(), dtype)
    x = cg.tensor(drawn(dtype, (4, 2))).requires_grad_()
    assert cg.autograd.gradcheck(lambda x: cg.svd_lowrank(x, q=2)[1], x)
    with pytest.raises(ValueError, match=r"q\(=7\) must be non-negative integer and not greater than min\(m, n\)=6"):
        cg.pca_lowrank(a, 7)


# ----- The triangle that is read -----
@pytest.mark.parametrize("triangle", ["L", "U", "l", "u"])
def test_one_triangle_is_read(triangle):
    for dtype, size in (("float64", 40), ("float32", 33), ("complex128", 4)):
        a = cg.tensor(hermitian(dtype, (size, size)))
        other = a.triu(1) if triangle in "Ll" else a.tril(-1)
        broken = cg.where(other != 0, cg.tensor(float("nan"), dtype=a.dtype), a)
        result, expected = cg.linalg.eigh(broken, triangle), cg.linalg.eigh(a, triangle)
        assert all(map(cg.equal, result, expected))
        assert cg.equal(cg.linalg.eigvalsh(broken, triangle), cg.linalg.eigvalsh(a, triangle))
    turned = cg.tensor(a.numpy() + 1j * np.eye(4))      # only the real part of the diagonal is read
    assert all(map(cg.equal, cg.linalg.eigh(turned, triangle), expected))


def test_the_gradient_of_a_triangle_is_hermitian():
    a = cg.tensor(hermitian("complex128", (3, 3))).requires_grad_()
    cg.linalg.eigh(a).eigenvalues[0].backward()
    assert cg.allclose(a.grad, a.grad.mH)


# ----- Unsolvable inputs -----
EIGH = "linalg.eigh: {}The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues "
SVD = "linalg.svd: {}The algorithm failed to converge because the input matrix contained non-finite values."
EIG = "linalg.eig: {}input tensor should not contain infs or NaNs."
NOT_FINITE = {"eig": EIG, "eigvals": EIG, "eigh": EIGH + "(error code: 2).", "eigvalsh": EIGH + "(error code: 1).", "svd": SVD,
              "svdvals": SVD}


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("name", NOT_FINITE)
@pytest.mark.cases("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_end_in_torchs_words(dtype, name, number):
    function = getattr(cg.linalg, name)
    a = cg.eye(3, dtype=getattr(cg, dtype)).repeat(2, 2, 1, 1)
    a[1, 0, 2, 1] = number
    for matrices, element in ((a[1, 0], ""), (a, "(Batch element 2): "), (a.movedim(0, 1), "(Batch element 1): ")):
        with pytest.raises(cg.linalg.LinAlgError) as raised:
            function(matrices)
        assert str(raised.value) == NOT_FINITE[name].format(element)
    if dtype.startswith("c"):
        a[1, 0, 2, 1] = 1 + number * 1j
        with pytest.raises(np.linalg.LinAlgError):
            function(a)


@pytest.mark.parametrize("size", [1e308, 1e-308, 5e-324])
def test_huge_and_tiny_numbers_end(size):
    for n in (9, 40):
        a = cg.tensor(hermitian("float64", (n, n)) / 100 * size)
        assert cg.linalg.eigh(a).eigenvalues.isfinite().all() and cg.linalg.svdvals(a).isfinite().all()


REFUSED = [
    (lambda: cg.linalg.eigh(cg.ones(2, 3)), RuntimeError, "linalg.eigh: A must be batches of square matrices, but they are 2 by 3"),
    (lambda: cg.linalg.svd(cg.ones(3)), RuntimeError, "linalg.svd: The input tensor A must have at least 2 dimensions."),
    (lambda: cg.linalg.eigh(cg.eye(2), "X"), RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got X"),
    (lambda: cg.linalg.eigh(cg.eye(2).half()), NotImplementedError, "\"linalg_eigh_cpu\" not implemented for 'Half'"),
    (lambda: cg.linalg.eigh(cg.eye(2).int()), NotImplementedError, "\"linalg_eigh_cpu\" not implemented for 'Int'"),
    (lambda: cg.linalg.svdvals(cg.eye(2).int()), RuntimeError, "linalg.svd: Expected a floating point or complex tensor as input. Got Int"),
    (lambda: cg.linalg.svd(cg.eye(2).bfloat16()), NotImplementedError, "\"linalg_svd_cpu\" not implemented for 'BFloat16'"),
    (lambda: cg.linalg.svd(cg.eye(2), driver="gesvd"), RuntimeError, "`driver=` is only supported on CUDA inputs"),
    (lambda: cg.linalg.eigh(cg.eye(2), out=cg.ones(2)), TypeError, "argument 'out' must be tuple of 2 Tensors, not Tensor"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ----- Vectors that are not determined -----
def test_losses_that_depend_on_a_phase_are_refused():
    a = cg.tensor(hermitian("complex128", (3, 3))).requires_grad_()
    b = cg.tensor(drawn("complex128", (3, 3))).requires_grad_()
    for call, words in ((lambda: cg.linalg.eig(b)[1], "linalg_eig_backward: The eigenvectors in the complex case are specified up to"),
                        (lambda: cg.linalg.eigh(a)[1], "linalg_eigh_backward: The eigenvectors in the complex case are specified up to"),
                        (lambda: cg.linalg.svd(a)[0], "svd_backward: The singular vectors in the complex case are specified up to"),
                        (lambda: cg.linalg.svd(a)[2], "svd_backward: The singular vectors in the complex case are specified up to")):
        with pytest.raises(RuntimeError, match=words):
            call().sum().abs().backward()
        call().abs().sum().backward()
    U, _, Vh = cg.linalg.svd(a)
    (U @ Vh).real.sum().backward()      # of both the phases cancel


def test_vectors_of_equal_values_have_no_finite_derivative():
    for decomposition, values in ((cg.linalg.eigh, 0), (cg.linalg.svd, 1)):
        x = cg.eye(3).requires_grad_()
        decomposition(x)[values].sum().backward()
        assert cg.equal(x.grad, cg.eye(3))
        x.grad = None
        decomposition(x)[1 - values].sum().backward()
        assert not x.grad.isfinite().any()


# ----- Forms -----
def test_results_are_written_and_shown_under_their_names():
    a = cg.tensor([[2.0, 0.0], [0.0, 1.0]])
    out = cg.zeros(2), cg.zeros(2, 2)
    assert cg.linalg.eigh(a, out=out)[1] is out[1] and out[0].tolist() == [1, 2]
    assert repr(cg.linalg.eigh(a)).startswith("cygrad.return_types.linalg_eigh(\neigenvalues=tensor([1., 2.]),\neigenvectors=tensor(")
    assert repr(cg.svd(a)).startswith("cygrad.return_types.svd(\nU=tensor(") and "\nV=tensor(" in repr(cg.svd(a))
    assert cg.equal(pickle.loads(pickle.dumps(cg.linalg.svd(a))).S, cg.linalg.svd(a).S)
    node = cg.linalg.svd(a.requires_grad_()).S.grad_fn
    assert node.name() == "LinalgSvdBackward0" and {"_saved_U", "_saved_S", "_saved_Vh"} <= set(dir(node))
    assert cg.linalg.eigvalsh(a).grad_fn.name() == "LinalgEighBackward0"
    assert cg.linalg.svd(a).U.stride() == cg.linalg.eigh(a)[1].stride() == (1, 2)


def test_where_numpy_has_no_such_loop_its_functions_compute():
    """In another process: loops are looked up when the family is loaded."""
    code = """
        import cygrad as cg
        import numpy
        if {without}:
            del numpy.linalg._umath_linalg
        A = cg.tensor([[2.0, 1j, 1.0], [-1j, 3.0, 0.5], [1.0, 0.5, 1.0]]).cdouble().expand(2, 3, 3)
        for a in (A, A.real):
            parts = [*cg.linalg.eigh(a), cg.linalg.eigvalsh(a, "U"), *cg.linalg.svd(a[:, :2]), *cg.linalg.svd(a[:, 1:], False),
                     cg.linalg.svdvals(a), *cg.linalg.eigh(a[:, :0, :0])]
            print([(part.dtype, part.shape, part.tolist()) for part in parts])
    """
    commands = [[sys.executable, "-c", textwrap.dedent(code).format(without=without)] for without in (False, True)]
    first, second = (subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True).stdout for command in commands)
    assert first == second and first
