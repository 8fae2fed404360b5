"""Copies, conversions, and fills."""

import numpy as np

import cygrad as cg
from samples.sample import sample, write

# A conversion to float32 is linear but coarse: a step that is a power of two is exact in both.
COARSE = {"eps": 0.125, "atol": 1e-4}

SAMPLES = {
    "fill": [sample(lambda x: (x * 1).fill_(2) + x, (2, 3))],
    "zero": [sample(lambda x: (x * 1).zero_(), (2,))],
    "clone": [sample(lambda x: x.clone(), (2, 3)), sample(lambda x: x.T.contiguous(), (2, 3))],
    "convert": [
        sample(lambda x: x.to(cg.float32).to(cg.float64), (2, 3), tolerances=COARSE),
        sample(lambda x: x.to(cg.float32).type_as(x), (2, 3), tolerances=COARSE),
    ],
    "copy": [sample(write(...), (2, 3), ()), sample(write(...), (2, 3), (3,))],
    "positive": [sample(lambda x: x.positive(), (2,), numpy=np.positive, kinds="if")],
}
