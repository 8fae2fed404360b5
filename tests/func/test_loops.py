"""Long scans run as one loop of the core: the same bits as the steps one by one, in every case that a loop takes, and its other cases."""

import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad import func
from cygrad._testing import arenas
from cygrad.func import control, scan

pytestmark = pytest.mark.usefixtures("usual_sizes")     # a loop takes no step that may be pending
COUNT = 150
DRAWN = np.random.default_rng(0)
W = cg.tensor(DRAWN.standard_normal((3, 3)) / 3, dtype=cg.float64)


def drawn(*shape, dtype="float64"):
    return cg.tensor((DRAWN.standard_normal(shape) / 2).astype(dtype))


def affine(carry, x):
    carry = (carry @ W + x).tanh()
    return carry, carry.sum()


def tree(carry, x):
    position, (velocity, count) = carry["position"], carry["rest"]
    velocity = velocity * 0.5 - position.sin() * x["a"][0]
    position = position + velocity * x["b"]
    return {"position": position, "rest": (velocity, count + 1)}, (position * 2, velocity.exp().sum(0))


def unused(carry, x):
    return carry * 0.5 + x.detach(), None


def identity(carry, x):
    a, b = carry
    return (b * 1.0, (a + b).sin()), a * x


def nothing_but_x(carry, x):
    return x.sin(), carry * 2


def trajectory(carry, x):
    carry = carry * 0.5 + x.sin()
    return carry, (carry, carry, carry * x)


def before(carry, x):
    return carry * 0.5 + x.sin(), carry


def part(carry, x):
    """A carried value in memory that is larger than it."""
    both = carry.sin().repeat(2) + x.repeat(2)
    return both[:3], both.sum()


def parts(carry, x):
    return (carry * x).sum().expand(2) * 0.25 + x, carry * 3


def complex_step(carry, x):
    return carry * (0.9 + 0.1j) + x, carry.abs()


def decided(carry, x):
    return (carry * 0.9 + x if carry.sum() < 1e6 else carry), None


CASES = {
    "matrix": (affine, lambda: drawn(3), lambda: drawn(COUNT, 3)),
    "float32": (lambda carry, x: (carry * 0.5 + x.sin(), carry.exp()), lambda: drawn(5, dtype="float32"),
                lambda: drawn(COUNT, 5, dtype="float32")),
    "trees": (tree, lambda: {"position": drawn(2, 3), "rest": (drawn(2, 3), cg.tensor(0))},
              lambda: {"a": (drawn(COUNT, 2, 1),), "b": drawn(COUNT)}),
    "x of other strides": (affine, lambda: drawn(3), lambda: drawn(3, COUNT).T),
    "x repeated": (affine, lambda: drawn(3), lambda: drawn(1, 3).expand(COUNT, 3)),
    "x without gradient": (unused, lambda: drawn(4), lambda: drawn(COUNT, 4)),
    "carry of one dtype, x of another": (lambda carry, x: (carry * x.double(), x * 2), lambda: drawn(4),
                                         lambda: drawn(COUNT, 4, dtype="float32")),
    "exchanged": (identity, lambda: (drawn(4), drawn(4)), lambda: drawn(COUNT, 4)),
    "carry without use": (nothing_but_x, lambda: drawn(4), lambda: drawn(COUNT, 4)),
    "expanded": (parts, lambda: drawn(2), lambda: drawn(COUNT, 2)),
    "0-d": (lambda carry, x: (carry.cos() + x, carry * x), lambda: drawn(), lambda: drawn(COUNT)),
    "trajectory": (trajectory, lambda: drawn(4), lambda: drawn(COUNT, 4)),
    "carry before the step": (before, lambda: drawn(4), lambda: drawn(COUNT, 4)),
    "complex": (complex_step, lambda: drawn(3) + 1j * drawn(3), lambda: drawn(COUNT, 3) + 0j),
    "large": (lambda carry, x: (carry * 0.5 + x, carry.mean()), lambda: drawn(500), lambda: drawn(COUNT, 500)),
    "decisions": (decided, lambda: drawn(3), lambda: drawn(COUNT, 3)),
}


def leaves_of(tree):
    return [leaf for leaf in cg.pytree.tree_flatten(tree)[0] if isinstance(leaf, cg.Tensor)]


