"""Functions of matrices, chains of products, Vandermonde matrices."""

import numpy as np

import cygrad as cg
from samples.sample import refused_otherwise, sample

SAMPLES = {
    "linalg_matrix_exp": [
        sample(lambda x: cg.linalg.matrix_exp(x), (3, 3)),
        sample(lambda x: cg.matrix_exp(x * 9), (2, 2, 2)),      # scaled and squared
        sample(lambda x: x.matrix_exp(), (2, 0, 0)),
    ],
    "linalg_matrix_power": [
        sample(lambda x: cg.linalg.matrix_power(x, 5), (2, 2, 2), numpy=lambda x: np.linalg.matrix_power(x, 5), kinds="f"),
        sample(lambda x: x.matrix_power(1), (2, 2)),
        sample(lambda x: cg.matrix_power(x + 3 * cg.eye(2, dtype=x.dtype), -3), (2, 2)),
    ],
    "linalg_multi_dot": [
        sample(lambda a, b, c: cg.linalg.multi_dot([a, b, c]), (2, 3), (3, 1), (1, 2), numpy=lambda *all: np.linalg.multi_dot(all),
               kinds="f"),
        sample(lambda a, b, c, d: cg.linalg.multi_dot((a, b, c, d)), (3,), (3, 2), (2, 4), (4,)),
    ],
    "chain_matmul": [
        sample(lambda a, b, c: cg.chain_matmul(a, b, c), (2, 3), (3, 1), (1, 2)),
        sample(lambda a: cg.chain_matmul(a), (2, 2)),
    ],
    "linalg_vander": refused_otherwise([
        sample(lambda x: cg.linalg.vander(x), (3,), numpy=lambda x: np.vander(x, increasing=True), kinds="if"),
        sample(lambda x: cg.linalg.vander(x, N=4), (2, 2)),
    ], "it computes in 16 bits"),
    "vander": [sample(lambda x: cg.vander(x), (3,), numpy=np.vander), sample(lambda x: cg.vander(x, 4, True), (2,))],
}
