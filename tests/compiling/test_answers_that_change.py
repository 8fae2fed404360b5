"""Code that asks for something which has another answer in a later call: a history, a flag of a view, a module, an attribute."""

import collections
import copy
import dataclasses
import functools
import logging
import subprocess
import sys
import tempfile
import types
import warnings
import weakref

import pytest

import cygrad as cg
from capturing import captured, refusal, same
from cygrad.checkpoint import checkpoint

X = cg.tensor([1.0, -2.0, 3.0], dtype=cg.float64)


def agree(function, *calls):
    """Compare a function with its compiled form, for arguments that a call makes anew."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        compiled = cg.compile(function)
        for make in calls:
            ours, theirs = make(), make()
            same(compiled(*ours), function(*theirs))
            for one, other in zip(ours, theirs, strict=True):
                if cg.is_tensor(one):
                    same(one, other)
                    assert one.requires_grad == other.requires_grad
                    if one.is_leaf and other.grad is not None:
                        same(one.grad, other.grad)
    return compiled


# ----- Histories -----
def related(depends):
    def make():
        w, other = (X.clone().requires_grad_() for _ in range(2))
        return (w if depends else other) * 1.5, w
    return make


def caught(t, w):
    try:
        return cg.autograd.grad((t * 2).sum(), w)[0]
    except RuntimeError:
        return w.detach() * 7


HISTORIES = {
    "grad": lambda t, w: cg.autograd.grad((t * 2 + w * 3).sum(), w)[0],
    "create_graph": lambda t, w: cg.autograd.grad((t * t + w * w).sum(), w, create_graph=True)[0].detach(),
    "backward": lambda t, w: ((t * 2 + w * 3).sum().backward(inputs=[w]), w.detach() * 1)[1],
    "unused": lambda t, w: (cg.autograd.grad((t * 2).sum(), w, allow_unused=True)[0], w.detach() * 0)[0 if t is None else 1],
    "materialized": lambda t, w: cg.autograd.grad((t * 2).sum(), w, materialize_grads=True)[0],
    "caught": caught,
    "two inputs": lambda t, w: sum(cg.autograd.grad((t * w).sum(), (t, w))),
}


@pytest.mark.parametrize("order", ["ABAABB", "AAABAB", "BBABAA"])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_gradient_in_a_function_goes_through_the_history_of_this_call(name, order):
    agree(HISTORIES[name], *(related(each == "B") for each in order))


def test_inputs_whose_histories_are_independent_are_captured():
    """As weights that steps of training have made; where one is computed from another, the function itself runs."""
    def loss(a, b, x):
        return ((a * x + b).sin() ** 2).sum()

    @functools.partial(cg.compile, fullgraph=True)
    def step(a, b, x):
        slopes = cg.autograd.grad(loss(a, b, x), (a, b), create_graph=True)
        return a - 0.1 * slopes[0], b - 0.1 * slopes[1]

    def trained(function):
        a, b = (X.clone().requires_grad_() for _ in range(2))
        weights = a, b
        for number in range(4):
            weights = function(*weights, X + number)
        return cg.autograd.grad(loss(*weights, X), (a, b))

    expected = trained(step._function)
    for _ in range(2):
        for ours, theirs in zip(trained(step), expected, strict=True):
            assert cg.allclose(ours, theirs, rtol=1e-12)
    assert step.cache_info() == (6, 2, 0, 2)

    def slopes(a, b):
        return cg.stack(cg.autograd.grad((a * b).sum(), (a, b)))

    def slopes_of_new(a, b):
        new = a * 2
        return cg.stack(cg.autograd.grad((new * b).sum(), (new, b)))

    def slopes_of_one(a, b):
        return cg.stack(cg.autograd.grad((b * b).sum(), (a, b), materialize_grads=True))

    for function in (slopes, slopes_of_new, slopes_of_one):
        for order in "AAABCAD", "BBABACD", "DDABCAD":
            agree(function, *map(WEIGHTS.get, order))


def test_an_input_may_have_the_node_of_another_argument():
    for order in "DDABCD", "CCDABD":
        agree(lambda a, b: cg.autograd.grad((a * b).sum(), a)[0], *map(WEIGHTS.get, order))


def independent():
    x = X.clone().requires_grad_()
    return x * 2, x * x


def dependent():
    a = X.clone().requires_grad_() * 2
    return a, a * a


SINE_AND_COSINE = cg.compile(lambda x: (x.sin(), x.cos()))
WEIGHTS = {"A": independent, "B": dependent, "C": lambda: dependent()[::-1],
           "D": lambda: SINE_AND_COSINE(X.clone().requires_grad_())}


# ----- Views that may not be written -----
def multiplied(x, t):
    try:
        t.mul_(x)
    except RuntimeError:
        t = t * x
    return t * 1


VIEWS = [lambda w: w[0], lambda w: w.unbind()[0], lambda w: w.split(1)[0][0], lambda w: w.requires_grad_()[0]]


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("second", range(4))
def test_whether_a_view_may_be_written_is_part_of_its_kind(first, second):
    def call(number):
        return lambda: (cg.full((3,), 2.0, dtype=cg.float64, requires_grad=True), VIEWS[number](cg.ones(2, 3, dtype=cg.float64)))
    agree(multiplied, *map(call, (first, first, second, first, second)))


# ----- Objects -----
def test_attributes_of_an_ordered_dict_are_part_of_its_kind():
    def function(x, state):
        return x * state["w"] if state._metadata["version"] < 2 else x * state["w"] * 10

    def call(version):
        def make():
            state = collections.OrderedDict(w=X.clone())
            state._metadata = {"version": version}
            return X.clone(), state
        return make

    compiled = agree(function, *map(call, (1, 1, 2, 2, 1, 2)))
    assert compiled.cache_info().hits == 4


def test_an_ordered_dict_with_attributes_is_no_result():
    def function(x):
        state = collections.OrderedDict(w=x * 2)
        state.version = 3
        return state

    assert "returns a OrderedDict" in refusal(function, X)


# ----- Modules -----
def optional(x):
    try:
        import module_that_comes_later
    except ImportError:
        return x * 2
    return x * module_that_comes_later.factor


def test_a_module_that_is_not_there_may_come(monkeypatch):
    compiled = captured(optional)
    for _ in range(2):
        same(compiled(X), X * 2)
    module = types.ModuleType("module_that_comes_later")
    module.factor = 5.0
    monkeypatch.setitem(sys.modules, "module_that_comes_later", module)
    for _ in range(3):
        same(compiled(X), X * 5)


def test_a_function_that_is_looked_up_in_a_module_may_be_replaced(monkeypatch):
    compiled = captured(lambda x, name: getattr(cg.nn.functional, name)(x))
    for _ in range(2):
        same(compiled(X, "relu"), X.relu())
    replacement = cg.nn.functional.softplus
    monkeypatch.setattr(cg.nn.functional, "relu", replacement)
    for _ in range(3):
        same(compiled(X, "relu"), replacement(X))
    assert compiled.cache_info().hits == 3


@functools.lru_cache
def counted(number):
    return number + 1


@pytest.mark.parametrize("function", [
    lambda x: x * logging.getLogger("cygrad.test").hasHandlers(), lambda x: x * len(logging.getLevelName(15)),
    lambda x: x * len(tempfile.gettempdir()), lambda x: x * counted.cache_info().currsize,
])
def test_states_of_the_library_end_a_capture(function):
    assert "has another result each time" in refusal(function, X)


# ----- Code that a backward runs again -----
FACTOR = 1.0


def scaled_region(x):
    return (x * x).sin() * FACTOR


def test_a_region_that_is_computed_again_has_the_values_of_its_call(monkeypatch):
    compiled = captured(lambda x: checkpoint(scaled_region, x, use_reentrant=False, preserve_rng_state=False).sum())
    for _ in range(2):
        compiled(X.clone().requires_grad_()).backward()
    loss = compiled(X.clone().requires_grad_())
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    with pytest.raises(RuntimeError, match="FACTOR was changed between a call"):
        loss.backward()


FIRST_NUMBERS = """
import cygrad as cg
from cygrad.checkpoint import checkpoint
compiled = cg.compile(lambda x: checkpoint(cg.sin, x, use_reentrant=False).sum(), fullgraph=True)
for _ in range(3):
    compiled(cg.ones(3, requires_grad=True)).backward()
