"""Arguments of one kind that code distinguishes: by `is`, in tables, and where one is changed for a while and another one is read."""

import contextlib
import copy
import dataclasses
import functools
import operator
import weakref
from collections import namedtuple

import numpy as np
import pytest

import cygrad as cg
from capturing import captured, same

X = cg.tensor([1.0, 2.0])


@dataclasses.dataclass
class Config:
    count: int = 1

    def method(self):
        return self.count


@dataclasses.dataclass
class Hashed:
    count: int = 1

    def __hash__(self):
        return super().__hash__()


@contextlib.contextmanager
def changed(config, count):
    before, config.count = config.count, count
    yield
    config.count = before


def make():
    return lambda y: y * 2.0


Pair = namedtuple("Pair", "a b")
CONFIG, RECORD, ITEMS, VALUES = Config(), Hashed(), [2.0], {"n": 1}
F, G, P, Q = make(), make(), functools.partial(max, 1), functools.partial(max, 1)
ALL, AXES, PAIR, RANGE = slice(None), (0, 1), Pair(1, 2), range(3)
METHODS = {CONFIG.method: 5.0}
# Makers of arguments, of which the first one is known to code.
CONFIGS, FUNCTIONS = [lambda: (CONFIG,), lambda: (Config(),)], [lambda: (F,), lambda: (G,), lambda: (make(),)]


def default_changed(x, config):
    with changed(config, 5):
        return x * CONFIG.count


def first_changed(x, first, second):
    with changed(first, 5):
        return x * second.count


def global_changed(x, values):
    VALUES["n"] = 7
    try:
        return x * values["n"]
    finally:
        VALUES["n"] = 1


def copied(x, rows):
    rows = copy.deepcopy(rows)
    rows[0].append(2.0)
    return x * sum(rows[1])


def each_once(x, functions):
    for function in dict.fromkeys(functions):
        x = function(x)
    return x


