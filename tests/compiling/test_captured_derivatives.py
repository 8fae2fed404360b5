"""Derivatives of captured functions, and captures of derivatives."""

import os
import subprocess
import sys

import numpy as np
import pytest

import cygrad as cg
from capturing import Failing, X, captured, refusal, same
from cygrad import func
from cygrad.autograd import grad
from cygrad.checkpoint import checkpoint


def energy(x, w):
    return (x.tanh() * w).sum(0).square() + (w * 0.5).exp().mean()


def test_gradients_of_a_compiled_function():
    compiled = captured(energy)
    for k in range(3):
        ours = [(X + k).requires_grad_(), (X * 2).requires_grad_()]
        theirs = [(X + k).requires_grad_(), (X * 2).requires_grad_()]
        loss, expected = compiled(*ours), energy(*theirs)
        same(loss, expected)
        (loss * 3).backward()
        (expected * 3).backward()
        for a, b in zip(ours, theirs, strict=True):
            same(a.grad, b.grad)
    assert loss.grad_fn.name() == "CompiledFunctionBackward"


def test_second_derivatives_and_retained_graphs():
    compiled = captured(energy)
    x = X.clone().requires_grad_()
    for _ in range(2):
        loss = compiled(x, X)
        same(grad(loss, x, retain_graph=True)[0], grad(energy(x, X), x)[0])
        first, = grad(loss, x, create_graph=True)
        expected, = grad(energy(x, X), x, create_graph=True)
        same(grad(first.sum(), x)[0], grad(expected.sum(), x)[0])
    with pytest.raises(RuntimeError, match="second time"):
        grad(loss, x)
        grad(loss, x)


def test_changed_inputs_are_refused_by_the_backward():
    compiled = captured(lambda x, w: (x * w).sum())
    x, w = X.clone().requires_grad_(), X.clone()
    compiled(x, w)
    loss = compiled(x, w)
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def product_with_result(x, w):
    result = x.sin()
    return result, (w * result).sum()


def product_with_a_part_of_the_result(x, w):
    result = x.sin()
    return result[1:], (w * result).sum()


def detached_result(x, w):
    result = w.exp()
    return result.detach(), result.sum()


def gradient_that_it_sets(x, w):
    w.grad = None
    (w * w * x).sum().backward()
    return w.grad, (w * w.grad).sum()


@pytest.mark.parametrize("function", [product_with_result, product_with_a_part_of_the_result, detached_result, gradient_that_it_sets])
def test_changed_results_are_refused_by_the_backward(function):
    """A result that requires no gradient is checked as well, where the backward reads it."""
    compiled = captured(function)
    for call in (function, compiled, compiled, compiled):
        x, w = X.cos(), X.clone().requires_grad_()
        changed, loss = call(x, w)
        changed.mul_(100)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
        x, w = X.cos(), X.clone().requires_grad_()
        gradients = []
        for each in (call, function):
            w.grad = None
            each(x, w)[1].backward()
            gradients.append(w.grad.clone())
        same(*gradients)
    assert compiled.cache_info().hits >= 2


def test_results_that_no_gradient_reads_may_change():
    compiled = captured(lambda x: x * 3)
    x = X.clone().requires_grad_()
    compiled(x)
    result = compiled(x)
    result.add_(1)
    result.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


@pytest.mark.parametrize("weigh", [lambda y: y.sum(), lambda y: (y * y).sum(), lambda y: (y.T * 2).exp().sum()],
                         ids=["number", "like the result", "by a view"])
def test_gradients_have_the_strides_of_results(weigh):
    """Sums over transposed memory are in another order."""
    compiled = captured(lambda x, w: w.exp().T * x)
    for seed in range(20):
        w = cg.tensor(np.random.default_rng(seed).uniform(0.3, 0.9, (7, 5)))
        gradients = []
        for function in (compiled, compiled._function):
            x = cg.tensor(0.7, dtype=cg.float64, requires_grad=True)
            gradients.append(grad(weigh(function(x, w)), x)[0])
        same(*gradients)


def test_some_results_without_a_gradient():
    compiled = captured(lambda x: (x * 2, x.exp()))
    x = X.clone().requires_grad_()
    for _ in range(2):
        same(grad(compiled(x)[1].sum(), x)[0], x.exp())


