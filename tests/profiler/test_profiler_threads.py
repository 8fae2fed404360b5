"""Profiles and threads: each profile records its own thread, and leaves nothing behind after the thread has ended."""

import threading

import pytest

import cygrad as cg
from core.test_memory import allocations
from cygrad.autograd import Function
from cygrad.autograd.profiler import profile, record_function
from profiler.test_profiler_contexts import in_thread, names, nothing_observed, the  # noqa: F401


@pytest.mark.parametrize("stopped", ["never", "after its end", "while it waits"])
def test_a_thread_that_ends_inside_of_a_profile_leaves_nothing_behind(stopped):
    """While a thread is profiled, no gradient of a part is added at its place in the whole: each takes memory of its own."""
    def bytes_in_use():
        x = cg.ones(8, requires_grad=True)
        parts = list(x.split(2)) + [x[k] for k in range(4)]
        weights = [cg.ones(part.shape) for part in parts]
        return allocations(lambda: cg.autograd.grad(parts, x, weights, retain_graph=True))

    def work():
        prof.__enter__()
        entered.set()
        leave.wait(60)

    before, prof = bytes_in_use(), profile()
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(60)
    assert bytes_in_use() > before
    if stopped == "while it waits":
        prof.__exit__(None, None, None)
        assert bytes_in_use() == before
    leave.set()
    thread.join()
    assert bytes_in_use() == before
    if stopped == "after its end":
        prof.__exit__(None, None, None)
        assert bytes_in_use() == before
    with profile() as prof:
        cg.ones(2).cos()
    assert names(prof) == ["aten::cos"]
    assert bytes_in_use() == before


def test_other_threads_are_not_recorded():
    with profile() as prof:
        in_thread(lambda: cg.ones(2).sin())
        cg.ones(2).cos()
    assert names(prof) == ["aten::cos"]


def test_each_thread_has_its_own_profile():
    begun = threading.Barrier(2)
    results = {}

    def work(name):
        with profile() as prof:
            begun.wait()
            for _ in range(200):
                with record_function(name):
                    getattr(cg.ones(2, requires_grad=True), name)().backward(cg.ones(2))
            begun.wait()
        results[name] = prof

    threads = [threading.Thread(target=work, args=(name,)) for name in ("sin", "cos")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, other in (("sin", "cos"), ("cos", "sin")):
        counts = {event.key: event.count for event in results[name].key_averages()}
        assert counts[name] == counts[f"{name.capitalize()}Backward0"] == counts["torch::autograd::AccumulateGrad"] == 200
        assert other not in counts
    first, second = ({event.thread for event in prof.function_events} for prof in results.values())
    assert len(first) == len(second) == 1 and first != second


def nested_backward(depth):
    """Return a tensor whose backward runs another one, and so on."""

    class Nested(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if depth:
                with cg.enable_grad():
                    nested_backward(depth - 1).sum().backward()
            return g

    return Nested.apply(cg.ones(1, requires_grad=True))


def test_threads_that_a_backward_starts_belong_to_its_thread():
    with profile(profile_memory=True) as prof:
        nested_backward(30).sum().backward()
    threads = {event.thread for event in prof.function_events}
    roots = [event for event in prof.function_events if event.name == "NestedBackward"]
    assert len(threads) == 2 and len(roots) == 31
    for outer, inner in zip(roots, roots[1:], strict=False):
        parents = []
        while inner.cpu_parent is not None:
            inner = inner.cpu_parent
            parents.append(inner)
        assert outer in parents
    assert prof.self_cpu_time_total <= (prof.function_events[-1].time_range.end - prof.function_events[0].time_range.start)


def test_a_range_that_another_thread_ends():
    label = record_function("label")
    with profile() as prof:
        label.__enter__()
        cg.ones(2).sin()
        in_thread(lambda: label.__exit__(None, None, None))
        cg.ones(2).cos()
    event = the(prof, "label")
    assert event.is_async and event.cpu_children == [] and event.self_cpu_time_total == 0 and event.cpu_time_total > 0
    assert [event.cpu_parent for event in prof.function_events] == [None] * 3
    assert "label" in prof.table()


def test_a_profile_that_another_thread_ends():
    prof = profile()
    prof.__enter__()
    cg.ones(2).sin()
    in_thread(lambda: prof.__exit__(None, None, None))
    cg.ones(2).cos()
    assert names(prof) == ["aten::sin"]
    with profile() as again:
        cg.ones(2).tan()
    assert names(again) == ["aten::tan"]


def test_a_thread_may_end_while_it_is_profiled():
    prof = profile()
    in_thread(prof.__enter__)
    cg.ones(2).sin()
    prof.__exit__(None, None, None)
    assert names(prof) == []
