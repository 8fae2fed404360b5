"""Values outside of a captured function that its code can name, and functions that no program repeats."""

import dataclasses
import functools
import random
import time
import types

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured, refusal, same

SCALE, TABLE, WEIGHT, ARRAY = 2.0, {"rate": [1.0, 2.0]}, X.clone(), np.array([2.0])


@dataclasses.dataclass
class Settings:
    rate: float = 2.0


class Slotted:
    __slots__ = ("rate",)

    def __init__(self):
        self.rate = 2.0


SETTINGS, SLOTTED, MODULE = Settings(), Slotted(), types.ModuleType("user_module")
MODULE.rate, MODULE.settings = 2.0, Settings()


def helper(x, factor=2.0):
    return x * factor


def scaled_by_helper(x):
    return helper(x)


def by_alias(x):
    settings = MODULE.settings
    return x * settings.rate


class Property:
    def __init__(self):
        self.inner = Settings()

    @property
    def rate(self):
        return self.inner.rate


PROPERTY, FUNCTION = Property(), lambda x: x * 2.0


def with_attribute(x):
    return x * with_attribute.rate


with_attribute.rate = 2.0


def closure():
    rate = 2.0

    def scaled(x):
        return x * rate

    def change(value):
        nonlocal rate
        rate = value

    return scaled, change


CHANGES = {
    "global": (lambda x: x * SCALE, lambda value: globals().__setitem__("SCALE", value)),
    "list in a dict": (lambda x: x * TABLE["rate"][1], lambda value: TABLE["rate"].__setitem__(1, value)),
    "attribute": (lambda x: x * SETTINGS.rate, lambda value: setattr(SETTINGS, "rate", value)),
    "slot": (lambda x: x * SLOTTED.rate, lambda value: setattr(SLOTTED, "rate", value)),
    "module": (lambda x: x * MODULE.rate, lambda value: setattr(MODULE, "rate", value)),
    "attribute of a local name": (by_alias, lambda value: setattr(MODULE.settings, "rate", value)),
    "default of a helper": (scaled_by_helper, lambda value: setattr(helper, "__defaults__", (value,))),
    "property": (lambda x: x * PROPERTY.rate, lambda value: setattr(PROPERTY.inner, "rate", value)),
    "function": (lambda x: FUNCTION(x), lambda value: globals().__setitem__("FUNCTION", lambda x: x * value)),
    "attribute of a function": (with_attribute, lambda value: setattr(with_attribute, "rate", value)),
    "cell": closure(),
    "array": (lambda x: x * ARRAY[0], lambda value: ARRAY.__setitem__(0, value)),
    "tensor in place": (lambda x: x * WEIGHT, lambda value: WEIGHT.fill_(value)),
    "tensor": (lambda x: x * WEIGHT, lambda value: globals().__setitem__("WEIGHT", cg.full((3,), value, dtype=cg.float64))),
    "tensor of another kind": (lambda x: x * WEIGHT, lambda value: globals().__setitem__("WEIGHT", cg.tensor(value))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_values_that_code_names_are_guarded(name):
    function, change = CHANGES[name]
    compiled = captured(function)
    for value in (2.0, 5.0, 2.0, 7.0):
        change(value)
        for _ in range(2):
            same(compiled(X), function(X))
    change(2.0)


def test_a_method_that_is_replaced_on_the_instance():
    class Model:
        def step(self, x):
            return x + 1

    model = Model()
    compiled = captured(lambda x: model.step(x))
    assert compiled(X).tolist() == compiled(X).tolist() == [2, -1, 4]
    model.step = lambda x: x * 0
    assert compiled(X).tolist() == [0, 0, 0]
    del model.step
    assert compiled(X).tolist() == [2, -1, 4]


def test_partial_functions():
    settings = Settings(3.0)
    compiled = captured(functools.partial(lambda settings, x: x * settings.rate, settings))
    assert compiled(X).tolist() == compiled(X).tolist() == [3, -6, 9]
    settings.rate = 4.0
    assert compiled(X).tolist() == [4, -8, 12]


def test_after_many_captures_the_function_stays_as_it_is():
    compiled = cg.compile(lambda x, n: x + n)
    with pytest.warns(RuntimeWarning, match="was captured 16 times"):
        for n in range(20):
            assert compiled(X, n).tolist() == (X + n).tolist()
    assert tuple(compiled.cache_info()) == (0, 16, 4, 16)




# ----- Ends of captures -----
def stores_globally(x):
    global SCALE
    SCALE = 3.0
    return x


def grows(x):
    TABLE["rate"].append(1.0)
    return x + 1


def with_new_attribute(x):
    SETTINGS.seen = x
    return x + 1


ENDS = {
    "item": (lambda x: x * x.sum().item(), "outside of operators"),
    "float": (lambda x: x * float(x[0]), "outside of operators"),
    "int": (lambda x: x * int(x[0]), "outside of operators"),
    "tolist": (lambda x: x + x.tolist()[0], "outside of operators"),
    "numpy": (lambda x: cg.tensor(x.numpy() * 2), "outside of operators"),
    "format": (lambda x: (f"{x[0]:.2f}", x)[1], "outside of operators"),
    "an array": (lambda x: x + cg.from_numpy(np.ones(3)), "values were not computed|outside of operators"),
    "clock": (lambda x: x + time.time(), r"calls time, which has another result each time"),
    "random": (lambda x: x + random.random(), "has another result each time"),
    "NumPy's random numbers": (lambda x: x + np.random.rand(), "uses np.random"),
    "seed": (lambda x: (cg.manual_seed(0), cg.rand(3))[1], "seed of a generator"),
    "file": (lambda x: (open(__file__).close(), x + 1)[1], "has another result each time"),
    "global": (stores_globally, "assigns the global SCALE"),
    "list": (grows, "changes the length of a list"),
    "attribute": (with_new_attribute, "changes seen"),
    "argument": (lambda x: x.requires_grad_() * 2, "changes an argument"),
    "other memory": (lambda x: x.set_(X), "changes an argument"),
    "iterator": (lambda x: iter([x]), "returns a list_iterator"),
}


@pytest.mark.parametrize("name", ENDS)
def test_ends_of_captures(name):
    function, reason = ENDS[name]
    with pytest.raises(RuntimeError, match=f"cannot be captured: .*({reason})"):
        captured(function)(X.clone())
    TABLE["rate"][:] = [1.0, 2.0]
    SETTINGS.__dict__.pop("seen", None)
    globals()["SCALE"] = 2.0


def test_the_line_is_named():
    def reads(x):
        y = x * 2
        return y + y.sum().item()

    assert f"{__file__}:{reads.__code__.co_firstlineno + 2}: " in refusal(reads, X)


def test_one_warning_in_place_of_the_error():
    compiled = cg.compile(lambda x: x * x.sum().item())
    with pytest.warns(RuntimeWarning, match="stays as it is: .*read outside of operators") as warned:
        results = [compiled(x).tolist() for x in (X, X, -X)]
    assert len(warned) == 1 and results == [[2, -4, 6], [2, -4, 6], [2, -4, 6]]
    assert compiled.cache_info().eager == 2
