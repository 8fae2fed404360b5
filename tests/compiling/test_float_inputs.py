"""Floats among the arguments: from the second value on they are inputs of a program, or guarded by value; results are the function's."""

import copy
import itertools
import math
import operator
import random
import re
import statistics
import struct

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured
from cygrad.autograd import grad
from cygrad.compiling import captures
from samples import array_of, same_bits

VALUES = (0.1, 0.7, 0.2, -1.5, 1e300, 2.0, 0.0, -0.0, math.inf, math.nan, 0.25)


def gradient(x, r):
    x = x.clone().requires_grad_()
    return grad(((x * r).sin() / (r + 3)).sum(), x)[0]


def gradient_of_a_multiple(x, r):
    x = x.clone().requires_grad_()
    return grad(x.add(x * x, alpha=r).lerp(x.sin(), r).sum(), x)[0]


def euler(x, r):
    for _ in range(3):
        x = x + r / 3 * (2 * x - 1)
    return x


def changed(x, r):
    y = x.clone()
    y *= r
    y[1:] -= r
    return y


def by_default(x, r=0.5, *, rates=(1.0, 2.0)):
    return x * r + rates[1]


class Scaled(cg.autograd.Function):
    @staticmethod
    def forward(ctx, x, rate):
        ctx.rate = rate
        return x * rate

    @staticmethod
    def backward(ctx, g):
        return g * ctx.rate, None


