"""Systems of linear equations."""

import itertools

import cygrad as cg
from samples.factorizations import definite
from samples.sample import refused_otherwise, sample


def solved(upper, left, unit):
    """Return a call that solves by triangles well away from singular ones."""
    return lambda a, b: cg.linalg.solve_triangular(a + 3 * cg.eye(a.shape[-1]), b, upper=upper, left=left, unitriangular=unit)


SAMPLES = {
    "linalg_solve_triangular": [
        *(sample(solved(*flags), (2, 2), (2, 2)) for flags in itertools.product((False, True), repeat=3)),
        sample(solved(True, True, False), (2, 1, 3, 3), (2, 3, 1)),
    ],
    "triangular_solve": [sample(lambda a, b: b.triangular_solve(a.triu() + 3 * cg.eye(2), transpose=True).solution, (2, 2), (2, 1))],
    "linalg_solve": [
        sample(lambda a, b: cg.linalg.solve(a, b), (2, 3, 3), (2, 3, 2)),
        sample(lambda a, b: cg.linalg.solve(a, b), (2, 1, 2, 2), (3, 2, 1)),
        sample(lambda a, b: cg.linalg.solve(a, b), (2, 2), (2,)),
        sample(lambda a, b: cg.linalg.solve(a, b), (3, 2, 2), (3, 2)),
        sample(lambda a, b: cg.linalg.solve(a, b, left=False), (2, 2), (1, 2)),
    ],
    "linalg_solve_ex": [sample(lambda a, b: cg.linalg.solve_ex(a, b).result, (2, 2), (2, 1))],
    "linalg_tensorsolve": [sample(lambda a, b: cg.linalg.tensorsolve(a.reshape(2, 2, 4), b), (4, 4), (2, 2))],
    "solved_by_factors": [sample(lambda a, b: cg.linalg.solve(a.mH, b), (2, 3, 3), (3, 2))],
    "inverted": [sample(lambda x: cg.linalg.inv(x), (1, 2, 2))],
    "linalg_inv": [sample(lambda x: cg.linalg.inv(x), (2, 3, 3)), sample(lambda x: cg.linalg.inv(x), (2, 2))],
    "linalg_inv_ex": [sample(lambda x: cg.linalg.inv_ex(x).inverse, (2, 2))],
    "linalg_tensorinv": [sample(lambda x: cg.linalg.tensorinv(x.reshape(2, 2, 4)), (4, 4))],
    "cholesky_solve": refused_otherwise([
        *(sample(lambda b, a, upper=upper: b.cholesky_solve(cg.linalg.cholesky(definite(a), upper=upper), upper), (2, 2), (2, 2))
          for upper in (False, True)),
        sample(lambda b, a: b.cholesky_solve(cg.linalg.cholesky(definite(a))), (3, 2, 1), (2, 1, 2, 2)),
    ]),
    "cholesky_inverse": refused_otherwise([
        sample(lambda a, upper=upper: cg.linalg.cholesky(definite(a), upper=upper).cholesky_inverse(upper), (2, 2, 2))
        for upper in (False, True)
    ]),
}
