"""Losses beyond a margin."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
ORDERED = {"complex numbers": "the formula is of real numbers: it compares them"}
SIGNS = cg.tensor([1, -1, 1])

SAMPLES = {
    "nn_functional_margin_ranking_loss": [
        sample(lambda x, y: F.margin_ranking_loss(x, y, SIGNS, 0.3), (3,), (3,), exempt=ORDERED),
        sample(lambda x, y: F.margin_ranking_loss(x, y, SIGNS.reshape(1, 3), reduction="none"), (2, 3), (2, 3), exempt=ORDERED)],
    "nn_functional_hinge_embedding_loss": [
        sample(lambda x: F.hinge_embedding_loss(x, SIGNS, 0.8), (2, 3), exempt=ORDERED),
        sample(lambda x: F.hinge_embedding_loss(x, SIGNS, reduction="none"), (3,), exempt=ORDERED)],
    "nn_functional_cosine_embedding_loss": [
        sample(lambda x, y: F.cosine_embedding_loss(x, y, SIGNS, -0.9), (3, 2), (3, 2), exempt=ORDERED),
        sample(lambda x, y: F.cosine_embedding_loss(x, y, cg.tensor(-1), -0.9), (3,), (3,), exempt=ORDERED)],
    "nn_functional_triplet_margin_loss": [
        sample(lambda a, p, n: F.triplet_margin_loss(a, p, n, 3.0), (2, 3), (2, 3), (2, 3), exempt=ORDERED),
        sample(lambda a, p, n: F.triplet_margin_loss(a, p, n, 5.0, 3, swap=True, reduction="none"), (2, 3), (2, 3), (2, 3),
               exempt=ORDERED)],
    "nn_functional_triplet_margin_with_distance_loss": [
        sample(lambda a, p, n: F.triplet_margin_with_distance_loss(a, p, n, margin=4.0, swap=True), (2, 3), (2, 3), (2, 3), exempt=ORDERED),
        sample(lambda a, p, n: F.triplet_margin_with_distance_loss(
            a, p, n, distance_function=lambda x, y: (x - y).square().sum(-1), margin=9.0, reduction="sum"), (2, 3), (2, 3), (2, 3),
            exempt=ORDERED)],
}
