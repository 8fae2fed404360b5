"""Reductions of segments."""

import numpy as np

import cygrad as cg
from samples.sample import sample

LENGTHS = cg.tensor([2, 1, 2])
STARTS = np.array([0, 2, 3])

SAMPLES = {
    "segment_reduce": [
        *(sample(lambda x, name=name: cg.segment_reduce(x, name, lengths=LENGTHS), (5, 2),
                 numpy=lambda a, ufunc=ufunc: ufunc.reduceat(a, STARTS, 0), kinds="f")
          for name, ufunc in (("sum", np.add), ("max", np.maximum), ("min", np.minimum), ("prod", np.multiply))),
        sample(lambda x: cg.segment_reduce(x, "mean", lengths=LENGTHS, initial=3), (5,)),
        sample(lambda x: cg.segment_reduce(x, "sum", offsets=cg.tensor([[0, 1, 3], [0, 2, 2]]), axis=1), (2, 3)),
    ],
}
