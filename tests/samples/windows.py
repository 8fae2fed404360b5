"""Views by strides, and windows that overlap."""

import cygrad as cg
from samples.sample import sample

SOURCE = cg.zeros(5, 2, dtype=cg.float64, requires_grad=True)

# Only the package calls these.
OF_GEOMETRY = dict.fromkeys(("complex numbers", "narrow floats", "degenerate operands"), "parameters are the geometry of a float64 tensor")

SAMPLES = {
    "as_strided": [
        sample(lambda x: x.as_strided((2, 2), (1, 2)), (2, 3)),
        sample(lambda x: x.as_strided((3, 2), (1, 1), 1), (5,)),
        sample(lambda x: x[1:].as_strided((2,), (2,), 1), (5,)),
        sample(lambda x: x.expand(3, 2).as_strided((2, 3), (1, 0)), (2,)),
    ],
    "scatter_view": [
        sample(lambda x: x._scatter_view(((4,), (1,), cg.float64, (3, 2), (1, 1), cg.float64, 0)), (3, 2), exempt=OF_GEOMETRY),
    ],
    "gather_view": [
        sample(lambda x: x._gather_view(((2, 3), (1, 2), cg.float64, (2,), (3,), cg.float64, 8)), (2, 3), exempt=OF_GEOMETRY),
    ],
    "put_view": [sample(lambda a, b: a.as_strided_scatter(b, (2, 2), (1, 3)), (2, 4), (2, 2))],
    "unfold": [
        sample(lambda x: x.unfold(1, 3, 2), (2, 6)),
        sample(lambda x: x.unfold(0, 2, 1), (4, 2)),
        sample(lambda x: x.unfold(0, 2, 3), (9,)),
        sample(lambda x: x.unfold(0, 5, 2), (9,)),
        sample(lambda x: x.unfold(0, 1, 1), ()),
    ],
    "sum_windows": [sample(lambda x: cg.autograd.grad(SOURCE.unfold(0, 3, 1), SOURCE, x, create_graph=True)[0], (3, 2, 3),
                           exempt={"complex numbers": "the source is real"})],
}
