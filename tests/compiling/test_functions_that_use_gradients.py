"""Functions that set, read or return the `.grad` of leaves, or run a backward: where they run again for one, it is as in the call."""

import contextlib

import pytest

import cygrad as cg
from capturing import Failing, X, captured, same, same_outcomes
from cygrad.autograd import grad


def set_and_return(a, b):
    """Set the gradients of leaves, and return results with a history."""
    y = (a * b).sin() * a
    y.sum().backward(retain_graph=True)
    return y, a * 2


def set_with_a_history(a, b):
    y = (a * b).sin() * a
    y.sum().backward(create_graph=True)
    return y, a * 2


def added(results, a, b):
    cg.autograd.backward([*results, a.exp() * 0.3], [X * 0 + 1] * (len(results) + 1))


FOLLOWED_BY = {
    "other parts of the gradients": added,
    "another call": lambda results, a, b: added([*results, *set_and_return(a, b)], a, b),
    "gradients of sums": lambda results, a, b: (results[-1].sum() + (a * b).sum()).backward(),
    "gradients of gradients": lambda results, a, b: grad(results[0].sum(), a, create_graph=True)[0].sum().backward(),
    "one result twice": lambda results, a, b: [results[-1].sum().backward(retain_graph=True) for _ in range(2)],
    "a gradient set to None": lambda results, a, b: (setattr(a, "grad", None), results[-1].sum().backward()),
}


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("function", [set_and_return, set_with_a_history])
@pytest.mark.parametrize("name", FOLLOWED_BY)
def test_gradients_that_a_function_sets_do_not_end_its_backwards(function, name):
    """It runs once more without the gradients, which are put back."""
    def gradients(each, factor):
        a, b = (X * factor).requires_grad_(), (X + factor).requires_grad_()
        results = each(a, b)
        before = b.grad.detach().clone()
        FOLLOWED_BY[name](results, a, b)
        return before, a.grad, b.grad

    compiled = captured(function)
    for factor in (1.0, 0.5, 3.0):
        same_outcomes(gradients, function, compiled, factor)
    assert compiled.cache_info().hits == 2


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_of_gradients_that_a_function_sets():
    compiled = captured(set_with_a_history)
    for factor in (1.0, 0.5):
        outcomes = []
        for each in (set_with_a_history, compiled):
            a, b = (X * factor).requires_grad_(), (X + factor).requires_grad_()
            each(a, b)
            first = grad((a.grad * b).sum(), (a, b), create_graph=True)
            outcomes.append(first + grad(sum(each.sum() for each in first), (a, b)))
        for theirs, ours in zip(*outcomes, strict=True):
            assert cg.allclose(ours, theirs, 1e-14, 1e-14)


def by_presence(p, x):
    return p * p * x * (1.0 if p.grad is None else 2.0), p * x


def by_gradient(p, x):
    return p * x, p * x if p.grad is None else p * p.grad.detach() * x


def cleared(p, x):
    p.grad = None
    return p * x, p * p * x


def zeroed(p, x):
    if p.grad is not None:
        p.grad.zero_()
    return p * x, p * p * x


def returned(p, x):
    return p.grad, p * 2 * x, p * p * x


def set_anew(p, x):
    p.grad = x * 2
    return p * x, p * p * x


@pytest.mark.parametrize("before", [False, True], ids=["no gradient before", "a gradient before"])
@pytest.mark.parametrize("after", ["none", "another", "the same"])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("function", [by_presence, by_gradient, cleared, zeroed, returned, set_anew])
def test_a_function_runs_again_with_the_gradients_of_its_call(function, before, after, create_graph):
    """The caller's `.grad` stays as it is."""
    compiled = captured(function)
    for number in range(3):
        outcomes = []
        for each in (function, compiled):
            p, x = (X + number).requires_grad_(), X * 2
            p.grad = X * 3 if before else None
            result = each(p, x)[-1]
            if after != "the same":
                p.grad = X * 5 if after == "another" else None
            now = p.grad
            try:
                gradient = grad(result.sum(), p, create_graph=create_graph)[0].detach()
            except RuntimeError as error:       # the function has written to the gradient
                assert each is compiled and before and function is zeroed and "changes tensors from outside in place" in str(error)
                gradient = outcomes[0][0]
            assert p.grad is now
            outcomes.append((gradient, X if now is None else now.clone()))
        for theirs, ours in zip(*outcomes, strict=True):
            same(ours, theirs)
    assert compiled.cache_info().hits == 2


