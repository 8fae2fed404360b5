"""User-defined Functions in forward mode and inside vmap: jvp, vmap, generate_vmap_rule, and refusals."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import Function
from cygrad.autograd import forward_ad as fw
from cygrad.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from samples import array_of

pytestmark = pytest.mark.usefixtures("nothing_left")

X = cg.tensor([0.5, -1.0, 2.0], dtype=cg.float64)
ROWS = cg.tensor(np.arange(6.0).reshape(2, 3) - 2)


def same(actual, expected):
    np.testing.assert_allclose(array_of(actual), expected, rtol=1e-12, atol=1e-12)


class Cube(Function):
    """x**3; its backward and its jvp read saved tensors."""

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * 3 * x**2


class Generated(Cube):
    generate_vmap_rule = True


class Own(Cube):
    @staticmethod
    def vmap(info, in_dims, x):
        return Own.apply(x), in_dims[0]


class Scaled(Function):
    """(a * b * factor, sum(a)): several inputs, one of them no tensor, and several outputs."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a, b, factor):
        return a * b * factor, a.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, ctx.factor = inputs
        ctx.save_for_backward(a, b)
        ctx.save_for_forward(a, b)

    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        return g * b * ctx.factor + h, g * a * ctx.factor, None

    @staticmethod
    def jvp(ctx, ta, tb, _):
        a, b = ctx.saved_tensors
        return (ta * b + a * tb) * ctx.factor, ta.sum()


@pytest.mark.parametrize("function", [Cube, Generated, Own])
def test_jvp(function):
    value, tangent = jvp(function.apply, (X,), (cg.ones_like(X),))
    same(value, X.numpy() ** 3)
    same(tangent, 3 * X.numpy() ** 2)
    with fw.dual_level():
        primal, tangent = fw.unpack_dual(function.apply(fw.make_dual(X, X)))
        same(tangent, 3 * X.numpy() ** 3)
    same(jvp(lambda x: jvp(function.apply, (x,), (x,))[1], (X,), (X,))[1], 9 * X.numpy() ** 3)
    same(jvp(grad(lambda x: function.apply(x).sum()), (X,), (X,))[1], 6 * X.numpy() ** 2)
    same(grad(lambda x: jvp(function.apply, (x,), (X,))[1].sum())(X), 6 * X.numpy() ** 2)


@pytest.mark.parametrize("function", [Generated, Own])
def test_vmap(function):
    rows = ROWS.numpy()
    same(vmap(function.apply)(ROWS), rows**3)
    same(vmap(function.apply, in_dims=1, out_dims=1)(ROWS), rows**3)
    same(vmap(vmap(function.apply))(ROWS), rows**3)
    same(vmap(grad(lambda x: function.apply(x).sum()))(ROWS), 3 * rows**2)
    same(grad(lambda x: vmap(function.apply)(x).sum())(ROWS), 3 * rows**2)
    same(vmap(grad(lambda y: grad(lambda x: function.apply(x).sum())(y).sum()))(ROWS), 6 * rows)
    same(vmap(lambda x: jvp(function.apply, (x,), (x,))[1])(ROWS), 3 * rows**3)
    for jacobian in jacrev, jacfwd:
        same(jacobian(function.apply)(X), np.diag(3 * X.numpy() ** 2))
    same(hessian(lambda x: function.apply(x).sum())(X), np.diag(6 * X.numpy()))


