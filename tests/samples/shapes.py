"""Views that change the shape."""

import numpy as np

import cygrad as cg
from samples.sample import ITS_OWN_DTYPE, sample

SAMPLES = {
    "view": [
        sample(lambda x: x.view(2, 1, -1), (2, 3)),
        sample(lambda x: x.reshape(3, 2), (2, 3)),
        sample(lambda x: x.view_as(cg.zeros(1, 2, 3)), (2, 3), numpy=lambda a: a[None]),
        sample(lambda x: x.reshape_as(cg.zeros(6)), (2, 3), numpy=np.ravel),
        sample(lambda x: x.flatten(1), (2, 3, 2)),
    ],
    "squeeze": [sample(lambda x: x.squeeze(), (2, 1, 3, 1)), sample(lambda x: x.squeeze(-1), (2, 1))],
    "unsqueeze": [sample(lambda x: x.unsqueeze(1), (2, 3)), sample(lambda x: x.unsqueeze(-1), ())],
    "permute": [sample(lambda x: x.permute(2, 0, 1), (2, 3, 2)), sample(lambda x: x.T, (2, 1, 3))],
    "transpose": [sample(lambda x: x.transpose(0, -1), (2, 1, 3)), sample(lambda x: x.mT, (2, 2, 3))],
    "t": [sample(lambda x: x.t(), (2, 3)), sample(lambda x: x.T, (2, 3))],
    "expand": [
        sample(lambda x: x.expand(3, 2, 4), (2, 1)),
        sample(lambda x: x.expand_as(cg.zeros(2, 3)), (3,), numpy=lambda a: np.broadcast_to(a, (2, 3))),
        sample(lambda x: x.expand(2, -1), (3,)),
        sample(lambda x: x.expand(0, 3), (1, 3)),
    ],
    "movedim": [sample(lambda x: x.movedim(0, -1), (2, 3, 2), numpy=lambda a: np.moveaxis(a, 0, -1))],
    "moveaxis": [sample(lambda x: cg.moveaxis(x, (1, 0), (0, 1)), (2, 3), numpy=lambda a: a.T)],
    "swapaxes": [sample(lambda x: x.swapaxes(0, 1), (2, 3), numpy=lambda a: a.swapaxes(0, 1))],
    "swapdims": [sample(lambda x: cg.swapdims(x, 0, -1), (2, 3), numpy=lambda a: a.swapaxes(0, 1))],
    "adjoint": [sample(lambda x: x.adjoint(), (2, 3), numpy=lambda a: a.T)],
    "ravel": [sample(lambda x: x.ravel(), (2, 3), numpy=np.ravel)],
    "unflatten": [sample(lambda x: x.unflatten(0, (2, -1)), (4,), numpy=lambda a: a.reshape(2, 2))],
    "broadcast_to": [sample(lambda x: cg.broadcast_to(x, (2, 3)), (3,), numpy=lambda a: np.broadcast_to(a, (2, 3)))],
    "broadcast_tensors": [sample(lambda x, y: cg.broadcast_tensors(x, y), (3,), (2, 1), numpy=np.broadcast_arrays)],
    "sum_to_size": [sample(lambda x: x.sum_to_size(1, 3), (2, 3), numpy=lambda a: a.sum(0, keepdims=True), kinds="if")],
    "atleast_1d": [sample(lambda x: cg.atleast_1d(x), (), numpy=np.atleast_1d)],
    "atleast_2d": [sample(lambda x: cg.atleast_2d(x), (3,), numpy=np.atleast_2d)],
    "atleast_3d": [sample(lambda x: cg.atleast_3d(x), (2, 3), numpy=np.atleast_3d)],
}

# Without a gradient.
PLAIN = {
    "broadcast_shapes": [sample(lambda x: cg.zeros(cg.broadcast_shapes(x.shape, (2, 1))), (3,), numpy=lambda x: np.zeros((2, 3)),
                                exempt=ITS_OWN_DTYPE)],
}
