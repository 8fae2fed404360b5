"""Norms, ranks, condition numbers, pseudoinverses and least squares: values in every dtype and layout, edges, and torch's words."""

import math

import numpy as np
import pytest

import cygrad as cg
from test_spectra import EPS, LAYOUTS, SHAPES, close, drawn

ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
FULL = [shape for shape in SHAPES if 0 not in shape]


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("shape", FULL)
def test_norms_ranks_and_inverses(dtype, layout, shape):
    array = drawn(dtype, shape)
    a = LAYOUTS[layout](array)
    for order in ORDERS:
        close(cg.linalg.matrix_norm(a, order).numpy(), np.linalg.norm(array, order, (-2, -1)), dtype)
        apart = cg.linalg.norm(a.movedim(-2, 0), order, (0, -1), True)
        close(apart.numpy(), np.linalg.norm(array, order, (-2, -1))[None, ..., None], dtype)
    close(cg.linalg.vector_norm(a, 3).numpy(), np.linalg.norm(np.ravel(array), 3), dtype)
    assert cg.linalg.matrix_rank(a).tolist() == np.linalg.matrix_rank(array).tolist()
    close(cg.linalg.pinv(a, rtol=1e-4).numpy(), np.linalg.pinv(array, rcond=1e-4), dtype)
    for order in (None, "fro", 1, math.inf) if shape[-1] == shape[-2] else (None,):
        np.testing.assert_allclose(cg.linalg.cond(a, order).numpy(), np.linalg.cond(array, order), rtol=1e3 * EPS[dtype])


