"""Sylvester's equation, and square roots."""

import cygrad as cg
from samples.sample import sample


def _positive(x):
    return x @ x.mH + cg.eye(x.shape[-1], dtype=x.dtype)


SAMPLES = {
    "linalg_solve_sylvester": [
        sample(lambda a, b, q: cg.linalg.solve_sylvester(_positive(a), _positive(b), q), (2, 2), (3, 3), (2, 3)),
        sample(lambda a, q: cg.linalg.solve_sylvester(_positive(a), _positive(a), q), (2, 2), (3, 2, 2))],
    "linalg_sqrtm": [
        sample(lambda x: cg.linalg.sqrtm(_positive(x)), (3, 3)), sample(lambda x: cg.linalg.sqrtm(_positive(x)), (2, 2, 2))],
}
