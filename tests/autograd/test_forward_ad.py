"""Forward mode beside the operators' own tests: tangents of shared memory, of writes, and operations that have no tangent."""

import copy
import io
import pickle
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad._core.levels.level import active_levels, enter_level, exit_level, innermost_level, outside_of_levels
from cygrad.autograd import forward_ad as fw
from cygrad.func import grad, hessian, jacrev, jvp, vmap
from samples import array_of

pytestmark = pytest.mark.usefixtures("nothing_left")

X = np.array([1.0, 2.0, 3.0])
T = np.array([1.0, 10.0, 100.0])


def vector(array=X):
    return cg.tensor(np.array(array))


def by_differences(f, step=1e-6):
    """Return the tangent of a function by central differences, without forward mode."""
    return (array_of(f(vector(X + step * T))) - array_of(f(vector(X - step * T)))) / (2 * step)


def check(f):
    expected = by_differences(f)
    with fw.dual_level():
        value, tangent = fw.unpack_dual(f(fw.make_dual(vector(), vector(T))))
        tangent = np.zeros(value.shape) if tangent is None else array_of(tangent)
    np.testing.assert_array_equal(array_of(value), array_of(f(vector())))
    np.testing.assert_allclose(tangent, expected, atol=1e-6)
    np.testing.assert_allclose(array_of(jvp(f, (vector(),), (vector(T),))[1]), expected, atol=1e-6)
    # The tangents differ among the examples, the primal does not.
    rows = vmap(lambda t: jvp(f, (vector(),), (t,))[1])(cg.stack([vector(T), 2 * vector(T)]))
    np.testing.assert_allclose(array_of(rows), [expected, 2 * expected], atol=2e-6)


# ----- Writes into shared memory -----
def program(*lines):
    """Return a function of x that runs lines and returns the value of the last one."""
    source = "\n    ".join([*lines[:-1], f"return {lines[-1]}"])
    names = {"cg": cg}
    exec(f"def f(x):\n    {source}", names)  # noqa: S102 - lines of this file
    return names["f"]


