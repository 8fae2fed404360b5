"""Copies in another order."""

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "repeat": [
        sample(lambda x: x.repeat(2, 3, 2), (1, 2)),
        sample(lambda x: x.tile(2), (2, 3)),
        sample(lambda x: x.repeat(0, 2), (2,)),
        sample(lambda x: x.repeat(2), ()),
    ],
    "flip": [sample(lambda x: x.flip(0, -1), (2, 1, 3)), sample(lambda x: x.flip([]), (2,))],
    "roll": [sample(lambda x: x.roll((1, -1), (0, 1)), (2, 3)), sample(lambda x: x.roll(2), (2, 2))],
    "rot90": [sample(lambda x, k=k: x.rot90(k), (2, 3), numpy=lambda a, k=k: np.rot90(a, k)) for k in (1, 2, -1, 4)]
             + [sample(lambda x: cg.rot90(x, 3, (-1, 0)), (2, 3, 2), numpy=lambda a: np.rot90(a, 3, (-1, 0)))],
    "fliplr": [sample(lambda x: x.fliplr(), (2, 3), numpy=np.fliplr)],
    "flipud": [sample(lambda x: x.flipud(), (2, 3), numpy=np.flipud)],
}
