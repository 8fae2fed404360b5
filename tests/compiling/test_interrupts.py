"""Captures that are interrupted, or within which a signal arrives: modes of the thread are as before, and nothing is lost."""

import contextlib
import signal
import sys
import time

import pytest

import cygrad as cg
from capturing import captured
from cygrad._core.capture.restoring import restoring
from cygrad._core.graph.notes import is_noting
from cygrad._core.levels.level import active_levels
from cygrad._core.levels.overrides import _overrides_off
from cygrad.compiling import captures, reruns
from cygrad.compiling.observing import Observation
from cygrad.func import loop_levels


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


def once_interrupted(function, number=1):
    """Return a function that is interrupted at a call, before its work, and the list of its calls."""
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == number:
            interrupt()
        return function(*arguments)

    return interrupted, calls


def test_the_end_of_a_block_is_not_lost_by_an_interrupt():
    kinds = []
    for begins in (None, list):
        end, calls = once_interrupted(kinds.append)
        with pytest.raises(KeyboardInterrupt), restoring(end, begins):
            pass
        assert calls == [(None,)] * 2 and kinds.pop() is None
    begin, _ = once_interrupted(list)
    with pytest.raises(KeyboardInterrupt), restoring(kinds.append, begin):
        pytest.fail("it has not begun")
    assert kinds == [KeyboardInterrupt]
    with pytest.raises(ZeroDivisionError), restoring(lambda kind: 1 // 0):
        pass
    with restoring(kinds.append, lambda: "result") as result:
        assert result == "result"
    assert kinds == [KeyboardInterrupt, None]


@pytest.mark.parametrize(("name", "number"), [("put_back", 1), ("put_back", 2), ("go_back", 1), ("go_back", 2), ("go_back", 3),
                                             ("end_notes", 1), ("set_default_dtype", 1)])
def test_an_interrupted_run_besides_the_call_is_undone(monkeypatch, name, number):
    """A second value of a float has the function run once more, from the state before the call."""
    function, weight, noise = captured(descend), cg.ones(3), cg.Generator().manual_seed(1)
    function(weight, 0.5, noise)
    other, same_noise = weight.clone(), cg.Generator().manual_seed(1)
    same_noise.set_state(noise.get_state())
    descend(other, 0.25, same_noise)
    interrupted, calls = once_interrupted(getattr(captures, name), number)
    monkeypatch.setattr(captures, name, interrupted)
    with contextlib.suppress(KeyboardInterrupt):        # not where the function has had its call
        function(weight, 0.25, noise)
    monkeypatch.undo()
    assert len(calls) >= number and weight.equal(other) and noise.get_state().equal(same_noise.get_state())
    assert (cg.is_grad_enabled(), sys.getprofile(), is_noting(), _overrides_off()) == (True, None, False, 0)


def descend(weight, rate, noise):
    weight.sub_(cg.randn(3, generator=noise).mul_(rate))
    return weight.sum()


RATES = {"scale": 2.0}


def test_a_first_call_within_a_handler_is_guarded():
    """So is the code of a handler that the function itself calls."""
    results = []

    def handler(*_):
        results.append(scaled(cg.ones(1)).item())

    def called(number, frame):
        return RATES["scale"]

    scaled, by_handler = captured(lambda x: x * RATES["scale"]), captured(lambda x: x * called(signal.SIGALRM, None))
    before = {number: signal.signal(number, each) for number, each in ((signal.SIGUSR1, handler), (signal.SIGUSR2, called))}
    try:
        for scale in (2.0, 5.0, 2.0):
            RATES["scale"] = scale
            signal.raise_signal(signal.SIGUSR1)
            assert by_handler(cg.ones(1)).item() == scale
    finally:
        for number, each in before.items():
            signal.signal(number, each)
    assert results == [2.0, 5.0, 2.0]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(("where", "name"), [(reruns, "_ask_modes"), (reruns, "_set_overrides_off"), (reruns, "set_default_dtype"),
                                             (loop_levels, "resume_level"), (loop_levels, "exit_level")])
def test_an_interrupted_run_for_a_backward_leaves_no_mode(monkeypatch, where, name, number):
    """Of a loop whose level has ended, and of a captured call."""
    weight = cg.eye(3).requires_grad_()
    compiled = captured(lambda x: (x @ weight).sin())
    interrupted, calls = once_interrupted(getattr(where, name), number)
    for _ in range(2):
        results = [compiled(cg.ones(2, 3)), cg.func.vmap(lambda c: cg.func.scan(lambda c, x: (c.sin() @ weight, None), c, length=520)[0])(
            cg.ones(2, 3))]
        monkeypatch.setattr(where, name, interrupted)
        for result in results:
            with contextlib.suppress(KeyboardInterrupt):
                cg.autograd.grad(result.sum(), weight, create_graph=True)
        monkeypatch.undo()
        assert (cg.is_grad_enabled(), is_noting(), _overrides_off(), active_levels()) == (True, False, 0, ())
    if where is reruns:
        assert len(calls) >= number
