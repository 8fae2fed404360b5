"""Products with sparse matrices. The operator needs of a matrix that it multiplies arrays, so a dense one stands for it, without SciPy."""

import numpy as np

import cygrad as cg
from cygrad._core.levels.sparse import sparse_part
from samples.sample import sample


def pattern_of(matrix):
    """Return a pattern that has its rows, and the rows of the patterns transposed from it: memory that it keeps as long as it lives."""
    pattern = each = sparse_part(cg.tensor(matrix).to_sparse_csr()).pattern
    for _ in range(4):
        each, _ = each.transposed, each.rows
    return pattern


PATTERN = pattern_of([[1.0, 0, 2], [0, 3, 0]])
PLACES = {"degenerate operands": "the pattern has places for these sizes only"}
MATRIX = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])

SAMPLES = {
    "sparse_times": [sample(lambda values, x: values._sparse_times(x, PATTERN), (3,), (3,), exempt=PLACES),
                     sample(lambda values, x: values._sparse_times(x, PATTERN.transposed), (3,), (2, 2), exempt=PLACES)],
    "product_along": [
        sample(lambda x: x._times_sparse(MATRIX, -1), (3,), numpy=lambda x: MATRIX @ x, kinds="i"),
        sample(lambda x: x._times_sparse(MATRIX, 0), (3, 2), numpy=lambda x: MATRIX @ x, kinds="i"),
        sample(lambda x: x._times_sparse(MATRIX, -2), (2, 3, 2)),
        sample(lambda x: x._times_sparse(MATRIX[0], 1), (2, 3)),
    ],
}
