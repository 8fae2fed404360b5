"""Tensors of other sizes: interpolated between the centres of elements, dim by dim, each by a matrix of few entries in a row.

Element i of a dim of n elements lies at i + 0.5, of a result of m elements at (i + 0.5) n / m; with `align_corners` the first and last
elements lie on each other. The kernels: linear; cubic convolution (Keys 1981) with a = -0.75, with `antialias` -0.5; Lanczos (Duchon
1979) of three lobes. With `antialias` a kernel is as wide as the results are apart, and normalised.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cygrad._core.memory.sizes import index_argument
from cygrad.data.creation import check_room
from cygrad.operators._language.arguments import SEQUENCE
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.bands import Band, Bands
from cygrad.operators.pooling import adaptive_avg_pool1d, nn_functional_adaptive_avg_pool2d, nn_functional_adaptive_avg_pool3d
from cygrad.ops.dtypes import DTYPES, NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Ints

# The number of dims that a mode takes; None: one, two or three. And how torch names its loop.
MODES: dict[str, tuple[int | None, str]] = {
    "nearest": (None, "compute_indices_weights_nearest"), "nearest-exact": (None, "compute_indices_weights_nearest"),
    "area": (None, "adaptive_avg_pool2d"), "linear": (1, "compute_indices_weights_linear"),
    "bilinear": (2, "upsample_bilinear2d_channels_last"), "trilinear": (3, "compute_indices_weights_linear"),
    "bicubic": (2, "compute_indices_weights_cubic"), "lanczos": (2, "compute_indices_weights_lanczos"),
}
Mode = Literal["nearest", "nearest-exact", "area", "linear", "bilinear", "trilinear", "bicubic", "lanczos"]


# ----- Kernels -----
def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(x)
    inner, outer = ((a + 2) * x - (a + 3)) * x * x + 1, ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0))


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


# By mode: the kernel of `antialias`, and half its width.
SMOOTH: dict[str, tuple[Callable[[np.ndarray], np.ndarray], int]] = {
    "bilinear": (_triangle, 1), "bicubic": (lambda x: _cubic(x, -0.5), 2), "lanczos": (_lanczos, 3)}


# ----- Bands -----
def _distance(size: int, count: int, factor: float | None, align_corners: bool) -> float:
    """Return how far results are from each other, in elements of the input."""
    if align_corners:
        return (size - 1) / (count - 1) if count > 1 else 0.0
    return 1 / factor if factor is not None and factor > 0 else size / count


@lru_cache(64)
def _nearest(size: int, count: int, factor: float | None, exact: bool, single: bool, even: bool) -> Band:
    """Return the band of the nearest elements; places are rounded as torch rounds them, to the input's precision and to float32.

    even: whether a result of one or two times the size ignores a factor that is a little more; of images it does.
    """
    if even and count in (size, 2 * size):
        factor = None
    number: Any = np.float32 if single else np.float64
    distance = number(1) / number(factor) if factor is not None and factor > 0 else number(size) / number(count)
    places = np.floor(((np.arange(count, dtype=number) + number(0.5 if exact else 0)) * distance).astype(np.float32)).astype(np.intp)
    return Band(np.minimum(places, size - 1)[:, None], None, size)


@lru_cache(64)
def _linear(size: int, count: int, factor: float | None, align_corners: bool) -> Band:
    distance = _distance(size, count, None if count == size else factor, align_corners)
    centre = np.arange(count) * distance if align_corners else np.maximum((np.arange(count) + 0.5) * distance - 0.5, 0)
    first = np.minimum(centre.astype(np.intp), size - 1)
    part = np.clip(centre - first, 0, 1)
    return Band(np.stack([first, np.minimum(first + 1, size - 1)], 1), np.stack([1 - part, part], 1), size)


@lru_cache(64)
def _bicubic(size: int, count: int, factor: float | None, align_corners: bool) -> Band:
    distance = _distance(size, count, factor, align_corners)
    centre = np.arange(count) * distance if align_corners else (np.arange(count) + 0.5) * distance - 0.5
    first = np.floor(centre)
    places = first[:, None] + np.arange(-1, 3)
    return Band(np.clip(places, 0, size - 1).astype(np.intp), _cubic(places - centre[:, None], -0.75), size)


@lru_cache(64)
def _smooth(size: int, count: int, factor: float | None, align_corners: bool, mode: str) -> Band:
    kernel, half = SMOOTH[mode]
    distance = _distance(size, count, factor, align_corners)
    width = max(distance, 1.0)
    centre = distance * (np.arange(count) + 0.5)
    first = np.maximum((centre - half * width + 0.5).astype(np.intp), 0)
    end = np.minimum((centre + half * width + 0.5).astype(np.intp), size)
    places = first[:, None] + np.arange(max(int((end - first).max()), 1))
    weights = np.where(places < end[:, None], kernel((places - centre[:, None] + 0.5) / width), 0)
    return Band(np.where(places < end[:, None], places, -1), weights / weights.sum(1, keepdims=True), size)


@rounded_once
def _resampled(input: Tensor, bands: Bands) -> Tensor:
    return input._banded(bands) if bands else input.clone()


def _byte(input: Tensor, bands: Bands) -> Tensor:
    """Resample bytes as floats, and round the results to the nearest, halves up."""
    return (_resampled(input.float(), bands) + 0.5).floor().clamp(0, 255).to(input.dtype)


# ----- Arguments -----
def _read_sizes(dims: int, shape: Sequence[int], size: Any, scale_factor: Any) -> tuple[tuple[int, ...] | None, tuple[float, ...] | None]:
    """Return the sizes, or the factors, for each dim."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, SEQUENCE) and len(size) != dims:
            raise ValueError("Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                             f"{list(shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
                             "format and output size in (o1, o2, ...,oK) format.")
        return tuple([index_argument(number, "size") for number in (size if isinstance(size, SEQUENCE) else (size,) * dims)]), None
    if isinstance(scale_factor, SEQUENCE) and len(scale_factor) != dims:
        raise ValueError("Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
                         f"{list(shape[2:])} and scale_factor of shape {scale_factor}. Please provide input tensor in "
                         "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.")
    return None, tuple(map(_factor, scale_factor)) if isinstance(scale_factor, SEQUENCE) else (_factor(scale_factor),) * dims


def _factor(value: Any) -> float:
    if not hasattr(type(value), "__float__"):
        raise TypeError(f"{nn_functional_interpolate.__name__}(): argument 'scale_factor' must be float or tuple of floats, not "
                        f"{type(value).__name__}")
    factor = float(value)
    if not np.isfinite(factor):
        raise ValueError(f"{nn_functional_interpolate.__name__}(): argument 'scale_factor' must be finite, but got {factor}")
    return factor


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    dims = input.ndim - 2
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear, "
                         f"but mode is {mode}")
    if antialias and (mode not in SMOOTH or dims != 2):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    needed = MODES.get(mode, (None, ""))[0] if isinstance(mode, str) else None
    if needed is not None and mode.endswith("linear") and 1 <= dims <= 3 and needed != dims:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {needed + 2}D input")
    if not isinstance(mode, str) or mode not in MODES or not 1 <= dims <= 3 or needed not in (None, dims):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: nearest | "
                                  f"linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})")
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError("Lanczos mode does not support align_corners=True" if align_corners else "Lanczos mode requires antialias=True")


