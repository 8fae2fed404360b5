"""Sylvester's equation, equations of few diagonals, and square roots."""

import cygrad as cg
from samples.sample import sample


def _positive(x):
    return x @ x.mH + cg.eye(x.shape[-1], dtype=x.dtype)


SAMPLES = {
    "linalg_solve_sylvester": [
        sample(lambda a, b, q: cg.linalg.solve_sylvester(_positive(a), _positive(b), q), (2, 2), (3, 3), (2, 3)),
        sample(lambda a, q: cg.linalg.solve_sylvester(_positive(a), _positive(a), q), (2, 2), (3, 2, 2))],
    "linalg_solve_banded": [
        sample(lambda ab, b: cg.linalg.solve_banded((1, 1), ab.tanh() + cg.tensor([[0.0], [4.0], [0.0]]).to(ab.dtype), b), (3, 4), (4,)),
        sample(lambda ab, b: cg.linalg.solve_banded((0, 2), ab.tanh() + cg.tensor([[0.0], [0.0], [4.0]]).to(ab.dtype), b), (3, 2), (2, 2))],
    "linalg_sqrtm": [
        sample(lambda x: cg.linalg.sqrtm(_positive(x)), (3, 3)), sample(lambda x: cg.linalg.sqrtm(_positive(x)), (2, 2, 2))],
}