# Functions whose floats are inputs, and how many ways lead through each for the values above.
FOLLOWED = {
    "operators": (lambda x, r: 2 * x / r - (r - x) * r, 1),
    "gradient": (gradient, 1),
    "loop": (euler, 1),
    "in place": (changed, 1),
    "numbers": (lambda x, r: x * (2 * r - 3 + r * r - (-r)) + abs(r), 1),
    "kind": (lambda x, r: x * r if isinstance(r, float) and not isinstance(r, cg.Tensor) else x, 1),
    "0-d float32": (lambda x, r: x.float().sum() * r + x.float() * r, 1),
    "complex": (lambda x, r: (x * (1 + 2j)) * r - r, 1),
    "mask": (lambda x, r: cg.where(x > r, x, x * r), 1),
    "function of the user": (lambda x, r: Scaled.apply(x, r), 1),
    "batch": (lambda x, r: cg.func.vmap(lambda row: row * r)(x), 1),
    "branch": (lambda x, r: x + r if r > 0.5 else x - r, 2),
    "extremum": (lambda x, r: x * max(r, 0.15), 2),
    "choice": (lambda x, r: x * r if r != "auto" and r is not None else x, 1),
    "default": (lambda x, r: by_default(x, r), 1),
    "multiple": (lambda x, r: x.add(x, alpha=r).sub_(x[0], alpha=-r), 1),
    "multiple of float32": (lambda x, r: x.float().add_(x.float(), alpha=r), 1),
    "products": (lambda x, r: x.addcmul(x, x + 1, value=r).addcdiv_(x, x - 5, value=1 - r), 1),
    "interpolation": (lambda x, r: x.lerp(x * x, r).lerp_(x, weight=1 - r), 1),
    "gradient of a multiple": (gradient_of_a_multiple, 1),
    "power": (lambda x, r: x ** r, 1),
    "power of a number": (lambda x, r: x * (r ** 2 + abs(r) ** 0.5), 1),
    "exponential": (lambda x, r: x * 2.0 ** min(r, 9.0), 2),
    "remainder": (lambda x, r: x * (r % 0.3 + r // 2.0), 1),
    "parameter": (lambda x, r: x.clamp(r, 5.0), 1),
    "recorded bounds": (lambda x, r: grad((y := x.clone().requires_grad_()).clamp(max=r).mul(y).sum(), y)[0], 1),
    "recorded choices": (lambda x, r: grad(cg.where((y := x.clone().requires_grad_()) > r, r, y).mul(y).sum(), y)[0], 1),
    "choices": (lambda x, r: cg.where(x > r, r, x), 1),
    "fill": (lambda x, r: x.clone().fill_(r), 1),
    "multiple of another dtype": (lambda x, r: x.add(x.float(), alpha=r), 1),
    "half": (lambda x, r: x.half() * r, 1),
    "integers": (lambda x, r: x * (cg.arange(3) * r) - cg.tensor([True, False, True]) * r, 1),
    "result": (lambda x, r: (x * r, r), 1),
    "tensor": (lambda x, r: x * cg.tensor(+r) - cg.tensor(r, dtype=cg.float32), 1),
    "computed result": (lambda x, r: {"loss": x * r, "rate": r * 2}, 1),
}
# Functions that read their floats, or compute otherwise with a tensor than with a float.
BY_VALUE = {
    "math": lambda x, r: x * math.atan(r),
    "NumPy": lambda x, r: x * np.cos(r / (1 + r * r)),
    "array": lambda x, r: x * cg.tensor([r, r], dtype=cg.float64)[0],
    "tensor of integers": lambda x, r: x * cg.tensor(r, dtype=cg.int64),
    "recorded product": lambda x, r: x.clone().requires_grad_().addcmul(x, x + 1, value=r).detach(),
    "factory": lambda x, r: x + cg.full((3,), r),
    "text": lambda x, r: x * len(f"{r}"),
    "format": lambda x, r: x * len("%.3f" % r),        # noqa: UP031
    "key of a dict": lambda x, r: x * {0.1: 2.0, 0.7: 3.0}.get(r, 4.0),
    "type": lambda x, r: x * (abs(r) if type(r) is float else r),
    "library": lambda x, r: x * len(repr(statistics.fmean([r, 2.0]))),
    "copy": lambda x, r: x * copy.copy([r])[0].conjugate(),
    "exception": lambda x, r: x * (r.as_integer_ratio()[0] % 7 if math.isfinite(r) else 1),
}


def outcome(function, *arguments):
    try:
        results = function(*arguments)
    except (ZeroDivisionError, RuntimeError, OverflowError, TypeError) as error:
        return type(error), str(error)
    items = results.values() if isinstance(results, dict) else results if isinstance(results, tuple) else (results,)
    return [array_of(item) if isinstance(item, cg.Tensor) else (type(item), repr(item)) for item in items]


def equal(ours, theirs):
    """Return True if two outcomes are equal to the bit; a NaN has no sign, since which one of two NaNs a sum has is open."""
    return type(ours) is type(theirs) and len(ours) == len(theirs) and all(
        same_bits(a, b) if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else a == b for a, b in zip(ours, theirs, strict=True))


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")      # by floats of NumPy
@pytest.mark.parametrize("kind", [float, np.float64])
@pytest.mark.parametrize("name", FOLLOWED)
def test_a_second_value_makes_a_float_an_input(name, kind):
    function, ways = FOLLOWED[name]
    compiled = captured(function)
    for value in map(kind, VALUES):
        assert equal(outcome(compiled, X, value), outcome(function, X, value)), value
    assert compiled.cache_info().misses <= 2 * ways and compiled.cache_info().hits >= len(VALUES) - 3 * ways


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("name", BY_VALUE)
def test_other_floats_are_guarded_by_value(name):
    function = BY_VALUE[name]
    compiled = cg.compile(function)
    for value in (*VALUES, *VALUES):
        assert equal(outcome(compiled, X, value), outcome(function, X, value)), value
    assert compiled.cache_info().misses == compiled.cache_info().currsize > 7


SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, 1e-300)


@pytest.mark.parametrize("compute", [operator.pow, operator.floordiv, operator.mod])
def test_powers_and_remainders_of_floats_have_pythons_bits(compute):
    stream = random.Random(7)
    compiled = captured(lambda x, a, b: (x, compute(a, b)))
    for a, b in [(2.0, 3.0), (1.5, 2.5), *itertools.product(SPECIAL, SPECIAL),
                 *((math.ldexp(stream.uniform(-1, 1), stream.randint(-1070, 1020)), stream.uniform(-9, 9)) for _ in range(500))]:
        try:
            expected = compute(a, b)
        except (ZeroDivisionError, OverflowError) as error:
            with pytest.raises(type(error), match=re.escape(str(error))):
                compiled(X, a, b)
        else:
            if isinstance(expected, float):
                assert struct.pack("d", compiled(X, a, b)[1]) == struct.pack("d", expected) or math.isnan(expected)
    assert compiled.cache_info().misses == 2


def test_a_division_by_zero_raises():
    compiled = captured(lambda x, r: x * (1 / r))
    for value in (1.0, 2.0, 3.0):
        compiled(X, value)
    with pytest.raises(ZeroDivisionError):
        compiled(X, 0.0)
    assert compiled(X, 4.0).tolist() == (X * 0.25).tolist() and compiled.cache_info().misses == 2


class State:
    """Tensors that functions of a float change, and a generator that they draw from."""

    def __init__(self):
        self.total, self.leaf = cg.zeros(3, dtype=cg.float64), X.clone().requires_grad_()
        self.moment, self.generator = cg.zeros(3), cg.Generator()
        self.generator.manual_seed(3)
        cg.manual_seed(3)

    def values(self):
        return [None if each is None else each.tolist() for each in (self.total, self.leaf, self.moment, self.leaf.grad)]


def added(state, x, r):
    state.total.add_(r)
    return x * r


def drawn(state, x, r):
    return x * r + cg.rand(3, dtype=cg.float64)


def drawn_elsewhere(state, x, r):
    return x * r + cg.rand(3, dtype=cg.float64, generator=state.generator)


def accumulated(state, x, r):
    (state.leaf * x * r).sum().backward()
    return x * r


def trained(state, x, r):
    state.leaf.grad = None
    loss = (state.leaf * x).sin().sum() + cg.nn.functional.dropout(state.leaf, 0.5).sum()
    loss.backward()
    with cg.no_grad():
        state.moment.lerp_(state.leaf.grad.float(), 0.1)
        state.leaf.addcdiv_(state.moment.double(), state.leaf.grad + 3, value=-r)
    return loss


def returned(state, x, r):
    state.total.data[1:].mul_(r)
    return state.total.mul_(0.5).sub_(x, alpha=r), x - r


def penalized(state, x, r):
    points = x.detach().requires_grad_()
    slope, = grad((points * state.leaf).exp().sum(), points, create_graph=True)
    (slope.square().sum() * r).backward()
    return slope.detach() - r


def restored(state, x, r):
    before = state.total.clone()
    state.total += r
    if state.total.sum() > 3:
        state.total.copy_(before)
    return x + r


@pytest.mark.parametrize("function", [added, drawn, drawn_elsewhere, accumulated, trained, returned, penalized, restored])
def test_floats_are_inputs_where_a_function_changes_something(function):
    runs = []
    for make in (captured, lambda function: function):
        state = State()
        call = make(lambda x, r, state=state: function(state, x, r))
        runs.append([(outcome(call, X, r), state.values()) for r in (*VALUES[:4], 0.3, 0.9, 0.8)])
        if make is captured:
            assert call.cache_info().misses <= 4 and call.cache_info().hits >= 3, call.cache_info()
    for (ours, state), (theirs, expected) in zip(*runs, strict=True):
        assert equal(ours, theirs) and state == expected


def test_versions_of_changed_tensors_count_one_call():
    state = State()
    call = captured(lambda x, r: added(state, x, r))
    for k, r in enumerate((1.0, 2.0, 3.0, 4.0), 1):
        call(X, r)
        assert state.total._version == k and state.total.tolist() == [k * (k + 1) / 2] * 3


@pytest.mark.filterwarnings("ignore:compile")
def test_a_change_that_differs_for_an_input_leaves_the_float_a_value():
    state = State()

    def function(x, r):
        kind = getattr(r, "kind", None)         # None for a float
        state.total.add_(1 if kind is None else 2)
        return x * r

    call = cg.compile(function)
    for k, r in enumerate((1.0, 2.0, 3.0, 3.0), 1):
        call(X, r)
        assert state.total.tolist() == [k] * 3
    assert call.cache_info()[:2] == (1, 3)


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("function, later", [
    (lambda x, r: x * r, "inputs"), (lambda x, r: x * math.sin(r), "a program for each value: .*a number, which Python reads"),
    (lambda x, r: (x.clone().requires_grad_() ** r).detach(), "a program for each value: .*a number, which pow.. reads"),
    (lambda x, r: x * r if type(r) is float else x, "a program for each value: its code names type")])
def test_explain_says_how_floats_are_followed(function, later):
    compiled = cg.compile(function)
    assert compiled.explain(X, 0.5).endswith("\nfloats: by value, and inputs from the second value on")
    compiled(X, 0.7)
    assert re.search(f"\nfloats: {later}", compiled.explain(X, 0.9))


def test_floats_are_guarded_where_that_is_asked_for():
    compiled = captured(lambda x, r: x * r, dynamic=False)
    for value in VALUES[:5]:
        compiled(X, value)
    assert compiled.cache_info().misses == 5


def test_floats_in_containers_and_keywords():
    compiled = captured(lambda x, *, options: x * options["rates"][0] - options["shift"])
    for k in range(5):
        options = {"rates": [k + 0.5, "name"], "shift": 0.1 * k}
        assert compiled(X, options=options).tolist() == (X * (k + 0.5) - 0.1 * k).tolist()
    assert compiled.cache_info()[:2] == (3, 2)


def both_derivatives(call, x, r):
    first, = grad(call(x, r), x, create_graph=True)
    return first.detach(), grad(first.sum(), x)[0], grad(call(x, r), x)[0]


def test_derivatives_of_every_order():
    compiled = captured(lambda x, r: (x ** 3 * r / (r + 1)).sum())
    for value in VALUES[:4]:
        x = X.clone().requires_grad_()
        assert equal(outcome(both_derivatives, compiled, x, value), outcome(both_derivatives, compiled._function, x, value))


OPERATIONS = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: -a, lambda a, b: abs(a),
              lambda a, b: a if isinstance(a, float) else a.sin(), lambda a, b: b if isinstance(a, float) and a > 0.5 else a,
              lambda a, b: a if isinstance(a, float) else a.sum(), lambda a, b: a + 2, lambda a, b: 3 / b, lambda a, b: a * 1.5,
              lambda a, b: a.clone().mul_(b).sub_(0.5) if isinstance(a, cg.Tensor) and isinstance(b, float) else a,
              lambda a, b: cg.where(a.real > b, a, b * a) if isinstance(a, cg.Tensor) and isinstance(b, float) else b,
              lambda a, b: a ** 2, lambda a, b: a % 0.7 - b // 2 if isinstance(a, float) and isinstance(b, float) else a,
              lambda a, b: a.real.clamp(max=b) if isinstance(a, cg.Tensor) and isinstance(b, float) else a]


