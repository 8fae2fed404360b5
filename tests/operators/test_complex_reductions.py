"""Products, reductions, norms and comparisons of complex numbers: values are NumPy's, derivatives agree with differences."""

import math

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import gradcheck, gradgradcheck
from samples import LAYOUTS

DTYPES = ("complex64", "complex128")

# name -> (function of tensors, function of arrays, shapes)
CALLS = {
    "matmul": (lambda a, b: a @ b, np.matmul, (2, 3, 4), (4, 2)),
    "a vector and a matrix": (lambda a, b: a @ b, np.matmul, (3,), (3, 2)),
    "mm": (lambda a, b: a.mm(b), np.matmul, (3, 4), (4, 2)),
    "larger": (lambda a, b: a @ b, np.matmul, (20, 30), (30, 20)),
    "bmm": (lambda a, b: a.bmm(b), np.matmul, (2, 2, 3), (2, 3, 2)),
    "mv": (lambda a, b: a.mv(b), np.matmul, (2, 3), (3,)),
    "dot": (lambda a, b: a.dot(b), np.dot, (5,), (5,)),
    "vdot": (lambda a, b: a.vdot(b), np.vdot, (5,), (5,)),
    "inner": (lambda a, b: a.inner(b), np.inner, (2, 3), (2, 3)),
    "outer": (lambda a, b: a.outer(b), np.outer, (2,), (3,)),
    "tensordot": (lambda a, b: cg.tensordot(a, b, 1), lambda a, b: np.tensordot(a, b, 1), (2, 3), (3, 2)),
    "einsum": (lambda a, b: cg.einsum("ij,kj->ik", a, b.conj()), lambda a, b: a @ b.conj().T, (2, 3), (2, 3)),
    "kron": (lambda a, b: a.kron(b), np.kron, (2,), (2, 2)),
    "cross": (lambda a, b: cg.cross(a, b, dim=1), np.cross, (2, 3), (2, 3)),
    "addmm": (lambda x, a, b: x.addmm(a, b, beta=1j, alpha=2 - 1j), lambda x, a, b: 1j * x + (2 - 1j) * (a @ b), (2, 2), (2, 3), (3, 2)),
    "addmm of a vector": (lambda x, a, b: x.addmm(a, b), lambda x, a, b: x + a @ b, (2,), (2, 3), (3, 2)),
    "baddbmm": (lambda x, a, b: x.baddbmm(a, b, alpha=1j), lambda x, a, b: x + 1j * (a @ b), (2, 2, 2), (2, 2, 3), (2, 3, 2)),
    "addmv": (lambda x, a, b: x.addmv(a, b, beta=1j), lambda x, a, b: 1j * x + a @ b, (2,), (2, 3), (3,)),
    "addr": (lambda x, a, b: x.addr(a, b, alpha=1j), lambda x, a, b: x + 1j * np.outer(a, b), (2, 3), (2,), (3,)),
    "addbmm": (lambda x, a, b: x.addbmm(a, b), lambda x, a, b: x + (a @ b).sum(0), (2, 2), (2, 2, 3), (2, 3, 2)),
    "an adjoint": (lambda a, b: a.H @ b.mH.mT, lambda a, b: a.conj().T @ b.conj(), (3, 2), (3, 2)),
    "sum": (lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2)), (2, 3, 2)),
    "mean": (lambda x: x.mean(1, keepdim=True), lambda x: x.mean(1, keepdims=True), (2, 3)),
    "prod": (lambda x: x.prod(1), lambda x: x.prod(1), (2, 3)),
    "prod with zeros": (lambda x: (x * cg.tensor([[1.0, 0, 1], [0, 1, 0]])).prod(1), lambda x: 0 * x[:, 0], (2, 3)),
    "trace": (lambda x: x.trace(), np.trace, (3, 3)),
    "count_nonzero": (lambda x: x.count_nonzero(), np.count_nonzero, (2, 3)),
    "any": (lambda x: (x * 0).any(1), lambda x: (x * 0).any(1), (2, 3)),
    "all": (lambda x: x.all(), np.all, (2, 3)),
    **{f"norm {p}": (lambda x, p=p: x.norm(p, 1), lambda x, p=p: np.linalg.norm(x, p, axis=1), (3, 4))
       for p in (0, 0.5, 1, 2, 3, math.inf, -math.inf, -2)},
    "norm of all": (lambda x: x.norm(), np.linalg.norm, (3, 2)),
    "dist": (lambda x, y: cg.dist(x, y), lambda x, y: np.linalg.norm(x - y), (3,), (3,)),
    "var": (lambda x: x.var(1), lambda x: x.var(1, ddof=1), (2, 3)),
    "var of all": (lambda x: x.var(correction=0, keepdim=True), lambda x: x.var(keepdims=True), (2, 3)),
    "var of one": (lambda x: x.var(correction=0), lambda x: x.var(), ()),
    "std": (lambda x: x.std((0, 2)), lambda x: x.std((0, 2), ddof=1), (2, 3, 2)),
    "var_mean": (lambda x: sum(cg.var_mean(x, 0)), lambda x: x.var(0, ddof=1) + x.mean(0), (3, 2)),
    "std_mean": (lambda x: sum(cg.std_mean(x, 0)), lambda x: x.std(0, ddof=1) + x.mean(0), (3, 2)),
    "cumsum": (lambda x: x.cumsum(1), lambda x: x.cumsum(1), (2, 3)),
    "cumprod": (lambda x: x.cumprod(0), lambda x: x.cumprod(0), (3, 2)),
    "cumprod with a zero": (lambda x: (x * cg.tensor([1.0, 0, 1])).cumprod(1), lambda x: (x * np.array([1.0, 0, 1])).cumprod(1), (2, 3)),
    "diff": (lambda x: x.diff(), np.diff, (2, 3)),
    "logsumexp": (lambda x: x.logsumexp(1), lambda x: np.log(np.exp(x).sum(1)), (2, 3)),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), lambda x: np.log(np.exp(x).cumsum(0)), (3, 2)),
    "equal": (lambda x: cg.tensor(x.equal(x.clone())), lambda x: np.array(True), (2, 3)),
    "isclose": (lambda x: x.isclose(x + cg.tensor([1e-7j, 1e-2, 1j]).to(x.dtype)), lambda x: np.array([[True, False, False]] * 2), (2, 3)),
    "allclose": (lambda x: cg.tensor(x.allclose(x * (1 + 1e-7j))), lambda x: np.array(True), (2, 3)),
    "eq": (lambda x, y: x == y, np.equal, (2, 3), (3,)),
}
DIFFERENTIABLE = [name for name in CALLS
                  if name not in ("larger", "count_nonzero", "any", "all", "equal", "isclose", "allclose", "eq", "norm 0")]


