"""Second derivatives of long loops: the backward of a loop is a loop."""

import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad import func
from cygrad.func import control, fori_loop, looped_backward, looping, scan, while_loop
from test_loops import CASES, COUNT, W, affine, drawn, leaves_of, random_step, required

pytestmark = pytest.mark.usefixtures("usual_sizes")

C = drawn(3)


@pytest.fixture
def as_loops(monkeypatch):
    """Count the backwards that are loops, also of short loops, in a list."""
    ran, backward = [], looped_backward.LoopedBackward.__call__

    def counted(*arguments):
        ran.append(1)
        return backward(*arguments)

    monkeypatch.setattr(looping, "LOOPED_FROM", 2)
    monkeypatch.setattr(looped_backward.LoopedBackward, "__call__", counted)
    return ran


def derivatives(case, order, **options):
    """Return the derivatives of a sum of the results of a scan, of each order, by its carry, its xs and a constant of its step."""
    step, carry, xs = case
    W.requires_grad_()
    try:
        carry, xs = required(carry), required(xs)
        inputs = [leaf for leaf in leaves_of((carry, xs, W)) if leaf.requires_grad]
        results = [result.abs() if result.is_complex() else result for result in leaves_of(scan(step, carry, xs, **options))]
        value, every = sum((result.double() * (1 + number)).sin().sum() for number, result in enumerate(results)), []
        for k in range(order):
            gradients = cg.autograd.grad(value, inputs, create_graph=k < order - 1, allow_unused=True)
            every += gradients
            value = sum((each * each.conj()).real.sum() if each.is_complex() else each.square().sum()
                        for each in gradients if each is not None and each.requires_grad) if k < order - 1 else None
        return every
    finally:
        W.requires_grad_(False)


