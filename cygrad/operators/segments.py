"""Reductions of segments: of consecutive slices along a dim, given by their lengths or by where they begin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.noted_calls import call_again
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.creation import repeated
from cygrad.operators._language.arguments import checked_operand
from cygrad.operators._language.declaration import operator
from cygrad.operators.scattering import scatter_reduce
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

# Reductions by their names: the name in `scatter_reduce`, and the result of an empty segment.
_REDUCTIONS: dict[str, tuple[Any, float]] = {
    "sum": ("sum", 0.0), "mean": ("mean", math.nan), "max": ("amax", -math.inf), "amax": ("amax", -math.inf),
    "min": ("amin", math.inf), "amin": ("amin", math.inf), "prod": ("prod", 1.0),
}


def _lengths(shape: tuple[int, ...], lengths: Tensor | None, offsets: Tensor | None, d: int, unsafe: bool) -> np.ndarray:
    """Return the lengths of the segments along the last dim; refuse those that do not fit data of a shape."""
    bounds = lengths if offsets is None else offsets
    if bounds is None:
        raise RuntimeError(f"{segment_reduce.__name__}(): Either lengths or offsets must be defined.")
    word = "lengths" if offsets is None else "offsets"
    if bounds.dtype.kind not in "iu" or bounds.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(f"\"_segment_reduce_{word}_cpu_kernel1\" not implemented for '{bounds.dtype.name}': {word} are int64 or "
                                  "int32")
    if bounds.ndim > len(shape) or not bounds.ndim:
        raise RuntimeError(f"Expected data.dim() >= {word}_value.dim() to be true, but got false: {len(shape)} and {bounds.ndim}")
    if d != bounds.ndim - 1:
        raise RuntimeError(f"{segment_reduce.__name__}(): Expected axis to be the last dimension of {word} but got {d}.")
    if bounds.shape[:-1] != shape[:d]:
        raise RuntimeError(f"{segment_reduce.__name__}(): Expected {word} to have the sizes of data before axis, "
                           f"{list(shape[:d])}, but got {list(bounds.shape[:-1])}")
    array = to_array(bounds).astype(np.int64)
    if offsets is not None and not array.shape[-1]:
        raise RuntimeError(f"{segment_reduce.__name__}(): Expected offsets to have at least one element along axis")
    sizes = array if offsets is None else np.diff(array)
    decreases = offsets is not None and (array[..., 1:] < array[..., :-1]).any()        # a difference may wrap around, and a sum
    if decreases or (sizes < 0).any() or offsets is not None and (array[..., 0] != 0).any():
        raise RuntimeError("lengths contains negative value!" if offsets is None else
                           f"{segment_reduce.__name__}(): Expected offsets to begin with 0 and not to decrease")
    total = sizes.sum(-1)
    if (np.maximum(sizes.max(-1, initial=0), total) > shape[d]).any() or lengths is not None and not unsafe and (
            total != shape[d]).any():
        raise RuntimeError(f"{segment_reduce.__name__}(): Expected all rows of {word} along axis to sum to data.size({word}.dim()-1) "
                           f"when !unsafe: {np.unique(sizes.astype(object).sum(-1)).tolist()} and {shape[d]}")
    return sizes


def _segments(shape: tuple[int, ...], lengths: Tensor | None, offsets: Tensor | None, d: int, unsafe: bool) -> tuple[Tensor, Tensor]:
    """Return the lengths of the segments, and the number of the segment of each slice: slices behind the last one have one more."""
    sizes = _lengths(shape, lengths, offsets, d, unsafe)
    rows, count = math.prod(sizes.shape[:-1]), sizes.shape[-1]
    behind = shape[d] - sizes.sum(-1, keepdims=True)
    numbers = repeated(np.tile(np.arange(count + 1), rows), np.concatenate((sizes, behind), -1).reshape(-1))
    return computed(sizes), computed(numbers.reshape(shape[:d + 1]))


@operator(refuses={"biu": NO_LOOP, "c": NO_LOOP}, loop="_segment_reduce_cpu", method=False)
def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
                   offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: float | None = None) -> Tensor:
    """Reduction of consecutive slices of `data` along `axis`: "sum", "mean", "max", "min" or "prod" of each segment.

    The segments have `lengths`, or begin and end at neighbouring `offsets`, the first of which is 0; both may have the dims of `data`
    before `axis`, with segments of their own for each. Slices behind the last segment are left out; `lengths` need `unsafe` for that. An
    empty segment has `initial`, or 0, NaN, an infinity, 1; `initial` counts in the reduction, too, but is no element of a mean.
    Extrema share the gradient evenly at ties.

    >>> import cygrad
    >>> cygrad.segment_reduce(cygrad.tensor([1., 2., 3.]), "sum", lengths=cygrad.tensor([2, 1]))
    tensor([3., 3.])
    """
    d = normalized_dim(axis, checked_operand(segment_reduce, data).ndim)
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError(f"{segment_reduce.__name__}(): indices based reduction is not supported yet.")
    name, empty = _REDUCTIONS[reduce]
    dtype, data = data.dtype, data.to(data.dtype.loops)
    sizes, numbers = call_again(_segments, (tuple(data.shape), lengths, offsets, d, unsafe), {})
    inner = (1,) * (data.ndim - d - 1)
    index, count = numbers.reshape(*numbers.shape, *inner).expand(data.shape), sizes.shape[-1]
    shape = (*data.shape[:d], count + 1, *data.shape[d + 1:])       # the last segment is cut off
    begin = empty if initial is None else float(initial)
    lone = (sizes == 0).reshape(*sizes.shape, *inner)
    if name == "mean":
        total = scatter_reduce(data.new_zeros(shape), d, index, data, "sum").narrow(d, 0, count)
        counts = sizes.reshape(lone.shape)
        total = total if initial is None else total + begin
        return (total / counts.clamp(min=1)).masked_fill(lone, begin).to(dtype)
    start = data.new_full(shape, begin)
    counts_start = initial is not None or name in ("sum", "prod")
    return scatter_reduce(start, d, index, data, name, include_self=counts_start).narrow(d, 0, count).to(dtype).contiguous()
