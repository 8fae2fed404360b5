"""Loops whose step is made anew each time: it has one program by its code, whose inputs are the values that it names."""

import gc
import weakref
from types import ModuleType

import numpy as np
import pytest

import cygrad as cg
from cygrad import func
from cygrad.compiling import captures
from cygrad.func import fori_loop, scan, while_loop
from test_loops import in_python

pytestmark = pytest.mark.usefixtures("usual_sizes")
COUNT = 80


def tensor(*values, requires_grad=True):
    return cg.tensor(values, dtype=cg.float64, requires_grad=requires_grad)


@pytest.fixture
def captured(monkeypatch):
    """Count the captures, in a list."""
    ran, run = [], captures.Capture.run

    def counted(self, *arguments, **keywords):
        ran.append(self.owner)
        return run(self, *arguments, **keywords)

    monkeypatch.setattr(captures.Capture, "run", counted)
    return ran


def of_tensors(k, w, b):
    return lambda c, x: ((c * w + b).tanh(), None)


def of_floats(k, w, b):
    rate = 0.01 * k + 0.5
    return lambda c, x: ((c * w).tanh() * rate + b, c * rate)


def of_defaults(k, w, b):
    def step(c, x, w=w, scale=0.3 + k):
        return (c * w).sin() * scale, c + b
    return step


def of_tuples(k, w, b):
    parameters = w, (b, 0.5 + k)
    return lambda c, x: ((c * parameters[0] + parameters[1][0]).tanh() * parameters[1][1], None)


def of_functions(k, w, b):
    def cell(c):
        return (c * w + b).tanh()
    return lambda c, x: (cell(c) * 0.9, cell(c).sum())


def of_integers(k, w, b):
    power = k % 2 + 1
    return lambda c, x: ((c * w).tanh() + b ** power, None)


def of_objects(k, w, b):
    table = {"w": w, "rates": [0.5, k]}
    return lambda c, x: ((c * table["w"]).tanh() * table["rates"][0] + b * table["rates"][1], None)


def of_counters(k, w, b):
    count = 0

    def step(c, x):
        nonlocal count
        count += 1
        return (c * w + b).tanh(), None
    return step


def of_methods(k, w, b):
    class Cell:
        def __call__(self, c, x):
            return (c * w + b).tanh(), None
    return Cell()


# A maker of steps, and how many captures 8 loops have at most.
MAKERS = {"tensors": (of_tensors, 2), "floats": (of_floats, 4), "defaults": (of_defaults, 4), "tuples": (of_tuples, 4),
          "functions": (of_functions, 2), "integers": (of_integers, 4), "objects": (of_objects, 99), "counters": (of_counters, 99),
          "an object that is called": (of_methods, 99)}


@pytest.mark.parametrize("name", MAKERS)
def test_a_step_that_is_made_anew_has_one_program(name, captured):
    make, most = MAKERS[name]
    for k in range(8):
        seen = []
        for by in (scan, in_python):
            w, b, c = tensor(0.3 + 0.1 * k, -0.4), tensor(0.1, 0.2), tensor(0.5, 0.6)
            last, ys = by(make(k, w, b), c, length=COUNT)
            result = last.sum() if ys is None else last.sum() + ys.sum()
            seen.append([result, *cg.autograd.grad(result, (w, b, c))])
        for ours, theirs in zip(*seen, strict=True):
            np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
    assert len(captured) <= most


def with_attributes():
    def state():
        pass

    def helper(c):
        state.n += 1
        return c * 0.5 + state.n

    state.n = 0
    return lambda c, x: (helper(c), None), lambda: state.n


def with_a_callback():
    count = 0

    def bump(*, by=1):
        nonlocal count
        count += by

    def step(c, x):
        bump()
        return c * 0.5 + float(count), None

    return step, lambda: count


def with_a_class():
    count = 0

    class Counter:
        @staticmethod
        def bump():
            nonlocal count
            count += 1
            return count

    return lambda c, x: (c * 0.5 + float(Counter.bump()), None), lambda: count


def with_identity():
    def helper(c):
        return c * 0.5

    rates = {helper: 0.25}

    def rate_of(function):
        return rates[function]

    return lambda c, x: (helper(c) + rate_of(helper), None), lambda: len(rates)


def with_a_method():
    seen = []
    add = seen.append

    def step(c, x):
        add(1)
        return c * 0.5 + len(seen), None

    return step, lambda: len(seen)


@pytest.mark.parametrize("make", [with_attributes, with_a_callback, with_a_class, with_identity, with_a_method])
def test_steps_that_change_values_or_ask_for_identity_are_the_user_s_functions(make):
    seen = []
    for by in (scan, in_python):
        step, state = make()
        c = tensor(0.5)
        last = by(step, c, length=COUNT)[0]
        seen.append((last.tolist(), cg.autograd.grad(last.sum(), c)[0].tolist(), state()))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("kind", ["carry", "all", "twice"])
