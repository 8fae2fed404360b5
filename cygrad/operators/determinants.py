"""Determinants, and their logarithms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad import creation
from cygrad._core.compute.matrices import first_failure, our_loop
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.levels.batches import special_tensors
from cygrad._core.operands.arrays import to_array
from cygrad.operators._language.arguments import delivered, delivered_together, shown_as
from cygrad.operators._language.batches import matrices
from cygrad.operators._language.declaration import operator, recorded, recorded_together
from cygrad.operators._language.matrices import checked_matrix
from cygrad.operators.solving import inverted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor

_lu_factor, _determinant, _log_determinant = our_loop("lu_factor"), our_loop("determinant"), our_loop("log_determinant")


def _times_matrix(numbers: Tensor, matrix: Tensor) -> Tensor:
    return numbers.unsqueeze(-1).unsqueeze(-1) * matrix


def _cofactors(A: Tensor) -> Tensor:
    """Return the conjugate derivatives of det A by the elements of A, for any A, by U S V^H: det(U V^H) U diag(prod of the other s) V^H.

    Source: N. Higham, What is the adjugate of a matrix?, 2020; times the conjugate phase of det(U V^H).
    """
    from cygrad.operators.spectra import linalg_svd

    U, S, Vh = linalg_svd(A, full_matrices=False)
    others = S.unsqueeze(-2).where(~creation.eye(S.shape[-1], dtype=bool), 1).prod(-1)
    return _times_matrix(linalg_det(U @ Vh), (U * others.unsqueeze(-2)) @ Vh)


def _is_nearly_singular(LU: Tensor) -> bool:
    """Say whether a pivot is nothing beside another."""
    pivots = np.abs(np.diagonal(to_array(LU), axis1=-2, axis2=-1))
    return bool(pivots.size) and bool((pivots.min(-1) <= 100 * np.finfo(pivots.dtype).eps * pivots.max(-1)).any())


def _determinant_gradient(g: Tensor, A: Tensor, y: Tensor, LU: Tensor, pivots: Tensor, singular: bool) -> Tensor:
    """Return g times the conjugate cofactors: det(A)^* A^-H (Giles 2008, An extended collection of matrix derivative results, 2.2.4).

    Where a pivot is 0 they are taken from the singular values. If somebody may differentiate them, they are where one is nearly 0, too: the
    products of inverses that would come then cancel each other.
    """
    if singular or (is_grad_enabled() or special_tensors()) and _is_nearly_singular(LU):
        return _times_matrix(g, _cofactors(A))
    return _times_matrix(g * y.conj(), inverted(A, LU, pivots)[0].mH)


@operator(dA=_determinant_gradient, adjoints=True, batch=matrices, node="LinalgDetBackward0", aliases=("det",))
def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Determinant of square matrices in the last two dims.

    The gradient is right at singular matrices, too, also where torch's is 0.

    >>> import cygrad
    >>> cygrad.linalg.det(cygrad.tensor([[2., 1.], [1., 2.]]))
    tensor(3.)
    """
    a = checked_matrix("linalg_det", A, square=True)
    LU, pivots, info = _lu_factor(a)
    result = _determinant(LU, pivots)
    return delivered(recorded(linalg_det, (a,), result, LU=LU, pivots=pivots, singular=first_failure(info) is not None), out)


@shown_as("linalg_slogdet")
class SignAndLogarithm(NamedTuple):
    """What `linalg.slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


def _logarithm_gradient(gs: Any, A: Tensor, y: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """Return (g - i Im(g_sign^* sign)) A^-H, since log |det A| and the angle of det A are the parts of a logarithm."""
    of_sign, g = gs
    if A.is_complex() and of_sign is not None:
        angle = (of_sign.conj() * y).imag * -1j
        g = angle if g is None else g + angle
    return A.new_zeros(A.shape) if g is None else _times_matrix(g, inverted(A, LU, pivots)[0].mH)


@operator(dA=_logarithm_gradient, adjoints=True, batch=matrices, aliases=("slogdet",))
def linalg_slogdet(A: Tensor, *, out: Sequence[Tensor] | None = None) -> SignAndLogarithm:
    """Sign of the determinant, of complex matrices its phase, and the logarithm of its absolute value.

    >>> import cygrad
    >>> cygrad.linalg.slogdet(-cygrad.eye(3)).sign
    tensor(-1.)
    """
    a = checked_matrix("linalg_slogdet", A, square=True)
    LU, pivots, _ = _lu_factor(a)
    results = recorded_together(linalg_slogdet, (a,), _log_determinant(LU, pivots), LU=LU, pivots=pivots)
    return delivered_together(SignAndLogarithm, results, out)


@operator
def logdet(input: Tensor) -> Tensor:
    """Logarithm of the determinant: NaN where that is negative, minus infinity where it is 0.

    >>> import cygrad
    >>> cygrad.logdet(cygrad.eye(2))
    tensor(0.)
    """
    sign, logarithm = linalg_slogdet(checked_matrix("logdet", input, "input", square=True))
    if sign.is_complex():
        return sign.log() + logarithm
    return logarithm.where(sign != -1, math.nan)