def required(tree):
    return cg.pytree.tree_map(lambda leaf: leaf.detach().clone(memory_format=cg.preserve_format).requires_grad_()
                              if leaf.dtype.is_differentiable else leaf.clone(), tree)


def outcome(case, **options):
    """Return the results of a scan, and the gradients of its carry, its xs and constants of its step."""
    step, carry, xs = case
    W.requires_grad_()
    try:
        carry, xs = required(carry), required(xs)
        results = [result for result in leaves_of(scan(step, carry, xs, **options)) if result is not None]
        weighted = [result for result in results if result.requires_grad]
        weights = [cg.tensor(np.random.default_rng(k).standard_normal(result.shape), dtype=result.dtype)
                   for k, result in enumerate(weighted)]
        inputs = [leaf for leaf in leaves_of((carry, xs, W)) if leaf.requires_grad]
        return [*results, *cg.autograd.grad(weighted, inputs, weights, allow_unused=True)]
    finally:
        W.requires_grad_(False)


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


@pytest.mark.parametrize("options", [{}, {"reverse": True}], ids=["forward", "reverse"])
@pytest.mark.parametrize("name", CASES)
def test_a_loop_has_the_bits_of_its_steps(name, options, loops, monkeypatch):
    step, carry, xs = CASES[name]
    case = step, carry(), xs()
    ours = outcome(case, **options)
    assert loops == [1]
    monkeypatch.setattr(control, "looped", lambda *_: None)
    same(ours, outcome(case, **options))


def in_python(step, carry, xs=None, length=None):
    """Return the results of a scan by a loop of Python."""
    ys = []
    for k in range(len(xs) if length is None else length):
        carry, y = step(carry, None if xs is None else xs[k])
        ys.append(y)
    return carry, None if ys[0] is None else cg.stack(ys)


OPERATIONS = [
    lambda a, b: a + b, lambda a, b: a - 0.3 * b, lambda a, b: a * b, lambda a, b: a.sin() + b, lambda a, b: (a - b).tanh(),
    lambda a, b: a.flip(0) * 0.5, lambda a, b: cg.stack([a[0] * b[1], b[0], a[2] - b[2]]), lambda a, b: cg.cat([a[1:], b[:1] * 0.7]),
    lambda a, b: a @ W, lambda a, b: a.clone().mul_(0.9).add_(b), lambda a, b: -a.exp().clamp(max=2), lambda a, b: a * b.sum(),
    lambda a, b: cg.where(a > b, a, b), lambda a, b: a / (1 + b * b), lambda a, b: a.detach() + b,
]


def random_step(seed):
    """Return a step on two tensors and a row, of which values may go on as they are."""
    rng = np.random.default_rng(seed)
    operations = [(OPERATIONS[rng.integers(len(OPERATIONS))], *rng.integers(0, 99, 2)) for _ in range(rng.integers(2, 9))]
    places, stays = rng.integers(0, 99, 3), rng.random() < 0.3

    def step(carry, x):
        values = [*carry, x, W[1]]
        for operation, first, second in operations:
            values.append(operation(values[first % len(values)], values[second % len(values)]))
        chosen = [values[place % len(values)].sin() for place in places]        # bounded, and memory of their own
        return (chosen[0], carry[1] if stays else chosen[1]), chosen[2]

    return step


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_loops_of_steps_at_random(first, monkeypatch):
    for seed in range(first, first + 20):
        case = random_step(seed), (drawn(3), drawn(3)), drawn(COUNT, 3)
        monkeypatch.undo()
        with arenas(reuses=seed % 2 == 0):
            ours = outcome(case)
        monkeypatch.setattr(f"{__name__}.scan", in_python)
        same(ours, outcome(case))


