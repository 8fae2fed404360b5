"""Normalization of layers, groups, instances and batches."""

import cygrad as cg
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch"}

SAMPLES = {
    "standardized": [
        sample(lambda x: F.layer_norm(x, (3,)), (2, 3), exempt=REAL),
        sample(lambda x: F.batch_norm(x, None, None, training=True), (3, 2), exempt=REAL)],
    "nn_functional_layer_norm": [
        sample(lambda x, w, b: F.layer_norm(x, (3,), w, b), (2, 3), (3,), (3,), exempt=REAL),
        sample(lambda x, w: F.layer_norm(x, (2, 3), w), (2, 2, 3), (2, 3), exempt=REAL)],
    "nn_functional_rms_norm": [
        sample(lambda x, w: F.rms_norm(x, (3,), w, 0.1), (2, 3), (3,)), sample(lambda x: F.rms_norm(x, (2, 3)), (2, 3), exempt=REAL)],
    "nn_functional_group_norm": [
        sample(lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,), exempt=REAL),
        sample(lambda x: F.group_norm(x, 1), (2, 4), exempt=REAL)],
    "nn_functional_batch_norm": [
        sample(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (2, 3, 2), (3,), (3,), exempt=REAL),
        sample(lambda x, m, v: F.batch_norm(x, m, v.square()), (2, 3), (3,), (3,), exempt=REAL)],
    "nn_functional_instance_norm": [
        sample(lambda x, w, b: F.instance_norm(x, None, None, w, b), (2, 3, 4), (3,), (3,), exempt=REAL),
        sample(lambda x, m, v: F.instance_norm(x, m, v.square(), use_input_stats=False), (2, 3, 2), (3,), (3,), exempt=REAL)],
    "nn_functional_local_response_norm": [
        sample(lambda x: F.local_response_norm(x, 2, 0.7), (2, 3, 2), exempt=REAL),
        sample(lambda x: F.local_response_norm(x, 3, 0.7, 0.5, 2.0), (1, 4, 1, 2), exempt=REAL)],
    "native_layer_norm": [sample(lambda x, w, b: cg.native_layer_norm(x, (3,), w, b, 1e-5)[0], (2, 3), (3,), (3,), exempt=REAL)],
    "native_group_norm": [
        sample(lambda x, w, b: cg.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5)[0], (2, 4, 3), (4,), (4,), exempt=REAL),
        sample(lambda x: cg.native_group_norm(x, None, None, 2, 4, 2, 2, 0.1)[2], (2, 4, 2), exempt=REAL)],
    "native_batch_norm": [
        sample(lambda x, w, b: cg.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)[0], (2, 3, 2), (3,), (3,), exempt=REAL)],
}
