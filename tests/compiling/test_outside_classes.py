"""Classes that change after a function is captured: registered ones, and names that they get later."""

import abc
import numbers
import typing

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
