"""Steps that run once more for the program of a loop: values of Python that they change are put back."""

import array
import collections
import dataclasses
import datetime
import decimal
import functools
import json
import math
import random
import statistics
import zlib

import numpy as np
import pytest

import cygrad as cg
from capturing import same
from cygrad.func import fori_loop, jvp, scan, vmap, while_loop
from cygrad.func.control import FIRST_IN_LEVELS, FIRST_STEPS, LOOPED_FROM
from cygrad.pytree import tree_flatten

COUNT = LOOPED_FROM + 9


class Slots:
    __slots__ = ("value",)


class Counted:
    total = 0


TOTAL = 0


def count_global():
    global TOTAL
    TOTAL += 1


def rebind_tensor(state):
    state["tensor"] = state["tensor"] + 1


def rebind_array(state):
    state["array"] = state["array"] + 1


def to_the_end(values, key):
    values[key] = values.pop(key)


def of_closure():
    count = 0

    def change():
        nonlocal count
        count += 1

    return change, lambda: count


def of_generator():
    numbers = iter(range(100))
    return lambda: next(numbers), lambda: numbers.__length_hint__()


def of(value, change, seen=repr):
    """Return a change of a value, and a function that shows the value."""
    return functools.partial(change, value), functools.partial(seen, value)


def slots_of(value):
    slots = Slots()
    slots.value = value
    return slots


def made_again():
    Counted.total, Counted.added = 0, None
    del Counted.added
    return Counted


def of_cache():
    @functools.lru_cache(maxsize=3)
    def doubled(k):
        return 2 * k

    for k in range(3):
        doubled(k)
    return lambda: doubled(3), lambda: (doubled.cache_info().currsize, [doubled(k) for k in range(9)])


class Bounded(list):
    def clear(self):
        raise TypeError


class Window(collections.deque):
    def extend(self, values):
        raise TypeError


# Makers of a change that a step makes, and of a function that shows the value.
CHANGES = {
    "an item of a list": lambda: of([0], lambda items: items.__setitem__(0, items[0] + 1)),
    "a longer list": lambda: of([0], lambda items: items.append(1)),
    "a shorter list": lambda: of([*range(99)], lambda items: items.pop(0)),
    "a deque": lambda: of(collections.deque([0, 1, 2]), lambda items: items.rotate(1)),
    "a shorter deque": lambda: of(collections.deque(range(99)), lambda items: items.popleft()),
    "an item of a dict": lambda: of({"a": 0}, lambda items: items.update(a=items["a"] + 1)),
    "a longer dict": lambda: of({"a": 0}, lambda items: items.update({len(items): 1})),
    "an order": lambda: of({"a": 0, "b": 1}, lambda items: to_the_end(items, next(iter(items)))),
    "an ordered dict": lambda: of(collections.OrderedDict(a=0, b=1), lambda items: items.move_to_end(next(iter(items)))),
    "a set": lambda: of(set(), lambda items: items.add(len(items))),
    "an attribute": lambda: of(Counted(), lambda value: setattr(value, "n", getattr(value, "n", 0) + 1), vars),
    "a slot": lambda: of(slots_of(0), lambda slots: setattr(slots, "value", slots.value + 1), lambda slots: slots.value),
    "an attribute of a class": lambda: of(made_again(), lambda kind: setattr(kind, "total", kind.total + 1), lambda kind: kind.total),
    "a new attribute of a class": lambda: of(made_again(), lambda kind: setattr(kind, "added", getattr(kind, "added", 0) + 1),
                                             lambda kind: getattr(kind, "added", 0)),
    "bytes": lambda: of(bytearray(1), lambda values: values.__setitem__(0, values[0] + 1)),
    "an array": lambda: of(np.zeros(2), lambda values: values.__iadd__(1)),
    "a longer array": lambda: of(array.array("d", [0.0]), lambda values: values.append(0.5)),
    "a longer array by bytecode": lambda: of([array.array("d", [0.0])], lambda values: values.__setitem__(0, values[0] * 2)),
    "more bytes": lambda: of([bytearray(2)], lambda values: values.__setitem__(0, values[0] * 2)),
    "a larger array": lambda: of(np.zeros(2), lambda values: values.resize(3, refcheck=False)),
    "a flag of an array": lambda: of(np.zeros(2), lambda values: values.setflags(write=False), lambda values: values.flags.writeable),
    "a form of an array": lambda: of(np.arange(6.0).reshape(2, 3), lambda values: setattr(values, "shape", values.shape[::-1])),
    "a stream": lambda: of(zlib.compressobj(), lambda stream: stream.compress(b"abc" * 9999), lambda stream: len(stream.flush())),
    "a masked array": lambda: of(np.ma.array([1.0, 2.0], mask=[0, 1]), lambda values: values.data.__iadd__(1), lambda value: [*value.data]),
    "a stack of tensors": lambda: of([cg.full((2,), float(k)) for k in range(9)], lambda items: items.pop()),
    "a queue of tensors": lambda: of(collections.deque(cg.full((2,), float(k)) for k in range(9)), lambda items: items.popleft()),
    "an element of a set": lambda: of(set(range(0, 4096, 512)), lambda items: items.pop(), lambda items: [items.pop() for _ in range(3)]),
    "a list without clear": lambda: of(Bounded([0]), lambda items: items.append(1)),
    "a deque without extend": lambda: of(Window([0]), lambda items: items.append(1)),
    "a cache": of_cache,
    "another array": lambda: of({"array": np.zeros(2)}, rebind_array),
    "another tensor": lambda: of({"tensor": cg.zeros(2)}, rebind_tensor),
    "a variable of a function": of_closure,
    "a global": lambda: (count_global, lambda: TOTAL),
    "an iterator": of_generator,
    "a random generator": lambda: of(random.Random(1), lambda generator: generator.random(), lambda generator: generator.getstate()),
    "a random generator of NumPy's": lambda: of(np.random.default_rng(1), lambda generator: generator.random(),
                                                lambda generator: repr(generator.bit_generator.state)),
}


