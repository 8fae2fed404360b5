"""Reading by indices, slices and masks."""


import cygrad as cg
from samples.sample import sample


def transposed(gradient):
    """The transpose of indexing, which a second derivative computes."""
    source = cg.zeros(3, 2, dtype=cg.float64, requires_grad=True)
    return cg.autograd.grad(source[cg.tensor([2, 0, 2, 1])], source, gradient, create_graph=True)[0]


SAMPLES = {
    "slice": [
        sample(lambda x: x[:, 1::2], (2, 4)),
        sample(lambda x: x[..., None], (2,)),
        sample(lambda x: x.narrow(1, cg.tensor(1), 2), (2, 4)),
        sample(lambda x: cg.slice(x, 1, -3, 4, 2), (2, 4), numpy=lambda a: a[:, -3:4:2]), sample(lambda x: cg.slice(x), (3,)),
    ],
    "select": [sample(lambda x: x[1], (2, 3)), sample(lambda x: x.select(1, -1), (2, 3))],
    "index": [
        sample(lambda x: x[cg.tensor([2, 0, 2])], (3, 2)),
        sample(lambda x: x[:, [1, 0]], (2, 2)),
        sample(lambda x: x[x > 0], (2, 3), exempt={"vmap": "a mask gives each example another shape"}),
    ],
    "scatter_key": [sample(transposed, (4, 2), exempt={"complex numbers": "the source is real"})],
}
