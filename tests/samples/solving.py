"""Systems of linear equations."""

import itertools

import cygrad as cg
from samples.sample import sample


def solved(upper, left, unit):
    """Return a call that solves by triangles well away from singular ones."""
    return lambda a, b: cg.linalg.solve_triangular(a + 3 * cg.eye(a.shape[-1]), b, upper=upper, left=left, unitriangular=unit)


SAMPLES = {
    "linalg_solve_triangular": [
        *(sample(solved(*flags), (2, 2), (2, 2)) for flags in itertools.product((False, True), repeat=3)),
        sample(solved(True, True, False), (2, 1, 3, 3), (2, 3, 1)),
    ],
}
