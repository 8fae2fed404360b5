"""Reading and writing by indices, slices and masks."""

import numpy as np

import cygrad as cg
from samples.sample import sample, write


def transposed(gradient):
    """The transpose of indexing, as the second derivative sees it."""
    source = cg.zeros(3, 2, dtype=cg.float64, requires_grad=True)
    return cg.autograd.grad(source[cg.tensor([2, 0, 2, 1])], source, gradient, create_graph=True)[0]


SAMPLES = {
    "slice": [
        sample(lambda x: x[:, 1::2], (2, 4)),
        sample(lambda x: x[..., None], (2,)),
        sample(lambda x: x.narrow(1, cg.tensor(1), 2), (2, 4)),
    ],
    "select": [sample(lambda x: x[1], (2, 3)), sample(lambda x: x.select(1, -1), (2, 3))],
    "index": [
        sample(lambda x: x[cg.tensor([2, 0, 2])], (3, 2)),
        sample(lambda x: x[:, [1, 0]], (2, 2)),
        sample(lambda x: x[x > 0], (2, 3)),
    ],
    "scatter_key": [sample(transposed, (4, 2))],
    "index_select": [
        sample(lambda x: x.index_select(1, cg.tensor([2, 0, 2])), (2, 3)),
        sample(lambda x: x.index_select(0, cg.tensor([0])), ()),
        sample(lambda x: x.repeat_interleave(2, 1), (2, 2)),
        sample(lambda x: x.unique(dim=1), (2, 3)),
    ],
    "index_put": [
        sample(write([2, 0]), (3, 2), (2, 2)),
        sample(write(([0, 1], slice(None))), (3, 2), (2,)),
        sample(lambda x, v: x.index_put((cg.tensor([2, 0]), cg.tensor([0, 1])), v), (3, 2), (2,)),
        sample(lambda x, v: x.index_put((cg.tensor([1, 1]),), v, accumulate=True), (3, 2), (1, 2)),
        sample(lambda x, v: (x * 1).index_put_((cg.tensor([True, False]),), v), (2, 3), ()),
        sample(write([2, 0]), (3, 2), (2, 2)),
        sample(write(([0, 1], slice(None))), (3, 2), (2,)),
    ],
    "masked_fill": [
        sample(lambda x, v: x.masked_fill(cg.tensor([True, False, True]), v), (2, 3), ()),
        sample(lambda x, v: x.masked_fill(cg.tensor([[True], [False]]), v), (3,), ()),
        sample(lambda x: (x * 1).masked_fill_(cg.tensor([True, False, True]), 2), (2, 3)),
    ],
    "masked_select": [sample(lambda x: x.masked_select(cg.tensor([True, False, True])), (2, 3))],
    "masked_scatter": [
        sample(lambda x, s: x.masked_scatter(cg.tensor([True, False, True]), s), (2, 3), (3, 2)),
        sample(lambda x, s: (x * 1).masked_scatter_(cg.tensor([True, False, True]), s), (2, 3), (4,)),
    ],
    "take": [sample(lambda x: x.take(cg.tensor([[5, -1], [0, 5]])), (2, 3)), sample(lambda x: x.take(cg.tensor(0)), ())],
    "put": [
        sample(lambda x, s: x.put(cg.tensor([[5, 0]]), s), (2, 3), (2,)),
        sample(lambda x, s: (x * 1).put_(cg.tensor([5, -1]), s, accumulate=True), (2, 3), (2, 1)),
    ],
    "take_along_dim": [
        sample(lambda x: x.take_along_dim(cg.tensor([[2, 0, 2], [1, 1, 0]]), 1), (2, 3),
               numpy=lambda a: np.take_along_axis(a, np.array([[2, 0, 2], [1, 1, 0]]), 1)),
    ],
    "prelu": [sample(lambda x, w: cg.prelu(x, w), (2, 3), (3,), numpy=lambda a, w: np.where(a > 0, a, w * a), kinds="f")],
}

# Without a gradient.
PLAIN = {
    "nonzero": [sample(lambda x: x.nonzero(), (2, 3), numpy=np.argwhere)],
    "argwhere": [sample(lambda x: x.argwhere(), (2, 3), numpy=np.argwhere)],
}
