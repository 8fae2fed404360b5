"""Distances of close, of equal and of no points."""

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

X = cg.tensor([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]], dtype=cg.float64)


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_close_points_keep_their_distance(mode):
    """Far from the origin |a|^2 + |b|^2 - 2 a.b cancels."""
    a = cg.tensor(1e8 + np.random.default_rng(1).normal(size=(40, 30)), requires_grad=True)
    b = a.detach() + 1e-3
    distances = cg.cdist(a, b, compute_mode=mode)
    expected = np.linalg.norm(array_of(a)[:, None] - array_of(b)[None], axis=-1)
    np.testing.assert_allclose(array_of(distances), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_sets_of_any_size_in_dims_that_broadcast(count, dtype):
    a, b = (np.random.default_rng(2).normal(size=shape).astype(dtype) for shape in ((2, 1, 5, 3), (3, count, 3)))
    expected = np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], axis=-1)
    np.testing.assert_allclose(array_of(cg.cdist(cg.tensor(a), cg.tensor(b))), expected, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("mode", "p"), [("use_mm_for_euclid_dist", 2.0), ("donot_use_mm_for_euclid_dist", 2.0), (None, 1.0), (None, 3.0)])
def test_equal_points_have_distance_and_gradient_zero(mode, p):
    a = cg.randn(30, 27, dtype=cg.float64, requires_grad=True)
    distances = cg.cdist(a, a.detach(), p=p, compute_mode=mode)
    assert not distances.diagonal().any()
    assert not cg.autograd.grad(distances.diagonal().sum(), a)[0].any()


def test_empty_sets():
    assert cg.cdist(cg.ones(0, 3), cg.ones(2, 3)).shape == (0, 2) and cg.cdist(cg.ones(2, 0), cg.ones(3, 0)).tolist() == [[0] * 3] * 2
    assert cg.pdist(cg.ones(1, 3)).shape == (0,)


REFUSED = [
    (lambda: cg.cdist(X, X[:, :2]), RuntimeError, "X1 and X2 must have the same number of columns. X1: 3 X2: 2"),
    (lambda: cg.cdist(X, X.float()), RuntimeError, "expected scalar type Double but found Float"),
    (lambda: cg.cdist(X.long(), X.long()), RuntimeError, "cdist only supports floating-point dtypes, X1 got: Long"),
    (lambda: cg.cdist(X[0], X), RuntimeError, "cdist only supports at least 2D tensors, X1 got: 1D"),
    (lambda: cg.cdist(X, X, p=-1.0), RuntimeError, "cdist only supports non-negative p values, got -1.0"),
    (lambda: cg.cdist(X, X, compute_mode="fast"), ValueError, "fast is not a valid value for compute_mode"),
    (lambda: cg.pdist(X[0]), RuntimeError, "pdist only supports 2D tensors, got: 1D"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dtype", [cg.float32, cg.float64])
def test_distances_of_pairs_whose_squares_are_out_of_range(dtype):
    large, small = (1e30, 1e-30) if dtype is cg.float32 else (1e300, 1e-300)
    for size in large, small:
        x = cg.tensor([[3 * size, 0.0], [0.0, 4 * size], [0.0, 4 * size]], dtype=dtype, requires_grad=True)
        distances = cg.pdist(x)
        np.testing.assert_allclose(array_of(distances) / size, [5, 5, 0], rtol=1e-6)
        gradient, = cg.autograd.grad(distances[:2].sum(), x)
        np.testing.assert_allclose(array_of(gradient), [[1.2, -1.6], [-0.6, 0.8], [-0.6, 0.8]], rtol=1e-6)
    x = cg.tensor([[cg.inf, 0.0], [0.0, 0.0], [cg.nan, 0.0]], dtype=dtype)
    np.testing.assert_array_equal(array_of(cg.pdist(x)), [np.inf, np.nan, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(2, 1), (5, 3), (9, 8), (3, 0)])
def test_distances_of_pairs_and_their_gradients(shape, dtype):
    a = np.random.default_rng(3).normal(size=shape).astype(dtype)
    x = cg.tensor(a, requires_grad=True)
    first, second = np.triu_indices(len(a), 1)
    difference = (a[first] - a[second]).astype(np.float64)
    expected = np.linalg.norm(difference, axis=-1)
    distances = cg.pdist(x)
    np.testing.assert_allclose(array_of(distances), expected, rtol=4 * np.finfo(dtype).eps)
    weights = np.arange(1.0, len(expected) + 1)
    gradient = np.zeros(shape)
    with np.errstate(invalid="ignore"):
        parts = weights[:, None] * difference / expected[:, None]
    np.add.at(gradient, first, parts)
    np.subtract.at(gradient, second, parts)
    ours, = cg.autograd.grad(distances, x, cg.tensor(weights.astype(dtype)))
    np.testing.assert_allclose(array_of(ours), gradient, rtol=1e-4 if dtype == np.float32 else 1e-10, atol=100 * np.finfo(dtype).eps)


def test_gradients_of_few_and_of_many_points_agree():
    """Few points have sums of differences, many have products of matrices; far from the origin, too."""
    a, b = (1e6 + np.random.default_rng(4).normal(size=(count, 3)) for count in (30, 20))
    whole = [cg.tensor(x, requires_grad=True) for x in (a, b)]
    few = [cg.tensor(x[:20], requires_grad=True) for x in (a, b)]
    seed = np.zeros((30, 20))
    seed[:20] = np.random.default_rng(5).normal(size=(20, 20))
    many = cg.autograd.grad(cg.cdist(*whole), whole, cg.tensor(seed))
    for gradient, other in zip(many, cg.autograd.grad(cg.cdist(*few), few, cg.tensor(seed[:20])), strict=True):
        np.testing.assert_allclose(array_of(gradient)[:20], array_of(other), rtol=1e-6, atol=1e-6)
