"""The reference documents' sentences on grad modes, inference mode and anomaly mode, where no other test asserts them."""

import threading
import warnings
import weakref

import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import Function


def decorated(mode):
    @mode
    def double(tensor):
        return tensor * 2

    return double


# ----- no_grad, enable_grad, set_grad_enabled -----


def test_no_grad_keeps_no_intermediate_results(x):
    def intermediate(mode):
        with mode:
            y = x * 2
            z = y * y
        return weakref.ref(y), z

    reference, root = intermediate(cg.enable_grad())
    assert reference() is not None
    root.sum().backward()
    assert intermediate(cg.no_grad())[0]() is None


OPERATIONS = {
    "element by element": lambda x: x * x + 1,
    "reduction": lambda x: x.sum(),
    "matrix product": lambda x: x @ x,
    "selection": lambda x: x[x > 1],
    "joined": lambda x: cg.stack([x, x]),
    "Function": lambda x: Copy.apply(x),
    "random": lambda x: x * cg.rand(2),
}


class Copy(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_result_in_no_grad_needs_no_gradient(x, name):
    assert OPERATIONS[name](x).requires_grad
    with cg.no_grad():
        y = OPERATIONS[name](x)
    assert not y.requires_grad
    assert y.grad_fn is None
    assert x.requires_grad


@pytest.mark.parametrize("disable", [cg.no_grad, lambda: cg.set_grad_enabled(False)])
def test_enable_grad_enables_recording_inside_of_no_grad(x, disable):
    with disable():
        with cg.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad


MODES = {
    "no_grad": (cg.no_grad, False),
    "enable_grad": (cg.enable_grad, True),
    "set_grad_enabled(False)": (lambda: cg.set_grad_enabled(False), False),
}


@pytest.mark.parametrize("name", MODES)
def test_a_mode_is_of_its_thread_alone(x, name):
    seen = []
    with MODES[name][0]():
        thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        thread.start()
        thread.join()
        assert (x * 2).requires_grad is MODES[name][1]
    assert seen == [True]


@pytest.mark.parametrize("name", MODES)
def test_a_mode_is_a_decorator_with_parentheses(x, name):
    double = decorated(MODES[name][0]())
    for around in (cg.no_grad, cg.enable_grad):
        with around():
            assert double(x).requires_grad is MODES[name][1]


def test_set_grad_enabled_goes_by_its_argument(x):
    for mode in (True, False):
        with cg.set_grad_enabled(mode):
            assert (x * 2).requires_grad is mode
        assert (x * 2).requires_grad
    try:
        cg.set_grad_enabled(False)
        assert not (x * 2).requires_grad
    finally:
        cg.set_grad_enabled(True)
    assert (x * 2).requires_grad


# ----- inference_mode -----


def test_inference_mode_enables_or_disables_itself(x):
    with autograd.inference_mode():
        y = x * 2
        assert cg.is_inference_mode_enabled()
    assert y.is_inference()
    assert not y.requires_grad
    with cg.inference_mode(True), cg.inference_mode(False):
        z = x * 2
    assert z.requires_grad
    assert not z.is_inference()
    assert not cg.is_inference_mode_enabled()


def test_inference_mode_is_a_decorator_and_of_its_thread(x):
    assert not decorated(cg.inference_mode())(x).requires_grad
    seen = []
    with cg.inference_mode():
        thread = threading.Thread(target=lambda: seen.append(cg.is_inference_mode_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_inference_tensors_stay_out_of_the_graph(x):
    with cg.inference_mode():
        y = cg.ones(2)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"):
        y.requires_grad_()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        y.add_(1)


# ----- Anomaly mode -----


class Fails(Function):
    """The identity, whose backward raises."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise KeyError("in backward")


def the_guilty_line(x):
    return Fails.apply(x)


def forward_traces(caught):
    return [str(warning.message) for warning in caught if "Traceback of forward call that caused the error" in str(warning.message)]


def test_anomaly_mode_shows_where_the_failing_operator_was_called(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with autograd.detect_anomaly(), pytest.raises(KeyError, match="in backward"):
            the_guilty_line(x).sum().backward()
    (trace,) = forward_traces(caught)
    assert "Error detected in FailsBackward" in trace
    assert "the_guilty_line" in trace
    assert "return Fails.apply(x)" in trace


def test_without_anomaly_mode_no_trace_is_shown(x, recwarn):
    with pytest.raises(KeyError, match="in backward"):
        the_guilty_line(x).sum().backward()
    assert not recwarn


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_anomaly_mode_makes_nan_in_backward_an_error():
    x = cg.tensor([0.0, 1.0], requires_grad=True)
    root = (x.sqrt() * 0).sum()
    root.backward(retain_graph=True)
    assert x.grad.isnan().tolist() == [True, False]
    x.grad = None
    with autograd.detect_anomaly(), pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
        root.backward(retain_graph=True)
    assert x.grad is None
    with autograd.detect_anomaly(check_nan=False):
        root.backward()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_detect_anomaly_holds_until_the_end_of_its_block():
    assert not cg.is_anomaly_enabled()
    with pytest.raises(KeyError), autograd.detect_anomaly():
        assert cg.is_anomaly_enabled()
        assert cg.is_anomaly_check_nan_enabled()
        raise KeyError
    assert not cg.is_anomaly_enabled()


def test_detect_anomaly_warns_that_it_is_for_debugging():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled. This mode will increase the runtime and should only"):
        autograd.detect_anomaly()


@pytest.mark.parametrize("mode", [True, False])
def test_set_detect_anomaly_is_a_function_and_a_context_manager(mode):
    for around in (True, False):
        try:
            autograd.set_detect_anomaly(around)
            assert cg.is_anomaly_enabled() is around
            with autograd.set_detect_anomaly(mode):
                assert cg.is_anomaly_enabled() is mode
            assert cg.is_anomaly_enabled() is around
        finally:
            autograd.set_detect_anomaly(False)


@pytest.mark.filterwarnings("ignore:Error detected in")
def test_set_detect_anomaly_detects_the_same_as_detect_anomaly():
    x = cg.zeros(1, requires_grad=True)
    with autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="returned nan values"):
        (x.sqrt() * 0).sum().backward()
    with autograd.set_detect_anomaly(False):
        (x.sqrt() * 0).sum().backward()
