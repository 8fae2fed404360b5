"""Largest elements and norms of windows."""

import cygrad as cg
from cygrad.operators.pooling import regular_windows
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch"}


def pooled(name, *shape, **options):
    return sample(lambda x: getattr(F, name)(x, **options), shape, exempt=REAL)


def values(name, *shape, **options):
    return sample(lambda x: getattr(F, name)(x, **options)[0], shape, exempt=REAL)


# In the last two dims of a tensor (2, 2, 3), one of them twice.
PLACES = cg.tensor([[[0, 5], [3, 3]], [[2, 1], [4, 0]]])

SAMPLES = {
    "take_places": [sample(lambda x: x._take_places(PLACES, 2), (2, 2, 3))],
    "add_at_places": [sample(lambda x: x._add_at_places(PLACES, (2, 3)), (2, 2, 2))],
    "largest_of_windows": [sample(lambda x: x._largest_of_windows((regular_windows(5, 2, 3, 2, 0, 1),))[0], (2, 5), exempt=REAL)],
    "max_pool1d": [pooled("max_pool1d", 1, 2, 5, kernel_size=2), pooled("max_pool1d", 1, 4, kernel_size=3, stride=1, padding=1)],
    "max_pool2d": [
        sample(lambda x: F.max_pool2d(x, 2), (1, 4, 4), exempt=REAL, kinds="if", numpy=lambda a: a.reshape(1, 2, 2, 2, 2).max((2, 4))),
        pooled("max_pool2d", 1, 2, 4, 3, kernel_size=2, stride=(1, 2), padding=1, dilation=2, ceil_mode=True)],
    "max_pool3d": [pooled("max_pool3d", 1, 1, 2, 3, 2, kernel_size=2, stride=1)],
    "nn_functional_max_pool1d_with_indices": [values("max_pool1d_with_indices", 1, 2, 4, kernel_size=2)],
    "nn_functional_max_pool2d_with_indices": [values("max_pool2d_with_indices", 1, 3, 3, kernel_size=2)],
    "nn_functional_max_pool3d_with_indices": [values("max_pool3d_with_indices", 1, 2, 2, 3, kernel_size=2)],
    "nn_functional_adaptive_max_pool1d": [pooled("adaptive_max_pool1d", 2, 5, output_size=3)],
    "nn_functional_adaptive_max_pool2d": [pooled("adaptive_max_pool2d", 1, 2, 3, 4, output_size=(2, None))],
    "nn_functional_adaptive_max_pool3d": [pooled("adaptive_max_pool3d", 1, 3, 2, 2, output_size=2)],
    "nn_functional_adaptive_max_pool1d_with_indices": [values("adaptive_max_pool1d_with_indices", 1, 2, 4, output_size=2)],
    "nn_functional_adaptive_max_pool2d_with_indices": [values("adaptive_max_pool2d_with_indices", 1, 3, 3, output_size=2)],
    "nn_functional_adaptive_max_pool3d_with_indices": [values("adaptive_max_pool3d_with_indices", 1, 2, 2, 2, output_size=1)],
    "nn_functional_lp_pool1d": [sample(lambda x: F.lp_pool1d(x.abs(), 3, 2), (1, 2, 5), exempt=REAL),
                                pooled("lp_pool1d", 1, 4, norm_type=float("inf"), kernel_size=2)],
    "nn_functional_lp_pool2d": [pooled("lp_pool2d", 1, 3, 4, norm_type=2, kernel_size=2, stride=1)],
    "nn_functional_lp_pool3d": [pooled("lp_pool3d", 1, 2, 2, 3, norm_type=2, kernel_size=2)],
    "nn_functional_max_unpool1d": [
        sample(lambda x: F.max_unpool1d(x, cg.tensor([[0, 3]]).expand(x.shape), 2), (1, 2), exempt=REAL)],
    "nn_functional_max_unpool2d": [
        sample(lambda x: F.max_unpool2d(x, cg.tensor([[[0, 7]]]).expand(x.shape), 2, output_size=(3, 4)), (1, 1, 2), exempt=REAL)],
    "nn_functional_max_unpool3d": [
        sample(lambda x: F.max_unpool3d(x, cg.tensor([[[[7]]]]).expand(x.shape), 2), (1, 1, 1, 1), exempt=REAL)],
}
