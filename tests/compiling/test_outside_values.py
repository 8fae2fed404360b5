"""Values outside of a captured function that its code reaches otherwise than by a name: by libraries, caches, views, imports."""

import collections
import ctypes
import dataclasses
import decimal
import enum
import functools
import gc
import importlib
import logging
import mmap
import operator
import os
import pickle
import sys
import threading
import types
import warnings
import weakref
from array import array
from concurrent.futures import Future

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured, same


class Settings:
    def __init__(self, rate=2.0):
        self.rate = rate


def of_item(container, read, memory=None, key=0):
    """Return a function that reads a container, and a function that changes an item of it or of the memory behind it."""
    memory = container if memory is None else memory
    return lambda x: x * read(container), lambda value: memory.__setitem__(key, value)


def of_attribute(holder, read, name="rate"):
    """Return a function that reads an object, and a function that changes an attribute of it."""
    return lambda x: x * read(holder), lambda value: setattr(holder, name, value)


def with_attribute(holder, value=2.0):
    """Return an object with an attribute `rate`, which no class of it declares."""
    holder.rate = value
    return holder


def with_warning():
    try:
        warnings.warn("outside", stacklevel=1)
    except UserWarning:
        return 5.0
    return 2.0


def slot_of(container):
    return container[0]


MODULE, PACKAGE, INNER = (types.ModuleType(name) for name in ("outside_module", "outside_package", "outside_package.inner"))
PACKAGE.__path__, PACKAGE.inner, INNER.rate, MODULE.rate = [], INNER, 2.0, 2.0
for module in (MODULE, PACKAGE, INNER):
    sys.modules[module.__name__] = module
ROWS = cg.ones(2, 3, requires_grad=True).unbind()
LOOK_UP, LOOK_UP_SLOT = getattr, object.__getattribute__


def imports(x):
    import outside_module
    return x * outside_module.rate


def imports_a_name(x):
    from outside_module import rate
    return x * rate


def imports_from_a_package(x):
    from outside_package import inner
    return x * inner.rate


def imports_a_dotted_name(x):
    import outside_package.inner
    return x * outside_package.inner.rate


def by_alias(x):
    module = MODULE
    return x * module.rate


class Slotted:
    __slots__ = ("rate",)


class OfClass:
    rate = 2.0

    def scaled(self, x):
        return x * 2.0


class Derived(OfClass):
    rate = 1.0

    def get(self):
        return super().rate


class Above:
    rate = 5.0


class Below(OfClass):
    pass


class Mode(enum.Enum):
    FAST = 2.0


class Pair(collections.namedtuple("Pair", "first second")):
    pass


METADATA = {}


@dataclasses.dataclass
class Data:
    rate: float = dataclasses.field(default=2.0, metadata=METADATA)


class Structure(ctypes.Structure):
    _fields_ = (("rate", ctypes.c_double),)


@functools.lru_cache
def cached_list(key):
    return [2.0]


@functools.cache
def cached_tensor():
    return cg.full((3,), 2.0, dtype=cg.float64)


class WithCache:
    @functools.lru_cache     # noqa: B019
    def get(self):
        return Settings()


WITH_CACHE, FUTURE, LOGGER, ERROR = WithCache(), Future(), logging.getLogger("outside"), ValueError(2.0)
EVENT, LINE = threading.Event(), np.polynomial.Polynomial([2.0])
FUTURE.set_result(2.0)


SETTINGS, MODULES, OF_CLASS, DERIVED = Settings(), {"a": MODULE}, OfClass(), Derived()
GET_RATE, KEYED, SCALE = functools.partial(getattr, SETTINGS, "rate"), {(SETTINGS, 1): 0}, np.vectorize(lambda one: one * SETTINGS.rate)


FORMAT, TABLE, ELEMENTS, PLACED, FLAGGED = "{.rate}", {}, set(), Data(), np.ones(1)
NUMBERS, LAYOUT = np.array([2.0]), {}
REFERENCE, METHOD = weakref.ref(NUMBERS), types.MethodType(lambda numbers: numbers[0], NUMBERS)
ARRAYS = np.arange(9.0).reshape(3, 3), np.asfortranarray(np.arange(9.0).reshape(3, 3))


def of_product(settings):
    """Return a special method under a name that is not its own."""
    def product(self, other):
        return settings.rate * other
    return product


