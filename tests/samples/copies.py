"""Copies, conversions, fills, and other memory for a tensor."""

import numpy as np

import cygrad as cg
from cygrad.func import vmap
from samples.sample import dense, sample, write

EXAMPLES = cg.tensor(np.arange(12.0).reshape(4, 3) / 7)
REAL_EXAMPLES = {"complex numbers": "the examples are real"}

# A conversion to float32 is linear but coarse: a step that is a power of two is exact in both.
COARSE = {"eps": 0.125, "atol": 1e-4}

SAMPLES = {
    "fill": [sample(lambda x: (x * 1).fill_(2) + x, (2, 3)), sample(lambda x, v: (x * 1).fill_(2) + cg.fill(x, v), (2, 3), ())],
    "alias_copy": [sample(lambda x: cg.alias_copy(x.T), (2, 3), numpy=lambda a: a.T)],
    "zero": [sample(lambda x: (x * 1).zero_(), (2,))],
    "clone": [sample(lambda x: x.clone(), (2, 3)), sample(lambda x: x.T.contiguous(), (2, 3))],
    "convert": [
        sample(lambda x: x.to(cg.float32).to(cg.float64), (2, 3), tolerances=COARSE),
        sample(lambda x: x.to(cg.float32).type_as(x), (2, 3), tolerances=COARSE),
    ],
    "copy": [sample(write(...), (2, 3), ()), sample(write(...), (2, 3), (3,))],
    "alias": [sample(lambda x: x.as_subclass(type("Field", (cg.Tensor,), {})), (2, 3),
                     exempt={"transforms": "a user makes a subclass outside of them"})],
    "enter": [
        sample(lambda x: vmap(lambda row: row * x)(EXAMPLES), (3,), exempt=REAL_EXAMPLES),
        sample(lambda x: vmap(lambda row: x @ row)(EXAMPLES), (2, 3), exempt=REAL_EXAMPLES),
    ],
}

# Without a gradient.
PLAIN = {
    "resize_": [sample(lambda x: dense(x).resize_((3, 2)), (2, 3), numpy=lambda x: x.reshape(3, 2))],
    "resize_as_": [sample(lambda x: dense(x).resize_as_(x.T), (2, 3), numpy=lambda x: x.reshape(3, 2))],
    "detach_": [sample(lambda x: dense(x).detach_(), (2, 3), numpy=np.array)],
    "set_": [sample(lambda x: cg.empty(0, dtype=x.dtype).set_(x.detach()), (2, 3), numpy=np.array)],
}
