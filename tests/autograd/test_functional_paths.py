"""autograd.functional: the path by which a derivative is computed; all paths give the derivative that a backward gives."""

import numpy as np
import pytest

import cygrad as cg
from cygrad import autograd
from cygrad.autograd import Function, forward_ad, functional
from cygrad.autograd.functional import hessian, hvp, jacobian, jvp, vhp
from cygrad.checkpoint import checkpoint
from cygrad.func import grad, vmap
from cygrad.func import jvp as pushed_forward

FORWARD = {"vectorize": True, "strategy": "forward-mode"}
DOUBLE = cg.float64


@pytest.fixture
def x():
    return cg.tensor([1.0, 2.0, -0.5], dtype=DOUBLE)


@pytest.fixture
def v():
    return cg.tensor([2.0, -1.0, 3.0], dtype=DOUBLE)


@pytest.fixture
def calls(monkeypatch):
    """Count the calls that differentiate backwards."""
    counts = {"backward": 0, "batched": 0}

    def counted(name, function):
        def call(*arguments):
            counts[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(functional, "differentiated", counted("backward", functional.differentiated))
    monkeypatch.setattr(functional, "differentiated_in_batches", counted("batched", functional.differentiated_in_batches))
    return counts


class Cube(Function):
    """x cubed with neither jvp nor vmap."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class PushedCube(Function):
    """x cubed with both jvp and vmap."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    backward = Cube.backward

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_for_forward
        return tangent * 3 * x**2


class NumPyCube(Function):
    """x cubed by NumPy, which has neither tangents nor batches."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach().numpy().copy()
        return cg.from_numpy(ctx.x**3)

    @staticmethod
    def backward(ctx, grad):
        return cg.from_numpy(grad.detach().numpy() * 3 * ctx.x**2)


# ----- Ways -----
@pytest.mark.parametrize(("cube", "backwards"), [(lambda x: x**3, 0), (PushedCube.apply, 0), (Cube.apply, 2)])
def test_jvp_and_hvp_run_in_forward_mode(cube, backwards, calls, x, v):
    """If the whole function has forward mode; else the product is a backward of a backward, and hvp has one more."""
    assert jvp(cube, x, v)[1].tolist() == (3 * x**2 * v).tolist()
    assert calls["backward"] == backwards
    assert hvp(lambda x: cube(x).sum(), x, v)[1].tolist() == (6 * x * v).tolist()
    assert calls["backward"] == 2 * backwards + 1


class HalfPushedCube(PushedCube):
    """x cubed, whose backward has no forward mode."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * Cube.apply(x) / x


def test_where_only_the_backward_has_no_forward_mode_the_graph_is_made_again(calls, x, v):
    output, product = hvp(lambda x: (HalfPushedCube.apply(x) * x.exp()).sum(), x, v)
    assert np.allclose(output, (x**3 * x.exp()).sum())
    assert np.allclose(product, (x**3 + 6 * x**2 + 6 * x) * x.exp() * v)
    assert calls["backward"] == 4


def test_strict_takes_reverse_mode(calls, x, v):
    jvp(lambda x: x**3, x, v, strict=True)
    assert calls["backward"] == 2
    hvp(lambda x: (x**3).sum(), x, v, strict=True)
    assert calls["backward"] == 5


def count_hooked(sizes):
    """Return a function that records the shapes of its gradients."""
    def function(x):
        y = x**3
        y.register_hook(lambda grad: sizes.append(grad.shape))
        return y * 2

    return function


def test_vectorize_runs_backward_once_instead_of_once_for_each_row(calls, x):
    sizes = []
    expected = cg.diag(6 * x**2).tolist()
    assert jacobian(count_hooked(sizes), x).tolist() == expected
    assert (len(sizes), calls) == (3, {"backward": 3, "batched": 0})
    assert jacobian(count_hooked(sizes), x, vectorize=True).tolist() == expected
    assert (len(sizes), calls) == (4, {"backward": 3, "batched": 1})

    sizes.clear()
    assert hessian(lambda x: count_hooked(sizes)(x).sum(), x, vectorize=True).tolist() == cg.diag(12 * x).tolist()
    assert calls["batched"] == 2


def test_forward_mode_runs_the_function_once_and_no_backward(calls, x):
    runs = []

    def function(x):
        runs.append(x)
        return x**3, PushedCube.apply(x)

    for block in jacobian(function, x, **FORWARD):
        assert block.tolist() == cg.diag(3 * x**2).tolist()
    assert (len(runs), calls) == (1, {"backward": 0, "batched": 0})


def test_a_function_without_rules_takes_a_batch_of_its_gradients(calls, x):
    assert jacobian(Cube.apply, x, vectorize=True).tolist() == cg.diag(3 * x**2).tolist()
    assert calls == {"backward": 0, "batched": 1}
    assert jacobian(Cube.apply, x, **FORWARD).tolist() == cg.diag(3 * x**2).tolist()
    assert calls == {"backward": 0, "batched": 2}


def test_functions_that_need_numbers_are_differentiated_row_by_row(calls, x):
    assert jacobian(NumPyCube.apply, x, vectorize=True).tolist() == cg.diag(3 * x**2).tolist()
    assert calls == {"backward": 3, "batched": 1}
    assert jacobian(NumPyCube.apply, x, **FORWARD).tolist() == cg.diag(3 * x**2).tolist()
    assert calls == {"backward": 6, "batched": 2}


def test_the_dtype_is_the_one_of_forward_mode_also_where_rows_are_computed(x):
    narrow, wide = cg.tensor([1.0, 2.0]), x[:2]
    for block in jacobian(lambda a, b: NumPyCube.apply(a) * b, (narrow, wide), **FORWARD):
        assert block.dtype == DOUBLE


def test_a_captured_parameter_returned_by_backward_has_no_history_without_create_graph():
    parameter = cg.tensor([1.0, 2.0], requires_grad=True)

    class Fixed(Function):
        @staticmethod
        def forward(ctx, x):
            return (x * parameter).sum()

        @staticmethod
        def backward(ctx, grad):
            return parameter

    for create_graph in False, True:
        product = functional.vjp(Fixed.apply, cg.ones(2), create_graph=create_graph)[1]
        for result in jacobian(Fixed.apply, cg.ones(2), create_graph=create_graph), product:
            assert result.tolist() == [1, 2]
            assert result.requires_grad is create_graph


def test_a_hook_that_needs_numbers_is_called_for_each_row(x):
    def function(x):
        y = x**3
        y.register_hook(lambda grad: grad * 2 if grad.sum() > 0 else grad)
        return -y

    assert jacobian(function, x, vectorize=True).tolist() == jacobian(function, x).tolist() == (-cg.diag(3 * x**2)).tolist()


def test_an_error_of_the_function_is_not_hidden(x):
    class Unfit(Function):
        forward = Cube.forward

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("not today")

    for keywords in {}, {"vectorize": True}, FORWARD:
        with pytest.raises(RuntimeError, match="^not today$") as caught:
            jacobian(Unfit.apply, x, **keywords)
        assert caught.value.__context__ is None


def test_a_not_implemented_error_of_the_function_is_its_own(x, v):
    def function(x):
        raise NotImplementedError("to be done")

    for call in jacobian, hessian:
        for keywords in {}, {"vectorize": True}:
            with pytest.raises(NotImplementedError, match="^to be done$"):
                call(function, x, **keywords)
    for product in jvp, vhp, hvp:
        with pytest.raises(NotImplementedError, match="^to be done$"):
            product(function, x, v)


# ----- The same derivatives -----
# Operations that cut a backward but not forward mode: jvp and hvp still give the result of a backward of the backward.
def frozen(x):
    with cg.no_grad():
        scale = x.sum() * 2
    return x**2 / scale


def frozen_view(x):
    with cg.no_grad():
        first = x[:1]
    return first * x**2


def frozen_write(x):
    y = x**2
    with cg.no_grad():
        y.mul_(3)
    return y * x


def detached(x):
    y = x * 2
    y.detach_()
    return y * x.detach() * x**2


def written_data(x):
    y = x * 1
    y.data.mul_(3)
    return y**2


def through_numpy(x):
    return cg.from_numpy(np.tanh(x.detach().numpy())) * x


def inner_constant(x):
    (slope,) = autograd.grad((x**3).sum(), x)
    return x * slope


def inner_variable(x):
    (slope,) = autograd.grad((x**3).sum(), x, create_graph=True)
    return x * slope


def hooked(x):
    y = x**2
    y.register_hook(lambda grad: grad * 2)
    return y.sin()


def hooked_argument(x):
    x.register_hook(lambda grad: grad * 2)
    return x**2


def packed(x):
    with autograd.graph.saved_tensors_hooks(lambda tensor: tensor.detach().numpy().copy(), cg.from_numpy):
        return x.exp() * x**2


def checkpointed(x):
    return checkpoint(lambda x: x.sin() * x, x, use_reentrant=False) * x


SEEN_BY_BACKWARD = [frozen, frozen_view, frozen_write, detached, written_data, through_numpy, inner_constant, inner_variable, hooked,
                    hooked_argument, packed, checkpointed]


@pytest.mark.parametrize("function", SEEN_BY_BACKWARD)
def test_forward_mode_gives_the_derivative_of_a_backward(function, x, v):
    expected = jvp(function, x, v, strict=True)[1]
    assert np.allclose(jvp(function, x, v)[1], expected, 1e-14, 1e-14)

    def total(x):
        return (function(x) * x**2).sum()

    expected = hvp(total, x, v, strict=True)[1]
    assert np.allclose(hvp(total, x, v)[1], expected, 1e-14, 1e-14)


def test_values_computed_without_grad_are_constants(x, v):
    scale = 2 * x.sum()
    assert np.allclose(jvp(frozen, x, v)[1], 2 * x * v / scale)
    assert np.allclose(jvp(hooked_argument, x, v)[1], 4 * x * v)


# ----- Inside of other transforms -----
def test_inside_of_forward_mode(x, v):
    """With create_graph: without it results are constants, as in torch."""
    def product(x):
        return jvp(lambda x: x**3, x, v, create_graph=True)[1]

    def tangent(result):
        return forward_ad.unpack_dual(result).tangent.detach()

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        assert np.allclose(tangent(product(dual)), 6 * x * v**2)
        assert forward_ad.unpack_dual(jvp(lambda x: x**3, dual, v)[1]).tangent is None
        assert np.allclose(tangent(hvp(lambda x: (x**4).sum(), dual, v, create_graph=True)[1]), 24 * x * v**2)
        assert np.allclose(tangent(jacobian(lambda x: x**3, dual, create_graph=True)), cg.diag(6 * x * v))
    assert np.allclose(pushed_forward(product, (x,), (v,))[1].detach(), 6 * x * v**2)


def test_inside_of_reverse_mode(x, v):
    assert np.allclose(grad(lambda x: jvp(lambda x: x**3, x, v, create_graph=True)[1].sum())(x), 6 * x * v)


def test_inside_of_vmap(x, v):
    rows = cg.stack([x, v])
    assert np.allclose(vmap(lambda x: jvp(lambda x: x**3, x, v)[1])(rows), 3 * rows**2 * v)
    assert np.allclose(vmap(lambda v: jvp(lambda x: x**3, x, v)[1])(rows), 3 * x**2 * rows)
    assert np.allclose(vmap(lambda x: vhp(lambda x: (x**3).sum(), x, x)[1])(rows), 6 * rows**2)
    for keywords in {}, {"vectorize": True}, FORWARD:
        jacobians = vmap(lambda x, keywords=keywords: jacobian(lambda x: x**3, x, **keywords))(rows)
        assert np.allclose(jacobians, cg.stack([cg.diag(3 * row**2) for row in rows]))
