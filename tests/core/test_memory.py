"""Memory comes back: cycles of every kind are collected, long training does not grow, no operator leaks an object."""

import contextlib
import gc
import itertools
import os
import resource
import sys

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad._testing import fail_alloc, live_bytes
from cygrad.autograd import Function, grad
from cygrad.autograd.graph import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks
from cygrad.checkpoint import checkpoint, checkpoint_loop

MEGABYTE = 1 << 20
in_proc = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from /proc")


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.fixture
def one_thread():
    """Run on one thread: threads that wait for each other on a busy machine would take most of the time."""
    before = cg.get_num_threads()
    cg.set_num_threads(1)
    yield
    cg.set_num_threads(before)


# ----- Cycles -----
def create_graph(x):
    """`.grad` holds the graph, which holds the leaf."""
    (x * x).sum().backward(create_graph=True)


def grad_assigned(x):
    x.grad = x * x


def hook_on_a_leaf(x):
    x.register_hook(lambda gradient: gradient * x)


def hook_on_a_result(x):
    y = x * 2
    y.register_hook(lambda gradient: gradient * y)


def hook_that_holds_a_later_result(x):
    later = []
    x.register_hook(lambda gradient: later[0])
    later.append(x * 2)


def retained_gradient(x):
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward(create_graph=True)


class KeepsItsOutput(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.output = x * 2
        return ctx.output

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class SavesItsOutput(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0]


def context_with_output(x):
    KeepsItsOutput.apply(x)


def saved_output(x):
    SavesItsOutput.apply(x)


def context_of_the_user(x):
    y = KeepsItsOutput.apply(x)
    y.grad_fn.mine = [y]


def packed_as_it_is(x):
    """The result holds its node, which holds the result of the hook: the same tensor."""
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        x.exp()


def packed_in_an_object(x):
    class Packed:
        def __init__(self, tensor):
            self.tensor = tensor

    with saved_tensors_hooks(Packed, lambda packed: packed.tensor):
        SavesItsOutput.apply(x).exp()


def hooks_on_a_saved_tensor(x):
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: y, lambda t: t)


def mutation_allowed(x):
    with allow_mutation_on_saved_tensors():
        y = x.exp()
        (y * y).mul_(2)


def checkpointed_with_create_graph(x):
    checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False).sum().backward(create_graph=True)


CYCLES = [create_graph, grad_assigned, hook_on_a_leaf, hook_on_a_result, hook_that_holds_a_later_result, retained_gradient,
          context_with_output, saved_output, context_of_the_user, packed_as_it_is, packed_in_an_object, hooks_on_a_saved_tensor,
          mutation_allowed, checkpointed_with_create_graph]


@pytest.mark.slow
@in_proc
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("make", CYCLES)
def test_a_cycle_is_collected(make, one_thread):
    gc.collect()
    before, sizes = live_bytes(), []
    for _ in range(40):
        make(cg.ones(MEGABYTE, requires_grad=True))     # 4 MB each
        gc.collect()
        assert live_bytes() == before
        sizes.append(resident_bytes())
    assert sizes[-1] - sizes[10] < 8 * MEGABYTE


def no_cycle(x):
    (x.exp() * x).sum().backward()


def no_cycle_of_saved_results(x):
    with save_on_cpu():
        SavesItsOutput.apply(x).exp().tanh()


def no_cycle_of_a_checkpoint(x):
    checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False).sum().backward()


def no_cycle_of_a_loop(x):
    checkpoint_loop(lambda t, number: t.sin(), x, 5, 2).sum().backward()


@pytest.mark.parametrize("make", [no_cycle, no_cycle_of_saved_results, no_cycle_of_a_checkpoint, no_cycle_of_a_loop])
def test_graphs_without_a_cycle_are_freed_at_once(make):
    gc.collect()
    gc.disable()
    try:
        before = live_bytes()
        make(cg.ones(1000, requires_grad=True))
        assert live_bytes() == before
    finally:
        gc.enable()


