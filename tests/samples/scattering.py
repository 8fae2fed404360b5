"""Writes at the places of an index."""

import cygrad as cg
from samples.sample import sample, write

INDEX = cg.tensor([[2, 0], [0, 0], [2, 0]])     # places that are written once, several times and never
OF_COMPLEX_NUMBERS = {"refusals": "it computes complex numbers"}

SAMPLES = {
    "scatter": [
        sample(lambda x, s: x.scatter(0, cg.tensor([[2, 0], [1, 1]]), s), (3, 2), (2, 2)),
        sample(lambda x, s: x.scatter(1, cg.tensor([[2, 0]]), s), (3, 3), (4, 2)),
        sample(lambda x: x.scatter(1, cg.tensor([[0], [2]]), 7.0), (2, 3)),
        sample(lambda x, s: (x * x).scatter_(1, cg.tensor([[2, 0]]), s), (3, 3), (1, 2)),
    ],
    "scatter_add": [
        sample(lambda x, s: x.scatter_add(0, cg.tensor([[2, 0], [2, 1]]), s), (3, 2), (2, 2)),
        sample(lambda x, s: x.scatter_add(1, cg.tensor([[0, 0, 1]]), s), (2, 2), (2, 3)),
        sample(lambda x, s: x.scatter(0, cg.tensor([0, 0]), s, reduce="add"), (2,), (2,)),
    ],
    **{
        f"scatter_{rule}": [
            sample(lambda x, s, r=reduce, k=include: x.scatter_reduce(0, INDEX, s, r, include_self=k), (3, 2), (4, 2), exempt=exempt)
            for reduce in reduces
            for include in (True, False)
        ]
        + [
            sample(lambda x, s, r=reduces[0], k=include: (x * 1).scatter_reduce_(0, INDEX, s, r, include_self=k), (3, 2), (4, 2),
                   exempt=exempt)
            for include in (True, False)
        ]
        + [
            sample(lambda x, s, r=reduces[-1]: x.index_reduce(1, cg.tensor([2, 0, 2]), s, r), (2, 3), (2, 3), exempt=exempt),
            sample(lambda x, s, r=reduces[0]: (x * 1).index_reduce_(0, cg.tensor([1, 1]), s, r, include_self=False), (2, 3), (2, 3),
                   exempt=exempt),
        ] * (rule != "sum")
        for rule, reduces, exempt in (("sum", ["sum"], {}), ("mean", ["mean"], OF_COMPLEX_NUMBERS), ("prod", ["prod"], OF_COMPLEX_NUMBERS),
                                      ("extremum", ["amax", "amin"], {}))
    },
    "index_add": [
        sample(lambda x, s: x.index_add(1, cg.tensor([2, 0, 2]), s, alpha=2.5), (2, 3), (2, 3)),
        sample(lambda x, s: (x * 1).index_add_(0, cg.tensor([1, 1]), s), (2, 3), (2, 3)),
    ],
    "index_copy": [
        sample(lambda x, s: x.index_copy(1, cg.tensor([2, 0]), s), (2, 3), (2, 2)),
        sample(lambda x, s: (x * 1).index_copy_(0, cg.tensor([2]), s), (3,), ()),
    ],
    "index_fill": [
        sample(lambda x, v: x.index_fill(1, cg.tensor([2, -3, 2]), v), (2, 3), ()),
        sample(lambda x: (x * 1).index_fill_(0, cg.tensor([1]), 5), (2, 3)),
    ],
    "put": [
        sample(lambda x, s: x.put(cg.tensor([[5, 0]]), s), (2, 3), (2,)),
        sample(lambda x, s: (x * 1).put_(cg.tensor([5, -1]), s, accumulate=True), (2, 3), (2, 1)),
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
}
