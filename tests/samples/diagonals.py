"""Diagonals, triangles, and parts written into copies."""

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "diagonal": [
        sample(lambda x: x.diagonal(), (2, 3)),
        sample(lambda x: x.diagonal(-1, -1, 0), (3, 2, 3)),
        sample(lambda x: x.diagonal(7), (2, 2)),
    ],
    "linalg_diagonal": [sample(lambda x: cg.linalg.diagonal(x, offset=1), (2, 2, 3), numpy=lambda a: a.diagonal(1, 1, 2))],
    "fill_diagonal_": [
        sample(lambda x: (x * 1).fill_diagonal_(2), (2, 3), numpy=lambda a: np.where(np.eye(2, 3) > 0, 2, a * 1).astype((a * 1).dtype)),
        sample(lambda x: (x * 1).fill_diagonal_(2, wrap=True), (5, 2)), sample(lambda x: (x * 1).fill_diagonal_(2), (2, 2, 2))],
    "diag_embed": [sample(lambda x: x.diag_embed(-1, 0, 2), (2, 3)), sample(lambda x: x.diag(1), (3,))],
    "diagonal_scatter": [sample(lambda x, s: x.diagonal_scatter(s, 1, 0, 2), (2, 3, 4), (3, 2))],
    "select_scatter": [sample(lambda x, s: x.select_scatter(s, 1, -2), (2, 3), (2,))],
    "slice_scatter": [sample(lambda x, s: x.slice_scatter(s, 1, 0, 5, 2), (2, 4), (2, 2))],
    "tril": [sample(lambda x: x.tril(), (3, 3)), sample(lambda x: x.tril(-1), (2, 3, 2)), sample(lambda x: (x * 1).tril_(1), (2, 3))],
    "triu": [sample(lambda x: x.triu(1), (3, 3)), sample(lambda x: (x * 1).triu_(), (2, 3))],
    "diagflat": [sample(lambda x: x.diagflat(1), (2, 2), numpy=lambda a: np.diagflat(a, 1))],
}
