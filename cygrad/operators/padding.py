"""More elements at the ends of dims: numbers, or copies of elements that are there."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cygrad._core.compute.creation import scalar_tensor
from cygrad._core.compute.filling import padded
from cygrad.data.creation import check_room
from cygrad.operators._language.arguments import SEQUENCE, delivered, integers
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators.bands import Band

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Number


# ----- Arguments -----
def _counts(operator: Any, input: Tensor, pad: Sequence[int]) -> tuple[int, ...]:
    """Return how many elements there are more before and behind each of the last dims, the last of them first."""
    if not isinstance(pad, SEQUENCE):
        raise TypeError(f"{operator.name.removeprefix('nn_functional_')}(): argument 'pad' (position 2) must be tuple of ints, "
                        f"not {type(pad).__name__}")
    counts = integers(pad)
    if len(counts) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but it is {len(counts)}")
    if len(counts) > 2 * input.ndim:
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but got padding length "
                           f"{len(counts)} and input of dimension {input.ndim}")
    return counts


# ----- By a number -----
def _without_padding(g: Tensor, pad: tuple[int, ...]) -> Tensor:
    """Return the gradient of the input: elements that were cut off have 0."""
    return constant_pad_nd(g, tuple([-count for count in pad]))


def _tangent_of_padded(tangent_of: Any, operator: Any, result: Tensor, x: Tensor, pad: Sequence[int], value: Number = 0) -> Tensor | None:
    t = tangent_of(x)
    return None if t is None else operator(t, pad)


def _padded_batch(level: Any, operator: Any, x: Tensor, pad: Sequence[int], *arguments: Any, **keywords: Any) -> Tensor:
    return same(level, operator, x, _counts(operator, x, pad), *arguments, **keywords)


@operator(dinput=_without_padding, tangent=_tangent_of_padded, batch=_padded_batch, method=False)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Number = 0, *, out: Tensor | None = None) -> Tensor:
    """Copy with more elements at the ends of its last dims, all the same number; a negative count cuts elements off.

    `pad` has two counts for each dim, the last dim first: (before, behind, before the next to last, ...). RuntimeError where there
    are more of them than dims, or a size would be negative.

    >>> import cygrad
    >>> cygrad.constant_pad_nd(cygrad.tensor([1, 2]), (1, 2))
    tensor([0, 1, 2, 0, 0])
    """
    counts = _counts(constant_pad_nd, input, pad)
    number = scalar_tensor(value, input.dtype)
    if number.ndim or number.requires_grad:
        raise TypeError(f"{constant_pad_nd.__name__}(): argument 'value' must be Number, not Tensor: a number, or a 0-d tensor that does "
                        "not require a gradient")
    return delivered(recorded(constant_pad_nd, (input,), padded(input, counts, number), pad=counts), out)


# ----- In other modes -----
def _reflected(size: int, before: int, behind: int) -> np.ndarray:
    """Return the places of a dim mirrored at its first and last element, which are not repeated."""
    places = np.abs(np.arange(-before, size + behind))
    return size - 1 - np.abs(size - 1 - places)


def _replicated(size: int, before: int, behind: int) -> np.ndarray:
    """Return the places of a dim whose first and last element are repeated."""
    return np.clip(np.arange(-before, size + behind), 0, size - 1)


def _circular(size: int, before: int, behind: int) -> np.ndarray:
    """Return the places of a dim that is repeated, after elements were cut off."""
    first, length = max(-before, 0), max(size + min(before, 0) + min(behind, 0), 0)
    return first + np.arange(-max(before, 0), length + max(behind, 0)) % max(length, 1)


@lru_cache(64)
def _selected(mode: str, size: int, before: int, behind: int) -> Band:
    """Return the band that takes a dim's elements at the places of a mode; its transpose adds gradients up."""
    check_room(max(size + before + behind, 0))
    return Band(PLACES[mode](size, before, behind)[:, None], None, size)


