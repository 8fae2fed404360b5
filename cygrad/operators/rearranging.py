"""Elements in another order, or repeated: flip, roll, repeat and their kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cygrad._core.compute.joining import rolled
from cygrad._core.compute.lookups import flipped
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.formats import contiguous_format
from cygrad._core.memory.sizes import index_argument, normalized_dim
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data import creation
from cygrad.data.creation import check_room, repeated
from cygrad.operators._language.arguments import checked_tensor, distinct_dims, integers, spread
from cygrad.operators._language.batches import shifted, sizes_of
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.tangents import linear

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Ints


# ----- Repetition -----
def _sum_over_copies(g: Tensor, shape: Sequence[int], repeats: Sequence[int]) -> Tensor:
    """Return the gradient of the input of `repeat`."""
    sizes = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    split = g.reshape([size for pair in zip(repeats, sizes, strict=True) for size in pair])
    return (split.sum(tuple(range(0, split.ndim, 2))) if repeats else g).reshape(shape)


def _repeat_examples(level: Any, operator: Any, x: Tensor, *counts: Any, **keywords: Any) -> Tensor:
    x, repeats = level.enter(x), sizes_of(counts, keywords)
    if len(repeats) < x.ndim - 1:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return level.leave(operator(x[(slice(None),) + (None,) * (len(repeats) + 1 - x.ndim)], 1, *repeats))


@operator(dinput=lambda g, input_shape, repeats: _sum_over_copies(g, input_shape, repeats), tangent=linear, batch=_repeat_examples,
          function=False)
def repeat(input: Tensor, *counts: int | Sequence[int], repeats: Ints | None = None) -> Tensor:
    """Copy with the elements repeated along each dim; more numbers than dims add dims in front.

    >>> import cygrad
    >>> cygrad.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if not counts and repeats is None:
        raise TypeError(f'{repeat.__name__}() missing 1 required positional arguments: "repeats"')
    times = spread(counts, repeats)
    if len(times) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
                           f"{len(times)} and {input.ndim}")
    shape = (1,) * (len(times) - input.ndim) + tuple(input.shape)
    size = [count * length for count, length in zip(times, shape, strict=True)]
    if any(count < 0 for count in times):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {size}")

    def compute() -> Tensor:
        apart = input.detach().reshape([part for length in shape for part in (1, length)])
        copies = apart.expand([part for pair in zip(times, shape, strict=True) for part in pair])
        return copies.clone(memory_format=contiguous_format).reshape(size)

    return recorded(repeat, (input,), unrecorded(compute), repeats=tuple(times))


