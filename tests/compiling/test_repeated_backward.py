"""At capture the backward runs once besides the call of the user: nothing that its code does may be seen."""

import warnings

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import Function
from cygrad.checkpoint import checkpoint
from samples import same_bits

CALLS = 3
GLOBAL = cg.zeros(3)
LOG: list[float] = []
COUNTS = np.zeros(3)
TOTAL = 0.0


class Meter:
    def __init__(self):
        self.count = 0

    def watch(self, gradient):
        self.count += 1


METER = Meter()


def with_hook(hook):
    """Return a function of a tensor, its state and a result of the forward part, which its backward passes to a hook."""
    def function(x, state):
        seen = x.detach() * 2.0
        seen.add_(x.detach())
        y = x * 3.0
        y.register_hook(lambda gradient: hook(gradient, state, seen))
        return y * x, seen

    return function


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, state):
        ctx.state = state
        return x * 2.0

    @staticmethod
    def backward(ctx, gradient):
        ctx.state.add_(1.0)
        return gradient * 2.0, None


def change_state(gradient, state, seen):
    state.add_(gradient).mul_(0.5)


def change_result(gradient, state, seen):
    seen.add_(gradient).mul_(0.5)


def change_by_index(gradient, state, seen):
    state[cg.tensor([0, 2])] = gradient[:2]


def change_by_sorting(gradient, state, seen):
    state.copy_((gradient + state + 1.0).sort(descending=True)[0])


def change_global(gradient, state, seen):
    GLOBAL.add_(1.0)


def draw(gradient, state, seen):
    return gradient * cg.rand(3)


def change_list(gradient, state, seen):
    LOG.append(float(gradient.sum()))


def change_array(gradient, state, seen):
    COUNTS[0] += 1


def assign_global(gradient, state, seen):
    global TOTAL
    TOTAL += 1.0


def change_object(gradient, state, seen):
    METER.watch(gradient)


def give_gradient(gradient, state, seen):
    state.grad = gradient.clone()


def cell_hook():
    count = 0

    def hook(gradient, state, seen):
        nonlocal count
        count += 1
        return gradient * count

    return hook


HOOKS = (change_state, change_result, change_by_index, change_by_sorting, change_global, draw, change_list, change_array, assign_global,
         change_object, give_gradient)
FUNCTIONS = {
    **{hook.__name__: with_hook(hook) for hook in HOOKS},
    "a function's backward": lambda x, state: (Scaled.apply(x, state), x * 2.0),
    "a checkpoint": lambda x, state: (checkpoint(lambda each: each.sin() * cg.rand(3), x, use_reentrant=False), x * 2.0),
}


def history(function):
    """Return the values that can be seen after each of some calls and backwards."""
    global TOTAL
    GLOBAL.zero_()
    LOG.clear()
    COUNTS[:], METER.count, TOTAL = 0, 0, 0.0
    cg.manual_seed(0)
    state, values = cg.zeros(3), []

    def look(*tensors):
        values.extend([*(each.detach().numpy().copy() for each in (*tensors, state, GLOBAL)), np.array(len(LOG)), COUNTS.copy(),
                       np.array([METER.count, TOTAL, state._version > 0, state.grad is None])])

    for k in range(CALLS):
        x = cg.tensor([1.0, 2.0, 3.0 + k], requires_grad=True)
        y, seen = function(x, state)
        look(y, seen, cg.rand(1))
        (y * cg.tensor([1.0, 5.0, 3.0])).sum().backward()
        look(x.grad, seen, cg.rand(1))
    return values


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_changes_nothing(name):
    with warnings.catch_warnings():     # some stay as they are
        warnings.simplefilter("ignore", RuntimeWarning)
        computed = history(cg.compile(FUNCTIONS[name]))
    for value, expected in zip(computed, history(FUNCTIONS[name]), strict=True):
        assert same_bits(value, expected)


def test_a_cell_is_no_state_of_it():
    with pytest.warns(RuntimeWarning, match=r"its backward runs hook\(\) .* assigns count: compute the gradients in the function"):
        computed = history(cg.compile(with_hook(cell_hook())))
    for value, expected in zip(computed, history(with_hook(cell_hook())), strict=True):
        assert same_bits(value, expected)


@pytest.mark.parametrize("hook", [change_state, change_result, draw], ids=lambda hook: hook.__name__)
def test_changes_of_tensors_are_captured(hook):
    compiled = cg.compile(with_hook(hook), fullgraph=True)
    assert history(compiled)
    assert compiled.cache_info().hits == CALLS - 1
