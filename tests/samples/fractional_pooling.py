"""Largest elements of windows at random distances; the random numbers are given."""

import numpy as np

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch"}
NUMBERS = [[[0.3, 0.7, 0.9], [0.0, 0.5, 0.2]]]


def pooled(name, *shape, place=None, **options):
    """Return the sample of a pooling; `place` is the place of the values among its results."""
    dims = len(shape) - 2

    def call(x):
        result = getattr(F, name)(x, **options, _random_samples=x.detach().new_tensor(np.array(NUMBERS)[:, :, :dims]).abs())
        return result if place is None else result[place]

    return sample(call, shape, exempt=REAL)


SAMPLES = {
    "nn_functional_fractional_max_pool2d": [
        pooled("fractional_max_pool2d", 1, 2, 5, 7, kernel_size=(2, 3), output_size=(3, 2)),
        pooled("fractional_max_pool2d", 1, 2, 4, 4, kernel_size=2, output_ratio=0.5),
    ],
    "nn_functional_fractional_max_pool3d": [
        pooled("fractional_max_pool3d", 1, 2, 4, 3, 5, kernel_size=2, output_ratio=(0.5, 0.4, 0.6)),
    ],
    "nn_functional_fractional_max_pool2d_with_indices": [
        pooled("fractional_max_pool2d_with_indices", 1, 2, 5, 4, place=0, kernel_size=2, output_size=2),
    ],
    "nn_functional_fractional_max_pool3d_with_indices": [
        pooled("fractional_max_pool3d_with_indices", 1, 2, 4, 3, 4, place=0, kernel_size=2, output_size=(2, 1, 2)),
    ],
}