ALIASES = [
    ("y = x + 0", "y.mul_(3)", "x * 1"),
    ("y = x + 0", "y[0] = 7.0", "x * 1"),
    ("y = x + 0", "y[0] = 7.0", "y * 1"),
    ("y = x.reshape(3) + 1", "z = y + 1", "z.mul_(2)", "y * 1"),
    ("y = x - 0.0", "z = y + 0.0", "y.zero_()", "z * 1"),
    ("y = x.sum()", "z = y + 0", "z.mul_(2)", "y * 1"),
    ("y = x + x.detach() * 0", "y.mul_(2)", "x * 1"),
    ("y = -(-x)", "y.mul_(2)", "x * 1"),
    ("y = x.clone()", "y.mul_(2)", "x * 1"),
    # Views made before the writing, written to on either side.
    ("y = x * 1", "v = y[:2]", "y.mul_(2)", "v * 1"),
    ("y = x * 1", "v = y[:2]", "v.mul_(2)", "y * 1"),
    ("y = x * 1", "v = y.as_strided((2,), (2,))", "v.mul_(3.0)", "y * 1"),
    ("y = x * 1", "y.unsqueeze(0).mul_(7)", "y * 1"),
    ("y = x * 1", "y.add_(1).mul_(2)", "y"),
    ("y = x * 1", "y += y", "y"),
    ("y = x * 1", "y *= y", "y"),
    ("y = x * 1", "y[1:] = y[:-1]", "y"),
    ("y = x * 1", "a, b = y.split([1, 2])", "b.mul_(a)", "y * 1"),
    ("y = x * 1", "y.unbind()[0].mul_(4)", "y * 1"),
    ("y = x * 1", "v = y[:2]", "v.fill_(2.0)", "y * 2"),
    ("y = x * 1", "v = y[:2]", "v.zero_()", "y * 2"),
    ("y = x * 1", "y.copy_(cg.ones(3))", "y * 2"),
    ("y = cg.stack([x, x])", "y[0].mul_(3)", "y * 1"),
    ("y = (x * cg.ones(2, 3)).T", "v = y[0]", "y[0, 0] = 5.0", "v * 1"),
    ("y = x.expand(2, 3) * 1", "v = y[0]", "y[0, 1] = 5", "v * 1"),
    ("y = x.sum().expand(3) + 0", "v = y[:2]", "y[0] = 5.0", "v * 1"),
    ("y = x.sum() + cg.zeros(3)", "v = y[:2]", "y[0] = 5.0", "v * 1"),
    # Memory that had no tangent before the write.
    ("y = cg.zeros(3, dtype=cg.float64)", "y.copy_(x)", "y * y"),
    ("y = cg.zeros(3)", "v = y[:2]", "y.copy_(x)", "v * v"),
    ("y = cg.zeros(3)", "v = y[1:]", "v.copy_(x[:2])", "y * 1"),
    ("y = cg.zeros(3)", "v, w = y[1:], y[:2]", "v.copy_(x[:2])", "w * 1"),
    ("y = cg.zeros(3)", "y[:2].fill_(x[1])", "y * 2"),
    ("m = cg.zeros(2, 3)", "v = m[0]", "m[0] = x", "m[0, 0] = 2", "v * 1"),
    ("m = cg.zeros(2, 3)", "v = m.T", "m[0] = x", "v * 2"),
    ("m = cg.zeros(6)", "v = m.view(2, 3)[1]", "m[3:] = x", "v.sum() + m.sum()"),
    ("m = cg.zeros(2, 2)", "m.diagonal().copy_(x[:2])", "m * 1"),
    ("m = cg.zeros(3, 3).T", "m[:, 1] = x", "m[1] = x", "m * 1"),
    # Views that reach beyond the part whose tangent was computed first.
    ("(x * 1)[1:].as_strided((2,), (1,), 0)",),
    ("y = x * 1", "v = y[1:]", "y[0] = 5.0", "v.as_strided((3,), (1,), 0) * 1"),
    ("y = x * 1", "v = y.as_strided((2, 2), (1, 1))", "y[1] = x[0]", "v * 1"),
    ("y = x * 1", "v = y.view(3, 1).expand(3, 2)", "y[1] = x[0] * x[0]", "v * 1"),
]


@pytest.mark.cases("lines", ALIASES, ids="; ".join)
def test_tensors_that_share_memory_share_its_tangent(lines):
    default = cg.get_default_dtype()
    cg.set_default_dtype(cg.float64)
    try:
        check(program(*lines))
    finally:
        cg.set_default_dtype(default)


@pytest.mark.parametrize("kind", ["expanded", "transposed", "stepped"])
def test_tangents_and_values_of_any_layout(kind):
    """Writing into a primal does not change the user's tangent, whose layout may differ from the primal's."""
    layouts = {"expanded": vector([[2.0]]).expand(3, 3), "transposed": vector(np.arange(9.0).reshape(3, 3)).T,
               "stepped": vector(np.arange(18.0).reshape(3, 6))[:, ::2]}
    tangent, before = layouts[kind], array_of(layouts[kind])

    def f(x):
        y = x * 1
        rows = y[1:]
        y[2, 0] = 5.0
        y[:, 1] = y[:, 0] * 2
        return y, rows * 1

    value = vector(np.arange(9.0).reshape(3, 3))
    expected = before.copy()
    expected[2, 0] = 0
    expected[:, 1] = expected[:, 0] * 2
    for primal in (value, value.T.contiguous().T, vector([1.0]).expand(3, 3)):
        _, (of_all, of_rows) = jvp(f, (primal,), (tangent,))
        np.testing.assert_array_equal(array_of(of_all), expected)
        np.testing.assert_array_equal(array_of(of_rows), expected[1:])
    np.testing.assert_array_equal(array_of(tangent), before)
    with fw.dual_level():
        dual = fw.make_dual(vector([1.0]).expand(3, 3), tangent)
        np.testing.assert_array_equal(array_of(fw.unpack_dual(dual[1:].T * 1).tangent), before[1:].T)


