"""Eigenvalues and singular values; of vectors the parts that depend neither on sign nor on phase."""

import numpy as np

import cygrad as cg
from samples.sample import sample


def hermitian(x):
    """Return a Hermitian matrix, so that differences of the elements agree with its gradient."""
    return x + x.mH


def projections(vectors):
    """Return the projection onto each vector of a batch of columns, which is independent of signs."""
    return vectors.mT.unsqueeze(-1) * vectors.mH.unsqueeze(-2)


def absolute(U, S, Vh):
    """Return (A A^H)^(1/2) and (A^H A)^(-1/2) side by side, computed from the reduced bases."""
    U, V = (vectors[..., :S.shape[-1]] for vectors in (U, Vh.mH))
    return cg.cat([U * S.unsqueeze(-2) @ U.mH, (V / S.unsqueeze(-2) @ V.mH)[..., :U.shape[-2], :]], -1)


SAMPLES = {
    "linalg_eigh": [
        sample(lambda x: cg.linalg.eigh(hermitian(x)).eigenvalues, (3, 3), numpy=lambda a: np.linalg.eigvalsh(a + a.mT), kinds="f"),
        sample(lambda x: cg.linalg.eigh(hermitian(x), "U").eigenvalues, (2, 2, 2), numpy=lambda a: np.linalg.eigvalsh(a + a.mT), kinds="f"),
        sample(lambda x: projections(cg.linalg.eigh(hermitian(x)).eigenvectors), (3, 3)),
        sample(lambda x: (lambda L, V: projections(V) * L)(*cg.linalg.eigh(hermitian(x))), (2, 2)),
        sample(lambda x: cg.linalg.eigh(hermitian(x)).eigenvalues, (0, 0)),
    ],
    "linalg_eigvalsh": [
        sample(lambda x: cg.linalg.eigvalsh(hermitian(x)), (3, 3), numpy=lambda a: np.linalg.eigvalsh(a + a.mT), kinds="f"),
        sample(lambda x: cg.linalg.eigvalsh(hermitian(x), UPLO="U"), (2, 2, 2)),
    ],
    "linalg_eig": [
        sample(lambda x: cg.linalg.eig(x).eigenvalues.abs().sum(-1), (3, 3)),
        sample(lambda x: (lambda L, V: V * V.conj() * L)(*cg.linalg.eig(x)).sum(-1).real, (2, 2, 2)),
        sample(lambda x: cg.linalg.eig(x).eigenvalues.abs(), (0, 0)),
    ],
    "linalg_eigvals": [sample(lambda x: cg.linalg.eigvals(x).abs().square().sum(-1), (3, 3))],
    "linalg_svd": [
        sample(lambda x: cg.linalg.svd(x).S, (2, 3), numpy=lambda a: np.linalg.svd(a)[1], kinds="f"),
        sample(lambda x: projections(cg.linalg.svd(x, full_matrices=False).U), (3, 2)),
        sample(lambda x: projections(cg.linalg.svd(x, full_matrices=False).Vh.mH), (2, 3)),
        sample(lambda x: absolute(*cg.linalg.svd(x)), (2, 2, 3)),
        sample(lambda x: cg.linalg.svd(x).S, (3, 0)),
    ],
    "linalg_svdvals": [sample(lambda x: cg.linalg.svdvals(x), (3, 2), numpy=lambda a: np.linalg.svd(a, compute_uv=False), kinds="f")],
    "svd": [sample(lambda x: projections(x.svd().V), (2, 3)), sample(lambda x: x.svd(compute_uv=False).S, (2, 3))],
}
