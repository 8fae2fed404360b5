"""Newton's method, and linear solves with sparse Jacobians, which are coloured once and computed in a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cygrad.func import coloured, sparse_jacobian, sparsity
from cygrad.optimize.implicit import Linear
from cygrad.sparse.solving import spsolve
from cygrad.tensor import Tensor

LEAST_STEP = 2.0 ** -30


class SparseSolve:
    """The `linear_solve=` of a sparse Jacobian: made by `sparse_solve`. Its pattern is found at the first solve, and used for all."""

    def __init__(self, pattern: Any, symmetric: bool) -> None:
        self._colouring = None if pattern is None or pattern is True else coloured(pattern, symmetric)

    def __call__(self, f: Callable[[Tensor], Tensor], x: Tensor, b: Tensor, adjoint: bool) -> Tensor:
        """Return the solution for b of the Jacobian of f at x, or of its adjoint."""
        if self._colouring is None:
            self._colouring = coloured(sparsity(f, x))
        matrix = sparse_jacobian(f, x, self._colouring)
        return spsolve(matrix.conj().t() if adjoint else matrix, b.reshape(-1)).reshape(x.shape)


def sparse_solve(pattern: Any = None, symmetric: bool = False) -> SparseSolve:
    """Return a `linear_solve=` for solutions of large systems: by the coloured sparse Jacobian and SuperLU, in place of a dense matrix.

    `pattern` is an array of SciPy's, or a `coloured` one; without it `sparsity` finds it. `symmetric`: the Jacobian is a Hessian. Its
    derivatives of any order are sparse solves, too. ImportError without SciPy, LinAlgError for a singular Jacobian.

    >>> import cygrad
    >>> a = cygrad.tensor([4., 9.], dtype=cygrad.float64, requires_grad=True)
    >>> f = lambda x, a: x * x - a
    >>> x = cygrad.optimize.custom_root(f, [1., 1.], lambda f, x0: a.detach().sqrt(), (a,), cygrad.optimize.sparse_solve())
    >>> cygrad.autograd.grad(x.sum(), a)
    (tensor([0.2500, 0.1667], dtype=cygrad.float64),)
    """
    return SparseSolve(pattern, symmetric)


def newton(name: str, f: Callable[[Tensor], Tensor], x: Tensor, linear_solve: Linear, xtol: float, maxiter: int) -> tuple[Tensor, int]:
    """Return a root of f and the number of steps: Newton's, each halved until the residual is smaller.

    It ends where no element changes by more than xtol times its size, or 1. RuntimeError, which says the residual, without convergence.
    """
    value = f(x)
    size = value.norm().item()
    for steps in range(1, maxiter + 1):
        step = linear_solve(f, x, value, False)
        if not x.numel() or (step.abs() / x.abs().clamp(min=1)).amax().item() <= xtol:
            return x - step, steps
        fraction = 1.0
        while fraction >= LEAST_STEP:
            after = x - fraction * step
            value = f(after)
            reached = value.norm().item()
            if reached <= (1 - fraction / 4) * size:
                break
            fraction /= 2
        else:
            raise RuntimeError(f"{name}: no convergence: no part of Newton's step {steps} makes the residual smaller, whose norm is "
                               f"{size:.3g}")
        x, size = after, reached
    raise RuntimeError(f"{name}: no convergence in {maxiter} steps: the norm of the residual is {size:.3g}")