def drawn(shapes, dtype="complex128"):
    stream = np.random.default_rng(5)
    return [np.array(stream.uniform(-1, 1, shape) + 1j * stream.uniform(-1, 1, shape), dtype) for shape in shapes]


@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_values_are_numpys(name, layout, dtype):
    call, numpy, *shapes = CALLS[name]
    tensors = [LAYOUTS[layout](array) for array in drawn(shapes, dtype)]
    result, expected = call(*tensors).numpy(), np.asarray(numpy(*(tensor.numpy() for tensor in tensors)))
    assert result.shape == expected.shape and result.dtype.kind == expected.dtype.kind or expected.dtype.kind == "f"
    assert result.dtype.kind in "bi" or result.dtype.itemsize == (8 if result.dtype.kind == "c" else 4) * (1 + (dtype == "complex128"))
    tolerance = 1e-12 if dtype == "complex128" else 1e-5
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name):
    call, _, *shapes = CALLS[name]
    leaves = [cg.tensor(array, requires_grad=True) for array in drawn(shapes)]
    assert gradcheck(call, leaves, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(call, leaves, fast_mode=True)


@pytest.mark.parametrize("call", [lambda x: x.norm(), lambda x: x.norm(1), lambda x: x.norm(3), lambda x: x.std()])
def test_gradients_at_zero(call):
    x = cg.zeros(3, dtype=cg.complex64, requires_grad=True)
    call(x).backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_sums_are_accumulated_in_complex128():
    x = np.full(1 << 16, 0.1 + 0.3j, np.complex64)
    x[0] = 1e6
    result = cg.tensor(x).sum().item()
    assert abs(result - np.complex64(x.astype(complex).sum())) <= 2e-6 * abs(result)


def test_norms_do_not_overflow():
    x = cg.tensor([3e200 + 4e200j, 0], dtype=cg.complex128, requires_grad=True)
    x.norm().backward()
    assert abs(x.norm().item() - 5e200) < 1e187
    np.testing.assert_allclose(x.grad.numpy(), [0.6 + 0.8j, 0])


def test_logarithms_of_sums_of_far_elements():
    x = cg.tensor([-1000 + 1j, -1000.0, 1000 - 2j, -math.inf], dtype=cg.complex128)
    np.testing.assert_allclose(x.logcumsumexp(0).numpy(), [-1000 + 1j, -1000 + np.log(np.exp(1j) + 1), 1000 - 2j, 1000 - 2j])
    np.testing.assert_allclose(x.logsumexp(0).numpy(), 1000 - 2j)


@pytest.mark.parametrize("call", [lambda x, alpha: x.addmm(x, x, alpha=alpha),
                                  lambda x, alpha: x.index_add(0, cg.tensor([0]), x, alpha=alpha)])
def test_factors(call):
    x = cg.tensor([[2 + 1j]], dtype=cg.complex128, requires_grad=True)
    expected, = cg.autograd.grad(call(x, 2j), x, cg.tensor([[1 + 0j]], dtype=cg.complex128))
    assert expected.item() != expected.conj().item()
    for factor in np.complex64(2j), np.complex128(2j), cg.tensor(2j):
        assert cg.autograd.grad(call(x, factor), x, cg.tensor([[1 + 0j]], dtype=cg.complex128))[0].item() == expected.item()
    with pytest.raises(RuntimeError, match="For non-complex input tensors, argument alpha must not be a complex number"):
        call(cg.ones(1, 1), 1j)
