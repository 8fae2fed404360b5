"""Roots, fixed points, minima and linear solves on the tape: derivatives of all orders against differences, refusals."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import gradcheck, gradgradcheck

pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

DOUBLE = {"dtype": cg.float64}
P = cg.tensor([4.0, 9.0], requires_grad=True, **DOUBLE)
optimize = cg.optimize


def circle(x, p):
    return cg.stack([x[0] ** 2 + x[1] - p[0], x[1] ** 2 * x[0] - p[1]])


def energy(x, p):
    return ((x - p.sin()) ** 2).sum() + ((x * p) ** 4).sum() / 100


def jacobian_and_solve(f, x, b, adjoint):
    """A linear solve by a sparse Jacobian."""
    A = cg.func.sparse_jacobian(f, x)
    return cg.sparse.spsolve(A.mT if adjoint else A, b.reshape(-1)).reshape(x.shape)


SOLUTIONS = {
    "root": lambda p: optimize.root(circle, cg.ones(2, **DOUBLE), (p,), tol=1e-13).x,
    "root by lm": lambda p: optimize.root(circle, np.ones(2), (p,), method="lm", tol=1e-13).x,
    "root of an array": lambda p: optimize.root(lambda x, p: circle(x.reshape(-1), p).reshape(2, 1), np.ones((2, 1)), p, tol=1e-13).x,
    "root with a tree": lambda p: optimize.root(lambda x, a: circle(x, a["p"]), np.ones(2), ({"p": p, "n": 3},), tol=1e-13).x,
    "root by a sparse Jacobian": lambda p: optimize.root(circle, np.ones(2), (p,), tol=1e-13, linear_solve=jacobian_and_solve).x,
    "fixed point": lambda p: optimize.fixed_point(lambda x, p: (p * x.flip(0) / 10).cos(), cg.ones(2, **DOUBLE), (p,), xtol=1e-14).x,
    "minimum": lambda p: optimize.minimize(energy, cg.ones(2, **DOUBLE), (p,), method="Newton-CG", tol=1e-12).x,
    "linear": lambda p: optimize.custom_linear_solve(lambda x, p: p * x, cg.ones(2, **DOUBLE), lambda A, b: b / p.detach(), symmetric=True,
                                                     args=(p,)),
    "linear, not symmetric": lambda p: optimize.custom_linear_solve(
        lambda x, p: cg.stack([p[0] * x[0] + x[1], p[1] * x[1]]), p * 2,
        lambda A, b: cg.linalg.solve(cg.func.jacrev(A)(b), b), lambda A, b: cg.linalg.solve(cg.func.jacrev(A)(b), b), args=(p,)),
    "custom root": lambda p: optimize.custom_root(lambda x, p: x * x - p, np.ones(2), lambda f, x0: (x0 - f(x0)).sqrt(), args=(p,)),
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_derivatives(name):
    solve = SOLUTIONS[name]
    assert gradcheck(solve, P, check_forward_ad=True)
    assert gradgradcheck(solve, P, check_fwd_over_rev=True)


def test_results_are_as_scipy_has_them():
    result = optimize.root(circle, np.ones(2), (P,), tol=1e-12)
    assert result.success and result["x"] is result.x and np.abs(result.fun).max() < 1e-10
    assert cg.allclose(circle(result.x, P), cg.zeros(2, **DOUBLE))
    result = optimize.fixed_point(lambda x: x.cos(), 1.0)
    assert result.success and result.nit > 5 and not result.x.requires_grad and result.x.dtype == cg.float64
    result = optimize.minimize(energy, np.ones(2), (P.detach(),))
    assert result.success and result.nfev > 0 and not result.x.requires_grad


@pytest.mark.parametrize("dtype", [cg.float32, cg.float64], ids=str)
def test_dtypes(dtype):
    p = P.detach().to(dtype).requires_grad_()
    x = optimize.root(circle, cg.ones(2, dtype=dtype), (p,), tol=1e-4).x
    assert x.dtype == dtype
    x.sum().backward()
    assert p.grad.dtype == dtype and cg.allclose(p.grad.double(), cg.autograd.grad(SOLUTIONS["root"](P).sum(), P)[0], rtol=1e-2)


REFUSED = {
    "no root": (lambda: optimize.root(lambda x: x * x + 1, np.ones(1)),
                RuntimeError, r"(?s)optimize.root\(\): no convergence: .* residual is 1"),
    "no fixed point": (lambda: optimize.fixed_point(lambda x: x + 1, 0.0, maxiter=5), RuntimeError,
                       "no convergence in 5 steps: the residual is"),
    "no minimum": (lambda: optimize.minimize(lambda x: -x.square().sum(), np.ones(1), options={"maxiter": 2}), RuntimeError,
                   r"optimize.minimize\(\): no convergence"),
    "another shape": (lambda: optimize.custom_root(lambda x: x[:1], np.ones(2), lambda f, x0: x0), RuntimeError,
                      "must return a tensor of the shape of x"),
    "a lost gradient": (lambda: optimize.root(lambda x: circle(x, P), np.ones(2)), RuntimeError,
                        "its gradient would be lost: give it in args="),
    "integers": (lambda: optimize.root(circle, cg.ones(2, dtype=cg.int64), (P,)), TypeError, "x0 must be a floating-point tensor"),
    "no adjoint": (lambda: optimize.custom_linear_solve(lambda x, p: p * x, P, lambda A, b: b / P.detach(), args=(P,)).sum().backward(),
                   RuntimeError, "give transpose_solve="),
}


@pytest.mark.cases("name", list(REFUSED))
def test_refusals(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
