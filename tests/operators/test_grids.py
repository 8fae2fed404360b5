"""Images read at points: at elements, between and outside of them; the points of affine maps; shuffles; and arguments that do not fit."""

import itertools
import math

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

F = cg.nn.functional


def grid_of(points):
    """Return one-dimensional points of an image of one row as a grid."""
    x = cg.tensor(points, dtype=cg.float64)
    return cg.stack([x, cg.zeros_like(x)], -1).reshape(1, 1, -1, 2)


def row(*numbers):
    return cg.tensor(numbers, dtype=cg.float64).reshape(1, 1, 1, -1)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("sizes", [(4, 5), (3, 4, 2)])
def test_the_points_of_no_map_are_the_elements(sizes, mode, align_corners):
    if mode == "bicubic" and len(sizes) == 3:
        return      # refused, as in torch
    x = cg.randn(2, 3, *sizes, rng=0, dtype=cg.float64)
    theta = cg.eye(len(sizes), len(sizes) + 1, dtype=cg.float64).expand(2, -1, -1)
    grid = F.affine_grid(theta, x.shape, align_corners)
    for padding in ("zeros", "border", "reflection"):
        result = F.grid_sample(x, grid, mode, padding, align_corners)
        np.testing.assert_allclose(array_of(result), array_of(x), atol=1e-12)


def test_affine_maps_move_points():
    theta = cg.tensor([[[0.0, -1.0, 0.5], [1.0, 0.0, 0.0]]], dtype=cg.float64)
    grid = F.affine_grid(theta, (1, 1, 3, 2), align_corners=True)
    for i, j in itertools.product(range(3), range(2)):
        x, y = -1 + 2 * j, -1 + i
        assert grid[0, i, j].tolist() == [-y + 0.5, x]


def test_between_elements():
    """With corners aligned -1 is the first element and 1 the last."""
    x = row(0.0, 10.0, 20.0)
    points = [-1.0, -0.75, 0.0, 0.6, 1.0]
    linear = F.grid_sample(x, grid_of(points), align_corners=True)
    np.testing.assert_allclose(array_of(linear).ravel(), [0, 2.5, 10, 16, 20])
    nearest = F.grid_sample(x, grid_of([-0.6, -0.5, 0.4, 0.5]), "nearest", align_corners=True)
    assert nearest.flatten().tolist() == [0, 0, 10, 20]       # halves to the even place


def test_outside():
    x, points = row(1.0, 2.0, 4.0), grid_of([-3.0, -2.0, 2.0, 5.0])
    assert F.grid_sample(x, points, align_corners=True).flatten().tolist() == [0, 0, 0, 0]
    assert F.grid_sample(x, points, padding_mode="border", align_corners=True).flatten().tolist() == [1, 1, 4, 4]
    mirrored = F.grid_sample(x, points, padding_mode="reflection", align_corners=True)
    assert mirrored.flatten().tolist() == [4, 2, 2, 4]      # places -2, -1, 3 and 6 are 2, 1, 1 and 2


def test_points_that_are_not_finite():
    x = row(1.0, 2.0)
    result = F.grid_sample(x, grid_of([math.nan, math.inf, -math.inf, 1e300]), "nearest")
    assert result.flatten().tolist() == [0, 0, 0, 0]
    assert F.grid_sample(x, grid_of([0.0]), "nearest").item() == 1


def test_the_gradient_by_points_is_the_slope():
    points = grid_of([-0.5, 0.5]).requires_grad_()
    gradient, = cg.autograd.grad(F.grid_sample(row(0.0, 10.0, 40.0), points, align_corners=True).sum(), points)
    assert gradient[0, 0, :, 0].tolist() == [10, 30]


