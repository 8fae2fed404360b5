"""Images read at any points."""

import cygrad as cg
from cygrad.operators.grids import Reading
from samples.sample import sample

F = cg.nn.functional
REAL = {"complex numbers": "refused, as in torch"}
# The points of the tests are far from the image; divided, they lie in it and around it.


def read_at_points(*shapes, **options):
    return sample(lambda x, grid: F.grid_sample(x, grid / 3, **options), *shapes, exempt=REAL)


# Torch's numbers of bilinear and bicubic reading, and of padding by reflection.
LINEAR = Reading(0, 0, False, (0, 0))
CUBIC = Reading(2, 2, True, (1, 0))


SAMPLES = {
    "read_at_points": [
        sample(lambda x, grid: x._read_at_points(grid / 3, LINEAR), (1, 2, 3, 2), (1, 2, 2, 2), exempt=REAL),
        sample(lambda x, grid: x._read_at_points(grid / 3, CUBIC), (2, 1, 3, 2), (2, 1, 2, 2), exempt=REAL),
    ],
    "spread_from_points": [
        sample(lambda values, grid: values._spread_from_points(grid / 3, LINEAR, (3, 2)), (1, 2, 2, 2), (1, 2, 2, 2), exempt=REAL),
    ],
    "slopes_at_points": [
        sample(lambda values, x, grid: values._slopes_at_points(x, grid / 3, LINEAR), (1, 2, 2, 1), (1, 2, 3, 2), (1, 2, 1, 2),
               exempt=REAL),
    ],
    "grid_sampler": [sample(lambda x, grid: cg.grid_sampler(x, grid / 3, 0, 1, True), (1, 2, 3, 2), (1, 2, 2, 2), exempt=REAL)],
    "nn_functional_grid_sample": [
        read_at_points((1, 2, 3, 4), (1, 2, 3, 2)), read_at_points((2, 1, 3, 3), (2, 2, 2, 2), padding_mode="reflection"),
        read_at_points((1, 1, 2, 2, 3), (1, 1, 2, 2, 3), padding_mode="border", align_corners=True),
        read_at_points((1, 1, 3, 3), (1, 2, 1, 2), mode="bicubic"),
        sample(lambda x: F.grid_sample(x, cg.tensor([[[[-0.9, 0.3], [0.1, 0.8]]]], dtype=x.dtype), mode="nearest"), (1, 2, 3, 3),
               exempt=REAL),
    ],
    "affine_grid_generator": [
        sample(lambda theta: F.affine_grid(theta, (2, 1, 2, 3)), (2, 2, 3), exempt=REAL),
        sample(lambda theta: F.affine_grid(theta, (1, 1, 2, 1, 2), align_corners=True), (1, 3, 4), exempt=REAL),
    ],
}
