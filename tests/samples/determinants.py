"""Determinants."""

import numpy as np

import cygrad as cg
from samples.sample import refused_otherwise, sample

SAMPLES = {
    "linalg_det": [
        sample(lambda x: cg.linalg.det(x), (2, 3, 3), numpy=np.linalg.det, kinds="f"),
        sample(lambda x: cg.linalg.det(x), (2, 2)),
    ],
    "linalg_slogdet": [sample(lambda x: cg.linalg.slogdet(x).logabsdet, (2, 3, 3)), sample(lambda x: x.slogdet(), (2, 2))],
    "logdet": refused_otherwise([sample(lambda x: (x @ x.mH + cg.eye(x.shape[-1], dtype=x.dtype)).logdet(), (2, 3, 3))]),
}
