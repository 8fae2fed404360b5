"""Each thread of Python defers results of its own: the same bits as at once, whichever thread reads, changes or drops them."""

import os
import queue
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import live_bytes, pending_results
from pending import SIZE, arrays, at_once, leaves
from samples import array_of, same_bits

pytestmark = pytest.mark.usefixtures("small_results_are_pending")

THREADS = 8


def in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def chain(a, b, c, d):
    x = (cg.tanh(a * b + c) * d).sigmoid()
    y = x * a - b
    return (x + y).sum() + y.exp().mean()


def everything(inputs):
    value = chain(*inputs)
    return [array_of(value), *map(array_of, cg.autograd.grad(value, inputs))]


def test_a_thread_adds_to_a_program_of_its_own():
    a, b = leaves(2)
    x = a * b
    y = in_thread(lambda: (a * b).exp())
    assert pending_results() == 2
    assert same_bits(array_of(x.exp()), array_of(y)) and pending_results() == 0


def test_another_thread_reads_a_pending_result():
    a, b = leaves(2)
    x = a * b
    assert pending_results() == 1
    np.testing.assert_array_equal(in_thread(lambda: array_of(x + 0)), array_of(a) * array_of(b))


def test_another_thread_builds_upon_a_pending_result():
    a, b = leaves(2)
    x = a * b
    y = in_thread(lambda: x.exp() - a)
    np.testing.assert_array_equal(array_of(y), array_of((a.detach() * b.detach()).exp() - a.detach()))


@pytest.mark.parametrize("change", [lambda a, b: a.detach().mul_(2), lambda a, b: a.detach().copy_(b.detach()),
                                    lambda a, b: a.detach().numpy().fill(0), lambda a, b: a.data.zero_()])
def test_another_thread_changes_an_operand(change):
    a, b = leaves(2)
    expected = array_of(a) * array_of(b)
    x, y = a * b, in_thread(lambda: b * a)
    in_thread(lambda: change(a, b))
    np.testing.assert_array_equal(array_of(x), expected)
    np.testing.assert_array_equal(array_of(y), expected)


def test_another_thread_drops_the_last_reference():
    a, b = leaves(2)
    start, places = live_bytes(), queue.Queue()
    places.put(a * b)
    in_thread(places.get)
    assert pending_results() == 0 and live_bytes() == start


@pytest.mark.parametrize("shared", [True, False], ids=["the same leaves", "leaves of their own"])
def test_many_threads_get_the_bits_of_one(shared):
    inputs = [leaves(4) for _ in range(THREADS)]
    for group in inputs:
        for leaf, array in zip(group, arrays(4), strict=True):
            leaf.data.copy_(cg.tensor(array))
    with at_once():
        expected = everything(inputs[0])

    def work(number):
        return all(same_bits(x, y) for _ in range(125) for x, y in zip(everything(inputs[0 if shared else number]), expected, strict=True))

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(work, range(THREADS)))
    assert pending_results() == 0


def test_threads_that_exchange_pending_results():
    """A pool of results of all threads: each takes two, and puts in their mean; all are means of the same two numbers."""
    a, b = (cg.full((SIZE,), value, requires_grad=True) for value in (1.0, 3.0))
    places = queue.Queue()
    for _ in range(THREADS):
        places.put(a * 1.0)
        places.put(b * 1.0)
    failures = []

    def work(number):
        stream = random.Random(number)
        for _ in range(60):
            x, y = places.get(), places.get()
            middle = (x + y) * 0.5
            if stream.random() < 0.3 and not bool(((middle >= 1) & (middle <= 3)).all()):
                failures.append(number)
            for value in stream.sample([x, y, middle], 2):
                places.put(value)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    assert not failures
    while not places.empty():
        value = array_of(places.get())
        assert (value == value[0]).all() and 1 <= value[0] <= 3


@cg.compile
def captured(a):
    loss = (a.sin() * a).sum() / 7
    return loss.detach(), *cg.autograd.grad(loss, a)


@pytest.mark.parametrize("compute", [
    lambda a: (a * 2).exp().sum().item(),
    lambda a: (a * 2).exp().sum().reshape(1) * 2,
    lambda a: ((a * 2).exp() + a)[1:] * 2,
    lambda a: [a := a.sin() * 0.5 for _ in range(40)],
    captured,
], ids=["read as a number", "read by a small operator", "read", "too many steps", "captured"])
def test_programs_run_without_the_gil(compute):
    """Without forced switches another thread runs only where this one releases the GIL."""
    a = cg.zeros(1 << 21, requires_grad=True)
    compute(a)          # imports, and captures
    interval, started, ran = sys.getswitchinterval(), threading.Event(), []
    sys.setswitchinterval(1000)
    try:
        for _ in range(50):
            started.clear()
            thread = threading.Thread(target=lambda: (started.wait(), ran.append(1)))
            thread.start()
            started.set()
            compute(a)
            has_run = bool(ran)     # before this thread waits
            thread.join()
            if has_run:
                return
            ran.clear()
    finally:
        sys.setswitchinterval(interval)
    pytest.fail("no other thread has run")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_child_computes_the_programs_that_other_threads_run():
    a, = arrays(1, size=1 << 20)
    leaf, stop, results = cg.tensor(a, requires_grad=True), threading.Event(), []

    def work():
        while not stop.is_set():
            results.append(leaf * 2)
            x = leaf
            for _ in range(20):
                x = x.sin()
            del results[:-2]

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            while not results:
                pass
            child = os.fork()
            if not child:
                os._exit(0 if np.array_equal(array_of(results[-1]), a * 2) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()
