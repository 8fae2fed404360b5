"""no_grad, enable_grad and set_grad_enabled: as context manager, decorator and function; nested, with errors and threads."""

import asyncio
import inspect
import threading

import pytest

import cygrad as cg


@pytest.fixture(autouse=True)
def enabled_before_and_after():
    assert cg.is_grad_enabled()
    yield
    enabled = cg.is_grad_enabled()
    cg.set_grad_enabled(True)
    assert enabled


@pytest.fixture
def x():
    return cg.ones(2, requires_grad=True)


MODES = {
    "no_grad": (cg.no_grad, False),
    "enable_grad": (cg.enable_grad, True),
    "set_grad_enabled(False)": (lambda: cg.set_grad_enabled(False), False),
    "set_grad_enabled(True)": (lambda: cg.set_grad_enabled(True), True),
}
SWITCHES = list(MODES)


@pytest.mark.parametrize("outer", SWITCHES)
@pytest.mark.parametrize("inner", SWITCHES)
def test_nesting_as_context_managers(x, outer, inner):
    with MODES[outer][0]():
        assert cg.is_grad_enabled() is MODES[outer][1]
        with MODES[inner][0]():
            assert cg.is_grad_enabled() is MODES[inner][1]
            assert (x * 2).requires_grad is MODES[inner][1]
        assert cg.is_grad_enabled() is MODES[outer][1]
        assert (x * 2).requires_grad is MODES[outer][1]
    assert cg.is_grad_enabled()
    assert (x * 2).requires_grad


@pytest.mark.parametrize("name", SWITCHES)
def test_an_exception_restores_the_mode(name):
    with pytest.raises(KeyError), MODES[name][0]():
        raise KeyError
    assert cg.is_grad_enabled()


@pytest.mark.parametrize("name", SWITCHES)
def test_one_object_may_be_entered_again(name):
    make, enabled = MODES[name]
    mode = make()
    for _ in range(2):
        with mode:
            assert cg.is_grad_enabled() is enabled
        cg.set_grad_enabled(True)


def test_set_grad_enabled_acts_when_called():
    cg.set_grad_enabled(False)
    assert not cg.is_grad_enabled()
    cg.set_grad_enabled(True)
    assert cg.is_grad_enabled()
    with cg.set_grad_enabled(False):
        assert not cg.is_grad_enabled()
    assert cg.is_grad_enabled()


DECORATORS = {
    "no_grad()": (lambda: cg.no_grad(), False),
    "no_grad": (lambda: cg.no_grad, False),
    "enable_grad()": (lambda: cg.enable_grad(), True),
    "enable_grad": (lambda: cg.enable_grad, True),
}


@pytest.mark.parametrize("name", list(DECORATORS))
def test_as_decorator(x, name):
    make, enabled = DECORATORS[name]

    @make()
    def function(tensor, *, factor=2):
        """The docstring."""
        if factor is None:
            raise KeyError
        return tensor * factor, cg.is_grad_enabled()

    for outside in (True, False):
        with cg.set_grad_enabled(outside):
            product, inside = function(x, factor=3)
            assert inside is enabled
            assert product.tolist() == [3, 3]
            assert product.requires_grad is enabled
            with pytest.raises(KeyError):
                function(x, factor=None)
            assert cg.is_grad_enabled() is outside
    assert function.__name__ == "function"
    assert function.__doc__ == "The docstring."


def test_set_grad_enabled_as_decorator(x):
    @cg.set_grad_enabled(False)
    def function(tensor):
        return tensor * 2

    assert cg.is_grad_enabled()
    assert not function(x).requires_grad


def test_a_decorated_method(x):
    class Model:
        @cg.no_grad()
        def double(self, tensor):
            return tensor * 2

    assert not Model().double(x).requires_grad
    assert cg.is_grad_enabled()


def test_a_decorated_recursive_function():
    @cg.no_grad()
    def depth(n):
        assert not cg.is_grad_enabled()
        return n if n == 0 else depth(n - 1)

    depth(5)
    assert cg.is_grad_enabled()


