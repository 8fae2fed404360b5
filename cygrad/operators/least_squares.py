"""Pseudoinverses, and least squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.levels.batches import batched_level
from cygrad.operators._language.arguments import delivered, delivered_together, shown_as
from cygrad.operators._language.batches import left, matrices
from cygrad.operators._language.declaration import operator, recorded, recorded_together, unrecorded
from cygrad.operators._language.matrices import checked_matrix, tolerance
from cygrad.operators.spectra import linalg_eigh, linalg_svd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor


# ----- Pseudoinverses -----
def _pinv_gradient(g: Tensor, A: Tensor, y: Tensor) -> Tensor:
    """Return -P^H g P^H + (I - A P) g^H P P^H + P^H P g^H (I - P A), for matrices that keep their rank.

    Source: Golub and Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate.
    """
    adjoint, inverse = g.mH, y.mH
    left = adjoint - A @ (y @ adjoint)
    right = adjoint - adjoint @ y @ A
    return left @ (y @ inverse) + (inverse @ y) @ right - inverse @ g @ inverse


def _inverted(values: Tensor, bound: Tensor) -> Tensor:
    """Return one over each value that is larger in size than a bound, and 0 for the others."""
    small = values.abs() <= bound
    return values.masked_fill(small, 1).reciprocal().masked_fill(small, 0)


def _pseudoinverse(a: Tensor, atol: Any, rtol: Any, hermitian: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return U, the pseudoinverses of the singular values S of A = U S V^H, V^H, and S, of a matrix that has no history."""
    if hermitian:
        values, U = linalg_eigh(a)
        S, Vh = values.abs(), U.mH
    else:
        U, values, Vh = linalg_svd(a, False)
        S = values
    return U, _inverted(values, tolerance(linalg_pinv, a, S, atol, rtol)), Vh, S


@operator(dA=_pinv_gradient, adjoints=True, batch=matrices,
          refuses={"biuf": RuntimeError("{public}({dtype}): expected a tensor with 2 or more dimensions of float, double, cfloat or "
                                        "cdouble types")})
