"""Elements chosen by a mask."""

import cygrad as cg
from samples.sample import sample

SAMPLES = {
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
}
