"""The largest singular values of large matrices, by products with few random vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad import random
from cygrad.operators._language.declaration import operator
from cygrad.operators.orthogonal import linalg_qr
from cygrad.operators.spectra import linalg_svd

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@operator(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of the `q` largest singular values of A - M, for matrices in the last two dims: nearly, where A has a higher rank.

    `niter` rounds of products improve the space of random vectors (Halko et al. 2009, Finding structure with randomness, 5.1).

    >>> import cygrad
    >>> [part.shape for part in cygrad.svd_lowrank(cygrad.ones(5, 4), q=2)]
    [cygrad.Size([5, 2]), cygrad.Size([2]), cygrad.Size([4, 2])]
    """
    a = A if M is None else A - M
    is_wide = a.shape[-2] < a.shape[-1]
    a = a.mH if is_wide else a
    Q = linalg_qr(a @ random.randn(a.shape[-1], 6 if q is None else q, dtype=a.dtype)).Q
    for _ in range(2 if niter is None else niter):
        Q = linalg_qr(a @ linalg_qr(a.mH @ Q).Q).Q
    U, S, Vh = linalg_svd(Q.mH @ a, False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if is_wide else (U, S, V)


@operator(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of the `q` (default: up to 6) largest singular values of matrices whose rows are samples, less their mean with `center`.

    The columns of V are principal directions.

    >>> import cygrad
    >>> cygrad.pca_lowrank(cygrad.ones(5, 4), q=2)[1]
    tensor([0., 0.])
    """
    least = min(A.shape[-2:])
    count = min(6, least) if q is None else q
    if not 0 <= count <= least:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, count, niter)