OPERATOR = type("Operator", (), {"__mul__": of_product(SETTINGS)})()


@functools.lru_cache
def of_settings():
    return SETTINGS.rate


def by_place(value):
    match value:
        case Data(rate):
            return rate


def documented():
    "2.0"


def annotated(x: 2.0):
    pass


def of_views():
    """Return functions that read views of dicts, and change the dicts."""
    for name, view, read in (("values", dict.values, sum), ("items", dict.items, lambda items: [*items][0][1]),
                             ("mapping proxy", types.MappingProxyType, operator.itemgetter("a"))):
        table = {"a": 2.0}
        yield f"{name} of a dict", of_item(view(table), read, table, "a")


def of_memory():
    """Return functions that read memory of others, and change it."""
    numbers, doubles, cell, structure, mapped = np.array([2.0]), array("d", [2.0]), ctypes.c_double(2.0), Structure(2.0), mmap.mmap(-1, 8)
    records = np.zeros(1, dtype=[("rate", "f8")])
    mapped[0] = 2
    yield "memoryview", of_item(memoryview(doubles), slot_of, doubles)
    yield "memoryview of an array", of_item(memoryview(numbers), slot_of, numbers)
    yield "ctypes array", of_item((ctypes.c_double * 2)(2.0), slot_of)
    yield "ctypes number", of_attribute(cell, operator.attrgetter("value"), "value")
    yield "ctypes structure", of_attribute(structure, operator.attrgetter("rate"))
    yield "mmap", ((lambda x: x * mapped[0]), lambda value: mapped.__setitem__(0, int(value)))
    yield "record", ((lambda x, record=records[0]: x * record["rate"]), lambda value: records["rate"].__setitem__(0, value))
    yield "masked array", of_item(np.ma.array([2.0, 3.0]), lambda numbers: float(numbers[0]))


