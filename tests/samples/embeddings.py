"""Rows looked up by numbers."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
NUMBERS = cg.tensor([[0, 2], [2, 1]])
VECTOR, OFFSETS = cg.tensor([0, 2, 2, 1, 0]), cg.tensor([0, 2, 2])
REAL = {"complex numbers": "complex numbers have no order"}

SAMPLES = {
    "rows_with_sparse_gradient": [
        sample(lambda w: F.embedding(VECTOR, w * 1, sparse=True), (3, 2)),
    ],
    "with_gradient_times": [     # factors of 1: other ones are made for gradients that are not derivatives of the values
        sample(lambda w: F.embedding(cg.tensor([0, 2]), w, padding_idx=1), (3, 2),
               exempt={"degenerate operands": "AssertionError for a matrix without rows, as in torch"}),
        sample(lambda w: F.embedding(cg.tensor([0, 2]), w, scale_grad_by_freq=True), (3, 2))],
    "nn_functional_embedding": [sample(lambda w: F.embedding(NUMBERS, w), (3, 2)), sample(lambda w: F.embedding(cg.tensor(1), w), (3, 2))],
    "nn_functional_embedding_bag": [
        sample(lambda w: F.embedding_bag(NUMBERS, w), (3, 2)),
        sample(lambda w: F.embedding_bag(VECTOR, w, OFFSETS, mode="sum"), (3, 2)),
        sample(lambda w: F.embedding_bag(VECTOR, w, OFFSETS, mode="max"), (3, 2), exempt=REAL),
        sample(lambda w, s: F.embedding_bag(NUMBERS, w, mode="sum", per_sample_weights=s), (3, 2), (2, 2))],
}
PLAIN = {
    "nn_functional_one_hot": [sample(lambda x: F.one_hot((x > 0).to(cg.int64), 3), (2, 3))],
}
