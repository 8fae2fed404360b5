"""Roots, fixed points and minima as differentiable operators: their gradient is one linear solve at the solution."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from cygrad._core.operands.arrays import from_array, to_array
from cygrad.autograd import enable_grad
from cygrad.data.limits import finfo
from cygrad.func import coloured, grad, hessian_sparsity, jacrev, sparse_hessian, sparse_jacobian, sparsity
from cygrad.optimize.implicit import Equation, Linear, dense_solve, solution_of, start_of
from cygrad.optimize.newton import newton, sparse_solve
from cygrad.optimize.objective import value_and_grad
from cygrad.tensor import Tensor

Function = Callable[..., Tensor]


# ----- SciPy's solvers -----
def _scipy(function: str) -> Any:
    try:
        return import_module("scipy.optimize")
    except ImportError as error:
        raise ImportError(f'optimize.{function}() needs SciPy: pip install "cygrad[optimize]" brings it') from error


def _start(function: str, x0: Any) -> Tensor:
    start = start_of(x0)
    if not start.is_floating_point():
        raise TypeError(f"optimize.{function}(): x0 must be a floating-point tensor or array, not of {start.dtype}")
    return start


def _check_converged(function: str, result: Any, residual: float) -> None:
    if not result.success:
        raise RuntimeError(f"optimize.{function}(): no convergence: {result.message} The residual is {residual:.3g}")


def root(f: Function, x0: Any, args: Any = (), method: str | None = None, tol: float | None = None, options: Any = None,
         linear_solve: Linear | None = None, jac_sparsity: Any = None) -> Any:
    """Find x of f(x, *args) == 0 by `scipy.optimize.root` with exact Jacobians; `.x` of its result is a tensor with gradients for args.

    `f` returns a tensor of the shape of x, which is computed in the dtype of x0 (float64 for arrays). Derivatives are for tensors in
    `args`, of any order and by forward mode: each is one solve with the Jacobian at x (`custom_root`).

    `method` is one of SciPy's, by default "hybr"; or "newton", whose steps are `linear_solve`'s: until one is smaller than `tol` times x,
    the root of the dtype's precision, at most `options={"maxiter": 50}`. `jac_sparsity` is for many unknowns: a pattern, `coloured` or not,
    or True to find it. Then the Jacobian is never dense: `linear_solve` is `sparse_solve`, and the method "newton".
    RuntimeError, which says the residual, without convergence; ImportError without SciPy.

    >>> import cygrad
    >>> a = cygrad.tensor([4., 9.], dtype=cygrad.float64, requires_grad=True)
    >>> result = cygrad.optimize.root(lambda x, a: x * x - a, cygrad.ones(2, dtype=cygrad.float64), args=(a,))
    >>> result.x.sum().backward()
    >>> a.grad
    tensor([0.2500, 0.1667], dtype=cygrad.float64)
    """
    optimize, start = _scipy("root"), _start("root", x0)
    method = method or ("hybr" if jac_sparsity is None else "newton")
    linear_solve = linear_solve or (dense_solve if jac_sparsity is None else sparse_solve(jac_sparsity))
    result: Any = None

    def solve(f: Callable[[Tensor], Tensor]) -> Tensor:
        nonlocal result
        if method == "newton":
            xtol = finfo(start.dtype).eps ** 0.5 if tol is None else tol
            x, steps = newton("optimize.root()", f, start, linear_solve, xtol, (options or {}).get("maxiter", 50))
            result = _scipy_like(fun=to_array(f(x).detach()), success=True, nit=steps, message="The iteration has converged.")
            return x

        def tensor(x: np.ndarray) -> Tensor:
            return from_array(np.array(x)).to(start.dtype).reshape(start.shape)

        def value(x: np.ndarray) -> np.ndarray:
            return to_array(f(tensor(x)).detach()).astype(np.float64).ravel()

        def jacobian(x: np.ndarray) -> np.ndarray:
            return to_array(jacrev(f)(tensor(x)).detach()).astype(np.float64).reshape(start.numel(), start.numel())

        with_jacobian = method in ("hybr", "lm")
        result = optimize.root(value, to_array(start).astype(np.float64).ravel(), jac=jacobian if with_jacobian else None, method=method,
                               tol=tol, options=options)
        _check_converged("root", result, float(np.abs(result.fun).max(initial=0)))
        return tensor(result.x)

    x = solution_of("optimize.root()", Equation(f, args, linear_solve), solve)
    result["x"] = x
    return result


def fixed_point(f: Function, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500, linear_solve: Linear = dense_solve) -> Any:
    """Find x of x == f(x, *args) by iteration; `.x` of the result is a tensor, whose gradients are as `root`'s.

    It ends where no element changes by more than xtol times its size, or 1. RuntimeError, which says the residual, after `maxiter` steps.

    >>> import cygrad
    >>> a = cygrad.tensor(0.5, dtype=cygrad.float64, requires_grad=True)
    >>> result = cygrad.optimize.fixed_point(lambda x, a: (a * x).cos(), cygrad.tensor(1., dtype=cygrad.float64), args=(a,))
    >>> result.x
    tensor(0.9004, dtype=cygrad.float64, grad_fn=<_SolutionBackward>)
    """
    start = _start("fixed_point", x0)
    steps = 0

    def solve(excess: Callable[[Tensor], Tensor]) -> Tensor:
        nonlocal steps
        x, change = start, np.inf
        for steps in range(1, maxiter + 1):     # noqa: B007 - the number is a field of the result
            after = x + excess(x)
            change = ((after - x).abs() / after.abs().clamp(min=1)).amax().item() if x.numel() else 0.0
            x = after
            if change <= xtol:
                return x
        raise RuntimeError(f"optimize.fixed_point(): no convergence in {maxiter} steps: the residual is {change:.3g}")

    x = solution_of("optimize.fixed_point()", Equation(lambda x, *args: f(x, *args) - x, args, linear_solve), solve)
    return _scipy_like(x=x, success=True, nit=steps, message="The iteration has converged.")


def _scipy_like(**fields: Any) -> Any:
    """Return a result with fields, as SciPy's."""
    return type("OptimizeResult", (dict,), {"__getattr__": dict.__getitem__})(fields)