def by_python(body, x):
    for i in range(COUNT):
        x = body(i, x)
    return x


LOOPS = {
    "fori_loop": lambda body, x: fori_loop(0, COUNT, body, x),
    "scan": lambda body, x: scan(lambda carry, i: (body(i, carry), None), x, cg.arange(COUNT, dtype=cg.float64))[0],
    "while_loop": lambda body, x: while_loop(lambda carry: carry[1] < COUNT, lambda carry: (body(carry[1], carry[0]), carry[1] + 1),
                                             (x, cg.zeros((), dtype=cg.float64)))[0]}
CALLS = {"compile": lambda function, x: cg.compile(function)(x), "vmap": lambda function, x: vmap(function, randomness="different")(x),
         "jvp": lambda function, x: jvp(function, (x,), (x,))[0]}


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("call, loop, number", [("compile", loop, FIRST_STEPS) for loop in LOOPS]
                         + [(call, "fori_loop", FIRST_IN_LEVELS) for call in ("vmap", "jvp")])
@pytest.mark.parametrize("name", CHANGES)
def test_a_value_that_the_step_after_the_first_ones_changes(name, call, loop, number):
    global TOTAL
    outcomes = []
    for run in (by_python, LOOPS[loop]):
        TOTAL = 0
        change, seen = CHANGES[name]()

        def body(i, x, change=change):
            if i == number:
                change()
            return x * 0.99 + 0.01

        result = CALLS[call](lambda x, run=run, body=body: run(body, x), cg.ones(2, dtype=cg.float64))
        outcomes.append((result, seen()))
    (expected, before), (result, after) = outcomes
    same(result, expected)
    assert after == before


@dataclasses.dataclass
class State:
    x: object
    n: object


def in_dict(state, u):
    state["x"] = state["x"] + u
    state["n"] = state["n"] + 1
    return state, None


def in_list(state, u):
    state[0][0] = state[0][0] + u
    return state, None


def in_record(state, u):
    state.x, state.n = state.x + u, state.n + 1
    return state, None


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("step, make", [(in_dict, lambda x: {"x": x, "n": x * 0}), (in_list, lambda x: ([x],)),
                                        (in_record, lambda x: State(x, x * 0))], ids=["dict", "list", "dataclass"])
