"""Backwards in other modes than their calls: a function that runs again for them has the modes of its call."""

import contextlib

import numpy as np
import pytest

import cygrad as cg
from capturing import captured
from cygrad import func
from cygrad.autograd import grad
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.overrides import TorchFunctionMode


class Halved(TorchFunctionMode):
    """A mode in which sines are halved."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 0.5 if function.__name__ == "sin" else result


@contextlib.contextmanager
def default_dtype(dtype):
    before = cg.get_default_dtype()
    cg.set_default_dtype(dtype)
    try:
        yield
    finally:
        cg.set_default_dtype(before)


MODES = {"function mode": Halved, "hooks": lambda: saved_tensors_hooks(lambda tensor: tensor * 2, lambda tensor: tensor),
         "inference mode": cg.inference_mode, "no_grad": cg.no_grad, "default dtype": lambda: default_dtype(cg.float64)}


def function(x):
    return (x.sin() * cg.tensor([0.1, 0.2, 0.3]) * cg.rand(3)).view(3, 1), x.exp()


def looped(x):
    def step(carry, _):
        return carry.sin() * cg.tensor([0.7, 0.8, 0.9]) + cg.rand(3), carry.cos()

    carry, ys = func.scan(step, x, None, length=70)
    return carry.view(3, 1), ys.sum(0)


def new_strides(results, x):
    return grad(results, x, (cg.ones(1, 1, dtype=cg.float64).expand(3, 1), cg.ones(1, dtype=cg.float64).expand(3)))


def one_result(results, x):
    return grad(results[1], x, cg.ones(3, dtype=cg.float64))


def of_examples(results, x):
    return grad(results[0], x, cg.eye(3, dtype=cg.float64).view(3, 3, 1), is_grads_batched=True)


def recorded(results, x):
    first, = grad(results[0], x, cg.ones(3, 1, dtype=cg.float64), create_graph=not cg.is_inference_mode_enabled())
    return (first,)


@pytest.mark.parametrize("differentiate", [new_strides, one_result, of_examples, recorded])
@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("original", [function, looped])
def test_a_backward_in_another_mode(original, name, differentiate):
    compiled, outcomes = captured(original), []
    for call in (compiled, compiled, original):
        cg.manual_seed(1)
        x = cg.tensor([0.1, 0.2, 0.3], dtype=cg.float64, requires_grad=True)
        results = call(x)
        with MODES[name]():
            gradients = differentiate(results, x)
            state = cg.is_inference_mode_enabled(), cg.is_grad_enabled(), cg.get_default_dtype()
        outcomes.append(([gradient.tolist() for gradient in gradients], [gradient.is_inference() for gradient in gradients], state,
                         cg.rand(1).item()))
    _, ours, theirs = outcomes
    if original is function:
        assert ours == theirs
    else:       # which adds gradients that are differentiated again in another order
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12, atol=1e-13)


def test_failing_backwards_are_not_counted_where_a_value_has_changed():
    """Eight programs of further backwards are made at most."""
    scale, statistics = [2.0], cg.zeros(3)

    def scaled(x):
        statistics.add_(x.detach().mean(0))
        return (x.sin() * scale[0]).mT, x.exp().sum(0)

    compiled = captured(scaled)
    compiled(cg.ones(2, 3, requires_grad=True))
    for number in range(12):
        x = cg.arange(6.0).view(2, 3).requires_grad_()
        first, second = compiled(x)
        if number < 10:
            scale[0] = 3.0
            (first.sum() + second.sum()).backward()
            scale[0] = 2.0
        else:
            assert grad(second.sum(), x)[0].equal(x.detach().exp())


def test_a_failing_backward_in_inference_mode_leaves_its_modes():
    compiled = captured(lambda x: (x.sin(), x.exp()))
    for _ in range(3):
        x = cg.ones(3, requires_grad=True)
        first, second = compiled(x)
        with cg.inference_mode():
            with contextlib.suppress(RuntimeError):
                grad([first, second], x, [cg.ones(3), cg.ones(3)], create_graph=True)
            assert not cg.is_grad_enabled() and cg.is_inference_mode_enabled()
        assert cg.is_grad_enabled() and not cg.is_inference_mode_enabled()


def recorded_in_part(x):
    with cg.enable_grad():
        y = x * 2
    scale = y.sum()             # without history, where the call does not record
    with cg.enable_grad():
        return y * scale, y.sin()


BACKWARDS = {
    "of sums": lambda x, y, z: (y.sum() + z.sum()).backward(),
    "of one result": lambda x, y, z: y.sum().backward(),
    "beside another part": lambda x, y, z: (y.sum() + z.sum() + (x * x).sum()).backward(),
    "twice": lambda x, y, z: grad(y.sum(), x, create_graph=True)[0].sum().backward(),
}


@pytest.mark.parametrize("records", [False, True])
@pytest.mark.parametrize("name", BACKWARDS)
def test_a_function_that_runs_again_records_as_its_call_did(name, records):
    compiled = captured(recorded_in_part)
    for number in range(3):
        gradients = []
        for each in (recorded_in_part, compiled):
            x = cg.arange(3.0, dtype=cg.float64).add_(number).requires_grad_()
            with cg.set_grad_enabled(records):
                results = each(x)
            with contextlib.suppress(RuntimeError):     # without a second derivative
                BACKWARDS[name](x, *results)
            gradients.append([] if x.grad is None else x.grad.tolist())
        assert gradients[0] == pytest.approx(gradients[1], rel=1e-14)
    assert compiled.cache_info().hits == 2