CHANGES = {
    **dict(of_views()),
    **dict(of_memory()),
    "import": (imports, functools.partial(setattr, MODULE, "rate")),
    "import of a name": (imports_a_name, functools.partial(setattr, MODULE, "rate")),
    "import from a package": (imports_from_a_package, functools.partial(setattr, INNER, "rate")),
    "import of a dotted name": (imports_a_dotted_name, functools.partial(setattr, INNER, "rate")),
    "module under another name": (by_alias, functools.partial(setattr, MODULE, "rate")),
    "module in a dict": ((lambda x: x * MODULES["a"].rate), functools.partial(setattr, MODULE, "rate")),
    "special method that another function has made": of_attribute(SETTINGS, lambda _: OPERATOR * 1.0),
    "cache that is emptied": ((lambda x: x * of_settings()), lambda value: (setattr(SETTINGS, "rate", value), of_settings.cache_clear(),
                                                                         of_settings())),
    "weak reference to an array": of_item(NUMBERS, lambda _: REFERENCE()[0]),
    "method of an array": of_item(NUMBERS, lambda _: METHOD()),
    "strides of an array": ((lambda x: x * LAYOUT["array"].ravel("K")[1]), lambda value: LAYOUT.update(array=ARRAYS[value == 5])),
    "function of a module of NumPy's": ((lambda x: x * np.outside(2.0)), lambda value: setattr(np, "outside", lambda x: x * value)),
    "list in a cache": ((lambda x: x * cached_list(1)[0]), lambda value: cached_list(1).__setitem__(0, value)),
    "tensor in a cache": ((lambda x: x * cached_tensor()), lambda value: cached_tensor().fill_(value)),
    "object in the cache of a method": ((lambda x: x * WITH_CACHE.get().rate), lambda value: setattr(WITH_CACHE.get(), "rate", value)),
    "getattr under another name": of_attribute(Settings(), lambda holder: LOOK_UP(holder, "".join(("ra", "te")))),
    "getattr in a partial": of_attribute(SETTINGS, lambda _: GET_RATE()),
    "slot by getattr": of_attribute(with_attribute(Slotted()), lambda holder: getattr(holder, "".join(("ra", "te")))),
    "class by getattr": ((lambda x: x * getattr(OF_CLASS, "".join(("ra", "te")))), functools.partial(setattr, OfClass, "rate")),
    "method by getattr": ((lambda x: getattr(OF_CLASS, "".join(("sca", "led")))(x)),
                          lambda value: setattr(OfClass, "scaled", lambda self, x: x * value)),
    "base by super()": ((lambda x: x * DERIVED.get()), functools.partial(setattr, OfClass, "rate")),
    "bases of a class": ((lambda x: x * Below.rate), lambda value: setattr(Below, "__bases__", (Above,) if value == 5 else (OfClass,))),
    "member of an enum": ((lambda x: x * Mode.FAST.value), functools.partial(setattr, Mode.FAST, "_value_")),
    "fields of a data class": of_attribute(Data(), lambda data: sum(dataclasses.asdict(data).values())),
    "defaults of a named tuple": ((lambda x: x * Pair(1.0).second), lambda value: setattr(Pair.__new__, "__defaults__", (value,))),
    "field of a format": of_attribute(Settings(), lambda holder: float("{.rate}".format(holder))),     # noqa: UP032
    "format outside of the code": of_attribute(SETTINGS, lambda settings: float(FORMAT.format(settings))),
    "method set on Tensor": ((lambda x: x.scaled_outside()), lambda value: setattr(cg.Tensor, "scaled_outside", lambda x: x * value)),
    "method of Tensor": ((lambda x: x.square()), lambda value: setattr(cg.Tensor, "square", lambda x: x * value)),
    "operator of Tensor": ((lambda x: x @ 2.0), lambda value: setattr(cg.Tensor, "__matmul__", lambda x, other: x * value)),
    "filters of warnings": ((lambda x: x * with_warning()), lambda value: warnings.simplefilter("error" if value == 5 else "ignore")),
    "object that a library has": ((lambda x: x * logging.getLogger("outside").level), functools.partial(setattr, LOGGER, "level")),
    "place in a pattern": ((lambda x: x * by_place(PLACED)), functools.partial(setattr, PLACED, "rate")),
    "metadata of a field": of_item({}, lambda _: dataclasses.fields(Data)[0].metadata["scale"], METADATA, "scale"),
    "flag of an array": ((lambda x: x * (5.0 - FLAGGED.flags.writeable)), lambda value: FLAGGED.setflags(write=value == 5)),
    "__getattribute__ under another name": of_attribute(SETTINGS, lambda settings: LOOK_UP_SLOT(settings, "".join(("ra", "te")))),
    "type of a key": ((lambda x: cg.ones(2, dtype=cg.int64) * [*TABLE][0]), lambda value: (TABLE.clear(), TABLE.update({value - 2: 0}),
                                                                                        TABLE.update({2: 0}))),
    "order of a set": ((lambda x: x * [*ELEMENTS][0]), lambda value: (ELEMENTS.clear(), ELEMENTS.update((8, 16)[::int(value - 3)]))),
    "key of a dict": of_attribute(SETTINGS, lambda _: [*KEYED][0][0].rate),
    "cell": of_attribute(types.CellType(2.0), operator.attrgetter("cell_contents"), "cell_contents"),
    "exception": ((lambda x: x * ERROR.args[0]), lambda value: setattr(ERROR, "args", (value,))),
    "result of a future": ((lambda x: x * FUTURE.result()), functools.partial(setattr, FUTURE, "_result")),
    "event": ((lambda x: x * (2.0 + EVENT.is_set())), lambda value: EVENT.set() if value == 5 else EVENT.clear()),
    "polynomial of NumPy's": of_item(LINE, lambda line: float(line(1.0)), LINE.coef),
    "function of np.vectorize": of_attribute(SETTINGS, lambda _: float(SCALE(1.0))),
    "level of a logger": of_attribute(LOGGER, operator.attrgetter("level"), "level"),
    "attribute of a float": of_attribute(with_attribute(type("Number", (float,), {})(1.0)), operator.attrgetter("rate")),
    "attribute of an array": of_attribute(with_attribute(np.ones(1).view(type("Numbers", (np.ndarray,), {}))), operator.attrgetter("rate")),
    "attribute of a set": of_attribute(with_attribute(type("Elements", (set,), {})()), operator.attrgetter("rate")),
    "attribute of a partial": of_attribute(with_attribute(functools.partial(max, 1)), operator.attrgetter("rate")),
    "attribute of a compiled function": of_attribute(with_attribute(cg.compile(lambda x: x)), operator.attrgetter("rate")),
    "text of a function": ((lambda x: x * float(documented.__doc__)), lambda value: setattr(documented, "__doc__", str(value))),
    "annotation": ((lambda x: x * annotated.__annotations__["x"]), lambda value: annotated.__annotations__.update(x=value)),
    "name of a class": ((lambda x: x * len(Above.__name__)), lambda value: setattr(Above, "__name__", "A" * int(value))),
    "built-in": ((lambda x: x * outside_rate), functools.partial(setattr, __import__("builtins"), "outside_rate")),     # noqa: F821
}