def _check_sizes(shape: tuple[int, ...], sizes: Sequence[int]) -> None:
    if min(*shape[2:], *sizes) < 1:
        pairs = [", ".join(f"{letter}: {size}" for letter, size in zip("DHW"[3 - len(sizes):], each, strict=True))
                 for each in (shape[2:], sizes)]
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({pairs[0]}) and output ({pairs[1]})")
    if shape[1] == 0:
        raise RuntimeError(f"Non-empty {len(shape)}D data tensor expected but got a tensor with sizes {list(shape)}")


def _scaled(shape: tuple[int, ...], sizes: tuple[int, ...] | None, factors: Sequence[float] | None, recompute: bool) -> tuple[int, ...]:
    """Return the sizes of the result: given, or the input's times factors."""
    if factors is not None:
        return tuple([int(length * factor) for length, factor in zip(shape[2:], factors, strict=True)])
    assert sizes is not None
    if recompute:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    return sizes


# Plans are cached, as a program resamples the same shapes over and over.
@lru_cache(256)
def _planned(shape: tuple[int, ...], sizes: tuple[int, ...] | None, factors: tuple[float, ...] | None, mode: str, align_corners: bool,
             recompute: bool, antialias: bool, single: bool) -> Bands:
    """Return the bands of the last dims that change something; those that make fewer elements come first."""
    # The factors that places are computed by; None: by the ratio of the sizes.
    known: Sequence[float | None] = [None] * (len(shape) - 2) if recompute or factors is None else factors
    sizes = _scaled(shape, sizes, factors, recompute)
    _check_sizes(shape, sizes)
    check_room(*sizes)
    bands, exact = [], mode == "nearest-exact"
    for extent in zip(shape[2:], sizes, known, strict=True):
        if mode.startswith("nearest"):
            bands.append(_nearest(*extent, exact, single, not exact and len(sizes) == 2))
        elif antialias:
            bands.append(_smooth(*extent, align_corners, mode))
        else:
            bands.append((_bicubic if mode == "bicubic" else _linear)(*extent, align_corners))
    steps = [(dim, band) for dim, band in enumerate(bands, -len(bands)) if not band.is_identity]
    return tuple(sorted(steps, key=lambda step: len(step[1].places) / step[1].size))