def minimize(f: Function, x0: Any, args: Any = (), method: str | None = None, tol: float | None = None, options: Any = None,
             linear_solve: Linear | None = None, hess_sparsity: Any = None) -> Any:
    """Find a minimum of f(x, *args) by `scipy.optimize.minimize`; `.x` of its result is a tensor, whose gradients are as `root`'s.

    `f` returns a scalar tensor; SciPy is given its gradient, and products of its Hessian where the method takes them. A derivative is
    one solve with the Hessian at x, so x has to be a minimum within the interior, as exact as the gradients are to be. With
    `hess_sparsity`, a symmetric pattern, `coloured` as such or not, or True to find it, that is a sparse one, which "Newton-CG"
    and "trust-constr" are given, too. RuntimeError, which says the largest gradient, without convergence; ImportError without SciPy.

    >>> import cygrad
    >>> a = cygrad.tensor([1., 2.], dtype=cygrad.float64, requires_grad=True)
    >>> result = cygrad.optimize.minimize(lambda x, a: ((x - a) ** 2).sum(), cygrad.zeros(2, dtype=cygrad.float64), args=(a,))
    >>> cygrad.autograd.grad(result.x.sum(), a)
    (tensor([1., 1.], dtype=cygrad.float64),)
    """
    optimize, start = _scipy("minimize"), _start("minimize", x0)
    equation = Equation(lambda x, *args: grad(lambda x: f(x, *args))(x), args)
    detached = equation.detached()

    def value(x: Tensor) -> Tensor:
        return f(x.to(start.dtype).reshape(start.shape), *detached)

    pattern = hess_sparsity if hess_sparsity is not True else hessian_sparsity(value, start)
    pattern = None if pattern is None else coloured(pattern, symmetric=True)
    equation.linear_solve = linear_solve or (dense_solve if pattern is None else sparse_solve(pattern))
    result: Any = None

    def solve(_: Any) -> Tensor:
        nonlocal result
        with enable_grad():
            objective = value_and_grad(value, to_array(start))
            curvature: dict[str, Any] = {}
            if pattern is not None and method in ("Newton-CG", "trust-constr"):
                curvature = {"hess": lambda x: sparse_hessian(value, from_array(np.array(x)), pattern).to_scipy()}
            elif method in ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"):
                curvature = {"hessp": objective.hessp}
            result = optimize.minimize(objective, objective.x0, jac=True, method=method, tol=tol, options=options, **curvature)
        _check_converged("minimize", result, float(np.abs(result.jac).max(initial=0)))
        return objective.unflatten(result.x).to(start.dtype).reshape(start.shape)

    x = solution_of("optimize.minimize()", equation, solve)
    result["x"] = x
    return result


