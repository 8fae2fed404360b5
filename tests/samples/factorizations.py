"""Factorisations."""

import cygrad as cg
from samples.sample import sample


def definite(x):
    """Return Hermitian matrices that are positive definite."""
    return x @ x.mH + 2 * cg.eye(x.shape[-1], dtype=x.dtype)


SAMPLES = {
    "linalg_cholesky": [
        sample(lambda x: cg.linalg.cholesky(definite(x)), (2, 3, 3)),
        sample(lambda x: cg.linalg.cholesky(definite(x), upper=True), (2, 2)),
    ],
}
