"""Complex numbers in all ways to differentiate: weights, gradients, and torch's refusals.

The gradient of a real L for z is dL/dRe + i dL/dIm; the gradient of a complex y with the weight g is the gradient of Re(conj(g) y).
"""

import numpy as np
import pytest

import cygrad as cg
from cygrad import func
from cygrad.autograd import Function, forward_ad, functional, grad
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.utils.checkpoint import checkpoint

STREAM = np.random.default_rng(5)
Z, W, G = (STREAM.standard_normal(3) + 1j * STREAM.standard_normal(3) for _ in "zwg")
R = STREAM.standard_normal(3)


def tensor(array, leaf=False):
    return cg.from_numpy(np.array(array)).requires_grad_(leaf)


def close(result, expected):
    result = result.detach().numpy()
    return result.dtype == np.asarray(expected).dtype and np.allclose(result, expected)


# ----- Weights -----
IMPLICIT = "^grad can be implicitly created only for real scalar outputs but got cygrad.complex128"


def test_a_complex_scalar_has_no_gradient_of_its_own():
    z = tensor(Z, True)
    for attempt in (lambda: z.sum().backward(), lambda: grad(z.sum(), z), lambda: func.grad(lambda x: x.sum())(z.detach()),
                    lambda: functional.hessian(lambda x: x.sum(), z), lambda: functional.hvp(lambda x: x.sum(), z, z),
                    lambda: functional.vhp(lambda x: x.sum(), z, z), lambda: functional.vjp(lambda x: x.sum(), z),
                    lambda: functional.jacobian(lambda x: x * x, z)):
        with pytest.raises(RuntimeError, match=IMPLICIT):
            attempt()
    z.sum().backward(tensor(1 + 0j))
    assert close(z.grad, np.ones(3, complex))


def test_weights_are_complex_where_the_output_is():
    z = tensor(Z, True)
    message = "^For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
    for output, weight in ((z * z, R), (z.abs(), G)):
        with pytest.raises(RuntimeError, match=message + r"grad_output\[0\] has a dtype of cygrad.\w+ and output\[0\] has a dtype of"):
            grad(output, z, tensor(weight))
    with pytest.raises(RuntimeError, match=message):
        functional.vjp(lambda x: x * x, z, tensor(R))
    assert close(grad(z * z, z, tensor(G.astype(np.complex64)))[0], G.astype(np.complex64) * np.conj(2 * Z))


# ----- Gradients -----
def test_real_operands_get_the_real_part():
    z, r = tensor(Z, True), tensor(R, True)
    for gradient, expected in zip(grad(z * r, (z, r), tensor(G)), (G * R, (G * Z.conj()).real), strict=True):
        assert close(gradient, expected)
    mask = cg.tensor(R > 0)
    of_z, of_r = grad(cg.where(mask, z, r), (z, r), tensor(G))
    assert close(of_z, np.where(R > 0, G, 0)) and close(of_r, np.where(R > 0, 0, G.real))
    assert close(grad(r.to(cg.complex128), r, tensor(G))[0], G.real)


def test_gradients_accumulate_in_leaves():
    z = tensor(Z, True)
    (z * z).backward(tensor(G))
    z.abs().backward(tensor(R))
    assert close(z.grad, G * np.conj(2 * Z) + R * Z / abs(Z))
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
        z.grad = tensor(R)


def test_operators_in_place():
    z, w, r = tensor(Z, True), tensor(W, True), tensor(R, True)
    y = z * 1
    y.mul_(w).add_(r).exp_()
    expected = G * np.conj(np.exp(Z * W + R))
    for gradient, value in zip(grad(y, (z, w, r), tensor(G)), (expected * W.conj(), expected * Z.conj(), expected.real), strict=True):
        assert close(gradient, value)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        (r * 1).mul_(z)
    out = tensor(np.zeros(3, complex))
    assert cg.mul(z.detach(), w.detach(), out=out) is out and close(out, Z * W)


def test_second_derivatives_with_respect_to_all():
    z, w = tensor(Z, True), tensor(W, True)
    first, = grad((z * z * w.conj_physical()).abs().square().sum(), z, create_graph=True)   # |z|^4 |w|^2: 4 |z|^2 |w|^2 z
    assert close(first, 4 * abs(Z) ** 2 * abs(W) ** 2 * Z)
    of_z, of_w = grad(first, (z, w), tensor(G))
    inner = (G.conj() * Z).real
    assert close(of_z, 4 * abs(W) ** 2 * (2 * inner * Z + abs(Z) ** 2 * G)) and close(of_w, 8 * abs(Z) ** 2 * inner * W)