def test_numbers_of_modes():
    x, grid = cg.randn(1, 1, 3, 3, rng=0), cg.randn(1, 2, 2, 2, rng=1)
    for (i, mode), (j, padding) in itertools.product(enumerate(("bilinear", "nearest", "bicubic")),
                                                     enumerate(("zeros", "border", "reflection"))):
        assert cg.grid_sampler(x, grid, i, j, True).equal(F.grid_sample(x, grid, mode, padding, True))
    assert cg.grid_sampler_2d is cg.grid_sampler


IMAGE, GRID = cg.ones(1, 1, 2, 2), cg.zeros(1, 3, 3, 2)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.grid_sample(IMAGE, GRID, mode="x"), ValueError, r"nn.functional.grid_sample\(\): expected mode to be 'bilinear'"),
    (lambda: F.grid_sample(IMAGE, GRID, padding_mode="x"), ValueError, r"nn.functional.grid_sample\(\): expected padding_mode to be"),
    (lambda: F.grid_sample(IMAGE, cg.zeros(2, 3, 3, 2)), RuntimeError, r"grid_sampler\(\): expected grid and input to have same batch"),
    (lambda: F.grid_sample(IMAGE, cg.zeros(1, 3, 3, 3)), RuntimeError, "expected grid to have size 2 in last dimension"),
    (lambda: F.grid_sample(cg.ones(1, 1, 2), cg.zeros(1, 3, 1)), RuntimeError, "expected 4D or 5D input and grid with same number of dim"),
    (lambda: F.grid_sample(IMAGE, GRID.double()), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: F.grid_sample(cg.ones(1, 1, 2, 2, 2), cg.zeros(1, 1, 1, 1, 3), "bicubic"), RuntimeError, "bicubic interpolation only supp"),
    (lambda: F.grid_sample(IMAGE[:, :, :0], GRID), RuntimeError, "expected input to have non-empty spatial dimensions"),
    (lambda: F.grid_sample(IMAGE.long(), GRID.long()), NotImplementedError, "\"grid_sampler_2d_cpu_kernel_impl\" not implemented for 'L"),
    (lambda: cg.grid_sampler(IMAGE, GRID, 3, 0, False), ValueError, "expected interpolation_mode to be 0, 1 or 2, but got: 3"),
    (lambda: F.affine_grid(cg.ones(1, 2, 3), (1, 1, 2)), NotImplementedError, "affine_grid only supports 4D and 5D sizes"),
    (lambda: F.affine_grid(cg.ones(1, 2, 2), (1, 1, 2, 2)), ValueError, "Expected a batch of 2D affine matrices of shape Nx2x3"),
    (lambda: F.affine_grid(cg.ones(1, 2, 3).long(), (1, 1, 2, 2)), ValueError, "Expected theta to have floating point type"),
    (lambda: F.affine_grid(cg.ones(1, 2, 3), (1, 1, 0, 2)), ValueError, "Expected non-zero, positive output size"),
    (lambda: F.affine_grid(cg.ones(2, 2, 3), (1, 1, 2, 2)), RuntimeError, "Expected size for first two dimensions of batch2 tensor to be"),
    (lambda: cg.pixel_shuffle(cg.ones(3, 2, 2), 2), RuntimeError, "pixel_shuffle expects its input's 'channel' dimension to be divisible"),
    (lambda: cg.pixel_shuffle(cg.ones(2, 2), 2), RuntimeError, "pixel_shuffle expects input to have at least 3 dimensions"),
    (lambda: cg.pixel_shuffle(cg.ones(4, 2, 2), 0), RuntimeError, "pixel_shuffle expects a positive upscale_factor, but got 0"),
    (lambda: cg.pixel_unshuffle(cg.ones(4, 3, 2), 2), RuntimeError, "pixel_unshuffle expects height to be divisible by downscale_factor"),
    (lambda: cg.pixel_unshuffle(cg.ones(4, 2, 3), 2), RuntimeError, "pixel_unshuffle expects width to be divisible by downscale_factor"),
    (lambda: cg.pixel_unshuffle(cg.ones(4, 2, 3), 0), RuntimeError, "pixel_unshuffle expects a positive downscale_factor, but got 0"),
    (lambda: cg.channel_shuffle(cg.ones(1, 4, 2), 3), RuntimeError, "Number of channels must be divisible by groups. Got 4 channels and 3"),
    (lambda: cg.channel_shuffle(cg.ones(1, 4, 2), 0), RuntimeError, "Number of groups to divide channels in must be positive"),
    (lambda: cg.channel_shuffle(cg.ones(1, 4), 2), RuntimeError, "channel_shuffle expects input with > 2 dims"),
])
def test_arguments_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_shuffles_are_inverses():
    x = cg.randn(2, 8, 3, 5, rng=0)
    assert cg.pixel_unshuffle(cg.pixel_shuffle(x, 2), 2).equal(x)
    assert cg.channel_shuffle(cg.channel_shuffle(x, 2), 4).equal(x)