def test_a_carry_that_a_step_changes_in_place(step, make):
    def outcome(x, run):
        return cg.stack(tree_flatten(run(step, make(x)))[0])

    def plainly(step, state):
        for _ in range(COUNT):
            state, _ = step(state, cg.ones((), dtype=cg.float64))
        return state

    x = cg.zeros((), dtype=cg.float64)
    for run in (plainly, lambda step, state: scan(step, state, cg.ones(COUNT, dtype=cg.float64))[0]):
        same(cg.compile(lambda x, run=run: outcome(x, run))(x), outcome(x, plainly))


@pytest.mark.filterwarnings("ignore:compile")
def test_a_grad_mode_that_a_step_leaves_changed():
    def step(x, _):
        cg.set_grad_enabled(not cg.is_grad_enabled())
        return x + 1, None

    cg.compile(lambda x: scan(step, x, length=2 * LOOPED_FROM)[0])(cg.ones(1))
    assert cg.is_grad_enabled()


@pytest.mark.parametrize("count", [63, 64, COUNT])
@pytest.mark.parametrize("number_of", [
    lambda i: float(np.random.default_rng(i).normal()), lambda i: len(json.dumps({"step": i})), lambda i: len(json.dumps({i: 1}, indent=2)),
    lambda i: datetime.timedelta(i).days, lambda i: float(decimal.Decimal(i)), lambda i: math.ldexp(1.0, -i),
    lambda i: collections.deque(range(5), maxlen=i)[0] if i else 0, lambda i: statistics.mean([i, i + 1]),
    lambda i: 1.0 if type(i) is int else 2.0], ids=["seed", "json", "key", "timedelta", "Decimal", "ldexp", "deque", "mean", "type"])
def test_bodies_that_need_an_int(number_of, count):
    def body(i, x):
        return x + number_of(i)

    expected = x = cg.ones(2, dtype=cg.float64)
    for i in range(count):
        expected = body(i, expected)
    for _ in range(4):
        same(fori_loop(0, count, body, x), expected)
        if count == COUNT:
            same(cg.compile(lambda x: fori_loop(0, count, body, x))(x), expected)


def in_ordered_dict(state, u):
    state.move_to_end(next(iter(state)))
    key = next(iter(state))
    state[key] = state[key] * 0.9 + u
    return state, None


def in_record_with_more(state, u):
    state.x = state.x * 0.9 + u
    state.calls = getattr(state, "calls", 0) + 1
    return state, None


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("step, make", [(in_ordered_dict, lambda x: collections.OrderedDict(a=x, b=x * 2)),
                                        (in_record_with_more, lambda x: State(x, x))], ids=["order", "attribute"])
def test_a_carry_with_a_state(step, make):
    def by_loop(x):
        return fori_loop(0, COUNT, lambda i, state: step(state, i)[0], make(x))

    x = cg.ones(2, dtype=cg.float64)
    expected = make(x)
    for i in range(COUNT):
        expected, _ = step(expected, i)
    for _ in range(2):
        for result in (by_loop(x), cg.compile(by_loop)(x)):
            assert result.keys() == expected.keys() if isinstance(result, dict) else vars(result).keys() == vars(expected).keys()
            for ours, theirs in zip(*(vars(each).values() if isinstance(each, State) else each.values() for each in (result, expected)),
                                    strict=True):
                assert ours.equal(theirs) if isinstance(ours, cg.Tensor) else ours == theirs


def test_an_exception_that_ends_the_program():
    log = []

    def body(i, x):
        log.append(1)
        if i == FIRST_STEPS:
            raise SystemExit
        return x

    with pytest.raises(SystemExit):
        fori_loop(0, 100, body, cg.ones(1))
    assert len(log) == FIRST_STEPS + 1


kind_of = type


def test_another_name_for_type():
    for _ in range(3):
        same(fori_loop(0, 64, lambda i, x: x * 0.5 + (1.0 if kind_of(i) is int else 2.0), cg.zeros(1)),
             functools.reduce(lambda x, _: x * 0.5 + 1.0, range(64), cg.zeros(1)))


def test_a_body_keeps_ints():
    log = []
    fori_loop(0, 100, lambda i, x: (log.append(i), x)[1], cg.ones(1))
    assert log == [*range(100)] and {*map(type, log)} == {int}
