"""Random counts and indices, of one seed each; their distributions are tested in test_random_draws.py."""

import cygrad as cg
from samples.sample import sample

ONE_STREAM = {"vmap": "vmap refuses draws without a word whether they are the same"}

PLAIN = {
    "multinomial": [sample(lambda x: x.exp().multinomial(2, rng=0), (3, 4), exempt=ONE_STREAM),
                    sample(lambda x: cg.multinomial(x.exp(), 6, True, rng=0), (4,), exempt=ONE_STREAM)],
    "poisson": [sample(lambda x: cg.poisson(x.exp(), rng=0), (2, 3), exempt=ONE_STREAM)],
    "binomial": [sample(lambda x, p: cg.binomial(x.abs().floor() + 3, p.sigmoid(), rng=0), (2, 3), (3,),
                        exempt=ONE_STREAM | {"narrow floats": "probabilities are rounded, and other numbers drawn"})],
}
