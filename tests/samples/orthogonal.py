"""QR decompositions and reflections; of Q the parts that do not depend on signs."""

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "linalg_qr": [
        sample(lambda x: (lambda Q, R: cg.cat([Q @ Q.mH, Q * R.diagonal(0, -2, -1)], -1))(*cg.linalg.qr(x)), (3, 2)),
        sample(lambda x: (lambda Q, R: Q @ (R * R.diagonal(0, -2, -1).unsqueeze(-1)))(*cg.linalg.qr(x)), (2, 2, 3)),
        sample(lambda x: (lambda Q, R: R.mT * R.diagonal(0, -2, -1))(*cg.linalg.qr(x, "complete")), (3, 3)),
        sample(lambda x: cg.matmul(*cg.linalg.qr(x)), (3, 3), numpy=lambda a: a, kinds="f"),
        sample(lambda x: cg.linalg.qr(x).R, (0, 2)),
    ],
    "qr": [sample(lambda x: x.qr().R.abs(), (2, 3))],
    "linalg_householder_product": [
        sample(lambda a, tau: cg.linalg.householder_product(a, tau), (3, 2), (2,)),
        sample(lambda a, tau: cg.linalg.householder_product(a, tau), (2, 3, 3), (2, 1)),
    ],
    "orgqr": [sample(lambda a, tau: a.orgqr(tau), (3, 2), (2,))],
    "ormqr": [
        sample(lambda a, tau, c: a.ormqr(tau, c), (3, 2), (2,), (3, 2)),
        sample(lambda a, tau, c: cg.ormqr(a, tau, c, transpose=True), (2, 3, 2), (2, 2), (2, 3, 1)),
        sample(lambda a, tau, c: cg.ormqr(a, tau, c, left=False), (3, 2), (1,), (2, 3)),
    ],
}
PLAIN = {"geqrf": [sample(lambda x: cg.geqrf(x), (3, 2))]}
