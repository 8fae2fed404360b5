"""Running reductions, and softmax."""

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "cummax": [sample(lambda x: x.cummax(1), (2, 4)), sample(lambda x: x.cummax(0), ())],
    "cummin": [sample(lambda x: x.cummin(0), (4, 2))],
    "cumprod": [
        sample(lambda x: x.cumprod(1), (2, 3)),
        sample(lambda x: (x * cg.tensor([1.0, 0.0, 1.0, 1.0])).cumprod(-1), (2, 4)),
        sample(lambda x: (x * 1).cumprod_(0), (3,)),
        sample(lambda x: x.cumprod(0), ()),
    ],
    "logcumsumexp": [sample(lambda x: x.logcumsumexp(1), (2, 4)), sample(lambda x: x.logcumsumexp(0), ())],
    "cumsum": [sample(lambda x: x.cumsum(1), (2, 3)), sample(lambda x: x.cumsum(0), (3, 2))],
    "diff": [sample(lambda x: x.diff(), (2, 4), numpy=np.diff, kinds="f")],
}
