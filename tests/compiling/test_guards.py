"""Values outside of a captured function that its code can name, and functions that no program repeats."""

import collections
import contextvars
import dataclasses
import functools
import importlib
import io
import itertools
import operator
import os
import pathlib
import queue
import random
import sys
import threading
import time
import types
import warnings
import weakref
from array import array

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured, refusal, same
from cygrad import func
from cygrad._core.capture.signature import Parts, signature_of
from cygrad.compiling.explaining import changed_argument

SCALE, TABLE, WEIGHT, ARRAY, LEAF = 2.0, {"rate": [1.0, 2.0]}, X.clone(), np.array([2.0]), X.clone().requires_grad_()


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


def with_default(x):
    return x * getattr(with_default, "slope", 2.0)


def closure():
    rate = 2.0

    def scaled(x):
        return x * rate

    def change(value):
        nonlocal rate
        rate = value

    return scaled, change


class Base:
    rate = 2.0


class Derived(Base):
    pass


class Meta(type):
    rate = 2.0


class OfMeta(metaclass=Meta):
    pass


class Faster(Settings):
    rate = property(lambda self: self.__dict__["rate"] * 2.0)


def of_cell(decorate):
    """Return a function that calls a decorated one, which reads a cell, and a function that changes the cell."""
    scaled, change = closure()
    inner = decorate(scaled)
    return lambda x: inner(x), change


def of_container(container, read, change):
    return lambda x: x * read(container), lambda value: change(container, value)


def refill(elements, value):
    elements.clear()
    elements.add(value)


class WithStatic:
    @staticmethod
    def scaled(x, factor=2.0):
        return x * factor


def cached_rate():
    settings = Settings()

    @functools.lru_cache
    def rate():
        return settings.rate

    def change(value):
        settings.rate = value
        rate.cache_clear()

    return lambda x: x * rate(), change


OTHER = Settings()
GETTER, REFERENCE, INNER = operator.attrgetter("rate"), weakref.ref(SETTINGS), types.ModuleType("inner_module")
MODULE.inner = INNER
INNER.rate = 2.0
os.environ["CYGRAD_TEST_RATE"] = "2.0"