# ----- Against differences -----
CALLS = [
    ("cat with integers", lambda x: cg.cat([x, cg.tensor([5, 6])])),
    ("stack with truth values", lambda x: cg.stack([x, x > 1.5])),
    ("diagonal_scatter of integers", lambda x: x.expand(3, 3).diagonal_scatter(cg.tensor([1, 2, 3]))),
    ("slice_scatter of truth values", lambda x: x.slice_scatter(x[:2] > 1.5, 0, 0, 2)),
    ("select_scatter of integers", lambda x: x.expand(3, 3).select_scatter(cg.tensor([1, 2, 3]), 0, 1)),
    ("full", lambda x: cg.full((2,), x[1])),
    ("new_full", lambda x: x.new_full((2,), x[1])),
    ("asarray", lambda x: cg.asarray(x, copy=True)),
    ("as_subclass", lambda x: x.as_subclass(type("Field", (cg.Tensor,), {})) * x),
    ("as_subclass of a repeated tensor", lambda x: x.expand(2, 3).as_subclass(type("Field", (cg.Tensor,), {}))[1] * 2),
    ("round_", lambda x: x.clone().round_() + x),
    ("round_ to decimals", lambda x: x.clone().round_(decimals=1) + x),
    ("masked_scatter", lambda x: x.masked_scatter(x > 1.5, x * x)),
    ("unsqueeze_", lambda x: (x * 1).unsqueeze_(0).mul_(2) * x),
    ("t_", lambda x: x.expand(2, 3).clone().t_()[1:] * 2),
    ("transpose_, written to", lambda x: (x * cg.ones(2, 1)).transpose_(0, 1).mul_(x[:2])),
    ("squeeze_ of a view", lambda x: (x * 1).view(3, 1).squeeze_(1) * x),
    ("as_strided_", lambda x: (x * 1).as_strided_((2, 2), (1, 1))),
    ("NumPy's function", lambda x: np.exp(x) * np.array([1.0, 2.0, 3.0])),
    ("numbers from it", lambda x: x * 2 if x.sum().item() > 0 and bool(x[0] > 0) and x.tolist() else x),
    ("detach_", lambda x: _detached(x * x) + x),
    ("one matrix", lambda x: x.expand(2, 3) @ cg.diag(x)),
]


def _detached(x):
    return x.detach_() * 0      # has no tangent any more


@pytest.mark.cases("f", [f for _, f in CALLS], ids=[name for name, _ in CALLS])
def test_calls(f):
    check(f)


def test_detaching_in_place_ends_the_tangent():
    with fw.dual_level():
        x = fw.make_dual(vector(), vector(T))
        y = x * 2
        assert fw.unpack_dual(y.detach_() * 3).tangent is None
        with pytest.raises(RuntimeError, match="Can't detach views in-place"):
            x.detach_()


def test_the_standard_deviation_of_equal_values():
    """The derivative is 0, by convention, in both modes and with respect to the weight of its gradient."""
    x = vector([2.0, 2.0, 2.0])
    assert jvp(cg.std, (x,), (vector(T),))[1].item() == 0
    leaf, weight = x.clone().requires_grad_(), vector(1.0).requires_grad_()
    gradient, = cg.autograd.grad(leaf.std(), leaf, weight, create_graph=True)
    assert cg.autograd.grad(gradient.sum(), weight)[0].item() == 0


# ----- Calls that would lose a tangent, or a derivative -----
LOSING = [
    ("numpy", lambda x: x.numpy(), "Can't call numpy\\(\\) on Tensor that has a tangent"),
    ("array", np.asarray, "Can't call numpy"),
    ("buffer", memoryview, "Can't call the buffer protocol"),
    ("DLPack", lambda x: x.__dlpack__(), "Can't call __dlpack__"),
    ("from_dlpack", cg.from_dlpack, "Can't call from_dlpack"),
    ("copy", copy.copy, "Can't call copy.copy"),
    ("deepcopy", copy.deepcopy, "Can't call the deepcopy protocol"),
    ("pickle", pickle.dumps, "Can't call pickle"),
    ("save", lambda x: cg.save({"x": x}, io.BytesIO()), "Can't call cygrad.save"),
    ("an array of NumPy's", lambda x: np.add(x, 1, out=np.zeros(3)), "Can't call numpy"),
    ("other memory", lambda x: setattr(x, "data", vector()), "Can't call an assignment to `.data`"),
    ("resize_", lambda x: x.resize_(2), "resize_"),
    ("set_", lambda x: x.set_(vector()), "set_"),
]


