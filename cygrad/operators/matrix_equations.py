"""Equations of matrices that SciPy has functions for: Sylvester's, and square roots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.operands.arrays import computed, to_array
from cygrad.operators import public_name
from cygrad.operators._language.batches import matrices
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.matrices import check_finite, checked_matrix, failure
from cygrad.operators.solving import linalg_solve
from cygrad.ops.refusals import NOT_FLOATING

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

MOST_STEPS = 100


def _refusal(operator: Any, said: str) -> RuntimeError:
    return RuntimeError(f"{public_name(operator.name)}: {said}")


# ----- Linear equations -----
@operator(refuses={"biu": NOT_FLOATING}, loop="lu_cpu")
def linalg_solve_sylvester(A: Tensor, B: Tensor, Q: Tensor) -> Tensor:
    """Solution X of A X + X B = Q, for square matrices A, of m rows, and B, of n, in the last two dims; these in front broadcast.

    By one system of m n equations, which takes memory for (m n)^2 numbers.

    Raises:
        RuntimeError: matrices whose sizes or dtypes do not fit.
        LinAlgError: an eigenvalue of A is minus one of B, so that there is no single solution.

    >>> import cygrad
    >>> cygrad.linalg.solve_sylvester(cygrad.eye(2), cygrad.eye(2), cygrad.ones(2, 2))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    checked_matrix(linalg_solve_sylvester, A, square=True)
    checked_matrix(linalg_solve_sylvester, B, "B", square=True)
    checked_matrix(linalg_solve_sylvester, Q, "Q")
    m, n = A.shape[-1], B.shape[-1]
    if tuple(Q.shape[-2:]) != (m, n):
        raise _refusal(linalg_solve_sylvester, f"Q must be {m} by {n} matrices, but they are {Q.shape[-2]} by {Q.shape[-1]}")
    if not A.dtype == B.dtype == Q.dtype:
        raise _refusal(linalg_solve_sylvester, f"A, B and Q must have the same dtype, but they have {A.dtype}, {B.dtype} and {Q.dtype}")
    rows, columns = A.new_ones(m).diag(), A.new_ones(n).diag()
    system = A[..., :, None, :, None] * columns[:, None, :] + rows[:, None, :, None] * B.mT[..., None, :, None, :]
    equations = system.reshape(*system.shape[:-4], m * n, m * n)
    solution = linalg_solve(equations, Q.reshape(*Q.shape[:-2], m * n, 1))
    return solution.reshape(*solution.shape[:-2], m, n)


# ----- Square roots -----
def _roots(a: np.ndarray) -> np.ndarray:
    """Return square roots by the product form of Denman's and Beavers' iteration, with determinants as scales (Higham 2008, 6.29)."""
    n = a.shape[-1]
    unit, root, product = np.eye(n, dtype=a.dtype), a.copy(), a.copy()
    bound = 8 * n * np.finfo(a.dtype).eps
    for _ in range(MOST_STEPS):
        distance = np.abs(product - unit).max(initial=0)
        scale = 1.0 if distance < 1e-2 else np.exp(np.linalg.slogdet(product)[1] / (-2 * n))[..., None, None].astype(unit.real.dtype)
        inverse = np.linalg.inv(product) / scale**2
        root = scale / 2 * (root @ (unit + inverse))
        product = (unit + (scale**2 * product + inverse) / 2) / 2
        if distance <= bound:
            return root
    raise np.linalg.LinAlgError


def _root_tangent(tangent_of: Any, operator: Any, result: Tensor, A: Tensor) -> Tensor | None:
    t = tangent_of(A)
    return None if t is None else linalg_solve_sylvester(result, result, t)


@operator(dA=lambda g, y: linalg_solve_sylvester(y.mH, y.mH, g), adjoints=True, tangent=_root_tangent, batch=matrices,
          refuses={"biu": NOT_FLOATING}, loop="sqrtm_cpu")
def linalg_sqrtm(A: Tensor) -> Tensor:
    """Principal square root of square matrices in the last two dims: X X = A, eigenvalues to the right of the imaginary axis.

    By the product form of Denman's and Beavers' iteration (Higham, Functions of Matrices, 2008); the derivative solves Sylvester's
    equation.

    Raises:
        LinAlgError: a singular matrix, or eigenvalues on the negative real axis, where there is no principal root.

    >>> import cygrad
    >>> cygrad.linalg.sqrtm(cygrad.tensor([[5., 4.], [4., 5.]]))
    tensor([[2.0000, 1.0000],
            [1.0000, 2.0000]])
    """
    checked_matrix(linalg_sqrtm, A, square=True)
    check_finite(linalg_sqrtm, A, "The input matrix contains non-finite values.")
    try:
        with np.errstate(all="ignore"):
            result = _roots(to_array(A)) if A.numel() else to_array(A).copy()
        if not np.isfinite(result).all():
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        raise failure(linalg_sqrtm, 0, 0, "a matrix is singular, or has eigenvalues on the negative real axis") from None
    return recorded(linalg_sqrtm, (A,), computed(np.ascontiguousarray(result)))
