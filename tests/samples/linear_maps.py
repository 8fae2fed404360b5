"""Linear and bilinear maps, attention."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
attention = F.scaled_dot_product_attention
REAL = {"complex numbers": "refused, as in torch"}

SAMPLES = {
    "nn_functional_linear": [
        sample(lambda x, w: F.linear(x, w), (2, 3), (4, 3)), sample(lambda x, w, b: F.linear(x, w, b), (2, 2, 3), (2, 3), (2,)),
        sample(lambda x, w: F.linear(x, w), (2, 3), (3,)), sample(lambda x, w, b: F.linear(x, w, b), (3,), (2, 3), (2,))],
    "bilinear": [
        sample(lambda x, y, w, b: cg.bilinear(x, y, w, b), (3, 2), (3, 3), (2, 2, 3), (2,)),
        sample(lambda x, y, w: F.bilinear(x, y, w), (2,), (3,), (2, 2, 3))],
    "nn_functional_linear_cross_entropy": [
        sample(lambda x, w, b: F.linear_cross_entropy(x, w, cg.tensor([2, 0]), linear_bias=b), (2, 3), (3, 3), (3,), exempt=REAL),
        sample(lambda x, w: F.linear_cross_entropy(x, w, cg.tensor([[1, 0]]), reduction="sum"), (1, 3), (3, 2, 3), exempt=REAL)],
    "nn_functional_scaled_dot_product_attention": [
        sample(lambda q, k, v: attention(q, k, v), (3, 2), (4, 2), (4, 3), exempt=REAL),
        sample(lambda q, k, v: attention(q, k, v, is_causal=True, scale=0.3), (2, 3, 2), (2, 3, 2), (2, 3, 2), exempt=REAL),
        sample(lambda q, k, v, m: attention(q, k, v, m), (3, 2), (4, 2), (4, 3), (3, 4), exempt=REAL),
        sample(lambda q, k, v: attention(q, k, v, cg.tensor([[True, False], [False, False]])), (2, 3), (2, 3), (2, 3), exempt=REAL),
        sample(lambda q, k, v: attention(q, k, v, enable_gqa=True), (4, 2, 2), (2, 3, 2), (2, 3, 2), exempt=REAL)],
}
