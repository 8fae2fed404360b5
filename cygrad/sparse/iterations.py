"""Iterative solves by SciPy, of matrices or of linear functions: gradients are by one more solve, with the adjoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad._core.graph.noted_calls import call_again
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.operands.arrays import computed, from_array, to_array
from cygrad.autograd import no_grad
from cygrad.operators._language.arguments import checked_tensor
from cygrad.operators._sparse.scipy_matrices import scipy_module, to_scipy
from cygrad.operators.joining import stack
from cygrad.optimize.implicit import LinearEquation, Map, adjoint_of
from cygrad.pytree import tree_map
from cygrad.tensor import Tensor


class _Map:
    """A linear map: a matrix, sparse or dense, or a function of a tensor, with its adjoint; `args` are tensors that both compute with."""

    def __init__(self, A: Any, like: Tensor, args: tuple[Any, ...] = ()) -> None:
        part = sparse_part(A)
        self._is_matrix, self._pattern = isinstance(A, Tensor), None if part is None else part.pattern
        if part is not None:
            adjoint = part.pattern.transposed
            self.apply: Map = lambda x, values: part.pattern.around(values) @ x
            self.adjoint: Map = lambda g, values: adjoint.around(values.conj()) @ g
            self.args: tuple[Any, ...] = (part.inner,)
        elif self._is_matrix:
            self.apply, self.adjoint, self.args = lambda x, A: A @ x, lambda g, A: A.mH @ g, (A,)
        elif callable(A):
            self.apply, self.adjoint, self.args = A, adjoint_of(A, like), args
        else:
            raise TypeError(f"expected a matrix, sparse or dense, or a linear function of a tensor, not {type(A).__name__}")

    def form(self, is_adjoint: bool) -> tuple[Any, ...]:
        """Return the map, or its adjoint, for `_operator`: of a matrix, a program that is captured reads its values."""
        args = tree_map(_detached, self.args)
        return (self._pattern, *args, is_adjoint) if self._is_matrix else (self.adjoint if is_adjoint else self.apply, args)


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, Tensor) else leaf


def _operator(linalg: Any, form: tuple[Any, ...], like: Tensor) -> Any:
    """Return a map as SciPy's solvers take it."""
    if callable(form[0]):
        apply, args = form

        def product(x: np.ndarray) -> np.ndarray:
            with no_grad():
                return to_array(apply(from_array(x.astype(like.dtype.name)).reshape(like.shape), *args).detach()).reshape(-1)

        return linalg.LinearOperator((like.numel(), like.numel()), product, dtype=like.dtype.name)
    pattern, values, is_adjoint = form
    matrix = values if pattern is None else pattern.around(values)
    matrix = matrix.conj().t() if is_adjoint else matrix
    return to_array(matrix) if pattern is None else to_scipy(matrix)


def _iterate(name: str, side: Tensor, start: Tensor | None, form: tuple[Any, ...], inverse: tuple[Any, ...] | None, rtol: float,
             atol: float, maxiter: int | None) -> Tensor:
    """Return the solution for a side by an iteration of SciPy's; RuntimeError without convergence."""
    linalg = scipy_module(name, "scipy.sparse.linalg")
    matrix = _operator(linalg, form, side)
    right = to_array(side).reshape(-1)
    x, info = getattr(linalg, name)(matrix, right, x0=None if start is None else to_array(start).reshape(-1), rtol=rtol, atol=atol,
                                    maxiter=maxiter, M=None if inverse is None else _operator(linalg, inverse, side))
    if info:
        residual = np.linalg.norm(matrix @ x - right) / (np.linalg.norm(right) or 1)
        end = f"no convergence after {info} iterations" if info > 0 else "the method broke down"
        raise RuntimeError(f"sparse.{name}: {end}: the residual is {residual:.3g} times the right side, and rtol is {rtol}")
    return computed(np.array(x, right.dtype)).reshape(side.shape)      # of zeros SciPy returns the side itself