# A function, and makers of the arguments of its calls.
DISTINGUISHED = {
    "a global is the argument": (default_changed, [lambda: (Config(),), lambda: (CONFIG,)]),
    "one argument twice": (first_changed, [lambda: (Config(), Config()), lambda: (CONFIG, CONFIG)]),
    "a global dict is the argument": (global_changed, [lambda: ({"n": 1},), lambda: (VALUES,)]),
    "one item twice": (copied, [lambda: ([[1.0], [1.0]],), lambda: ([[1.0]] * 2,)]),
    "a key of an argument": (lambda x, table, key: x * table[key], [lambda: ({F: 3.0, G: 5.0}, F), lambda: ({F: 3.0, G: 5.0}, G)]),
    "a key of a table in the function": (lambda x, key: x * {F: 3.0, G: 5.0}.get(key, 1.0), FUNCTIONS),
    "a key that is a record": (lambda x, key: x * {RECORD: 3.0}.get(key, 1.0), [lambda: (RECORD,), lambda: (Hashed(),)]),
    "a key that is a method": (lambda x, key: x * METHODS.get(key.method, 1.0), CONFIGS),
    "functions in a set": (lambda x, items: x * len({*items}), [lambda: ([F, F],), lambda: ([F, G],)]),
    "partial objects in a set": (lambda x, items: x * len({*items}), [lambda: ([P, P],), lambda: ([P, Q],)]),
    "methods in a set": (lambda x, items: x * len({item.method for item in items}), [
        lambda: ([CONFIG, CONFIG],), lambda: ([CONFIG, Config()],)]),
    "functions once each": (each_once, [lambda: ([F, F],), lambda: ([F, G],)]),
    "items of a list": (lambda x, items: x * (F in items), [lambda: ([F],), lambda: ([G],)]),
    "a record by is": (lambda x, config: x * 2 if config is CONFIG else x * 3, CONFIGS),
    "a record by operator.is_": (lambda x, config: x * 2 if operator.is_(config, CONFIG) else x * 3, CONFIGS),
    "a list by is": (lambda x, items: x * 2 if items is ITEMS else x * 3, [lambda: (ITEMS,), lambda: ([2.0],)]),
    "a function by is": (lambda x, function: x if function is F else function(x), FUNCTIONS),
    "two items by is": (lambda x, items: x * 2 if items[0] is items[1] else x * 3, [lambda: ([{}] * 2,), lambda: ([{}, {}],)]),
    "a partial object by is": (lambda x, function: x if function is P else x * 2, [lambda: (P,), lambda: (Q,)]),
    "a slice by is": (lambda x, key: x[key] if key is ALL else x * 2, [lambda: (ALL,), lambda: (slice(None),)]),
    "a tuple by is": (lambda x, axes: x * 3 if axes is AXES else x * 2, [lambda: (AXES,), lambda: (tuple([0, 1]),)]),
    "two tuples by is": (lambda x, a, b: x * 3 if a is b else x * 2, [lambda: (AXES, AXES), lambda: (AXES, tuple([0, 1]))]),
    "a named tuple by is": (lambda x, pair: x * 3 if pair is PAIR else x * 2, [lambda: (PAIR,), lambda: (Pair(1, 2),)]),
    "a range by is": (lambda x, numbers: x * 3 if numbers is RANGE else x * 2, [lambda: (RANGE,), lambda: (range(3),)]),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", DISTINGUISHED)
def test_arguments_that_code_distinguishes(name, order):
    function, makers = DISTINGUISHED[name]
    compiled = captured(function)
    for makes in (*makers[::order], *makers):
        for k in range(2):
            same(compiled(X + k, *makes()), function(X + k, *makes()))
    assert compiled.cache_info().hits


def test_other_arguments_share_a_program():
    for function, makes in ((lambda x, config: x * config.count, Config), (lambda x, f: f(x), make), (lambda x, f: f(1) * x, lambda: P),
                            (lambda x, items: x * len(items), lambda: [[1.0], [1.0]])):
        compiled = captured(function)
        for _ in range(3):
            same(compiled(X, makes()), function(X, makes()))
        assert compiled.cache_info()[:2] == (2, 1)


def test_a_program_keeps_no_argument():
    compiled, config = captured(lambda x, config: x * config.count * CONFIG.count), Config()
    compiled(X, config)
    reference = weakref.ref(config)
    del config
    assert reference() is None


# ----- Copies of arguments, which the package makes -----
@dataclasses.dataclass
class Group:
    rate: float
    betas: tuple = (0.9, 0.999)      # one object for all instances


def of_groups(x, a, b):
    return x - a.rate * a.betas[0] - b.rate * b.betas[1]


BETAS = (0.9, 0.999)


@pytest.mark.parametrize("function, makes", [
    (of_groups, lambda rate: (Group(rate), Group(rate))), (of_groups, lambda rate: (Group(rate),) * 2),
    (lambda x, groups: sum(x * group["rate"] * group["betas"][0] for group in groups), lambda rate: (
        [{"rate": rate, "betas": BETAS}, {"rate": rate, "betas": BETAS}],)),
    (lambda x, bounds, rate: x.clamp(*bounds[0]).clamp(*bounds[1]) * rate, lambda rate: ([(-1.0, 1.0)] * 2, rate)),
    (lambda x, f, g: f(x) + g(x), lambda rate: (lambda y: y * rate,) * 2)], ids=["default", "one group", "dicts", "bounds", "functions"])
def test_floats_in_an_object_that_is_there_twice_are_inputs(function, makes):
    compiled = captured(function)
    for k in range(20):
        arguments = makes(0.1 / (k + 1))
        same(compiled(X, *arguments), function(X, *arguments))
    assert compiled.cache_info()[:2] == (18, 2)


WEIGHTS = {"w": np.ones(2, np.float32), "n": 1}


def weights_changed(x, weights):
    WEIGHTS["n"] = 5
    try:
        return x * cg.tensor(weights["w"]) * weights["n"]
    finally:
        WEIGHTS["n"] = 1


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("function", [lambda x, weights: x * cg.tensor(weights["w"]) * (2 if weights is WEIGHTS else 3), weights_changed])
def test_containers_of_arrays_that_code_can_name(function):
    compiled = cg.compile(function)
    for k in range(2):
        for weights in ({"w": np.ones(2, np.float32), "n": 1}, WEIGHTS) * 2:
            same(compiled(X + k, weights), function(X + k, weights))


def by_identity(x, a, b):
    return x * x * a["w"] * (2 if a is b else 3), x * x * x * a["w"]


def by_a_change(x, a, b):
    a["n"] = 5
    try:
        return x * x * b["w"] * b["n"], x * x * x * b["w"]
    finally:
        a["n"] = 1


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("function", [by_identity, by_a_change])
def test_a_function_runs_again_with_an_argument_twice_whose_tensor_is_another_one(function, create_graph):
    """Of some results only, or with a history."""
    compiled = captured(function)
    for k in range(3):
        gradients = []
        for call in (compiled, function):
            values, x = {"w": X + 1, "n": 1}, (X + k).requires_grad_()
            first, second = call(x, values, values)
            values["w"] = X * 7
            gradients += cg.autograd.grad(first.sum() + (second.sum() if create_graph else 0), x, create_graph=create_graph)
        same(*gradients)


def of_group(x, group):
    return (x * x * x * group.rate * group.betas[0]).sum(), (x * x * group.betas[1]).sum()


WINDOWS = np.ones(2, np.float32), np.full(2, 3.0, np.float32)


def windowed(x, rate, windows=WINDOWS):
    return (x * x * x * cg.tensor(windows[0]) * rate).sum(), (x * x * cg.tensor(windows[1])).sum()


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("function, makes", [(of_group, lambda rate: (Group(rate),)), (windowed, lambda rate: (rate, WINDOWS))])
def test_a_function_runs_again_with_a_tuple_that_code_can_name(function, makes, create_graph):
    compiled = captured(function)
    for k in range(5):
        gradients = []
        for call in (compiled, function):
            x = (X + k).requires_grad_()
            first, second = call(x, *makes(0.1 * k + 0.1))
            gradients += cg.autograd.grad(first + second if create_graph else first, x, create_graph=create_graph)
        same(*gradients)


@pytest.mark.parametrize("count", [7, 8, 9, 10])
def test_functions_that_lead_to_many(count):
    def layer(function, weight):
        return lambda x: function(x) * weight

    model = make()
    for k in range(count):
        model = layer(model, X * 0.1 + 1 + k)
    compiled = cg.compile(lambda model, x: model(x) * x)
    for k in range(3):
        x = (X + k).requires_grad_()
        ours, theirs = (cg.autograd.grad(call(model, x).sum(), x, create_graph=True)[0]
                        for call in (compiled, lambda model, x: model(x) * x))
        same(ours, theirs)


# ----- Loops -----
@pytest.mark.parametrize("factor", [lambda function: 2 if function is F else 3, lambda function: {F: 2.0}.get(function, 3.0)])
def test_gradients_of_steps_that_distinguish_functions(factor):
    def outcome(function, loop):
        x = X.double().requires_grad_()
        y = loop(lambda carry, _: (function(carry) * 0.1 + x * x * factor(function), None), x)
        return cg.autograd.grad(y.sum(), x, create_graph=True)[0]

    def by_python(step, carry, count=70):
        for _ in range(count):
            carry, _ = step(carry, None)
        return carry

    for function in (F, make()):
        expected = outcome(function, by_python)
        assert outcome(function, lambda step, x: cg.func.scan(step, x, length=70)[0]).allclose(expected)
        looped = cg.compile(lambda function: outcome(function, lambda step, x: cg.func.scan(step, x, length=600)[0]))
        for _ in range(2):
            assert looped(function).allclose(outcome(function, functools.partial(by_python, count=600)))


def by_config(carry, _):
    return (carry[0] * 0.5 + (2 if carry[1] is CONFIG else 3), carry[1]), None


def by_changed_config(carry, _):
    with changed(CONFIG, 3):
        return (carry[0] * 0.5 + carry[1].count, carry[1]), None


@pytest.mark.parametrize("step", [by_config, by_changed_config])
def test_an_object_in_the_carry_that_code_can_name(step):
    for config in (CONFIG, Config()):
        expected = (X, config)
        for _ in range(70):
            expected, _ = step(expected, None)
        same(cg.func.scan(step, (X, config), length=70)[0][0], expected[0])


# ----- Caches, variables and items -----
@dataclasses.dataclass
class Rate:
    value: int = 1
    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other

    def scaled(self):
        return self.value


@functools.cache
def rate_of(key):
    return 2.0 * (key.value if isinstance(key, Rate) else key())


@pytest.mark.parametrize("lookup", [lambda rate: rate, lambda rate: rate.scaled], ids=["record", "method"])
def test_keys_of_a_cache(lookup):
    first, second = Rate(5), Rate(1)
    assert (rate_of(lookup(first)), rate_of(lookup(second))) == (10, 2)
    first.value = 1
    compiled = captured(lambda x, rate: x * rate_of(lookup(rate)))
    for rate, factor in ((first, 10), (first, 10), (second, 2), (second, 2), (first, 10)):
        same(compiled(X, rate), X * factor)


def closures():
    rate = 1

    @contextlib.contextmanager
    def scaled(other):
        nonlocal rate
        before, rate = rate, other
        yield
        rate = before

    return scaled, lambda x: x * rate


@pytest.mark.filterwarnings("ignore:compile")
def test_a_variable_that_an_argument_shares_with_a_function():
    (scaled, mine), (_, other) = closures(), closures()

    def function(x, times):
        with scaled(3):
            return times(x)

    compiled = cg.compile(function)
    for times in (other, other, mine, mine):
        same(compiled(X, times), function(X, times))


def renews_rows(x, values):
    values["rows"] = list(values["rows"])
    return x * len(values["rows"])


def exchanges(x, values):
    values["a"], values["b"] = values["b"], values["a"]
    return x * values["a"]["n"]


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("function, name, make", [(renews_rows, "rows", lambda: [1, 2]), (exchanges, "a", lambda: {"n": 1})])
def test_items_of_an_argument_that_are_replaced_by_their_like(function, name, make):
    compiled = cg.compile(function)
    for _ in range(3):
        values = {"rows": make(), "a": make(), "b": make()}
        before = values[name]
        compiled(X, values)
        assert values[name] is not before
