"""Loops inside of transforms run on the plain tensors behind examples and tangents, and have the values of single steps."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import func
from cygrad.func import control, fori_loop, grad, hessian, jacfwd, jacrev, jvp, linearize, looping, scan, vjp, vmap, while_loop
from test_loops import drawn, leaves_of

pytestmark = pytest.mark.usefixtures("usual_sizes")
COUNT = 24


@pytest.fixture(autouse=True)
def short_loops(monkeypatch):
    monkeypatch.setattr(control, "CAPTURED_FROM", 8)
    monkeypatch.setattr(control, "LOOPED_FROM", control.FIRST_IN_LEVELS + 1)
    monkeypatch.setattr(looping, "LOOPED_FROM", control.FIRST_IN_LEVELS + 1)


def solution(c, xs, w):
    def step(c, x):
        c = (c @ w + x).tanh()
        return c, (c.sin(), {"sum": c.sum()})

    last, (ys, others) = scan(step, c, xs)
    return last.sum() + (ys * ys).sum() + others["sum"].mean()


def trajectory(c, xs, w):
    def step(carry, x):
        a, b, scale = carry
        return (a * 0.9 + b.sin() @ w, b * 0.99 + x * a * scale, scale), a

    (a, b, _), ys = scan(step, (c, c * 2, c * 0.5), xs, reverse=True)
    return cg.cat([a, b, ys[0], ys[-1]])


def iteration(c, xs, w):
    return fori_loop(0, COUNT, lambda i, c: c + 0.01 * ((c @ w).sin() + i * 1e-2) + xs[0] * 1e-3, c)


def search(c, xs, w):
    """Its predicate differs among examples."""
    last, count = while_loop(lambda s: s[0].square().sum() < 300, lambda s: (s[0] * 1.15 + 0.05 * ((s[0] @ w).sin() + xs[0]), s[1] + 1),
                             (c, cg.tensor(0)))
    return last * count


def total(f):
    return lambda *arguments: f(*arguments).sum()


C, XS, W, CS, WS, XSS = drawn(3), drawn(COUNT, 3), drawn(3, 3), drawn(4, 3), drawn(2, 3, 3), drawn(4, COUNT, 3)
FUNCTIONS = {"solution": solution, "trajectory": trajectory, "iteration": iteration, "search": search}
LOOPED = {
    "vmap of the carry": lambda f: vmap(f, (0, None, None))(CS, XS, W),
    "vmap of a constant": lambda f: vmap(f, (None, None, 0))(C, XS, WS),
    "vmap of xs": lambda f: vmap(f, (None, 0, None))(C, XSS, W),
    "vmap of xs along another dim": lambda f: vmap(f, (None, 1, None))(C, XSS.transpose(0, 1), W),
    "vmap in vmap": lambda f: vmap(lambda x: vmap(lambda w: f(C, x, w))(WS))(XSS),
    "jvp": lambda f: jvp(lambda c, w: f(c, XS, w), (C, W), (C * 2 + 1, W * W)),
    "jvp by xs": lambda f: jvp(lambda x: f(C, x, W), (XS,), (XS * 2,)),
    "jvp along the value": lambda f: jvp(lambda c: f(c, XS, W), (C,), (C,)),
    "jacfwd": lambda f: jacfwd(lambda w: f(C, XS, w))(W),
    "jvp in jvp": lambda f: jvp(lambda c: jvp(lambda c: f(c, XS, W), (c,), (c * 3,))[1], (C,), (C * 2 + 1,)),
    "jvp in vmap": lambda f: vmap(lambda c: jvp(lambda w: f(c, XS, w), (W,), (W * 0.5,)))(CS),
    "vmap in jvp": lambda f: jvp(lambda w: vmap(lambda c: f(c, XS, w))(CS), (W,), (W * 0.5,)),
    "grad": lambda f: grad(total(f), (0, 1, 2))(C, XS, W),
    "vmap in grad": lambda f: grad(lambda c, x, w: vmap(lambda c: f(c, x, w))(c).sum(), (0, 1, 2))(CS, XS, W),
    "vmap of xs in grad": lambda f: grad(lambda c, x, w: vmap(lambda x: f(c, x, w))(x).sum(), (0, 1, 2))(C, XSS, W),
    "grad in vmap": lambda f: vmap(grad(total(f), (0, 1, 2)), (0, None, None))(CS, XS, W),
    "grad in vmap of a constant": lambda f: vmap(grad(total(f), (0, 1, 2)), (None, None, 0))(C, XS, WS),
    "grad in vmap in vmap": lambda f: vmap(vmap(grad(total(f), (0, 1, 2)), (None, None, 0)), (0, None, None))(CS, XS, WS),
    "vmap in grad in vmap": lambda f: vmap(grad(lambda c, w: vmap(lambda x: f(c, x, w))(XSS).sum(), (0, 1)), (0, None))(CS, W),
    "jacrev": lambda f: jacrev(f, (0, 2))(C, XS, W),
    "jacrev by xs": lambda f: jacrev(f, 1)(C, XS, W),
    "grad in grad": lambda f: grad(lambda w: grad(total(f), 2)(C, XS, w).square().sum())(W),
    "vmap in grad in grad":
        lambda f: grad(lambda w: grad(lambda w: vmap(lambda c: f(c, XS, w))(CS).square().sum())(w).square().sum())(W),
    "grad in vmap in grad": lambda f: grad(lambda w: vmap(lambda c: grad(total(f), 2)(c, XS, w))(CS).square().sum())(W),
    "jacrev in jacrev": lambda f: jacrev(jacrev(total(f), 0), 2)(C, XS, W),
    "linearize": lambda f: linearize(lambda w: f(C, XS, w), W)[1](W * 0.3),
    "hessian": lambda f: hessian(total(f), 2)(C, XS, W),
    "hessian of two": lambda f: hessian(total(f), (0, 2))(C, XS, W),
    "jacrev in jacfwd": lambda f: jacfwd(jacrev(total(f), 2), 0)(C, XS, W),
    "jacfwd in jacrev": lambda f: jacrev(jacfwd(total(f), 2), 0)(C, XS, W),
    "grad in jvp": lambda f: jvp(grad(total(f), (0, 1, 2)), (C, XS, W), (C * 2 + 1, XS * XS, W * W)),
    "grad in jvp by others": lambda f: jvp(lambda c: grad(total(f), (1, 2))(c, XS, W), (C,), (C * 2 + 1,)),
    "jvp in grad": lambda f: grad(lambda c: jvp(lambda w: f(c, XS, w).sum(), (W,), (W * W,))[1])(C),
    "value and tangent in grad": lambda f: grad(lambda w: sum(jvp(lambda c, w: f(c, XS, w).sum(), (C, w), (C * 2, w * w))))(W),
    "jvp in jacrev": lambda f: jacrev(lambda w: jvp(lambda c: f(c, XS, w), (C,), (C * 2,))[1])(W),
    "jvp in vmap in grad":
        lambda f: grad(lambda w: vmap(lambda c: jvp(lambda x: f(c, x, w).sum(), (XS,), (XS * 0.5,))[1])(CS).sum())(W),
    "vmap in jvp in grad": lambda f: grad(lambda w: jvp(lambda w: vmap(lambda c: f(c, XS, w))(CS).sum(), (w,), (w * 2,))[1])(W),
    "grad in jvp in vmap": lambda f: vmap(lambda c: jvp(grad(total(f), 2), (c, XS, W), (c * 2, XS * XS, W * W)))(CS),
    "grad in vmap in jvp": lambda f: jvp(lambda w: vmap(lambda c: grad(total(f), (0, 2))(c, XS, w))(CS), (W,), (W * W,)),
    "vmap in grad in jvp": lambda f: jvp(grad(lambda w: vmap(lambda c: f(c, XS, w))(CS).square().sum()), (W,), (W * W,)),
    "jvp in grad in grad": lambda f: grad(lambda w: grad(lambda w: jvp(total(f), (C, XS, w), (C, XS * XS, w * w))[1])(w).square().sum())(W),
    "grad in jvp in grad": lambda f: grad(lambda w: jvp(grad(total(f), 2), (C, XS, w), (C * 2, XS * XS, W))[1].square().sum())(W),
    "jvp in vmap in grad in vmap": lambda f: vmap(lambda x: grad(
        lambda w: vmap(lambda c: jvp(lambda w: f(c, x, w).sum(), (w,), (W,))[1])(CS).sum())(W))(XSS[:2]),
    "vmap of a vjp": lambda f: (lambda y, multiply: vmap(multiply)(cg.stack([y * 0 + 1, y * 0 + 2])))(*vjp(lambda w: f(C, XS, w), W)),
}
ONE_BY_ONE = {
    "jvp of a hessian": lambda f: jvp(hessian(total(f)), (C, XS, W), (C * 2, XS, W))[1],
    "jvp in jvp in grad": lambda f: grad(lambda w: jvp(lambda w: jvp(lambda w: f(C, XS, w).sum(), (w,), (W,))[1], (w,), (W * W,))[1])(W),
}


def close(ours, theirs):
    for a, b in zip(leaves_of(ours), leaves_of(theirs), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("transform", LOOPED | ONE_BY_ONE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_in_transforms(name, transform, loops, monkeypatch):
    run = (LOOPED | ONE_BY_ONE)[transform]
    ours, compiled = run(FUNCTIONS[name]), cg.compile(lambda: run(FUNCTIONS[name]))     # fullgraph= traces allocations: four times the time
    assert loops or transform in ONE_BY_ONE
    captured, replayed = compiled(), compiled()
    assert compiled.cache_info().hits == 1
    monkeypatch.setattr(control, "_pays", lambda *_: False)
    theirs = run(FUNCTIONS[name])
    for each in ours, captured, replayed:
        close(each, theirs)


def test_carries_that_become_other_tensors_run_one_by_one(loops):
    """A carried value that has examples from the tenth step on only."""
    def late(c):
        def step(carry, x):
            return (*[each * 1.0 for each in carry[1:]], c * x), carry[0]
        return scan(step, (cg.zeros(3, dtype=c.dtype),) * 10, XS)

    ours = vmap(late)(CS)
    assert not loops
    close(ours, [cg.stack(each) for each in zip(*[leaves_of(late(c)) for c in CS], strict=True)])


def test_results_that_are_the_same_for_all_examples():
    """Their gradients are no parts of each example's."""
    def f(c, xs):
        last, ys = scan(lambda c, x: ((c @ W + x).tanh(), x.sin()), c, xs)
        return (last * ys).sum()

    ours = grad(lambda c, xs: vmap(lambda c: f(c, xs))(c).sum(), (0, 1))(CS, XS), vmap(grad(f, (0, 1)), (0, None))(CS, XS)
    expected = grad(lambda c, xs: sum(f(each, xs) for each in c), (0, 1))(CS, XS), [grad(f, (0, 1))(c, XS) for c in CS]
    close(ours, (expected[0], [cg.stack(each) for each in zip(*expected[1], strict=True)]))