def test_variables_may_be_rebound_before_the_backward(kind):
    """The gradients are of the values that the step had; floats, too."""
    for k in range(4):
        seen = []
        for by in (scan, in_python):
            w, rate, c = tensor(0.4, 0.2 + 0.1 * k), 0.3 + 0.1 * k, tensor(0.5, 0.6)
            first, start = w, c
            last, ys = by(lambda c, x: ((c * w).tanh() * rate, c.sin() * w), c, length=COUNT)      # noqa: B023
            w, rate, c = tensor(7.0, 8.0), 9.0, tensor(1.0, 1.0)
            result = last.sum() if kind == "carry" else last.sum() + ys.sum()
            gradients = cg.autograd.grad(result, (first, start), create_graph=kind == "twice")
            if kind == "twice":
                gradients += cg.autograd.grad(sum((each ** 2).sum() for each in gradients), (first, start))
            seen.append(gradients)
        for ours, theirs in zip(*seen, strict=True):
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("wrap", [lambda f: f, cg.compile, func.vmap], ids=["eager", "compiled", "vmap"])
def test_a_body_may_be_rebound_before_the_backward(wrap):
    """Where some results only have gradients, the step is run again."""
    def run(loop):
        def function(x, w):
            c = w
            y, z = loop(lambda i, s: ((s[0] * c).tanh() + i * 0.001, s[1] * 0.5), (x, x * 1))
            c = w.detach()
            return y, z
        return function

    def in_order(body, carry):
        for number in range(600):
            carry = body(number, carry)
        return carry

    function = wrap(run(lambda body, carry: fori_loop(0, 600, body, carry)))
    for _ in range(3):
        seen = []
        for each in (function, run(in_order)):
            x, w = tensor(0.5, 0.6), tensor(0.7, 0.8)
            seen.append(cg.autograd.grad(each(x, w)[0].sum(), (x, w)))
        for ours, theirs in zip(*seen, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_more_kinds_than_programs_start_over(captured):
    """The programs of a code are forgotten where there are 16: the loop stays one."""
    def run(size, w):
        return scan(lambda c, x: ((c * w).tanh(), None), cg.full((size,), 0.5, dtype=cg.float64), length=COUNT)[0]

    w = tensor(0.9)
    expected = in_python(lambda c, x: ((c * w).tanh(), None), tensor(0.5), length=COUNT)[0].item()
    for _ in range(2):
        for size in range(1, 30):
            assert run(size, w).tolist() == [expected] * size
    before = len(captured)
    for _ in range(5):
        run(29, w)
    assert len(captured) == before


def test_while_loops_of_local_functions(captured):
    for k in range(6):
        limit, w = tensor(30.0 + k), tensor(1.0 + k)
        last = while_loop(lambda c: c.sum() < limit.sum(), lambda c: c + 0.1 * w, tensor(0.0))      # noqa: B023
        gradient, = cg.autograd.grad(last.sum(), w)
        expected = tensor(0.0)
        while expected.sum() < limit.sum():
            expected = expected + 0.1 * w
        assert (last.tolist(), gradient.tolist()) == (expected.tolist(), cg.autograd.grad(expected.sum(), w)[0].tolist())
    assert len(captured) <= 4


@pytest.mark.parametrize("transform", [lambda f: f, func.grad, func.vmap, lambda f: func.vmap(func.grad(f)), cg.compile])
def test_local_steps_in_transforms(transform):
    def loss(by):
        def run(c):
            w = c * 0.5 + 0.1
            return by(lambda c, x: ((c * w).tanh() + 0.2, None), c, length=600)[0].sum()
        return run

    c = tensor(0.1, 0.4) if transform is func.vmap or "vmap" in str(transform.__code__.co_names) else tensor(0.3).sum().detach()
    for _ in range(2):
        np.testing.assert_allclose(transform(loss(scan))(c).detach().numpy(), transform(loss(in_python))(c).detach().numpy(), rtol=1e-12)


def test_programs_of_codes_keep_no_values():
    class Model:
        pass

    def run():
        w, model = tensor(0.5), Model()
        model.w, module = w, ModuleType("module")
        module.w = w

        def cell(c: cg.Tensor):
            return (c * w).tanh()

        class Cell:
            call = staticmethod(lambda c: (c * w).tanh())

        for function in (cell, Cell.call, lambda c: (c * module.w).tanh()):
            scan(lambda c, x, function=function: (function(c), None), tensor(0.1), length=COUNT)[0].sum().backward()
        scan(lambda c, x: ((c * w).tanh(), None), tensor(0.1), length=COUNT)[0].sum().backward()
        scan(lambda c, x: ((c * model.w).tanh(), None), tensor(0.1), length=COUNT)[0].sum().backward()
        return [weakref.ref(each) for each in (w, model, module, cell, Cell)]

    for _ in range(3):
        references = run()
        gc.collect()
        assert [reference() for reference in references] == [None] * 5
