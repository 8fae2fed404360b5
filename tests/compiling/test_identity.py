"""Arguments of one kind that code distinguishes: by `is`, in tables, and where one is changed for a while and another one is read."""

import contextlib
import copy
import dataclasses
import functools
import operator
import weakref
from collections import namedtuple

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