@pytest.mark.parametrize("loop", [lambda step, c: scan(lambda c, x: (step(c), None), c, XS),
                                  lambda step, c: fori_loop(0, COUNT, lambda i, c: step(c) + i, c)], ids=["scan", "fori_loop"])
def test_tensors_outside_that_steps_change_in_place(loop):
    """The run for the program leaves no history, and no tangent, on them."""
    def f(w):
        total = w * 0

        def step(c):
            total.add_(w)
            return c * 0.5 + total

        loop(step, cg.zeros(3, dtype=w.dtype))
        return total.sum()

    count = cg.full((3,), COUNT, dtype=C.dtype)
    close([grad(f)(C), cg.compile(grad(f))(C), jvp(f, (C,), (C * 0 + 1,))[1], vmap(grad(f))(CS)[1]], [count, count, count.sum(), count])


def test_snapshots_hide_no_tangents_and_no_examples():
    """Also of loops that are too short, or run step by step."""
    for count in 5, COUNT:
        def last(w, count=count, snapshots=2):
            return scan(lambda c, x: ((c @ w + x).sin(), None), C, XS[:count], snapshots=snapshots)[0]

        close([jvp(last, (W,), (W,)), vmap(last)(WS)], [jvp(lambda w, f=last: f(w, snapshots=None), (W,), (W,)),
                                                        vmap(lambda w, f=last: f(w, snapshots=None))(WS)])


