"""Loops of many steps in captured functions: a program has the loop as one call, with the bits of the loop alone."""

import itertools

import numpy as np
import pytest

import cygrad as cg
from cygrad.func import fori_loop, scan, while_loop
from cygrad.func.control import LOOPED_FROM
from samples import same_bits

pytestmark = pytest.mark.usefixtures("usual_sizes")     # a loop takes no step that may be pending
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
    assert int(compiled.explain(*args).split(maxsplit=1)[0]) < 150, "a program has no steps of each iteration"


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


def steps_seen(x):
    seen = []

    def body(y):
        seen.append(0.5)
        return y * 0.5 + 0.1

    return while_loop(lambda y: (y > 0.2001).any(), body, x) * len(seen)


def predicates_seen(x):
    seen = []
    return while_loop(lambda y: seen.append(0.5) or len(seen) < 100, lambda y: y.sin(), x)


def shrinking_steps(x):
    count = 0

    def body(i, y):
        nonlocal count
        count += 1
        return y - 0.1 / count * y

    return fori_loop(0, COUNT, body, x)


def fed_by_an_iterator(x):
    numbers = iter(range(COUNT))
    return scan(lambda carry, _: (carry + next(numbers), None), x, length=COUNT)[0]


@pytest.mark.parametrize("function", [steps_seen, predicates_seen, shrinking_steps, fed_by_an_iterator])
@pytest.mark.parametrize("transform", [cg.compile, cg.func.vmap])
@pytest.mark.filterwarnings("ignore:compile")       # one of these stays as it is
def test_steps_that_change_values_of_python_run_once_each(function, transform):
    """A step is watched before it runs once more."""
    transformed = transform(function)
    for k in range(3):
        x = cg.full((2,), k + 1.0, dtype=cg.float64)
        assert_same([transformed(x)], [function(x)])


FACTOR = 2.0


def scaled(x):
    return x * FACTOR


def test_names_of_code_behind_a_loop_are_guards(monkeypatch):
    def function(carry):
        return scaled(scan(lambda carry, _: (carry.sin(), None), carry, length=COUNT)[0])

    carry, compiled = drawn(3).detach(), cg.compile(function, fullgraph=True)
    for factor in (2.0, 2.0, 3.0, 3.0):
        monkeypatch.setitem(function.__globals__, "FACTOR", factor)
        assert_same([compiled(carry)], [function(carry)])
    assert compiled.cache_info()[:2] == (2, 2)


def test_making_the_program_of_a_step_notes_nothing():
    def function(carry, length):
        return scan(lambda carry, _: (carry.sin(), None), carry, length=length)[0]

    compiled = cg.compile(function, fullgraph=True)
    text = compiled.explain(drawn(3), COUNT)
    assert text.startswith("8 steps: 3 sin, 3 sin_dx\n")       # and two calls


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


# ----- fori_loop and while_loop -----
ROWS = drawn(COUNT, 3, seed=9).detach()