@pytest.mark.cases("dtype", EPS)
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("shape", SHAPES)
@pytest.mark.cases("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(dtype, layout, shape, driver):
    array, sides = drawn(dtype, shape), drawn(dtype, (*shape[:-1], 2), seed=4)
    a, (m, n) = LAYOUTS[layout](array), shape[-2:]
    result = cg.linalg.lstsq(a, cg.tensor(sides), driver=driver)
    expected = np.linalg.pinv(array) @ sides
    np.testing.assert_allclose(result.solution.numpy(), expected, atol=EPS[dtype] * 1e3 * max(1.0, float(np.abs(expected).max(initial=0))))
    batch = shape[:-2]
    assert tuple(result.rank.shape) == ((0,) if driver == "gels" else batch) and (result.rank == min(m, n)).all()
    assert tuple(result.singular_values.shape) == ((*batch, min(m, n)) if driver in ("gelsd", "gelss") else (0,))
    assert result.residuals.dtype == result.singular_values.dtype == a.dtype.to_real()
    if driver == "gelsy" or m <= n:
        assert tuple(result.residuals.shape) == (0,)
    else:
        close(result.residuals.numpy(), (np.abs(array @ expected - sides)**2).sum(-2), dtype)
    vectors = cg.linalg.lstsq(a, cg.tensor(sides[..., 0]), driver=driver)
    assert cg.allclose(vectors.solution, result.solution[..., 0], rtol=1e-3)
    assert cg.allclose(vectors.residuals, result.residuals[..., :1], rtol=1e-3)


def test_matrices_without_full_rank():
    a = cg.tensor([[1.0, 2.0, 2.0], [0.0, 1.0, 1.0], [3.0, 1.0, 1.0], [1.0, 0.0, 0.0]], dtype=cg.float64)
    b = cg.tensor([1.0, 2.0, 3.0, 4.0], dtype=cg.float64)
    for driver in ("gelsy", "gelsd"):
        result = cg.linalg.lstsq(a, b, driver=driver)
        assert result.rank == 2 == cg.linalg.matrix_rank(a) and not result.residuals.numel()
        assert cg.allclose(result.solution, cg.tensor(np.linalg.lstsq(a.numpy(), b.numpy(), rcond=None)[0]))
    x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
    cg.linalg.lstsq(x, y).solution.square().sum().backward()
    assert x.grad.isfinite().all() and cg.allclose(y.grad, 2 * cg.linalg.pinv(a).mT @ (cg.linalg.pinv(a) @ b))
    assert cg.linalg.lstsq(a, b, rcond=0.9).rank == 1 and cg.linalg.matrix_rank(a, tol=10) == 0
    result = cg.linalg.lstsq(a, b, driver="gelsd")
    out = tuple(cg.empty_like(part) for part in result)
    written = cg.linalg.lstsq(a, b, driver="gelsd", out=out)
    assert all(one is other for one, other in zip(written, out, strict=True)) and all(map(cg.equal, written, result))


@pytest.mark.cases("dtype", ["float64", "complex128"])
@pytest.mark.cases("shape", [(3, 2), (2, 3), (2, 2)])
def test_derivatives_of_pseudoinverses_and_least_squares(dtype, shape):
    a, b = (cg.tensor(drawn(dtype, size, 7)).requires_grad_() for size in (shape, (shape[0], 2)))
    assert cg.autograd.gradcheck(cg.linalg.pinv, a) and cg.autograd.gradgradcheck(cg.linalg.pinv, a)
    for driver in ("gelsy", "gelsd"):
        call = lambda a, b, driver=driver: [part for part in cg.linalg.lstsq(a, b, driver=driver)[:2] if part.requires_grad]  # noqa: E731
        assert cg.autograd.gradcheck(call, (a, b)) and cg.autograd.gradgradcheck(call, (a, b))


@pytest.mark.cases("dtype", ["float64", "complex128"])
def test_residuals_are_smooth_where_they_are_zero(dtype):
    a = cg.eye(3, 2, dtype=getattr(cg, dtype))
    b = cg.tensor([[1.0, 3.0], [2.0, 4.0], [0.0, 0.0]], dtype=a.dtype)
    residuals = lambda a, b: cg.linalg.lstsq(a, b, driver="gelsd").residuals    # noqa: E731
    assert residuals(a, b).tolist() == [0, 0]
    assert cg.autograd.gradgradcheck(residuals, (a.requires_grad_(), b.requires_grad_()))


def test_tolerances():
    a = cg.tensor(np.diag([8.0, 4.0, 2.0, 1e-20]))
    ranks = {(None, None): 3, (3.0, None): 2, (None, 0.3): 2, (3.0, 0.9): 1, (1e-30, 0.0): 4, (0.0, None): 3}
    for (atol, rtol), rank in ranks.items():
        assert cg.linalg.matrix_rank(a, atol=atol, rtol=rtol) == rank == cg.linalg.matrix_rank(a, hermitian=True, atol=atol, rtol=rtol)
        for hermitian in (False, True):
            assert (cg.linalg.pinv(a, hermitian=hermitian, atol=atol, rtol=rtol).diagonal() != 0).sum() == rank
    assert cg.linalg.matrix_rank(cg.stack([a, a]), rtol=cg.tensor([0.3, 2.0])).tolist() == [2, 0]
    assert cg.equal(a.pinverse(0.3), cg.linalg.pinv(a, 0.3)) and cg.linalg.matrix_rank(a, 3.0) == 2


# ----- Edges -----
def test_empty_matrices():
    for shape in ((0, 3), (3, 0), (2, 0, 0)):
        a, zeros = cg.zeros(shape), cg.zeros(shape[:-2])
        assert cg.equal(cg.linalg.cond(a), zeros) and cg.equal(cg.linalg.matrix_rank(a), zeros.long())
        assert cg.linalg.pinv(a).shape == a.mT.shape
    for order in (math.inf, -1):
        with pytest.raises(RuntimeError, match="norm on an empty tensor because the operation does not have an identity"):
            cg.linalg.vector_norm(cg.zeros(0), order)


def test_singular_matrices_have_infinite_condition_numbers():
    a = cg.zeros(2, 2, 2)
    a[1] = cg.eye(2)
    for order in (1, "fro", "nuc", math.inf):
        assert cg.linalg.cond(a, order).isinf().tolist() == [True, False]
    assert cg.linalg.cond(a)[0].isnan()     # 0 / 0, as in torch


def test_other_dtypes():
    x = cg.ones(2, 2)
    assert cg.linalg.vector_norm(x, dtype=cg.float64).dtype == cg.linalg.norm(x, 2, dtype=cg.float64).dtype == cg.float64
    assert cg.linalg.matrix_norm(x + 0j, "nuc").dtype == cg.float32 and cg.linalg.vector_norm(x.half()).dtype == cg.float16
    assert cg.norm(x, "nuc").item() == cg.nuclear_norm(x).item() == pytest.approx(2)


X = cg.ones(3, 2)
REFUSED = [
    (lambda: cg.linalg.vector_norm(X, "fro"), TypeError, r"linalg_vector_norm\(\): argument 'ord' \(position 2\) must be Number"),
    (lambda: cg.linalg.vector_norm(X.int()), RuntimeError, "linalg.vector_norm: Expected a floating point or complex tensor as"),
    (lambda: cg.linalg.vector_norm(X, dtype=cg.int32), RuntimeError, "dtype should be floating point or complex, but got Int"),
    (lambda: cg.linalg.vector_norm(X + 0j, dtype=cg.float32), RuntimeError, "dtype should be complex for complex inputs, but got Float"),
    (lambda: cg.linalg.matrix_norm(X.double(), dtype=cg.float32), RuntimeError, r"the dtype of the input \(Double\) should be"),
    (lambda: cg.linalg.matrix_norm(X, 3), RuntimeError, "linalg.matrix_norm: Order 3 not supported."),
    (lambda: cg.linalg.matrix_norm(X[0]), RuntimeError, "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."),
    (lambda: cg.linalg.matrix_norm(X, dim=(0,)), RuntimeError, "linalg.matrix_norm: dim must be a 2-tuple. Got 0"),
    (lambda: cg.linalg.matrix_norm(X, dim=(0, 0)), RuntimeError, r"linalg.matrix_norm: dims must be different. Got \(0, 0\)"),
    (lambda: cg.linalg.norm(cg.ones(2, 2, 2), 2), RuntimeError, "the input must be 1D or 2D. Got 3D."),
    (lambda: cg.linalg.norm(X, dim=(0, 1, 2), ord=2), RuntimeError, "If dim is specified, it must be of length 1 or 2"),
    (lambda: cg.norm(X, "x"), RuntimeError, "linalg.matrix_norm: Order x not supported."),
    (lambda: cg.norm(cg.ones(2, 2, 2), "nuc"), RuntimeError, "linalg.matrix_norm: dim must be a 2-tuple. Got 0 1 2"),
    (lambda: cg.linalg.cond(X, 1), RuntimeError, r"linalg.cond\(ord=1\): A must be batches of square matrices, but they are 3 by 2"),
    (lambda: cg.linalg.cond(cg.eye(2), 3), RuntimeError, "linalg.cond got an invalid norm type: 3"),
    (lambda: cg.linalg.matrix_rank(X, atol=cg.tensor(1j)), RuntimeError, "atol tensor of complex type is not supported"),
    (lambda: cg.linalg.lstsq(X, X, driver="x"), RuntimeError, r"parameter `driver` should be one of \(gels, gelsy, gelsd, gelss\)"),
    (lambda: cg.linalg.lstsq(X, X[:2]), RuntimeError, r"linalg.lstsq: input.size\(-2\) should match other.size\(-2\)"),
    (lambda: cg.linalg.lstsq(X, X.double()), RuntimeError, "linalg.lstsq: Expected input and other to have the same dtype"),
    (lambda: cg.linalg.lstsq(X * math.nan, X), np.linalg.LinAlgError, "the input matrix contained non-finite values"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 0)])
@pytest.mark.parametrize("order", [1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc"])
def test_the_norm_of_nothing_is_0_and_its_least_element_is_none(shape, order):
    """The sum of no elements is 0, the smallest of no sums does not exist, as in torch."""
    sums = {1: shape[-1], math.inf: shape[-2], 2: min(shape[-2:])}
    if order not in ("fro", "nuc") and order < 0 and not sums[-order]:
        with pytest.raises(IndexError):
            cg.linalg.matrix_norm(cg.ones(shape), order)
    else:
        assert cg.linalg.matrix_norm(cg.ones(shape), order).sum().item() == 0


@pytest.mark.parametrize("ord", [-1, -2, -0.5, 0.5, 1.5, 2, 3])
def test_gradients_are_0_where_a_vector_norm_is_0(ord):
    zero = [0.0, 1.0, 2.0] if ord < 0 else [0.0, 0.0, 0.0]
    x = cg.tensor([zero, [3.0, 1.0, 2.0]], dtype=cg.float64, requires_grad=True)
    y = cg.linalg.vector_norm(x, ord, dim=1)
    gradient, = cg.autograd.grad(y.sum(), x)
    assert y[0] == 0
    assert not gradient[0].any()
    assert gradient[1].all()
