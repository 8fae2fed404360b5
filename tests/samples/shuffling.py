"""Channels exchanged with places."""

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "pixel_shuffle": [
        sample(lambda x: cg.pixel_shuffle(x, 2), (4, 2, 1), numpy=lambda a: a.reshape(2, 2, 2).transpose(2, 0, 1).reshape(1, 4, 2)),
        sample(lambda x: cg.pixel_shuffle(x, 2), (2, 8, 1, 2)),
    ],
    "pixel_unshuffle": [
        sample(lambda x: cg.pixel_unshuffle(x, 2), (1, 2, 4),
               numpy=lambda a: np.stack([a[0, i::2, j::2] for i in range(2) for j in range(2)])),
        sample(lambda x: cg.pixel_unshuffle(x, 3), (2, 1, 3, 3)),
    ],
    "channel_shuffle": [sample(lambda x: cg.channel_shuffle(x, 2), (2, 4, 3), numpy=lambda a: a[:, [0, 2, 1, 3]])],
}
