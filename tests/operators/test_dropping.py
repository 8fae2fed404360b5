"""Dropout and random activations: the drawn numbers, their moments, and refusals before a number is drawn."""

import math

import numpy as np
import pytest

import cygrad as cg
import samples
from samples import array_of

F = cg.nn.functional
ALL = {     # the functions, with an input and the part of it that is dropped together
    "dropout": (lambda x, p, **k: F.dropout(x, p, **k), (40, 50, 2, 2, 2), 5),
    "dropout1d": (lambda x, p, **k: F.dropout1d(x, p, **k), (40, 50, 8), 2),
    "dropout2d": (lambda x, p, **k: F.dropout2d(x, p, **k), (40, 50, 4, 2), 2),
    "dropout3d": (lambda x, p, **k: F.dropout3d(x, p, **k), (40, 50, 2, 2, 2), 2),
    "alpha_dropout": (lambda x, p, training=True, **k: F.alpha_dropout(x, p, training, **k), (40, 50, 8), 3),
    "feature_alpha_dropout": (lambda x, p, training=True, **k: F.feature_alpha_dropout(x, p, training, **k), (40, 50, 8), 2),
}


def seeded(call):
    cg.manual_seed(11)
    return call()


@pytest.mark.parametrize("name", ALL)
def test_dropped_elements(name):
    """Elements, or whole channels, with the probability p; the rest is scaled, and so is the gradient."""
    call, shape, whole = ALL[name]
    x = cg.ones(shape, dtype=cg.float64, requires_grad=True)
    y = seeded(lambda: call(x, 0.25))
    y.sum().backward()
    values = array_of(y).reshape(*shape[:whole], -1)
    assert (values == values[..., :1]).all() and len(np.unique(values)) == 2
    dropped = array_of(x.grad) == 0
    assert abs(dropped.mean() - 0.25) < 4 * math.sqrt(0.1875 / math.prod(shape[:whole]))
    assert len(np.unique(array_of(y)[dropped])) == len(np.unique(array_of(y)[~dropped])) == 1
    if "alpha" not in name:
        assert np.unique(values).tolist() == [0, 1 / 0.75]
    assert cg.equal(y, seeded(lambda: call(x, 0.25)))
    assert not cg.equal(y, call(x, 0.25))


@pytest.mark.parametrize("name", ALL)
def test_ends_and_places(name):
    call, shape, _ = ALL[name]
    x = cg.randn(shape, rng=0)
    state = cg.get_rng_state()
    assert call(x, 0.0) is x and call(x, 0.5, training=False) is x
    assert not call(x, 1.0).any()
    assert cg.equal(cg.get_rng_state(), state)      # none of them draws
    expected = seeded(lambda: call(x, 0.5))
    inplace = x.clone()
    assert seeded(lambda: call(inplace, 0.5, inplace=True)) is inplace and cg.equal(inplace, expected)
    half = seeded(lambda: call(x.half(), 0.5))
    assert half.dtype == cg.float16 and cg.allclose(half.float(), expected, 1e-2, 1e-3)
    for bad, error in ((1.5, ValueError), (-0.5, ValueError), (math.nan, ValueError), ("a", TypeError), (None, TypeError)):
        with pytest.raises(error, match="dropout probability"):
            call(x, bad)
    for dtype, error in ((cg.int64, RuntimeError), (cg.bool, RuntimeError), (cg.complex64, NotImplementedError)):
        with pytest.raises(error, match="result type Float can't be cast|not implemented for"):
            call(cg.ones(shape, dtype=dtype), 0.5)
    assert call(x[:0], 0.5).shape == (0, *shape[1:])


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_mean_and_variance_stay(name):
    x = cg.randn(400, 500, rng=0, dtype=cg.float64)
    for p in (0.1, 0.5, 0.9):
        y = seeded(lambda p=p: ALL[name][0](x, p))
        assert abs(y.mean().item()) < 0.02 and abs(y.var().item() - 1) < 0.04


def test_threads_draw_the_same():
    x = cg.ones(300_000)
    results = []
    for count in (1, 2, 8):
        with samples.threads(count, parallel=False):
            results.append(array_of(seeded(lambda: F.dropout(x, 0.3))))
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()


