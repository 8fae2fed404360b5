"""Determinants, and their logarithms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.compute.matrices import first_failure, our_loop
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.levels.batches import special_tensors
from cygrad._core.operands.arrays import from_array, to_array
from cygrad.data import creation
from cygrad.data.limits import finfo
from cygrad.operators._language.arguments import delivered, delivered_together, shown_as
from cygrad.operators._language.batches import matrices
from cygrad.operators._language.declaration import operator, recorded, recorded_together
from cygrad.operators._language.matrices import checked_matrix
from cygrad.operators.joining import cat
from cygrad.operators.solving import inverted, linalg_inv
from cygrad.ops.refusals import LOW_PRECISION, NOT_FLOATING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad._core.memory.storage import DType
    from cygrad.tensor import Tensor

_lu_factor, _determinant, _log_determinant = our_loop("lu_factor"), our_loop("determinant"), our_loop("log_determinant")


def _times_matrix(numbers: Tensor, matrix: Tensor) -> Tensor:
    return numbers.unsqueeze(-1).unsqueeze(-1) * matrix


def _small_adjugate(C: Tensor) -> tuple[Tensor, Any]:
    """Return adjugates and determinants by sums and products alone (Faddeev and LeVerrier), for matrices near 0, where no sum cancels."""
    size = C.shape[-1]
    identity = creation.eye(size, dtype=C.dtype)
    adjugate, determinant = identity.expand(C.shape), C.new_ones(C.shape[:-2])
    for step in range(1, size + 1):
        product = C @ adjugate
        determinant = product.diagonal(0, -2, -1).sum(-1) / step
        if step < size:
            adjugate = _times_matrix(determinant, identity) - product
    return adjugate, determinant


def _adjugate_of_rank(rank: int, A: Tensor, U: Tensor, Vh: Tensor) -> Tensor:
    """Return the adjugates of matrices that have so many singular values that are not nearly 0, with vectors U and Vh.

    In the coordinates of these vectors the matrices are P Q / R T, where P has an inverse and C = T - R P^-1 Q is near 0. Of that only
    sums and products are taken, so that each derivative is right at any rank; the vectors are constants.
    """
    B = U.mH @ A @ Vh.mH
    inverse = linalg_inv(B[..., :rank, :rank])
    left, right = B[..., rank:, :rank] @ inverse, inverse @ B[..., :rank, rank:]
    adjugate, determinant = _small_adjugate(B[..., rank:, rank:] - B[..., rank:, :rank] @ right)
    above = cat((_times_matrix(determinant, inverse) + right @ adjugate @ left, -right @ adjugate), -1)
    below = cat((-adjugate @ left, adjugate), -1)
    scale = linalg_det(B[..., :rank, :rank]) * linalg_det(U @ Vh)
    return _times_matrix(scale, Vh.mH @ cat((above, below), -2) @ U.mH)


def _adjugate(A: Tensor) -> Tensor:
    """Return det(A) A^-1 for any A, in a form that is differentiated again; the matrices of a batch, by their ranks."""
    from cygrad.operators.spectra import linalg_svd

    matrices = A.reshape(-1, *A.shape[-2:])
    U, S, Vh = linalg_svd(matrices.detach(), full_matrices=False)
    values = to_array(S)
    ranks = (values > _nothing_beside(S.dtype) * values.max(-1, keepdims=True)).sum(-1)
    order = np.argsort(ranks, kind="stable")
    parts = [(rank, from_array(order[ranks[order] == rank])) for rank in np.unique(ranks).tolist()]
    adjugates = cat([_adjugate_of_rank(rank, *(x.index_select(0, places) for x in (matrices, U, Vh))) for rank, places in parts])
    return adjugates.index_select(0, from_array(np.argsort(order))).reshape(A.shape)


def _nothing_beside(dtype: DType) -> float:
    """Return the ratio below which a pivot or a singular value is nearly 0: the n-th derivative is exact up to eps / ratio^(n - 1)."""
    return float(np.cbrt(finfo(dtype).eps))


def _is_nearly_singular(LU: Tensor) -> bool:
    """Return True if a pivot is nearly nothing beside another."""
    pivots = LU.detach().diagonal(0, -2, -1).abs()
    return bool(pivots.numel()) and bool((pivots.amin(-1) <= _nothing_beside(pivots.dtype) * pivots.amax(-1)).any())


def _determinant_gradient(g: Tensor, A: Tensor, y: Tensor, LU: Tensor, pivots: Tensor, singular: bool) -> Tensor:
    """Return g times the conjugate cofactors: det(A)^* A^-H (Giles 2008, An extended collection of matrix derivative results, 2.2.4).

    Where a pivot is 0 they are taken from the adjugate. If they may be differentiated, so they are where one is nearly 0: the
    products of inverses that would come then cancel each other.
    """
    if singular or (is_grad_enabled() or special_tensors()) and _is_nearly_singular(LU):
        return _times_matrix(g, _adjugate(A).mH)
    return _times_matrix(g * y.conj(), inverted(A, LU, pivots)[0].mH)


@operator(dA=_determinant_gradient, adjoints=True, batch=matrices, node="LinalgDetBackward0", aliases=("det",),
          refuses={"biu": NOT_FLOATING}, loop="lu_cpu")
def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Determinant of square matrices in the last two dims.

    The gradient is right at singular matrices, too, also where torch's is 0.

    >>> import cygrad
    >>> cygrad.linalg.det(cygrad.tensor([[2., 1.], [1., 2.]]))
    tensor(3.)
    """
    a = checked_matrix(linalg_det, A, square=True)
    LU, pivots, info = _lu_factor(a)
    result = _determinant(LU, pivots)
    return delivered(recorded(linalg_det, (a,), result, LU=LU, pivots=pivots, singular=first_failure(info) is not None), out)