def linalg_pinv(A: Tensor, rcond: float | Tensor | None = None, hermitian: bool = False, *, atol: float | Tensor | None = None,
                rtol: float | Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """Pseudoinverse (Moore-Penrose) of the matrices in the last two dims; singular values up to max(atol, rtol * largest) count as 0.

    `rtol` is by default the larger size times the dtype's precision, and 0 beside another `atol` than 0; `rcond` is another name of it. Of
    `hermitian` matrices the lower triangle is read. The gradient holds for matrices that keep their rank.

    >>> import cygrad
    >>> cygrad.linalg.pinv(cygrad.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    a = checked_matrix(linalg_pinv, A)
    relative = rtol if rcond is None else rcond

    def compute() -> Tensor:
        U, inverted, Vh, _ = _pseudoinverse(a.detach(), atol, relative, hermitian)
        return (Vh.mH * inverted.unsqueeze(-2)) @ U.mH

    return delivered(recorded(linalg_pinv, (a,), unrecorded(compute)), out)


@operator
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Pseudoinverse of the matrices in the last two dims: `linalg.pinv` with `rcond` as `rtol`.

    >>> import cygrad
    >>> cygrad.pinverse(cygrad.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return linalg_pinv(input, rcond)


# ----- Least squares -----
@shown_as("linalg_lstsq")
class LeastSquares(NamedTuple):
    """The results of `linalg.lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _lstsq_shared(gs: list[Any], y1: Tensor) -> Any:
    return None if gs[0] is None else y1.mH @ gs[0]


def _lstsq_matrix_gradient(shared: Any, gs: list[Any], A: Tensor, B: Tensor, y: Tensor, y1: Tensor, A_shape: tuple[int, ...]) -> Tensor:
    """Return -K X^H + (B - A X) (P K)^H + P^H X (gX - P A gX)^H with K = P^H gX: the gradient of P B, for matrices that keep their rank.

    Source: Golub and Pereyra 1973, The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate.
    """
    gX, gP = gs[:2]
    gradient = A.new_zeros(A_shape) if gP is None else _pinv_gradient(gP, A, y1)
    if gX is not None:
        through = (B - A @ y) @ (y1 @ shared).mH + y1.mH @ y @ (gX - y1 @ (A @ gX)).mH - shared @ y.mH
        gradient = gradient + through.sum_to_size(A_shape)
    return gradient


def _lstsq_side_gradient(shared: Any, B: Tensor, B_shape: tuple[int, ...]) -> Tensor:
    return B.new_zeros(B_shape) if shared is None else shared.sum_to_size(B_shape)


def _batched_lstsq(level: Any, operator: Any, A: Tensor, B: Tensor, rcond: float) -> Any:
    """Solve for all examples: each has its rank, also where they share a matrix."""
    ndim = max(A.ndim, B.ndim)
    a, b = (level.enter(x)[(slice(None),) + (None,) * (ndim - x.ndim)] for x in (A, B))
    return left(level, operator(a, b, rcond))


@operator(shared=_lstsq_shared, dA=_lstsq_matrix_gradient, dB=_lstsq_side_gradient, node="LinalgLstsqBackward0", adjoints=True,
          batch=_batched_lstsq)
def _lstsq(A: Tensor, B: Tensor, rcond: float) -> Any:
    """Return the solutions of least norm, the pseudoinverses that give them, ranks and singular values."""
    def compute() -> tuple[Tensor, ...]:
        U, inverted, Vh, S = _pseudoinverse(A.detach(), None, rcond, False)
        V = Vh.mH * inverted.unsqueeze(-2)
        return V @ (U.mH @ B.detach()), V @ U.mH, (inverted != 0).sum(-1), S

    X, P, rank, S = unrecorded(compute)
    return *recorded_together(_lstsq, (A, B), (X, P, rank)), S


@operator(refuses={"biuf": RuntimeError("This function doesn't handle types other than float and double")})
def linalg_lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None,
                 out: Sequence[Tensor] | None = None) -> LeastSquares:
    """Solution X of least norm among those with the least |A X - B|, for matrices in the last two dims; B may be vectors.

    Singular values up to `rcond` times the largest count as 0. All of LAPACK's drivers "gelsy" (the default), "gels", "gelsd" and "gelss"
    are one algorithm here, by singular values; they decide which results stand beside the solution: ranks by all but "gels", singular
    values by "gelsd" and "gelss", and, by all but "gelsy" and of tall matrices of full rank, the squared norms of A X - B. Other results
    are empty. The gradient holds for matrices that keep their rank.

    >>> import cygrad
    >>> cygrad.linalg.lstsq(cygrad.tensor([[2.], [0.]]), cygrad.tensor([[4.], [3.]])).solution
    tensor([[2.]])
    """
    name = "linalg.lstsq"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    a = checked_matrix(linalg_lstsq, A)
    chosen = "gelsy" if driver is None else driver
    if chosen not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if a.dtype != B.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got input's dtype {a.dtype} and other's dtype "
                           f"{B.dtype}")
    is_vector = B.ndim == 1 or B.ndim == a.ndim - 1 and B.shape == a.shape[:-1]
    b = B.unsqueeze(-1) if is_vector else B
    if b.shape[-2] != a.shape[-2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({-1 if is_vector else -2})")
    if chosen == "gels":
        rcond = 0.0
    elif rcond is None:
        rcond = float(np.finfo(a.dtype.to_real().name).eps) * max(a.shape[-2:])
    X, _, rank, S = _lstsq(a, b, float(rcond))
    none = a.new_empty(0, dtype=a.dtype.to_real())
    residuals = none
    # Inside of vmap ranks are not visible: they count as full.
    if chosen != "gelsy" and a.shape[-2] > a.shape[-1] and (batched_level(rank) is not None or (rank == a.shape[-1]).all()):
        error = a @ X - b
        squares = error.view_as_real().square().sum(-1) if error.is_complex() else error.square()      # smooth at 0, which sizes are not
        residuals = squares.sum(-2)     # of a vector a row of one, as in torch and NumPy
    results = (X.squeeze(-1) if is_vector else X, residuals, rank.new_empty(0) if chosen == "gels" else rank,
               S if chosen in ("gelsd", "gelss") else none)
    return delivered_together(LeastSquares, results, out)