class Program:
    """A function at random of three tensors and two floats."""

    def __init__(self, seed):
        stream = random.Random(seed)
        self.dtypes = [stream.choice([cg.float32, cg.float64, cg.complex64, cg.complex128]) for _ in range(2)]
        self.steps = [(stream.choice(OPERATIONS), stream.randrange(4 + k), stream.randrange(4 + k)) for k in range(10)]

    def __call__(self, x, r, s):
        values = [(x * 0.5).to(self.dtypes[0]), x.sum().to(self.dtypes[1]), r, s]
        for operation, a, b in self.steps:
            values.append(operation(values[a], values[b]))
        return tuple(values)


def with_gradient(function, x, r, s):
    results = function(x.requires_grad_(), r, s)
    tensors = [result for result in results if isinstance(result, cg.Tensor)]
    return (*(result.detach() if isinstance(result, cg.Tensor) else result for result in results),
            grad(sum(result.abs().sum() for result in tensors), x)[0])


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.cases("first", range(0, 200, 50))
def test_functions_at_random(first):
    replays = 0
    with np.errstate(all="ignore"):
        for seed in range(first, first + 50):
            function, stream = Program(seed), random.Random(seed)
            compiled, kinds = cg.compile(function), stream.choices([float, np.float64], k=2)
            for k in range(6):
                r, s = (kind(stream.choice([stream.uniform(-2, 2), *VALUES])) for kind in kinds)
                assert equal(*(outcome(with_gradient, call, X * (k + 1), r, s) for call in (compiled, function))), (seed, k)
            replays += compiled.cache_info().hits
    assert replays > 80