RATES, NUMBERS, LAST = {"rate": 2.0}, np.array([2.0]), collections.deque([2.0])
BOUND = {"get": RATES.get, "tolist": NUMBERS.tolist, "item": LAST.__getitem__}

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
    "key None": of_container({None: 2.0}, operator.itemgetter(None), lambda table, value: table.__setitem__(None, value)),
    "key of bytes": of_container({b"a": 2.0}, operator.itemgetter(b"a"), lambda table, value: table.__setitem__(b"a", value)),
    "set": of_container({2.0}, sum, refill),
    "deque": of_container(collections.deque([2.0]), lambda items: items[0], lambda items, value: items.__setitem__(0, value)),
    "bytes": of_container(bytearray(b"2"), lambda items: items[0], lambda items, value: items.__setitem__(0, int(value))),
    "array of Python": of_container(array("d", [2.0]), lambda items: items[0], lambda items, value: items.__setitem__(0, value)),
    "UserDict": of_container(collections.UserDict(a=2.0), lambda table: table["a"], lambda table, value: table.update(a=value)),
    "ChainMap": of_container(collections.ChainMap({"a": 2.0}), lambda table: table["a"], lambda table, value: table.update(a=value)),
    "environment": (lambda x: x * float(os.environ["CYGRAD_TEST_RATE"]), lambda value: os.environ.update(CYGRAD_TEST_RATE=str(value))),
    "getenv": (lambda x: x * float(os.getenv("CYGRAD_TEST_RATE")), lambda value: os.environ.update(CYGRAD_TEST_RATE=str(value))),
    "getattr": (lambda x: x * getattr(SETTINGS, "ra" + "te"[:2]), lambda value: setattr(SETTINGS, "rate", value)),
    "getattr of a module": (lambda x: x * getattr(MODULE, "slope", 2.0), lambda value: setattr(MODULE, "slope", value)),
    "getattr of any name of a module": (lambda x: x * getattr(MODULE, "ra" + "te"[:2]), lambda value: setattr(MODULE, "rate", value)),
    "dict of an object": (lambda x: x * OTHER.rate, lambda value: setattr(OTHER, "__dict__", {"rate": value})),
    "dict of a function": (with_default, lambda value: setattr(with_default, "__dict__", {"slope": value})),
    "vars": (lambda x: x * vars(SETTINGS)["rate"], lambda value: setattr(SETTINGS, "rate", value)),
    "attrgetter": (lambda x: x * GETTER(SETTINGS), lambda value: setattr(SETTINGS, "rate", value)),
    "weak reference": (lambda x: x * REFERENCE().rate, lambda value: setattr(SETTINGS, "rate", value)),
    "derived class": (lambda x: x * Derived.rate, lambda value: setattr(Derived, "rate", value)),
    "metaclass": (lambda x: x * OfMeta.rate, lambda value: setattr(Meta, "rate", value)),
    "class of an object": (lambda x: x * SETTINGS.rate, lambda value: setattr(SETTINGS, "__class__", Faster if value == 5 else Settings)),
    "code": (lambda x: helper(x), lambda value: setattr(helper, "__code__", eval(f"lambda x, factor=1: x * {value}").__code__)),
    "shadowed built-in": (lambda x: x * abs(-2.0), lambda value: globals().__setitem__("abs", lambda _: value)),
    "module in a module": (lambda x: x * MODULE.inner.rate, lambda value: setattr(INNER, "rate", value)),
    "default of a static method": (lambda x: WithStatic.scaled(x), lambda value: setattr(WithStatic.scaled, "__defaults__", (value,))),
    "cell of a compiled function": of_cell(cg.compile),
    "cell below a transform": of_cell(func.vmap),
    "cell below a decorator": of_cell(lambda function: functools.wraps(function)(lambda x: function(x))),
    "cached function": cached_rate(),
    "bound method of a dict": (lambda x: x * BOUND["get"]("rate"), lambda value: RATES.update(rate=value)),
    "bound method of an array": (lambda x: x * BOUND["tolist"]()[0], lambda value: NUMBERS.fill(value)),
    "bound method of a deque": (lambda x: x * BOUND["item"](0), lambda value: LAST.__setitem__(0, value)),
    "gradient": (lambda x: x if LEAF.grad is None else x * LEAF.grad[0], lambda value: setattr(LEAF, "grad", X * value)),
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
    globals().pop("abs", None)


def test_a_name_that_is_defined_later():
    def scaled(x):
        try:
            return x * LATER
        except NameError:
            return x

    compiled = captured(scaled)
    same(compiled(X), X)
    globals()["LATER"] = 5.0
    same(compiled(X), X * 5)
    del globals()["LATER"]
    same(compiled(X), X)


def test_containers_and_objects_among_the_arguments():
    compiled = captured(lambda x, factors: x * sum(factors))
    factors = {2.0}
    same(compiled(X, factors), X * 2)
    refill(factors, 5.0)
    same(compiled(X, factors), X * 5)


def test_the_order_of_a_dict():
    table = {"a": 1.0, "b": 2.0}
    compiled = captured(lambda x: [x + value for value in table.values()])
    compiled(X)
    table["a"] = table.pop("a")
    assert [row.tolist() for row in compiled(X)] == [(X + 2).tolist(), (X + 1).tolist()]


ORDERED = collections.OrderedDict(a=1.0, b=2.0)


class Ordered(collections.OrderedDict):
    pass


@pytest.mark.parametrize("kind", [collections.OrderedDict, Ordered])
def test_the_order_of_an_ordered_dict_that_code_names(kind, monkeypatch):
    monkeypatch.setitem(globals(), "ORDERED", kind(a=1.0, b=2.0))
    function = captured(lambda x: x * next(iter(ORDERED.values())))
    for key, last, expected in ((None, True, 1.0), ("a", True, 2.0), ("a", False, 1.0), ("b", False, 2.0)):
        if key:
            ORDERED.move_to_end(key, last)
        for _ in range(2):
            assert function(cg.ones(1)).tolist() == [expected]


