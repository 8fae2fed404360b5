"""Linear maps along one dim."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "the operators that call it refuse them"}

SAMPLES = {
    "banded": [
        sample(lambda x: F.interpolate(x, size=5), (2, 1, 3), exempt=REAL),
        sample(lambda x: F.interpolate(x, size=(2, 5), mode="bilinear"), (1, 2, 3, 3), exempt=REAL),
        sample(lambda x: F.avg_pool2d(x, 2, 1, 1, count_include_pad=False), (1, 2, 3, 2), exempt=REAL),
    ],
}