@shown_as("linalg_slogdet")
class SignAndLogarithm(NamedTuple):
    """The results of `linalg.slogdet`."""

    sign: Tensor
    logabsdet: Tensor


def _logarithm_gradient(gs: Any, A: Tensor, y: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """Return (g - i Im(g_sign^* sign)) A^-H, since log |det A| and the angle of det A are the parts of a logarithm."""
    of_sign, g = gs
    if A.is_complex() and of_sign is not None:
        angle = (of_sign.conj() * y).imag * -1j
        g = angle if g is None else g + angle
    return A.new_zeros(A.shape) if g is None else _times_matrix(g, inverted(A, LU, pivots)[0].mH)


@operator(dA=_logarithm_gradient, adjoints=True, batch=matrices, aliases=("slogdet",),
          refuses={"biu": NOT_FLOATING, "f": LOW_PRECISION})
def linalg_slogdet(A: Tensor, *, out: Sequence[Tensor] | None = None) -> SignAndLogarithm:
    """Sign of the determinant, of complex matrices its phase, and the logarithm of its absolute value.

    >>> import cygrad
    >>> cygrad.linalg.slogdet(-cygrad.eye(3)).sign
    tensor(-1.)
    """
    a = checked_matrix(linalg_slogdet, A, square=True)
    LU, pivots, _ = _lu_factor(a)
    results = recorded_together(linalg_slogdet, (a,), _log_determinant(LU, pivots), LU=LU, pivots=pivots)
    return delivered_together(SignAndLogarithm, results, out)


@operator(refuses={"biu": NOT_FLOATING, "f": LOW_PRECISION})
def logdet(input: Tensor) -> Tensor:
    """Logarithm of the determinant: NaN where that is negative, minus infinity where it is 0.

    >>> import cygrad
    >>> cygrad.logdet(cygrad.eye(2))
    tensor(0.)
    """
    sign, logarithm = linalg_slogdet(checked_matrix(logdet, input, "input", square=True))
    if sign.is_complex():
        return sign.log() + logarithm
    return logarithm.where(sign != -1, math.nan)