def _solved(name: str, A: Any, b: Tensor, x0: Any, args: tuple[Any, ...], rtol: float, atol: float, maxiter: int | None, M: Any) -> Tensor:
    scipy_module(name, "scipy.sparse.linalg")
    checked_tensor(globals()[name], b, "b", 2)
    if isinstance(A, Tensor) and (A.ndim != 2 or A.shape[0] != A.shape[1] or b.ndim not in (1, 2) or A.shape[0] != b.shape[0]):
        raise RuntimeError(f"sparse.{name}: Incompatible shapes of A and b for the equation Ax = b ({list(A.shape)} and {list(b.shape)})")
    if isinstance(A, Tensor) and b.ndim == 2:
        return stack([_solved(name, A, column, None, args, rtol, atol, maxiter, M) for column in b.unbind(1)], 1)
    linear = _Map(A, b, args)
    preconditioner = None if M is None else _Map(M, b)

    def solver(is_adjoint: bool) -> Callable[[Map, Tensor], Tensor]:
        def solve(_: Map, side: Tensor) -> Tensor:
            start = None if x0 is None or is_adjoint else x0.detach()
            inverse = None if preconditioner is None else preconditioner.form(is_adjoint)
            return call_again(_iterate, (name, side, start, linear.form(is_adjoint), inverse, rtol, atol, maxiter), {})

        return solve

    return LinearEquation(linear.apply, linear.adjoint, b, linear.args, solver(False), solver(True)).solution()


def cg(A: Any, b: Tensor, x0: Tensor | None = None, *, args: tuple[Any, ...] = (), rtol: float = 1e-5, atol: float = 0.0,
       maxiter: int | None = None, M: Any = None) -> Tensor:
    """Return x of A x = b by conjugate gradients, for a Hermitian positive definite A.

    `A` is a square matrix, sparse or dense, or a linear function `A(x, *args)` of a tensor x of the shape of b; `b` a vector, or columns
    beside a matrix. `M` approximates the inverse of A: a matrix or a function. It ends at a residual of `rtol` times the size of b, or
    `atol`; `x0` is the start. Gradients are for b, for the values of A and for the tensors in args: one more solve, with the adjoint, of
    the same accuracy. RuntimeError, which says the residual, without convergence in `maxiter` iterations; ImportError without SciPy.

    >>> import cygrad
    >>> A = cygrad.tensor([[2., 1.], [1., 3.]]).to_sparse_csr()
    >>> cygrad.sparse.cg(A, cygrad.tensor([3., 4.])).round(decimals=3)
    tensor([1., 1.])
    """
    return _solved("cg", A, b, x0, args, rtol, atol, maxiter, M)


def gmres(A: Any, b: Tensor, x0: Tensor | None = None, *, args: tuple[Any, ...] = (), rtol: float = 1e-5, atol: float = 0.0,
          maxiter: int | None = None, M: Any = None) -> Tensor:
    """Return x of A x = b by GMRES, for any regular A; arguments, gradients and errors are `cg`'s.

    >>> import cygrad
    >>> cygrad.sparse.gmres(lambda x: x + x.flip(0) / 2, cygrad.tensor([2., 2.5])).round(decimals=3)
    tensor([1., 2.])
    """
    return _solved("gmres", A, b, x0, args, rtol, atol, maxiter, M)


def bicgstab(A: Any, b: Tensor, x0: Tensor | None = None, *, args: tuple[Any, ...] = (), rtol: float = 1e-5, atol: float = 0.0,
             maxiter: int | None = None, M: Any = None) -> Tensor:
    """Return x of A x = b by BiCGSTAB, for any regular A; arguments, gradients and errors are `cg`'s.

    >>> import cygrad
    >>> A = cygrad.tensor([[2., 1.], [0., 3.]]).to_sparse_csr()
    >>> cygrad.sparse.bicgstab(A, cygrad.tensor([3., 3.]))
    tensor([1., 1.])
    """
    return _solved("bicgstab", A, b, x0, args, rtol, atol, maxiter, M)
