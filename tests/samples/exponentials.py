"""Softmax and its kin."""


import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch"}

SAMPLES = {
    "logsumexp": [sample(lambda x: x.logsumexp((0, 2)), (2, 3, 2)), sample(lambda x: x.logsumexp(0, keepdim=True), (3, 2))],
    "softmax": [sample(lambda x: x.softmax(1), (2, 3)), sample(lambda x: x.softmax(0), (3,))],
    "log_softmax": [sample(lambda x: x.log_softmax(-1), (2, 3)), sample(lambda x: x.log_softmax(0), (3, 2))],
    "nn_functional_softmax": [sample(lambda x: F.softmax(x, 1), (2, 3), exempt=REAL)],
    "nn_functional_softmin": [sample(lambda x: F.softmin(x, dim=0), (2, 3), exempt=REAL)],
    "nn_functional_log_softmax": [sample(lambda x: F.log_softmax(x, -1), (2, 3), exempt=REAL)],
}
