"""Convolutions: each form has the other two as its gradients."""

import cygrad as cg
from samples.sample import refused_otherwise, sample

F = cg.nn.functional


def gradient_by_kernels(x, y, **options):
    """Return the gradient of the kernels of a convolution that gives `y`, as an operator of both."""
    weight = cg.zeros(2, x.shape[1] // options.get("groups", 1), 2, dtype=x.dtype, requires_grad=True)
    with cg.enable_grad():
        return cg.autograd.grad(F.conv1d(x, weight, **options), weight, y, create_graph=True)[0]


SAMPLES = {
    "convolve": [
        sample(lambda x, w: F.conv1d(x, w), (2, 2, 4), (3, 2, 2)),
        sample(lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1, dilation=2, groups=2), (2, 2, 5), (2, 1, 2), (2,)),
        sample(lambda x, w: F.conv1d(x, w, padding="same"), (1, 4), (1, 1, 2)),
        sample(lambda x, w, b: F.conv2d(x, w, b, padding=(1, 0), stride=(1, 2)), (1, 2, 3, 4), (2, 2, 2, 2), (2,)),
        sample(lambda x, w: F.conv2d(x, w, padding="valid"), (2, 3, 3), (1, 2, 2, 1)),
        sample(lambda x, w: F.conv3d(x, w, padding=1, stride=2), (1, 1, 2, 3, 2), (1, 1, 2, 2, 2)),
        sample(lambda x, w, b: F.conv_tbc(x, w, b, 1), (3, 2, 2), (2, 2, 1), (1,)),
        *refused_otherwise([sample(lambda x, w: cg.convolution(x, w, None, [1], [0], [1], False, [0], 1), (1, 1, 3), (1, 1, 2))],
                           "it computes complex numbers"),
    ],
    "spread_kernels": [
        sample(lambda x, w: F.conv_transpose1d(x, w), (2, 2, 3), (2, 2, 2)),
        sample(lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2, padding=1, output_padding=1, groups=2, dilation=2),
               (2, 2, 2), (2, 1, 2), (2,)),
        sample(lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(1, 2)), (2, 2, 2), (2, 1, 2, 2), (1,)),
        sample(lambda x, w: F.conv_transpose3d(x, w, padding=1), (1, 1, 2, 2, 2), (1, 1, 2, 2, 2)),
    ],
    "sum_kernels": [
        sample(lambda x, y: gradient_by_kernels(x, y), (2, 2, 3), (2, 2, 2), exempt={"complex numbers": "the kernels are real"}),
    ],
}
