"""Backwards of several threads at once: no update is lost, errors stay in their thread, modes are each thread's own.

The switch interval of the interpreter is small here, and some tensors are so large that their kernels let the GIL go.
"""

import sys
import threading

import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd.graph import register_multi_grad_hook

THREADS, ROUNDS = 8, 40
SMALL, LARGE = 3, 70_000
TWO = cg.tensor(2.0)


@pytest.fixture(autouse=True)
def eager_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(*functions):
    """Run functions at once, each in a thread of its own; return their results, or raise the exception of one of them."""
    start, results, errors = threading.Barrier(len(functions)), [None] * len(functions), []

    def work(number, function):
        try:
            start.wait()
            results[number] = function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def times(count, function):
    def repeat():
        for _ in range(count):
            function()

    return repeat


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_separate_graphs(size):
    def differentiate():
        x = cg.ones(size, requires_grad=True)
        for _ in range(ROUNDS // 4):
            (x * x * TWO).tanh().sum().backward()
        return x.grad

    gradients = at_once(*[differentiate] * THREADS)
    assert all(bool((gradient == gradients[0]).all()) for gradient in gradients)


USES = {
    "own graphs": lambda x: lambda: (x * TWO).sum().backward(),
    "a shared graph": lambda x: (lambda root: lambda: root.backward(retain_graph=True))((x * TWO).sum()),
    "a shared part": lambda x: (lambda y: lambda: (y * 1).sum().backward(retain_graph=True))(x * TWO),
    "many uses": lambda x: lambda: (x * 1 + x * 0.5 + x / 2).sum().backward(),
    "with hooks": lambda x: (x.register_hook(lambda g: g * 1), lambda: (x * TWO).sum().backward())[1],
}


@pytest.mark.cases("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", list(USES))
def test_no_update_of_a_shared_leaf_is_lost(name, size):
    x = cg.ones(size, requires_grad=True)
    at_once(*[times(ROUNDS // 4 if size == LARGE else ROUNDS, USES[name](x))] * THREADS)
    expected = 2.0 * THREADS * (ROUNDS // 4 if size == LARGE else ROUNDS)
    assert (x.grad.min().item(), x.grad.max().item()) == (expected, expected)


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_no_update_is_lost_with_create_graph():
    x = cg.ones(LARGE, requires_grad=True)
    at_once(*[times(4, lambda: (x * TWO).sum().backward(create_graph=True))] * THREADS)
    assert x.grad.min().item() == x.grad.max().item() == 8 * THREADS


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_gradients_may_be_cleared_beside(size):
    """Every gradient that another thread reads is a whole number of updates, the same in all elements."""
    x = cg.ones(size, requires_grad=True)
    seen = []

    def clear():
        gradient, x.grad = x.grad, None
        if gradient is not None:
            seen.append(gradient)

    count = ROUNDS // 4
    at_once(*[times(count, lambda: (x * TWO).sum().backward())] * (THREADS - 1), times(count, clear))
    seen += [] if x.grad is None else [x.grad]
    for gradient in seen:
        assert gradient.min().item() == gradient.max().item()
        assert gradient[0].item() % 2 == 0


def test_gradients_may_be_zeroed_beside():
    x = cg.ones(LARGE, requires_grad=True)
    x.sum().backward()
    at_once(*[times(5, lambda: x.sum().backward())] * (THREADS - 1), times(50, lambda: x.grad.zero_()))
    assert x.grad.min().item() == x.grad.max().item()


def test_accumulators_are_made_once():
    for _ in range(ROUNDS):
        x = cg.ones(1, requires_grad=True)
        y = x * TWO
        nodes = at_once(*[lambda y=y: y.grad_fn.next_functions[0][0]] * THREADS)
        assert {id(node) for node in nodes} == {id(nodes[0])}
        assert nodes[0].variable is x


class Stop(Exception):
    """Raised by a hook."""


@pytest.mark.parametrize("where", ["leaf", "between"])
def test_a_hook_that_raises_disturbs_no_other_thread(where):
    shared = cg.ones(SMALL, requires_grad=True)

    def fail():
        own = cg.ones(SMALL, requires_grad=True)
        y = own * TWO
        for _ in range(ROUNDS):
            with (own if where == "leaf" else y).register_hook(stop), pytest.raises(Stop):
                (y * shared).sum().backward(inputs=[own], retain_graph=True)
            assert own.grad is None
            assert cg.is_grad_enabled()
        y.sum().backward()
        return own.grad.tolist()

    def stop(gradient):
        raise Stop

    results = at_once(*[fail] * 4, *[times(ROUNDS, lambda: (shared * TWO).sum().backward())] * 4)
    assert results[:4] == [[2.0] * SMALL] * 4
    assert shared.grad.tolist() == [8.0 * ROUNDS] * SMALL


def test_each_gradient_is_wholly_old_or_wholly_new():
    leaves = [cg.ones(LARGE, requires_grad=True) for _ in range(6)]
    for leaf in leaves:
        leaf.grad = cg.zeros(LARGE)

    def stop(gradient):
        raise Stop

    leaves[3].register_hook(stop)
    total = leaves[0] * TWO
    for leaf in leaves[1:]:
        total = total + leaf * TWO

    def differentiate():
        with pytest.raises(Stop):
            total.sum().backward(retain_graph=True)

    at_once(*[times(5, differentiate)] * THREADS)
    assert leaves[3].grad.max().item() == 0
    for leaf in leaves:
        assert leaf.grad.min().item() == leaf.grad.max().item()
        assert leaf.grad[0].item() % 2 == 0


def test_multi_grad_hooks_gather_by_backward():
    x = cg.ones(SMALL, requires_grad=True)
    y = x * TWO
    seen = []
    register_multi_grad_hook([x, y], lambda grads: seen.append([gradient[0].item() for gradient in grads]))
    at_once(*[times(ROUNDS, lambda k=k: (y * k).sum().backward(retain_graph=True)) for k in range(1, THREADS + 1)])
    assert sorted(seen) == sorted([2.0 * k, float(k)] for k in range(1, THREADS + 1) for _ in range(ROUNDS))


def test_hooks_come_and_go_beside():
    x = cg.ones(SMALL, requires_grad=True)

    def come_and_go():
        x.register_hook(lambda gradient: None).remove()

    at_once(*[times(ROUNDS, come_and_go)] * 4, *[times(ROUNDS, lambda: (x * TWO).sum().backward())] * 4)
    assert x.grad.tolist() == [8.0 * ROUNDS] * SMALL


def test_callbacks_belong_to_the_thread_of_their_backward():
    queue = autograd.Variable._execution_engine.queue_callback
    names = []

    def differentiate():
        x = cg.ones(1, requires_grad=True)
        me = threading.get_ident()
        x.register_hook(lambda gradient: queue(lambda: names.append(threading.get_ident() == me)))
        for _ in range(ROUNDS):
            x.sum().backward()

    at_once(*[differentiate] * THREADS)
    assert names == [True] * THREADS * ROUNDS


def test_modes_are_each_threads_own():
    def look():
        seen = [cg.is_grad_enabled()]
        x = cg.ones(SMALL, requires_grad=True)
        y = x * TWO
        with cg.no_grad():
            for _ in range(ROUNDS):
                seen.append((y.sum() * x).requires_grad)
        seen.append((x * x).requires_grad)
        return seen

    with cg.no_grad():
        results = at_once(*[look] * THREADS)
        assert not cg.is_grad_enabled()
    assert results == [[True, *[False] * ROUNDS, True]] * THREADS


def test_nested_backwards_of_several_threads():
    def differentiate():
        calls = []

        def hook(gradient):
            calls.append(1)
            if len(calls) < 60:
                with cg.enable_grad():
                    y = cg.ones(1, requires_grad=True) * TWO
                    y.register_hook(hook)
                    y.backward()

        y = cg.ones(1, requires_grad=True) * TWO
        y.register_hook(hook)
        y.backward()
        return len(calls)

    assert at_once(*[differentiate] * THREADS) == [60] * THREADS
