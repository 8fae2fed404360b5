"""Normalization: values against NumPy, running values, 16-bit numbers, refusals."""

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

F = cg.nn.functional
rng = np.random.default_rng(7)
W, B = rng.standard_normal(6), rng.standard_normal(6)


def standardized(a, axis, eps=1e-5):
    return (a - a.mean(axis, keepdims=True)) / np.sqrt(a.var(axis, keepdims=True) + eps)


def scaled(a, ndim):
    """Return numbers times a weight plus a bias of channels."""
    shape = (1, -1) + (1,) * (ndim - 2)
    return a * W.reshape(shape) + B.reshape(shape)


@pytest.mark.parametrize("shape", [(4, 6), (2, 6, 5), (2, 6, 3, 2), (1, 6, 2, 2, 2)])
def test_values(shape):
    a, w, b = rng.standard_normal(shape) * 3 + 1, cg.tensor(W), cg.tensor(B)
    x, ndim = cg.tensor(a), len(shape)
    rest = tuple(range(2, ndim))
    np.testing.assert_allclose(array_of(F.layer_norm(x, shape[-1:])), standardized(a, -1), rtol=1e-12)
    np.testing.assert_allclose(array_of(F.layer_norm(x, shape[1:])), standardized(a, tuple(range(1, ndim))), rtol=1e-12)
    np.testing.assert_allclose(array_of(F.batch_norm(x, None, None, w, b, True)), scaled(standardized(a, (0, *rest)), ndim), rtol=1e-12)
    groups = standardized(a.reshape(shape[0], 3, -1), -1, 0.1).reshape(shape)
    np.testing.assert_allclose(array_of(F.group_norm(x, 3, w, b, 0.1)), scaled(groups, ndim), rtol=1e-12)
    root = np.sqrt((a * a).mean(-1, keepdims=True) + np.finfo(float).eps)
    np.testing.assert_allclose(array_of(F.rms_norm(x, shape[-1:])), a / root, rtol=1e-12)
    if rest:
        np.testing.assert_allclose(array_of(F.instance_norm(x, None, None, w, b)), scaled(standardized(a, rest), ndim), rtol=1e-12)
        squares = np.pad(a * a, [(0, 0), (2, 1), *[(0, 0)] * (ndim - 2)])
        mean = sum(squares[:, k:k + 6] for k in range(4)) / 4
        np.testing.assert_allclose(array_of(F.local_response_norm(x, 4, 0.5, 0.75, 2.0)), a / (2 + 0.5 * mean)**0.75, rtol=1e-12)


@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.transpose(0, 1).contiguous().transpose(0, 1), lambda x: x.flip(2)])
def test_running_values(layout):
    """They move by a part of the difference, the variance by n - 1; evaluation reads them and changes nothing."""
    a, mean, variance = rng.standard_normal((4, 6, 5)), rng.standard_normal(6), rng.random(6)
    x = layout(cg.tensor(a))
    a = array_of(x)
    for norm, center, spread in ((F.batch_norm, a.mean((0, 2)), a.var((0, 2), ddof=1)),
                                 (F.instance_norm, a.mean((0, 2)), a.var(2, ddof=1).mean(0))):
        m, v = cg.tensor(mean), cg.tensor(variance)
        norm(x, m, v, None, None, True, 0.3)
        np.testing.assert_allclose(array_of(m), 0.7 * mean + 0.3 * center, rtol=1e-12)
        np.testing.assert_allclose(array_of(v), 0.7 * variance + 0.3 * spread, rtol=1e-12)
        before = array_of(m), array_of(v)
        result = norm(x, m, v, None, None, False)
        expected = (a - before[0][:, None]) / np.sqrt(before[1][:, None] + 1e-5)
        np.testing.assert_allclose(array_of(result), expected, rtol=1e-12)
        assert (array_of(m) == before[0]).all() and (array_of(v) == before[1]).all()
    m = cg.tensor(mean)
    F.batch_norm(x, m, None, training=True)     # either of them may be absent
    assert not np.allclose(array_of(m), mean)
    refused = cg.tensor(mean)
    with pytest.raises(RuntimeError, match="weight should contain 6 elements not 3"):
        F.batch_norm(x, refused, None, cg.ones(3).double(), training=True)
    assert (array_of(refused) == mean).all()


