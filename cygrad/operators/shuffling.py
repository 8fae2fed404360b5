"""Channels exchanged with places, and groups of channels with their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad._core.memory.sizes import index_argument
from cygrad.operators._language.declaration import operator

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@operator(method=False, aliases=("nn_functional_pixel_shuffle",))
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Larger images with fewer channels: (..., channels r^2, height, width) as (..., channels, height r, width r), r the `upscale_factor`.

    >>> import cygrad
    >>> cygrad.pixel_shuffle(cygrad.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    factor = index_argument(upscale_factor, "upscale_factor")
    if input.ndim < 3:
        raise RuntimeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)")
    if factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {factor}")
    channels, height, width = input.shape[-3:]
    if channels % factor**2:
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                           f"input.size(-3)={channels} is not divisible by {factor**2}")
    outer, rest = tuple(input.shape[:-3]), channels // factor**2
    parts, n = input.reshape(*outer, rest, factor, factor, height, width), len(outer)
    return parts.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2).reshape(*outer, rest, height * factor, width * factor)


@operator(method=False, aliases=("nn_functional_pixel_unshuffle",))
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Inverse of `pixel_shuffle`: smaller images with more channels.

    >>> import cygrad
    >>> cygrad.pixel_unshuffle(cygrad.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    factor = index_argument(downscale_factor, "downscale_factor")
    if input.ndim < 3:
        raise RuntimeError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)")
    if factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {factor}")
    channels, height, width = input.shape[-3:]
    for word, dim, size in ("height", -2, height), ("width", -1, width):
        if size % factor:
            raise RuntimeError(f"pixel_unshuffle expects {word} to be divisible by downscale_factor, but input.size({dim})={size} is not "
                               f"divisible by {factor}")
    outer = tuple(input.shape[:-3])
    parts, n = input.reshape(*outer, channels, height // factor, factor, width // factor, factor), len(outer)
    return parts.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*outer, channels * factor**2, height // factor, width // factor)


@operator(method=False, aliases=("nn_functional_channel_shuffle", "native_channel_shuffle", "nn_functional_native_channel_shuffle"))
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels (dim 1) of groups in turn: the first of each group, then the second of each.

    >>> import cygrad
    >>> cygrad.channel_shuffle(cygrad.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    count = index_argument(groups, "groups")
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if count <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{count}")
    if input.shape[1] % count:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {input.shape[1]} channels and {count} groups.")
    parts = input.reshape(input.shape[0], count, input.shape[1] // count, *input.shape[2:])
    return parts.transpose(1, 2).reshape(input.shape)
