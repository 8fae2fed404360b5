"""Norms of vectors."""

import math

import numpy as np

import cygrad as cg
from samples.sample import refused_otherwise, sample

SAMPLES = {
    "renorm": [
        sample(lambda x: x.renorm(2, 0, 1.5), (3, 2), kinds="f",
               numpy=lambda a: a * np.minimum(1, 1.5 / (np.sqrt((a * a).sum(1, keepdims=True)) + 1e-7))),
        sample(lambda x: x.renorm(3, -1, 1), (2, 2, 3)),
        sample(lambda x: cg.renorm(x, math.inf, 1, 0.75), (2, 3)),
    ],
    "linalg_vector_norm": refused_otherwise([
        *(sample(lambda x, p=p: x.norm(p), (2, 3)) for p in ("fro", 0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf, -2)),
        sample(lambda x: x.norm(3, (0, -1), keepdim=True), (2, 2, 2)),
        sample(lambda x: cg.norm(x, dim=1), (2, 3)),
        sample(lambda x: x.norm(), ()),
        sample(lambda x, y: x.dist(y, 3), (2, 3), (3,)),
        sample(lambda x: cg.linalg.vector_norm(x, 3, 1, keepdim=True), (2, 3)),
    ]),
}
