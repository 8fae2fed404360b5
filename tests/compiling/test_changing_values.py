"""Values that replays must not keep from the capture: constants that are written, numbers in nodes, and marks of arguments."""

import collections
import dataclasses
import functools
import importlib
import operator
import random
import sys
import warnings

import numpy as np
import pytest

import cygrad as cg
from capturing import X, captured, same

NAN = float("nan")


def plain(value):
    """Return a result as values that `==` compares to the bit."""
    if isinstance(value, cg.Tensor):
        return type(value), str(value.dtype), value.detach().numpy().tobytes()
    return [*map(plain, value)] if isinstance(value, (list, tuple)) else value


def agrees(make):
    """Compare programs of several calls: `make(compile)` runs one with a decorator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert plain(make(cg.compile)) == plain(make(lambda function: function))


# ----- Constants -----
MAKERS = {
    "tensor": lambda x: cg.tensor([1., 2., 3.], dtype=cg.float64),
    "as_tensor": lambda x: cg.as_tensor([1., 2., 3.], dtype=cg.float64),
    "new_tensor": lambda x: x.new_tensor([1., 2., 3.]),
    "linspace": lambda x: cg.linspace(0, 1, 3, dtype=cg.float64),
    "logspace": lambda x: cg.logspace(0, 1, 3, dtype=cg.float64),
    "arange": lambda x: cg.arange(3.0, dtype=cg.float64),
    "window": lambda x: cg.hann_window(3, dtype=cg.float64),
    "an array": lambda x: cg.tensor(np.ones(3)),
    "a leaf": lambda x: cg.tensor([1., 2., 3.], dtype=cg.float64, requires_grad=True).detach(),
    "read before": lambda x: (lambda c: (c * x, c)[1])(cg.tensor([1., 2., 3.], dtype=cg.float64)),
}
WRITES = {
    "add_": lambda c, x: c.add_(x),
    "mul_": lambda c, x: c.mul_(2.0),
    "part": lambda c, x: c[1:].add_(x[1:]),
    "item": lambda c, x: operator.setitem(c, 1, x[0]),
    "mask": lambda c, x: operator.setitem(c, x > 1.5, 7.0),
    "places": lambda c, x: operator.setitem(c, cg.tensor([0, 2]), x[:2]),
    "index_add_": lambda c, x: c.index_add_(0, cg.tensor([0, 0]), x[:2]),
    "scatter_": lambda c, x: c.scatter_(0, cg.tensor([1]), x[:1]),
    "out": lambda c, x: cg.add(c, x, out=c),
    "data": lambda c, x: c.data.add_(x),
    "detach": lambda c, x: c.detach().add_(x),
    "copy_": lambda c, x: c[:2].copy_(x[1:]),
    "masked_fill_": lambda c, x: c.masked_fill_(x > 1.5, 7.0),
    "cumsum_": lambda c, x: c.cumsum_(0),
    "sort": lambda c, x: cg.sort(c + x, out=(c, cg.empty(3, dtype=cg.int64))),
    "twice": lambda c, x: (c.add_(x), c.mul_(x)),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("write", WRITES)
def test_a_constant_that_is_written_is_another_one_in_each_replay(maker, write):
    def function(x):
        constant = MAKERS[maker](x)
        WRITES[write](constant, x)
        return constant * 1, constant.sum()

    def program(decorator):
        compiled = decorator(function)
        return [compiled(X * number) for number in range(1, 5)]

    agrees(program)


def test_a_descent_from_a_constant():
    def fit(target):
        w = cg.tensor([0., 0., 0.], dtype=cg.float64, requires_grad=True)
        for _ in range(3):
            gradient, = cg.autograd.grad(((w - target) ** 2).sum(), w)
            with cg.no_grad():
                w -= 0.1 * gradient
        return w.detach() * 1

    compiled = captured(fit)
    for number in range(4):
        same(compiled(X * number), fit(X * number))
    assert compiled.cache_info().hits == 3


def test_constants_that_are_written_in_loops_and_backwards():
    def step(carry, x):
        constant = cg.tensor([1., 2., 3.], dtype=cg.float64).add_(carry * 0.1)
        return constant * 0.1, constant.sum() * x

    steps = cg.arange(100., dtype=cg.float64)
    carry, results = X, []
    for each in steps:
        carry, result = step(carry, each)
        results.append(result)
    ours, ys = cg.func.scan(step, X, steps)
    same(ours, carry)
    same(ys, cg.stack(results))

    class Tripled(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            constant = cg.tensor([1.], dtype=cg.float64)
            constant += 2
            return gradient * constant

    compiled = captured(Tripled.apply)
    for _ in range(4):
        x = X.clone().requires_grad_()
        compiled(x).sum().backward()
        same(x.grad, cg.full_like(X, 3.0))


# ----- Numbers that are tensors -----
ONES = cg.ones(2, 2, dtype=cg.float64)
OF_NUMBERS = {
    "norm": lambda x, q: x.norm(q),
    "vector_norm": lambda x, q: cg.linalg.vector_norm(x, q),
    "linalg.norm": lambda x, q: cg.linalg.norm(x[0], q),
    "dist": lambda x, q: cg.dist(x, x * x, q),
    "cdist": lambda x, q: cg.cdist(x, x * x, q),
    "pairwise_distance": lambda x, q: cg.nn.functional.pairwise_distance(x, x * x, q),
    "normalize": lambda x, q: cg.nn.functional.normalize(x, q),
    "index_add": lambda x, q: x.index_add(0, cg.tensor([0, 1]), x, alpha=q),
    "rsub": lambda x, q: cg.rsub(x, x * x, alpha=q),
    "addmm": lambda x, q: cg.addmm(x, x, x, beta=q),
    "addmv": lambda x, q: cg.addmv(x[0], x, x[1], alpha=q),
    "addr": lambda x, q: cg.addr(x, x[0], x[1], beta=q, alpha=q),
    "baddbmm": lambda x, q: cg.baddbmm(x[None], x[None], x[None], beta=q, alpha=q),
    "add": lambda x, q: cg.add(x, x * x, alpha=q),
    "lerp": lambda x, q: cg.lerp(x, x * x, q),
    "pow": lambda x, q: x ** q,
    "clamp": lambda x, q: x.clamp(max=q) * x,
    "softplus": lambda x, q: cg.nn.functional.softplus(x, q),
    "leaky_relu": lambda x, q: cg.nn.functional.leaky_relu(x - 1.2, q),
    "addcmul": lambda x, q: cg.addcmul(x, x, x, value=q),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_number_in_a_tensor_is_read_at_each_call(name):
    def program(decorator):
        compiled, results = decorator(OF_NUMBERS[name]), []
        for number in (1.0, 1.0, 2.0, 3.0, 1.0):
            x = (ONES * cg.tensor([1.0, 1.5], dtype=cg.float64)).requires_grad_()
            try:
                y = compiled(x, cg.tensor(number, dtype=cg.float64))
                y.sum().backward()
                results += [y, x.grad]
            except (TypeError, RuntimeError) as error:      # it takes no tensor there
                results.append(type(error).__name__)
        return results

    agrees(program)


# ----- Arguments and values from outside -----
class Point(collections.namedtuple("Point", "x")):
    __slots__ = ()
    rate = 2.0


@dataclasses.dataclass(eq=False)
class Item:
    v: int = 1


def with_class_of_named_tuple(decorator):
    f, results = decorator(lambda point: point.x * point.rate), []
    for Point.rate in (2.0, 2.0, 3.0, 3.0, 2.0):
        results.append(f(Point(X)))
    return results


def with_factory(decorator):
    rates = {"r": 2.0}
    f, results = decorator(lambda table: table["x"] * table.default_factory()), []
    for rates["r"] in (2.0, 2.0, 3.0, 3.0, 2.0):
        results.append(f(collections.defaultdict(lambda: rates["r"], x=X)))
    return results


def of_calls(function, *values):
    """Return a program of a call for each of some values, twice."""
    def program(decorator):
        f = decorator(function)
        return [f(X, value() if callable(value) else value) for value in (*values, *values)]

    return program


def with_keys(decorator):
    a, b = cg.ones(1), cg.ones(1)
    known, rates = {a}, {a: 2.0}
    f = decorator(lambda p: p * rates.get(p, 7.0) if p in known else p * 3)
    return [f(p) for p in (b, b, a, a, b, cg.ones(1))]


def with_hook_after_accumulation(decorator):
    w, results = cg.ones(1, requires_grad=True), []

    def step(leaf):
        with cg.no_grad():
            leaf -= 0.1 * leaf.grad
        leaf.grad = None

    def f(x):
        (w * x).sum().backward()
        return x * 1

    f = decorator(f)
    for number in range(5):
        if number == 3:
            w.register_post_accumulate_grad_hook(step)
        f(cg.ones(1))
        results += [w.detach().clone(), w.grad is None]
    return results


def with_places(decorator):
    base = cg.arange(6.0)
    f = decorator(lambda x: x.as_strided((2,), (1,), 0) * 1)
    return [f(base[number:number + 3]) for number in (0, 0, 1, 2)]


def with_shared_arrays(decorator):
    def function(x, y, i):
        row = x[i]
        y.mul_(2)
        return row * 1

    f, results = decorator(function), []
    for number in range(6):
        values = np.arange(4.0)
        other = values if number > 2 else values.copy()
        results.append(f(cg.from_numpy(values), cg.from_numpy(other), cg.tensor(number % 4)))
    return results


def with_partial_of_c(decorator):
    random.seed(0)
    draw = functools.partial(random.random)
    f = decorator(lambda x: x * draw())
    return [f(X) for _ in range(4)]


def by_attribute(x):
    import sys
    system = sys
    return x * system.rate


def by_name(x):
    from importlib import rate
    return x * rate


def of_library(module, function):
    """Return a program that changes `module.rate` between calls of a function."""
    def program(decorator):
        f, results = decorator(function), []
        for module.rate in (2.0, 2.0, 3.0, 2.0):
            results.append(f(X))
        del module.rate
        return results

    return program


def with_overriding_containers(decorator):
    class Empty(dict):
        def __bool__(self):
            return False

    class Rounded(list):
        def __getitem__(self, place):
            return round(list.__getitem__(self, place))

    table, numbers = Empty(r=2.0), Rounded([2.1])
    f = decorator(lambda x: x * table["r"] + sum(numbers))
    results = []
    for rate, number in ((2.0, 2.1), (2.0, 2.1), (3.0, 2.1), (3.0, 2.2)):
        dict.__setitem__(table, "r", rate)
        numbers[0] = number
        results.append(f(X))
    return results


def with_addresses(decorator):
    f = decorator(lambda a, b: a * 10 + b if operator.lt(*map(id, (a, b))) else a * 100 + b)
    tensors = [cg.tensor([float(number)]) for number in range(4)]
    # Compare with a plain call each time: another run has tensors at other places.
    return [plain(f(a, b)) == plain(a * 10 + b if id(a) < id(b) else a * 100 + b) for a in tensors for b in tensors if a is not b]


def with_anomaly_mode(decorator):
    def function(x):
        cg.autograd.set_detect_anomaly(True)
        return x * 2

    f, results = decorator(function), []
    for _ in range(3):
        f(X)
        results.append(cg.is_anomaly_enabled())
        cg.autograd.set_detect_anomaly(False)
    return results


ROOT, KNOWN = Item(), [Item()]
PROGRAMS = {
    "class of a named tuple": with_class_of_named_tuple,
    "factory of a defaultdict": with_factory,
    "ranges": of_calls(lambda x, r: x * r.stop, range(0, 3, 2), range(0, 4, 2)),
    "units of time": of_calls(lambda x, d: x * 2 if d > np.timedelta64(1, "m") else x * 3, np.timedelta64(1, "D"), np.timedelta64(1, "s")),
    "objects without ==": of_calls(lambda x, item: x * 2 if item == ROOT else x * 3, lambda: ROOT, Item),
    "objects in a list": of_calls(lambda x, item: x * 2 if item in KNOWN else x * 3, lambda: KNOWN[0], Item),
    "sign of nan": of_calls(lambda x, v: x * float(np.copysign(1.0, v)), NAN, -NAN),
    "sign of zero": of_calls(lambda x, v: x * float(np.copysign(1.0, v)), 0.0, -0.0),
    "keys of sets and dicts": with_keys,
    "hook after accumulation": with_hook_after_accumulation,
    "places in memory": with_places,
    "arrays that share memory": with_shared_arrays,
    "partial of a function in C": with_partial_of_c,
    "attribute of a library": of_library(sys, by_attribute),
    "name of a library": of_library(importlib, by_name),
    "containers that override methods": with_overriding_containers,
    "addresses": with_addresses,
    "anomaly mode": with_anomaly_mode,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_change_between_calls_is_seen(name):
    agrees(PROGRAMS[name])


# ----- Results -----
class Number(int):
    """A number with attributes."""


class Special(cg.Tensor):
    """A tensor of a class of the user."""


def number_with_list(x):
    number = Number(3)
    number.log = []
    return number


def in_inference_mode(x):
    with cg.inference_mode():
        return x * 2


def one_list_twice(x):
    items = [x * 2]
    return items, items


# Functions, and a look at each result.
RESULTS = {
    "one list twice": (one_list_twice, lambda pair: (pair[0].append(1), len(pair[1]))),
    "a number with attributes": (number_with_list, lambda number: (number.log.append(1), len(number.log))),
    "keys with tensors": (lambda x: {(x * 2,): 1}, lambda table: [key[0] for key in table]),
    "a subclass": (lambda x: (x * 2).as_subclass(Special), lambda result: type(result).__name__),
    "of inference mode": (in_inference_mode, lambda result: result.is_inference()),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_like_the_first_one(name):
    function, seen = RESULTS[name]

    def program(decorator):
        compiled = decorator(function)
        return [seen(compiled(X * number)) for number in range(4)]

    agrees(program)


LOOPS = {
    "a power of a float": lambda i, c: c * 0.9 + 0.5 ** i,
    "pow()": lambda i, c: c * 0.9 + pow(2.0, -i),
    "full": lambda i, c: c * 0.9 + cg.full((3,), i),
    "arange": lambda i, c: c * 0.9 + cg.arange(i + 1).sum(),
    "linspace": lambda i, c: c * 0.9 + cg.linspace(0, i, 3),
    "a complex number": lambda i, c: c * 0.9 + (1j * i).imag,
    "a remainder": lambda i, c: c * 0.9 + i % 3,
    "an item of a list": lambda i, c: c * 0.9 + [1.0, 2.0, 3.0][i % 3],
}


@pytest.mark.parametrize("name", LOOPS)
def test_bodies_of_loops_may_use_the_number_as_an_int(name):
    expected = X
    for number in range(70):
        expected = LOOPS[name](number, expected)
    same(cg.func.fori_loop(0, 70, LOOPS[name], X), expected)
    same(captured(lambda x: cg.func.fori_loop(0, 70, LOOPS[name], x))(X), expected)