# ----- Long runs -----
@pytest.mark.slow
@in_proc
@pytest.mark.resident
def test_100_000_training_steps_do_not_grow():
    x, w, b = cg.rand(4, 3), cg.rand(3, 2, requires_grad=True), cg.zeros(2, requires_grad=True)
    sizes = []
    for _ in range(5):
        for _ in range(20_000):
            ((x @ w + b).tanh() ** 2).mean().backward()
            with cg.no_grad():
                w -= 0.01 * w.grad
                b -= 0.01 * b.grad
            w.grad = b.grad = None
        gc.collect()
        sizes.append(resident_bytes())
    assert sizes[-1] - sizes[0] < 3 * MEGABYTE


# ----- Every operator -----
@pytest.mark.slow
@pytest.mark.parametrize("name", samples.DIFFERENTIABLE)
@pytest.mark.cases("call, arrays", samples.calls_of)
def test_an_operator_leaves_no_object_and_no_reference(name, call, arrays):
    """Blocks that Python has allocated, references to the operands, bytes of tensors: after 50 derivatives as after the first."""
    tensors = samples.prepared(arrays)
    inputs = [tensor for tensor in tensors if tensor.requires_grad]
    results = len(samples.as_tuple(call(*tensors)))

    def run():
        for number in range(results):       # each of a graph of its own: the second backward frees tensors that several results share
            result = samples.as_tuple(call(*tensors))[number]
            if result.requires_grad:
                first = grad(samples.in_reals(result).sum(), inputs, create_graph=True, allow_unused=True)
                total = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
                if isinstance(total, cg.Tensor):
                    grad(total, inputs, allow_unused=True)

    def count():
        gc.collect()
        return sys.getallocatedblocks(), [sys.getrefcount(tensor) for tensor in tensors], live_bytes()

    for _ in range(3):
        run()
    blocks, references, live = count()
    for _ in range(20):                     # caches of NumPy are full at some time, a leak grows in each round
        for _ in range(50):
            run()
        before, (blocks, more_references, more_live) = blocks, count()
        assert (more_references, more_live) == (references, live)
        if blocks - before < 25:
            break
    else:
        pytest.fail(f"{blocks - before} blocks are left by the last 50 derivatives")


# ----- Memory that a backward takes -----
def allocations(function):
    """Return how many storages a call takes."""
    for n in itertools.count(1):
        with fail_alloc(n) as failure, contextlib.suppress(cg.OutOfMemoryError):
            function()
        if not failure.fired:
            return n - 1


@pytest.mark.parametrize(("build", "expected"), [
    (lambda a, b: a * b, 2),            # one for each leaf, which keeps it
    (lambda a, b: (a * b).exp(), 2),    # the first is overwritten by its last partial, as it has no other reference
    (lambda a, b: a + b, 2),            # the weight is the user's: a copy for each
    (lambda a, b: (a + b).sin(), 2),    # one leaf keeps the copy made for the other
])
@pytest.mark.parametrize("size", [5, 5000])
@pytest.mark.usefixtures("usual_sizes")
def test_gradients_are_not_copied_without_need(build, expected, size):
    a, b = (cg.ones(size, requires_grad=True) for _ in range(2))
    weight = cg.ones(size)

    def run():
        a.grad = b.grad = None
        y.backward(weight, retain_graph=True)

    y = build(a, b)
    assert allocations(run) == expected


@pytest.mark.parametrize("hold", [lambda g: g, lambda g: g.numpy(), lambda g: g[1:], lambda g: g.detach()],
                         ids=["tensor", "array", "view", "detached"])
@pytest.mark.parametrize("size", [5, 5000])
def test_a_gradient_that_the_user_holds_is_not_written_over(size, hold):
    """Nor is its memory: neither by the exact partial of a product, nor by a partial that runs over the end in whole vectors."""
    x, memories = cg.full((size,), 0.5, requires_grad=True), []
    y = x * 3
    z = y.tanh()
    for tensor in (y, z):
        tensor.register_hook(lambda g: memories.append(hold(g)))
    (z * 2).backward(cg.ones(size))
    gradients = [np.array(gradient.numpy() if isinstance(gradient, cg.Tensor) else gradient) for gradient in memories]
    slope = 2 * (1 - np.tanh(np.float32(1.5)) ** 2)
    assert all(np.allclose(values, expected) for values, expected in zip(gradients, (2, slope), strict=True))
    assert np.allclose(x.grad.numpy(), 3 * slope)
