"""Derivatives of functions, and vmap, with other recording: modes, saved-tensor hooks, checkpoint."""

import contextlib

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import forward_ad as fw
from cygrad.autograd.graph import save_on_cpu, save_on_disk, saved_tensors_hooks
from cygrad.checkpoint import checkpoint
from cygrad.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from samples import array_of, as_tuple

pytestmark = pytest.mark.usefixtures("nothing_left")

X = cg.tensor([0.5, -1.0, 2.0], dtype=cg.float64)
ROWS = cg.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], dtype=cg.float64)

TRANSFORMS = {
    "grad": lambda f: grad(f)(X),
    "grad_and_value": lambda f: grad_and_value(f)(X),
    "vjp": lambda f: vjp(f, X)[1](cg.tensor(2.0, dtype=cg.float64)),
    "jvp": lambda f: jvp(f, (X,), (X,)),
    "jacrev": lambda f: jacrev(f)(X),
    "jacfwd": lambda f: jacfwd(f)(X),
    "linearize": lambda f: linearize(f, X)[1](X),
    "vmap": lambda f: vmap(f)(ROWS),
    "hessian": lambda f: hessian(f)(X),
    "jacrev of jacrev": lambda f: jacrev(jacrev(f))(X),
    "grad of grad": lambda f: grad(lambda x: grad(f)(x).sum())(X),
    "third": lambda f: grad(lambda x: grad(lambda x: grad(f)(x).sum())(x).sum())(X),
    "jvp of grad": lambda f: jvp(grad(f), (X,), (X,)),
    "jvp of jvp of grad": lambda f: jvp(lambda x: jvp(grad(f), (x,), (X,))[1], (X,), (X,)),
    "vmap of grad": lambda f: vmap(grad(f))(ROWS),
    "grad of vmap": lambda f: grad(lambda x: vmap(f)(x).sum())(ROWS),
    "vmap of hessian": lambda f: vmap(hessian(f))(ROWS),
}


def numbers(result):
    return [array_of(item) if isinstance(item, cg.Tensor) else item for part in as_tuple(result) for item in as_tuple(part)]


