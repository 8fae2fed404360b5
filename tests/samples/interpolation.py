"""Tensors of other sizes."""

import numpy as np

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch"}


def interpolated(mode, *sizes, **options):
    return sample(lambda x: F.interpolate(x, mode=mode, **options), (1, 2, *sizes), exempt=REAL)


SAMPLES = {
    "nn_functional_interpolate": [
        interpolated("nearest", 3, size=5), interpolated("nearest-exact", 2, 3, scale_factor=(1.5, 0.7)),
        sample(lambda x: F.interpolate(x, scale_factor=2), (1, 2, 2, 1, 2), exempt=REAL, kinds="f",
               numpy=lambda a: a.repeat(2, 2).repeat(2, 3).repeat(2, 4)),
        interpolated("linear", 4, size=3), interpolated("bilinear", 2, 3, size=(3, 2), align_corners=True),
        interpolated("trilinear", 2, 1, 2, scale_factor=1.5, recompute_scale_factor=True), interpolated("bicubic", 3, 2, size=(2, 4)),
        interpolated("bilinear", 4, 3, size=2, antialias=True), interpolated("lanczos", 4, 3, size=2, antialias=True),
        sample(lambda x: F.interpolate(x, size=2, mode="area"), (1, 1, 4), exempt=REAL, kinds="f",
               numpy=lambda a: a.reshape(1, 1, 2, 2).mean(-1)),
    ],
    "nn_functional_upsample": [sample(lambda x: F.upsample(x, scale_factor=2), (1, 1, 3), exempt=REAL, kinds="f",
                                      numpy=lambda a: a.repeat(2, 2))],
    "nn_functional_upsample_nearest": [sample(lambda x: F.upsample_nearest(x, 3), (1, 1, 1, 1), exempt=REAL, kinds="f",
                                              numpy=lambda a: np.broadcast_to(a, (1, 1, 3, 3)))],
    "nn_functional_upsample_bilinear": [sample(lambda x: F.upsample_bilinear(x, (2, 3)), (1, 1, 2, 2), exempt=REAL, kinds="f",
                                               numpy=lambda a: np.stack([a[..., 0], a.mean(-1), a[..., 1]], -1))],
}
