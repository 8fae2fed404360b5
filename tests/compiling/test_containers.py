"""Containers among the arguments of captured functions and in their results: all of `cygrad.pytree`, dataclasses included."""

import dataclasses
import enum
import functools
from collections import OrderedDict, defaultdict
from typing import NamedTuple

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured, refusal, same
from cygrad.pytree import tree_flatten


@dataclasses.dataclass
class State:
    y: cg.Tensor
    time: float = 1.0
    name: str = "a"

    def energy(self):
        return (self.y * self.y).sum() + self.time


@dataclasses.dataclass(frozen=True)
class Pair:
    first: cg.Tensor
    state: State


@dataclasses.dataclass
class Model:
    weight: cg.Tensor
    calls: int = 0

    @cg.compile
    def loss(self, x):
        return (self.weight * x).sum()


@dataclasses.dataclass(slots=True)
class Slots:
    y: cg.Tensor


@dataclasses.dataclass
class WithSlot:
    __slots__ = ("__dict__", "hidden")
    y: cg.Tensor


def same_trees(ours, theirs):
    (ours, our_spec), (theirs, their_spec) = tree_flatten(ours), tree_flatten(theirs)
    assert our_spec == their_spec
    for a, b in zip(ours, theirs, strict=True):
        same(a, b) if isinstance(a, cg.Tensor) else pytest.fail("differ") if (type(a), a) != (type(b), b) else None


@dataclasses.dataclass
class Listed:
    y: cg.Tensor
    parts: list = dataclasses.field(default_factory=list)


class Mode(enum.Enum):
    FAST = 1


MODE = Mode.FAST


