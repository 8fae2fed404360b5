"""Combinations of the elements of vectors."""

import itertools

import numpy as np

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "combinations": [
        sample(lambda x: cg.combinations(x), (4,), numpy=lambda a: np.array(list(itertools.combinations(a, 2)))),
        sample(lambda x: cg.combinations(x, 3, with_replacement=True), (2,),
               numpy=lambda a: np.array(list(itertools.combinations_with_replacement(a, 3)))),
    ],
    "cartesian_prod": [
        sample(lambda x, y: cg.cartesian_prod(x, y), (2,), (3,), numpy=lambda a, b: np.array(list(itertools.product(a, b)))),
        sample(lambda x: cg.cartesian_prod(x), (3,), numpy=lambda a: a),
    ],
}
