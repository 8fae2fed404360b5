"""Quantiles."""

import numpy as np

import cygrad as cg
from samples.sample import sample

REAL = {"complex numbers": "quantiles are of ordered numbers", "refusals": "it computes float16 and bfloat16"}


def quantiles(name, q, *shapes, **arguments):
    words = {"dim": "axis", "keepdim": "keepdims", "interpolation": "method"}
    theirs = {words[word]: value for word, value in arguments.items()}
    return [sample(lambda x: getattr(x, name)(cg.tensor(q, dtype=x.dtype) if isinstance(q, list) else q, **arguments), shape, kinds="f",
                   numpy=lambda a: getattr(np, name)(a, q, **theirs), exempt=REAL) for shape in shapes]


SAMPLES = {
    "quantile": [
        *quantiles("quantile", 0.3, (5,), (2, 3), ()), *quantiles("quantile", [0.0, 0.25, 1.0], (2, 4), dim=1),
        *quantiles("quantile", [0.6], (3, 2), dim=0, keepdim=True),
        *quantiles("quantile", 0.45, (2, 4), dim=-1, interpolation="lower"), *quantiles("quantile", 0.45, (4,), interpolation="higher"),
        *quantiles("quantile", 0.45, (4,), interpolation="midpoint"), *quantiles("quantile", 0.45, (4,), interpolation="nearest"),
        sample(lambda x, q: x.quantile(q.sigmoid(), 0), (4, 2), (2,), exempt=REAL),
    ],
    "nanquantile": quantiles("nanquantile", [0.25, 0.75], (2, 4), dim=1),
}
