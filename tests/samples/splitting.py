"""Parts of a tensor along a dim."""

import numpy as np

from samples.sample import sample

SAMPLES = {
    "unbind": [sample(lambda x: x.unbind(1), (2, 3)), sample(lambda x: x.unbind()[1], (2, 3))],
    "split": [sample(lambda x: x.split(2, 1), (2, 5)), sample(lambda x: x.split(2)[1], (3,)), sample(lambda x: x.chunk(2, -1), (2, 3))],
    "split_with_sizes": [sample(lambda x: x.split([1, 0, 2]), (3, 2)), sample(lambda x: x.split_with_sizes([1, 2], 1)[0], (2, 3))],
    "tensor_split": [sample(lambda x: x.tensor_split(2, 1), (2, 5), numpy=lambda a: np.array_split(a, 2, 1))],
    "hsplit": [sample(lambda x: x.hsplit([1]), (2, 3), numpy=lambda a: np.hsplit(a, [1]))],
    "vsplit": [sample(lambda x: x.vsplit(2), (4, 1), numpy=lambda a: np.vsplit(a, 2))],
    "dsplit": [sample(lambda x: x.dsplit(2), (1, 2, 2), numpy=lambda a: np.dsplit(a, 2))],
    "unsafe_split": [sample(lambda x: x.unsafe_split(2), (3,))],
    "unsafe_split_with_sizes": [sample(lambda x: x.unsafe_split_with_sizes([1, 2]), (3,))],
    "unsafe_chunk": [sample(lambda x: x.unsafe_chunk(2), (3,))],
}
