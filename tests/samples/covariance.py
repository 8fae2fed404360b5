"""Covariances and correlations."""

import numpy as np

import cygrad as cg
from samples.sample import sample

COUNTS, IMPORTANCE = [1, 2, 0, 3], [0.5, 1.0, 2.0, 0.25]

SAMPLES = {
    "cov": [
        sample(lambda x: x.cov(), (2, 4), numpy=np.cov, kinds="f"),
        sample(lambda x: x.cov(correction=0), (4,), numpy=lambda a: np.cov(a, ddof=0), kinds="f"),
        sample(lambda x: x.cov(fweights=cg.tensor(COUNTS), aweights=cg.tensor(IMPORTANCE, dtype=x.real.dtype)), (3, 4),
               numpy=lambda a: np.cov(a, fweights=COUNTS, aweights=IMPORTANCE), kinds="f"),
        sample(lambda x, w: x.cov(aweights=w.real.exp()), (2, 3), (3,)),
    ],
    "corrcoef": [
        sample(lambda x: x.corrcoef(), (3, 5), numpy=np.corrcoef, kinds="f"),
        sample(lambda x: x.corrcoef(), (4,), numpy=np.corrcoef, kinds="f"),
    ],
}
