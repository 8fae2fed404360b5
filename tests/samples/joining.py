"""Joins."""

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "cat": [
        sample(lambda a, b: cg.cat([a, b, a], 1), (2, 1), (2, 3)),
        sample(lambda a, b: cg.cat([a, b], -1), (2,), (0,)),
        sample(lambda a, b: cg.block_diag(a, b, a), (2, 1), (3,)),
        sample(lambda a, b: cg.block_diag(a, b), (), (0, 2)),
    ],
    "stack": [sample(lambda a, b: cg.stack([a, b, a], 1), (2, 3), (2, 3)), sample(lambda a, b: cg.stack([a, b], -1), (), ())],
    "hstack": [sample(lambda a, b: cg.hstack([a, b]), (2, 1), (2, 3), numpy=lambda a, b: np.hstack([a, b]))],
    "vstack": [sample(lambda a, b: cg.vstack([a, b]), (3,), (2, 3), numpy=lambda a, b: np.vstack([a, b]))],
    "row_stack": [sample(lambda a, b: cg.row_stack([a, b]), (3,), (3,), numpy=lambda a, b: np.vstack([a, b]))],
    "dstack": [sample(lambda a, b: cg.dstack([a, b]), (2, 1), (2, 1), numpy=lambda a, b: np.dstack([a, b]))],
    "column_stack": [sample(lambda a, b: cg.column_stack([a, b]), (2,), (2, 2), numpy=lambda a, b: np.column_stack([a, b]))],
    "meshgrid": [sample(lambda x, y: cg.meshgrid(x, y, indexing="ij"), (2,), (3,), numpy=lambda a, b: np.meshgrid(a, b, indexing="ij"))],
}
