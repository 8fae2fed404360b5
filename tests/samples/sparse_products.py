"""Products with sparse matrices. The operator needs of a matrix that it multiplies arrays, so a dense one stands for it, without SciPy."""

import numpy as np

from samples.sample import sample

MATRIX = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])

SAMPLES = {
    "product_along": [
        sample(lambda x: x._times_sparse(MATRIX, -1), (3,), numpy=lambda x: MATRIX @ x, kinds="i"),
        sample(lambda x: x._times_sparse(MATRIX, 0), (3, 2), numpy=lambda x: MATRIX @ x, kinds="i"),
        sample(lambda x: x._times_sparse(MATRIX, -2), (2, 3, 2)),
        sample(lambda x: x._times_sparse(MATRIX[0], 1), (2, 3)),
    ],
}
