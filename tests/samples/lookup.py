"""Reads at the places of an index, and searches for places."""

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "spread_along": [
        sample(lambda x: x._spread_along(1, cg.tensor([[2, 0], [1, 1]]), (2, 3)), (2, 2)),
        sample(lambda x: x._spread_along(0, cg.tensor([0, 0]), ()), (2,)),
        sample(lambda x: x._spread_along(0, cg.tensor(1), (3,)), ()),
    ],
    "gather_with_sparse_gradient": [sample(lambda x: (x * 1).gather(0, cg.tensor([[2, 0], [2, 1]]), sparse_grad=True), (3, 2))],
    "gather": [
        sample(lambda x: x.gather(0, cg.tensor([[2, 0], [2, 1]])), (3, 2)),
        sample(lambda x: x.gather(1, cg.tensor([[1, 1, 0]])), (3, 2)),
        sample(lambda x: x.gather(0, cg.tensor([0, 0])), ()),
    ],
    "index_select": [
        sample(lambda x: x.index_select(1, cg.tensor([2, 0, 2])), (2, 3)),
        sample(lambda x: x.index_select(0, cg.tensor([0])), ()),
        sample(lambda x: x.repeat_interleave(2, 1), (2, 2)),
        sample(lambda x: x.unique(dim=1), (2, 3), exempt={"vmap": "each example may have another number of distinct columns"}),
    ],
    "take": [sample(lambda x: x.take(cg.tensor([[5, -1], [0, 5]])), (2, 3)), sample(lambda x: x.take(cg.tensor(0)), ())],
    "take_along_dim": [
        sample(lambda x: x.take_along_dim(cg.tensor([[2, 0, 2], [1, 1, 0]]), 1), (2, 3),
               numpy=lambda a: np.take_along_axis(a, np.array([[2, 0, 2], [1, 1, 0]]), 1)),
    ],
}

# Without a gradient.
PLAIN = {
    "nonzero": [sample(lambda x: x.nonzero(), (2, 3), numpy=np.argwhere)],
    "nonzero_static": [sample(lambda x: x.nonzero_static(size=4), (2, 2), numpy=np.argwhere, kinds="if",
                              exempt={"vmap": "as nonzero", "transforms": "as nonzero"})],
    "unravel_index": [sample(lambda x: cg.unravel_index(x.argsort(stable=True), (2, 3)), (5,),
                             numpy=lambda a: np.unravel_index(a.argsort(kind="stable"), (2, 3)))],
    "argwhere": [sample(lambda x: x.argwhere(), (2, 3), numpy=np.argwhere)],
}
