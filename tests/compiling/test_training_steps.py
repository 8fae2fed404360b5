"""Steps of training: results whose history a backward inside of the function has freed, leaves that the function makes."""

import pytest

import cygrad as cg
from capturing import X, captured, refusal, same
from cygrad.autograd import Function, grad


def weights():
    return [(X * k).detach().requires_grad_() for k in (1, 2)]


def trained(w, v):
    w.grad = v.grad = None
    loss = ((w * X).sin() * v).sum()
    loss.backward()
    return loss


def with_gradients(w, v):
    loss = (w * v).exp().sum()
    return loss, *grad(loss, (w, v))


def with_a_prediction(w, v):
    prediction = (w * X).tanh() @ cg.ones(3, 3, dtype=cg.float64) + v
    loss = (prediction - X).square().mean()
    loss.backward()
    return loss, prediction


def with_another_history(w, v):
    loss = (w * v).exp().sum()
    loss.backward()
    return loss, (w * 3 + v).sin()


def of_the_middle(w, v):
    middle = (w * v).exp()
    (middle * 2).sum().backward()
    return {"middle": middle, "sum": middle.sum()}


def written_in_place(w, v):
    total = cg.zeros(3, dtype=cg.float64)
    total[1:] = (w * v)[1:]
    total.sum().backward()
    return total


FREED = {
    "a loss": (trained, lambda value: [value]),
    "with gradients": (with_gradients, lambda value: value[:1]),
    "with another history": (with_another_history, lambda value: value[:1]),
    "with a prediction": (with_a_prediction, lambda value: value),
    "the middle": (of_the_middle, lambda value: value.values()),
    "written in place": (written_in_place, lambda value: [value]),
}


def flat(value):
    return [value] if isinstance(value, cg.Tensor) else [*(value.values() if isinstance(value, dict) else value)]


@pytest.mark.parametrize("name", FREED)
def test_values_gradients_and_errors_are_eagers(name):
    function, freed_of = FREED[name]
    compiled = captured(function)
    ours, theirs = weights(), weights()
    for _ in range(3):
        values, expected = compiled(*ours), function(*theirs)
        for a, b in zip(flat(values), flat(expected), strict=True):
            same(a, b)
            assert a.requires_grad == b.requires_grad
        for a, b in zip(ours, theirs, strict=True):
            if b.grad is not None:
                same(a.grad, b.grad)
        for value, args in ((values, ours), (expected, theirs)):
            for result in freed_of(value):
                with pytest.raises(RuntimeError, match="second time"):
                    result.sum().backward()
                with pytest.raises(RuntimeError, match="second time"):
                    grad(result.sum() * 2, args[0])
    assert compiled.cache_info().hits > 0 and compiled.cache_info().eager == 0


def test_steps_of_training_return_their_losses():
    def step(w, v):
        loss = ((w * X).tanh() - v).square().mean()
        loss.backward()
        with cg.no_grad():
            w -= 0.5 * w.grad
        w.grad = v.grad = None
        return loss

    compiled, ours, theirs = captured(step), weights(), weights()
    for _ in range(10):
        same(compiled(*ours), step(*theirs))
        same(ours[0], theirs[0])
    assert compiled.cache_info().hits == 9


def test_leaves_that_a_step_makes_have_gradients_of_their_own():
    """As points have, where a loss contains derivatives by them."""
    def step(w, v):
        points = X.detach().requires_grad_()
        slope = grad((points * w).sin().sum(), points, create_graph=True)[0]
        loss = (slope - v).square().sum()
        loss.backward()
        return loss, points.grad * 1

    compiled, ours, theirs = captured(step), weights(), weights()
    for _ in range(4):
        for a, b in zip(compiled(*ours), step(*theirs), strict=True):
            same(a, b)
        same(ours[0].grad, theirs[0].grad)
    assert compiled.cache_info().hits == 2      # at first the weights have no gradients


def test_steps_that_differentiate_by_new_leaves_alone():
    def step(x):
        points = x.clone().requires_grad_()
        loss = points.sin().sum()
        loss.backward()
        return loss, points.grad * 1

    compiled = captured(step)
    for k in range(3):
        for a, b in zip(compiled(X + k), step(X + k), strict=True):
            same(a, b)
            assert a.requires_grad == b.requires_grad
        with pytest.raises(RuntimeError, match="second time"):
            compiled(X)[0].backward()
        with cg.no_grad(), pytest.raises(RuntimeError, match="does not require grad"):
            compiled(X)


def test_gradients_of_tensors_that_are_frozen_for_a_while():
    def frozen(w, v):
        v.requires_grad_(False)
        loss = (w * v).sum()
        v.requires_grad_(True)
        (loss + (v * v).sum()).backward()
        return loss

    def thawed(w, x):
        x.requires_grad_(True)
        loss = (w * x).sum()
        loss.backward()
        x.requires_grad_(False)
        return loss

    for function, makes in ((frozen, weights), (thawed, lambda: [weights()[0], X.clone()])):
        compiled, ours, theirs = captured(function), makes(), makes()
        for _ in range(4):
            same(compiled(*ours), function(*theirs))
            for a, b in zip(ours, theirs, strict=True):
                same(a.grad, b.grad)


