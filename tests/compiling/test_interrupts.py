"""Captures that are interrupted, or within which a signal arrives: modes of the thread are as before, and nothing is lost."""

import contextlib
import gc
import signal
import sys
import time

import pytest

import cygrad as cg
from capturing import captured
from cygrad._core.graph.notes import is_noting
from cygrad._core.levels.overrides import _overrides_off
from cygrad.compiling.observing import Observation
from cygrad.compiling.reruns import as_in_a_call


def training_step(w, x):
    loss = ((w * x).sin() ** 2).sum()
    gradient, = cg.autograd.grad(loss, w)
    with cg.no_grad():
        w -= 0.1 * gradient
        with cg.enable_grad():
            x = x * 2
    return loss.detach() + x.sum()


def weights():
    return cg.tensor([0.5, 0.6], requires_grad=True), cg.tensor([1.0, 2.0])


@pytest.fixture
def at_event(monkeypatch):
    """Return a function that has another one called at an event of the hook, by number, before or after the hook's own work."""
    hook = Observation.hook

    def call_at(number, function, is_before):
        seen = 0

        def counted(self, *arguments):
            nonlocal seen
            seen += 1
            if seen == number and is_before:
                function()
            hook(self, *arguments)
            if seen == number and not is_before:
                function()

        monkeypatch.setattr(Observation, "hook", counted)
        return lambda: seen >= number

    return call_at


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")     # of one in a generator that Python closes
@pytest.mark.parametrize("is_before", [True, False])
def test_an_interrupted_capture_leaves_no_mode(at_event, is_before):
    number, is_met = 0, True
    while is_met:
        number += 1 if number < 60 else 7
        has_met = at_event(number, interrupt, is_before)
        with contextlib.suppress(KeyboardInterrupt):
            cg.compile(training_step)(*weights())
        assert (cg.is_grad_enabled(), sys.getprofile(), is_noting(), _overrides_off()) == (True, None, False, 0), number
        is_met = has_met()
    assert number > 25
    at_event(0, interrupt, is_before)       # never
    function = captured(training_step)
    assert [function(*weights()).item() for _ in range(3)] == [training_step(*weights()).item()] * 3


def chain(x):
    for _ in range(500):
        x = (x * 1.1).sin()
    return x.sum()


def test_handlers_of_signals_run_and_are_no_part_of_the_function():
    """They come between any two instructions, in the backward of the capture, too, where no code of the user may change a value."""
    called = []

    def handler(*_):
        called.append(1)

    before, x = signal.signal(signal.SIGALRM, handler), cg.ones(3, requires_grad=True)
    try:
        for number in range(15):
            function, count = captured(chain), len(called)
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0018 * number)
            assert function(x).item() == function(x).item()
            while len(called) == count:
                time.sleep(0.0005)
            assert len(called) == number + 1 and function.cache_info().hits == 1
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_interrupted_backward_leaves_no_mode_for_later(monkeypatch):
    """Not when the traceback is freed, either."""
    function = captured(lambda x: (x * 2).sin().sum())
    leaves = [cg.ones(2, requires_grad=True) for _ in range(2)]
    results = [function(leaf) for leaf in leaves]
    monkeypatch.setattr(as_in_a_call, "__exit__", lambda *_: interrupt())
    try:
        cg.autograd.grad(results[1], leaves[1], create_graph=True)
    except KeyboardInterrupt as error:
        assert cg.is_grad_enabled() and error.__traceback__
    else:
        pytest.fail("the backward does not run the function again")
    gc.collect()
    assert cg.is_grad_enabled() and _overrides_off() == 0
