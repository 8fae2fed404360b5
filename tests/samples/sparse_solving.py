"""Solutions of equations with sparse matrices."""

import cygrad as cg
from cygrad.operators.sparse_solving import Factors
from samples.sample import sample
from samples.sparse_products import pattern_of

PATTERN = pattern_of([[4.0, 1, 0], [0, 5, 0], [2, 0, 6]])
DIAGONAL = cg.tensor([4.0, 0, 5, 0, 6], dtype=cg.float64)

EXEMPT = {"narrow floats": "SuperLU has none", "refusals": "as SciPy says it",
          "degenerate operands": "the pattern has places for these sizes only"}


def solved(values, b):
    values = values + DIAGONAL.to(values.dtype)
    return values._sparse_solve(b, Factors(PATTERN))


SAMPLES = {
    "sparse_solve": [
        sample(solved, (5,), (3,), exempt=EXEMPT),
        sample(solved, (5,), (3, 2), exempt=EXEMPT),
    ],
}
