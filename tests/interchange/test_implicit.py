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


def residuals(x, p):
    return cg.cat([x * p.sin() - 1, (x[1:] - x[:-1]) * p[0], x.square() / p])


def pattern_of(f, x0=(1.0, 2.0)):
    return cg.func.sparsity(lambda x: f(x, P.detach()), cg.tensor(x0, **DOUBLE))


PRECISE = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


SOLUTIONS = {
    "root": lambda p: optimize.root(circle, cg.ones(2, **DOUBLE), (p,), tol=1e-13).x,
    "root by lm": lambda p: optimize.root(circle, np.ones(2), (p,), method="lm", tol=1e-13).x,
    "root of an array": lambda p: optimize.root(lambda x, p: circle(x.reshape(-1), p).reshape(2, 1), np.ones((2, 1)), p, tol=1e-13).x,
    "root with a tree": lambda p: optimize.root(lambda x, a: circle(x, a["p"]), np.ones(2), ({"p": p, "n": 3},), tol=1e-13).x,
    "root by a sparse Jacobian": lambda p: optimize.root(circle, np.ones(2), (p,), jac_sparsity=True).x,
    "root by a given pattern": lambda p: optimize.root(circle, np.ones(2), (p,), jac_sparsity=pattern_of(circle)).x,
    "root by a sparse adjoint": lambda p: optimize.root(circle, np.ones(2), p, tol=1e-13, linear_solve=optimize.sparse_solve()).x,
    "root by Newton": lambda p: optimize.root(circle, np.ones(2), (p,), "newton", 1e-10, {"maxiter": 20}).x,
    "fixed point": lambda p: optimize.fixed_point(lambda x, p: (p * x.flip(0) / 10).cos(), cg.ones(2, **DOUBLE), (p,), xtol=1e-14).x,
    "minimum": lambda p: optimize.minimize(energy, cg.ones(2, **DOUBLE), (p,), method="Newton-CG", tol=1e-12).x,
    "minimum by a sparse Hessian": lambda p: optimize.minimize(energy, np.ones(2), (p,), "Newton-CG", 1e-12, hess_sparsity=True).x,
    "minimum by trust-constr": lambda p: optimize.minimize(energy, np.ones(2), p, "trust-constr", options={"gtol": 1e-13, "xtol": 1e-15},
                                                           hess_sparsity=cg.func.hessian_sparsity(lambda x: energy(x, P), cg.ones(2))).x,
    "minimum by BFGS, a sparse adjoint": lambda p: optimize.minimize(energy, np.ones(2), p, "BFGS", 1e-9, hess_sparsity=True).x,
    "least squares": lambda p: optimize.least_squares(residuals, np.ones(2), (p,), **PRECISE).x,
    "least squares by a sparse Jacobian": lambda p: optimize.least_squares(residuals, np.ones(2), p, True, **PRECISE).x,
    "least squares by a pattern": lambda p: optimize.least_squares(residuals, np.ones(2), (p,), cg.func.coloured(pattern_of(residuals)),
                                                                   optimize.sparse_solve(), **PRECISE).x,
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
@pytest.mark.parametrize("options", [{"tol": 1e-4}, {"jac_sparsity": True}], ids=["dense", "sparse"])
def test_dtypes(dtype, options):
    p = P.detach().to(dtype).requires_grad_()
    x = optimize.root(circle, cg.ones(2, dtype=dtype), (p,), **options).x
    assert x.dtype == dtype
    x.sum().backward()
    assert p.grad.dtype == dtype and cg.allclose(p.grad.double(), cg.autograd.grad(SOLUTIONS["root"](P).sum(), P)[0], rtol=1e-2)


@pytest.mark.parametrize("name", ["root by a sparse Jacobian", "minimum by a sparse Hessian", "least squares by a sparse Jacobian"])
def test_batches_of_gradients(name):
    assert gradcheck(SOLUTIONS[name], P, check_batched_grad=True)


def test_many_unknowns():
    """A bar that is heated by itself: roots and minima whose Jacobian would not fit in memory as a dense one."""
    n = 20000
    p = cg.tensor(2.0, requires_grad=True, **DOUBLE)

    def slopes(u):
        return cg.nn.functional.pad(u, (1, 1)).diff() * (n + 1)

    def balance(u, p):
        return slopes(u).diff() * (n + 1) + p * u.exp()

    def energy(u, p):
        return slopes(u).square().sum() / (2 * (n + 1)) - p * u.exp().sum() / (n + 1)

    root = optimize.root(balance, np.zeros(n), (p,), jac_sparsity=True, tol=1e-6)
    gradient, = cg.autograd.grad(root.x.amax(), p)
    a = 1.0         # u = -2 log(cosh(a (x - 1/2) / 2) / cosh(a / 4)), where a = sqrt(2 p) cosh(a / 4)
    for _ in range(100):
        a = np.sqrt(2 * p.item()) * np.cosh(a / 4)
    peak = 2 * np.log(np.cosh(a / 4))
    assert root.nit < 10 and abs(root.x.amax().item() - peak) < 1e-6 and gradient.isfinite()
    minimum = optimize.minimize(energy, root.x.detach() * 0.999, (p,), "Newton-CG", 1e-10, hess_sparsity=True)
    assert (minimum.x - root.x).abs().amax() < 1e-6


def test_scipys_solvers_take_patterns():
    """`jac=` of solve_ivp and least_squares by coloured Jacobians, and patterns as `jac_sparsity=`."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import least_squares

    def rates(u):
        return cg.nn.functional.pad(u, (1, 1)).diff().diff() * 1e3 - u ** 3

    start = np.linspace(0, 1, 30)
    pattern = cg.func.sparsity(rates, cg.tensor(start))
    colouring = cg.func.coloured(pattern)
    calls = {"jac": lambda t, u: cg.func.sparse_jacobian(rates, cg.tensor(u), colouring).to_scipy()}, {"jac_sparsity": pattern}
    first, second = (solve_ivp(lambda t, u: rates(cg.tensor(u)).numpy(), (0, 1), start, "BDF", **call).y[:, -1] for call in calls)
    assert np.allclose(first, second, atol=1e-3)
    calls = {"jac": lambda u: cg.func.sparse_jacobian(rates, cg.tensor(u), colouring).to_scipy()}, {"jac_sparsity": pattern}
    results = [least_squares(lambda u: rates(cg.tensor(u)).numpy(), start, **call) for call in calls]
    assert all(np.abs(result.fun).max() < 1e-4 for result in results)


REFUSED = {
    "no Newton": (lambda: optimize.root(lambda x: x * x + 1, np.full(1, 0.1), method="newton", linear_solve=lambda f, x, b, adjoint: -b),
                  RuntimeError, "no part of Newton's step 1 makes the residual smaller, whose norm is 1.01"),
    "few Newton steps": (lambda: optimize.root(lambda x: x.cos() - x, np.ones(1), method="newton", tol=0, options={"maxiter": 2}),
                         RuntimeError, "no convergence in 2 steps: the norm of the residual is"),
    "singular": (lambda: optimize.root(lambda x: x[:1].expand(2) - 1, np.zeros(2), jac_sparsity=True), cg.linalg.LinAlgError, "singular"),
    "another loss": (lambda: optimize.least_squares(residuals, np.ones(2), (P,), loss="huber"), RuntimeError, "loss='huber' is not impl"),
    "no least squares": (lambda: optimize.least_squares(residuals, np.ones(2), (P,), max_nfev=1), RuntimeError,
                         r"optimize.least_squares\(\): no convergence"),
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
