"""Python's functions of elements."""

import numpy as np

from samples.sample import dense, sample

NO_LEVELS = {"vmap": "refused: a Python function gets numbers", "transforms": "refused: a Python function gets numbers"}

PLAIN = {
    "apply_": [sample(lambda x: dense(x).apply_(lambda number: number / 2), (2, 3), numpy=lambda a: a / 2, kinds="f", exempt=NO_LEVELS)],
    "map2_": [sample(lambda x, y, z: dense(x).map2_(dense(y), dense(z), lambda a, b, c: a + 2 * b - c), (2, 3), (3,), (2, 1),
                     numpy=lambda a, b, c: a + 2 * b - c, kinds="f", exempt=NO_LEVELS)],
    "map_": [sample(lambda x, y: dense(x).map_(dense(y), max), (2, 3), (3,), numpy=np.maximum, exempt=NO_LEVELS)],
}
