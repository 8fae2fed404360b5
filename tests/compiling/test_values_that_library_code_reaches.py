"""Values that code of Python's library, or code in C, reaches by a value outside: no code of the user names them."""

import argparse
import collections
import functools
import inspect
import sys
import types

import pytest

import cygrad as cg
from capturing import captured, same

X = cg.tensor([1.0, 2.0])


def check(function, change, *args):
    """Compare a captured function with the function, before and after a change."""
    compiled = captured(function)
    for k in range(4):
        if k == 2:
            change()
        same(compiled(X + k, *args), function(X + k, *args))
    assert compiled.cache_info()[:2] == (2, 2)


# ----- Modules that get names later -----
@pytest.fixture
def module(monkeypatch):
    module = types.ModuleType("layers_of_user")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.scale_a, module.first, module.second = 0.5, lambda x: x * 2, lambda x: x + 1
    return module


def call_all(module, x):
    for function in list(vars(module).values()):
        x = function(x) if callable(function) else x
    return x


def reordered(module):
    module.second, module.first = module.__dict__.pop("second"), module.__dict__.pop("first")


@pytest.mark.parametrize("use, change", [
    (lambda module, x: x * sum(getattr(module, name) for name in dir(module) if name.startswith("scale_")),
     lambda module: setattr(module, "scale_b", 0.25)),
    (lambda module, x: x * getattr(module, "_".join(("rate", "b")), 1.0), lambda module: setattr(module, "rate_b", 9.0)),
    (lambda module, x: x * vars(module).get("_".join(("rate", "b")), 1.0), lambda module: setattr(module, "rate_b", 9.0)),
    (call_all, reordered)], ids=["dir", "getattr", "vars", "order"])
def test_names_that_a_module_gets_later(module, use, change):
    check(lambda x: use(module, x), lambda: change(module))


def test_names_that_a_loop_finds_later(module):
    def step(x, _):
        return x * sum(getattr(module, name) for name in dir(module) if name.startswith("scale_")) + 1, None

    for _ in range(2):
        expected = X
        for _ in range(70):
            expected, _ = step(expected, None)
        same(cg.func.scan(step, X, length=70)[0], expected)
        module.scale_b = 0.25


@pytest.mark.parametrize("make", [lambda look_up: look_up, lambda look_up: functools.partial(look_up)], ids=["closure", "partial object"])
def test_functions_that_give_the_names_of_a_module(module, make):
    rates = {"rate": 2.0}

    def look_up(name):
        if name in rates:
            return rates[name]
        raise AttributeError(name)

    module.__getattr__ = make(look_up)
    check(lambda x: x * module.rate, lambda: rates.update(rate=5.0))


# ----- Attributes that library code reads -----
class Model:
    rate = 1.0


NAMES = ["rate", "dropout"]


@pytest.mark.parametrize("use", [
    lambda args, x: x * sum(name in args for name in NAMES), lambda args, x: x * (2.0 if args == argparse.Namespace(rate=1.0) else 3.0),
    lambda args, x: x * len(repr(args)),
    lambda args, x: x * sum(value for _, value in inspect.getmembers(args) if isinstance(value, float))],
    ids=["in", "==", "repr", "getmembers"])
def test_attributes_that_come_later(use):
    args = argparse.Namespace(rate=1.0)
    check(lambda x: use(args, x), lambda: setattr(args, "dropout", 0.5))


# ----- Containers that are iterated otherwise -----
class Public(dict):
    def __iter__(self):
        return (key for key in dict.keys(self) if not key.startswith("_"))


class OfValues(dict):
    def __iter__(self):
        return iter(self.values())


class Buffer(list):
    count = 1

    def __len__(self):
        return self.count


class Hidden(collections.OrderedDict):
    def __iter__(self):
        return (key for key in super().__iter__() if key != "_b")


@pytest.mark.parametrize("container, key, use", [
    (Public(a=1.0, _b=2.0), "_b", lambda values, x: x * values["_b"]), (OfValues(a=1.0, b=2.0), "b", lambda values, x: x * sum(values)),
    (Buffer([1.0, 2.0]), 1, lambda values, x: x * values[1]), (Hidden(a=1.0, _b=2.0), "_b", lambda values, x: x * values["_b"])],
    ids=["keys", "values", "length", "ordered"])
def test_items_that_iteration_does_not_show(container, key, use):
    check(lambda x: use(container, x), lambda: container.__setitem__(key, 5.0))


# ----- Functions that C code has -----
@pytest.mark.parametrize("use", [lambda rates, x: x * rates.copy()["b"], lambda rates, x: x * rates.default_factory()])
def test_factories_of_missing_items(use):
    rates = collections.defaultdict(lambda: 2.0)
    check(lambda x: use(rates, x), lambda: setattr(rates, "default_factory", lambda: 5.0))


def test_functions_that_compare_keys():
    sign = [1.0]

    def compare(a, b):
        return sign[0] * (a - b)

    key = functools.cmp_to_key(compare)
    check(lambda x: x * sorted([2.0, 5.0], key=key)[0], lambda: sign.__setitem__(0, -1.0))


# ----- One code in two modules, names in an argument -----
def test_one_code_in_two_namespaces():
    code, first, second = compile("rate = 2.0\ndef times(x): return x * rate\n", "model.py", "exec"), {}, {}
    exec(code, first)
    exec(code, second)
    one, other = first["times"], second["times"]
    check(lambda x: one(x) + other(x), lambda: second.update(rate=5.0))


def test_names_in_a_format_that_is_an_argument():
    model = Model()
    check(lambda x, text: x * float(text.format(model)), lambda: setattr(model, "rate", 5.0), "{.rate}")