print(compiled.cache_info().hits)
"""


def test_the_generator_may_be_made_by_the_function():
    """Which is the first code of the process that reaches it."""
    run = subprocess.run([sys.executable, "-c", FIRST_NUMBERS], check=True, capture_output=True, text=True)
    assert run.stdout == "2\n"


# ----- Hooks that come after the call -----
def test_a_hook_on_a_result_that_another_one_is_computed_from_is_an_error():
    w = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64, requires_grad=True)

    def function(x):
        hidden = (x * w).tanh()
        return hidden.square().mean(), hidden, x + w

    def differentiated(call, number):
        w.grad = None
        results = call(X * 0.1)
        results[number].register_hook(lambda gradient: gradient * 2)
        sum(result.sum() for result in results).backward()
        return w.grad

    compiled = captured(function)
    compiled(X * 0.1)
    for number in (0, 2):
        assert cg.allclose(differentiated(compiled, number), differentiated(function, number))
    with pytest.raises(RuntimeError, match="a hook on a result of .*function.* gets a part of its gradient"):
        differentiated(compiled, 1)


# ----- Attributes of functions that the package has made -----
def of_compiled(function):
    return cg.compile(function)


def without_grad(function):
    return cg.no_grad()(function)


def of_func(function):
    return cg.func.vmap(function)


@pytest.mark.parametrize("kind", [of_compiled, without_grad, of_func])
def test_attributes_that_functions_of_the_package_get_later(kind):
    helper = kind(lambda x: x * 2)

    def function(x):
        return helper(x) * getattr(helper, "rate", 1.0)

    def count(x):
        helper.calls = getattr(helper, "calls", 0) + 1
        return helper(x) * helper.calls

    compiled = cg.compile(function)
    for rate in (None, None, 3.0, 5.0, 5.0):
        if rate is not None:
            helper.rate = rate
        same(compiled(X), function(X))
    compiled = cg.compile(count)
    for number in range(1, 6):
        same(compiled(X), X * 2 * number)


@pytest.mark.parametrize("kind", [of_compiled, without_grad, of_func])
def test_attributes_of_functions_of_the_package_by_computed_names(kind):
    helper = kind(lambda x: x * 2)
    helper._gain = helper._calls = 1.0

    def function(x, name="gain"):
        setattr(helper, "_" + "calls", getattr(helper, "_" + "calls") + 1)
        return helper(x) * getattr(helper, "_" + name)

    compiled = cg.compile(function)
    for number, gain in enumerate((2.0, 2.0, 5.0, 5.0)):
        helper._gain = gain
        same(compiled(X), X * 2 * gain)
        assert helper._calls == number + 2
    compiled = cg.compile(lambda x: x * getattr(helper, "slope", 1.0))
    for attributes, slope in (({}, 1.0), ({}, 1.0), ({"slope": 5.0}, 5.0), ({"slope": 3.0}, 3.0)):
        helper.__dict__ = {**helper.__dict__, **attributes} if kind is of_compiled else attributes
        same(compiled(X), X * slope)


# ----- Tables in which code looks for arguments -----
def scaled(factor, x):
    return x * factor


@dataclasses.dataclass
class Setting:
    name: str
    __hash__ = object.__hash__


@pytest.mark.parametrize("table", [dict, weakref.WeakKeyDictionary])
@pytest.mark.parametrize("make", [lambda: functools.partial(scaled, 1.0), lambda: Setting("a"), lambda: lambda: 1],
                         ids=["partial object", "dataclass", "function"])
def test_arguments_that_tables_tell_apart(make, table):
    arguments = [make() for _ in range(3)]
    known = table(zip(arguments, (2.0, 3.0), strict=False))
    compiled = cg.compile(lambda x, key: x * known.get(key, 1.0))
    for _ in range(2):
        for argument, factor in zip(arguments, (2.0, 3.0, 1.0), strict=True):
            same(compiled(X, argument), X * factor)


def test_functions_that_caches_tell_apart():
    @functools.cache
    def number(function):
        return float(number.cache_info().currsize)

    compiled = cg.compile(lambda x, function: x * number(function))
    for k in range(3):
        same(compiled(X, lambda: None), X * k)


# ----- Classes -----
def test_a_name_of_a_class_that_takes_the_place_of_another():
    class Plugin:
        def on_start(self, x):
            return x + 1

    plugin = Plugin()

    def function(x):
        try:
            hook = plugin.on_end
        except AttributeError:
            return x * 1
        return hook(x)

    compiled = cg.compile(function)
    for _ in range(2):
        same(compiled(X), X)
    Plugin.on_end = Plugin.on_start
    del Plugin.on_start
    for _ in range(2):
        same(compiled(X), X + 1)


@pytest.mark.parametrize("read", [lambda each: each.__getstate__(), lambda each: each.__reduce_ex__(2)[2],
                                  lambda each: {name: vars(each)[name] for name in each.__dir__() if name in vars(each)}])
def test_methods_of_all_objects_read_their_attributes(read):
    class Model:
        pass

    model = Model()
    model.rate = 2.0
    compiled = cg.compile(lambda x: x * sum(read(model).values()))
    for _ in range(2):
        same(compiled(X), X * 2)
    model.decay = 1.0
    same(compiled(X), X * 3)


def test_a_compiled_function_is_its_own_copy():
    compiled = cg.compile(lambda x: x * 2)
    compiled.rate = 3.0
    assert copy.copy(compiled) is compiled


@dataclasses.dataclass
class Decay:
    rate: float

    def derivative(self, x):
        return x * self.rate


@dataclasses.dataclass(frozen=True)
class Layer:
    activation: object


@pytest.mark.parametrize(("make", "lookup"), [
    (lambda: Decay(2.0).derivative, lambda key: key),
    (lambda: functools.partial(lambda x: x * 2.0), lambda key: key.func),
    (lambda: Layer(lambda x: x * 2.0), lambda key: key)], ids=["method", "function of a partial object", "function in a dataclass"])
def test_parts_of_arguments_that_tables_tell_apart(make, lookup):
    first, second = make(), make()
    known = {lookup(first): 5.0}
    compiled = cg.compile(lambda x, key: x * known.get(lookup(key), 1.0))
    for argument, factor in ((first, 5.0), (first, 5.0), (second, 1.0)):
        same(compiled(X, argument), X * factor)


@dataclasses.dataclass(frozen=True)
class Options:
    name: str

    def __hash__(self):
        return hash(self.name)


def test_arguments_that_no_table_tells_apart_share_a_program():
    steps = [functools.partial(scaled, 3.0), functools.partial(scaled, 2.0)]
    for make in (lambda: functools.partial(scaled, 0.5), lambda: Options("a")):
        compiled = captured(lambda x, key: functools.reduce(lambda value, step: step(value), steps, x))
        for _ in range(3):
            same(compiled(X, make()), X * 6)
        assert compiled.cache_info().hits == 2


def test_a_partial_object_of_a_callable_without_a_hash():
    @dataclasses.dataclass
    class Scale:
        factor: float

        def __call__(self, x):
            return x * self.factor

    known = {functools.partial(scaled, 1.0): 1}
    compiled = captured(lambda x, function: function(x) * len(known))
    for _ in range(3):
        same(compiled(X, functools.partial(Scale(2.0))), X * 2)
    assert compiled.cache_info().hits == 2


def test_the_name_of_a_wrapped_function():
    @cg.no_grad()
    def act(x):
        return x * 2

    compiled = cg.compile(lambda x: act(x) * (3.0 if act.__name__ == "special" else 1.0))
    for name in ("act", "act", "special", "special"):
        act.__name__ = name
        same(compiled(X), X * (6 if name == "special" else 2))
