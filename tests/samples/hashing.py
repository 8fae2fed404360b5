"""Hashes, which are numbers without a derivative."""

import numpy as np

from samples.sample import sample


def _bits(array):
    return (array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64)).view(np.uint64)


PLAIN = {
    "hash_tensor": [
        sample(lambda x: x.hash_tensor(), (2, 3), numpy=lambda a: np.bitwise_xor.reduce(_bits(a), axis=None)),
        sample(lambda x: x.hash_tensor(1, keepdim=True), (2, 3), numpy=lambda a: np.bitwise_xor.reduce(_bits(a), axis=1, keepdims=True)),
    ],
}
