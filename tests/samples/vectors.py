"""Products of vectors."""

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "dot": [sample(lambda a, b: a.dot(b), (3,), (3,)), sample(lambda a, b: cg.dot(a, b), (0,), (0,))],
    "linalg_cross": [
        sample(lambda a, b: a.cross(b), (2, 3), (2, 3)),
        sample(lambda a, b: cg.cross(a, b, dim=0), (3, 2), (3, 1)),
        sample(lambda a, b: cg.linalg.cross(a, b), (2, 3), (1, 3), numpy=np.cross, kinds="f"),
        sample(lambda a, b: cg.linalg.cross(a, b, dim=0), (3,), (3,)),
    ],
    "cross": [sample(lambda a, b: a.cross(b), (2, 3), (2, 3), numpy=np.cross, kinds="f")],
    "linalg_vecdot": [
        sample(lambda a, b: cg.linalg.vecdot(a, b), (2, 3), (3,), numpy=lambda a, b: (a * b).sum(-1), kinds="f"),
        sample(lambda a, b: cg.linalg.vecdot(a, b, dim=0), (2, 3), (2, 1), numpy=lambda a, b: (a * b).sum(0), kinds="f"),
    ],
    "outer": [sample(lambda a, b: a.outer(b), (2,), (3,), numpy=np.outer, kinds="if")],
    "vector_convolution": [
        sample(lambda a, v: a._vector_convolution(v, False), (4,), (3,), numpy=np.convolve, kinds="if"),
        sample(lambda a, v: a._vector_convolution(v, True), (4,), (2,), numpy=lambda a, v: np.convolve(a, v, "valid"), kinds="if"),
        sample(lambda a, v: a._vector_convolution(v, False), (1,), (3,)),
    ],
    "vdot": [sample(lambda a, b: a.vdot(b), (3,), (3,), numpy=np.vdot, kinds="if")],
}
