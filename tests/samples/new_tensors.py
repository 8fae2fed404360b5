"""Tensors made like others."""

import numpy as np

import cygrad as cg
from samples.sample import sample

PLAIN = {
    "zeros_like": [sample(lambda x: cg.zeros_like(x), (2, 3), numpy=np.zeros_like)],
    "ones_like": [sample(lambda x: cg.ones_like(x), (2, 3), numpy=np.ones_like)],
    "full_like": [sample(lambda x: cg.full_like(x, 2), (2, 3), numpy=lambda x: np.full_like(x, 2))],
    "empty_like": [sample(lambda x: cg.empty_like(x).fill_(2), (2, 3), numpy=lambda x: np.full_like(x, 2))],
    "new_zeros": [sample(lambda x: x.new_zeros((3, 2)), (2,), numpy=lambda x: np.zeros((3, 2), x.dtype))],
    "new_ones": [sample(lambda x: x.new_ones((3, 2)), (2,), numpy=lambda x: np.ones((3, 2), x.dtype))],
    "new_full": [sample(lambda x: x.new_full((3, 2), 2), (2,), numpy=lambda x: np.full((3, 2), 2, x.dtype))],
    "new_empty": [sample(lambda x: x.new_empty((3, 2)).fill_(2), (2,), numpy=lambda x: np.full((3, 2), 2, x.dtype))],
    "new_empty_strided": [sample(lambda x: x.new_empty_strided((3, 2), (1, 3)).fill_(2), (2,),
                                 numpy=lambda x: np.full((3, 2), 2, x.dtype))],
}
