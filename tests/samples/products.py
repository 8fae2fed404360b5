"""Products of matrices, and norms."""


import numpy as np

import cygrad as cg
from samples.sample import refused_otherwise, sample

SAMPLES = {
    "addmm": refused_otherwise([
        sample(lambda x, a, b: x.addmm(a, b), (2, 3), (2, 4), (4, 3)),
        sample(lambda x, a, b: x.addmm(a, b, beta=0.5, alpha=3), (3,), (2, 1), (1, 3)),
        sample(lambda x, a, b: (x * 1).addmm_(a, b), (2, 3), (2, 4), (4, 3)),
    ]),
    "baddbmm": [sample(lambda x, a, b: x.baddbmm(a, b, beta=2), (2, 1, 3), (2, 2, 2), (2, 2, 3))],
    "matmul": [
        sample(lambda a, b: a @ b, (2, 3), (3, 2)),
        sample(lambda a, b: a @ b, (2, 3), (3,)),
        sample(lambda a, b: a @ b, (3,), (2, 3, 2)),
        sample(lambda a, b: a @ b, (2, 1, 2, 3), (2, 3, 1)),
        sample(lambda a, b: a.bmm(b), (2, 2, 1), (2, 1, 2)),
        sample(lambda a, b: a @ b, (2, 0), (0, 3)),
    ],
    "mm": [sample(lambda a, b: a.mm(b), (2, 3), (3, 2), numpy=np.matmul, kinds="if")],
    "linalg_matmul": [sample(lambda a, b: cg.linalg.matmul(a, b), (2, 3), (3,), numpy=np.matmul, kinds="if")],
    "mv": [sample(lambda a, b: a.mv(b), (2, 3), (3,), numpy=np.matmul, kinds="if")],
    "inner": [sample(lambda a, b: a.inner(b), (2, 3), (3,), numpy=np.inner, kinds="if")],
    "kron": [sample(lambda a, b: a.kron(b), (2,), (2, 2), numpy=np.kron, kinds="if")],
    "tensordot": [sample(lambda a, b: cg.tensordot(a, b, 1), (2, 3), (3, 2), numpy=lambda a, b: np.tensordot(a, b, 1), kinds="f")],
    "einsum": [sample(lambda a, b: cg.einsum("ij,kj->ik", a, b), (2, 3), (2, 3), numpy=lambda a, b: a @ b.T, kinds="if")],
    "addmv": [sample(lambda x, a, b: x.addmv(a, b), (2,), (2, 3), (3,), numpy=lambda x, a, b: x + a @ b, kinds="if")],
    "addr": [sample(lambda x, a, b: x.addr(a, b), (2, 3), (2,), (3,), numpy=lambda x, a, b: x + np.outer(a, b), kinds="if")],
    "addbmm": [
        sample(lambda x, a, b: x.addbmm(a, b), (2, 2), (2, 2, 3), (2, 3, 2), numpy=lambda x, a, b: x + (a @ b).sum(0), kinds="f"),
    ],
    "trace": [sample(lambda x: x.trace(), (2, 3), numpy=np.trace, kinds="if")],
}
