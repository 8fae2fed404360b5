"""Vectors compared with others, and vectors of norm 1."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch"}

SAMPLES = {
    "nn_functional_normalize": [
        sample(lambda x: F.normalize(x), (2, 3)), sample(lambda x: F.normalize(x, 3.0, 0), (3,)),
        sample(lambda x: F.normalize(x, dim=(0, 2)), (2, 2, 3))],
    "cosine_similarity": [
        sample(lambda x, y: cg.cosine_similarity(x, y), (2, 3), (2, 3), exempt=REAL),
        sample(lambda x, y: F.cosine_similarity(x, y, 0), (2, 3), (2, 1), exempt=REAL),
        sample(lambda x, y: cg.cosine_similarity(x, y, -1), (2, 3), (3,), exempt=REAL)],
    "pairwise_distance": [
        sample(lambda x, y: cg.pairwise_distance(x, y), (2, 3), (2, 3)),
        sample(lambda x, y: F.pairwise_distance(x, y, 3.0, keepdim=True), (2, 3), (3,))],
}
