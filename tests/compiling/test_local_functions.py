"""Functions among the arguments of captured functions that are made anew for each call: lambdas, and functions in functions."""

import functools
import math

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured, refusal, same

SHIFT = 0.5


def integrated(f, y, step=0.1):
    for _ in range(3):
        y = y + step * f(y + step / 2 * f(y))
    return y


class Model:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, y):
        return y * self.rate


def of_tensor(k):
    weight = X * (k + 1)
    return lambda y: y.sin() * weight


def of_float(k):
    rate = 0.3 * k

    def slope(y, shift=0.1 * k):
        return rate * y + shift

    return slope


def of_functions(k):
    rate = 0.3 * k

    def force(y):
        return rate * y

    return lambda y: force(y) - force(y * rate) + rate


def of_numpy(k):
    rate = np.float64(k)
    return lambda y: y * rate


def of_partial(k):
    return functools.partial(lambda rate, y, shift: rate * y + shift, 0.3 * k, shift=[0.2 * k][0])


def of_global(k):
    return lambda y: y * SHIFT


MODEL, TABLE, ARRAY = Model(2.0), [1.0, 2.0], np.arange(3.0)
# A maker of functions, and how many of 6 calls are replays.
MAKERS = {
    "tensor": (of_tensor, 5),
    "float": (of_float, 4),
    "floats of functions that it names": (of_functions, 4),
    "float64 of NumPy's": (of_numpy, 4),
    "floats in a partial function": (of_partial, 4),
    "global": (of_global, 5),
    "object": (lambda k: lambda y, model=MODEL: model(y), 5),
    "list from outside": (lambda k: lambda y, table=TABLE: y * table[1], 5),
    "array of NumPy's": (lambda k: lambda y, scale=ARRAY: y * scale, 5),
    "text": (lambda k: lambda y, name="ab"[k % 2]: y * 2 if name == "a" else y, 4),
    "float for Python alone": (lambda k: lambda y, rate=0.1 * k: y * math.sin(rate), 0),
    "a list of its own": (lambda k: lambda y, table=[1.0 + k]: y * table[0], 0),     # noqa: B006
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_new_function_of_the_same_code_has_the_same_program(name):
    make, hits = MAKERS[name]
    compiled = cg.compile(integrated)
    for k in range(6):
        same(compiled(make(k), X + k), integrated(make(k), X + k))
    assert compiled.cache_info().hits == hits and not compiled.cache_info().eager


def test_gradients_of_the_tensors_that_it_has():
    compiled = captured(integrated)
    for k in range(3):
        weight, gradients = (X + k).requires_grad_(), []
        for call in compiled, integrated:
            gradients += cg.autograd.grad(call(lambda y, weight=weight: y.sin() * weight, X * k).sum(), weight)
        same(*gradients)
    assert compiled.cache_info()[:2] == (2, 1)


def test_changes_of_values_that_it_names_are_seen():
    model, table = Model(2.0), [1.0]

    def make():
        return lambda y: model(y) + table[0]

    compiled = captured(integrated)
    for k in range(8):
        model.rate, table[0] = float(k // 4), float(k // 2 % 2)
        same(compiled(make(), X), integrated(make(), X))
    assert compiled.cache_info()[:2] == (4, 4)


def test_another_function_is_another_program():
    compiled = captured(integrated)
    for f in (lambda y: y * 2), (lambda y: y * 3), (lambda y: y * 2):
        same(compiled(f, X), integrated(f, X))
    assert compiled.cache_info()[:2] == (0, 3)


def counter():
    count = 0

    def count_up(y):
        nonlocal count
        count += 1
        return y * count

    return count_up


def with_attribute(f, y):
    f.called = True
    return f(y)


REFUSED = {
    "counter": (integrated, counter(), "assigns a variable of another function"),
    "attribute": (with_attribute, of_tensor(0), "changes an argument itself"),
    "result": (lambda f, y: (f(y), f), of_tensor(0), "it returns a function"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_of_local_functions(name):
    function, f, reason = REFUSED[name]
    assert reason in refusal(function, f, X)


def test_functions_that_lead_to_themselves():
    def make():
        def halved(y, times=3):
            return halved(y * 0.5, times - 1) if times else y

        return halved

    one, compiled = make(), captured(integrated)
    for f in (one, one, make(), one):
        same(compiled(f, X), integrated(f, X))
    assert compiled.cache_info()[:2] == (3, 1)


def doubled(f):
    @functools.wraps(f)
    def inner(y):
        return f(y) * 2

    return inner


def test_functions_of_functions():
    compiled = captured(integrated)
    for k in range(4):
        same(compiled(doubled(of_tensor(k)), X), integrated(doubled(of_tensor(k)), X))
    assert compiled.cache_info()[:2] == (3, 1)
    same(compiled(doubled(lambda y: y * 3), X), integrated(doubled(lambda y: y * 3), X))


def test_steps_of_loops():
    def end(step, carry):
        return cg.func.scan(step, carry, length=600)[0]

    compiled = captured(end)
    for k in range(3):
        rate = 0.001 * X * (k + 1)
        ours, theirs = (call(lambda carry, _, rate=rate: (carry + rate * carry.sin(), None), X) for call in (compiled, end))
        same(ours, theirs)
    assert compiled.cache_info()[:2] == (2, 1)


def test_a_counter_is_counted_where_floats_are_tensors():
    """`dynamic=True` makes no copy of a function: it writes into its variables."""
    f, compiled = counter(), cg.compile(lambda f, y: f(y), dynamic=True)
    with pytest.warns(RuntimeWarning, match="assigns a variable of another function"):
        assert [compiled(f, cg.ones(())).item() for _ in range(3)] == [1, 2, 3]
