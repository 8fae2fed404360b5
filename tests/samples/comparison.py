"""Comparisons of whole tensors."""

import numpy as np

from samples.sample import sample

PLAIN = {
    "equal": [sample(lambda x, y: x.equal(y), (2, 3), (2, 3), numpy=np.array_equal)],
    "allclose": [sample(lambda x, y: x.allclose(y), (2, 3), (2, 3), numpy=np.allclose, kinds="f")],
}
