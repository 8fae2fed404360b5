"""QR decompositions and Householder's reflections: their products, in every dtype, layout and mode, and torch's refusals."""

import numpy as np
import pytest

import cygrad as cg
from test_spectra import EPS, LAYOUTS, SHAPES, close, drawn


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("shape", SHAPES)
def test_decompositions(dtype, layout, shape):
    array = drawn(dtype, shape)
    a, (m, n) = LAYOUTS[layout](array), shape[-2:]
    for mode, columns in (("reduced", min(m, n)), ("complete", m)):
        Q, R = cg.linalg.qr(a, mode)
        assert (tuple(Q.shape), tuple(R.shape)) == ((*shape[:-1], columns), (*shape[:-2], columns, n))
        close((Q @ R).numpy(), array, dtype)
        close((Q.mH @ Q).numpy(), np.broadcast_to(np.eye(columns), (*shape[:-2], columns, columns)), dtype)
        assert not R.tril(-1).any()
    none, only = cg.linalg.qr(a, "r")
    assert tuple(none.shape) == (0,) and cg.equal(only, cg.linalg.qr(a).R)
    assert all(map(cg.equal, a.qr(), cg.linalg.qr(a))) and all(map(cg.equal, cg.qr(a, some=False), cg.linalg.qr(a, "complete")))


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("shape", [shape for shape in SHAPES if shape[-2] >= shape[-1]])
def test_reflections(dtype, shape):
    a = cg.tensor(drawn(dtype, shape))
    factors, tau = cg.geqrf(a)
    Q, R = cg.linalg.qr(a)
    assert cg.equal(cg.linalg.householder_product(factors, tau), Q) and cg.equal(factors[..., :shape[-1], :].triu(), R)
    whole, other = cg.linalg.qr(a, "complete").Q, cg.tensor(drawn(dtype, (*shape[:-1], 3), seed=4))
    for transpose, q in ((False, whole), (True, whole.mH)):
        close(factors.ormqr(tau, other, True, transpose).numpy(), (q @ other).numpy(), dtype)
        close(cg.ormqr(factors, tau, other.mT, left=False, transpose=transpose).numpy(), (other.mT @ q).numpy(), dtype)


def test_a_matrix_of_a_batch_has_the_bits_that_it_has_alone():
    for size in (3, 60):
        a = cg.tensor(drawn("float64", (5, size, size)))
        assert all(cg.equal(together[3], alone) for together, alone in zip(cg.linalg.qr(a), cg.linalg.qr(a[3].clone()), strict=True))


def matrices_with_zeros(dtype, m, n):
    """Yield matrices whose columns begin with zeros of either sign, and in which rounding decides no sign of a reflection."""
    array, numbers = drawn(dtype, (m, n)), np.random.default_rng(m + n)
    moved = np.eye(m, n)[numbers.permutation(m)][:, numbers.permutation(n)]
    yield moved * numbers.choice([1.0, -1.0, 0.5, -4.0], n) + 0
    yield 0 - moved
    yield np.eye(m, n)[::-1]
    yield np.eye(m, n, -1)
    yield np.zeros((m, n))
    yield np.triu(array)
    yield np.tril(array, -2) / n + np.eye(m, n, -1)
    yield np.where(np.arange(n) % 3 == m % 3, 0, array)
    yield np.where((np.arange(m) == m - 1)[:, None] | (np.arange(n) > 0), array, 0)
    if m > n:
        for zero in (0.0, -0.0):
            yield np.where(np.arange(m)[:, None] == 0, zero, array)


@pytest.mark.cases("dtype", EPS)
def test_signs_equal_lapacks_where_columns_begin_with_zeros(dtype):
    """By the plain loops, by LAPACK, and by blocks, at sizes around the borders between these."""
    for n in (*range(1, 10), *range(23, 28), 40, *range(56, 59), 73):
        for m in {max(n - 2, 1), n, n + 24}:
            arrays = np.stack([array.astype(dtype) for array in matrices_with_zeros(dtype, m, n)])
            a, raw = cg.tensor(arrays), np.linalg.qr(arrays, "raw")
            factors, tau = cg.geqrf(a)
            close(factors.numpy(), raw[0].swapaxes(-1, -2), dtype)
            close(tau.numpy(), raw[1], dtype)
            for factor, expected in zip(cg.linalg.qr(a), np.linalg.qr(arrays), strict=True):
                close(factor.numpy(), expected, dtype)


