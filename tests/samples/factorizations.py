"""Factorisations."""

import itertools

import cygrad as cg
from cygrad.operators.factorizations import rows_exchanged
from samples.sample import refused_otherwise, sample


def definite(x):
    """Return Hermitian matrices that are positive definite."""
    return x @ x.mH + 2 * cg.eye(x.shape[-1], dtype=x.dtype)


def constant(x):
    """Return a positive definite matrix of a tensor's dtype, without history: the factors of LDL have no derivative."""
    return definite(cg.ones(2, 2, dtype=x.dtype))


SAMPLES = {
    "linalg_cholesky": refused_otherwise([
        sample(lambda x: cg.linalg.cholesky(definite(x)), (2, 3, 3)),
        sample(lambda x: cg.linalg.cholesky(definite(x), upper=True), (2, 2)),
    ]),
    "linalg_cholesky_ex": refused_otherwise([
        sample(lambda x: cg.linalg.cholesky_ex(definite(x)).L, (2, 3, 3)),
        sample(lambda x: cg.linalg.cholesky_ex(definite(x), upper=True).L, (2, 2)),
    ]),
    "cholesky": refused_otherwise([sample(lambda x: definite(x).cholesky(True), (2, 2))]),
    "linalg_lu_factor": [sample(lambda x: cg.linalg.lu_factor(x).LU, shape) for shape in ((2, 3, 3), (2, 3), (3, 2))],
    "linalg_lu_factor_ex": [sample(lambda x: cg.linalg.lu_factor_ex(x).LU, (2, 2))],
    "lu": [sample(lambda x: x.lu()[0], (2, 2))],
    "lu_factored": [sample(lambda x: cg.linalg.lu_factor(x).LU, (2, 2))],
    "rows_exchanged": [
        sample(lambda x, y: rows_exchanged(x, cg.linalg.lu_factor(y.detach()).pivots, True) * y.sum(), (2, 3, 2), (2, 3, 3)),
    ],
    "linalg_lu": [sample(lambda x: cg.linalg.lu(x)[1:], shape) for shape in ((3, 3), (2, 3), (3, 2))],
    "lu_unpack": [sample(lambda x: cg.lu_unpack(*cg.linalg.lu_factor(x))[1:], (2, 3, 3))],
    "linalg_lu_solve": [
        *(sample(lambda a, b, left=left, adjoint=adjoint: cg.linalg.lu_solve(*cg.linalg.lu_factor(a), b, left=left, adjoint=adjoint),
                 (2, 2), (2, 2)) for left, adjoint in itertools.product((False, True), repeat=2)),
        sample(lambda a, b: cg.linalg.lu_solve(*cg.linalg.lu_factor(a), b), (2, 1, 2, 2), (3, 2, 1)),
    ],
    "lu_solve": [sample(lambda a, b: b.lu_solve(*cg.linalg.lu_factor(a)), (2, 2), (2, 1))],
    "linalg_ldl_factor": refused_otherwise([sample(lambda x: x * cg.linalg.ldl_factor(constant(x)).LD, (2, 2))]),
    "linalg_ldl_factor_ex": refused_otherwise([sample(lambda x: x * cg.linalg.ldl_factor_ex(constant(x)).LD, (2, 2))]),
    "linalg_ldl_solve": refused_otherwise([
        sample(lambda x, h=h: cg.linalg.ldl_solve(*cg.linalg.ldl_factor(constant(x), hermitian=h), x, hermitian=h), (2, 3))
        for h in (False, True)
    ]),
}
