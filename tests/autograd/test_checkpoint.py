"""Checkpointing: regions computed again during backward, and loops reversed with few snapshots."""

import contextlib
import gc
import math
import warnings

import pytest

import cygrad as cg
from cygrad._testing import live_bytes
from cygrad.autograd import grad
from cygrad.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_loop,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

BOTH = pytest.mark.parametrize("use_reentrant", [True, False])


def leaf(*values):
    return cg.tensor(values or (0.3, 0.6, 0.9), dtype=cg.float64, requires_grad=True)


class Counted:
    """A region that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def chain(x):
    return x.exp().sin().tanh() * x


def pair(x, scale, w):
    return (x * w).exp(), (x / w * scale).sin()


# ----- Values and derivatives -----
@BOTH
def test_gradients_equal_the_gradients_of_the_region(use_reentrant):
    x, w = leaf(), leaf(1.0, 2.0, 3.0)
    first, second = checkpoint(pair, x, 3, w, use_reentrant=use_reentrant)
    (first * second).sum().backward()
    a, b = leaf(), leaf(1.0, 2.0, 3.0)
    first, second = pair(a, 3, b)
    (first * second).sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == (a.grad.tolist(), b.grad.tolist())


@BOTH
def test_the_region_runs_twice_and_keeps_its_inputs_only(use_reentrant):
    region = Counted(chain)
    x = cg.rand(1 << 14, requires_grad=True)
    inner = x * 1
    before = live_bytes()
    y = checkpoint(region, inner, use_reentrant=use_reentrant)
    assert live_bytes() - before <= 1.5 * x.nbytes
    assert region.calls == 1
    y.sum().backward()
    assert region.calls == 2


def test_derivatives_of_higher_order_and_inside():
    def region(x):
        y = x.sin()
        return (grad((y * y).sum(), x, create_graph=True)[0] * y).exp()

    x = leaf()
    for function in (lambda t: region(t), lambda t: checkpoint(region, t, use_reentrant=False)):
        (first,) = grad(function(x).sum(), x, create_graph=True)
        (second,) = grad(first.sum(), x)
        x.grad = second if x.grad is None else x.grad - second
    assert x.grad.abs().max().item() < 1e-12


def test_kwargs_nested_structures_and_captured_tensors():
    x, w = leaf(), leaf()
    y = checkpoint(lambda values, *, factor: {"y": values["x"].exp() * w * factor}, {"x": x}, factor=2, use_reentrant=False)
    assert [t.tolist() for t in grad(y["y"].sum(), [x, w])] == [t.tolist() for t in grad((x.exp() * w * 2).sum(), [x, w])]


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_nested_regions(depth):
    def nest(level, x):
        return chain(x if level == 0 else checkpoint(nest, level - 1, x.sin(), use_reentrant=False))

    def plain(level, x):
        return chain(x if level == 0 else plain(level - 1, x.sin()))

    x = leaf()
    assert grad(checkpoint(nest, depth, x, use_reentrant=False).sum(), x)[0].tolist() == grad(plain(depth, x).sum(), x)[0].tolist()


def test_retained_and_partial_backwards():
    region = Counted(lambda x: (x.exp(), x.sin()))
    x = leaf()
    first, second = checkpoint(region, x, use_reentrant=False)
    for _ in range(2):
        assert grad(first.sum(), x, retain_graph=True)[0].tolist() == x.exp().tolist()
    first.sum().backward()
    second.sum().backward()
    assert region.calls == 5
    assert x.grad.tolist() == (x.exp() + x.cos()).tolist()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        first.sum().backward()


def test_recomputation_stops_early_unless_disabled():
    log = []

    def region(x):
        y = x.exp()
        log.append("exp")
        y = y.sin()
        log.append("sin")
        return y + 1

    x = leaf()
    for context, early, expected in ((contextlib.nullcontext(), True, 1), (contextlib.nullcontext(), False, 2),
                                     (set_checkpoint_early_stop(False), True, 2), (set_checkpoint_early_stop(True), False, 1)):
        with context:
            y = checkpoint(region, x, use_reentrant=False, early_stop=early)
        log.clear()
        y.sum().backward()
        assert len(log) == expected


def test_saved_values_outside_of_backward():
    x = leaf()
    region = Counted(lambda x: x.exp())
    y = checkpoint(region, x, use_reentrant=False)
    assert [y.grad_fn._saved_result.tolist() for _ in range(2)] == [x.exp().tolist()] * 2
    assert region.calls == 3


@BOTH
@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers(use_reentrant, preserve):
    seen = []

    def region(x):
        mask = cg.rand(3, dtype=cg.float64)
        seen.append(mask.tolist())
        return (x * mask).exp()

    cg.manual_seed(0)
    y = checkpoint(region, leaf(), use_reentrant=use_reentrant, preserve_rng_state=preserve)
    after = cg.get_rng_state().tolist()
    y.sum().backward()
    assert (seen[0] == seen[1]) == preserve
    assert (cg.get_rng_state().tolist() == after) == preserve


def test_contexts_surround_the_region_and_its_recomputation():
    log = []

    @contextlib.contextmanager
    def noting(name):
        log.append(name)
        yield

    y = checkpoint(chain, leaf(), use_reentrant=False, context_fn=lambda: (noting("forward"), noting("again")))
    assert log == ["forward"]
    y.sum().backward()
    assert log == ["forward", "again"]


@BOTH
def test_without_gradients(use_reentrant):
    with cg.no_grad():
        assert not checkpoint(chain, leaf(), use_reentrant=use_reentrant).requires_grad
    with contextlib.nullcontext() if not use_reentrant else pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(chain, leaf().detach(), use_reentrant=use_reentrant).requires_grad


@BOTH
def test_an_error_in_the_region_or_its_recomputation_comes_out(use_reentrant):
    class Flaky:
        calls, fail_at = 0, ()

        def __call__(self, x):
            self.calls += 1
            if self.calls in self.fail_at:
                raise KeyError("mine")
            return chain(x)

    region, x = Flaky(), leaf()
    region.fail_at = (1, 3)
    with pytest.raises(KeyError):
        checkpoint(region, x, use_reentrant=use_reentrant)
    y = checkpoint(region, x, use_reentrant=use_reentrant)
    state = cg.get_rng_state().tolist()
    with pytest.raises(KeyError):
        y.sum().backward(retain_graph=True)
    assert (x.grad, cg.is_grad_enabled(), cg.get_rng_state().tolist()) == (None, True, state)
    y.sum().backward()
    assert x.grad is not None


# ----- Bad uses -----
def alternating(*regions):
    """Return a region that computes another function at its second call."""
    turns = iter(regions * 2)
    return lambda x: next(turns)(x)


def once(*regions, **options):
    def use():
        checkpoint(alternating(*regions), leaf(), use_reentrant=False, **options).sum().backward()
    return use


def unpacked_twice():
    class Twice(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] * ctx.saved_tensors[0]

    checkpoint(Twice.apply, leaf(), use_reentrant=False).sum().backward()


@contextlib.contextmanager
def suppressing():
    with contextlib.suppress(KeyError):
        yield


def raising(x):
    raise KeyError


def with_inputs():
    x = leaf()
    checkpoint(chain, x, use_reentrant=True).sum().backward(inputs=[x])


def through_grad():
    x = leaf()
    grad(checkpoint(chain, x, use_reentrant=True).sum(), x)


BAD_USES = {
    "fewer": (once(lambda x: x.exp().sin(), lambda x: x.exp()), CheckpointError,
              "A different number of tensors was saved during the original forward and recomputation"),
    "more": (once(lambda x: x.exp(), lambda x: x.exp().sin(), early_stop=False), CheckpointError,
             "trying to save more tensors during recomputation than during the original forward pass"),
    "shape": (once(lambda x: x.exp(), lambda x: x[1:].exp()), CheckpointError,
              r"(?s)different metadata than during the forward pass.*position 0:\nsaved metadata: \{'shape': .*\[3\].*recomputed.*\[2\]"),
    "dtype": (once(lambda x: x.exp(), lambda x: x.float().exp()), CheckpointError, "different metadata"),
    "debug": (once(lambda x: x.exp().sin(), lambda x: x.exp(), debug=True), CheckpointError,
              r"(?s)An error happened while unpacking tensors; dumping logs.*0: float64\[3\] saved at .*test_checkpoint.py:\d+.*x.exp\(\)"),
    "unpacked twice": (unpacked_twice, CheckpointError, "Unpack is being triggered for a tensor that was already unpacked once"),
    "check": (once(chain, determinism_check="strict"), ValueError, "should be one of .'default', 'none'., but got strict"),
    "debug with contexts": (once(chain, debug=True, context_fn=lambda: ()), ValueError, "debug=True is incompatible with non-default"),
    "suppressed": (once(raising, context_fn=lambda: (suppressing(), suppressing())), RuntimeError,
                   "the forward context provided by context_fn suppressed an exception"),
    "reentrant kwargs": (lambda: checkpoint(chain, leaf(), use_reentrant=True, scale=3), ValueError, "Unexpected keyword arguments: scale"),
    "reentrant debug": (lambda: checkpoint(chain, leaf(), use_reentrant=True, debug=True), ValueError,
                        "Passing `context_fn` or `debug` is only supported when use_reentrant=False."),
    "reentrant inputs": (with_inputs, RuntimeError, "incompatible with .grad.. or passing an `inputs` parameter"),
    "reentrant grad": (through_grad, RuntimeError, "incompatible with .grad"),
    "reentrant, no output": (lambda: checkpoint(lambda x: x.detach(), leaf(), use_reentrant=True).sum().backward(), RuntimeError,
                             "none of output has requires_grad=True, this checkpoint.. is not necessary"),
    "sequential keyword": (lambda: checkpoint_sequential([chain], 1, leaf(), use_reentrant=False, nothing=1), TypeError, "nothing"),
    "loop, steps": (lambda: checkpoint_loop(lambda x, k: x, leaf(), -1, 1), ValueError, "expects steps >= 0 and snapshots >= 1"),
    "loop, snapshots": (lambda: checkpoint_loop(lambda x, k: x, leaf(), 1, 0), ValueError, "expects steps >= 0 and snapshots >= 1"),
    "loop, state": (lambda: checkpoint_loop(lambda x, k: x, (1.0,), 1, 1), TypeError, "expects a state of tensors, got float"),
    "loop, structure": (lambda: checkpoint_loop(lambda x, k: (x, x), leaf(), 3, 2), RuntimeError, "for a state of 1 tensors"),
    "loop, in place": (lambda: checkpoint_loop(lambda x, k: x.mul_(2), leaf(), 3, 2), RuntimeError, "step 0 changes its state in place"),
}


@pytest.mark.cases("name", BAD_USES)
def test_bad_use(name):
    use, error, message = BAD_USES[name]
    with pytest.raises(error, match=message):
        use()


def test_metadata_may_go_unchecked():
    once(lambda x: x.exp(), lambda x: x.float().exp(), determinism_check="none")()


def test_debugging_can_be_switched_on():
    with set_checkpoint_debug_enabled(True), pytest.raises(CheckpointError, match="dumping logs"):
        once(lambda x: x.exp().sin(), lambda x: x.exp())()


@pytest.mark.parametrize("call", [lambda: checkpoint(chain, leaf()), lambda: checkpoint_sequential([chain, chain], 2, leaf())])
def test_use_reentrant_should_be_given(call):
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly") as caught:
        call()
    assert caught[0].filename == __file__


@BOTH
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(segments, use_reentrant):
    functions = [Counted(function) for function in (cg.exp, cg.sin, chain, cg.tanh, cg.sin)]
    x = leaf()
    checkpoint_sequential(functions, segments, x, use_reentrant=use_reentrant).sum().backward()
    a = leaf()
    chain(a.exp().sin()).tanh().sin().sum().backward()
    assert x.grad.tolist() == a.grad.tolist()
    size = 5 // segments
    assert [f.calls for f in functions] == [2] * (size * (segments - 1)) + [1] * (5 - size * (segments - 1))


# ----- Loops -----
def forward_steps(steps, snapshots):
    """Return t(N, S) of Griewank and Walther (2000): the number of steps besides the recorded ones."""
    if steps == 0:
        return 0
    r = next(r for r in range(steps + 1) if math.comb(snapshots + r, snapshots) >= steps)
    return r * steps - (math.comb(snapshots + r, r - 1) if r else 0)


def test_the_formula_is_the_minimum():
    """The minimum is computed by dynamic programming over the place of the next snapshot."""
    best = {}
    for snapshots in range(1, 7):
        for steps in range(41):
            best[steps, snapshots] = (0 if steps < 2 else steps * (steps - 1) // 2 if snapshots == 1 else
                                      min(m + best[steps - m, snapshots - 1] + best[m, snapshots] for m in range(1, steps)))
            assert forward_steps(steps, snapshots) == best[steps, snapshots]


@pytest.mark.parametrize("snapshots", [1, 2, 3, 5, 8, 100])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 7, 10, 21, 56, 57, 60])
def test_loops_take_the_fewest_steps_and_give_the_same_bits(steps, snapshots):
    def step(x, number, w):
        return (x * w).sin() + number

    counted = Counted(step)
    x, w = leaf(), leaf(0.7, 0.8, 0.9)
    y = checkpoint_loop(counted, x, steps, snapshots, w)
    y.sum().backward()
    assert counted.calls == steps + forward_steps(steps, snapshots)

    a, b = leaf(), leaf(0.7, 0.8, 0.9)
    z = a
    for number in range(steps):
        z = step(z, number, b)
    z.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == (z.tolist(), a.grad.tolist())
    assert (w.grad is None) == (b.grad is None)
    assert steps == 0 or w.grad.tolist() == b.grad.tolist()


def test_a_loop_over_a_tuple_with_captured_leaves_and_random_numbers():
    rate = cg.tensor(0.1, dtype=cg.float64, requires_grad=True)
    hooked = []
    rate.register_hook(lambda g: hooked.append(g.item()) or g * 2)

    def step(state, number, scale, name):
        x, v, count = state
        assert name == "spring"
        noise = cg.rand(3, dtype=cg.float64)
        return x + rate * v, v - rate * x * scale + 0.01 * noise, count + 1

    def gradients(loop):
        cg.manual_seed(3)
        rate.grad = None
        x, v, scale = leaf(), leaf(1.0, 2.0, 3.0), cg.tensor(2.0, dtype=cg.float64, requires_grad=True)
        x_end, v_end, count = loop((x, v, cg.tensor(0)), scale * 1.5)
        after = cg.get_rng_state().tolist()
        (x_end * v_end).sum().backward()
        assert (count.item(), cg.get_rng_state().tolist()) == (20, after)
        return [x_end.tolist(), x.grad.tolist(), v.grad.tolist()], [scale.grad.item(), rate.grad.item()]

    def plain(state, scale):
        for number in range(20):
            state = step(state, number, scale, "spring")
        return state

    exact, close = gradients(lambda state, scale: checkpoint_loop(step, state, 20, 4, scale, "spring"))
    exact_expected, close_expected = gradients(plain)
    assert exact == exact_expected
    assert close == pytest.approx(close_expected, rel=1e-12)
    assert len(hooked) == 2     # once for each loop: on the sum, not on the part of each step


def test_a_loop_refuses_results_that_it_cannot_differentiate():
    x, w = leaf(), leaf()
    computed = w * 2
    with pytest.raises(RuntimeError, match="step 3 uses an output of MulBackward0 that is not among its arguments"):
        checkpoint_loop(lambda x, number: x * computed, x, 4, 2)
    extra = leaf()
    y = checkpoint_loop(lambda x, number: x * (extra if number == 1 else w), x, 4, 2)
    with pytest.raises(RuntimeError, match="step 1 uses a leaf that the last step does not use"):
        y.sum().backward()
    y = checkpoint_loop(lambda x, number: x.sin(), x, 4, 2)
    with pytest.raises(RuntimeError, match="its gradients cannot be differentiated again"):
        grad(y.sum(), x, create_graph=True)


def test_a_loop_again_after_an_error_or_with_a_retained_graph():
    x, failing = leaf(), []

    def step(x, number):
        if number in failing:
            raise KeyError("mine")
        return (x * 1.1).sin()

    y = checkpoint_loop(step, x, 12, 3)
    expected = grad(y.sum(), x, retain_graph=True)[0].tolist()
    failing.append(5)
    with pytest.raises(KeyError):
        grad(y.sum(), x, retain_graph=True)
    failing.clear()
    assert grad(y.sum(), x)[0].tolist() == expected
    with pytest.raises(RuntimeError, match="a second time"):
        grad(y.sum(), x)
    for mode in (cg.no_grad, cg.inference_mode):
        with mode():
            assert checkpoint_loop(step, x * 1, 12, 3).tolist() == y.tolist()


def test_a_loop_notices_a_changed_state():
    x = leaf()
    state = x * 1
    y = checkpoint_loop(lambda x, number: x.sin(), state, 5, 2)
    with cg.no_grad():
        state.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("snapshots", [2, 5])
def test_a_loop_keeps_no_more_than_its_snapshots(snapshots):
    peak = 0

    def step(x, number):
        nonlocal peak
        peak = max(peak, live_bytes())
        return x.sin()

    x = cg.rand(1 << 14, requires_grad=True)
    before = live_bytes()
    y = checkpoint_loop(step, x, 60, snapshots)
    saved_bytes = live_bytes() - before
    y.sum().backward()
    # The first snapshot is x itself; then the last step with its result, or a step and the gradient.
    assert saved_bytes <= (snapshots - 1 + 2.1) * x.nbytes
    assert peak - before <= (snapshots - 1 + 4.1) * x.nbytes


def test_nothing_is_left_of_a_loop():
    gc.collect()
    before = live_bytes()
    x = leaf()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint_loop(lambda x, number: x.sin(), x, 30, 3).sum().backward()
    y = checkpoint_loop(lambda x, number: x.sin(), x, 30, 3)
    del x, y
    gc.collect()
    assert live_bytes() == before
