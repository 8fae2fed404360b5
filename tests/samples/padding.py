"""More elements at the ends of dims."""

import numpy as np

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional


def in_mode(mode, numpy):
    """Return samples of a mode, with NumPy's name of it."""
    return [
        sample(lambda x: F.pad(x, (1, 2), mode), (2, 3), numpy=lambda a: np.pad(a, ((0, 0), (1, 2)), numpy), kinds="if"),
        sample(lambda x: F.pad(x, (0, 1, 2, 1), mode), (2, 3, 2), numpy=lambda a: np.pad(a, ((0, 0), (2, 1), (0, 1)), numpy), kinds="if"),
        sample(lambda x: F.pad(x, (1, 0, 0, 1, 1, 1), mode), (1, 2, 2, 2),
               numpy=lambda a: np.pad(a, ((0, 0), (1, 1), (0, 1), (1, 0)), numpy), kinds="if"),
        sample(lambda x: F.pad(x, (-1, 1), mode), (2, 4)),
    ]


SAMPLES = {
    "constant_pad_nd": [
        sample(lambda x: cg.constant_pad_nd(x, (1, 2)), (3,), numpy=lambda a: np.pad(a, (1, 2))),
        sample(lambda x: cg.constant_pad_nd(x, (1, 0, 0, 2), 1), (2, 3), kinds="if",
               numpy=lambda a: np.pad(a, ((0, 2), (1, 0)), constant_values=1)),
        sample(lambda x: cg.constant_pad_nd(x, (-1, 1, 2, -1)), (3, 2), numpy=lambda a: np.pad(a[:-1, 1:], ((2, 0), (0, 1)))),
        sample(lambda x: cg.constant_pad_nd(x, ()), ()),
    ],
    "nn_functional_pad": [
        sample(lambda x: F.pad(x, (1, 1), value=2.0), (2, 3)),
        *in_mode("reflect", "reflect"), *in_mode("replicate", "edge"), *in_mode("circular", "wrap"),
    ],
}