def test_hooks_of_leaves_run_once():
    compiled = cg.compile(lambda x: (x * x).sum())
    x = X.clone().requires_grad_()
    compiled(x)
    x.register_hook(lambda gradient: gradient * 10)
    with pytest.warns(RuntimeWarning, match="one of its arguments: a tensor with hooks"):
        for _ in range(2):
            x.grad = None
            compiled(x).backward()
            same(x.grad, X * 20)
    assert "a tensor with hooks" in refusal(lambda x: x * 2, x)


def test_transforms_inside_and_around():
    inside = captured(lambda x: func.grad(lambda y: (y ** 3).sum())(x))
    jvp = captured(lambda x: func.jvp(cg.sin, (x,), (x * 2,))[1])
    rows = captured(lambda x: func.vmap(lambda row: row * row.sum())(x))
    hessian = captured(lambda x: func.hessian(lambda y: (y ** 3).sum())(x))
    for x in (X, X + 1):
        same(inside(x), 3 * x ** 2)
        same(jvp(x), x.cos() * (x * 2))
        same(rows(x.expand(2, 3)), x.expand(2, 3) * x.sum())
        same(hessian(x), func.hessian(lambda y: (y ** 3).sum())(x))
        around = captured(lambda y: (y ** 3).sum())
        same(func.grad(around)(x), func.grad(lambda y: (y ** 3).sum())(x))
        same(func.vmap(around)(x.expand(2, 3)), (x ** 3).sum().expand(2))
    for function in (inside, jvp, rows, hessian):
        assert function.cache_info().hits == 1


def test_nested_and_recursive():
    inner = captured(lambda x: x + 1)

    @cg.compile(fullgraph=True)
    def recursive(x, depth):
        return inner(x) if depth == 0 else recursive(x * 2, depth - 1)

    for _ in range(2):
        same(recursive(X, 3), X * 8 + 1)
    assert recursive.cache_info().hits == 1


