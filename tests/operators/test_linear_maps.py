"""Linear and bilinear maps, attention, similarities: values against NumPy, masks, dtypes, refusals."""

import math
import types

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

F = cg.nn.functional
attention = F.scaled_dot_product_attention
rng = np.random.default_rng(8)


# ----- Maps -----
@pytest.mark.parametrize("outside", [(), (3,), (2, 3), (0, 3)])
def test_values_of_maps(outside):
    x, y, w, b = (rng.standard_normal(shape) for shape in ((*outside, 4), (*outside, 3), (5, 4), (5,)))
    t = [cg.tensor(array) for array in (x, y, w, b)]
    np.testing.assert_allclose(array_of(F.linear(t[0], t[2], t[3])), x @ w.T + b, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(array_of(F.linear(t[0], t[2])), x @ w.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(array_of(F.linear(t[0], t[2][0])), x @ w[0], rtol=1e-12, atol=1e-14)
    maps = rng.standard_normal((5, 4, 3))
    expected = np.einsum("...i,kij,...j->...k", x, maps, y) + b
    np.testing.assert_allclose(array_of(F.bilinear(t[0], t[1], cg.tensor(maps), t[3])), expected, rtol=1e-12, atol=1e-14)


def test_maps_of_16_bits_round_once():
    x, w, b = (cg.tensor(rng.standard_normal(shape)).half() for shape in ((3, 40), (5, 40), (5,)))
    assert cg.equal(F.linear(x, w, b), F.linear(x.float(), w.float(), b.float()).half())
    maps = cg.tensor(rng.standard_normal((5, 40, 40))).half()
    assert cg.equal(F.bilinear(x, x, maps, b), F.bilinear(x.float(), x.float(), maps.float(), b.float()).half())


def test_cross_entropy_of_a_map():
    x, w, b = (cg.tensor(rng.standard_normal(shape)) for shape in ((4, 3), (5, 2, 3), (5, 2)))
    target = cg.tensor(rng.integers(0, 5, (4, 2)))
    scores = (x @ w.reshape(10, 3).mT).reshape(4, 5, 2) + b
    for arguments in ({}, {"reduction": "none"}, {"ignore_index": 1}, {"label_smoothing": 0.1}):
        assert cg.allclose(F.linear_cross_entropy(x, w, target, linear_bias=b, **arguments), F.cross_entropy(scores, target, **arguments))
    one = F.linear_cross_entropy(x[0], w[:, 0], cg.tensor(3))
    assert cg.allclose(one, F.cross_entropy(w[:, 0] @ x[0], cg.tensor(3)))


# ----- Attention -----
def softmax(a):
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_values_of_attention(batch):
    q, k, v = (rng.standard_normal((*batch, *shape)) for shape in ((3, 4), (5, 4), (5, 2)))
    t = [cg.tensor(array) for array in (q, k, v)]
    scores = q @ np.swapaxes(k, -1, -2)
    mask, added = rng.random((3, 5)) > 0.5, rng.standard_normal((3, 5))
    mask[0, 1] = mask[1, 2] = mask[2, 3] = True
    lower = np.tril(np.ones((3, 5), bool))
    for arguments, weights in (({}, scores / 2), ({"scale": 0.3}, scores * 0.3), ({"attn_mask": cg.tensor(added)}, scores / 2 + added),
                               ({"attn_mask": cg.tensor(mask)}, np.where(mask, scores / 2, -np.inf)),
                               ({"is_causal": True}, np.where(lower, scores / 2, -np.inf))):
        np.testing.assert_allclose(array_of(attention(*t, **arguments)), softmax(weights) @ v, rtol=1e-12)


def test_a_query_without_keys_has_the_result_0():
    x = cg.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    for mask in (cg.tensor([[True], [False], [True]]).expand(3, 3), cg.tensor([[0.0], [-math.inf], [0.0]]).double().expand(3, 3)):
        y = attention(x, x, x, mask)
        assert y[1].tolist() == [0] * 4 and y.isfinite().all()
        g, = cg.autograd.grad(y.sum(), x)
        assert g.isfinite().all()
    assert attention(x, x[:0], x[:0]).tolist() == [[0] * 4] * 3
    assert attention(x[:, :0], x[:, :0], x).shape == (3, 4) and attention(x[:0], x, x).shape == (0, 4)


def test_heads_of_queries_share_keys():
    q, k, v = (cg.tensor(rng.standard_normal(shape)) for shape in ((2, 6, 3, 4), (2, 2, 5, 4), (2, 3, 5, 4)))
    expected = attention(q, k.repeat_interleave(3, 1), v.repeat_interleave(2, 1))
    assert cg.equal(attention(q, k, v, enable_gqa=True), expected)
    with pytest.raises(RuntimeError, match="Number of heads in key and value must divide the number of heads in"):
        attention(q, q[:, :4], q[:, :4], enable_gqa=True)


def test_attention_of_16_bits_and_with_dropout():
    x = cg.tensor(rng.standard_normal((5, 4))).half()
    assert cg.equal(attention(x, x, x), attention(x.float(), x.float(), x.float()).half())
    x, eye = cg.zeros(1, 1), cg.eye(1)
    cg.manual_seed(3)
    values = {attention(x, x, eye, dropout_p=0.5).item() for _ in range(40)}
    assert values == {0, 2}


# ----- Similarities -----
def test_similarities():
    a, b = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    x, y = cg.tensor(a), cg.tensor(b)
    norms = [np.linalg.norm(c, axis=1) for c in (a, b)]
    np.testing.assert_allclose(array_of(cg.cosine_similarity(x, y)), (a * b).sum(1) / norms[0] / norms[1], rtol=1e-12)
    assert cg.cosine_similarity(x, y[0], 0).shape == (4,) and cg.cosine_similarity(x, y[0], 1).shape == (3,)
    for p in (1.0, 2.0, 3.0, math.inf):
        expected = np.linalg.norm(a - b + 1e-6, p, 1)
        np.testing.assert_allclose(array_of(cg.pairwise_distance(x, y, p)), expected, rtol=1e-12)
        np.testing.assert_allclose(array_of(F.normalize(x, p)), a / np.linalg.norm(a, p, 1)[:, None], rtol=1e-12)
    out = cg.empty(3, 4, dtype=cg.float64)
    assert F.normalize(x, out=out) is out and cg.equal(out, F.normalize(x))
    zero = cg.zeros(1, 3, requires_grad=True)
    for call in (F.normalize, lambda z: cg.cosine_similarity(z, cg.ones(1, 3)), lambda z: cg.pairwise_distance(z, z.detach())):
        y = call(zero)
        assert y.isfinite().all() and cg.autograd.grad(y.sum(), zero)[0].isfinite().all()
    large = cg.full((1, 4), 3e4, dtype=cg.float16)
    assert F.normalize(large).tolist() == [[0.5] * 4] and cg.cosine_similarity(large, large).item() == 1


def test_glu_and_choices_of_a_dim():
    a = rng.standard_normal((4, 6))
    x = cg.tensor(a)
    np.testing.assert_allclose(array_of(F.glu(x)), a[:, :3] / (1 + np.exp(-a[:, 3:])), rtol=1e-12)
    np.testing.assert_allclose(array_of(F.glu(x, 0)), a[:2] / (1 + np.exp(-a[2:])), rtol=1e-12)
    for function, expected in ((F.softmax, lambda y: x.softmax(y)), (F.softmin, lambda y: (-x).softmax(y)),
                               (F.log_softmax, lambda y: x.log_softmax(y))):
        assert cg.equal(function(x, 0), expected(0)) and function(x, 0, dtype=cg.float32).dtype == cg.float32
        with pytest.warns(UserWarning, match=f"Implicit dimension choice for {function.__name__} has been deprecated") as noted:
            assert cg.equal(function(x), expected(1))
        assert noted[0].filename == __file__
    assert F.prelu is cg.prelu


def test_chunks_of_scores_change_nothing():
    x, w, target = cg.randn(3, 4, dtype=cg.float64), cg.randn(5, 4, dtype=cg.float64), cg.tensor([0, 1, 2])
    options = types.SimpleNamespace(batch_chunk_size=2, chunking_method="auto")
    assert cg.equal(F.linear_cross_entropy(x, w, target, options=options), F.cross_entropy(x @ w.T, target))


X, M, N = cg.ones(3, 4), cg.ones(5, 4), cg.tensor([0, 1, 2])
REFUSED = [
    (lambda: F.linear(X, cg.ones(5, 3)), RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(3x4 and 3x5\)"),
    (lambda: F.linear(X, M, cg.ones(3)), RuntimeError, "must broadcast to the result"),
    (lambda: F.linear(X, cg.ones(2, 3, 4)), RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
    (lambda: F.linear(cg.ones(()), M), RuntimeError, "both arguments to linear need to be at least 1D, but they are 0D and 2D"),
    (lambda: F.bilinear(X, X, cg.ones(2, 4, 3)), RuntimeError, r"bilinear\(\): input2 size does not match weight size: got 4 but"),
    (lambda: F.bilinear(X, X, cg.ones(2, 4, 4), cg.ones(3)), RuntimeError, r"bilinear\(\): bias size does not match weight size: got 3"),
    (lambda: F.bilinear(X, M, cg.ones(2, 4, 4)), RuntimeError, r"bilinear\(\): input batch dimensions do not match at dim 0: got 3 and 5"),
    (lambda: F.bilinear(X, X[0], cg.ones(2, 4, 4)), RuntimeError, r"bilinear\(\): input dimensions do not match: got 2 and 1"),
    (lambda: F.linear_cross_entropy(X[0, 0], M, N), RuntimeError, "expected input with dimensionality 1 or 2, got 0"),
    (lambda: F.linear_cross_entropy(X, M[0], N), RuntimeError, "expected linear_weight with dimensionality at least 2, got 1"),
    (lambda: F.linear_cross_entropy(X, M[:, 1:], N), RuntimeError, "expected equal input and linear_weight last dimensions"),
    (lambda: F.linear_cross_entropy(X, M, N, linear_bias=X[0]), RuntimeError, r"expected linear_bias shape \(5,\), got \(4,\)"),
    (lambda: F.linear_cross_entropy(X[0], cg.ones(5, 2, 4), N), RuntimeError, "K-dimensional loss defined by linear_weight shape"),
    (lambda: F.linear_cross_entropy(X, M, cg.ones(3, 5), ignore_index=1), RuntimeError, "ignore_index cannot be specified when target"),
    (lambda: F.linear_cross_entropy(X, M, N, options=3), TypeError, "options must be an object with torch's fields"),
    (lambda: attention(X[0], X, X), RuntimeError, "Expected query, key, and value to all be  at least 2 dimensional"),
    (lambda: attention(X, X.double(), X), RuntimeError, "Expected query, key, and value to have the same dtype"),
    (lambda: attention(X.cfloat(), X.cfloat(), X.cfloat()), NotImplementedError, '"softmax_lastdim_kernel_impl" not implemented for'),
    (lambda: attention(X, X, X, cg.ones(3, 3).long()), RuntimeError, "Expected attn_mask dtype to be bool or float or to match"),
    (lambda: attention(X, X, X, cg.ones(3, 3), is_causal=True), RuntimeError, "Explicit attn_mask should not be set when is_causal=True"),
    (lambda: attention(X, X, X, dropout_p=2.0), RuntimeError, "dropout probability has to be between 0 and 1, but got 2.0"),
    (lambda: attention(X, X, X, cg.ones(2, 2)), RuntimeError, "The size of tensor a .3. must match the size of tensor b .2."),
    (lambda: cg.cosine_similarity(X.long(), X.long()), RuntimeError, "expected common dtype to be floating point, yet common dtype is"),
    (lambda: cg.cosine_similarity(X, X, eps=-1), RuntimeError, "eps must be non-negative, got: -1"),
    (lambda: cg.cosine_similarity(X, X, 5), IndexError, "Dimension out of range"),
    (lambda: F.normalize(X.long()), RuntimeError, "Expected a floating point or complex tensor as input"),
    (lambda: F.glu(cg.ones(3)), RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
    (lambda: F.glu(cg.ones(())), RuntimeError, "glu does not support scalars because halving size must be even"),
    (lambda: F.glu(X.long()), NotImplementedError, '"glu_cpu" not implemented for'),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