def close(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            tolerance = 1e-4 if a.dtype in (cg.float32, cg.complex64) else 1e-9
            scale = max(1.0, float(b.abs().max())) if b.numel() else 1.0
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("options", [{}, {"reverse": True}], ids=["forward", "reverse"])
@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_of_loops_and_of_single_steps(name, options, as_loops, monkeypatch):
    step, carry, xs = CASES[name]
    case = step, carry(), xs()
    ours = derivatives(case, 2, **options)
    assert as_loops
    monkeypatch.setattr(control, "looped", lambda *_: None)
    close(ours, derivatives(case, 2, **options))


@pytest.mark.parametrize("snapshots", [None, 16])
def test_third_derivatives(snapshots, as_loops, monkeypatch):
    case = lambda c, x: ((c * W[0] + x).sin(), None), drawn(3), drawn(80, 3)
    ours = derivatives(case, 3, snapshots=snapshots)
    assert len(as_loops) > 1
    monkeypatch.setattr(control, "looped", lambda *_: None)
    close(ours, derivatives(case, 3))


@pytest.mark.parametrize("loop", [
    lambda x: fori_loop(0, COUNT, lambda i, x: x + (x * W[0]).sin() * ((i + 1) / (i + 2)), x),
    lambda x: while_loop(lambda s: s[1] < COUNT, lambda s: (s[0] + (s[0] * W[0]).sin() * 0.1, s[1] + 1, s[2]), (x, cg.tensor(0.), W[1]))[0],
], ids=["fori_loop", "while_loop"])
def test_other_loops(loop, as_loops, monkeypatch):
    def second(x):
        return func.grad(lambda x: func.grad(lambda x: loop(x).sum())(x).square().sum())(x)

    ours, compiled = second(C), cg.compile(second, fullgraph=True)
    assert as_loops
    close([ours, compiled(C * 2), compiled(C)], [ours, second(C * 2), ours])
    monkeypatch.setattr(looping, "LOOPED_FROM", 1 << 30)
    close([ours], [second(C)])


def test_gradients_with_and_without_a_graph_have_the_same_bits(as_loops):
    carry, xs = drawn(3).requires_grad_(), drawn(COUNT, 3).requires_grad_()
    last, ys = scan(affine, carry, xs)
    plain = cg.autograd.grad((last, ys), (carry, xs), (last.detach(), ys.detach()), retain_graph=True)
    for a, b in zip(plain, cg.autograd.grad((last, ys), (carry, xs), (last.detach(), ys.detach()), create_graph=True), strict=True):
        assert cg.equal(a, b) and b.requires_grad
    assert as_loops


def test_inputs_that_nothing_depends_on_have_no_gradient(as_loops, loops):
    carry, xs, unused = drawn(3).requires_grad_(), drawn(COUNT, 3).requires_grad_(), drawn(3).requires_grad_()
    last, ys = scan(lambda c, x: (c.sin() + x.detach() + 0 * unused.detach(), c * 2), carry, xs)
    for value in last.sum(), ys.sum():
        first = cg.autograd.grad(value, (carry, xs, unused), create_graph=True, allow_unused=True)
        assert first[0] is not None and first[1:] == (None, None)
    assert len(as_loops) == 2 and len(loops) == 5


def test_a_tensor_that_is_carried_on_and_named_by_the_step_has_both_gradients(as_loops):
    w = drawn(3, 3).requires_grad_()
    last, _ = scan(lambda c, x: ((c[0] @ c[1] * 0.5 + x @ w, c[1]), None), (drawn(3), w), drawn(COUNT, 3))
    plain, = cg.autograd.grad(last[0].sum(), w, retain_graph=True)
    close([plain], cg.autograd.grad(last[0].sum(), w, create_graph=True))


def test_threads_differentiate_one_graph_again_behind_its_vmap(as_loops):
    w, xs, failures = drawn(3, 3).requires_grad_(), drawn(COUNT, 3), []
    value = func.vmap(lambda c: scan(lambda c, x: ((c @ w + x).tanh(), None), c, xs)[0].sum())(drawn(4, 3)).sum()
    expected, = cg.autograd.grad(value, w, retain_graph=True)

    def work():
        try:
            for _ in range(5):
                close([expected], cg.autograd.grad(value, w, create_graph=True, retain_graph=True))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_backward_by_values_of_python_runs_one_by_one(as_loops):
    """A step whose gradient reads a number has no program; its second derivative is there as before."""
    class Doubled(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 if g.sum().item() < 1e9 else g

    carry = drawn(3).requires_grad_()
    last, _ = scan(lambda c, x: (Doubled.apply(c).sin() + x, None), carry, drawn(COUNT, 3))
    first, = cg.autograd.grad(last.sum(), carry, create_graph=True)
    assert cg.autograd.grad(first.sum(), carry)[0].isfinite().all()


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_second_derivatives_of_steps_at_random(first, as_loops, monkeypatch):
    for seed in range(first, first + 20):
        case = random_step(seed), (drawn(3), drawn(3)), drawn(COUNT, 3)
        monkeypatch.setattr(looping, "LOOPED_FROM", 2)
        ours = derivatives(case, 2)
        monkeypatch.setattr(looping, "LOOPED_FROM", 1 << 30)
        close(ours, derivatives(case, 2))
    assert as_loops


def test_steps_that_read_equal_elements_add_them_as_pythons_loop():
    table, places = cg.tensor(np.random.default_rng(0).standard_normal((6, 3))).requires_grad_(), cg.arange(270).view(90, 3) * 7 % 6

    def step(carry, rows):
        return carry * 0.5 + (table[rows] * 3).sin().sum(0), None

    carry = cg.zeros(3, dtype=cg.float64)
    expected = carry
    for rows in places:
        expected, _ = step(expected, rows)
    ours, theirs = (cg.autograd.grad(result.exp().sum(), table)[0] for result in (cg.func.scan(step, carry, places)[0], expected))
    assert np.array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("count", [5, 70, 600])
def test_parts_of_rows_that_are_carried_have_their_gradients(count):
    """A part has the history of its row, which lies in one memory with others."""
    xs = cg.ones(count, 2, requires_grad=True)
    last, ys = cg.func.scan(lambda carry, x: (x[1:], carry * x[0]), cg.zeros(1), xs)
    gradient, = cg.autograd.grad(last.sum() + ys.sum(), xs)
    assert gradient[0].tolist() == [0.0, 1.0] and gradient[-1].tolist() == [1.0, 1.0] and gradient.sum().item() == 2 * count - 1