def test_a_decorated_generator_has_the_mode_inside_and_leaves_it_alone_outside():
    @cg.no_grad()
    def generator():
        assert not cg.is_grad_enabled()
        received = yield cg.is_grad_enabled()
        assert received == "sent"
        try:
            yield cg.is_grad_enabled()
        except KeyError:
            yield cg.is_grad_enabled()
        return "returned"

    assert inspect.isgeneratorfunction(generator)
    running = generator()
    assert next(running) is False
    assert cg.is_grad_enabled()
    assert running.send("sent") is False
    assert cg.is_grad_enabled()
    assert running.throw(KeyError()) is False
    assert cg.is_grad_enabled()
    with pytest.raises(StopIteration, match="returned"):
        next(running)
    assert cg.is_grad_enabled()


def test_a_decorated_generator_may_be_closed():
    closed = []

    @cg.no_grad()
    def generator():
        try:
            yield 1
        finally:
            closed.append(cg.is_grad_enabled())

    running = generator()
    next(running)
    running.close()
    assert closed == [False]
    assert cg.is_grad_enabled()


def test_a_with_block_in_a_coroutine_ends_with_it():
    async def work():
        with cg.no_grad():
            return cg.is_grad_enabled()

    assert asyncio.run(work()) is False


@pytest.mark.parametrize("name", SWITCHES)
def test_threads_start_enabled_and_do_not_see_each_other(name):
    seen = {}
    inside, finished = threading.Event(), threading.Event()

    def other():
        seen["at start"] = cg.is_grad_enabled()
        cg.set_grad_enabled(False)
        inside.set()
        finished.wait(10)
        seen["at end"] = cg.is_grad_enabled()

    with MODES[name][0]():
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(10)
        assert cg.is_grad_enabled() is MODES[name][1]
        with cg.enable_grad():
            finished.set()
            thread.join()
    assert seen == {"at start": True, "at end": False}


def test_leaves_made_without_grad_record_afterwards():
    with cg.no_grad():
        x = cg.ones(2, requires_grad=True)
        y = x * 2
        z = x.detach().requires_grad_()
    assert x.requires_grad
    assert z.requires_grad
    assert not y.requires_grad
    assert y.is_leaf
    assert (x * z).requires_grad


def test_in_place_changes_of_a_leaf_are_allowed_without_grad(x):
    with cg.no_grad():
        x -= 0.5
        x[0] = 3
        x.mul_(2)
    assert x.tolist() == [6, 1]
    assert x.requires_grad
    assert x.is_leaf


def test_backward_runs_without_grad(x):
    y = (x * x).sum()
    with cg.no_grad():
        y.backward()
    assert x.grad.tolist() == [2, 2]


def test_backward_leaves_the_mode_alone(x):
    for enabled in (True, False):
        y = (x * x).sum()
        with cg.set_grad_enabled(enabled):
            cg.autograd.grad(y, x, retain_graph=True)
            assert cg.is_grad_enabled() is enabled
            cg.autograd.grad(y, x, create_graph=True)
            assert cg.is_grad_enabled() is enabled


def test_create_graph_records_even_within_no_grad(x):
    y = (x * x * x).sum()
    with cg.no_grad():
        (gradient,) = cg.autograd.grad(y, x, create_graph=True)
    assert gradient.requires_grad
    assert cg.autograd.grad(gradient.sum(), x)[0].tolist() == [6, 6]


BAD = [
    (lambda: cg.set_grad_enabled("yes"), TypeError),
    (lambda: cg.set_grad_enabled(), TypeError),
    (lambda: cg.no_grad(1, 2), TypeError),
]


@pytest.mark.parametrize(("call", "error"), BAD)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


def test_autograd_has_the_same_names():
    for name in ("no_grad", "enable_grad", "set_grad_enabled"):
        assert getattr(cg.autograd, name) is getattr(cg, name)


@pytest.mark.parametrize("decorator", [cg.no_grad, cg.no_grad(), cg.enable_grad, cg.set_grad_enabled(True), cg.inference_mode])
def test_decorating_a_class_warns_and_holds_for_its_constructor(decorator):
    class Model:
        def __init__(self, x):
            self.enabled, self.inference = cg.is_grad_enabled(), cg.is_inference_mode_enabled()

    with pytest.warns(FutureWarning, match="Decorating classes is deprecated.*directly decorate the `__init__` method"):
        decorated = decorator(Model)
    model = decorated(1)
    assert isinstance(model, Model)
    assert (model.enabled, model.inference) == (decorator in (cg.enable_grad,) or isinstance(decorator, cg.set_grad_enabled),
                                                decorator is cg.inference_mode)  # fmt: skip
