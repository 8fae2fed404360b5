"""Pseudoinverses and least squares."""

import numpy as np

import cygrad as cg
from samples.sample import refused_otherwise, sample

SAMPLES = {
    "linalg_pinv": refused_otherwise([
        *(sample(lambda x: cg.linalg.pinv(x), shape, numpy=np.linalg.pinv, kinds="f") for shape in ((3, 2), (2, 3), (2, 2, 2))),
        sample(lambda x: cg.linalg.pinv(x @ x.mH, hermitian=True, rtol=1e-9), (3, 2)),
        sample(lambda x, y: cg.linalg.pinv(x * y), (3, 1), (2,)),
    ]),
    "pinverse": refused_otherwise([sample(lambda x: x.pinverse(), (3, 2))]),
    "lstsq": [
        sample(lambda a, b: cg.linalg.lstsq(a, b).solution, (3, 2), (3, 2), numpy=lambda a, b: np.linalg.pinv(a) @ b, kinds="f"),
        sample(lambda a, b: cg.linalg.lstsq(a, b).solution, (2, 2, 3), (2, 1)),
        sample(lambda a, b: cg.linalg.lstsq(a, b, driver="gelsd").residuals, (3, 2), (3,)),
        sample(lambda a, b, c: cg.linalg.lstsq(a * b, c).solution, (3, 1), (2,), (3, 1)),
    ],
}
