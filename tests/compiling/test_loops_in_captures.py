"""Loops of many steps in captured functions: a program has the loop as one call, with the bits of the loop alone."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import scan
from cygrad.func.control import LOOPED_FROM
from samples import same_bits

COUNT = LOOPED_FROM + 9


def drawn(*shape, seed=0):
    return cg.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


def cell(weight, number=0.9):
    def step(carry, x):
        carry = (weight @ carry + x).tanh() * number
        return carry, carry * carry
    return step


def total(weight, carry, xs):
    last, ys = scan(cell(weight), carry, xs)
    return last.sum() + (ys * ys).mean()


def totals(weight, carry, xs):
    return [*cg.autograd.grad(total(weight, carry, xs), (weight, carry, xs))]


def reversed_gradients(weight, carry, xs):
    last, ys = scan(lambda carry, x: ((carry + x).sin(), carry * x), carry, xs, reverse=True)
    return [last.detach(), ys.detach(), *cg.autograd.grad(last.sum() + ys.sum(), (carry, xs))]


def with_snapshots(weight, carry, xs):
    last, _ = scan(lambda carry, x: ((carry + x).sin(), None), carry, xs, snapshots=20)
    return [*cg.autograd.grad(last.sum(), (carry, xs))]


def two_loops(weight, carry, xs):
    middle, ys = scan(cell(weight), carry, xs)
    last, _ = scan(cell(weight.mT, 0.3), middle, ys)
    return [last.detach(), *cg.autograd.grad(last.sum() + ys.sum(), (weight, xs))]


FUNCTIONS = [totals, reversed_gradients, with_snapshots, two_loops]


def operands(seed):
    return drawn(3, 3, seed=seed), drawn(3, seed=seed + 1), drawn(COUNT, 3, seed=seed + 2)


def assert_same(results, expected):
    for result, value in zip(results, expected, strict=True):
        assert same_bits(result.detach().numpy(), value.detach().numpy())


@pytest.mark.cases("function", FUNCTIONS)
def test_a_loop_is_one_call(function):
    compiled = cg.compile(function, fullgraph=True)
    for seed in range(4):
        args = operands(seed)
        assert_same(compiled(*args), function(*args))
    assert compiled.cache_info().hits == 3
    assert int(compiled.explain(*args).split(maxsplit=1)[0]) < 150, "a program has few steps, and not those of each iteration"


@pytest.mark.cases("create_graph", [False, True])
def test_the_gradient_of_a_captured_loop(create_graph):
    compiled = cg.compile(total, fullgraph=True)
    for seed in range(3):
        args = operands(seed)
        results = []
        for function in (compiled, total):
            value = function(*args)
            gradients = cg.autograd.grad(value, args, create_graph=create_graph)
            results.append([value, *gradients])
            if create_graph:
                results[-1] += cg.autograd.grad(sum((each * each).sum() for each in gradients), args[:2])
        if create_graph:    # second derivatives are sums in another order
            for result, expected in zip(*results, strict=True):
                np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-12)
        else:
            assert_same(*results)


def test_a_decision_that_comes_out_otherwise_is_the_functions():
    def function(carry):
        last, _ = scan(lambda carry, _: (carry * 1.01 if bool(carry.sum() < 100.0) else carry * 0.5, None), carry, length=COUNT)
        return [last.detach(), *cg.autograd.grad(last.sum(), carry)]

    compiled = cg.compile(function, fullgraph=True)
    small, large = (cg.full((3,), value, dtype=cg.float64, requires_grad=True) for value in (1e-3, 5.0))
    for carry in (small, small, large, large, small):
        assert_same(compiled(carry), function(carry))
    assert compiled.cache_info()[:2] == (3, 2)


def test_a_loop_that_draws_numbers_has_all_its_steps():
    def function(carry):
        return scan(lambda carry, _: (carry + cg.randn(3, dtype=cg.float64), None), carry, length=COUNT)[0]

    carry, compiled = cg.zeros(3, dtype=cg.float64), cg.compile(function)
    for _ in range(3):
        cg.manual_seed(7)
        expected = function(carry)
        after = cg.randn(1)
        cg.manual_seed(7)
        assert_same([compiled(carry), cg.randn(1)], [expected, after])


def test_making_the_program_of_a_step_changes_nothing():
    """The step runs once more for that."""
    count, runs = cg.zeros(1, dtype=cg.float64), []

    def function(carry, count):
        def step(carry, _):
            count.add_(1.0)
            return carry * 0.5 + count, None

        return scan(step, carry, length=COUNT)[0]

    other = count.clone()
    compiled = cg.compile(function)
    for _ in range(3):
        runs.append((compiled(cg.ones(3, dtype=cg.float64), count), function(cg.ones(3, dtype=cg.float64), other)))
        assert_same(*zip(runs[-1], (count, other), strict=True))


def test_memory_and_steps_do_not_grow_with_the_loop():
    def function(carry, xs):
        return scan(lambda carry, x: ((carry + x).sin(), None), carry, xs)[0]

    steps = []
    for count in (COUNT, 20 * COUNT):
        xs = cg.ones(count, 3, dtype=cg.float64)
        compiled = cg.compile(function, fullgraph=True)
        text = compiled.explain(cg.ones(3, dtype=cg.float64), xs)
        steps.append([line for line in text.splitlines() if "memory" not in line])
    assert steps[0] == steps[1]