def test_a_returned_gradient_is_the_gradient():
    def function(p, x):
        y = (p * p * x).sum()
        y.backward()
        return y.detach(), p.grad

    compiled = captured(function)
    for _ in range(3):
        p = X.clone().requires_grad_()
        _, gradient = compiled(p, X)
        assert gradient is p.grad


HOOKS = {
    "hook": lambda x: x.register_hook(lambda gradient: gradient * 10),
    "retain_grad": lambda x: x.retain_grad(),
    "no hook": lambda x: None,
}


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_registered_after_a_call_do_not_meet_the_backward_in_it(name):
    def force(x):
        energy = (x * x * x).sum()
        return cg.autograd.grad(energy, x, create_graph=True)[0] * x

    compiled = captured(force)
    for number in range(4):
        gradients = []
        for each in (force, compiled):
            w = (X + number).requires_grad_()
            x = w * 1.5
            y = each(x)
            HOOKS[name](x)
            if each is compiled and number and name != "no hook":
                with pytest.raises(RuntimeError, match="register the hook"):
                    grad(y.sum(), w, create_graph=True, retain_graph=True)
            y.sum().backward()
            gradients.append([w.grad, *([x.grad] if name == "retain_grad" else [])])
        for theirs, ours in zip(*gradients, strict=True):
            assert cg.allclose(ours, theirs, 1e-14, 1e-14)
    assert compiled.cache_info().hits == 3


def test_hooks_on_inputs_that_no_backward_in_the_function_reached():
    def force(p, w):
        return cg.autograd.grad((p ** 3).sum(), p, create_graph=True)[0] * p, w * p

    def gradients(each, number, create_graph):
        p, w = (X + number).requires_grad_(), (X * 2).requires_grad_()
        first, second = each(p, w)
        w.register_hook(lambda gradient: gradient * 10)
        total = first.sum() + second.sum() if create_graph else second.sum()
        return grad(total, (p, w), create_graph=create_graph)

    compiled = captured(force)
    for number in range(4):
        for create_graph in (False, True):
            same_outcomes(gradients, force, compiled, number, create_graph)
    assert compiled.cache_info().hits == 7


def accumulator_of(leaf):
    return leaf.view_as(leaf).grad_fn.next_functions[0][0]


def times_ten(gradients):
    return (gradients[0] * 10,)


def add_square(q):
    (q * q).sum().backward()
    return q.detach() * 2


@pytest.mark.parametrize("first", ["with a hook", "without"])
def test_hooks_of_accumulators_where_a_function_runs_a_backward(first):
    """They are hooks of the leaf: a program without them is not for a leaf that has some, and the other way round."""
    compiled = cg.compile(add_square)
    for kind in [first, "with a hook", "without", "removed", "with a hook", "without"]:
        gradients = []
        for each in (add_square, compiled):
            q = X.clone().requires_grad_()
            accumulator = accumulator_of(q)
            handle = accumulator.register_prehook(times_ten) if kind != "without" else None
            if kind == "removed":
                handle.remove()
            each(q)
            gradients.append(q.grad)
        same(*gradients)
        same(gradients[0], X * 2 * (10 if kind == "with a hook" else 1))
    assert compiled.cache_info().hits


def test_a_hook_of_an_accumulator_that_a_loop_meets():
    w = X.clone().requires_grad_()
    accumulator = accumulator_of(w)

    def step(carry, x):
        (w * x).sum().backward()
        return carry + 1, x

    for hook in (None, times_ten):
        if hook is not None:
            accumulator.register_prehook(hook)
        w.grad = None
        cg.func.scan(step, cg.zeros(()), cg.ones(80, dtype=cg.float64))
        same(w.grad, X * 0 + 80 * (10 if hook else 1))


