"""Dropout and other random activations: samples that draw nothing, or that seed the generator."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional


def seeded(call):
    """Return a call that draws the same numbers each time."""
    def repeated(x):
        cg.manual_seed(5)
        return call(x)

    return repeated


RANDOM = {"vmap": "random numbers need randomness=",
          "narrow floats": "numbers of another dtype are other ones"}
REAL = {"complex numbers": "refused, as in torch"}
DRAWS = REAL | RANDOM

SAMPLES = {
    "nn_functional_dropout": [sample(seeded(lambda x: F.dropout(x)), (4, 3), exempt=DRAWS),
                              sample(lambda x: F.dropout(x, training=False), (2, 3))],
    "nn_functional_dropout1d": [sample(seeded(lambda x: F.dropout1d(x)), (2, 3, 2), exempt=DRAWS)],
    "nn_functional_dropout2d": [sample(seeded(lambda x: F.dropout2d(x)), (2, 3, 1, 2), exempt=DRAWS)],
    "nn_functional_dropout3d": [sample(seeded(lambda x: F.dropout3d(x)), (2, 3, 1, 1, 2), exempt=DRAWS)],
    "nn_functional_alpha_dropout": [sample(seeded(lambda x: F.alpha_dropout(x, training=True)), (4, 3), exempt=DRAWS)],
    "nn_functional_feature_alpha_dropout": [
        sample(seeded(lambda x: F.feature_alpha_dropout(x, training=True)), (2, 3, 2), exempt=DRAWS)],
    "nn_functional_rrelu": [sample(lambda x: F.rrelu(x), (2, 3), exempt=REAL),
                            sample(seeded(lambda x: F.rrelu(x, training=True)), (2, 3), exempt=DRAWS)],
    "nn_functional_gumbel_softmax": [sample(seeded(lambda x: F.gumbel_softmax(x, 0.7)), (2, 3), exempt=DRAWS)],
}