def test_a_profiler_only_keeps_a_function_from_its_capture():
    function = cg.compile(lambda x: x * 2)
    sys.setprofile(lambda *_: None)
    try:
        same(function(X), X * 2)
    finally:
        sys.setprofile(None)
    for _ in range(2):
        same(function(X), X * 2)
    assert tuple(function.cache_info()) == (1, 1, 1, 1)


def test_hooks_on_a_tensor_that_code_names():
    leaf = X.clone().requires_grad_()
    function = cg.compile(lambda x: (x * leaf).sum())
    function(X).backward()
    leaf.grad = None
    leaf.register_hook(lambda gradient: gradient * 7)
    with pytest.warns(RuntimeWarning, match="a tensor with hooks"):
        function(X).backward()
    same(leaf.grad, X * 7)


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second

    def product(self):
        return self.first * self.second


def test_objects_that_the_function_makes_are_no_values_from_outside():
    pair = collections.namedtuple("pair", "first second")
    for make in (lambda x: Pair(x, X).product(), lambda x: pair(x, 2.0)._replace(second=3.0)):
        compiled = captured(make)
        for k in range(3):
            compiled(X + k)
        assert compiled.cache_info().hits == 2


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
    with pytest.warns(RuntimeWarning, match="was captured 16 times.* the last one the argument 'n', 16 after 15"):
        for n in range(20):
            assert compiled(X, n).tolist() == (X + n).tolist()
    assert tuple(compiled.cache_info()) == (0, 16, 4, 16)
    compiled = captured(lambda x, n: x + n)
    for n in range(16):
        compiled(X, n)
    with pytest.raises(RuntimeError, match=r"was captured 16 times.* the argument 'x', of shape \(2,\) after \(3,\)"):
        compiled(X[:2], 0)
    assert compiled(X, 3).tolist() == (X + 3).tolist()


def test_programs_that_no_call_finds_any_more_are_dropped():
    settings = Settings(3.0)
    compiled = cg.compile(lambda x: x * settings.rate)
    with pytest.warns(RuntimeWarning, match="was captured 16 times.*rate"):
        for k in range(100):
            settings.rate = k + 1.0
            assert compiled(X).tolist() == (X * settings.rate).tolist()
            if k == 50:
                settings.rate = 3.0
                assert compiled(X).tolist() == (X * settings.rate).tolist()
    assert tuple(compiled.cache_info()) == (1, 16, 84, 16)
    for k in range(100):
        settings.rate = k + 1.5
        assert compiled(X).tolist() == (X * settings.rate).tolist()
    assert tuple(compiled.cache_info()) == (1, 16, 184, 0)


@pytest.mark.parametrize("name, call", [("the argument 'x', of shape (1,) after (2,)", lambda f, k: f(cg.ones(k + 1), 1)),
                                        ("the argument 'n', 0 after 1", lambda f, k: f(X, n=k)), ("", lambda f, k: f(X + k, 1))])
def test_the_argument_that_changes_is_named(name, call):
    keys = []
    for k in range(2):
        call(lambda *args, **kwargs: keys.append(signature_of(args, kwargs, Parts())), k)
    assert changed_argument(lambda x, n: x + n, *keys) == name




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


COUNT, CONTEXT, LOCAL, LARGE = itertools.count(1), contextvars.ContextVar("rate", default=2.0), threading.local(), np.ones(20_000)
QUEUE, MANY, LINES = queue.Queue(), list(range(20_001)), io.StringIO("1\n2\n3\n")
HOOKED, LOCAL.rate = X.clone().requires_grad_(), 2.0

