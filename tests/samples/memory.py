"""The memory of a tensor."""

import numpy as np

import cygrad as cg
from samples.sample import ITS_OWN_DTYPE, dense, sample

PLAIN = {
    "storage": [sample(lambda x: cg.zeros(len(dense(x).storage())), (2, 3), numpy=lambda x: np.zeros(6), exempt=ITS_OWN_DTYPE)],
    "untyped_storage": [sample(lambda x: cg.zeros(dense(x).untyped_storage().nbytes()), (2, 3), numpy=lambda x: np.zeros(x.nbytes),
                               exempt={"narrow floats": "counts bytes"})],
}