READ_OFTEN = {
    "constants": lambda w, b: lambda y, x: ((w @ (y + 0.1 * (w @ y + b))).tanh(), None),
    "carried and stacked": lambda w, b: lambda y, x: ((w @ (y + 0.1 * (w @ y + b) * y)).tanh(),) * 2,
    "carried before the step": lambda w, b: lambda y, x: ((w @ (y + 0.1 * (w @ y + b) * y)).tanh(), y),
    "views of constants": lambda w, b: lambda y, x: ((y @ w.T + 0.1 * (w @ y) + y @ w).tanh() * b, y * 2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("name", READ_OFTEN)
@pytest.mark.parametrize("size", [3, 5, 16])
def test_gradients_are_added_in_the_order_of_the_engine(name, dtype, size, loops):
    """Parts of steps, and of other nodes that read the same tensors: the sum of a step by itself would have other last bits."""
    def gradients(by):
        rng = np.random.default_rng(0)
        w, b, y = (cg.tensor((rng.standard_normal(shape) / size ** 0.5).astype(dtype), requires_grad=True)
                   for shape in ((size, size), size, size))
        last, ys = by(READ_OFTEN[name](w, b), y, length=COUNT)
        loss = (last * last).sum() + (w * b).sum() if ys is None else (ys * ys * 0.3).sum() + (w * y).sum()
        return cg.autograd.grad(loss.real if loss.is_complex() else loss, (w, b, y))

    same(gradients(scan), gradients(in_python))
    assert loops == [1]


@pytest.mark.parametrize("step", [lambda carry, x: (carry * 0.5 + x, carry.sum()), lambda carry, x: ((carry * x).contiguous(), None)],
                         ids=["strides stay", "row-major from the first step on"])
def test_carries_of_other_strides(step, monkeypatch):
    case = step, drawn(4, 3).T, drawn(COUNT, 3, 4)
    ours = outcome(case)
    monkeypatch.setattr(control, "looped", lambda *_: None)
    same(ours, outcome(case))


@pytest.mark.parametrize("snapshots", [1, 3, 16, 20, 64, 149, 1000])
def test_snapshots_change_no_bit(snapshots, loops):
    step, carry, xs = lambda carry, x: ((carry * x).sin() + x, None), drawn(3), drawn(COUNT, 3)
    same(outcome((step, carry, xs)), outcome((step, carry, xs), snapshots=snapshots))
    assert loops == [1, 1]


def test_blocks_within_blocks():
    step, carry, xs = lambda carry, x: ((carry * x).sin() + x, None), drawn(2), drawn(5000, 2)
    same(outcome((step, carry, xs)), outcome((step, carry, xs), snapshots=16))


def test_a_step_of_another_branch_ends_the_loop(loops):
    def step(carry, x):
        return (carry + x if carry < 100 else carry - x), carry

    xs = cg.ones(COUNT, dtype=cg.float64)
    carry = cg.tensor(0.0, dtype=cg.float64, requires_grad=True)
    last, ys = scan(step, carry, xs)
    assert loops == [] and last.item() == 100 and ys.max() == 100
    assert cg.autograd.grad(last, carry)[0] == 1


def test_gradients_of_some_results_and_of_no_result():
    carry, xs = drawn(3).requires_grad_(), drawn(COUNT, 3)
    for chosen in (lambda last, ys: last.sum(), lambda last, ys: ys.sum()):
        ours = cg.autograd.grad(chosen(*scan(affine, carry, xs)), carry)
        theirs = carry, []
        for x in xs:
            state, y = affine(theirs[0], x)
            theirs = state, [*theirs[1], y]
        theirs = cg.autograd.grad(chosen(theirs[0], cg.stack(theirs[1])), carry)
        np.testing.assert_allclose(ours[0].numpy(), theirs[0].numpy(), rtol=1e-10, atol=1e-14)
    with cg.no_grad():
        assert not scan(affine, carry, xs)[0].requires_grad


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_gradients_that_arrive_in_other_strides(order, loops, monkeypatch):
    carry, xs = drawn(4, 3).requires_grad_(), drawn(COUNT, 4, 3)
    scale = drawn(COUNT, 4, 3).permute(order)

    def gradient():
        last, ys = scan(lambda c, x: ((c * 0.9 + x).sin(), c * x), carry, xs)
        return cg.autograd.grad((ys.permute(order) * scale).sum() + (last.T * last.T).sum(), carry)

    ours = gradient()
    assert loops == [1]
    monkeypatch.setattr(control, "looped", lambda *_: None)
    np.testing.assert_allclose(ours[0].numpy(), gradient()[0].numpy(), rtol=1e-12)


def test_a_graph_that_is_kept_differentiates_again_and_of_every_order(loops):
    carry, xs = drawn(3).requires_grad_(), drawn(COUNT, 3) * 0.1
    last, _ = scan(affine, carry, xs)
    first = cg.autograd.grad(last.sum(), carry, retain_graph=True)
    same(first, cg.autograd.grad(last.sum(), carry, retain_graph=True))
    assert cg.autograd.gradcheck(lambda c: scan(affine, c, xs)[0], (carry,))
    assert cg.autograd.gradgradcheck(lambda c: scan(affine, c, xs)[0], (carry,))
    last.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        last.sum().backward()
    assert loops


@pytest.mark.parametrize("name", ["trajectory", "carry before the step", "exchanged", "trees"])
def test_second_derivatives_of_all_results(name, monkeypatch):
    step, carry, xs = CASES[name]
    carry, xs = required(carry()), required(xs())
    inputs = [leaf for leaf in leaves_of((carry, xs)) if leaf.requires_grad]

    def second():
        loss = sum(result.double().sin().sum() for result in leaves_of(scan(step, carry, xs)))
        first = cg.autograd.grad(loss, inputs, create_graph=True)
        return cg.autograd.grad(sum(part.square().sum() for part in first), inputs)

    ours = second()
    monkeypatch.setattr(control, "CAPTURED_FROM", 1000)
    for a, b in zip(ours, second(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)


def test_transforms():
    carry, xs = drawn(4, 3), drawn(COUNT, 3) * 0.2
    batched = func.vmap(lambda c: scan(affine, c, xs)[0])(carry)
    np.testing.assert_allclose(batched.numpy(), cg.stack([scan(affine, c, xs)[0] for c in carry]).numpy(), rtol=1e-12)
    compiled = cg.compile(lambda c: scan(affine, c, xs)[0].sum())
    same([compiled(carry[0]), compiled(carry[1])], [scan(affine, carry[0], xs)[0].sum(), scan(affine, carry[1], xs)[0].sum()])


@pytest.mark.parametrize("changed", ["xs", "constant"])
def test_values_that_change_before_the_backward_are_refused(changed):
    xs, scale = drawn(COUNT, 3), drawn(3)
    carry = drawn(3).requires_grad_()
    last, _ = scan(lambda c, x: (c * scale + x, c.sin() * x), carry, xs)
    (xs if changed == "xs" else scale).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        last.sum().backward()


def test_the_first_carry_may_change_before_the_backward():
    carry, xs = drawn(3).requires_grad_(), drawn(COUNT, 3)
    start = carry * 1
    last, _ = scan(affine, start, xs)
    expected = cg.autograd.grad(scan(affine, carry, xs)[0].sum(), carry)
    with cg.no_grad():
        carry.mul_(2)
    same(cg.autograd.grad(last.sum(), carry), expected)


def test_steps_that_no_loop_takes(loops):
    """Random numbers, writes outside, ranks by NumPy, values of Python."""
    counter = cg.zeros(1)

    def writes(carry, x):
        counter.add_(1)
        return carry + x, None

    for step in (part, lambda c, x: (c * cg.rand(3) + x, None), writes, lambda c, x: (c.kthvalue(1)[0] + x, None), lambda c, x: (c + x, 1)):
        xs = cg.ones(COUNT, 3)
        if not isinstance(step(cg.zeros(3), xs[0])[1], int):
            scan(step, cg.zeros(3), xs)
        else:
            with pytest.raises((TypeError, RuntimeError)):
                scan(step, cg.zeros(3), xs)
    assert loops == [] and counter.item() == COUNT + 1


def test_threads_run_one_step_side_by_side():
    xs = drawn(400, 3)
    expected, results = scan(affine, xs[0], xs)[0], {}

    def work(number):
        for _ in range(20):
            results.setdefault(number, []).append(scan(affine, xs[0], xs)[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for several in results.values():
        for each in several:
            same([each], [expected])


@pytest.mark.parametrize("size", [3, 200])
def test_backwards_leave_the_values_that_a_loop_keeps(size):
    """A loop of three numbers keeps the values of its backward, one of 200 computes them again."""
    carry, xs = drawn(size).requires_grad_(), drawn(COUNT, size).requires_grad_()
    last, ys = scan(lambda carry, x: ((carry * x).sin() * carry + x, carry * 2), carry, xs)
    loss, expected, results = last.sum() + (ys * ys).sum(), [], []

    def work():
        for chosen in (loss, last.sum(), loss):
            results.append(cg.autograd.grad(chosen, (carry, xs), retain_graph=True))

    work()
    expected, results = results, []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(expected[0], expected[2])
    for each in results:
        assert any(all(map(cg.equal, each, other)) for other in expected)
    same(cg.autograd.grad(loss, (carry, xs)), expected[0])


def test_arguments_are_refused_as_by_steps():
    with pytest.raises(ValueError, match="return None for y"):
        scan(affine, drawn(3), drawn(COUNT, 3), snapshots=4)
    for snapshots in (0, -1):
        with pytest.raises(ValueError, match="snapshots"):
            scan(lambda c, x: (c + x, None), drawn(3), drawn(COUNT, 3), snapshots=snapshots)
    with pytest.raises(TypeError, match="carry must keep"):
        scan(lambda c, x: (c[:-1], None), drawn(200), drawn(COUNT))


# ----- States before and after the step -----
@pytest.mark.parametrize("order", ["nc", "cn", "ccn", "cnc"])
def test_gradients_of_states_before_and_after_steps(order):
    """The engine adds the gradients of the last stack first, then the parts of the steps behind."""
    def step(carry, x):
        states = {"c": carry, "n": (carry * 0.9).sin()}
        return states["n"], tuple(states[name] for name in order)

    for seed in range(10):
        rng = np.random.default_rng(seed)
        a = cg.tensor(rng.standard_normal(3), requires_grad=True)
        weights = [cg.tensor(rng.standard_normal((66, 3))) for _ in order]
        ours = cg.autograd.grad(scan(step, a, length=66)[1], a, weights)
        carry, rows = a, []
        for _ in range(66):
            carry, y = step(carry, None)
            rows.append(y)
        same(ours, cg.autograd.grad([cg.stack(column) for column in zip(*rows, strict=True)], a, weights))


# ----- Steps with several programs -----
@pytest.mark.parametrize("other", [lambda c: c.double(), lambda c: cg.stack([c, c])], ids=["dtype", "shape"])
@pytest.mark.parametrize("loop", [lambda step, c: scan(step, c, length=70)[0],
                                  lambda step, c: func.fori_loop(0, 70, lambda k, c: step(c, None)[0], c)], ids=["scan", "fori_loop"])
def test_a_carry_that_changed_its_kind_harms_no_later_loop(loop, other):
    def step(carry, x):
        return (carry + 1 if carry < 100 else other(carry + 1)), None

    for start in (0.0, 80.0, 0.0, 80.0, 10.0):
        carry = cg.tensor(start)
        if start == 80.0:
            with pytest.raises(TypeError, match="must keep shapes and dtypes"):
                loop(step, carry)
        else:
            assert loop(step, carry).item() == start + 70


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("missing", [1, 3, 8])
@pytest.mark.parametrize("tree", [lambda y: y, lambda y: (y, cg.ones(2))], ids=["y", "leaf"])
def test_results_that_some_steps_do_not_have_are_refused(tree, missing, reverse):
    def step(carry, x):
        return carry + 1, tree(None if (carry < missing) != reverse else carry)

    for length in (20, 64, 600):
        with pytest.raises(TypeError, match="None in the same place|got NoneType"):
            scan(step, cg.tensor(0.0), length=length, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_a_constant_that_each_step_returns(reverse):
    """Such steps run one by one, and their results are one stack, as in a loop of Python."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        w, carry = cg.tensor(rng.standard_normal(3), requires_grad=True), cg.tensor(rng.standard_normal(3))
        weights = [cg.tensor(rng.standard_normal((70, 3))) for _ in range(2)]
        ours = cg.autograd.grad(scan(lambda c, x, w=w: ((c * w).tanh(), (w, w)), carry, length=70, reverse=reverse)[1], w, weights)
        same(ours, cg.autograd.grad([cg.stack([w] * 70), cg.stack([w] * 70)], w, weights))