def same(result, expected):
    for one, other in zip(numbers(result), numbers(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def inner(y):
    return (y.sin() * y.exp() / (y * y + 1)).sum()


def plain(x):
    return inner(x * x)


# ----- Modes -----
def within(mode, f):
    def called(x):
        with mode():
            return f(x)

    return called


@pytest.mark.cases("name", TRANSFORMS)
@pytest.mark.cases("mode", [cg.no_grad, cg.inference_mode, cg.enable_grad], ids=["no_grad", "inference", "enable"])
def test_modes_outside(name, mode):
    """Derivatives are taken in any mode, and give tensors like any other."""
    expected = TRANSFORMS[name](plain)
    with mode():
        result = TRANSFORMS[name](plain)
        captured = cg.tensor([2.0, 1.0, 3.0], dtype=cg.float64)     # an inference tensor in inference mode
        of_captured = TRANSFORMS[name](lambda x: plain(x * captured * captured))
        assert cg.is_inference_mode_enabled() == (mode is cg.inference_mode)
        assert cg.is_grad_enabled() == (mode is cg.enable_grad)
    same(result, expected)
    squares = captured.clone().square_()
    same(of_captured, TRANSFORMS[name](lambda x: plain(x * squares)))
    assert not any(item.requires_grad for part in as_tuple(result) for item in as_tuple(part))


FIRST_ORDER = ["grad", "grad_and_value", "vjp", "jacrev", "vmap of grad", "grad of vmap"]


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_values_computed_without_recording_are_constants_in_reverse_mode(name):
    constant = plain(X).item()
    same(TRANSFORMS[name](within(cg.no_grad, plain)), TRANSFORMS[name](lambda x: plain(x.detach()) + 0 * x.sum()))
    same(TRANSFORMS[name](lambda x: (x * within(cg.no_grad, lambda x: x * 1)(x)).sum()), TRANSFORMS[name](lambda x: (x * x.detach()).sum()))
    with cg.no_grad():
        same(TRANSFORMS[name](within(cg.enable_grad, plain)), TRANSFORMS[name](plain))
    assert plain(X).item() == constant


@pytest.mark.parametrize("name", ["jvp", "jacfwd", "vmap"])
@pytest.mark.parametrize("mode", [cg.no_grad, cg.inference_mode], ids=["no_grad", "inference"])
def test_forward_mode_does_not_depend_on_the_modes(name, mode):
    same(TRANSFORMS[name](within(mode, plain)), TRANSFORMS[name](plain))


def test_inference_tensors_in_a_derivative_that_is_not_taken_in_inference_mode():
    """They are refused, as outside of transforms."""
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        grad(lambda x: (x * within(cg.inference_mode, lambda x: x * 2)(x)).sum())(X)
    with cg.inference_mode():
        captured = X * 2
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        grad(lambda x: (x * captured).sum())(X)
    with cg.inference_mode():
        grad(plain)(X)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        grad(lambda x: (x * captured).sum())(X)


def test_changing_inference_tensors_inside_of_transforms():
    with cg.inference_mode():
        x = X * 1
        value, tangent = jvp(lambda x: x.mul_(x), (x,), (x,))
        same(tangent, 2 * X.numpy() ** 2)
        same(x, X.numpy() ** 2)


# ----- Saved tensors -----
def checkpointed(x):
    return checkpoint(inner, x * x, use_reentrant=False)


def twice_checkpointed(x):
    return checkpoint(lambda y: checkpoint(inner, y, use_reentrant=False), x * x, use_reentrant=False)


@pytest.mark.cases("name", sorted(TRANSFORMS.keys() - {"grad of vmap"}))
def test_checkpoint(name):
    """Not twice checkpointed in a vmap that ends before its inner region is computed again."""
    same(TRANSFORMS[name](checkpointed), TRANSFORMS[name](plain))
    if name != "vmap of hessian":
        same(TRANSFORMS[name](twice_checkpointed), TRANSFORMS[name](plain))


@pytest.mark.cases("name", TRANSFORMS)
@pytest.mark.cases("hooks", [save_on_cpu, lambda: saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t),
                                   lambda: saved_tensors_hooks(lambda t: t, lambda t: t)], ids=["on the CPU", "copies", "nothing"])
def test_saved_tensor_hooks(name, hooks):
    """A hook may return a tensor without its tangents, which are restored."""
    expected = TRANSFORMS[name](plain)
    with hooks():
        result = TRANSFORMS[name](plain)
    same(result, expected)


def test_tangents_of_packed_results_and_operands(tmp_path):
    """Tangents of operands, of results, of both changed in place since; with hooks that write to disk, and hooks on one tensor."""
    def gradients(context, register=False):
        x = ROWS.clone().requires_grad_()
        with fw.dual_level():
            dual = fw.make_dual(x, ROWS * 2)
            with context:
                y = (dual.exp() * dual.sigmoid().softmax(1)).prod(0)
                if register:
                    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.detach().clone(), lambda t: t)
            gradient, = cg.autograd.grad(y.sum(), x, create_graph=True)
            return fw.unpack_dual(gradient)

    expected = gradients(contextlib.nullcontext())
    assert expected.tangent is not None
    same(gradients(save_on_disk(tmp_path, min_bytes=0)), expected)
    same(gradients(contextlib.nullcontext(), register=True), expected)


def test_a_packed_tangent_is_the_one_at_the_time_of_packing():
    x = X.clone().requires_grad_()
    with fw.dual_level(), saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        dual = fw.make_dual(x, X) * 1
        y = dual * dual
        with cg.no_grad():
            dual.zero_()        # allowed, as the saved tensor is a copy
        gradient, = cg.autograd.grad(y.sum(), x, create_graph=True)
        same(gradient, 2 * X)
        same(fw.unpack_dual(gradient).tangent, 2 * X)