@pytest.fixture
def restored(monkeypatch):
    """Filters of warnings, and the names of Tensor, are afterwards as before."""
    names = {*vars(cg.Tensor)}
    monkeypatch.setattr(cg.Tensor, "square", cg.Tensor.square)
    with warnings.catch_warnings():
        yield
    for name in {*vars(cg.Tensor)} - names:
        delattr(cg.Tensor, name)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("name", CHANGES)
def test_values_are_guarded_however_code_reaches_them(name):
    function, change = CHANGES[name]
    change(2.0)
    compiled = captured(function)
    for value in (2.0, 5.0, 2.0, 7.0):
        change(value)
        for _ in range(3):
            same(compiled(X), function(X))
    assert compiled.cache_info().hits


def test_a_cache_without_room_ends_the_capture():
    @functools.lru_cache(maxsize=0)
    def rates():
        return [2.0]

    compiled = cg.compile(lambda x: x * rates()[0])
    with pytest.warns(RuntimeWarning, match="has imported a module, or added to a cache"):
        for _ in range(20):
            same(compiled(X), X * 2)
    assert compiled.cache_info().eager > 0


def test_explain_calls_twice_where_the_first_call_is_too_early():
    cached_list.cache_clear()
    assert cg.compile(lambda x: x * cached_list(2)[0]).explain(X).startswith("1 steps: mul")


# ----- Values that the function itself changes -----
def swaps_buffers(state, x):
    state.second.copy_(state.first * 0.5 + x)
    state.first, state.second = state.second, state.first
    return state.first * 1


def updates_parameters(state, x):
    gradients = cg.autograd.grad(((state.parameters[0] * x + state.parameters[1]) ** 2).sum(), state.parameters)
    for k, (parameter, gradient) in enumerate(zip(state.parameters, gradients, strict=True)):
        state.parameters[k] = (parameter - 0.01 * gradient).detach().requires_grad_()
    return state.parameters[0] * 1


def takes_several_steps(state, x):
    state.slopes.append(-x * state.first)
    state.first = state.first + 0.1 * (1.5 * state.slopes[1] - 0.5 * state.slopes[0])
    return state.first * 1


def keeps_a_result(state, x):
    state.last = x.tanh()
    return x * 2


def sets_by_name(state, x):
    for k, name in enumerate(("first", "second")):
        setattr(state, name, getattr(state, name) + k + x)
    return state.first * state.second


def sets_new_names(state, x):
    setattr(state, f"h{len(vars(state))}", x)
    return x * len(vars(state))


def fills_a_table(state, x):
    if "scale" not in state.table:
        state.table["scale"] = 3.0
    return x * state.table["scale"]


def by_its_parameter(state, x):
    return x * state.moments[state.parameters[0]]


class State:
    def __init__(self):
        self.first, self.second, self.last = X.clone(), X * 2, X.clone()
        self.parameters = [X.clone().requires_grad_(), X.clone().requires_grad_()]
        self.slopes, self.table = collections.deque([X.clone(), X * 3], maxlen=2), {}
        self.moments = {self.parameters[0]: 2.0, self.parameters[1]: 3.0}

    def values(self):
        """Return all tensors, and the names of attributes."""
        return [self.first, self.second, self.last, *self.parameters, *self.slopes], sorted(vars(self))


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("step", [swaps_buffers, updates_parameters, takes_several_steps, keeps_a_result, sets_by_name, sets_new_names,
                                  fills_a_table, by_its_parameter])
@pytest.mark.parametrize("is_argument", [True, False])
def test_a_function_changes_values_at_each_call(step, is_argument):
    ours, theirs = State(), State()
    compiled = cg.compile(step) if is_argument else cg.compile(lambda x: step(ours, x))
    for k in range(5):
        x = X + k
        same(compiled(ours, x) if is_argument else compiled(x), step(theirs, x))
        for a, b in zip(ours.values()[0], theirs.values()[0], strict=True):
            same(a, b)
        assert ours.values()[1] == theirs.values()[1]
        ours.parameters.reverse()
        theirs.parameters.reverse()


