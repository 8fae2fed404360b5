"""Tensors made like others, and changes of shape in the same memory."""

import numpy as np

import cygrad as cg
from samples.sample import sample


def dense(x):
    return x.detach().clone(memory_format=cg.contiguous_format)


ITS_OWN_DTYPE = {"narrow floats": "the result is of the default dtype"}

PLAIN = {
    "zeros_like": [sample(lambda x: cg.zeros_like(x), (2, 3), numpy=np.zeros_like)],
    "ones_like": [sample(lambda x: cg.ones_like(x), (2, 3), numpy=np.ones_like)],
    "full_like": [sample(lambda x: cg.full_like(x, 2), (2, 3), numpy=lambda x: np.full_like(x, 2))],
    "empty_like": [sample(lambda x: cg.empty_like(x).fill_(2), (2, 3), numpy=lambda x: np.full_like(x, 2))],
    "new_zeros": [sample(lambda x: x.new_zeros((3, 2)), (2,), numpy=lambda x: np.zeros((3, 2), x.dtype))],
    "new_ones": [sample(lambda x: x.new_ones((3, 2)), (2,), numpy=lambda x: np.ones((3, 2), x.dtype))],
    "new_full": [sample(lambda x: x.new_full((3, 2), 2), (2,), numpy=lambda x: np.full((3, 2), 2, x.dtype))],
    "new_empty": [sample(lambda x: x.new_empty((3, 2)).fill_(2), (2,), numpy=lambda x: np.full((3, 2), 2, x.dtype))],
    "resize_": [sample(lambda x: dense(x).resize_((3, 2)), (2, 3), numpy=lambda x: x.reshape(3, 2))],
    "resize_as_": [sample(lambda x: dense(x).resize_as_(x.T), (2, 3), numpy=lambda x: x.reshape(3, 2))],
    "set_": [sample(lambda x: cg.empty(0, dtype=x.dtype).set_(x.detach()), (2, 3), numpy=np.array)],
    "broadcast_shapes": [sample(lambda x: cg.zeros(cg.broadcast_shapes(x.shape, (2, 1))), (3,), numpy=lambda x: np.zeros((2, 3)),
                                exempt=ITS_OWN_DTYPE)],
    "storage": [sample(lambda x: cg.zeros(len(dense(x).storage())), (2, 3), numpy=lambda x: np.zeros(6), exempt=ITS_OWN_DTYPE)],
    "untyped_storage": [sample(lambda x: cg.zeros(dense(x).untyped_storage().nbytes()), (2, 3), numpy=lambda x: np.zeros(x.nbytes),
                               exempt={"narrow floats": "counts bytes"})],
}