# Bodies with their number, and whether a loop of the core can run them: others read the number.
NUMBERED = {
    "no number": (lambda i, x: x.sin() + 0.1, True),
    "number beside a tensor": (lambda i, x: x * 0.5 + i, True),
    "multiple": (lambda i, x: (x * (2 * i - 3)).sin(), True),
    "square": (lambda i, x: (x * (i * i)).sin(), True),
    "quotient": (lambda i, x: (x + (i + 1) / (i + 2)).cos(), True),
    "float": (lambda i, x: x + 0.1 * i * x.sin() * 1e-3, True),
    "large": (lambda i, x: x + ((i * i + 1) - i * i), False),
    "negative": (lambda i, x: (x - -i).sin() + abs(i - 4), True),
    "fourth power": (lambda i, x: (x * (i * i * (i * i))).sin(), False),
    "remainder": (lambda i, x: (x + i % 3).sin(), False),
    "row": (lambda i, x: (x + ROWS[i]).sin(), True),
    "branch": (lambda i, x: x.sin() if i < COUNT // 2 else x.cos(), False),
    "conversion": (lambda i, x: x + float(i) * 1e-4, False),
}


def fori_with_python(lower, upper, body, carry):
    for number in range(lower, upper):
        carry = body(number, carry)
    return carry


@pytest.mark.cases("name", NUMBERED)
@pytest.mark.cases("dtype", ["float64", "float32"])
def test_a_loop_over_numbers_has_the_bits_of_pythons(name, dtype):
    body, is_looped = NUMBERED[name]
    if name == "row" and dtype == "float32":
        return      # it changes the dtype of the carry
    x = drawn(3).detach().to(getattr(cg, dtype)).requires_grad_()

    def function(x, run=fori_loop):
        last = run(0, COUNT, body, x)
        return [last.detach(), *cg.autograd.grad(last.sum(), x)]

    for _ in range(2):
        assert_same(function(x), function(x, fori_with_python))
    compiled = cg.compile(function, fullgraph=True)
    for factor in (1.0, 1.0, 0.7):
        x = (x.detach() * factor).requires_grad_()
        assert_same(compiled(x), function(x, fori_with_python))
    assert (int(compiled.explain(x).split(maxsplit=1)[0]) < 150) == is_looped


def test_numbers_of_a_loop_are_ints():
    met = []

    def body(i, x):
        met.append((isinstance(i, int), i + 1 == int(i) + 1, f"{i}", [*range(i)] == [*range(int(i))], -i < 1, i // 2, 2 ** i > 0))
        return x

    fori_loop(5, 5 + COUNT, body, cg.zeros(1))
    assert [each[0] for each in met] == [True] * COUNT
    assert [each[2] for each in met] == [str(number) for number in range(5, 5 + COUNT)]
    assert all(all(each) for each in met)
    start, body = 1 << 30, NUMBERED["large"][0]
    assert_same([fori_loop(start, start + COUNT, body, cg.zeros(1))], [fori_with_python(start, start + COUNT, body, cg.zeros(1))])
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        fori_loop(-2, COUNT, lambda i, x: x + 1 / i, cg.zeros(1))


# Predicates and bodies, and whether a program has all numbers of steps: a loop of the core.
PREDICATED = {
    "sum": (lambda x: x.sum() < 1e3, lambda x: x * 1.01 + 0.1, True),
    "counter": (lambda c: c[1] < COUNT, lambda c: (c[0].sin() + 0.2, c[1] + 1), True),
    "branch": (lambda x: x.sum() < 1e3, lambda x: x * 1.01 + 0.1 if bool(x.sum() < 100.0) else x * 1.02, False),
    "predicate that decides": (lambda x: x.sum() < 1e3 if bool(x.sum() < 500.0) else x.sum() < 900.0, lambda x: x * 1.01 + 0.1, False),
    "predicate that reads": (lambda x: x.sum().item() < 1e3, lambda x: x * 1.01 + 0.1, False),
    "no step": (lambda x: x.sum() < -1e3, lambda x: x * 1.01, False),
    "few steps": (lambda x: x.sum() < 10.0, lambda x: x + 1.0, False),
}


def while_with_python(cond, body, carry):
    while bool(cond(carry)):
        carry = body(carry)
    return carry


@pytest.mark.filterwarnings("ignore:compile\\(\\):RuntimeWarning")
@pytest.mark.cases("name", PREDICATED)
def test_a_loop_with_a_predicate_has_the_bits_of_pythons(name):
    cond, body, is_looped = PREDICATED[name]

    def function(x, run=while_loop):
        carry = (x, cg.zeros((), dtype=cg.int64)) if name == "counter" else x
        last = run(cond, body, carry)
        last = last[0] if name == "counter" else last
        return [last.detach(), *cg.autograd.grad(last.sum(), x)]

    compiled = cg.compile(function, fullgraph=name != "predicate that reads")
    for factor in (1.0, 1.0, 0.7, 3.0, 1.5):
        x = (drawn(3).detach().abs() * factor).requires_grad_()
        expected = function(x, while_with_python)
        assert_same(function(x), expected)
        assert_same(compiled(x), expected)
    if is_looped:
        assert compiled.cache_info()[:2] == (4, 1), "another number of steps is no other program"


def test_a_long_loop_with_a_predicate_keeps_few_states():
    """It keeps 4,096 states, and computes the others again."""
    def function(x, run):
        last = run(lambda c: c[1] < 10_001, lambda c: (c[0].sin() + 0.2, c[1] + 1), (x, cg.zeros((), dtype=cg.int64)))[0]
        return [last.detach(), *cg.autograd.grad(last.sum(), x)]

    x = drawn(3)
    assert_same(function(x, while_loop), function(x, while_with_python))


def test_second_derivatives_of_loops():
    x = drawn(3)

    def second(function):
        gradient, = cg.autograd.grad(function(x).sum(), x, create_graph=True)
        return cg.autograd.grad((gradient * gradient).sum(), x)

    body, counted = NUMBERED["quotient"][0], PREDICATED["counter"][:2]
    start = x, cg.zeros((), dtype=cg.int64)
    for ours, pythons in [(lambda x: fori_loop(0, COUNT, body, x), lambda x: fori_with_python(0, COUNT, body, x)),
                          (lambda _: while_loop(*counted, start)[0], lambda _: while_with_python(*counted, start)[0])]:
        np.testing.assert_allclose(second(ours)[0].numpy(), second(pythons)[0].numpy(), rtol=1e-9, atol=1e-12)


# ----- Carried values that stay -----
def staying(carry, x):
    value, weight, unused = carry
    return (value @ weight * 0.5 + x).sin() + weight[0], weight, unused


STAYING = {
    "scan": lambda carry, xs: scan(lambda carry, x: (staying(carry, x), carry[0] * 2), carry, xs)[0],
    "fori_loop": lambda carry, xs: fori_loop(0, COUNT, lambda i, carry: staying(carry, i * 1e-3), carry),
    "while_loop": lambda carry, xs: while_loop(lambda carry: carry[0][0].sum() < COUNT,
                                               lambda carry: ((carry[0][0] + 1, staying((carry[0][1], *carry[1:]), 0.1)[0]), *carry[1:]),
                                               ((cg.zeros(()), carry[0]), *carry[1:])),
}


def by_steps(name, carry, xs):
    """Do the same by Python, step by step."""
    last = carry
    for number in range(COUNT):
        last = staying(last, {"scan": xs[number], "fori_loop": number * 1e-3, "while_loop": 0.1}[name])
    return last


@pytest.mark.cases("name", STAYING)
@pytest.mark.cases("create_graph", [False, True])
def test_carried_values_that_stay(name, create_graph):
    def first(last):
        return last[0][1] if name == "while_loop" else last[0]

    for requires_grad in itertools.product((False, True), repeat=2):
        carry = [drawn(3), *(drawn(3, 3, seed=1).detach().requires_grad_(needs) for needs in requires_grad)]
        xs = drawn(COUNT, 3, seed=4).detach()
        last, expected = STAYING[name](tuple(carry), xs), by_steps(name, tuple(carry), xs)
        assert last[-1] is carry[2] and last[-2] is carry[1]
        assert_same([first(last)], [expected[0]])
        inputs = [each for each in carry if each.requires_grad]
        results = []
        for value in (first(last), expected[0]):
            gradients = cg.autograd.grad(value.sum() + (carry[1] * 3).sum(), inputs, create_graph=create_graph, allow_unused=True)
            results.append([each for each in gradients if each is not None])
        for ours, pythons in zip(*results, strict=True):
            np.testing.assert_allclose(ours.detach().numpy(), pythons.detach().numpy(), rtol=1e-9, atol=1e-11)


def test_a_value_that_stays_is_a_result_of_each_step():
    value, weight, xs = drawn(3), drawn(3, seed=1), drawn(COUNT, 3, seed=2)
    last, ys = scan(lambda carry, x: ((carry[0] * x + carry[1], carry[1]), carry[1]), (value, weight), xs)
    ours = cg.autograd.grad(last[0].sum() + (ys * xs).sum(), (value, weight))
    expected = value
    for x in xs:
        expected = expected * x + weight
    pythons = cg.autograd.grad(expected.sum() + (weight * xs).sum(), (value, weight))
    for gradient, other in zip(ours, pythons, strict=True):
        np.testing.assert_allclose(gradient.numpy(), other.numpy(), rtol=1e-9)


def test_a_value_that_stays_must_not_change_before_the_backward():
    value, weight = drawn(3), drawn(3, 3, seed=1).detach()
    last = fori_loop(0, COUNT, lambda _, carry: ((carry[0] @ carry[1]).sin(), carry[1]), (value, weight))
    weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        last[0].sum().backward()


def test_a_captured_loop_with_a_value_that_stays():
    def function(value, weight):
        last = fori_loop(0, COUNT, lambda _, carry: ((carry[0] @ carry[1]).sin(), carry[1]), (value, weight))
        return [last[0].detach(), *cg.autograd.grad(last[0].sum(), (value, weight))]

    compiled = cg.compile(function, fullgraph=True)
    for seed in range(3):
        args = drawn(3, seed=seed), drawn(3, 3, seed=seed + 5)
        assert_same(compiled(*args), function(*args))
    assert compiled.cache_info().hits == 2
    assert int(compiled.explain(*args).split(maxsplit=1)[0]) < 150