def test_user_functions():
    class Cube(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * 3 * x * x

    compiled = captured(lambda x: Cube.apply(x).sum())
    for k in range(3):
        x = (X + k).requires_grad_()
        same(grad(compiled(x), x)[0], 3 * (X + k) * (X + k))


@pytest.mark.parametrize("make", [lambda x: x.clone(), lambda x: x.detach()], ids=["memory of its own", "memory of an argument"])
def test_gradients_of_leaves_that_are_made_inside(make):
    def slope(x):
        leaf = make(x).requires_grad_()
        (leaf ** 3).sum().backward()
        leaf.grad.mul_(2)
        return leaf.grad + 1

    compiled = captured(slope)
    for k in range(3):
        same(compiled(X + k), 6 * (X + k) ** 2 + 1)
    assert compiled.cache_info().hits == 2


KEPT = []


def test_a_leaf_that_is_kept_elsewhere():
    def slope(x):
        leaf = x.clone().requires_grad_()
        KEPT[:] = [leaf]
        leaf.sum().backward()
        return x * 2

    with pytest.raises(RuntimeError, match="cannot be captured: it uses the .grad|changes the items"):
        captured(slope)(X)


# ----- Regions that are computed again -----
def region(x, drop=False):
    inner = (lambda x: cg.nn.functional.dropout(x.sin().exp())) if drop else lambda x: x.sin().exp()
    return checkpoint(inner, x, use_reentrant=False).tanh()


def loop(x):
    return func.scan(lambda carry, y: ((carry * y).sin() + y, None), x, X.expand(20, 3), snapshots=4)[0]


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize(("function", "replays"), [
    (region, 3), (lambda x: cg.nn.functional.dropout(region(x)), 3), (lambda x: region(x, drop=True), 0), (loop, 3),
    (lambda x: grad(region(x).sum(), x)[0], 3), (lambda x: grad(region(x, drop=True).sum(), x)[0], 0)],
    ids=["region", "random numbers beside", "random numbers", "loop", "gradient", "gradient of random numbers"])
def test_checkpoints(function, replays):
    compiled = cg.compile(function)
    results = []
    for call in (compiled, function):
        cg.manual_seed(3)
        for k in range(4):
            x = (X + k).requires_grad_()
            result = call(x)
            results.append((result.tolist(), grad(result.sum(), x)[0].tolist() if result.requires_grad else None))
    assert results[:4] == results[4:] and compiled.cache_info().hits == replays


# ----- Memory -----
PEAK = """
import sys
import cygrad as cg

def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

def step(x, w):
    return ((x @ w).exp() * 0.1).sum()

def three_steps(x, w):
    for _ in range(3):
        x = (x @ w).exp() * 0.1
    return x.sum()

def sums_of_pairs(x, w):
    total = 0
    for number in range(1, 9):
        pairs = x[:140, None] - x[None, :140] * number
        total = total + pairs.square().sum(1) + pairs.cumsum(0)[-1]
    return total.sum() + x.sum()

def pairs_in_two_orders(x, w):
    pairs = x[:140, None] - x[None, :140]
    weights = (pairs ** 2).sum(-1)[..., None]
    return ((pairs * weights).sum(1) + (pairs.transpose(0, 1) * weights).sum(1)).sum() + x.sum()

call = globals()[sys.argv[2]]
call = cg.compile(call) if sys.argv[1] == "compiled" else call
x, w = cg.rand(20_000, 50, dtype=cg.float64).requires_grad_(), cg.rand(50, 50, dtype=cg.float64) * 0.01
cg.config.set_cache_limit(0)
for count in range(4):
    x.grad = None
    if count == 2:
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
    call(x, w).backward()
print(status("VmHWM") - before)
"""


@pytest.mark.resident
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of resident memory cannot be set back here")
@pytest.mark.parametrize("name", ["step", "three_steps", "sums_of_pairs", "pairs_in_two_orders"])
def test_the_peak_of_memory_is_at_most_eagers(name):
    eager, compiled = (int(subprocess.run([sys.executable, "-c", PEAK, mode, name], check=True, capture_output=True, text=True).stdout)
                       for mode in ("eager", "compiled"))
    assert compiled < eager + 1000, (compiled, eager)       # KiB; an array has 7800


def test_residuals_of_a_graph_that_is_kept_stay():
    compiled = captured(lambda x, w: ((x @ w).exp() * w).sum())
    x, w = (cg.rand(400, 400, dtype=cg.float64).mul_(0.01).requires_grad_() for _ in range(2))
    compiled(x, w)
    loss = compiled(x, w)
    first, second = (grad(loss, (x, w), retain_graph=keep) for keep in (True, False))
    for ours, again, theirs in zip(first, second, grad(compiled._function(x, w), (x, w)), strict=True):
        same(ours, theirs)
        same(again, theirs)
    with pytest.raises(RuntimeError, match="second time"):
        grad(loss, x)


# ----- Inputs that depend on each other -----
DEPENDENT = {
    "view and base": lambda f, x: f(x, x[:2].sum()),
    "computed from another": lambda f, x: f(x, x.exp().sum()),
    "the same twice": lambda f, x: f(x, x),
    "the same memory": lambda f, x: f(x, x.detach().requires_grad_()),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_inputs_that_depend_on_each_other(name):
    def product(x, y):
        return (x * y * 2).sum()

    compiled = captured(product)
    compiled(X.clone().requires_grad_(), X.clone().requires_grad_())
    for other in ("the same twice", name, name):
        ours, theirs = X.clone().requires_grad_(), X.clone().requires_grad_()
        DEPENDENT[other](compiled, ours).backward()
        DEPENDENT[other](product, theirs).backward()
        same(ours.grad, theirs.grad)


def test_a_recurrent_step():
    def step(state):
        return (state * weight).tanh()

    def trained(function):
        state = X
        for _ in range(4):
            state = function(state)
        return grad(state.sum(), weight)[0]

    weight = X.clone().requires_grad_()
    same(trained(captured(step)), trained(step))


# ----- Gradients that the program does not compute -----
def test_jacobians_of_replays():
    compiled = captured(lambda x: x ** 3)
    for k in range(3):
        same(func.jacrev(compiled)(X + k), func.jacrev(lambda x: x ** 3)(X + k))


def test_jacobians_of_replays_that_draw_random_numbers():
    """All rows of the Jacobian have the numbers of the call, in a function with a vmap of its own, too."""
    def noisy(x):
        return x * func.vmap(lambda each: each + cg.rand(3, dtype=cg.float64), randomness="different")(x * 0)

    compiled, x = captured(noisy), cg.ones(2, 3, dtype=cg.float64)
    for _ in range(3):
        cg.manual_seed(7)
        value, multiply = func.vjp(compiled, x)
        jacobian, = func.vmap(multiply)(cg.eye(6, dtype=cg.float64).reshape(6, 2, 3))
        following = cg.rand(1)
        same(jacobian.reshape(6, 6), value.flatten().diag())
        cg.manual_seed(7)
        noisy(x)
        same(following, cg.rand(1))


def test_random_numbers_are_drawn_again_for_some_results():
    compiled = captured(lambda x: (x * cg.rand(3, dtype=cg.float64), x * 2))
    for _ in range(3):
        x = cg.ones(3, dtype=cg.float64, requires_grad=True)
        noise = compiled(x)[0]
        same(grad(noise.sum(), x)[0], noise)


def test_values_that_change_before_the_backward():
    settings = {"rate": 2.0}
    compiled = captured(lambda x: (x ** 3 * settings["rate"]).sum())
    x = X.clone().requires_grad_()
    compiled(x)
    loss = compiled(x)
    settings["rate"] = 5.0
    with pytest.raises(RuntimeError, match="rate was changed between a call of .* and its backward"):
        grad(loss, x, create_graph=True)
    same(grad(loss, x)[0], 6 * X ** 2)


def test_a_function_with_writes_is_not_run_again():
    state = X.clone()

    def counted(x):
        state.add_(1)
        return (x ** 3).sum()

    compiled = captured(counted)
    x = X.clone().requires_grad_()
    compiled(x)
    loss, before = compiled(x), state.tolist()
    with pytest.raises(RuntimeError, match="changes tensors from outside in place"):
        grad(loss, x, create_graph=True)
    assert state.tolist() == before
    same(grad(loss, x)[0], 3 * X ** 2)


class Scaled(cg.autograd.Function):
    """A function whose backward reads `rate`, and decides by its gradient."""

    rate = 3.0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * Scaled.rate if g.sum() > 0 else g * 5


def test_decisions_and_values_of_a_backward():
    compiled = captured(lambda x: Scaled.apply(x).sum())
    for sign, rate, expected in ((1, 3.0, 3), (-1, 3.0, -5), (1, 3.0, 3), (1, 4.0, 4), (1, 3.0, 3)):
        Scaled.rate = rate
        x = X.clone().requires_grad_()
        assert grad(compiled(x) * sign, x)[0].tolist() == [expected] * 3
    loss = compiled(x)
    Scaled.rate = 9.0
    with pytest.raises(RuntimeError, match="rate was changed between"):
        grad(loss, x)
    Scaled.rate = 3.0


def saved_and_changed(x, w):
    loss = (x * w).sum()
    w.add_(1)
    return loss


@pytest.mark.parametrize("function", [lambda x, w: Failing.apply(x).sum(), saved_and_changed], ids=["user's", "in place"])
def test_errors_of_a_backward_are_raised_by_the_backward(function):
    compiled = cg.compile(function)
    x, w = X.clone().requires_grad_(), X.clone()
    with pytest.warns(RuntimeWarning, match="its backward raises"):
        first = compiled(x, w)
    for loss in (first, compiled(x, w)):
        with pytest.raises((ValueError, RuntimeError), match="no gradient|inplace operation"):
            loss.backward()


def test_jacobians_of_functions_that_differentiate():
    """The function runs again in a backward: leaves of the Jacobian count for its derivatives."""
    weights = cg.tensor([1.0, 2.0], dtype=cg.float64)

    def step(c):
        return c * 0.9 + cg.func.grad(lambda t: (t.sin() * weights).sum())(c) * 0.5

    compiled, x = cg.compile(step), cg.tensor([0.5, -0.3], dtype=cg.float64)
    compiled(x)
    expected = cg.func.jacfwd(lambda c: step(step(c)))(x)
    np.testing.assert_allclose(cg.func.jacrev(lambda c: compiled(compiled(c)))(x).numpy(), expected.numpy(), rtol=1e-12)
    inner = cg.func.jacrev(lambda c: cg.checkpoint.checkpoint(step, step(c), use_reentrant=False))(x)
    np.testing.assert_allclose(inner.numpy(), expected.numpy(), rtol=1e-12)
