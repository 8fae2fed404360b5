"""Systems of linear equations by matrices of few diagonals."""

import cygrad as cg
from samples.sample import sample


def solved(below, above, call=cg.linalg.solve_banded):
    """Return a call whose main diagonal is larger than the others together."""
    main = cg.tensor([[4.0 * (row == above)] for row in range(below + above + 1)])
    return lambda ab, b: cg.linalg.solve_banded((below, above), ab.tanh() + main.to(ab.dtype), b)


def definite(lower):
    """Return a call of three diagonals, the main one first with `lower`."""
    main = cg.tensor([[5.0], [0.0], [0.0]] if lower else [[0.0], [0.0], [5.0]])
    return lambda ab, b: cg.linalg.solveh_banded(ab.tanh() + main.to(ab.dtype), b, lower)


SAMPLES = {
    "linalg_solve_banded": [sample(solved(1, 1), (3, 4), (4,)), sample(solved(0, 2), (3, 2), (2, 2)),
                            sample(solved(2, 1), (2, 4, 3), (2, 3)), sample(solved(1, 0), (2, 2), (2, 2, 1))],
    "linalg_solveh_banded": [sample(definite(True), (3, 4), (4,)), sample(definite(False), (3, 2), (2, 2)),
                             sample(definite(False), (2, 3, 3), (2, 3))],
    "solved_by_bands": [sample(solved(1, 1), (2, 3, 3), (3, 2))],
}