def test_snapshots_in_transforms(loops):
    def last(c, snapshots):
        return scan(lambda c, x: ((c @ W + x).sin(), None), c, XS, snapshots=snapshots)[0].sum()

    close(vmap(grad(lambda c: last(c, 2)))(CS), vmap(grad(lambda c: last(c, None)))(CS))
    assert len(loops) == 2


STEPS_OF_PLAIN_VALUES = {
    "branch": lambda c, x: c * 0.9 + x if c.sum() > -100 else c * c,
    "item": lambda c, x: c * 0.9 + x * c.detach()[0].item(),
    "mask": lambda c, x: c * 0.9 + x[x > -10],
    "write": lambda c, x: (c * 0.9 + x * written(cg.zeros(3, dtype=c.dtype), c[1])).sin(),
}


def written(target, value):
    target[0] = value
    return target


@pytest.mark.parametrize("name", STEPS_OF_PLAIN_VALUES)
def test_steps_that_take_no_examples_run_one_by_one(name, monkeypatch):
    """The values of a recorded tensor with examples of tangents are the same for all: a loop would repeat them, but not for these steps."""
    def f(c):
        return scan(lambda c, x: (STEPS_OF_PLAIN_VALUES[name](c, x), None), c, XS)[0].square().sum()

    def search(c):
        return while_loop(lambda s: s[1] < COUNT, lambda s: (STEPS_OF_PLAIN_VALUES[name](s[0], XS[int(s[1])]), s[1] + 1), (c, cg.tensor(0)))

    runs = [lambda: hessian(f)(C), lambda: hessian(lambda c: search(c)[0].sum())(C), lambda: jvp(lambda c: search(c)[0], (C,), (C * 2,))]
    runs += [lambda: vmap(search)(CS)] if name == "mask" else []
    ours = [run() for run in runs]
    monkeypatch.setattr(control, "_pays", lambda *_: False)
    monkeypatch.setattr(looping, "_program_of", lambda *_: None)
    close(ours, [run() for run in runs])


