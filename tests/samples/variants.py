"""Operators that are others under names or with arguments of their own."""

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "nn_functional_glu": [sample(lambda x: cg.nn.functional.glu(x), (2, 4), exempt={"complex numbers": "refused, as in torch"}),
                          sample(lambda x: cg.nn.functional.glu(x, 0), (4,), exempt={"complex numbers": "refused, as in torch"})],
    "cube_root": [sample(lambda x: x._cube_root(), (2, 3), numpy=np.cbrt, kinds="f", exempt={"complex numbers": "it is of real numbers"})],
    "positive": [sample(lambda x: x.positive(), (2,), numpy=np.positive, kinds="if")],
    "rsub": [sample(lambda x, y: cg.rsub(x, y, alpha=2), (2, 3), (3,), numpy=lambda a, b: b - 2 * a, kinds="if"),
             sample(lambda x: cg.rsub(x, 3), (2,), numpy=lambda a: 3 - a, kinds="if")],
    "prelu": [sample(lambda x, w: cg.prelu(x, w), (2, 3), (3,), numpy=lambda a, w: np.where(a > 0, a, w * a), kinds="f")],
}