def test_a_cache_may_be_cleared_while_a_float_becomes_an_input(monkeypatch):
    """As by another thread."""
    function, run_again = cg.compile(lambda x, rate: x * rate), captures.Capture.run_again

    def cleared(self, *arguments, **keywords):
        function.cache_clear()
        return run_again(self, *arguments, **keywords)

    monkeypatch.setattr(captures.Capture, "run_again", cleared)
    for rate in (0.5, 1.5, 2.5, 3.5):
        assert function(cg.ones(1), rate).tolist() == [rate]


@pytest.mark.parametrize("function", [
    lambda x, s: x + s if isinstance(s, cg.Tensor) else x * s,
    lambda x, s: cg.tensor([1, 2]) * s,
    lambda x, s: (x, s + 0.5),
    lambda x, s: (s.__imul__(2) if isinstance(s, cg.Tensor) else s, x * s)[1],
], ids=["a question", "of integers", "returned", "in place"])
@pytest.mark.parametrize("is_tensor", [(True, False, False, True), (False, False, False, True, True, False)])
def test_a_float_and_a_tensor_have_programs_of_their_own(function, is_tensor):
    compiled = captured(function)
    for number, each in enumerate(is_tensor):
        ours, theirs = (cg.tensor(0.5 + number, dtype=cg.float64) if each else 0.5 + number for _ in range(2))
        assert equal(outcome(compiled, X, ours), outcome(function, X, theirs)) and repr(ours) == repr(theirs)