def test_a_table_that_the_first_call_fills():
    state = State()
    compiled = cg.compile(lambda x: fills_a_table(state, x))
    for _ in range(4):
        same(compiled(X), X * 3)
    assert tuple(compiled.cache_info()) == (2, 2, 0, 1)


@pytest.mark.parametrize("step", [swaps_buffers, takes_several_steps, keeps_a_result])
def test_a_loop_whose_body_changes_values(step):
    ours, theirs = State(), State()
    x = y = X
    for _ in range(60):
        y = step(theirs, y) * 0.5
    x, _ = cg.func.scan(lambda x, _: (step(ours, x) * 0.5, None), x, None, length=60)
    same(x, y)
    for a, b in zip(ours.values()[0], theirs.values()[0], strict=True):
        same(a, b)


def test_results_are_new_containers():
    history = []
    for function in (lambda x: (x, history), lambda x: {x: x * 2}):
        with pytest.raises(RuntimeError, match="it returns a (list from outside|dict)"):
            captured(function)(X)
    pair = type("Doubled", (collections.namedtuple("Doubled", "a b"),), {"__new__": lambda cls, a, b: tuple.__new__(cls, (a * 2, b))})
    compiled = captured(lambda x: pair(x, x))
    for _ in range(2):
        assert [item.tolist() for item in compiled(X)] == [(X * 2).tolist(), X.tolist()]


def test_objects_that_the_function_makes_without_an_init():
    class Model:
        def run(self, x):
            self.x = x * 2
            return self.x + 1

    compiled = captured(lambda x: Model().run(x))
    for k in range(3):
        same(compiled(X + k), (X + k) * 2 + 1)
    assert compiled.cache_info().hits == 2


def test_attributes_that_raise():
    table = type("Table", (dict,), {"__getattr__": dict.__getitem__})(rate=2.0)
    compiled = captured(lambda x: x * table.get("rate"))
    for rate in (2.0, 5.0):
        table["rate"] = rate
        for _ in range(2):
            same(compiled(X), X * rate)
    nested = []
    for _ in range(5000):
        nested = [nested]
    with pytest.raises(RuntimeError, match="its values cannot be observed, RecursionError"):
        captured(lambda x: x * len(nested))(X)


class Walker:
    def step(self, x):
        return x * 2


ALIKE = {"bound method": lambda: WALKER.step, "number of NumPy's": lambda: np.float64(2.0), "sizes": lambda: X.shape,
         "slice": lambda: slice(0, 2), "range": lambda: range(2)}
WALKER = Walker()


@pytest.mark.parametrize("name", ALIKE)
def test_arguments_that_are_equal_have_one_program(name):
    compiled = captured(lambda x, value: x * 2)
    for _ in range(3):
        compiled(X, ALIKE[name]())
    assert tuple(compiled.cache_info()) == (2, 1, 0, 1)


def test_keys_of_dicts_among_the_arguments():
    compiled = captured(lambda x, table: cg.tensor([*table]) + x)
    for table in ({1: 0}, {1.5: 0}, {True: 0}, {2: 0}):
        for _ in range(2):
            same(compiled(X, table), cg.tensor([*table]) + X)


# ----- Ends of captures -----
def starts_a_thread(x):
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return x


PICKLED = pickle.dumps(OfClass)
POINTER, CONTEXT, OBJECTS = ctypes.pointer(ctypes.c_double(2.0)), decimal.Context(), np.array([2.0], dtype=object)
TWICE, ABSOLUTE, LOCK = np.frompyfunc(lambda number: number * 2, 1, 1), ctypes.CDLL(None).abs, threading.Lock()