@pytest.mark.parametrize("tangent", [W.T, W[0].expand(3, 3), cg.stack([W, W], 2)[..., 1]], ids=["transposed", "expanded", "strided"])
def test_tangents_of_constants_with_other_strides(tangent, loops, monkeypatch):
    def gradients(w):
        return grad(lambda w: grad(lambda w: solution(C, XS, w))(w).square().sum())(w)

    def by_hand():
        w = W.clone().requires_grad_()
        with cg.autograd.forward_ad.dual_level():
            d = cg.autograd.forward_ad.make_dual(w, tangent)
            value = solution(C, XS, d)
            d[0] * 1
            return [*cg.autograd.forward_ad.unpack_dual(cg.autograd.grad(value, w)[0])]

    runs = [lambda: jvp(gradients, (W,), (tangent,)), by_hand]
    ours = [run() for run in runs]
    assert loops
    monkeypatch.setattr(control, "_pays", lambda *_: False)
    close(ours, [run() for run in runs])


@pytest.mark.parametrize("change", [lambda k: k.retain_grad(), lambda k: k.register_hook(lambda g: g * 2)], ids=["retain_grad", "hook"])
@pytest.mark.parametrize("is_leaf", [False, True])
@pytest.mark.parametrize("transform", ["none", "vmap", "compile"])
def test_hooks_on_constants_after_the_loop(transform, is_leaf, change, monkeypatch):
    def values():
        w = W.clone().requires_grad_()
        k = w if is_leaf else w * 1

        def f(c):
            return scan(lambda c, x: ((c @ k + x).tanh(), None), c, XS)[0].sum()

        value = {"none": f, "vmap": lambda c: vmap(f)(c.expand(2, 3)).sum(), "compile": cg.compile(f)}[transform](C)
        change(k)
        gradient, = cg.autograd.grad(value, w, create_graph=True)
        return gradient, cg.autograd.grad(gradient.square().sum(), w)[0]

    ours = values()
    monkeypatch.setattr(control, "_pays", lambda *_: False)
    monkeypatch.setenv("CYGRAD_COMPILE", "0")
    close(ours, values())