def test_hooks_that_a_backward_which_fails_has_met():
    def function(p, w):
        with contextlib.suppress(ValueError):
            (Failing.apply(p).sum() + (w * w).sum()).backward()
        return p.sin() * w, w * 2

    compiled = captured(function)
    for number in range(3):
        p, w, seen = (X + number).requires_grad_(), X.clone().requires_grad_(), []
        results = compiled(p, w)
        w.register_post_accumulate_grad_hook(seen.append)
        if number:
            with pytest.raises(RuntimeError, match="register the hook"):
                results[1].sum().backward()
            assert not seen


@pytest.mark.parametrize("register", ["before", "after"])
def test_hooks_on_weights_beside_forces(register):
    """A gradient that the function asks for of other tensors reaches the weights, and does not add to theirs."""
    def energy_and_force(x, w):
        energy = (x * w).sin().sum()
        force, = grad(energy, x, create_graph=True)
        return energy, force

    def gradients(each, number):
        x, w, seen = (X + number).requires_grad_(), (X * 0.5).requires_grad_(), []
        if register == "before":
            w.register_post_accumulate_grad_hook(seen.append)
        _, force = each(x, w)
        if register == "after":
            w.register_post_accumulate_grad_hook(seen.append)
        assert not seen
        (force * force).sum().backward()
        assert len(seen) == 1
        return x.grad, w.grad

    compiled = captured(energy_and_force)
    for number in range(4):
        same_outcomes(gradients, energy_and_force, compiled, number)
    assert compiled.cache_info().hits == 3


class Counted(cg.autograd.Function):
    """The backward counts its calls in a tensor that nothing saves."""

    @staticmethod
    def forward(ctx, x, count):
        ctx.count = count
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        ctx.count.add_(1)
        return g * 2, None


def with_a_hook(x, total):
    x = x * 3
    x.register_hook(lambda g: (total.add_(g.abs()), None)[1])
    return x.sin()


def with_a_hook_on_data(x, total):
    x = x * 3
    x.register_hook(lambda g: (total.data.add_(g.abs()), None)[1])
    return x.sin()


@pytest.mark.parametrize("function", [with_a_hook, with_a_hook_on_data, Counted.apply])
def test_backwards_add_to_a_tensor_that_nothing_saves(function):
    """In several calls of one graph, in a graph that is kept, and in a loop."""
    outcomes = []
    for run in (function, cg.compile(lambda x, total: function(x, total))):
        total = cg.zeros(3)
        for k in range(3):
            x = cg.full((3,), 0.3 * k + 0.1, requires_grad=True)
            y = run(run(x, total), total).sum() + run(x, total).sum()
            y.backward(retain_graph=True)
            y.backward()
            outcomes.append([total.clone(), x.grad])
    assert all(a.equal(b) for one, other in zip(outcomes[:3], outcomes[3:], strict=True) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("count", [70, 600])
def test_hooks_of_a_step_add_to_a_tensor_that_nothing_saves(count, create_graph):
    outcomes = []
    for is_loop in (True, False):
        x, total = cg.ones(3, requires_grad=True), cg.zeros(3)
        y = x
        if is_loop:
            y, _ = cg.func.scan(lambda carry, _, total=total: (with_a_hook(carry, total), None), x, length=count)
        for _ in range(0 if is_loop else count):
            y = with_a_hook(y, total)
        outcomes.append((*cg.autograd.grad(y.sum(), x, create_graph=create_graph), total))
    assert all(a.allclose(b, 1e-6, 0) for a, b in zip(*outcomes, strict=True))


class Scaled(cg.autograd.Function):
    """The forward saves a tensor that it does not read."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None


@pytest.mark.parametrize("change", [lambda scale: scale.mul_(0.5), lambda scale: scale.data.mul_(0.5)], ids=["in place", "by data"])
@pytest.mark.parametrize("multiply", [Scaled.apply, lambda x, scale: x * scale], ids=["a function", "an operator"])
def test_a_hook_changes_a_saved_tensor(multiply, change):
    def function(x, scale):
        x = x * 3
        x.register_hook(lambda g: (change(scale), None)[1])
        return multiply(x, scale).sin()

    compiled, scale = cg.compile(function), cg.ones(2)
    for k in range(3):
        x = cg.full((2,), k + 1.0, requires_grad=True)
        y = compiled(x, scale).sum()
        y.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
