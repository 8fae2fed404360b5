"""Gradients that are pending results while a backward runs: the same bits as at once, the same errors."""

import contextlib

import numpy as np
import pytest

import cygrad as cg
from cygrad.ops import ELEMENTWISE
from pending import at_once
from samples import array_of, operands, same_bits, threads

SIZE = (1 << 17) + 13       # no whole number of blocks, nor of vectors
FLOATS = ("float32", "float64")


def leaves(count, dtype="float64", size=SIZE):
    stream = np.random.default_rng(count)
    return [cg.tensor(stream.uniform(0.3, 0.9, size).astype(dtype), requires_grad=True) for _ in range(count)]


def deferred_or_not(alone):
    return at_once() if alone else contextlib.nullcontext()


def gradients(program, dtype="float64", alone=False, weight=None, **options):
    """Return the gradients of a program, which returns all its results, the differentiated one last; `alone`: nothing is deferred."""
    with deferred_or_not(alone):
        inputs = leaves(4, dtype)
        results = program(*inputs)
        total = results[-1].sum() if weight is None else results[-1]
        return [None if g is None else array_of(g) for g in cg.autograd.grad(total, inputs, weight, allow_unused=True, **options)]


def composite(a, b, c, d):
    x = a * b
    y = x + c
    z = y.tanh()
    return x, y, z, z * d


def unary(a, b, c, d):
    results = [a.exp()]
    for name in ("sin", "tanh", "sigmoid", "square", "exp", "log1p", "sqrt", "neg", "expm1", "atan", "cos", "erf", "sinh", "relu"):
        results.append(getattr(results[-1], name)())
    return results


def scalars(a, b, c, d):
    x = a * 2.0
    y = 3.0 / x
    z = y - b
    return x, y, z, z ** 3


def meeting(a, b, c, d):
    """Gradients that meet: x is used twice, and so is a."""
    x = a * b
    y = x * x
    z = x.sin()
    w = y - z
    return x, y, z, w, w * a


def gathering(a, b, c, d):
    """Gradients meet at leaves and within, from one node and from several, also with gradients of other kinds of nodes."""
    x = a * b
    y = x * x
    z = y.sin()
    u = z * a
    v = x.exp()
    w = v * b
    t = u + w
    r = t.reshape(-1, 1).reshape(-1)
    s = r / x
    p = a + b
    q = s * p
    o = x - a
    return x, y, z, u, v, w, t, s, p, q, o, q + o


def doubled(a, b, c, d):
    """The gradient of a sum, one number expanded, reaches a twice, before a gradient with memory of its own."""
    w = a * b
    p = a + a
    return w, p, p + w


PROGRAMS = [composite, unary, scalars, meeting, gathering, doubled]


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_bits_as_at_once(program, dtype):
    for weight in (None, cg.tensor(np.random.default_rng(9).uniform(-1, 1, SIZE).astype(dtype))):
        for together, alone in zip(gradients(program, dtype, weight=weight), gradients(program, dtype, True, weight), strict=True):
            assert (together is None) == (alone is None)
            assert together is None or same_bits(together, alone)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_bits_do_not_depend_on_the_threads(program):
    runs = []
    for count in (1, 2, 3):
        with threads(count, parallel=False):
            runs.append(gradients(program))
    for other in runs[1:]:
        for a, b in zip(runs[0], other, strict=True):
            assert a is b is None or same_bits(a, b)


@pytest.mark.parametrize("name", [name for name, row in ELEMENTWISE.items() if row.partials and not row.masks])
def test_every_row_between_others(name):
    row = ELEMENTWISE[name]
    arrays = operands(row, "float64", [(SIZE,)] * len(row.operands))
    runs = []
    for alone in (False, True):
        with deferred_or_not(alone):
            inputs = [cg.tensor(array, requires_grad=True) for array in arrays]
            before = [x * 1.0 for x in inputs]
            middle = cg._core.compute.dispatch.ops[name](*before)
            after = middle * middle
            runs.append([array_of(g) for g in cg.autograd.grad(after.sum(), inputs)])
    assert all(map(same_bits, *runs))