def test_constants_whose_level_has_ended(loops):
    """They have lost their tangents, and not their history."""
    leaf = W.clone().requires_grad_()
    with cg.autograd.forward_ad.dual_level():
        w = cg.autograd.forward_ad.make_dual(leaf * 1, W * 2)
    loss = vmap(lambda c: solution(c, XS, w))(CS).sum()
    assert loops
    close(cg.autograd.grad(loss, leaf), [grad(lambda w: sum(solution(c, XS, w) for c in CS))(W)])


def test_tangents_after_a_backward_that_resumes_their_level(loops):
    """A second backward, from a graph whose level of forward mode has ended: constants have their tangents while it runs, and no longer."""
    leaf, seen = W.clone().requires_grad_(), []

    def f(w):
        seen.append(w)
        return solution(C, XS, w * leaf)

    first, = cg.autograd.grad(jvp(f, (W,), (W * W,))[1], leaf, create_graph=True)
    second, = cg.autograd.grad(first.square().sum(), leaf)
    assert len(loops) > 1
    expected = grad(lambda v: grad(lambda v: jvp(lambda w: solution(C, XS, w * v), (W,), (W * W,))[1])(v).square().sum())(W)
    close([second], [expected])
    with cg.autograd.forward_ad.dual_level():
        assert cg.autograd.forward_ad.unpack_dual(seen[0] * 1).tangent is None


def test_gradients_of_values_and_of_tangents_in_one_backward(monkeypatch):
    """Within a level of forward mode both arrive; the former have tangents."""
    w = W.clone().requires_grad_()

    def values():
        with cg.autograd.forward_ad.dual_level():
            last = solution(cg.autograd.forward_ad.make_dual(C, C * 2), XS, w)
            value, tangent = last, cg.autograd.forward_ad.unpack_dual(last).tangent
            gradient, = cg.autograd.grad((value, tangent), w, (cg.tensor(1.5, dtype=C.dtype), cg.tensor(0.5, dtype=C.dtype)))
            return [*cg.autograd.forward_ad.unpack_dual(gradient)]

    ours = values()
    monkeypatch.setattr(control, "_pays", lambda *_: False)
    close(ours, values())


def test_backwards_after_the_end_of_vmap(loops):
    """By leaves outside, of first and second order, twice from one graph."""
    w = W.clone().requires_grad_()

    def values():
        return vmap(lambda c: solution(c, XS, w))(CS).square().sum()

    value = values()
    first, = cg.autograd.grad(value, w, create_graph=True)
    second, = cg.autograd.grad(first.square().sum(), w, retain_graph=True)
    again, = cg.autograd.grad(first.square().sum(), w)
    assert len(loops) == 3
    expected = grad(lambda w: grad(lambda w: sum(solution(c, XS, w).square() for c in CS))(w).square().sum())(W)
    close([second, again], [expected, expected])


def test_a_graph_does_not_keep_levels_alive():
    w = W.clone().requires_grad_()
    value = vmap(lambda c: solution(c, XS, w))(CS).sum()
    with pytest.raises(RuntimeError, match="active|ended|used after"):
        examples = []
        vmap(lambda c: examples.append(c) or c)(CS)
        examples[0] + 1
    value.backward()
    assert w.grad is not None and func.vmap(lambda c: c * 2)(CS).shape == CS.shape


