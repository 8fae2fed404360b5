"""Factorisations of matrices: Cholesky's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.compute.matrices import our_loop
from cygrad.operators.arguments import delivered
from cygrad.operators.batches import matrices
from cygrad.operators.declaration import operator, recorded
from cygrad.operators.matrices import check_info, checked_matrix
from cygrad.operators.solving import linalg_solve_triangular

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


# ----- Cholesky's -----
_cholesky = our_loop("cholesky")


def _cholesky_gradient(g: Tensor, y: Tensor) -> Tensor:
    """Return L^-H sym(tril(L^H g), its diagonal halved) L^-1 (Murray 2016, Differentiation of the Cholesky decomposition, eq. 10)."""
    inner = (y.mT @ g).tril()
    inner = 0.5 * (inner + inner.tril(-1).mH)
    if inner.is_complex():      # the diagonal of the factor is real
        inner = 0.5 * (inner + inner.mH)
    half = linalg_solve_triangular(y.mT, inner, upper=True)
    return linalg_solve_triangular(y.mT, half.mH, upper=True)


def _from_the_upper_triangle(A: Tensor, *, upper: bool = False) -> Any:
    return linalg_cholesky(A.mH).mH if upper else NotImplemented


@operator(dA=_cholesky_gradient, node="LinalgCholeskyExBackward0", batch=matrices, parts=_from_the_upper_triangle)
def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Cholesky's factor L of Hermitian, positive definite matrices in the last two dims, A = L L^H; with `upper` L^H.

    The lower triangle is read, with `upper` the upper one. The gradient is Hermitian. LinAlgError where a matrix is not positive definite.

    >>> import cygrad
    >>> cygrad.linalg.cholesky(cygrad.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    a = checked_matrix("linalg_cholesky", A, square=True)
    if upper:
        return delivered(_from_the_upper_triangle(a, upper=True), out)
    factor, info = _cholesky(a)
    check_info("linalg_cholesky", info, "The factorization could not be completed because the input is not positive-definite (the leading "
                                        "minor of order {info} is not positive-definite).")
    return delivered(recorded(linalg_cholesky, (a,), factor), out)