def test_several_inputs_and_outputs():
    rows, x = ROWS.numpy(), X.numpy()
    product, total = vmap(lambda a, b: Scaled.apply(a, b, 3.0))(ROWS, ROWS * 2)
    same(product, rows * rows * 6)
    same(total, rows.sum(1))
    product, total = vmap(lambda a: Scaled.apply(a, X, 3.0))(ROWS)
    same(product, rows * x * 3)
    of_a, of_b = vmap(grad(lambda a, b: sum(part.sum() for part in Scaled.apply(a, b, 3.0)), (0, 1)), in_dims=(0, None))(ROWS, X)
    same(of_a, np.broadcast_to(3 * x + 1, (2, 3)))
    same(of_b, 3 * rows)
    of_all = grad(lambda b: sum(part.sum() for part in vmap(lambda a: Scaled.apply(a, b, 3.0))(ROWS)))(X)
    same(of_all, 3 * rows.sum(0))
    (value, total), (tangent, of_total) = jvp(lambda a, b: Scaled.apply(a, b, 2.0), (X, X), (X, cg.ones_like(X)))
    same(tangent, 2 * (x * x + x))
    same(of_total, x.sum())


def test_vmap_gets_the_batch_size_the_randomness_and_the_batch_dims():
    calls = []

    class Recorded(Cube):
        @staticmethod
        def vmap(info, in_dims, x, factor):
            calls.append((info.batch_size, info.randomness, in_dims))
            return x.movedim(in_dims[0], 0) * factor, 0

    Recorded.forward = staticmethod(lambda x, factor: x * factor)
    same(vmap(lambda x: Recorded.apply(x, 2.0), in_dims=1, randomness="same")(ROWS), ROWS.numpy().T * 2)
    assert calls == [(3, "same", (0, None))]


def test_missing_tangents():
    seen = []

    class First(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(materialize)
            return a + b

        @staticmethod
        def jvp(ctx, ta, tb):
            seen.append(tb)
            return ta

    for materialize in (False, True):  # noqa: B007 - read by forward
        jvp(lambda a: First.apply(a, X), (X,), (X,))
    assert seen[0] is None
    same(seen[1], np.zeros(3))


def test_refusals():
    class Plain(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="You must implement the jvp function for custom autograd.Function to use it"):
        jvp(Plain.apply, (X,), (X,))
    with pytest.raises(RuntimeError, match="You tried to vmap over Plain, but it does not have vmap support"):
        vmap(Plain.apply)(ROWS)

    class Both(Own):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="it has both generate_vmap_rule=True and an overridden vmap"):
        vmap(Both.apply)(ROWS)

    class OldStyle(Plain):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="setup_context"):
        vmap(OldStyle.apply)(ROWS)


@pytest.mark.parametrize(("result", "error", "message"), [
    (lambda t: t[:1], RuntimeError, "Trying to set a forward gradient that has a different size than that of the original Tensor"),
    (lambda t: t.float(), RuntimeError, "dtype cygrad.float32 for output 0"),
    (lambda t: (t, t), RuntimeError, r"invalid number of forward gradients \(expected 1 but got 2\)"),
    (lambda t: 1.0, RuntimeError, r"expected Variable or None \(got float\) for grad output 0"),
])
def test_wrong_tangents(result, error, message):
    class Wrong(Cube):
        @staticmethod
        def jvp(ctx, tangent):
            return result(tangent)

    with pytest.raises(error, match=message):
        jvp(Wrong.apply, (X,), (X,))
    same(jvp(Cube.apply, (X,), (X,))[1], 3 * X.numpy() ** 3)


@pytest.mark.parametrize(("result", "message"), [
    (lambda x: x, "Expected the vmap staticmethod to have two returns"),
    (lambda x: (x, 0, 1), "Got 3 returns instead"),
    (lambda x: (x, (0, 0)), r"returned an incompatible \(output, out_dims\) tuple"),
])
def test_wrong_results_of_vmap(result, message):
    class Wrong(Cube):
        @staticmethod
        def vmap(info, in_dims, x):
            return result(x)

    with pytest.raises(RuntimeError, match=message):
        vmap(Wrong.apply)(ROWS)


# ----- Optional methods, in-place changes, inputs as outputs -----
class Bare(Function):
    """A product, its sign, and the other input plus one; nothing is saved for forward mode, and one output is not differentiable."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a, b):
        return a * b, (a * b).sign(), b + 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _, h):
        a, b = ctx.saved_tensors
        return g * b, g * a + h


class Doubling(Function):
    """Double the input in place."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.mul_(2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.mul_(2)