def test_vmap_asks_for_the_randomness():
    x = cg.ones(4, 100)
    different = seeded(lambda: cg.func.vmap(F.dropout, randomness="different")(x))
    same = cg.func.vmap(F.dropout, randomness="same")(x)
    assert len({tuple(row.tolist()) for row in different}) == 4 and len({tuple(row.tolist()) for row in same}) == 1


def test_shapes_with_and_without_samples():
    x = cg.ones(50, 7, dtype=cg.float64)
    assert (array_of(F.dropout1d(x)).std(1) == 0).all()         # (channels, length)
    assert (array_of(F.dropout3d(cg.ones(50, 2, 2, 2))).reshape(50, -1).std(1) == 0).all()
    with pytest.raises(RuntimeError, match="dropout1d: Expected 2D or 3D input, but received a 1D input"):
        F.dropout1d(x[0])
    with pytest.warns(UserWarning, match="dropout2d: Received a 3D input"):
        assert (array_of(F.dropout2d(cg.ones(5, 6, 7))).std(2) == 0).all()
    with pytest.warns(UserWarning, match="dropout2d: Received a 2-D input"):
        F.dropout2d(x)
    with pytest.warns(UserWarning, match="dropout3d: Received a 3-D input"):
        F.dropout3d(cg.ones(5, 6, 7))
    with pytest.raises(RuntimeError, match="Feature dropout requires at least 2 dimensions in the input"):
        F.feature_alpha_dropout(x[0], training=True)


def test_rrelu():
    x = cg.tensor(np.linspace(-3, 3, 60001), requires_grad=True)
    assert cg.allclose(F.rrelu(x), F.leaky_relu(x, (1 / 8 + 1 / 3) / 2))
    y = seeded(lambda: F.rrelu(x, 0.25, 0.75, True))
    slope, = cg.autograd.grad(y.sum(), x)
    below = array_of(slope)[array_of(x) < 0]
    assert (array_of(slope)[array_of(x) > 0] == 1).all() and below.min() >= 0.25 and below.max() < 0.75 and abs(below.mean() - 0.5) < 0.01
    inplace = x.detach().clone()
    assert F.rrelu_(inplace) is inplace and cg.equal(inplace, F.rrelu(x)) and F.rrelu(inplace, inplace=True) is inplace
    for bounds, message in (((0.5, 0.1), "Lower bound should be less than or equal to the upper bound"),
                            ((math.nan, 1.0), "rrelu: lower bound must be finite, got nan")):
        with pytest.raises(RuntimeError, match=message):
            F.rrelu(x, *bounds)
    with pytest.raises(NotImplementedError, match='"leaky_relu_cpu" not implemented for'):
        F.rrelu(cg.ones(2, dtype=cg.int64))


def test_gumbel_softmax():
    """Categories come as often as softmax says; the hard sample has the gradient of the smooth one."""
    logits = cg.tensor(np.log([0.2, 0.3, 0.5])).expand(20000, 3).clone().requires_grad_()
    hard = seeded(lambda: F.gumbel_softmax(logits, 0.5, hard=True))
    assert cg.allclose(hard.detach().mean(0), cg.tensor([0.2, 0.3, 0.5]).double(), 0, 0.02)
    assert cg.equal(hard.detach().round().sum(1), cg.ones(20000).double())
    smooth = seeded(lambda: F.gumbel_softmax(logits, 0.5))
    weight = cg.randn(20000, 3, rng=1, dtype=cg.float64)
    gradients = [cg.autograd.grad((y * weight).sum(), logits)[0] for y in (hard, smooth)]
    assert cg.equal(*gradients) and cg.allclose(smooth.sum(1), cg.ones(20000).double())
    assert F.gumbel_softmax(logits.half(), dim=0).dtype == cg.float16
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated and has no effect"):
        F.gumbel_softmax(logits, eps=1.0)
    with pytest.raises(RuntimeError, match="Exponential distribution is a continuous probability distribution"):
        F.gumbel_softmax(cg.ones(2, dtype=cg.int64))