ENDS = {
    "pointer": (lambda x: x * POINTER.contents.value, "leads to memory that no guard sees"),
    "function of ctypes": (lambda x: x * ABSOLUTE(-2), "leads to memory that no guard sees"),
    "unknown class in C": (lambda x: x * CONTEXT.prec, "depends on settings"),
    "decimal": (lambda x: x * float(decimal.Decimal(1) / 3), "depends on settings"),
    "array of objects": (lambda x: x * OBJECTS[0], "an array of objects"),
    "function of Python by NumPy": (lambda x: x * TWICE(1.0), "calls a function of Python by NumPy"),
    "modules": (lambda x: x * sys.modules["outside_module"].rate, "sys.modules, which leads to all modules"),
    "import_module": (lambda x: x * importlib.import_module("outside_module").rate, "calls import_module"),
    "__import__": (lambda x: x * __import__("outside_module").rate, "__import__, which leads to all modules"),
    "globals of a function": (lambda x: x * documented.__globals__["SETTINGS"].rate, "uses __globals__"),
    "frame": (lambda x: x * sys._getframe().f_globals["SETTINGS"].rate, "uses f_globals"),
    "derived classes": (lambda x: x * len(OfClass.__subclasses__()), "uses __subclasses__"),
    "references": (lambda x: x * len(gc.get_referents(SETTINGS)), "calls get_referents"),
    "state of Python": (lambda x: x * sys.getrecursionlimit(), "calls getrecursionlimit"),
    "state of a lock": (lambda x: x * LOCK.locked(), "calls lock.locked"),
    "state of NumPy": (lambda x: x * np.get_printoptions()["precision"], "calls get_printoptions"),
    "state of a logger": (lambda x: x * LOGGER.isEnabledFor(3), "calls isEnabledFor"),
    "change of NumPy's settings": (lambda x: (np.seterr(divide="warn"), x)[1], "calls seterr, which changes a setting"),
    "change of a logger": (lambda x: (LOGGER.setLevel(30), x)[1], "calls setLevel, which changes a setting"),
    "address": (lambda x: x * (id(x) % 7), "calls id"),
    "hash of an address": (lambda x: x * (hash(x) % 7), "calls hash"),
    "place in memory": (lambda x: x * x.storage_offset(), "its place in memory was asked for"),
    "base": (lambda x: x * (x._base is None), "its place in memory was asked for"),
    "number among results": (lambda x: x * ROWS[1].output_nr, "its history was asked for"),
    "storage": (lambda x: x * len(x.untyped_storage()), "its storage was asked for"),
    "name of a thread": (lambda x: x * len(threading.current_thread().name), "calls current_thread"),
    "pickle": (lambda x: x * pickle.loads(PICKLED).rate, "calls loads"),
    "file by os.path": (lambda x: x * os.path.exists(__file__), "calls stat"),
    "folder": (lambda x: x * len(os.getcwd()), "calls getcwd"),
    "threads": (lambda x: x * cg.get_num_threads(), "depends on settings"),
    "setting": (lambda x: x * cg.are_deterministic_algorithms_enabled(), "depends on settings"),
    "seed": (lambda x: x * cg.initial_seed(), "the seed of a generator was"),
    "thread": (starts_a_thread, "starts a thread|has another result"),
}


@pytest.mark.parametrize("name", ENDS)
def test_values_that_no_guard_sees_end_a_capture(name):
    function, reason = ENDS[name]
    with pytest.raises(RuntimeError, match=f"cannot be captured: .*({reason})"):
        captured(function)(X)


# ----- Code that is no reason to end a capture -----
QUIET = logging.getLogger("outside.quiet")
QUIET.setLevel(logging.ERROR)


def logs(x):
    QUIET.debug("%s", x.shape)
    return x * 2


def joins_paths(x):
    return x * len(os.path.join("a", os.path.normpath("b/../c")))


def makes_named_tuples(x):
    return x * collections.namedtuple("Pair", "first second")(2.0, 3.0).first


def computes_by_the_library(x):
    return x * functools.reduce(operator.mul, dataclasses.astuple(Data()), 1.0) * np.linalg.norm([3.0, 4.0])


FUNCTION_OF_C = functools.cmp_to_key(int)      # of a class that no list has


def names_a_function(x):
    return x * 2 if callable(FUNCTION_OF_C) else x


def imports_if_there(x):
    try:
        import a_module_that_is_not_there
    except ImportError:
        return x * 2
    return x * a_module_that_is_not_there.rate


@pytest.mark.parametrize("function", [logs, joins_paths, makes_named_tuples, computes_by_the_library, names_a_function,
                                      imports_if_there])
def test_functions_of_the_library_are_captured(function):
    compiled = captured(function)
    for _ in range(3):
        same(compiled(X), function(X))
    assert compiled.cache_info().hits