@pytest.mark.parametrize("randomness", ["different", "same"])
def test_random_numbers_in_vmap(randomness, loops, monkeypatch):
    """They are drawn step by step."""
    def walk(c):
        return scan(lambda c, x: (c + cg.rand(3, dtype=c.dtype), None), c, XS)[0]

    cg.manual_seed(0)
    ours = vmap(walk, randomness=randomness)(CS), cg.rand(2)
    assert not loops
    with pytest.raises(RuntimeError, match="random"):
        vmap(walk)(CS)
    monkeypatch.setattr(control, "_pays", lambda *_: False)
    cg.manual_seed(0)
    close(ours, (vmap(walk, randomness=randomness)(CS), cg.rand(2)))


def test_steps_of_other_kinds(monkeypatch):
    """Methods, numbers of Python in the carry, tensors of other dtypes, in-place changes, operators with calls."""
    class Layer:
        def __init__(self, w):
            self.w = w

        def step(self, c, x):
            return (c @ self.w + x).tanh(), c.sum()

    functions = [
        lambda c: scan(Layer(W * c[0]).step, c, XS),
        lambda c: scan(lambda s, x: ((s[0] @ W + x, s[1] + 1), None), (c, 0), XS)[0][0],
        lambda c: scan(lambda s, x: ({"a": s["a"] @ W + x, "b": None}, {"c": None, "d": s["a"]}), {"a": c, "b": None}, XS)[0]["a"],
        lambda c: scan(lambda s, x: ((s[0] * 0.9 + x, s[1] + 1), s[1]), (c, cg.tensor(0)), XS),
        lambda c: scan(lambda s, x: (cg.where(s > 0, s - x, s + x), s > 0), c, XS),
        lambda c: scan(lambda s, x: (s.clone().mul_(0.9).add_(x), s), c, XS),
        lambda c: scan(lambda s, x: (s.sort()[0] + x, s.topk(2)[0]), c, XS),
        lambda c: scan(lambda s, x: (s * (0.9 + 0.1j) + x, s.abs()), c + 0j, XS),
    ]
    runs = [run for f in functions for run in (lambda f=f: vmap(f)(CS), lambda f=f: vmap(f)(CS[:1]), lambda f=f: vmap(f)(CS[:0]))]
    ours = [run() for run in runs]
    monkeypatch.setattr(control, "_pays", lambda *_: False)
    close(ours, [run() for run in runs])


def test_forward_mode_by_hand_with_gradients(monkeypatch):
    """The tangent of a gradient, and the gradient of a tangent."""
    w = W.clone().requires_grad_()

    def values():
        with cg.autograd.forward_ad.dual_level():
            last, ys = scan(lambda c, x: ((c @ w + x).tanh(), c * 2), cg.autograd.forward_ad.make_dual(C, C * 2), XS)
            gradient, = cg.autograd.grad(last.sum() + ys.sum(), w, retain_graph=True)
            primal, tangent = cg.autograd.forward_ad.unpack_dual(last)
            return [primal, tangent, *cg.autograd.forward_ad.unpack_dual(gradient), *cg.autograd.grad(tangent.sum(), w)]

    ours = values()
    monkeypatch.setattr(control, "_pays", lambda *_: False)
    close(ours, values())


def test_numbers_of_steps_that_differ_among_examples(loops):
    def count(c):
        return while_loop(lambda s: s[0].sum() < 10, lambda s: (s[0] * 1.1 + 0.1, s[1] + 1), (c, cg.tensor(0)))

    close(vmap(count)(CS), [cg.stack(each) for each in zip(*[count(c) for c in CS], strict=True)])
    assert len(loops) > 1
    small = CS * 1e-3       # other numbers of steps for all
    close(vmap(count)(small), [cg.stack(each) for each in zip(*[count(c) for c in small], strict=True)])
