"""Views that step through memory in other ways than shapes and slices do: windows, and any strides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.compute import windows
from cygrad._core.operands import strided
from cygrad.data import creation
from cygrad.operators._language.arguments import integers
from cygrad.operators._language.batches import entered, left, shifted, sizes_of
from cygrad.operators._language.declaration import operator, rearranging, recorded, unrecorded
from cygrad.operators._language.tangents import joining, linear
from cygrad.ops.dtypes import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Geometry


# ----- Windows -----
def _add_windows(whole: Tensor, g: Tensor, dim: int, size: int, step: int) -> None:
    """Add windows where they lie: the first elements of all of them, at most `step`, which do not overlap, then the next."""
    for place in range(0, size, step):
        width = min(step, size - place)
        part = whole if not whole.ndim else whole.narrow(dim, place, (g.shape[dim] - 1) * step + width)
        part = part.unfold(dim, width, step)
        part += g.narrow(-1, place, width)


@operator(windows.unfold, dinput=lambda g, shape, dim, size, step: g._sum_windows(shape, dim, size, step), into=_add_windows,
          tangent=linear, batch=shifted("dimension"), function=False, copy=True)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """View of all windows of `size` along a dim, `step` apart; the windows are the last dim.

    >>> import cygrad
    >>> cygrad.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """


def _sum_examples(level: Any, operator: Any, windows: Tensor, shape: tuple[int, ...], dim: int, size: int, step: int) -> Tensor:
    if not shape:
        return windows.sum(-1)
    return level.leave(operator(level.enter(windows), (level.size, *shape), dim + 1, size, step))


@operator(node="FoldBackward0", dwindows=lambda g, dim, size, step: g.unfold(dim, size, step), tangent=linear, batch=_sum_examples)
def _sum_windows(windows: Tensor, shape: tuple[int, ...], dim: int, size: int, step: int) -> Tensor:
    """Return the sum of windows where they lie in a tensor of a shape: the transpose of `unfold`."""
    def compute() -> Tensor:
        result = creation.zeros(shape, dtype=windows.dtype)
        _add_windows(result, windows.detach(), dim, size, step)
        return result

    return recorded(_sum_windows, (windows,), unrecorded(compute), dim=dim, size=size, step=step)


# ----- Strides -----
def _geometry(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Geometry:
    """Return how a tensor lies in its memory, and a part of that memory from the tensor's first element on."""
    offset = 0 if storage_offset is None else storage_offset - input.storage_offset()
    return (tuple(input.shape), tuple(input.stride()), input.dtype, integers(size), integers(stride), input.dtype,
            offset * input.itemsize)


def _part_of_tangent(tangent_of: Any, operator: Any, result: Tensor, x: Tensor, size: Sequence[int], stride: Sequence[int],
                     storage_offset: int | None = None) -> Tensor | None:
    """Take from a tangent, which has a geometry of its own, the elements at the part's place in the memory of `x`."""
    t = tangent_of(x)
    return None if t is None else t._gather_view(_geometry(x, size, stride, storage_offset))


def _parts_of_examples(level: Any, operator: Any, x: Tensor, size: Sequence[int], stride: Sequence[int],
                       storage_offset: int | None = None) -> Tensor:
    """Take each example's part of the memory: examples are as far from each other as they were."""
    inner = level.enter(x)
    offset = inner.storage_offset() if storage_offset is None else storage_offset
    return level.leave(operator(inner, (level.size, *sizes_of((size,), {})), (inner.stride(0), *sizes_of((stride,), {})), offset))


@operator(strided.as_strided, dinput=lambda g, geometry: g._scatter_view(geometry), tangent=_part_of_tangent, batch=_parts_of_examples,
          in_place=rearranging, copy=True)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """View of the tensor's memory with given sizes and strides, in elements.

    `storage_offset` (default: the tensor's own) is the place of the first element in the memory.

    >>> import cygrad
    >>> cygrad.arange(4).as_strided((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """


@operator
def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int],
                       storage_offset: int | None = None) -> Tensor:
    """Copy of `input` with `src` written into the part that `as_strided` with the same arguments views.

    >>> import cygrad
    >>> cygrad.zeros(4).as_strided_scatter(cygrad.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    part = input.detach().as_strided(size, stride, storage_offset)      # which checks them
    return input._put_view(src, _geometry(input, part.shape, part.stride(), part.storage_offset()))


def _geometry_of_examples(level: Any, operator: Any, *arguments: Any) -> Tensor:
    """Apply an operator on the geometry of a whole and a part to as many, one behind the other."""
    *tensors, (sizes, strides, dtype, part_sizes, part_strides, part_dtype, offset) = arguments
    if offset < 0:
        raise RuntimeError(f"vmap: {operator.name}() does not support views that reach before their base")
    last = max(sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) * dtype.itemsize,
               offset + sum((n - 1) * s for n, s in zip(part_sizes, part_strides, strict=True)) * part_dtype.itemsize)
    apart = (last // LARGEST + 2) * LARGEST     # bytes: of whole elements of any dtype
    geometry = ((level.size, *sizes), (apart // dtype.itemsize, *strides), dtype,
                (level.size, *part_sizes), (apart // part_dtype.itemsize, *part_strides), part_dtype, offset)
    return left(level, operator(*entered(level, tuple(tensors)), geometry))


@operator(strided._gather_view, dinput=lambda g, geometry: g._scatter_view(geometry), tangent=linear, batch=_geometry_of_examples)
def _gather_view(input: Tensor, geometry: Geometry) -> Tensor:
    """Return the part of a tensor that a geometry describes; zero where that is no part of it."""


@operator(strided._scatter_view, dinput=lambda g, geometry: g._gather_view(geometry), tangent=linear, batch=_geometry_of_examples)
def _scatter_view(input: Tensor, geometry: Geometry) -> Tensor:
    """Return zeros in the shape of a geometry's whole with `input` added at its part: the transpose of gathering."""


@operator(strided._put_view, dinput=lambda g, geometry: g._put_view(g.new_zeros(geometry[3], dtype=geometry[5]), geometry),
          dsrc=lambda g, geometry: g._gather_view(geometry), node="AsStridedScatterBackward0", tangent=joining, batch=_geometry_of_examples)
def _put_view(input: Tensor, src: Tensor, geometry: Geometry) -> Tensor:
    """Return a copy with the part that a geometry describes replaced by `src`."""
