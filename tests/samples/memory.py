"""The memory of a tensor."""

import numpy as np

import cygrad as cg
from samples.sample import ITS_OWN_DTYPE, dense, sample

PLAIN = {
    "storage": [sample(lambda x: cg.zeros(len(dense(x).storage())), (2, 3), numpy=lambda x: np.zeros(6), exempt=ITS_OWN_DTYPE)],
    "untyped_storage": [sample(lambda x: cg.zeros(dense(x).untyped_storage().nbytes()), (2, 3), numpy=lambda x: np.zeros(x.nbytes),
                               exempt={"narrow floats": "counts bytes"})],
    "const_data_ptr": [sample(lambda x: cg.zeros(x.const_data_ptr() - x.data_ptr()), (2, 3), numpy=lambda x: np.zeros(0),
                              exempt=ITS_OWN_DTYPE)],
    "dim_order": [sample(lambda x: cg.tensor(dense(x).T.dim_order()), (2, 3), numpy=lambda x: np.array([1, 0]),
                         exempt={"narrow floats": "the result is of integers"})],
}
