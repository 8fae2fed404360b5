"""Means of windows."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch"}


def means(name, *shapes, **options):
    return [sample(lambda x: getattr(F, name)(x, **options), shape, exempt=REAL) for shape in shapes]


SAMPLES = {
    "avg_pool1d": [*means("avg_pool1d", (2, 4), (1, 2, 5), kernel_size=2), *means("avg_pool1d", (1, 4), kernel_size=3, stride=2, padding=1,
                                                                                 ceil_mode=True, count_include_pad=False)],
    "nn_functional_avg_pool2d": [
        sample(lambda x: F.avg_pool2d(x, 2), (1, 4, 4), exempt=REAL, kinds="f", numpy=lambda a: a.reshape(1, 2, 2, 2, 2).mean((2, 4))),
        *means("avg_pool2d", (1, 2, 3, 3), kernel_size=(2, 3), stride=1, padding=1, divisor_override=2)],
    "nn_functional_avg_pool3d": means("avg_pool3d", (1, 1, 3, 2, 2), kernel_size=2, stride=1, padding=1, ceil_mode=True),
    "adaptive_avg_pool1d": [sample(lambda x: F.adaptive_avg_pool1d(x, 1), (2, 3), exempt=REAL, kinds="f",
                                   numpy=lambda a: a.mean(-1, keepdims=True)), *means("adaptive_avg_pool1d", (1, 2, 5), output_size=3)],
    "nn_functional_adaptive_avg_pool2d": means("adaptive_avg_pool2d", (1, 3, 5), output_size=(2, None)),
    "nn_functional_adaptive_avg_pool3d": means("adaptive_avg_pool3d", (1, 3, 2, 2), output_size=(2, 1, 2)),
}
