"""Parts of a dim. The samples of the rule that is named `slice` stand with the indices."""

import cygrad as cg
from samples.sample import sample

SAMPLES = {
    "slice_copy": [
        sample(lambda x: cg.slice_copy(x, 1, -3, 4, 2), (2, 4), numpy=lambda a: a[:, -3:4:2]),
        sample(lambda x: cg.slice(x, 0, 1), (3,), numpy=lambda a: a[1:]), sample(lambda x: cg.slice(x), (3,))],
}