def least_squares(f: Function, x0: Any, args: Any = (), jac_sparsity: Any = None, linear_solve: Linear | None = None,
                  **options: Any) -> Any:
    """Find x of the least sum of squares of f(x, *args) by `scipy.optimize.least_squares`; `.x` of its result is as `minimize`'s.

    `f` returns a tensor of residuals; SciPy is given its exact Jacobian. With `jac_sparsity`, a pattern, `coloured` or not, or True to
    find it, that is sparse, and derivatives are solves with a sparse Hessian; x and `options`, SciPy's (`ftol=`, `bounds=`, ...), are
    for a minimum within the interior. RuntimeError, which says the largest gradient, without convergence, and for a `loss=` that is
    not linear; ImportError without SciPy.

    >>> import cygrad
    >>> y = cygrad.tensor([1., 2., 6.], dtype=cygrad.float64, requires_grad=True)
    >>> x = cygrad.optimize.least_squares(lambda x, y: x - y, [0.], (y,)).x       # their mean
    >>> cygrad.autograd.grad(x.sum(), y)
    (tensor([0.3333, 0.3333, 0.3333], dtype=cygrad.float64),)
    """
    if options.get("loss", "linear") != "linear":
        raise RuntimeError(f"optimize.least_squares(): loss={options['loss']!r} is not implemented: the sum of squares is differentiated")
    optimize, start = _scipy("least_squares"), _start("least_squares", x0)

    def half(x: Tensor, *args: Any) -> Tensor:
        return f(x, *args).square().sum() / 2

    equation = Equation(lambda x, *args: grad(lambda x: half(x, *args))(x), args)
    detached = equation.detached()

    def residuals(x: Tensor) -> Tensor:
        return f(x, *detached).reshape(-1)

    pattern = jac_sparsity if jac_sparsity is not True else sparsity(residuals, start)
    colouring = None if pattern is None else coloured(pattern)
    equation.linear_solve = linear_solve or dense_solve
    if linear_solve is None and colouring is not None:
        equation.linear_solve = sparse_solve(hessian_sparsity(lambda x: half(x, *detached), start), symmetric=True)
    result: Any = None

    def solve(_: Any) -> Tensor:
        nonlocal result

        def tensor(x: np.ndarray) -> Tensor:
            return from_array(np.array(x)).to(start.dtype).reshape(start.shape)

        def jacobian(x: np.ndarray) -> Any:
            if colouring is not None:
                return sparse_jacobian(residuals, tensor(x), colouring).to_scipy()
            return to_array(jacrev(residuals)(tensor(x)).detach()).astype(np.float64).reshape(-1, start.numel())

        result = optimize.least_squares(lambda x: to_array(residuals(tensor(x)).detach()).astype(np.float64),
                                        to_array(start).astype(np.float64).ravel(), jacobian, **options)
        _check_converged("least_squares", result, result.optimality)
        return tensor(result.x)

    x = solution_of("optimize.least_squares()", equation, solve)
    result["x"] = x
    return result
