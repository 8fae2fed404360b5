"""Softmax and its kin."""


from samples.sample import sample

SAMPLES = {
    "logsumexp": [sample(lambda x: x.logsumexp((0, 2)), (2, 3, 2)), sample(lambda x: x.logsumexp(0, keepdim=True), (3, 2))],
    "softmax": [sample(lambda x: x.softmax(1), (2, 3)), sample(lambda x: x.softmax(0), (3,))],
    "log_softmax": [sample(lambda x: x.log_softmax(-1), (2, 3)), sample(lambda x: x.log_softmax(0), (3, 2))],
}