# ----- Operators -----
@operator(method=False)
def nn_functional_interpolate(input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None,
                              mode: Mode = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                              antialias: bool = False) -> Tensor:
    """Tensor (examples, channels, *sizes) of other sizes, by its nearest elements, between them, or by means.

    `size` or `scale_factor`, for all dims or for each, one of both; sizes that follow are rounded down. Places follow from the factor, or,
    with `recompute_scale_factor`, from the sizes. `mode`: "nearest" (at the lower corner, as in OpenCV), "nearest-exact" (at the centre),
    "linear", "bilinear", "trilinear" for one, two, three dims, "bicubic" for two, "area" for means, as `adaptive_avg_pool`.
    `align_corners`: whether the centres of the outer elements lie on each other, or (the default) their outer edges. `antialias`: with
    "bilinear", "bicubic" and "lanczos", the kernel is as wide as results are apart.

    Floating-point numbers; of bytes the nearest, or rounded results. ValueError for options that exclude each other,
    NotImplementedError for other modes and dtypes, RuntimeError for sizes below 1.

    >>> import cygrad
    >>> cygrad.nn.functional.interpolate(cygrad.tensor([[[0., 1., 4.]]]), size=5, mode="linear", align_corners=True)
    tensor([[[0.0000, 0.5000, 1.0000, 2.5000, 4.0000]]])
    """
    _check_mode(input, mode, align_corners, antialias)
    dims = input.ndim - 2
    sizes, factors = _read_sizes(dims, input.shape, size, scale_factor)
    is_byte = input.dtype.name == "uint8" and mode not in ("area", "linear", "trilinear")
    if not input.is_floating_point() and not is_byte:
        raise NotImplementedError(f"\"{MODES[mode][1]}\" not implemented for '{DTYPES[NUMBER[input.dtype.name]].title}'")
    if mode == "area":
        pool = (adaptive_avg_pool1d, nn_functional_adaptive_avg_pool2d, nn_functional_adaptive_avg_pool3d)[dims - 1]
        return pool(input, _scaled(input.shape, sizes, factors, bool(recompute_scale_factor)))
    bands = _planned(input.shape, sizes, factors, mode, bool(align_corners), bool(recompute_scale_factor), bool(antialias),
                     input.dtype.name != "float64")
    return _byte(input, bands) if is_byte and not mode.startswith("nearest") else _resampled(input, bands)


@operator(method=False)
def nn_functional_upsample(input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None,
                           mode: Mode = "nearest", align_corners: bool | None = None) -> Tensor:
    """Older name of `interpolate`.

    >>> import cygrad
    >>> cygrad.nn.functional.upsample(cygrad.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return nn_functional_interpolate(input, size, scale_factor, mode, align_corners)


@operator(method=False)
def nn_functional_upsample_nearest(input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None) -> Tensor:
    """Older name of `interpolate` in the mode "nearest".

    >>> import cygrad
    >>> cygrad.nn.functional.upsample_nearest(cygrad.tensor([[[1., 2.]]]), 4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return nn_functional_interpolate(input, size, scale_factor)


@operator(method=False)
def nn_functional_upsample_bilinear(input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None) -> Tensor:
    """Older name of `interpolate` in the mode "bilinear" with `align_corners`.

    >>> import cygrad
    >>> cygrad.nn.functional.upsample_bilinear(cygrad.tensor([[[[1., 2.]]]]), (1, 3))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    return nn_functional_interpolate(input, size, scale_factor, "bilinear", True)
