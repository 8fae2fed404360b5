"""Classes that change after a function is captured: registered ones, and names that they get later."""

import abc
import copy
import dataclasses
import functools
import numbers
import pickle
import types
import typing
import weakref

import pytest

import cygrad as cg
from capturing import X, captured, same

Abstract = abc.ABCMeta("Abstract", (), {})


@typing.runtime_checkable
class Rated(typing.Protocol):
    def rate(self): ...


def by_pattern(value):
    match value:
        case Abstract():
            return True
    return False


# Questions about an object of a class, and a change of the class after which the answer is another one.
OF_CLASSES = {
    "registered": (lambda value: isinstance(value, Abstract), Abstract.register),
    "registered in a class of a library": (lambda value: isinstance(value, numbers.Number), numbers.Number.register),
    "registered, by a pattern": (by_pattern, Abstract.register),
    "protocol": (lambda value: isinstance(value, Rated), lambda kind: setattr(kind, "rate", len)),
    "true": (bool, lambda kind: setattr(kind, "__bool__", lambda self: False)),
    "made": (lambda value: hasattr(type(value)(), "rate"), lambda kind: setattr(kind, "__init__", lambda self: setattr(self, "rate", 1))),
    "callable": (callable, lambda kind: setattr(kind, "__call__", lambda self: None)),
}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_classes_that_change_later(name):
    ask, change = OF_CLASSES[name]
    kind = type("Kind", (), {})
    value = kind()
    compiled = captured(lambda x: x * 2 if ask(value) else x * 3)
    results = [compiled(X) for _ in range(3)]
    change(kind)
    results += [compiled(X) for _ in range(3)]
    assert len({tuple(result.tolist()) for result in results[:3]}) == len({tuple(result.tolist()) for result in results[3:]}) == 1
    assert not cg.equal(results[0], results[3]) and compiled.cache_info().hits == 4


def test_an_attribute_of_tensors_that_is_set_later(monkeypatch):
    compiled = captured(lambda x: x * 2 if hasattr(x, "set_outside") else x * 3)
    same(compiled(X), X * 3)
    monkeypatch.setattr(cg.Tensor, "set_outside", None, raising=False)
    same(compiled(X), X * 2)


def test_the_places_in_a_pattern_of_a_class():
    class Point:
        __match_args__ = ("a", "b")

        def __init__(self):
            self.a, self.b = 2.0, 5.0

    point = Point()

    def function(x):
        match point:
            case Point(value):
                return x * value

    compiled = captured(function)
    for names, expected in ((("a", "b"), 2.0), (("b", "a"), 5.0), (("a", "b"), 2.0)):
        Point.__match_args__ = names
        for _ in range(3):
            assert compiled(cg.ones(1)).tolist() == [expected]


def test_a_setter_of_a_property():
    scale = 2.0

    class Holder:
        @property
        def rate(self):
            return self.stored

        @rate.setter
        def rate(self, value):
            self.stored = value * scale

    def function(x):
        holder = Holder()
        holder.rate = x
        return holder.rate

    compiled = captured(function)
    for scale in (2.0, 5.0, 2.0):       # noqa: B007, PLR1704
        assert [compiled(cg.ones(1)).item() for _ in range(2)] == [scale] * 2


@pytest.mark.parametrize("make", [lambda: types.new_class("Rate"), lambda: abc.ABCMeta("Rate", (), {}),
                                  lambda: dataclasses.make_dataclass("Rate", [])])
def test_classes_that_a_library_makes_for_the_user(make):
    kind = make()
    value = kind()
    compiled = captured(lambda x: x * 2 if value else x * 3)
    assert [compiled(cg.ones(1)).item() for _ in range(2)] == [2.0] * 2
    kind.__bool__ = lambda self: False
    assert [compiled(cg.ones(1)).item() for _ in range(2)] == [3.0] * 2


class Scale:
    def __call__(self, x):
        return x * 2


class Layer:
    rate = 3.0
    scaled = cg.compile(Scale())
    partial = cg.compile(functools.partial(Scale()))

    @cg.compile
    def step(self, x):
        """Return a product."""
        return x * self.rate

    @cg.compile
    @staticmethod
    def fixed(x):
        return x * 4


def test_compiled_attributes_of_classes_are_bound_as_pythons_are():
    layer, other, x = Layer(), Layer(), cg.ones(1)
    assert [layer.scaled(x).item(), layer.partial(x).item(), layer.fixed(x).item(), Layer.fixed(x).item()] == [2.0, 2.0, 4.0, 4.0]
    other.rate = 5.0
    assert [each.step(x).item() for each in (layer, other) * 3] == [3.0, 5.0] * 3
    assert layer.step == layer.step != other.step and layer.step.__self__ is layer and {layer.step: 1}[layer.step]
    assert layer.step.__name__ == "step" and layer.step.__doc__ == "Return a product." and weakref.WeakMethod(layer.step)() == layer.step
    assert layer.step.cache_info().hits == 4


def double(x):
    return x * 2


under_another_name = cg.compile(double)


@pytest.mark.parametrize("compiled", [under_another_name, Layer.fixed, Layer.step, cg.compile(double, dynamic=True), cg.compile(Scale())],
                         ids=["another name", "static", "a method", "dynamic", "an object"])
def test_compiled_functions_are_pickled_and_copied(compiled):
    arguments = (Layer(), cg.ones(1)) if compiled is Layer.step else (cg.ones(1),)
    for other in (pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled), copy.copy(compiled)):
        assert other(*arguments).item() == compiled(*arguments).item()