# A function, its arguments for a number, and how often it is captured for the numbers 0 to 5.
FUNCTIONS = {
    "new": (lambda state: State(state.y * 2, 3.0, state.name), lambda k: State(X + k), 1),
    "replace": (lambda state: dataclasses.replace(state, y=state.y.sin()), lambda k: State(X + k), 1),
    "fields": (lambda state: [value * 2 for value in dataclasses.asdict(state).values() if isinstance(value, cg.Tensor)],
               lambda k: State(X + k), 1),
    "method": (State.energy, lambda k: State(X + k), 1),
    "float": (State.energy, lambda k: State(X + k, 0.1 * k), 2),
    "string": (lambda state: state.y * len(state.name), lambda k: State(X, 1.0, "a" * (k // 2 + 1)), 3),
    "nested": (lambda pair: Pair(pair.first * 2, State(pair.state.y * pair.first)), lambda k: Pair(X, State(X + k)), 1),
    "in place": (lambda state: state.y.mul_(2) + 1, lambda k: State(X + k), 1),
    "ordered dict": (lambda table: OrderedDict(b=table["a"] * 2, a=1), lambda k: OrderedDict(a=X + k), 1),
    "dict with a factory": (lambda table: defaultdict(list, a=table["a"] * 2), lambda k: defaultdict(list, a=X + k), 1),
    "default factory": (lambda state: Listed(state.y * 2), lambda k: Listed(X + k, [k]), 6),
    "identity of others": (lambda state: state.y * 2 if type(state) is State and MODE is Mode.FAST and state.name is not None else state.y,
                           lambda k: State(X + k), 1),
    "in a list": (lambda states: [State(state.y * 2) for state in states], lambda k: [State(X), State(X + k)], 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_containers_are_taken_apart_and_made_anew(name):
    function, arguments, captures = FUNCTIONS[name]
    compiled = captured(function)
    for k in range(6):
        same_trees(compiled(arguments(k)), function(arguments(k)))
    assert compiled.cache_info().misses == captures


def test_a_container_among_the_arguments_is_a_global_value_as_well():
    outside = State(X + 1)
    compiled = captured(lambda state: state.y * outside.y)
    for state in (outside, State(X), State(X + 2), outside, State(X + 3)):
        same(compiled(state), state.y * outside.y)


def test_methods_of_a_container_are_guarded(monkeypatch):
    compiled = captured(lambda state: state.energy())
    for _ in range(2):
        same(compiled(State(X)), (X * X).sum() + 1)
    monkeypatch.setattr(State, "energy", lambda self: self.y.sum() * 5)
    same(compiled(State(X)), X.sum() * 5)


def test_attributes_besides_the_fields():
    state = State(X)
    state.factor = 2.0
    compiled = captured(lambda state: state.y * getattr(state, "factor", 1.0))
    for each in (state, State(X), state):
        same(compiled(each), each.y * getattr(each, "factor", 1.0))


def test_an_object_with_compiled_methods_is_no_container():
    model = Model(X)
    for calls in range(20):
        model.calls, model.weight = calls, model.weight + 1
        same(model.loss(X), (model.weight * X).sum())
    assert Model.loss.cache_info().misses == 1


def test_gradients_of_results_in_containers():
    compiled = captured(lambda state: State(state.y ** 2 * state.time))
    y = X.clone().requires_grad_()
    for time in (1.0, 2.0, 3.0):
        gradient, = cg.autograd.grad(compiled(State(y, time)).y.sum(), y, create_graph=True)
        same(gradient, 2 * X * time)
        same(cg.autograd.grad(gradient.sum(), y)[0], cg.full_like(X, 2 * time))


@pytest.mark.parametrize("kind", [Slots, WithSlot])
def test_objects_with_slots_are_no_containers(kind):
    value = kind(X)
    compiled = captured(lambda value: value.y * 2)
    for _ in range(2):
        same(compiled(value), X * 2)
    value.y = X + 1
    same(compiled(value), (X + 1) * 2)


def changes_its_argument(state):
    state.time = 2.0
    return state.y * 2


def test_objects_that_are_refused():
    own = State(X)
    assert "changes an argument" in refusal(changes_its_argument, State(X))
    assert "returns a State from outside" in refusal(lambda state: state, State(X))
    assert "returns a Slots" in refusal(lambda state: Slots(state.y), State(X))
    assert "returns a WithSlot" in refusal(lambda state: WithSlot(state.y), State(X))
    assert "returns a defaultdict" in refusal(lambda x: defaultdict(lambda: x), X)
    own.name = own
    compiled = cg.compile(lambda state: state.y * 2)
    with pytest.warns(RuntimeWarning, match="nested too deep, or contains itself"):
        same(compiled(own), X * 2)


class WithMethods(NamedTuple):
    first: object
    second: object

    def twice(self):
        return self.first * 2

    @property
    def total(self):
        return self.first + self.second


def test_named_tuples_with_methods_have_one_program():
    compiled = captured(lambda pair: pair._replace(first=pair.twice() + pair.total))
    for k in range(4):
        same(compiled(WithMethods(X * k, X + k)).first, X * k * 2 + (X * k + (X + k)))
    assert tuple(compiled.cache_info()) == (3, 1, 0, 1)


def test_a_named_tuple_that_is_an_argument_and_a_global():
    compiled = captured(lambda pair: pair.twice() * NAMED.total)
    other = WithMethods(X * 7, X)
    for pair in (NAMED, other, NAMED, other):
        same(compiled(pair), pair.first * 2 * (X + X.sin()))


NAMED = WithMethods(X, X.sin())


def test_dynamic_functions_change_the_object_of_the_user():
    state = State(X, 0.5)
    with pytest.warns(RuntimeWarning, match="changes an argument"):
        cg.compile(changes_its_argument, dynamic=True)(state)
    assert state.time == 2.0


@pytest.mark.parametrize("container", [[0.5], {0: 0.5}, OrderedDict({0: 0.5})], ids=lambda value: type(value).__name__)
def test_dynamic_functions_change_the_container_of_the_user(container):
    def doubled(x, values):
        values[0] += 1.0
        return x * values[0]

    with pytest.warns(RuntimeWarning, match="changes an argument"):
        compiled = cg.compile(doubled, dynamic=True)
        results = [compiled(X, container) for _ in range(3)]
    assert container[0] == 3.5
    for k, result in enumerate(results):
        same(result, X * (1.5 + k))


def test_scalars_of_numpy_are_results():
    compiled = captured(lambda x: (x * 2, np.float32(0.5), np.bool_(True)))
    for k in range(2):
        result = compiled(X + k)
        same(result[0], (X + k) * 2)
        assert [*map(type, result[1:])] == [np.float32, np.bool_] and result[1:] == (0.5, True)


# ----- Partial functions -----
def slope(rate, y, shift):
    return rate * y.sin() + shift


def midpoint(f, y, step):
    return y + step * f(y + step / 2 * f(y))


def items_of_a_partial(f, y, step):
    return y * f.keywords["shift"] + f.args[0] * step


@pytest.mark.parametrize("function", [midpoint, items_of_a_partial])
def test_a_new_partial_function_of_the_same_kind_has_the_same_program(function):
    compiled, weight = captured(function), X.clone().requires_grad_()
    for k in range(4):
        outcomes = []
        for call in (compiled, function):
            result = call(functools.partial(slope, weight * (k + 1), shift=0.5), X + k, 0.1)
            outcomes.append((result.detach(), cg.autograd.grad(result.sum(), weight)[0]))
        for ours, theirs in zip(*outcomes, strict=True):
            same(ours, theirs)
    assert compiled.cache_info()[:2] == (3, 1)
    same(compiled(functools.partial(slope, X, shift=0.7), X, 0.1), function(functools.partial(slope, X, shift=0.7), X, 0.1))


def test_functions_and_objects_behind_partial_functions_are_guarded():
    state = State(X)
    compiled = captured(lambda f, y: f(y))
    for energy in (1.0, 2.0):
        state.time = energy
        for _ in range(2):
            same(compiled(functools.partial(lambda state, y: state.energy() * y, state), X), state.energy() * X)
    scaled = {"rate": 2.0}

    def times(y):
        return y * scaled["rate"]

    for rate in (2.0, 2.0, 3.0):
        scaled["rate"] = rate
        same(compiled(functools.partial(times), X), X * rate)


def changes_keywords(f, y):
    f.keywords["shift"] += 1
    return y * f.keywords["shift"]


@pytest.mark.parametrize("function, reason", [
    (changes_keywords, "changes an argument itself"), (lambda f, y: (y, f), "returns a partial"),
    (lambda f, y: f.__setstate__((slope, (), {}, None)) or y, "changes an argument itself")])
def test_refusals_of_partial_functions(function, reason):
    assert reason in refusal(function, functools.partial(slope, shift=1), X)
