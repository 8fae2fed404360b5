"""Anomaly mode: names of failed nodes, tracebacks of the calls that made them and their parents; NaN; switching and nesting."""

import threading
import warnings

import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import Function, detect_anomaly, set_detect_anomaly

ENABLED = "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."


@pytest.fixture(autouse=True)
def switched_off_again():
    yield
    assert not cg.is_anomaly_enabled()
    cg.set_anomaly_enabled(False)


class Fails(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise KeyError("mine")


def fails():
    x = cg.tensor([0.25], requires_grad=True)
    y = Fails.apply(x)  # the user's line
    y.sum().backward()


def gives_nan():
    x = cg.tensor([-1.0], requires_grad=True)
    y = x.sqrt()  # the user's line
    y.backward()


def hook_fails():
    x = cg.tensor([-1.0], requires_grad=True)
    y = x * 2  # the user's line
    y.register_hook(lambda gradient: {}["mine"])
    y.backward()


def is_changed():
    x = cg.tensor([-1.0], requires_grad=True)
    y = x.exp()  # the user's line
    y.mul_(2)
    y.backward()


FAILURES = {
    "user's function": (fails, KeyError, "mine", "FailsBackward"),
    "nan": (gives_nan, RuntimeError, r"Function 'SqrtBackward0' returned nan values in its 0th output\.", "SqrtBackward0"),
    "hook": (hook_fails, KeyError, "mine", "MulBackward0"),
    "changed in place": (is_changed, RuntimeError, "modified by an inplace operation: .* version 1; expected version 0", "ExpBackward0"),
}


def warnings_of(function, error, message):
    """Call a function that fails and return the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(error, match=message):
            function()
    assert {warning.category for warning in caught} <= {UserWarning}
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("name", list(FAILURES))
def test_a_failure_shows_where_its_node_was_made(name):
    function, error, message, node = FAILURES[name]
    with set_detect_anomaly(True):
        (text,) = warnings_of(function, error, message)
    head, *traceback = text.splitlines()
    assert head == f"Error detected in {node}. Traceback of forward call that caused the error:"
    assert f"in {function.__name__}" in traceback[-2]
    assert "# the user's line" in traceback[-1]
    assert not any("cygrad/autograd/" in line for line in traceback)


@pytest.mark.parametrize("name", list(FAILURES))
def test_without_the_mode_there_is_no_warning(name):
    function, error, message, _ = FAILURES[name]
    if name == "nan":
        gives_nan()
    else:
        assert warnings_of(function, error, message) == []


def test_a_graph_made_before_the_mode_has_no_traceback():
    x = cg.tensor([-1.0], requires_grad=True)
    y = x.sqrt()
    with set_detect_anomaly(True):
        texts = warnings_of(y.backward, RuntimeError, "SqrtBackward0")
    assert texts == ["Error detected in SqrtBackward0. No forward pass information available. Enable detect anomaly during forward "
                     "pass for more information."]


def test_a_backward_after_the_mode_is_not_watched():
    x = cg.tensor([-1.0], requires_grad=True)
    with set_detect_anomaly(True):
        y = x.sqrt()
    y.backward()
    assert x.grad.isnan().all()


def test_double_backward_shows_both_calls():
    def first():
        x = cg.tensor([0.0], requires_grad=True)
        y = x**1.5  # the first call
        (gradient,) = autograd.grad(y, x, create_graph=True)  # the second call
        assert gradient.grad_fn.metadata["parent_"] is y.grad_fn
        autograd.grad(gradient * 0, x)

    with set_detect_anomaly(True):
        second, induced = warnings_of(first, RuntimeError, "returned nan values")
    assert second.splitlines()[-1].endswith("# the second call")
    assert induced.startswith("\n\nPrevious calculation was induced by PowBackward0. Traceback of forward call that induced the previous")
    assert induced.splitlines()[-1].endswith("# the first call")


def test_the_traceback_is_in_the_metadata():
    x = cg.ones(1, requires_grad=True)
    with set_detect_anomaly(True):
        node = (x * 2).grad_fn
    assert node.metadata["traceback_"][-1].splitlines()[-1].strip() == "node = (x * 2).grad_fn"
    assert (x * 2).grad_fn.metadata == {}


NAN = cg.tensor([float("nan")])
UNNOTICED = {
    "weight of a leaf": lambda x: x.backward(NAN),
    "value, not gradient": lambda x: (x * NAN).sum().detach(),
    "gradient that is not asked for": lambda x: (x * 1).sum().backward(),
}


@pytest.mark.parametrize("name", list(UNNOTICED))
def test_nan_that_no_node_returned(name):
    with set_detect_anomaly(True):
        UNNOTICED[name](cg.ones(1, requires_grad=True))


def test_nan_of_a_hook_is_its_nodes():
    def function():
        x = cg.ones(1, requires_grad=True)
        y = x * x
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0], inputs[1] * NAN))
        y.backward()

    with set_detect_anomaly(True):
        assert len(warnings_of(function, RuntimeError, "Function 'MulBackward0' returned nan values in its 1th output")) == 1


def test_without_check_nan_nan_passes():
    with set_detect_anomaly(True, check_nan=False):
        gives_nan()


def test_detect_anomaly_warns_of_itself():
    with pytest.warns(UserWarning, match=ENABLED), detect_anomaly(check_nan=False):
        assert (cg.is_anomaly_enabled(), cg.is_anomaly_check_nan_enabled()) == (True, False)
    assert (cg.is_anomaly_enabled(), cg.is_anomaly_check_nan_enabled()) == (False, True)


def test_modes_nest_and_survive_exceptions():
    states = []
    with set_detect_anomaly(True):
        with set_detect_anomaly(False):
            states.append(cg.is_anomaly_enabled())
        states.append(cg.is_anomaly_enabled())
        with pytest.raises(KeyError), set_detect_anomaly(True, False):
            raise KeyError
        states.append(cg.is_anomaly_check_nan_enabled())
    assert states == [False, True, True]


def test_the_function_form_lasts():
    set_detect_anomaly(True)
    assert cg.is_anomaly_enabled()
    set_detect_anomaly(False)


def test_the_mode_is_of_all_threads():
    seen = []
    with set_detect_anomaly(True):
        thread = threading.Thread(target=lambda: seen.append(cg.is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_modes_are_bools(wrong):
    with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool, not"):
        set_detect_anomaly(wrong)
    with pytest.raises(TypeError, match=r"argument 'check_nan' \(position 2\) must be bool, not"):
        set_detect_anomaly(False, wrong)


def test_the_error_comes_out_where_warnings_are_errors(capsys):
    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError, match="mine"):
            fails()
    assert "Error detected in FailsBackward" in capsys.readouterr().err