PLACES = {"reflect": _reflected, "replicate": _replicated, "circular": _circular}
# How torch names its loops of the modes that do not take bools.
LOOPS = {"reflect": "reflection_pad", "replicate": "replication_pad"}


def _check_mode(mode: str, shape: tuple[int, ...], pairs: list[tuple[int, int]], kind: str) -> None:
    """Refuse dims, counts and a kind of dtypes that a mode does not take."""
    ndim = len(shape)
    if ndim not in (len(pairs) + 1, len(pairs) + 2) or not 0 < len(pairs) < 4:
        raise NotImplementedError(f"Padding size {2 * len(pairs)} is not supported for {ndim}D input tensor.")
    if mode in LOOPS and kind == "b":
        raise NotImplementedError(f"\"{LOOPS[mode]}{len(pairs)}d\" not implemented for 'Bool'")
    sizes = shape[-len(pairs):]
    if mode != "circular" and 0 in (*sizes, *shape[1 - ndim:]):
        raise RuntimeError(f"Expected {len(pairs) + 1}D or {len(pairs) + 2}D (batch mode) tensor with possibly 0 batch size and other "
                           f"non-zero dimensions for input, but got: {list(shape)}")
    for dim, (size, (before, behind)) in enumerate(zip(sizes, pairs, strict=True), ndim - len(pairs)):
        if mode == "reflect" and max(before, behind) >= size:
            raise RuntimeError("Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                               f"({before}, {behind}) at dimension {dim} of input {list(shape)}")
        if mode == "circular" and max(before, behind) > max(size + min(before, 0) + min(behind, 0), 0) and size + before + behind >= 0:
            raise RuntimeError(f"Padding value causes wrapping around more than once: padding ({before}, {behind}) at dimension {dim} "
                               f"of input {list(shape)}")
        if size + before + behind < (0 if mode == "circular" else 1):
            words = ("Negative padding value is resulting in an empty dimension" if mode == "circular" else
                     f"input ({'DHW'[dim - ndim]}: {size}) is too small. Calculated output {'DHW'[dim - ndim]}: "
                     f"{size + before + behind}")
            raise RuntimeError(f"{words}: padding ({before}, {behind}) at dimension {dim} of input {list(shape)}")


@lru_cache(256)
def _planned(mode: str, shape: tuple[int, ...], counts: tuple[int, ...], kind: str) -> tuple[tuple[int, Band], ...]:
    """Return a band for each dim that changes."""
    pairs = list(zip(counts[::2], counts[1::2], strict=True))[::-1]     # of the first dim first
    _check_mode(mode, shape, pairs, kind)
    first = len(shape) - len(pairs)
    return tuple([(dim - len(pairs), _selected(mode, shape[first + dim], *pair)) for dim, pair in enumerate(pairs) if any(pair)])


@operator(method=False)
def nn_functional_pad(input: Tensor, pad: Sequence[int], mode: Literal["constant", "reflect", "replicate", "circular"] = "constant",
                      value: Number | None = None) -> Tensor:
    """Copy with more elements at the ends of its last dims; a negative count cuts elements off.

    `pad` has two counts for each dim, the last dim first: (before, behind, before the next to last, ...). The elements are `value`
    (mode "constant", by default 0), mirrored at the ends, which are not repeated ("reflect"), those at the ends repeated
    ("replicate"), or taken from the other end ("circular"). These three take the last one, two or three dims of a tensor with one or
    two dims more. RuntimeError where counts are too large or too many, NotImplementedError for other modes and numbers of dims.

    >>> import cygrad
    >>> cygrad.nn.functional.pad(cygrad.tensor([[1, 2, 3]]), (1, 2), mode="reflect")
    tensor([[2, 1, 2, 3, 2, 1]])
    """
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    counts = _counts(nn_functional_pad, input, pad)
    if mode not in PLACES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}: there are constant, reflect, replicate and circular")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument, but got {value}')
    bands = _planned(mode, input.shape, counts, input.dtype.kind)
    return input._banded(bands) if bands else input.clone()