@pytest.mark.cases(("f", "message"), [row[1:] for row in LOSING], ids=[row[0] for row in LOSING])
def test_calls_that_would_lose_a_tangent_are_refused(f, message):
    with fw.dual_level():
        dual = fw.make_dual(vector(), vector(T)) * 1
        with pytest.raises((RuntimeError, BufferError), match=message):
            f(dual)
        view = cg.zeros(3, dtype=cg.float64)[:]
        view._base.copy_(dual)      # the tangent is the base's
        with pytest.raises((RuntimeError, BufferError), match=message):
            f(view)
        assert fw.unpack_dual(dual).tangent.tolist() == T.tolist()
    dual.numpy(), memoryview(dual), dual.__dlpack__(), copy.deepcopy(dual), pickle.loads(pickle.dumps(dual))    # no tangents any more


@pytest.mark.parametrize("f", [row[1] for row in LOSING[2:9]], ids=[row[0] for row in LOSING[2:9]])
def test_calls_that_would_lose_a_derivative_are_refused(f):
    with pytest.raises((RuntimeError, BufferError), match="that a function is being differentiated with respect to|requires? grad"):
        grad(lambda x: (f(x), x.sum())[1])(vector())
    for switch in (lambda x: x.requires_grad_(False), lambda x: setattr(x, "requires_grad", False)):
        with pytest.raises(RuntimeError, match="You are attempting to call Tensor.requires_grad_\\(\\) inside of a function"):
            grad(lambda x, switch=switch: (switch(x), (x * x).sum())[1])(vector())
    copy.deepcopy(grad(lambda x: x.sum())(vector()))


def test_a_primal_in_a_closure_has_no_tangent():
    x = vector()
    value, tangent = jvp(lambda y: x * y + x[:1], (x,), (vector(T),))
    np.testing.assert_array_equal(array_of(tangent), X * T)
    with fw.dual_level():
        dual = fw.make_dual(x, vector(T))
        primal, _ = fw.unpack_dual(dual * 1)
        for plain in (x * 2, x[:2] * 2, primal * 2, primal[:2] * 2, fw.unpack_dual(primal).primal, dual.detach()[:2] * 2):
            assert fw.unpack_dual(plain).tangent is None
        assert fw.unpack_dual(dual[:2]).tangent.tolist() == [1, 10]


def test_writing_with_two_levels_at_work():
    """The views share the tangents of both levels, the later one too."""
    def f(x):
        y = x * 1
        view = y[:2]

        def g(z):
            y[0] = z[1] * x[0]
            return view * z[:2]

        return jvp(g, (vector([5.0, 6.0]),), (vector([1.0, 1.0]),))[1]

    # g's tangent: d(z1 x0 z0, x1 z1) along (1, 1) = (x0 (z0 + z1), x1)
    value, tangent = jvp(f, (vector(),), (vector(T),))
    np.testing.assert_allclose(array_of(value), [11, 2])
    np.testing.assert_allclose(array_of(tangent), [11, 10])


def test_history_survives_a_read_without_grad():
    """A view needs its tangent in another layout: it is copied to that layout, with its history."""
    tangent = vector(np.ones((2, 2))).requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(vector(np.ones((2, 2))), tangent.T) * 1
        for mode in (cg.no_grad(), cg.inference_mode()):
            with mode:
                dual[0] * 2
        dual[0, 0] = 3.0
        fw.unpack_dual(dual * 2).tangent.sum().backward()
    assert tangent.grad.tolist() == [[0, 2], [2, 2]]