class Scaling(Function):
    """Return the input as it is, with a derivative of its own."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 5

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 5


def test_a_generated_rule_needs_neither_jvp_nor_saved_tensors_for_it():
    two, rows = cg.tensor(2.0, dtype=cg.float64), ROWS.numpy()
    product, sign, other = vmap(Bare.apply)(ROWS, ROWS + 1)
    same(product, rows * (rows + 1))
    leaf = ROWS.clone().requires_grad_()
    product, sign, other = vmap(lambda a: Bare.apply(a, two))(leaf)
    assert product.requires_grad and other.requires_grad and not sign.requires_grad
    # The gradient of an unbatched operand is one for each example, of that operand's shape.
    of_a, of_two = vmap(grad(lambda a, b: Bare.apply(a, b)[0].sum(), (0, 1)), in_dims=(0, None))(ROWS, two)
    same(of_a, np.full((2, 3), 2.0))
    same(of_two, rows.sum(1))


def test_functions_that_change_their_input():
    rows = ROWS.numpy()

    def f(x):
        y = x * 1
        view = y[1:]
        return (Doubling.apply(y) * x).sum() + view.sum()

    same(vmap(f)(ROWS), (2 * rows * rows).sum(1) + 2 * rows[:, 1:].sum(1))
    expected = 4 * rows + [0, 2, 2]
    same(vmap(grad(f))(ROWS), expected)
    same(grad(lambda x: vmap(f)(x).sum())(ROWS), expected)
    tangents = [jvp(f, (row,), (row,))[1].item() for row in ROWS]
    same(cg.tensor(tangents, dtype=cg.float64), (expected * rows).sum(1))
    same(vmap(lambda x: jvp(f, (x,), (x,))[1])(ROWS), (expected * rows).sum(1))
    x, tangent = X.clone(), X.clone()
    same(jvp(Doubling.apply, (x,), (tangent,))[1], 2 * X.numpy())
    same(tangent, X.numpy())      # jvp has changed a copy, not the user's tangent


def test_functions_that_return_their_input():
    for f in (lambda x: Scaling.apply(x) * x, lambda x: Scaling.apply(x * 1) * x, lambda x: x * Scaling.apply(x)):
        same(jvp(f, (X,), (X,))[1], 6 * X.numpy() ** 2)
        same(jvp(lambda x, f=f: jvp(f, (x,), (X,))[1], (X,), (X,))[1], 10 * X.numpy() ** 2)
        same(grad(lambda x, f=f: f(x).sum())(X), 6 * X.numpy())


# ----- The engine with batches of gradients -----
@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected")
def test_anomaly_mode_checks_all_examples():
    with cg.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values"):
        jacrev(lambda x: (x - x).sqrt())(X)
    with cg.autograd.detect_anomaly():
        same(jacrev(lambda x: x * x)(X), np.diag(2 * X.numpy()))
    leaf = X.clone().requires_grad_()
    with cg.autograd.detect_anomaly():
        gradients, = cg.autograd.grad(leaf * leaf, leaf, cg.eye(3, dtype=cg.float64), is_grads_batched=True)
    same(gradients, np.diag(2 * X.numpy()))


def test_a_tensor_cannot_retain_the_gradients_of_many_examples():
    leaf = X.clone().requires_grad_()
    y = leaf * leaf
    y.retain_grad()
    with pytest.raises(RuntimeError, match="a gradient for each of many examples arrived at"):
        cg.autograd.grad(y.sin(), leaf, cg.eye(3, dtype=cg.float64), is_grads_batched=True, retain_graph=True)
    assert y.grad is None
    cg.autograd.grad(y.sum(), leaf)
    same(y.grad, [1, 1, 1])