def test_ill_conditioned_and_singular_matrices():
    u, _, v = np.linalg.svd(drawn("float64", (20, 20)))
    for spectrum in (np.logspace(0, -12, 20), np.arange(20) % 2.0):
        a = cg.tensor(u * spectrum @ v)
        Q, R = cg.linalg.qr(a)
        assert (Q @ R - a).abs().max() < 1e-14 and (Q.mT @ Q - cg.eye(20)).abs().max() < 1e-14
    x = cg.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]).requires_grad_()
    cg.linalg.qr(x).Q.sum().backward()
    assert not x.grad.isfinite().all()


def test_numbers_that_are_not_finite_stay_so():
    for size in (3, 60):
        a = cg.eye(size)
        a[1, 0] = float("nan")
        assert cg.linalg.qr(a).R.isnan().any()
        a[1, 0] = float("inf")
        assert not cg.linalg.qr(a).R.isfinite().all()


A = cg.ones(3, 2)
REFUSED = [
    (lambda: cg.linalg.qr(A, "raw"), RuntimeError, "qr received unrecognized mode 'raw' but expected one of 'reduced' "),
    (lambda: cg.linalg.qr(A[0]), RuntimeError, "linalg.qr: The input tensor A must have at least 2 dimensions."),
    (lambda: cg.linalg.qr(A.int()), RuntimeError, "linalg.qr: Expected a floating point or complex tensor as input. Got Int"),
    (lambda: cg.linalg.qr(A.half()), NotImplementedError, "\"geqrf_cpu\" not implemented for 'Half'"),
    (lambda: cg.geqrf(A.int()), NotImplementedError, "\"geqrf_cpu\" not implemented for 'Int'"),
    (lambda: cg.geqrf(A.clone().requires_grad_()), NotImplementedError, "the derivative for 'geqrf' is not implemented"),
    (lambda: cg.linalg.qr(A.clone().requires_grad_(), "complete").Q.sum().backward(), RuntimeError,
     "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."),
    (lambda: cg.linalg.qr(A.clone().requires_grad_(), "r").R.sum().backward(), RuntimeError, "is not computed when mode='r'"),
    (lambda: cg.linalg.householder_product(A.mT, A[0]), RuntimeError, r"input.shape\[-2\] must be greater than or equal to"),
    (lambda: cg.linalg.householder_product(A, A[:, 0]), RuntimeError, r"input.shape\[-1\] must be greater than or equal to tau"),
    (lambda: cg.linalg.householder_product(A.expand(4, 3, 2), A[0]), RuntimeError, "Expected tau to have one dimension less than input"),
    (lambda: cg.linalg.householder_product(A.expand(4, 3, 2), A[:2]), RuntimeError, "Expected batch dimensions of tau to be equal"),
    (lambda: cg.linalg.householder_product(A, A[0].double()), RuntimeError, "tau dtype cygrad.float64 does not match input dtype"),
    (lambda: cg.ormqr(A, A[0], A.mT), RuntimeError, r"ormqr: other.shape\[-2\] must be equal to input.shape\[-2\]"),
    (lambda: cg.ormqr(A, A[:, 0], A), RuntimeError, r"ormqr: tau.shape\[-1\] must be equal to min"),
    (lambda: cg.ormqr(A, A[0], A.double()), RuntimeError, "ormqr: Expected input and other to have the same dtype"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_derivatives_of_products_of_reflections(dtype, k):
    """Also where tau is 0, and of complex numbers."""
    a, tau = (cg.tensor(drawn(dtype, shape, seed)).requires_grad_() for shape, seed in (((3, 2), 1), ((k,), 2)))
    with cg.no_grad():
        tau[:1] = 0
    c = cg.tensor(drawn(dtype, (3, 2), 5)).requires_grad_()
    assert cg.autograd.gradcheck(cg.linalg.householder_product, (a, tau))
    assert cg.autograd.gradgradcheck(cg.linalg.householder_product, (a, tau))
    for left in (True, False):
        for transpose in (True, False):
            call = lambda a, tau, c, left=left, transpose=transpose: cg.ormqr(a, tau, c if left else c.mT, left, transpose)   # noqa: E731
            assert cg.autograd.gradcheck(call, (a, tau, c))


@pytest.mark.parametrize("shape, mode", [((3, 2), "reduced"), ((2, 2), "complete"), ((2, 4), "reduced")])
def test_complex_decompositions_differentiate(shape, mode):
    a = cg.tensor(drawn("complex128", shape)).requires_grad_()
    assert cg.autograd.gradcheck(lambda a: cg.linalg.qr(a, mode), a)
    assert cg.autograd.gradgradcheck(lambda a: cg.linalg.qr(a, mode), a)
