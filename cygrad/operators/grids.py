"""Images read at any points, and the points of affine maps. Coordinates are from -1 to 1 along each dim, the last dim first."""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import add
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from cygrad._core.compute.points import read_at_points, slopes_at_points, spread_from_points
from cygrad._core.memory.sizes import index_argument
from cygrad.data.creation import check_room, constant_tensor
from cygrad.operators._language.arguments import SEQUENCE, checked_operand
from cygrad.operators._language.batches import samples_together
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad.tensor import Tensor

# In the order of torch's numbers.
MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


# ----- Points of affine maps -----
def _base(size: int, align_corners: bool) -> np.ndarray:
    """Return the coordinates of the elements of a dim: of their centres where the range is from edge to edge."""
    if size == 1:
        return np.zeros(1)
    ends = np.linspace(-1, 1, size)
    return ends if align_corners else ends * ((size - 1) / size)


@operator(method=False, aliases=("nn_functional_affine_grid",))
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Points of affine maps at the elements of images of a size: (examples, height, width, 2) or (examples, depth, height, width, 3).

    `theta` has a matrix (2, 3) or (3, 4) for each example, that is applied to the coordinates and a 1; `size` is the images', with
    examples and channels. `align_corners`: whether -1 and 1 are the centres of the outer elements, or (the default) their outer
    edges. ValueError where shapes do not fit.

    >>> import cygrad
    >>> theta = cygrad.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> cygrad.nn.functional.affine_grid(theta, (1, 1, 1, 2))
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if not isinstance(size, SEQUENCE):
        raise TypeError(f"affine_grid(): argument 'size' (position 2) must be tuple of ints, not {type(size).__name__}")
    sizes = [index_argument(number, "size") for number in size]
    dims = len(sizes) - 2
    if dims not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
                                  f"{tuple(sizes)}.")
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {tuple(sizes)}. Got "
                         f"{list(theta.shape)}.")
    if min(sizes) < 1:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(sizes)}")
    if theta.shape[0] != sizes[0]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{sizes[0]}, {dims + 1}] but got: "
                           f"[{theta.shape[0]}, {dims + 1}].")
    check_room(*sizes[2:], dims + 1)
    axes = np.meshgrid(*[_base(number, bool(align_corners)) for number in sizes[2:]], indexing="ij")
    points = constant_tensor(np.stack([*axes[::-1], np.ones(sizes[2:])], -1).reshape(-1, dims + 1)).to(theta.dtype)
    return (points @ theta.mT).reshape(sizes[0], *sizes[2:], dims)


# ----- Three operators, which have each other as gradients, to every order -----
class Reading(NamedTuple):
    """How an image is read at points: torch's numbers of modes and paddings, and how often each coordinate's weights are differentiated."""

    mode: int
    padding: int
    align_corners: bool
    orders: tuple[int, ...]

    def once_more(self, coordinate: int) -> Reading:
        return self._replace(orders=tuple([order + (k == coordinate) for k, order in enumerate(self.orders)]))


def _along_each(h: Tensor, reading: Reading, sum_of: Callable[[Tensor, Reading], Tensor]) -> Tensor:
    """Return the sum over coordinates of an expression of h's part for each, (examples, 1, *outer), and the reading for its derivative."""
    parts = [sum_of(h[..., k].unsqueeze(1), reading.once_more(k)) for k in range(len(reading.orders))]
    return reduce(add, parts)


@operator(dinput=lambda g, grid, reading, input_shape: g._spread_from_points(grid, reading, input_shape[2:]),
          dgrid=lambda g, input, grid, reading: g._slopes_at_points(input, grid, reading), node="GridSampler2DBackward0",
          batch=samples_together)
def _read_at_points(input: Tensor, grid: Tensor, reading: Reading) -> Tensor:
    """Return images (examples, channels, *sizes) at points (examples, *outer, coordinates)."""
    return recorded(_read_at_points, (input, grid), read_at_points(input, grid, reading), reading=reading)


@operator(dinput=lambda g, grid, reading: g._read_at_points(grid, reading),
          dgrid=lambda g, input, grid, reading: input._slopes_at_points(g, grid, reading), batch=samples_together)
def _spread_from_points(input: Tensor, grid: Tensor, reading: Reading, sizes: tuple[int, ...]) -> Tensor:
    """Return values (examples, channels, *outer), times weights, added up at the points of images: the transpose of `_read_at_points`."""
    return recorded(_spread_from_points, (input, grid), spread_from_points(input, grid, reading, sizes), reading=reading)


@operator(dvalues=lambda g, input, grid, reading: _along_each(g, reading, lambda h, more: h * input._read_at_points(grid, more)),
          dinput=lambda g, values, grid, reading, input_shape: _along_each(
              g, reading, lambda h, more: (values * h)._spread_from_points(grid, more, input_shape[2:])),
          dgrid=lambda g, values, input, grid, reading: _along_each(
              g, reading, lambda h, more: (values * h)._slopes_at_points(input, grid, more)),
          batch=samples_together)
