"""Sums, extrema and moments over dims."""

import numpy as np

from cygrad.ops import REDUCTIONS
from samples.sample import sample


def of_kinds(row):
    """Return the tests that the samples of a row are not for."""
    return {} if "c" in row.kinds else {"complex numbers": "the row takes real numbers"}


SAMPLES = {
    "max": [sample(lambda x: x.max(1), (2, 4)), sample(lambda x: x.max(0, keepdim=True), (3,)), sample(lambda x: x.max(0), ())],
    "min": [sample(lambda x: x.min(-2), (3, 2, 2)), sample(lambda x: x.min(0), (3,))],
    **{
        name: [
            sample(lambda x, name=name: getattr(x, name)(), (2, 3), exempt=of_kinds(row)),
            sample(lambda x, name=name: getattr(x, name)(1, keepdim=True), (2, 3), exempt=of_kinds(row)),
            sample(lambda x, name=name: getattr(x, name)((0, -1)), (2, 3, 2), exempt=of_kinds(row)),
            sample(lambda x, name=name: getattr(x, name)(0), (), exempt=of_kinds(row)),
        ]
        for name, row in REDUCTIONS.items() if row.gradient
    },
    "aminmax": [sample(lambda x: x.aminmax(dim=1), (2, 3), numpy=lambda a: (a.min(1), a.max(1)))],
}

# Without a gradient.
PLAIN = {
    "all": [sample(lambda x: x.all(1), (2, 3), numpy=lambda a: a.all(1))],
    "any": [sample(lambda x: x.any(), (2, 3), numpy=np.any)],
    "argmax": [sample(lambda x: x.argmax(1), (2, 3), numpy=lambda a: a.argmax(1), kinds="if")],
    "argmin": [sample(lambda x: x.argmin(), (2, 3), numpy=np.argmin, kinds="if")],
    "count_nonzero": [sample(lambda x: x.count_nonzero(), (2, 3), numpy=np.count_nonzero)],
}
