"""Distances between vectors."""

import numpy as np

import cygrad as cg
from samples.sample import sample

PRODUCTS = "use_mm_for_euclid_dist"
SHIFT = 0.1         # no two coordinates are equal
REAL = {"complex numbers": "coordinates are real"}


def pairs(p):
    return lambda a, b: np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], p, -1)


SAMPLES = {
    "euclidean_dist": [
        sample(lambda a, b: cg.cdist(a, b), (3, 2), (4, 2), numpy=pairs(2), kinds="f", exempt=REAL),
        sample(lambda a, b: cg.cdist(a, b, compute_mode=PRODUCTS), (2, 3, 4), (5, 4), numpy=pairs(2), kinds="f", exempt=REAL),
    ],
    "cdist": [
        sample(lambda a, b: cg.cdist(a, b + SHIFT, p=1.0), (3, 2), (2, 2, 2), numpy=lambda a, b: pairs(1)(a, b + SHIFT), kinds="f",
               exempt=REAL),
        sample(lambda a, b: cg.cdist(a, b + SHIFT, p=3.0), (2, 3), (2, 3), numpy=lambda a, b: pairs(3)(a, b + SHIFT), kinds="f",
               exempt=REAL),
    ],
    "pull": [
        sample(lambda w, a, b: w._pull(a, b), (3, 4), (3, 2), (4, 2), kinds="f", exempt=REAL,
               numpy=lambda w, a, b: (w[:, :, None] * (a[:, None] - b)).sum(1)),
        sample(lambda w, a, b: w._pull(a, b), (2, 3, 1), (3, 2), (2, 1, 2), kinds="f", exempt=REAL),
    ],
    "pull_pairs": [sample(lambda w, x: w._pull_pairs(x), (2, 3), (2, 3, 2), kinds="f", exempt=REAL)],
    "products_of_pairs": [
        sample(lambda a, b: a._products_of_pairs(b), (3, 2), (3, 2), kinds="f", exempt=REAL,
               numpy=lambda a, b: ((a[:, None] - a) * (b[:, None] - b)).sum(-1)[np.triu_indices(len(a), 1)]),
    ],
    "pair_distances": [sample(lambda x: x._pair_distances(), (2, 3, 2), kinds="f", exempt=REAL)],
    "pdist": [
        sample(lambda x: cg.pdist(x), (4, 3), numpy=lambda a: pairs(2)(a, a)[np.triu_indices(len(a), 1)], kinds="f", exempt=REAL),
        sample(lambda x: cg.pdist(x, 1.0), (3, 2), numpy=lambda a: pairs(1)(a, a)[np.triu_indices(len(a), 1)], kinds="f", exempt=REAL),
    ],
}
