"""Norms of matrices, and their ranks."""

import math

import numpy as np

import cygrad as cg
from samples.sample import refused_otherwise, sample

SAMPLES = {
    "linalg_matrix_norm": [
        *(sample(lambda x, ord=ord: cg.linalg.matrix_norm(x, ord), (2, 3), numpy=lambda a, ord=ord: np.linalg.norm(a, ord), kinds="f")
          for ord in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)),
        sample(lambda x: cg.linalg.matrix_norm(x, "nuc", (2, 0), keepdim=True), (2, 3, 3)),
        sample(lambda x: cg.linalg.matrix_norm(x, -1, (0, 2)), (2, 3, 2)),
    ],
    "linalg_cond": refused_otherwise([
        *(sample(lambda x, p=p: cg.linalg.cond(x, p), (2, 2)) for p in (None, -2, "fro", "nuc", 1, -math.inf)),
        sample(lambda x: cg.linalg.cond(x), (2, 3, 2), numpy=np.linalg.cond, kinds="f"),
    ]),
    "linalg_norm": [
        sample(lambda x: cg.linalg.norm(x), (2, 3), numpy=np.linalg.norm, kinds="f"),
        sample(lambda x: cg.linalg.norm(x, 2), (2, 3), numpy=lambda a: np.linalg.norm(a, 2), kinds="f"),
        sample(lambda x: cg.linalg.norm(x, 3, 0), (2, 3), numpy=lambda a: np.linalg.norm(a, 3, 0), kinds="f"),
    ],
    "norm": [sample(lambda x: x.norm("nuc"), (2, 3)), sample(lambda x: cg.norm(x, "nuc", dim=(2, 0)), (2, 1, 2))],
    "nuclear_norm": [sample(lambda x: cg.nuclear_norm(x), (3, 2), numpy=lambda a: np.linalg.norm(a, "nuc"), kinds="f")],
}
PLAIN = {
    "linalg_matrix_rank": refused_otherwise([
        sample(lambda x: cg.linalg.matrix_rank(x), (2, 3, 2), numpy=np.linalg.matrix_rank, kinds="f"),
        sample(lambda x: cg.linalg.matrix_rank(x @ x.mH, hermitian=True), (3, 2)),
    ]),
}
