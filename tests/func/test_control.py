"""Loops and branches as functions: values, derivatives of every order, vmap, and kinds of carries."""

import math

import numpy as np
import pytest

import cygrad as cg
from cygrad import func
from cygrad.func import cond, fori_loop, scan, while_loop

X = cg.tensor([[0.5, 1.0], [2.0, -1.0], [0.25, 3.0]], dtype=cg.float64)
C = cg.tensor([1.0, 2.0], dtype=cg.float64)


def step(carry, x):
    return (carry * x).sin() + x, carry * 2


def scanned(step, carry, xs):
    """Return the results of a scan, by a loop."""
    ys = []
    for x in xs:
        carry, y = step(carry, x)
        ys.append(y)
    return carry, cg.stack(ys)


def equal(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and np.array_equal(a.detach().numpy(), b.detach().numpy())


@pytest.mark.parametrize("count", [1, 3, 200])
def test_scan_is_a_loop(count):
    xs = X.repeat((count + 2) // 3, 1)[:count]
    equal(scan(step, C, xs), scanned(step, C, xs))
    last, ys = scan(step, C, xs, reverse=True)
    expected, others = scanned(step, C, xs.flip(0))
    equal((last, ys), (expected, others.flip(0)))


@pytest.mark.parametrize("count", [3, 100])
def test_scan_has_derivatives_of_every_order(count):
    xs = X.repeat((count + 2) // 3, 1)[:count] * 0.3

    def loss(function):
        return lambda carry, xs: sum(part.square().sum() for part in function(step, carry, xs))

    for derivative in (lambda f: func.grad(f, (0, 1))(C, xs), lambda f: func.jvp(f, (C, xs), (C, xs)),
                       lambda f: func.grad(lambda carry: func.grad(f)(carry, xs).sin().sum())(C)):
        ours, theirs = derivative(loss(scan)), derivative(loss(scanned))
        for a, b in zip(*(value if isinstance(value, tuple) else (value,) for value in (ours, theirs)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_trees_numbers_of_steps_and_no_steps():
    def counted(carry, x):
        return {"n": carry["n"] + 1, "s": carry["s"] + x[0] * x[1]}, {"first": x[0]}

    last, ys = scan(counted, {"n": cg.tensor(0), "s": C}, (X, X * 2))
    assert last["n"] == 3
    equal((last["s"], ys["first"]), (C + X[0] * X[0] * 2 + X[1] * X[1] * 2 + X[2] * X[2] * 2, X))
    last, ys = scan(lambda c, x: (c * 2, None), C, length=5)
    assert last.tolist() == [32, 64] and ys is None
    for count in (0, 3, 100):
        ys = scan(lambda c, x: (c * 0.5, (c, None, {"first": c[0], "none": None})), C, length=count)[1]
        assert ys[0].shape == (count, 2) and ys[1] is None and ys[2]["first"].shape == (count,) and ys[2]["none"] is None
    last, ys = scan(step, C, X[:0])
    assert last is C and ys.shape == (0, 2) and ys.dtype == cg.float64


def test_snapshots():
    xs = X.repeat(20, 1) * 0.3
    results = []
    for snapshots in (None, 4):
        carry, inputs = C.clone().requires_grad_(), xs.clone().requires_grad_()
        last, _ = scan(lambda c, x: ((c * x).sin() + x, None), carry, inputs, snapshots=snapshots)
        results.append(cg.autograd.grad(last.square().sum(), (carry, inputs)))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match="return None for y"):
        scan(step, C, X, snapshots=2)


@pytest.mark.parametrize("call, error, words", [
    (lambda: scan(step, C), ValueError, "length="), (lambda: scan(step, C, X, length=4), ValueError, r"\[3, 4\]"),
    (lambda: scan(step, C, length=-1), ValueError, "negative"), (lambda: scan(lambda c, x: c, C, X), TypeError, "must return"),
    (lambda: scan(lambda c, x: ((c, c), x), C, X), TypeError, "structure"),
    (lambda: scan(lambda c, x: (c.float(), x), C, X), TypeError, "shapes and dtypes"),
    (lambda: fori_loop(0, 2, lambda i, c: c.sum(), C), TypeError, "shape"),
    (lambda: while_loop(lambda c: c > 0, lambda c: c, C), TypeError, "one bool"),
    (lambda: while_loop(lambda c: "yes", lambda c: c, C), TypeError, "got str"),
    (lambda: cond(C, cg.sin, cg.cos, C), TypeError, "one bool"),
    (lambda: while_loop(lambda c: 1, lambda c: c, C), TypeError, "got int"),
    (lambda: while_loop(lambda c: c.sum(), lambda c: c, C), TypeError, "compare it"),
    (lambda: fori_loop(0, 3.5, lambda i, c: c, C), TypeError, "upper must be an int, got float"),
    (lambda: fori_loop("0", 3, lambda i, c: c, C), TypeError, "lower must be an int, got str"),
    (lambda: scan(step, C, length=2.5), TypeError, "length must be an int"),
    (lambda: scan(step, C, [1., 2.]), TypeError, "xs must be tensors, .* got float"),
    (lambda: scan(step, C, cg.tensor(1.)), TypeError, "got a 0-d tensor"),
    (lambda: scan(step, C, length=3, snapshots="2"), TypeError, "snapshots must be an int"),
    (lambda: scan(lambda c, x: (c, 1.5), C, length=2), TypeError, "y must be a tree of tensors, .* got float"),
    (lambda: scan(lambda c, x: (c + 1, c if c.sum() < 9 else None), C, length=9), TypeError, "y must be .* got NoneType"),
])
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("wrap", [lambda f: f, cg.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("count", [100, 600])
def test_results_without_a_gradient_bring_no_nan(count, wrap):
    """Zeros in place of their gradients would: 0 times infinity is one."""
    xs = cg.full((count,), np.inf, dtype=cg.float64)
    loop = wrap(lambda c: scan(lambda c, x: (c * 0.99 + 1, c * x), c, xs)[0].sum())
    for _ in range(2):
        carry = C.clone().requires_grad_()
        expected = carry
        for _ in range(count):
            expected = expected * 0.99 + 1
        gradients = [cg.autograd.grad(result, carry)[0] for result in (loop(carry), expected.sum())]
        assert gradients[0].isfinite().all()
        np.testing.assert_array_equal(*(gradient.numpy() for gradient in gradients))


@pytest.mark.parametrize("wrap", [lambda f: f, cg.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("count", [100, 600])
@pytest.mark.parametrize("create_graph", [False, True])
def test_carried_values_without_a_gradient_bring_no_nan(count, wrap, create_graph):
    """The square root at 0 has an infinite derivative."""
    def step(carry, _):
        first, second = carry
        return (first.sin() * 0.99, second * 0.5 + first.sqrt()), None

    loop = wrap(lambda first: scan(step, (first, C), length=count)[0][0].sum())
    for _ in range(2):
        first = cg.tensor([0.0, 0.5], dtype=cg.float64, requires_grad=True)
        expected = first
        for _ in range(count):
            expected = expected.sin() * 0.99
        gradients = [cg.autograd.grad(result, first, create_graph=create_graph)[0] for result in (loop(first), expected.sum())]
        np.testing.assert_allclose(*(gradient.detach().numpy() for gradient in gradients), rtol=1e-12)


STEPS_THAT_LEAVE_VALUES = {
    "a value that is carried on alone": lambda c, _: ((c[0].sin() * 0.99, c[1].sqrt()), None),
    "a value that is added to": lambda c, _: ((c[0].sin() * 0.99, c[1] * 0.5 + c[0].sqrt()), None),
    "a value beside a result": lambda c, _: ((c[0].sin() * 0.99, c[1].sqrt()), c[1].detach()),
    "values that change places": lambda c, _: ((c[1].sin() * 0.99, c[0].cos()), None),
    "a value that ends": lambda c, _: ((c[0].sin() * 0.99, c[0].sqrt() * 2), None),
}


@pytest.mark.parametrize("wrap", [lambda f: f, cg.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("count", [100, 601])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("step", STEPS_THAT_LEAVE_VALUES.values(), ids=STEPS_THAT_LEAVE_VALUES)
def test_carried_values_that_no_result_depends_on_have_no_gradient(step, count, wrap, create_graph):
    """None, as in a loop of Python's, and no zeros: the first steps, which are no part of the loop, would make NaN of these."""
    loop = wrap(lambda *carry: scan(step, carry, length=count)[0][0].sum())
    for _ in range(2):
        carry = [cg.tensor([0.0, value], dtype=cg.float64, requires_grad=True) for value in (0.5, 0.25)]
        expected = tuple(carry)
        for _ in range(count):
            expected, _ = step(expected, None)
        gradients, others = (cg.autograd.grad(result, carry, create_graph=create_graph, allow_unused=True)
                             for result in (loop(*carry), expected[0].sum()))
        for gradient, other in zip(gradients, others, strict=True):
            assert (gradient is None) == (other is None)
            if other is not None:
                np.testing.assert_allclose(gradient.detach().numpy(), other.detach().numpy(), rtol=1e-12)


def test_captured_while_loops_have_gradients_of_operands_that_some_number_of_steps_leads_to():
    """Which of two values that change places a result depends on differs from call to call: the other one has zeros, or None."""
    loop = cg.compile(lambda n, a, b: while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[2] * 1, c[1] * 1, c[3].sqrt()),
                                                 (n, a, b, a * 0)), fullgraph=True)
    for count in (100, 101, 200, 301):
        a, b = (cg.tensor(1.0, dtype=cg.float64, requires_grad=True) for _ in range(2))
        gradients = cg.autograd.grad(loop(cg.tensor(float(count)), a, b)[1], (a, b), allow_unused=True)
        assert gradients[count % 2].item() == 1 and not gradients[1 - count % 2]


@pytest.mark.parametrize("count", [100, 600])
@pytest.mark.parametrize("wrap", [lambda f: f, cg.compile], ids=["eager", "compiled"])
def test_a_value_that_goes_on_and_is_named_has_both_gradients_of_some_results(count, wrap):
    k = cg.tensor(0.3, dtype=cg.float64, requires_grad=True)
    loop = wrap(lambda k, b: scan(lambda c, x: ((c[0], c[1] * 0.5, k.sin()), c[1]), (k, b, k * 0), length=count))
    for _ in range(2):
        (first, _, third), _ = loop(k, cg.tensor(0.2, dtype=cg.float64, requires_grad=True))
        for results, expected in (((third,), math.cos(0.3)), ((first, third), 1 + math.cos(0.3)), ((first,), 1.0)):
            gradient, = cg.autograd.grad(results, k, retain_graph=True)
            np.testing.assert_allclose(gradient.item(), expected, rtol=1e-12)


@pytest.mark.parametrize("count", [60, 100])
def test_hooks_on_values_that_no_result_depends_on_are_not_called(count):
    """Nor does their gradient change: the loop is one node, as which it has None for them."""
    seen, w = [], cg.tensor(0.5, dtype=cg.float64, requires_grad=True)
    leaves = [cg.tensor(0.3, dtype=cg.float64, requires_grad=True) for _ in range(2)]
    a, b = (leaf * 1 for leaf in leaves)
    for number, each in enumerate((a, b, *leaves)):
        each.register_hook(lambda gradient, number=number: seen.append((number, gradient is None)))
    for number, leaf in enumerate(leaves):
        leaf.register_post_accumulate_grad_hook(lambda leaf, number=number: seen.append(number))
    last, _ = scan(lambda c, x: ((c[0] * 0.5 + w, c[1].sin() * w), None), (a, b), length=count)
    last[1].backward()
    assert seen == [(1, False), (3, False), 1]
    assert leaves[0].grad is None and leaves[1].grad is not None and w.grad is not None


@pytest.mark.parametrize("create_graph", [False, True])
def test_operands_with_a_history_that_no_result_depends_on(create_graph):
    """A backward ends at them, and takes no step behind."""
    loop = cg.compile(lambda a, b: scan(lambda c, x: ((c[0].sin(), c[1] * 0.99), None), (a, b), length=600)[0][1])
    for _ in range(3):
        x = cg.tensor(0.3, dtype=cg.float64, requires_grad=True)
        a, b = x * 2, x.exp() * 3
        result = loop(a, b)
        gradients = cg.autograd.grad(result, (a, b), create_graph=create_graph, allow_unused=True)
        assert gradients[0] is None
        np.testing.assert_allclose(gradients[1].item(), 0.99 ** 600, rtol=1e-12)


@pytest.mark.parametrize("count", [60, 64, 600])
def test_steps_that_enable_gradients_are_recorded(count):
    def step(c, x):
        with cg.enable_grad():
            return c * k, None

    k = cg.tensor(0.5, dtype=cg.float64, requires_grad=True)
    with cg.no_grad():
        last, _ = scan(step, k * 1, length=count)
    gradient, = cg.autograd.grad(last, k)
    np.testing.assert_allclose(gradient.item(), count * 0.5 ** count, rtol=1e-12)


@pytest.mark.parametrize("body", [lambda i, c: c * 0.5 + cg.tensor(i) * 0.01, lambda i, c: c + cg.tensor(i) // 2 * 1.0,
                                  lambda i, c: c + cg.tensor(i).sqrt(), lambda i, c: c + cg.tensor(i, dtype=cg.float32) * 0.1,
                                  lambda i, c: c * 0.5 + cg.scalar_tensor(i)])
def test_tensors_of_the_number_of_a_step_are_integers(body):
    expected = cg.tensor(0.0, dtype=cg.float64)
    for number in range(100):
        expected = body(number, expected)
    assert fori_loop(0, 100, body, cg.tensor(0.0, dtype=cg.float64)).item() == expected.item()


def test_captured_loops_with_snapshots_are_differentiated_twice():
    loop = cg.compile(lambda c, xs: scan(lambda c, x: ((c * x).sin(), None), c, xs, snapshots=20)[0], fullgraph=True)
    xs, seen = cg.ones(70, 2, dtype=cg.float64), []
    for _ in range(3):
        c = C.clone().requires_grad_()
        gradient, = cg.autograd.grad(loop(c, xs).sum(), c, create_graph=True)
        seen.append(cg.autograd.grad(gradient.sum(), c)[0].tolist())
    assert seen[0] == seen[1] == seen[2] and loop.cache_info().hits == 2


def test_fori_and_while_loops_differentiate():
    assert fori_loop(2, 5, lambda i, x: x * i, C).tolist() == [24, 48]
    assert fori_loop(5, 2, lambda i, x: x * i, C) is C

    def root(a):
        """Return the square root by Newton's method."""
        return while_loop(lambda x: (x * x - a).abs().sum() > 1e-12, lambda x: (x + a / x) / 2, a)

    for value in (2.0, 9.0):
        a = cg.tensor(value, dtype=cg.float64)
        np.testing.assert_allclose(root(a).item(), value ** 0.5, rtol=1e-12)
        np.testing.assert_allclose(func.grad(root)(a).item(), 0.5 / value ** 0.5, rtol=1e-6)


def test_predicates_that_differ_among_examples():
    def collatz(n):
        return while_loop(lambda state: state[0] > 1,
                          lambda state: (cond(state[0] % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, state[0]), state[1] + 1),
                          (n, cg.tensor(0)))[1]

    assert func.vmap(collatz)(cg.tensor([1, 2, 3, 7])).tolist() == [0, 1, 7, 16]
    assert func.vmap(func.vmap(collatz))(cg.tensor([[1, 2], [3, 7]])).tolist() == [[0, 1], [7, 16]]
    slopes = func.vmap(func.grad(lambda x: cond(x > 0, lambda x: x * x, lambda x: -x, x)))(cg.tensor([3., -2.]))
    assert slopes.tolist() == [6, -1]


def test_loops_are_captured():
    compiled = cg.compile(lambda c, xs: scan(step, c, xs), fullgraph=True)
    for scale in (1, 2, 3):
        equal(compiled(C * scale, X), scan(step, C * scale, X))
    assert compiled.cache_info().hits == 2


COUNTED = {"sum": lambda t, i: t + i, "difference": lambda t, i: i - t, "product": lambda t, i: t * i * 3,
           "quotient": lambda t, i: t / (i + 1), "comparison": lambda t, i: t == i, "in place": lambda t, i: t.clone().add_(i),
           "filled": lambda t, i: t.masked_fill(t == 2, i), "negative": lambda t, i: t - 2 * i}
INTEGERS = [cg.tensor([1, 2, 3]), cg.tensor(5), cg.tensor([2 ** 24 + 1, 2 ** 40 + 1]), cg.tensor([True, False]),
            *(cg.tensor([1, 3], dtype=dtype) for dtype in (cg.int8, cg.int32, cg.uint8))]


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("values", INTEGERS, ids=repr)
def test_the_number_of_a_step_beside_integers(values, name):
    """They stay integers."""
    compute = COUNTED[name]

    def body(i, carry):
        result = compute(values, i)
        names.add(result.dtype)
        return carry * 0.5 + result.double().sum()

    results = []
    for loop in (fori_loop, lambda lower, upper, body, carry: [carry := body(i, carry) for i in range(lower, upper)][-1]):
        names = set()
        try:
            results.append((loop(0, 100, body, cg.tensor(0.0, dtype=cg.float64)).item(), names))
        except RuntimeError as error:
            results.append(str(error))
    assert results[0] == results[1]


@pytest.mark.parametrize("count", [63, 64, 65, 66, 200])
def test_a_predicate_is_computed_once_for_each_step(count):
    calls = []

    def predicate(c):
        calls.append(1)
        return c < count

    assert while_loop(predicate, lambda c: c + 1, cg.tensor(0)).item() == count and len(calls) <= count + 1


def test_a_predicate_by_random_numbers():
    generator, outcomes = cg.Generator(), []
    for loop in (while_loop, while_in_python):
        generator.manual_seed(1)
        steps = loop(lambda c: cg.rand((), generator=generator) > 0.005, lambda c: c + 1, cg.tensor(0))
        outcomes.append((steps.item(), cg.rand((), generator=generator).item()))
    assert outcomes[0] == outcomes[1] and outcomes[0][0] > 64


def while_in_python(predicate, body, carry):
    while predicate(carry):
        carry = body(carry)
    return carry