@operator
def tile(input: Tensor, *counts: int | Sequence[int], dims: Ints | None = None) -> Tensor:
    """Copy with the elements repeated along the last dims, as NumPy's tile.

    >>> import cygrad
    >>> cygrad.tile(cygrad.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    times = spread(counts, dims)
    return repeat(input, repeats=(1,) * (input.ndim - len(times)) + tuple(times))


@overload
def repeat_interleave(input: Tensor, repeats: Tensor | int, dim: int | None = None, *, output_size: int | None = None) -> Tensor: ...
@overload
def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor: ...
@operator
def repeat_interleave(input: Any = None, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Copy with each slice along `dim` (default: each element) repeated in place, `repeats` times or as often as a vector says.

    With `repeats` alone, a vector: the index that does so.

    >>> import cygrad
    >>> cygrad.repeat_interleave(cygrad.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if input is None:
        input, repeats = repeats, None
    checked_tensor(repeat_interleave, input)
    if repeats is None:
        return computed(repeated(np.arange(input.numel(), dtype="int32" if input.dtype.name == "int32" else "int64"), _counts(input)))
    if dim is None:
        input, dim = input.reshape(-1), 0
    d = normalized_dim(dim, input.ndim)
    size = input.shape[d] if input.ndim else 1
    if isinstance(repeats, TensorImpl):
        counts = np.broadcast_to(_counts(repeats), size) if repeats.numel() == 1 else _counts(repeats)
        if len(counts) != size:
            raise RuntimeError("repeats must have the same size as input along dim, but got "
                               f"repeats.size(0) = {len(counts)} and input.size({d}) = {size}")
    elif repeats < 0:
        raise RuntimeError(f"Repeats must be non-negative, got {repeats}")
    else:
        check_room(size, index_argument(repeats, "repeats"))
        counts = np.full(size, repeats)
    index = repeated(np.arange(size), counts)
    if output_size is not None and output_size != len(index):
        raise RuntimeError(f"allocated size does not match required size: output_size is {output_size}, the repeats sum to {len(index)}")
    return input.index_select(d, computed(index) if isinstance(repeats, TensorImpl) else creation.constant_tensor(index))


def _counts(repeats: Tensor) -> np.ndarray:
    """Return a tensor of repeats as a vector; refuse other values."""
    if repeats.ndim > 1:
        raise RuntimeError(f"repeats must be 0-dim or 1-dim tensor, got {repeats.ndim} dims")
    if repeats.dtype.name not in ("int64", "int32"):
        raise NotImplementedError(f"\"repeat_interleave\" not implemented for '{repeats.dtype.name}': repeats are int64 or int32")
    counts = to_array(repeats).reshape(-1)
    if (counts < 0).any():
        raise RuntimeError(f"repeats can not be negative: {counts.min()}")
    return counts


# ----- Turning -----
def _flip_examples(level: Any, operator: Any, x: Tensor, *places: Any, **keywords: Any) -> Tensor:
    dims = distinct_dims(sizes_of(places, keywords), x.ndim)
    return level.leave(operator(level.enter(x), *(dim + 1 for dim in dims))) if x.ndim else x.clone()


@operator(dinput=lambda g, dims: g.flip(dims), tangent=linear, batch=_flip_examples)
def flip(input: Tensor, *places: int | Sequence[int], dims: Ints | None = None) -> Tensor:
    """Copy with the order of elements reversed along dims.

    >>> import cygrad
    >>> cygrad.arange(3).flip(0)
    tensor([2, 1, 0])
    """
    chosen = distinct_dims(spread(places, dims), input.ndim)
    return recorded(flip, (input,), flipped(input, chosen), dims=chosen)


@operator
def fliplr(input: Tensor) -> Tensor:
    """Copy with the order of columns (dim 1) reversed.

    >>> import cygrad
    >>> cygrad.fliplr(cygrad.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"Input must be >= 2-d. It has {input.ndim} dims")
    return flip(input, 1)


@operator
def flipud(input: Tensor) -> Tensor:
    """Copy with the order of rows (dim 0) reversed.

    >>> import cygrad
    >>> cygrad.flipud(cygrad.tensor([1, 2]))
    tensor([2, 1])
    """
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d. It has 0 dims")
    return flip(input, 0)


@operator
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Copy turned by 90 degrees in the plane of two dims, `k` times: from the first towards the second.

    RuntimeError where `dims` are not two different dims of the tensor.

    >>> import cygrad
    >>> cygrad.rot90(cygrad.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    places, turns = integers(dims), index_argument(k, "k") % 4
    if len(places) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(places)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    first, second = (normalized_dim(dim, input.ndim) for dim in places)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {places[0]} and dim1 = {places[1]}")
    if turns == 0:
        return input.clone(memory_format=contiguous_format)
    if turns == 2:
        return flip(input, first, second)
    return flip(input, second if turns == 1 else first).transpose(first, second).contiguous()


@operator(dinput=lambda g, shifts, dims: g.roll([-shift for shift in shifts], dims), tangent=linear, batch=shifted("dims", flattened=True))
def roll(input: Tensor, shifts: Ints, dims: Ints | None = None) -> Tensor:
    """Copy with the elements shifted along dims, those beyond the end coming in at the start; without dims, of the flattened input.

    >>> import cygrad
    >>> cygrad.roll(cygrad.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    steps, along = integers(shifts), () if dims is None else integers(dims)
    if not steps:
        raise RuntimeError("`shifts` required")
    if len(steps) != len(along) and (along or len(steps) > 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(along)}")
    if along and input.ndim == 0:
        raise IndexError(f"Dimension specified as {along[0]} but tensor has no dimensions")
    if not along:
        return roll(input.reshape(-1), steps, 0).reshape(input.shape)
    along = tuple([normalized_dim(dim, input.ndim) for dim in along])
    return recorded(roll, (input,), rolled(input, steps, along), shifts=steps, dims=along)