# ----- Levels -----
def test_outside_of_levels():
    """A level that begins there and goes on is the innermost one afterwards."""
    levels = [enter_level(), enter_level()]
    with outside_of_levels():
        assert innermost_level() is None
        levels.append(enter_level())
        assert innermost_level() is levels[2]
    assert active_levels() == tuple(levels)
    with pytest.raises(ValueError), outside_of_levels():
        raise ValueError
    for level in reversed(levels):
        assert innermost_level() is level
        exit_level(level)
    assert innermost_level() is None


def test_levels_that_a_generator_ends_late():
    def duals():
        with fw.dual_level():
            yield fw.make_dual(vector(), vector(T))

    suspended = duals()
    dual = next(suspended)

    def f(x):
        suspended.close()       # ends the outer level inside of the inner one
        return x * 2

    value, tangent = jvp(f, (vector(),), (vector(T),))
    assert tangent.tolist() == (2 * T).tolist()
    assert fw.unpack_dual(dual).tangent is None
    assert innermost_level() is None
    with fw.dual_level():
        assert fw.unpack_dual(fw.make_dual(vector(), vector(T)) * 2).tangent.tolist() == (2 * T).tolist()


def test_a_level_that_another_thread_ends():
    level = enter_level()
    thread = threading.Thread(target=exit_level, args=(level,))
    thread.start()
    thread.join()
    assert innermost_level() is None
    with pytest.raises(RuntimeError, match="has ended before"):
        exit_level(level)


# ----- Views that operators make for themselves -----
@pytest.mark.parametrize("kind", ["plain", "expanded", "view"])
def test_tensors_saved_by_operators_have_their_tangents(kind):
    """A matrix product saves its vector as a matrix: a view made while the level is hidden."""
    vectors = {"plain": vector(), "expanded": vector([2.0]).expand(3), "view": vector(np.arange(6.0))[1::2]}
    matrix, weight = vector(np.arange(9.0).reshape(3, 3)), vector([1.0, -1.0, 2.0])
    with fw.dual_level():
        x = fw.make_dual(vectors[kind], vector(T)).requires_grad_()
        m = fw.make_dual(matrix, matrix.T.contiguous()).requires_grad_()
        of_matrix, of_vector = cg.autograd.grad(m @ x, (m, x), weight)
        np.testing.assert_allclose(array_of(fw.unpack_dual(of_matrix).tangent), np.outer(array_of(weight), T))
        np.testing.assert_allclose(array_of(fw.unpack_dual(of_vector).tangent), array_of(matrix) @ array_of(weight))
    twice = hessian(lambda v: (v.expand(3, 3) @ (v.view(3, 1).expand(3, 3) @ v)).sum())(vector())
    np.testing.assert_allclose(array_of(twice), array_of(jacrev(jacrev(lambda v: (v.expand(3, 3) @ (v.view(3, 1).expand(3, 3) @ v)).sum()))(
        vector())))


@pytest.mark.parametrize(("primal", "tangent", "as_it_is"), [       # as torch 2.13 has it
    (lambda t: t, lambda t: t, True), (lambda t: t[:3], lambda t: t[:3], True), (lambda t: t.T, lambda t: t.T, True),
    (lambda t: t[:1], lambda t: t.as_strided((1, 4), (7, 1)), True), (lambda t: t[:3], lambda t: t[:3].clone(), False),
    (lambda t: t[:3].clone(), lambda t: t[:3], False), (lambda t: t, lambda t: t.T, False),
    (lambda t: t, lambda t: t[:1].expand(4, 4), False),
])
def test_a_tangent_of_another_layout_is_copied(primal, tangent, as_it_is):
    """So a write to the tangent from unpack_dual reaches the user's tensor only if both have the same layout."""
    direction = tangent(cg.arange(16.0).view(4, 4)).requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(primal(cg.ones(4, 4)), direction)
        result = fw.unpack_dual(dual).tangent
        assert result.tolist() == direction.tolist()
        assert (result.data_ptr() == direction.data_ptr()) is as_it_is
        assert cg.autograd.grad(result.sum(), direction)[0].tolist() == cg.ones(direction.shape).tolist()
