"""Images read at any points, and the points of affine maps. Coordinates are from -1 to 1 along each dim, the last dim first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cygrad._core.memory.sizes import index_argument
from cygrad._core.operands.arrays import computed
from cygrad.operators._language.arguments import SEQUENCE, checked_operand
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.joining import stack
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    axes = np.meshgrid(*[_base(number, bool(align_corners)) for number in sizes[2:]], indexing="ij")
    points = computed(np.stack([*axes[::-1], np.ones(sizes[2:])], -1).reshape(-1, dims + 1)).to(theta.dtype)
    return (points @ theta.mT).reshape(sizes[0], *sizes[2:], dims)


# ----- Places of points -----
def _place(x: Tensor, size: int, align_corners: bool) -> Tensor:
    """Return coordinates as places, where 0 is the centre of the first element."""
    return (x + 1) * ((size - 1) / 2) if align_corners else ((x + 1) * size - 1) / 2


def _reflected(x: Tensor, size: int, align_corners: bool) -> Tensor:
    """Return places mirrored at the centres or the edges of the outer elements until they lie between them."""
    low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
    if span == 0:
        return x * 0
    x = (x - low).abs()
    turns = (x.detach() / span).floor()
    inside = x - turns * span
    return inside.where(turns % 2 == 0, span - inside) + low


def _within(x: Tensor, size: int, padding: str, align_corners: bool) -> Tensor:
    """Return places moved into a dim, as a mode of padding has it."""
    if padding == "reflection":
        x = _reflected(x, size, align_corners)
    return x if padding == "zeros" else x.clamp(0, size - 1)


def _read_at(input: Tensor, places: Sequence[Tensor]) -> Tensor:
    """Return the elements of (examples, channels, *sizes) at whole places, a tensor (..., examples, points) for each dim, which broadcast:
    (examples, channels, neighbours, points) with all dims in front as neighbours; 0 outside, at NaN."""
    valid: Any = None
    index: Any = None
    for place, size in zip(places, input.shape[2:], strict=True):
        place = place.detach()
        inside = (place >= 0) & (place < size)
        at = place.where(inside, 0.0).long()
        valid, index = (inside, at) if valid is None else (valid & inside, index * size + at)
    index, valid = (_near_last(x) for x in (index, valid))
    examples, _, near, points = index.shape
    index = index.expand(examples, input.shape[1], near, points).flatten(2)
    return input.flatten(2).gather(2, index).unflatten(2, (near, points)).where(valid, 0.0)


def _near_last(x: Tensor) -> Tensor:
    """Return a tensor (..., examples, points) as (examples, 1, neighbours, points)."""
    return x.flatten(0, -3).transpose(0, 1).unsqueeze(1) if x.ndim > 2 else x.unsqueeze(1).unsqueeze(1)


# ----- Weights of elements near a place -----
def _linear(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the two whole places beside each place, and their weights, in a new first dim."""
    first = x.detach().floor()
    part = x - first
    return stack((first, first + 1)), stack((1 - part, part))


def _cubic(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the four whole places near each place, and their weights: cubic convolution (Keys 1981) with a = -0.75."""
    a, first = -0.75, x.detach().floor()
    part = x - first

    def outer(t: Tensor) -> Tensor:
        return ((t - 5) * t + 8) * t * a - 4 * a

    def inner(t: Tensor) -> Tensor:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    return (stack((first - 1, first, first + 1, first + 2)),
            stack((outer(part + 1), inner(part), inner(1 - part), outer(2 - part))))


@rounded_once
def _sampled(input: Tensor, grid: Tensor, mode: str, padding: str, align_corners: bool) -> Tensor:
    sizes, outer = input.shape[2:], grid.shape[1:-1]
    points = [_place(grid[..., -1 - d].flatten(1), size, align_corners) for d, size in enumerate(sizes)]
    if mode != "bicubic":       # its neighbours are moved one by one
        points = [_within(x, size, padding, align_corners) for x, size in zip(points, sizes, strict=True)]
    if mode == "nearest":
        return _read_at(input, [x.detach().round() for x in points]).squeeze(2).unflatten(2, outer)
    places, weights = [], []        # with a dim of neighbours for each dim of the image
    for d, (x, size) in enumerate(zip(points, sizes, strict=True)):
        place, weight = (_cubic if mode == "bicubic" else _linear)(x)
        place = place if mode != "bicubic" else _within(place, size, padding, align_corners)
        key = (slice(None), *[None] * (len(sizes) - 1 - d))
        places.append(place[key])
        weights.append(weight[key])
    weight = weights[0]
    for other in weights[1:]:
        weight = weight * other
    return (_read_at(input, places) * _near_last(weight)).sum(2).unflatten(2, outer)


# ----- Operators -----
def _check(input: Tensor, grid: Tensor, mode: str) -> None:
    dims, shapes = input.ndim - 2, f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if grid.dtype != input.dtype:
        raise RuntimeError(f"expected scalar type {DTYPES[NUMBER[input.dtype.name]].title} but found "
                           f"{DTYPES[NUMBER[grid.dtype.name]].title}: input and grid must have the same dtype")
    if input.ndim < 3 or grid.ndim < 3:
        raise RuntimeError(f"{grid_sampler.__name__}(): expected 4D or 5D input and grid with same number of dimensions, but got {shapes}")
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"{grid_sampler.__name__}(): expected grid and input to have same batch size, but got {shapes}")
    if grid.shape[-1] != dims:
        raise RuntimeError(f"{grid_sampler.__name__}(): expected grid to have size {dims} in last dimension, but got grid with sizes "
                           f"{list(grid.shape)}")
    if 0 in input.shape[2:]:
        raise RuntimeError(f"{grid_sampler.__name__}(): expected input to have non-empty spatial dimensions, but input has sizes "
                           f"{list(input.shape)} with dimension {2 + list(input.shape[2:]).index(0)} being empty")
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError(f"{grid_sampler.__name__}(): expected 4D or 5D input and grid with same number of dimensions, but got {shapes}")
    if mode == "bicubic" and dims != 2:
        raise RuntimeError(f"{grid_sampler.__name__}(): bicubic interpolation only supports 4D input, but got {shapes}")


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
    _check(input, grid, MODES[mode])
    return _sampled(input, grid, MODES[mode], PADDINGS[padding], align_corners)


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