def test_other_results_have_their_history():
    compiled = captured(with_another_history)
    for _ in range(3):
        ours, theirs = weights(), weights()
        loss, other = compiled(*ours)
        for a, b in zip(grad(other.sum(), ours), grad(with_another_history(*theirs)[1].sum(), theirs), strict=True):
            same(a, b)
        with pytest.raises(RuntimeError, match="second time"):
            (loss + other.sum()).backward()


def retained(w, v):
    loss = (w * v).exp().sum()
    loss.backward(retain_graph=True)
    return loss


def without_values(w, v):
    loss = (w + v).sum()
    loss.backward()
    return loss


@pytest.mark.parametrize("function", [retained, without_values], ids=lambda function: function.__name__)
def test_histories_that_a_backward_does_not_free(function):
    compiled = captured(function)
    for _ in range(3):
        ours, theirs = weights(), weights()
        compiled(*ours).backward()
        function(*theirs).backward()
        same(ours[0].grad, theirs[0].grad)


def test_a_result_with_one_way_that_is_not_freed():
    """Eager finds the way to `w`, but not with the one to `v`."""
    def function(w, v):
        shared = (v * v).exp()
        shared.sum().backward()
        return w + shared

    compiled = captured(function)
    for _ in range(3):
        args = weights()
        result, expected = compiled(*args), function(*weights())
        same(result, expected)
        for each in (result, expected):
            with pytest.raises(RuntimeError, match="second time"):
                each.sum().backward()
    assert compiled.cache_info().hits == 2


def test_a_freed_function_of_users_is_refused():
    """Its backward may read nothing that was freed."""
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 + ctx.saved_tensors[0] * 0

    def function(w, v):
        loss = Twice.apply(w).sum()
        loss.backward()
        return loss

    assert "second time" in refusal(function, *weights())


@pytest.mark.parametrize("differentiate", [
    lambda x, w: grad(x.sum(), w)[0],
    lambda x, w: grad((x * w).sin().sum(), w)[0],
    lambda x, w: (x.sum().backward(), w.grad)[1],
    lambda x, w: (grad((x * x).sum(), w, create_graph=True)[0] * 2).detach(),
], ids=["its own", "in an expression", "added", "recorded"])
def test_a_history_from_outside_is_not_replayed(differentiate):
    """It may be another one in the next call."""
    w, _ = weights()
    assert "through the history of a tensor from outside" in refusal(lambda x: differentiate(x, w), w.exp())
    outside = w.exp()
    assert "through the history of a tensor from outside" in refusal(lambda: differentiate(outside, w))
    w.grad = None
    compiled = cg.compile(lambda x: differentiate(x, w))
    with pytest.warns(RuntimeWarning, match="history"):
        for make in (cg.exp, cg.sin, cg.exp, cg.cos):
            w.grad = None
            ours = compiled(make(w)).clone()
            w.grad = None
            same(ours, differentiate(make(w), w))


@pytest.mark.parametrize("read", [
    lambda x: 2 if "Exp" in x.grad_fn.name() else 3,
    lambda x: 2 if "Exp" in (x * 2).grad_fn.next_functions[0][0].name() else 3,
], ids=["of an argument", "by a result"])
def test_code_that_reads_a_history_from_outside_is_not_replayed(read):
    (w, _), compiled = weights(), cg.compile(lambda x: x * read(x))
    with pytest.warns(RuntimeWarning, match=r"test_training_steps.py:\d+: .* its history was asked for"):
        for make in (cg.exp, cg.sin):
            x = make(w)
            same(compiled(x), x * read(x))


def test_code_that_reads_a_history_of_its_own_is_replayed():
    def function(x):
        y = (x * 2).exp()
        return y * len(y.grad_fn.name()) * len(y.grad_fn.next_functions)

    (w, _), compiled = weights(), captured(function)
    for _ in range(3):
        same(compiled(w), function(w))
    assert compiled.cache_info().hits == 2


def test_gradients_of_an_argument_with_a_history_are_replayed():
    compiled, (w, _) = captured(lambda x: grad((x * x).sin().sum(), x)[0]), weights()
    for make in (cg.exp, cg.sin, cg.exp):
        x = make(w)
        same(compiled(x), grad((x * x).sin().sum(), x)[0])
    assert compiled.cache_info().hits == 2


def test_steps_of_scans_run_as_they_are():
    """No loop has results of this kind: gradients of the last value are an error, as in Python."""
    def step(carry, x):
        value = (carry * w).sin()
        value.sum().backward()
        return value, None

    for compile in (lambda f: f, cg.compile):
        w = X.clone().requires_grad_()
        last, _ = compile(lambda start: cg.func.scan(step, start, cg.zeros(1, 3, dtype=cg.float64)))(X)
        with pytest.raises(RuntimeError, match="second time"):
            last.sum().backward()


@pytest.mark.filterwarnings("ignore:compile")
def test_a_gradient_with_a_tangent_or_of_a_subclass():
    class Marked(cg.Tensor):
        pass

    def step(x):
        loss = (x * weight).sin().sum()
        loss.backward()
        return loss.detach()

    weight = cg.tensor([1.0, 2.0], requires_grad=True)
    compiled, x = cg.compile(step), cg.tensor([0.1, 0.2])
    for change in (lambda: cg.func.jvp(step, (x,), (x,)), lambda: setattr(weight, "grad", weight.detach().clone().as_subclass(Marked))):
        for _ in range(3):
            weight.grad = None
            change()
            assert compiled(x).item() == step(x).item()
        weight.grad = None
        assert [compiled(x).item() for _ in range(3)] == [step(x).item()] * 3