def test_hooks_and_saved_tensors():
    z = tensor(Z, True)
    z.register_hook(lambda g: 2 * g)
    y = z * z
    y.register_hook(lambda g: g.conj_physical())
    y.backward(tensor(G))
    assert close(z.grad, 2 * G.conj() * np.conj(2 * Z))
    y = z * 1
    y.register_hook(lambda g: g.abs())
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        y.backward(tensor(G))
    with saved_tensors_hooks(lambda x: x.detach().numpy().copy(), cg.from_numpy):
        y = (tensor(W) * z).exp()
    assert close(grad(y, z, tensor(G))[0], 2 * G * np.conj(np.exp(W * Z) * W))
    for reentrant in (False, True):
        leaf = tensor(Z, True)
        checkpoint(lambda x: (x * x).exp(), leaf, use_reentrant=reentrant).abs().sum().backward()
        expected, = grad((leaf * leaf).exp().abs().sum(), leaf)
        assert close(leaf.grad, expected.numpy())


class Square(Function):
    """z * z, with the gradient or its real part."""

    @staticmethod
    def forward(ctx, x, real):
        ctx.save_for_backward(x)
        ctx.real = real
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        gradient = 2 * g * x.conj()
        return gradient.real if ctx.real else gradient, None


def test_functions_of_users():
    z = tensor(Z, True)
    assert close(grad(Square.apply(z, False), z, tensor(G))[0], G * np.conj(2 * Z))
    assert close(grad(Square.apply(z, True), z, tensor(G))[0], (G * np.conj(2 * Z)).real + 0j)


# ----- Forward mode -----
def tangent_of(function, *pairs):
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(tensor(value), tensor(tangent)) for value, tangent in pairs]
        return tuple(forward_ad.unpack_dual(function(*duals)))[1]


def test_tangents():
    assert close(tangent_of(lambda z, w: (z * w).exp(), (Z, G), (W, R)), np.exp(Z * W) * (G * W + Z * R))
    assert close(tangent_of(lambda z: z.conj_physical() * z, (Z, G)), Z.conj() * G + G.conj() * Z)
    assert close(tangent_of(lambda r, z: r * z, (R, R), (Z, G)), R * Z + R * G)
    assert close(tangent_of(lambda z: z.sgn(), (Z, G)), 1j * Z / abs(Z) * (Z.conj() * G).imag / abs(Z) ** 2)
    with pytest.raises(RuntimeError, match="Expected tangent to have the same dtype as primal"):
        tangent_of(lambda r: r, (R, G))


# ----- Functions of functions -----
def test_functional():
    z = tensor(Z)
    for name, expected in (("vjp", G * np.conj(2 * Z)), ("jvp", G * 2 * Z)):
        value, product = getattr(functional, name)(lambda x: x * x, z, tensor(G))
        assert close(value, Z * Z) and close(product, expected)
    for name in ("hvp", "vhp"):
        assert close(getattr(functional, name)(lambda x: x.abs().square().sum(), z, tensor(G))[1], 2 * G)
    assert close(functional.jacobian(lambda x: x * x, z, vectorize=True), np.diag(np.conj(2 * Z)))
    assert close(functional.jacobian(lambda x: x * x, z, vectorize=True, strategy="forward-mode"), np.diag(2 * Z))
    assert close(functional.jacobian(lambda x: x.abs(), z), np.diag(Z / abs(Z)))


def test_func():
    z = tensor(Z)
    assert close(func.grad(lambda x: (x * x).abs().sum())(z), 2 * Z)
    assert close(func.vjp(lambda x: x * x, z)[1](tensor(G))[0], G * np.conj(2 * Z))
    assert close(func.jvp(lambda x: x * x, (z,), (tensor(G),))[1], G * 2 * Z)
    assert close(func.jvp(lambda x: x * x, (z,), (tensor(R),))[1], R * 2 * Z)
    assert close(func.linearize(lambda x: x * x, z)[1](tensor(G)), G * 2 * Z)
    both = cg.stack([z, tensor(W)])
    assert close(func.vmap(lambda x: (x * x).sum())(both), (both.numpy() ** 2).sum(1))
    assert close(func.vmap(func.grad(lambda x: (x * x).abs().sum()))(both), 2 * both.numpy())
    leaf = tensor(Z, True)
    rows, = grad(leaf * leaf, leaf, tensor(np.stack([G, W])), is_grads_batched=True)
    assert close(rows, np.stack([G, W]) * np.conj(2 * Z))


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians_are_of_real_numbers(name):
    differentiate = getattr(func, name)
    message = f"^{name}: Expected all {{}} to be real but received complex tensor at flattened input idx: 0"
    with pytest.raises(RuntimeError, match=message.format("inputs")):
        differentiate(lambda x: x.abs())(tensor(Z))
    with pytest.raises(RuntimeError, match=message.format("outputs")):
        differentiate(lambda x: x * tensor(Z))(tensor(R))