@pytest.mark.parametrize("norm", [F.batch_norm, F.instance_norm])
def test_running_values_of_examples(norm):
    """In vmap each example has its own values; values of all examples together would be written several times."""
    x, start = cg.tensor(rng.standard_normal((2, 4, 6, 5))), cg.tensor(rng.random((2, 2, 6)))
    m, v = start.clone()
    result = cg.vmap(lambda x, m, v: norm(x, m, v, None, None, True))(x, m, v)
    for k in range(2):
        own = start[:, k].clone()
        np.testing.assert_allclose(array_of(result[k]), array_of(norm(x[k], *own, None, None, True)), rtol=1e-12)
        np.testing.assert_allclose((array_of(m[k]), array_of(v[k])), array_of(own), rtol=1e-12)
    with pytest.raises(RuntimeError, match=r"vmap: inplace arithmetic\(self, \*extra_args\) is not possible"):
        cg.vmap(lambda x: norm(x, m[0], v[0], None, None, True))(x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats(dtype):
    """They are computed in float32 and rounded once; weights may be of float32."""
    dtype = getattr(cg, dtype)
    x, w = (cg.tensor(rng.standard_normal(shape)).to(dtype) for shape in ((5, 6), (6,)))
    for call in (lambda x, w: F.layer_norm(x, (6,), w, w), lambda x, w: F.rms_norm(x, (6,), w), lambda x, w: F.group_norm(x, 2, w, w),
                 lambda x, w: F.batch_norm(x, None, None, w, w, True)):
        wide = call(x.float(), w.float()).to(dtype)
        assert cg.equal(call(x, w), wide) and cg.equal(call(x, w.float()), wide)
    large = cg.full((2, 4), 3e4, dtype=cg.float16) * cg.tensor([1, -1, 1, -1])
    assert F.layer_norm(large, (4,)).tolist() == [[1, -1, 1, -1]] * 2


def test_rms_norm_takes_weights_of_another_dtype():
    assert F.rms_norm(cg.ones(2, 3), (3,), cg.ones(3).double()).dtype == cg.float32


def test_a_constant_has_the_gradient_0():
    for eps in (1e-5, 1e-30):
        x = cg.full((2, 3), 5.0, requires_grad=True)
        F.layer_norm(x, (3,), eps=eps).square().sum().backward()
        assert x.grad.tolist() == [[0, 0, 0]] * 2


def test_nothing():
    assert F.layer_norm(cg.zeros(0, 4), (4,)).shape == (0, 4) and F.layer_norm(cg.zeros(3, 0), (0,)).shape == (3, 0)
    assert F.batch_norm(cg.zeros(0, 4), None, None, training=True).shape == (0, 4)
    assert F.group_norm(cg.zeros(2, 4, 0), 2).shape == (2, 4, 0) and F.local_response_norm(cg.zeros(0, 3, 4), 2).shape == (0, 3, 4)


X, X3 = cg.ones(3, 4), cg.ones(2, 3, 4)
ONES = {n: cg.ones(n) for n in (2, 3, 4)}
REFUSED = [
    (lambda: F.layer_norm(X, 4), TypeError, r"layer_norm\(\): argument 'normalized_shape' \(position 2\) must be tuple of ints, not int"),
    (lambda: F.layer_norm(X, (3,)), RuntimeError, r"Given normalized_shape=\[3\], expected input with shape \[\*, 3\], but got input of"),
    (lambda: F.layer_norm(X, ()), RuntimeError, "Expected normalized_shape to be at least 1-dimensional"),
    (lambda: F.layer_norm(X, (4,), ONES[3]), RuntimeError, "Expected weight to be of same shape as normalized_shape"),
    (lambda: F.layer_norm(X, (4,), None, ONES[3]), RuntimeError, "Expected bias to be of same shape as normalized_shape"),
    (lambda: F.layer_norm(X, (4,), ONES[4].double()), RuntimeError, r"mixed dtype \(CPU\): expect parameter to have scalar type of Float"),
    (lambda: F.layer_norm(X.long(), (4,)), NotImplementedError, '"LayerNormKernelImpl" not implemented for'),
    (lambda: F.rms_norm(X.long(), (4,)), NotImplementedError, '"rms_norm" not implemented for'),
    (lambda: F.group_norm(X, 3), RuntimeError, "Expected number of channels in input to be divisible by num_groups"),
    (lambda: F.group_norm(X, 0), RuntimeError, "Expected num groups to be greater than 0, got 0"),
    (lambda: F.group_norm(ONES[4], 2), RuntimeError, "Expected at least 2 dimensions for input tensor but received 1"),
    (lambda: F.group_norm(cg.ones(1, 4), 4), ValueError, r"Expected more than 1 value per channel when training, got input size \[1, 4\]"),
    (lambda: F.group_norm(X, 2, ONES[3]), RuntimeError, "Expected weight to be a vector of size equal to the number of channels in input"),
    (lambda: F.instance_norm(X), ValueError, "Expected more than 1 spatial element when training"),
    (lambda: F.instance_norm(X3, use_input_stats=False), RuntimeError, "Expected running_mean and running_var to be defined when"),
    (lambda: F.instance_norm(X3, ONES[3]), ValueError, "running_mean and running_var must either both be None or neither be None"),
    (lambda: F.batch_norm(X, None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
    (lambda: F.batch_norm(X, ONES[4], None), RuntimeError, "running_var must be defined in evaluation mode"),
    (lambda: F.batch_norm(X, ONES[3], ONES[4]), RuntimeError, "running_mean should contain 4 elements not 3"),
    (lambda: F.batch_norm(X, ONES[4], ONES[4], ONES[4], ONES[3]), RuntimeError, "bias should contain 4 elements not 3"),
    (lambda: F.batch_norm(cg.ones(1, 4), None, None, training=True), ValueError, "Expected more than 1 value per channel when training"),
    (lambda: F.batch_norm(ONES[4], ONES[4], ONES[4]), RuntimeError, "Expected at least 2 dimensions"),
    (lambda: F.batch_norm(X, ONES[4], ONES[4], eps=-1), ValueError, "batch_norm eps must be non-negative, but got -1"),
    (lambda: F.batch_norm(X, ONES[4], ONES[4], eps=0, training=True), ValueError, "batch_norm eps must be positive during training, but"),
    (lambda: F.batch_norm(X.long(), ONES[4], ONES[4]), NotImplementedError, '"batch_norm" not implemented for'),
    (lambda: F.local_response_norm(X, 2), ValueError, "Expected 3D or higher dimensionality"),
    (lambda: F.local_response_norm(X3, 0), RuntimeError, "kernel size should be greater than zero, but got kH: 0 kW: 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ----- With the moments -----
def test_native_norms_return_the_moments():
    x = cg.arange(24.0, dtype=cg.float64).reshape(2, 4, 3).square().requires_grad_()
    a = x.detach().numpy()
    w, b = cg.arange(4.0, dtype=cg.float64) + 1, cg.ones(4, dtype=cg.float64)

    def of(array, axes, keep=False):
        return array.mean(axes, keepdims=keep), 1 / np.sqrt(array.var(axes, keepdims=keep) + 1e-5)

    layer = cg.native_layer_norm(x, (4, 3), None, None, 1e-5)
    group = cg.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5)
    running = cg.zeros(4, dtype=cg.float64), cg.ones(4, dtype=cg.float64)
    batch = cg.native_batch_norm(x, w, b, *running, True, 0.1, 1e-5)
    out = tuple(cg.zeros_like(part) for part in batch)
    written = cg.native_batch_norm(x.detach(), w, b, None, None, True, 0.1, 1e-5, out=out)
    assert all(part is place and part.equal(expected) for part, place, expected in zip(written, out, batch, strict=True))
    F = cg.nn.functional
    for parts, result, moments, shape in (
            (layer, F.layer_norm(x, (4, 3)), of(a, (1, 2), True), (2, 1, 1)),
            (group, F.group_norm(x, 2, w, b), of(a.reshape(2, 2, 6), 2), (2, 2)),
            (batch, F.batch_norm(x, None, None, w, b, True), of(a, (0, 2)), (4,))):
        np.testing.assert_allclose(parts[0].detach().numpy(), result.detach().numpy(), rtol=1e-12)
        for part, expected in zip(parts[1:], moments, strict=True):
            assert part.shape == shape
            np.testing.assert_allclose(part.detach().numpy(), expected, rtol=1e-12)
    assert [part.requires_grad for part in (*layer, *group, *batch)] == [True, False, False, True, True, True, True, False, False]
    np.testing.assert_allclose(running[0].numpy(), 0.1 * a.mean((0, 2)), rtol=1e-12)
    result, mean, scale = cg.native_batch_norm(x, w, b, *running, False, 0.1, 1e-5)
    assert result.shape == x.shape and mean.shape == scale.shape == (0,)
    assert [part.dtype for part in cg.native_layer_norm(x.bfloat16(), (3,), None, None, 1e-5)] == [cg.bfloat16] * 3


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: cg.native_group_norm(x, None, None, 2, 5, 3, 2, 1e-5), RuntimeError, "Expected number of channels in input to be divisible"),
    (lambda x: cg.native_group_norm(x, None, None, 2, 4, 4, 2, 1e-5), RuntimeError, r"Expected X.numel\(\) == N \* C \* HxW to be true"),
    (lambda x: cg.native_group_norm(x, None, None, 2, 4, 3, 0, 1e-5), RuntimeError, "Expected num groups to be greater than 0, got 0"),
    (lambda x: cg.native_group_norm(x, cg.ones(3), None, 2, 4, 3, 2, 1e-5), RuntimeError, "Expected weight to be a vector of size"),
    (lambda x: cg.native_group_norm(x.long(), None, None, 2, 4, 3, 2, 1e-5), NotImplementedError, "\"GroupNormKernelImpl\" not impl.*Long"),
    (lambda x: cg.native_batch_norm(x.long(), None, None, None, None, True, 0.1, 1e-5), NotImplementedError, "\"batch_norm\" not"),
    (lambda x: cg.native_batch_norm(x, cg.ones(3), None, None, None, True, 0.1, 1e-5), RuntimeError, "weight should contain 4"),
    (lambda x: cg.native_batch_norm(x, None, None, None, None, False, 0.1, 1e-5), RuntimeError, "must be defined in evaluation mode"),
    (lambda x: cg.native_layer_norm(x, (4,), None, None, 1e-5), RuntimeError, r"Given normalized_shape=\[4\], expected input with shape"),
])
def test_native_norms_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call(cg.ones(2, 4, 3))
