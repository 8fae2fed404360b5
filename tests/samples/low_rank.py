"""Singular values by random vectors: results that do not depend on these."""

import numpy as np

import cygrad as cg
from samples.sample import sample


def values(array):
    return np.linalg.svd(array, compute_uv=False)


PLAIN = {
    "svd_lowrank": [sample(lambda x: cg.svd_lowrank(x, q=2)[1], (3, 2), numpy=values, kinds="f")],
    "pca_lowrank": [sample(lambda x: cg.pca_lowrank(x, center=False)[1], (2, 3), numpy=values, kinds="f")],
}