def test_weights_values_and_first_gradients_stay_unchanged():
    """Weights and saved values are read only; a gradient that the user holds is not written over."""
    inputs, weight = leaves(4), cg.ones(SIZE, dtype=cg.float64)
    before = [array_of(x) for x in inputs]
    results = composite(*inputs)
    first = cg.autograd.grad(results[-1], inputs, weight, retain_graph=True)
    copies = [array_of(g) for g in first]
    results[-1].backward(weight)
    assert (array_of(weight) == 1).all()
    assert all(map(same_bits, map(array_of, inputs), before))
    assert all(map(same_bits, map(array_of, first), copies))
    assert all(same_bits(array_of(x.grad), g) for x, g in zip(inputs, copies, strict=True))
    assert len({x.grad.data_ptr() for x in inputs}) == 4


def test_a_weight_is_not_added_to_where_gradients_meet_it():
    """The buffer of x has the weight that the user gave, until the gradient from w arrives."""
    runs = []
    for alone in (False, True):
        with deferred_or_not(alone):
            inputs, weights = leaves(4), [cg.ones(SIZE, dtype=cg.float64), cg.full((SIZE,), 2.0, dtype=cg.float64)]
            results = composite(*inputs)
            runs.append([array_of(g) for g in cg.autograd.grad((results[0], results[-1]), inputs, weights)])
        assert (array_of(weights[0]) == 1).all() and (array_of(weights[1]) == 2).all()
    assert all(map(same_bits, *runs))


def test_a_change_in_place_is_found():
    a, b, c, d = leaves(4)
    x, y, z, w = composite(a, b, c, d)
    with cg.no_grad():
        b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.sum().backward()
    assert a.grad is None


def test_hooks_see_every_gradient_in_torchs_order():
    a, b, c, d = leaves(4)
    x, y, z, w = composite(a, b, c, d)
    seen = []
    for name, tensor in {"x": x, "z": z, "a": a, "c": c, "d": d}.items():
        tensor.register_hook(lambda g, name=name: seen.append(name))
    w.sum().backward()
    assert seen == ["z", "d", "c", "x", "a"] or seen == ["d", "z", "c", "x", "a"]


def test_the_graph_is_freed_or_kept():
    inputs = leaves(4)
    results = composite(*inputs)
    total = results[-1].sum()
    total.backward(retain_graph=True)
    total.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        total.backward()
    single = gradients(composite)
    assert all(np.array_equal(array_of(x.grad), 2 * g) for x, g in zip(inputs, single, strict=True))


def test_gradients_that_are_not_needed_are_not_computed():
    a, b, c, d = leaves(4)
    results = composite(a, b, c, d)
    (of_c,) = cg.autograd.grad(results[-1].sum(), c, retain_graph=True)
    assert same_bits(array_of(of_c), gradients(composite)[2])
    (of_y,) = cg.autograd.grad(results[-1].sum(), results[1])
    assert same_bits(array_of(of_y), array_of(of_c))


def test_other_layouts_and_dtypes():
    a = cg.rand(400, 400, dtype=cg.float64, requires_grad=True)
    b = cg.rand(400, 1, dtype=cg.float64, requires_grad=True)
    y = (a.T * b).tanh() * a
    of_a, of_b = cg.autograd.grad(y.sum(), (a, b), create_graph=False)
    recorded = cg.autograd.grad(((a.T * b).tanh() * a).sum(), (a, b), create_graph=True)
    np.testing.assert_allclose(array_of(of_a), array_of(recorded[0]), rtol=1e-12)
    np.testing.assert_allclose(array_of(of_b), array_of(recorded[1]), rtol=1e-12)
    x = leaves(1, "float32")[0]
    (mixed,) = cg.autograd.grad((x.double() * 2).sin().sum(), x)
    assert mixed.dtype == cg.float32


def test_one_number_in_the_memory_of_an_operand():
    """A weight expanded from the first element of a saved operand is not taken for that operand."""
    (x,) = leaves(1)
    y = x * 2.0 * x
    y.backward(x.detach()[:1].expand(SIZE))
    np.testing.assert_allclose(array_of(x.grad), 4 * array_of(x) * array_of(x)[0], rtol=1e-15)