ENDS = {
    "item": (lambda x: x * x.sum().item(), "outside of operators"),
    "many values": (lambda x: x * MANY[0], "can name more than 20000 values"),
    "float": (lambda x: x * float(x[0]), "outside of operators"),
    "int": (lambda x: x * int(x[0]), "outside of operators"),
    "tolist": (lambda x: x + x.tolist()[0], "outside of operators"),
    "numpy": (lambda x: cg.tensor(x.numpy() * 2), "outside of operators"),
    "format": (lambda x: (f"{x[0]:.2f}", x)[1], "outside of operators"),
    "iterator of a cell": (lambda x: x * next(COUNT), "is an iterator"),
    "context variable": (lambda x: x * CONTEXT.get(), "another value in each thread or context"),
    "value of a thread": (lambda x: x * LOCAL.rate, "another value in each thread or context"),
    "queue": (lambda x: (QUEUE.put(1), x * 2)[1], "is a queue, whose items change"),
    "large array": (lambda x: x * LARGE[0], "160000 bytes of memory"),
    "file by a library": (lambda x: x + len(pathlib.Path(__file__).read_text()), "opens a file"),
    "globals()": (lambda x: x * globals()["SCALE"], "globals, which leads to all modules"),
    "version": (lambda x: x * x._version, "its version was asked for"),
    "hook": (lambda x: (HOOKED.register_hook(print), x * HOOKED)[1], "changes HOOKED|a tensor with hooks"),
    "clock": (lambda x: x + time.time(), r"calls time, which has another result each time"),
    "random": (lambda x: x + random.random(), "has another result each time"),
    "NumPy's random numbers": (lambda x: x + np.random.rand(), "uses numpy.random, which draws"),
    "seed": (lambda x: (cg.manual_seed(0), cg.rand(3))[1], "seed of a generator"),
    "file": (lambda x: (open(__file__).close(), x + 1)[1], "opens a file"),
    "global": (stores_globally, "assigns the global SCALE"),
    "list": (grows, "changes the items of a list"),
    "attribute": (with_new_attribute, "changes seen"),
    "argument": (lambda x: x.requires_grad_() * 2, "changes an argument"),
    "leaf of its own": (lambda x: x.detach().requires_grad_() * 2, "goes to none of its inputs"),
    "other memory": (lambda x: x.set_(X), "changes an argument"),
    "iterator": (lambda x: iter([x]), "returns a list_iterator"),
    "lines of a file": (lambda x: x * float(next(LINES)), "is an iterator, which has another item each time"),
    "filters": (lambda x: (warnings.simplefilter("ignore", ImportWarning), x)[1], "calls simplefilter, which changes a setting"),
    "text of tensors": (lambda x: (cg.set_printoptions(precision=4), x)[1], "calls set_printoptions, which changes a setting"),
}


@pytest.mark.parametrize("name", ENDS)
def test_ends_of_captures(name):
    function, reason = ENDS[name]
    with pytest.raises(RuntimeError, match=f"cannot be captured: .*({reason})"):
        captured(function)(X.clone())
    TABLE["rate"][:] = [1.0, 2.0]
    SETTINGS.__dict__.pop("seen", None)
    globals()["SCALE"] = 2.0


def test_a_module_that_is_imported_by_a_call_may_do_anything(tmp_path, monkeypatch):
    text = "import time\nNOW = time.time()\nTEXT = open(__file__, 'rb', 0).readline()\nSCALE = 3.0\n"
    (tmp_path / "module_of_constants.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    def scaled(x):
        import module_of_constants
        return x * module_of_constants.SCALE

    compiled = captured(scaled)
    for _ in range(3):
        same(compiled(X), X * 3)


def test_a_first_call_during_an_import_is_guarded(tmp_path, monkeypatch):
    text = "import cygrad\nSCALE = 2.0\n@cygrad.compile\ndef scaled(x):\n    return x * SCALE\nscaled(cygrad.ones(1))\n"
    for name in ("module_with_a_call", "namedtuple_of_the_user"):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        module = importlib.import_module(name)
        for scale in (2.0, 5.0, 2.0):
            module.SCALE = scale
            assert [module.scaled(cg.ones(1)).item() for _ in range(2)] == [scale] * 2


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


def test_a_mask_of_other_counts_is_named():
    def flipped(x, mask):
        x = x.clone()
        x[mask] *= -1
        return x

    compiled = cg.compile(flipped)
    with pytest.warns(RuntimeWarning, match="was captured 16 times.* another decision by values: .*how many elements a mask takes"):
        for number in range(1, 20):
            x, mask = cg.arange(20.0), cg.arange(20) < number
            same(compiled(x, mask), flipped(x, mask))
