"""Gradients of overlapping parts of a large tensor, which are added when all have arrived: bits, observers, failures, memory."""

import gc

import numpy as np
import pytest

import cygrad as cg
from core.test_placement import leaf, spread
from cygrad._testing import live_bytes
from cygrad.autograd import Function, grad
from samples import array_of, same_bits

SHAPES = [(5000,), (70, 50), (2, 3000), (20, 15, 12), (5, 6, 7, 16), (3, 4, 5, 6, 8)]


def random_index(rng, shape):
    """Return an index by slices, most of them of neighbouring elements; some drop a dim or skip elements."""
    index = []
    for size in shape:
        start, stop = sorted(int(place) for place in rng.integers(0, size + 1, 2))
        kind = rng.random()
        index.append(slice(None) if kind < 0.3 else start % size if kind < 0.35 else slice(start, stop, 2) if kind < 0.4 else
                     slice(start, stop))
    return tuple(index)


def parts_of(rng, x):
    parts = [x[random_index(rng, x.shape)] for _ in range(rng.integers(2, 14))]
    return [part for part in parts if part.numel()] or [x[1:]]


def weights_of(rng, parts):
    """Return weights of the parts' shapes, with many zeros of both signs."""
    return [cg.tensor(rng.choice([0.0, -0.0, 0.1, -2.5, 3e5], tuple(part.shape))).to(part.dtype) for part in parts]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.cases("dtype", ["float64", "float32", "complex128", "float16"])
@pytest.mark.cases("threads", [1, 3])
def test_gathered_gradients_are_the_sums_of_the_parts(shape, dtype, threads):
    before = cg.get_num_threads()
    cg.set_num_threads(threads)
    try:
        for seed in range(6):
            rng = np.random.default_rng(seed)
            x = leaf(shape, dtype=dtype)
            y = x * 1
            parts = parts_of(rng, y)
            weights = weights_of(rng, parts)
            gathered = [array_of(g) for g in grad(parts, [x, y], weights, retain_graph=True)]
            spread(*parts)
            expected = [array_of(g) for g in grad(parts, [x, y], weights)]
            for one, other in zip(gathered, expected, strict=True):
                np.testing.assert_array_equal(one, other)
    finally:
        cg.set_num_threads(before)


def test_zeros_have_the_sign_of_a_sum():
    x = leaf((5000,))
    negative = cg.full((4000,), -0.0, dtype=cg.float64)
    g, = grad([x[1000:], x[:4000], x[500:4500]], x, [negative] * 3)
    signs = np.signbit(array_of(g))
    # The newest part is copied; to zeros around it the others are added.
    assert signs[500:4500].all() and not signs[:500].any() and not signs[4500:].any()


def test_a_hook_may_change_a_gradient_that_a_part_has_too():
    def gradients(place):
        x = leaf((5000,))
        y = x * 2
        joined = y[1:] + y[:-1]
        z = joined * 1.0
        if place:
            y.grad_fn.register_prehook(lambda grads: (grads[0] * 3,))
            x.register_hook(lambda g: g.add_(1))
        return [array_of(each) for each in grad((z * z.detach().cos()).sum() + y.sum(), [x])]

    once, changed = gradients(False), gradients(True)
    np.testing.assert_allclose(changed[0], once[0] * 3 + 1, rtol=1e-12)


def test_a_function_of_the_user_may_change_a_gradient_that_a_part_has_too():
    class Clearing(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g.zero_()

    x, weight = leaf((5000,)), cg.ones(4999, dtype=cg.float64)
    y = x * 1
    joined = Clearing.apply(y[1:] * 1) + y[:-1]
    g, = grad(joined, x, weight)
    assert array_of(g).tolist() == [1.0] * 4999 + [0.0]


def test_outputs_of_one_node_have_gradients_of_their_own():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return g + 10 * h

    x = leaf((5000,))
    a, b = Both.apply(x)
    parts = [part for k in range(5) for part in (a[k:], b[:4000 + k])]
    g, = grad(parts, x, [cg.ones_like(part) for part in parts])
    expected = np.zeros(5000)
    for k in range(5):
        expected[k:] += 1
        expected[:4000 + k] += 10
    assert array_of(g).tolist() == expected.tolist()


@pytest.mark.usefixtures("usual_sizes")      # a pending program of small results keeps its memory until it runs
def test_a_backward_that_fails_leaves_nothing():
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise RuntimeError("as asked")

    x = leaf((5000,))
    y = Failing.apply(x * 1)
    z = y[1:] + y[:-1] + Failing.apply(y)[1:]
    gc.collect()
    before = live_bytes()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="as asked"):
            z.sum().backward(retain_graph=True)
    gc.collect()
    assert live_bytes() == before
    assert x.grad is None


def test_each_element_is_written_once():
    """Of a stencil of five places: no sum of two of them is a tensor."""
    x = leaf((300, 200))
    inner = x[1:-1, 1:-1] * 0.5 + x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
    g, = grad(inner.sum(), x)
    expected = np.zeros((300, 200))
    for rows, columns, factor in ((slice(1, -1), slice(1, -1), 0.5), (slice(2, None), slice(1, -1), 1), (slice(-2), slice(1, -1), 1),
                                  (slice(1, -1), slice(2, None), 1), (slice(1, -1), slice(-2), 1)):
        expected[rows, columns] += factor
    assert same_bits(array_of(g), expected)


def test_the_address_of_a_gradient_does_not_change_how_it_is_added():
    """A GradientEdge is no hook: the gradient of a part is added at its place, and zeros outside keep their sign."""
    gradients = []
    for asks in (False, True):
        x = cg.zeros(4, 3, dtype=cg.float64, requires_grad=True)
        part = x[1:]
        if asks:
            cg.autograd.graph.get_gradient_edge(part)
        (x.cos().sum() + part.cos().sum()).backward()
        gradients.append(x.grad)
    assert gradients[0].numpy().tobytes() == gradients[1].numpy().tobytes()
    assert gradients[1].signbit().all()
