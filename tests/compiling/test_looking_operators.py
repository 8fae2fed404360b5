"""Operators that look at values by themselves are steps of programs: calls, or decisions."""

import pytest

import cygrad as cg
from capturing import X, captured, same
from cygrad import func, nn

STATE = X.clone()
PLACES, TANGENT = cg.tensor([0, 2, 1]), cg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=cg.float64)


def moved(x):
    STATE.data -= x * 0.1
    return x * STATE


@pytest.mark.parametrize("function", [
    lambda x: nn.functional.one_hot(PLACES) * x, lambda x: cg.bincount(PLACES, x, 4), lambda x: cg.tensor([[x[0], -x[1]], [1.0, x[2]]]),
    lambda x: func.jvp(lambda y: y[1:] * 2, (x,), (TANGENT[1],))[1], moved,
    lambda x: nn.functional.binary_cross_entropy(x.sigmoid(), x.cos().sigmoid()),
    lambda x: func.jvp(lambda y: (y.outer(y) + cg.eye(3)).det(), (x,), (x,))[1],
    func.grad(lambda x: func.grad(lambda y: (y.outer(y) + cg.eye(3)).det())(x).sum())])
def test_operators_that_look_at_values_are_captured(function):
    compiled, start = captured(function), STATE.clone()
    ours = [compiled(X * k).detach() for k in range(1, 4)]
    STATE.copy_(start)
    for k, result in enumerate(ours, 1):
        same(result, function(X * k).detach())
    assert compiled.cache_info()[:2] == (2, 1)
    STATE.copy_(start)


def test_a_list_that_a_call_was_given_may_change():
    def function(x):
        numbers = [x[0], 2.0]
        first = cg.tensor(numbers)
        numbers[1] = x[1]
        return first, cg.tensor(numbers)

    compiled = captured(function)
    for k in range(3):
        for ours, theirs in zip(compiled(X + k), function(X + k), strict=True):
            same(ours, theirs)
    assert compiled.cache_info().hits == 2