def test_coordinates_that_are_nan_are_the_first_element_where_the_padding_moves_points():
    x, points = row(7.0, 2.0), grid_of([math.nan, math.inf])
    assert F.grid_sample(x, points, padding_mode="border").flatten().tolist()[0] == 7
    assert F.grid_sample(x, points, "nearest", "border").flatten().tolist() == [7, 2]
    assert F.grid_sample(x, points).isnan().all()


@pytest.mark.parametrize(("mode", "padding"), [("bilinear", "border"), ("bilinear", "reflection"), ("nearest", "zeros")])
def test_the_gradient_by_points_is_zero_at_the_border_and_of_steps(mode, padding):
    points = grid_of([-1.0, 1.0] if mode == "bilinear" else [-0.3, 0.4]).requires_grad_()
    gradient, = cg.autograd.grad(F.grid_sample(row(0.0, 10.0, 40.0), points, mode, padding, align_corners=True).sum(), points)
    assert not gradient.any()


@pytest.mark.parametrize("options", [{}, {"padding_mode": "border", "align_corners": True}, {"padding_mode": "reflection"},
                                     {"mode": "bicubic"}])
def test_points_are_read_as_sums_of_elements_times_weights(options):
    """As NumPy's interpolation by the same formulas, written out for a point."""
    image, points = np.random.default_rng(6).normal(size=(4, 5)), np.random.default_rng(7).uniform(-1.4, 1.4, size=(12, 2))
    ours = F.grid_sample(cg.tensor(image).reshape(1, 1, 4, 5), cg.tensor(points).reshape(1, 3, 4, 2), **options)
    np.testing.assert_allclose(array_of(ours).ravel(), [read(image, point, **options) for point in points], rtol=1e-12, atol=1e-12)


def read(image, point, mode="bilinear", padding_mode="zeros", align_corners=False):
    """Return an image at a point."""
    def moved(x, size):
        if padding_mode == "reflection":
            low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
            while not low <= x <= high:
                x = 2 * low - x if x < low else 2 * high - x
        return x if padding_mode == "zeros" else min(max(x, 0), size - 1)

    def kernel(x):
        x = abs(x)
        if mode == "bilinear":
            return max(0.0, 1 - x)
        return (1.25 * x - 2.25) * x * x + 1 if x <= 1 else -0.75 * (((x - 5) * x + 8) * x - 4) if x < 2 else 0

    total, places = 0, []
    for x, size in zip(point[::-1], image.shape, strict=True):
        x = (x + 1) * (size - 1) / 2 if align_corners else ((x + 1) * size - 1) / 2
        x = x if mode == "bicubic" else moved(x, size)
        near = range(math.floor(x) - 2, math.floor(x) + 4)
        places.append([(round(moved(k, size)) if mode == "bicubic" else k, kernel(x - k), size) for k in near])
    for (i, first, height), (j, second, width) in itertools.product(*places):
        if 0 <= i < height and 0 <= j < width:
            total += first * second * image[i, j]
    return total
