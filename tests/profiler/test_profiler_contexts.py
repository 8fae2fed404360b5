"""The profiler's contexts: their arguments and misuse, named ranges, ranges for other tools."""

import logging
import sys
import threading
import warnings
from types import SimpleNamespace

import pytest

import cygrad as cg
from cygrad._core.levels.observers import current_observer
from cygrad.autograd import profiler
from cygrad.autograd.profiler import emit_itt, emit_nvtx, load_nvprof, profile, record_function

EVALUATE = "autograd::engine::evaluate_function: "


@pytest.fixture(autouse=True)
def nothing_observed():
    yield
    assert current_observer() is None


def names(prof):
    return [event.name for event in prof.function_events]


def the(prof, name):
    event, = (event for event in prof.function_events if event.name == name)
    return event


def in_thread(function):
    """Run a function in another thread and return its result, or raise its exception."""
    outcome = []

    def work():
        try:
            outcome.append((function(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


# ----- Arguments -----
def test_arguments_of_both_releases():
    by_position = profile(True, False, True, True, True, True, False, True)
    by_name = profile(enabled=True, use_cuda=False, use_device=None, record_shapes=True, with_flops=True, profile_memory=True,
                      with_stack=True, with_modules=False, use_kineto=False, use_cpu=True, experimental_config=None, acc_events=False,
                      custom_trace_id_callback=None, post_processing_timeout_s=None, activity_filters=None)
    for prof in (by_position, by_name):
        with prof:
            cg.ones(2) * 2
        event = the(prof, "aten::mul")
        assert event.input_shapes == [[2], []] and event.flops == 2 and event.cpu_memory_usage == 8 and event.stack


@pytest.mark.parametrize("keywords, error, message", [
    ({"use_cpu": False}, AssertionError, "Device-only events supported only with Kineto"),
    ({"use_cpu": False, "use_kineto": True}, AssertionError, "No activities specified for the profiler"),
    ({"experimental_config": object()}, ValueError, "Kineto"),
    ({"activity_filters": {"CPU": {"x"}}}, ValueError, "Kineto"),
    ({"post_processing_timeout_s": -1}, ValueError, "post_processing_timeout_s must be non-negative"),
    ({"wrong": 1}, TypeError, "unexpected keyword argument 'wrong'"),
])
def test_refused_arguments(keywords, error, message):
    with pytest.raises(error, match=message):
        profile(**keywords)


@pytest.mark.parametrize("keywords", [{"use_kineto": True}, {"with_modules": True}, {"use_device": "cpu"}])
def test_arguments_that_make_no_difference(keywords):
    with profile(**keywords) as prof:
        cg.ones(2) * 2
    assert names(prof) == ["aten::mul"]


@pytest.mark.parametrize(("keywords", "messages"), [
    ({"use_cuda": True}, ["The attribute `use_cuda` will be deprecated soon", "CUDA is not available, disabling CUDA profiling"]),
    ({"use_device": "cuda"}, ["CUDA is not available, disabling CUDA profiling"]),
    ({"use_device": "xpu"}, ["XPU is not available, disabling XPU profiling"]),
    ({"use_device": "nonsense"}, ["The nonsense is not a valid device option."]),
])
def test_devices_that_are_not_there_warn_and_the_cpu_is_profiled(keywords, messages):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prof = profile(**keywords)
    assert [str(each.message).split(",")[0] for each in caught] == [message.split(",")[0] for message in messages]
    with prof:
        cg.ones(2) * 2
    assert names(prof) == ["aten::mul"]
    assert (prof.use_cuda, prof.use_device) == (False, None)


def test_a_disabled_profile_records_nothing():
    with profile(enabled=False, use_cuda=True) as prof, profile() as other:
        cg.ones(2) * 2
    assert prof.table() == "" and list(prof.key_averages()) == [] and names(other) == ["aten::mul"]


def test_processing_stops_after_its_time(caplog):
    with profile(post_processing_timeout_s=0) as prof:
        cg.ones(2) * 2
    with caplog.at_level(logging.WARNING):
        assert names(prof) == []
    assert "timed out after 0.000 seconds, returning partial results with 0 of 1 events" in caplog.text
    with profile(post_processing_timeout_s=1000) as prof:
        cg.ones(2) * 2
    assert names(prof) == ["aten::mul"]


def test_events_of_several_times_accumulate():
    prof = profile(acc_events=True)
    for operator in ("sin", "cos"):
        with prof:
            getattr(cg.ones(2), operator)()
    with prof, pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"), prof:
        pass
    assert names(prof) == ["aten::sin", "aten::cos"]
    assert prof.key_averages().self_cpu_time_total == prof.self_cpu_time_total > 0
    first, second = prof.function_events
    assert first.time_range.end < second.time_range.start


def test_trace_ids():
    with profile(custom_trace_id_callback=lambda: "mine") as prof:
        pass
    with profile() as other, pytest.raises(RuntimeError, match="already enabled"), profile():
        pass
    assert prof.trace_id == "mine" and len(other.trace_id) == 32 and int(other.trace_id, 16) > 0


# ----- Misuse -----
def test_profiles_do_not_nest():
    with profile() as outer:
        cg.ones(2) * 2
        for inner in (profile, lambda: emit_nvtx_to([])):
            with pytest.raises(RuntimeError, match="Profiler is already enabled on this thread"), inner():
                pytest.fail("the inner profile began")
        cg.ones(2) + 2
    assert names(outer) == ["aten::mul", "aten::add"]


def test_a_profile_is_entered_once():
    with profile() as prof:
        with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"), prof:
            pass
        cg.ones(2) * 2
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"), prof:
        pass
    assert names(prof) == ["aten::mul"]


def test_a_profile_that_could_not_begin_can_be_used_later():
    prof = profile()
    with profile(), pytest.raises(RuntimeError, match="already enabled"), prof:
        pass
    with prof:
        cg.ones(2) * 2
    assert names(prof) == ["aten::mul"]


def test_ending_a_profile_that_does_not_run():
    prof = profile()
    with pytest.raises(RuntimeError, match="Can't disable profiler when it's not running"):
        prof.__exit__(None, None, None)
    with prof:
        pass
    with pytest.raises(RuntimeError, match="Can't disable profiler when it's not running"):
        prof.__exit__(None, None, None)
    assert names(prof) == []


@pytest.mark.parametrize("ask", [
    lambda prof: prof.function_events, lambda prof: prof.table(), lambda prof: prof.key_averages(), lambda prof: prof.total_average(),
    lambda prof: prof.self_cpu_time_total, lambda prof: prof.export_chrome_trace("never"), lambda prof: prof.export_stacks("never"),
])
def test_results_before_the_end(ask):
    prof = profile(with_stack=True)
    with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
        ask(prof)
    assert repr(prof) == str(prof) == "<unfinished cygrad.autograd.profile>"
    with prof:
        with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
            ask(prof)
        assert str(prof) == "<unfinished cygrad.autograd.profile>"
    assert repr(prof) == "[]" and str(prof) == ""


def test_an_empty_profile():
    with profile() as prof:
        pass
    assert prof.table() == prof.key_averages().table(sort_by="cpu_time", header="empty") == "" and prof.self_cpu_time_total == 0
    total = prof.total_average()
    assert (total.key, total.count, total.cpu_time_total, total.cpu_time) == ("Total", 0, 0, 0)


# ----- Named ranges -----
def test_a_range_decorates_functions_that_call_themselves():
    @record_function("factorial")
    def factorial(n):
        return n * factorial(n - 1) if n > 1 else cg.ones(1) * 1

    with profile() as prof:
        assert factorial(3).item() == 6
        both = [in_thread(lambda: factorial(2).item()), factorial(2).item()]
    assert both == [2, 2] and factorial.__name__ == "factorial"
    ranges = [event for event in prof.function_events if event.name == "factorial"]
    assert len(ranges) == 5 and ranges[2].cpu_parent is ranges[1] and ranges[1].cpu_parent is ranges[0]


def test_a_decorated_function_in_two_threads_at_once():
    """The other thread enters first, and leaves while this one is inside."""
    inside, leave, left = threading.Event(), threading.Event(), threading.Event()

    @record_function("decorated")
    def decorated(entered, until):
        entered.set()
        assert until.wait(60)

    def work():
        with profile() as prof:
            decorated(inside, leave)
        left.set()
        profiles.append(prof)

    profiles = []
    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    with profile() as prof:
        decorated(leave, left)
    thread.join()
    for each in (prof, *profiles):
        assert [(event.name, event.is_async) for event in each.function_events] == [("decorated", False)]


def test_a_range_may_be_used_again():
    label = record_function("label")
    with profile() as prof:
        with label:
            cg.ones(1) * 1
            with label:
                cg.ones(1) + 1
        with label:
            pass
    assert [event.cpu_parent is None for event in prof.function_events if event.name == "label"] == [True, False, True]


@pytest.mark.parametrize("arguments, name", [((1,), "name"), ((None,), "name"), (("label", 2), "args")])
def test_a_range_is_named_by_a_text(arguments, name):
    with pytest.raises(TypeError, match=rf"record_function\(\): argument '{name}' .* must be str, not"):
        record_function(*arguments)


def test_ending_a_range_that_did_not_begin():
    with pytest.raises(AssertionError, match="Expected record to be set"):
        record_function("label").__exit__(None, None, None)


def test_ranges_that_a_profile_begins_or_ends_inside_of():
    before = record_function("before")
    before.__enter__()
    with profile() as prof:
        cg.ones(2) * 2
        before.__exit__(None, None, None)
        cg.ones(2) + 2
        after = record_function("after")
        after.__enter__()
        cg.ones(2).sin()
    with profile() as other:
        after.__exit__(None, None, None)
        cg.ones(2).cos()
    assert names(prof) == ["aten::mul", "aten::add", "after", "aten::sin"] and names(other) == ["aten::cos"]
    assert the(prof, "aten::sin").cpu_parent is the(prof, "after")
    assert the(prof, "after").time_range.end >= the(prof, "aten::sin").time_range.end


def test_a_profile_may_begin_and_end_inside_of_a_backward():
    x = cg.ones(2, requires_grad=True)
    prof = profile()
    y = x.sin().exp().cos()
    y.grad_fn.register_prehook(lambda grads: prof.__enter__() and None)
    y.grad_fn.next_functions[0][0].register_prehook(lambda grads: prof.__exit__(None, None, None))
    y.backward(cg.ones(2))
    assert names(prof) == ["CosBackward0", f"{EVALUATE}ExpBackward0"]
    assert x.grad is not None


def test_ranges_that_overlap_without_nesting():
    first, second = record_function("first"), record_function("second")
    with profile() as prof:
        first.__enter__()
        second.__enter__()
        cg.ones(2).sin()
        first.__exit__(None, None, None)
        cg.ones(2).cos()
        second.__exit__(None, None, None)
        cg.ones(2).tan()
    assert the(prof, "second").cpu_parent is None, "it ended after the one it began in"
    assert the(prof, "aten::sin").cpu_parent is the(prof, "aten::cos").cpu_parent is the(prof, "second")
    assert the(prof, "aten::tan").cpu_parent is None and the(prof, "first").cpu_children == []


# ----- Ranges for other tools -----
def nvtx_to(log):
    return SimpleNamespace(push_range=lambda name: log.append(name), pop_range=lambda: log.append("end"))


def emit_nvtx_to(log):
    emitter = emit_nvtx()
    emitter._functions = lambda: (nvtx_to(log).push_range, nvtx_to(log).pop_range)
    return emitter


def ittapi_to(log):
    def begin(domain, handle):
        assert domain == "domain cygrad" and handle[0] == "handle"
        log.append(handle[1])

    def end(domain):
        assert domain == "domain cygrad"
        log.append("end")

    return SimpleNamespace(domain=lambda name: f"domain {name}", string_handle=lambda text: ("handle", text),
                           task_begin=begin, task_end=end)


@pytest.fixture(params=[(emit_nvtx, "nvtx", nvtx_to), (emit_itt, "ittapi", ittapi_to)], ids=["nvtx", "itt"])
def emitter(request, monkeypatch):
    """The context and the log of its calls to the tool."""
    kind, package, tool = request.param
    log = []
    monkeypatch.setitem(sys.modules, package, tool(log))
    return kind, log


def test_ranges_of_operators_and_nodes_end_in_their_number(emitter):
    kind, log = emitter
    x = cg.ones(2, requires_grad=True)
    with kind() as context:
        with record_function("label"):
            y = x * 2
        y.backward(cg.ones(2))
    assert isinstance(context, kind)
    number = y.grad_fn._sequence_nr()
    assert log == ["label", f"aten::mul, seq = {number}", "end", "end",
                   f"{EVALUATE}torch::autograd::GraphRoot", "torch::autograd::GraphRoot", "end", "end",
                   f"{EVALUATE}MulBackward0, stashed seq = {number}", f"MulBackward0, stashed seq = {number}", "end", "end",
                   f"{EVALUATE}torch::autograd::AccumulateGrad", "torch::autograd::AccumulateGrad", "end", "end"]
    y.sin()
    assert log[-1] == "end" and len(log) == 16


def test_ranges_with_sizes(emitter):
    kind, log = emitter
    x = cg.ones(2, 3, requires_grad=True)
    with kind(record_shapes=True):
        y = x * 2
        x + cg.ones(3)
        cg.cat([x, x])
        y.backward(cg.ones(2, 3))
    number = y.grad_fn._sequence_nr()
    ranges = [line for line in log if line != "end"]
    assert ranges[:2] == [f"aten::mul, seq = {number}, sizes = [[2, 3], []]", f"aten::add, seq = {number + 1}, sizes = [[2, 3], [3]]"]
    assert ranges[2] == f"aten::cat, seq = {number + 2}, sizes = [[]]"
    assert f"MulBackward0, stashed seq = {number}, sizes = [[2, 3]]" in ranges


def test_operators_in_a_backward_have_number_0_unless_it_makes_a_graph(emitter):
    kind, log = emitter
    x = cg.ones(2, 2, requires_grad=True)
    y = x @ x
    with kind():
        y.backward(cg.ones(2, 2), retain_graph=True)
    assert "aten::matmul, seq = 0" in log
    del log[:]
    with kind():
        g, = cg.autograd.grad(y, x, cg.ones(2, 2), create_graph=True)
    number = next(int(line.rpartition(" ")[2]) for line in log if line.startswith("aten::matmul"))
    assert number > y.grad_fn._sequence_nr()
    del log[:]
    with kind():
        g.sum().backward()
    assert any(line.endswith(f"Backward0, stashed seq = {number}") for line in log)


def test_ranges_end_with_errors(emitter):
    kind, log = emitter
    with kind(), pytest.raises(RuntimeError), record_function("label"):
        cg.ones(2) * cg.ones(3)
    assert [line.partition(",")[0] for line in log] == ["label", "aten::mul", "end", "end"]


def test_ranges_that_are_open_at_the_end_are_ended(emitter):
    kind, log = emitter
    before, inside = record_function("before"), record_function("inside")
    before.__enter__()
    with kind():
        inside.__enter__()
        before.__exit__(None, None, None)
    inside.__exit__(None, None, None)
    assert log == ["inside", "end"]


def test_a_tool_that_fails(monkeypatch):
    def fail(name):
        raise OSError("the tool is gone")

    monkeypatch.setitem(sys.modules, "nvtx", SimpleNamespace(push_range=fail, pop_range=lambda: None))
    with emit_nvtx(), pytest.raises(OSError, match="the tool is gone"):
        cg.ones(2) * 2
    monkeypatch.setitem(sys.modules, "nvtx", SimpleNamespace(push_range=lambda name: None, pop_range=lambda: fail("")))
    with emit_nvtx():
        for call in (lambda x: x * 2, lambda x: x.sum()):
            with pytest.raises(OSError, match="the tool is gone"):
                call(cg.ones(2))
        with pytest.raises(RuntimeError, match="mat1 and mat2"):      # the operator's own error comes first
            cg.ones(2, 3) @ cg.ones(2, 3)
    with pytest.raises(OSError, match="the tool is gone"), emit_nvtx():
        record_function("open at the end").__enter__()


def test_emitters_do_nothing_if_disabled(monkeypatch):
    for kind, package in ((emit_nvtx, "nvtx"), (emit_itt, "ittapi")):
        monkeypatch.setitem(sys.modules, package, None)
        with kind(enabled=False):
            assert current_observer() is None


def test_misuse_of_emitters(emitter):
    kind, log = emitter
    context = kind()
    with pytest.raises(RuntimeError, match="Can't disable profiler when it's not running"):
        context.__exit__(None, None, None)
    with context:
        with pytest.raises(RuntimeError, match="annotation context manager is not reentrant"), context:
            pass
        with pytest.raises(RuntimeError, match="Profiler is already enabled on this thread"), profile():
            pass
    with pytest.raises(RuntimeError, match="annotation context manager is not reentrant"), context:
        pass
    assert log == []


@pytest.mark.parametrize("kind, package", [(emit_nvtx, "nvtx"), (emit_itt, "ittapi")])
def test_emitters_name_the_package_they_need(kind, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=f"pip install {package}"), kind():
        pass


@pytest.mark.parametrize("kind, package", [(emit_nvtx, "nvtx"), (emit_itt, "ittapi")])
def test_the_packages_themselves(kind, package):
    pytest.importorskip(package)
    x = cg.ones(2, requires_grad=True)
    with kind(record_shapes=True):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_nvprof_has_no_meaning_here():
    with pytest.raises(RuntimeError, match="load_nvprof has no meaning here"):
        load_nvprof("trace.nvvp")


# ----- The module -----
def test_the_names_of_torch():
    assert cg.autograd.profiler is profiler
    assert {"profile", "record_function", "emit_itt", "emit_nvtx", "load_nvprof", "EventList", "FunctionEvent"} <= set(dir(profiler))
    assert cg.autograd.profiler_util.EventList is profiler.EventList