def _slopes_at_points(values: Tensor, input: Tensor, grid: Tensor, reading: Reading) -> Tensor:
    """Return the sums over channels of values (examples, channels, *outer) times derivatives of `_read_at_points` by the coordinates."""
    return recorded(_slopes_at_points, (values, input, grid), slopes_at_points(values, input, grid, reading), reading=reading)


@rounded_once
def _sampled(input: Tensor, grid: Tensor, reading: Reading) -> Tensor:
    return input._read_at_points(grid, reading)


# ----- Operators -----
def _check_dtypes(input: Tensor, grid: Tensor) -> None:
    if grid.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {DTYPES[NUMBER[input.dtype.name]].title} but found "
                           f"{DTYPES[NUMBER[grid.dtype.name]].title}: input and grid must have the same dtype")


@lru_cache(256)
def _check_sizes(images: tuple[int, ...], points: tuple[int, ...], mode: str) -> None:
    """Refuse sizes of images and points that do not fit, in torch's order."""
    name, dims, sizes = grid_sampler.__name__, len(images) - 2, f"input with sizes {list(images)} and grid with sizes {list(points)}"
    if len(images) < 3 or len(points) < 3:
        raise RuntimeError(f"{name}(): expected 4D or 5D input and grid with same number of dimensions, but got {sizes}")
    if images[0] != points[0]:
        raise RuntimeError(f"{name}(): expected grid and input to have same batch size, but got {sizes}")
    if points[-1] != dims:
        raise RuntimeError(f"{name}(): expected grid to have size {dims} in last dimension, but got grid with sizes {list(points)}")
    if 0 in images[2:]:
        raise RuntimeError(f"{name}(): expected input to have non-empty spatial dimensions, but input has sizes {list(images)} with "
                           f"dimension {2 + images[2:].index(0)} being empty")
    if len(images) not in (4, 5) or len(images) != len(points):
        raise RuntimeError(f"{name}(): expected 4D or 5D input and grid with same number of dimensions, but got {sizes}")
    if mode == "bicubic" and dims != 2:
        raise RuntimeError(f"{name}(): bicubic interpolation only supports 4D input, but got {sizes}")


@operator(method=False, aliases=("grid_sampler_2d", "grid_sampler_3d"), refuses={"bic": NO_LOOP}, loop="grid_sampler_2d_cpu_kernel_impl")
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """As `nn.functional.grid_sample`, with modes by their numbers: bilinear, nearest, bicubic; zeros, border, reflection.

    >>> import cygrad
    >>> cygrad.grid_sampler(cygrad.tensor([[[[1., 3.]]]]), cygrad.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[2.]]]])
    """
    mode, padding = index_argument(interpolation_mode, "interpolation_mode"), index_argument(padding_mode, "padding_mode")
    for number, word in (mode, "interpolation_mode"), (padding, "padding_mode"):
        if not 0 <= number <= 2:
            raise ValueError(f"{grid_sampler.__name__}(): expected {word} to be 0, 1 or 2, but got: {number}")
    checked_operand(grid_sampler, input)
    _check_dtypes(input, grid)
    _check_sizes(input.shape, grid.shape, MODES[mode])
    return _sampled(input, grid, Reading(mode, padding, align_corners, (0,) * (input.ndim - 2)))


@operator(method=False)
def nn_functional_grid_sample(input: Tensor, grid: Tensor, mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
                              padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
                              align_corners: bool | None = None) -> Tensor:
    """Images (examples, channels, *sizes) read at points (examples, *result sizes, coordinates): (examples, channels, *result sizes).

    The coordinates of a point are from -1 to 1 along each dim, along the last dim first; -1 and 1 are the outer edges of the outer
    elements, with `align_corners` their centres. Between elements: "bilinear" weights of the neighbours (of three dims, too), the "nearest"
    element, halves to the even one, or "bicubic", for two dims. Outside: 0 ("zeros"), the nearest element ("border"), or a mirror image
    ("reflection"). RuntimeError where shapes do not fit, ValueError for other modes.

    >>> import cygrad
    >>> image, points = cygrad.tensor([[[[1., 3.]]]]), cygrad.tensor([[[[0., 0.], [0.5, 0.]]]])
    >>> cygrad.nn.functional.grid_sample(image, points)
    tensor([[[[2., 3.]]]])
    """
    if mode not in MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: {mode!r}")
    if padding_mode not in PADDINGS:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
                         f"{padding_mode!r}")
    return grid_sampler(input, grid, MODES.index(mode), PADDINGS.index(padding_mode), bool(align_corners))
