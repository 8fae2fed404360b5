"""Shapes: other shapes of the same elements, elements in another order, tensors joined and cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad.numpy_functions.rows import cast, is_integer, operand, operands, row
from cygrad.operators import joining, shapes
from cygrad.operators._language.arguments import distinct_dims, integers

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

Axes = int | Sequence[int]


@row(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return tuple(operand(a).shape)


@row(np.ndim)
def ndim(a: Any) -> int:
    return operand(a).ndim


@row(np.size)
def size(a: Any, axis: Axes | None = None) -> int:
    a = operand(a)
    return a.numel() if axis is None else math.prod(a.shape[dim] for dim in integers(axis))


# ----- The same elements -----
def _in_order(function: str, order: str, a: Tensor, shape: Any) -> Tensor:
    """Give elements another shape, read and written by rows, or by columns."""
    if order == "C":
        return a.reshape(shape)
    if order == "F":
        return a.permute(*range(a.ndim)[::-1]).reshape(shape[::-1]).permute(*range(len(shape))[::-1])
    raise TypeError(f"np.{function} is not supported on cygrad tensors with order={order!r}, only 'C' and 'F': the order of the memory is "
                    "no matter of values")


@row(np.reshape)
def reshape(a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None) -> Tensor:
    shape = newshape if shape is None else shape        # its name before NumPy 2.1
    return _in_order("reshape", order, operand(a), (shape,) if is_integer(shape) else tuple(shape))


@row(np.ravel)
def ravel(a: Any, order: str = "C") -> Tensor:
    return _in_order("ravel", order, operand(a), (-1,))


@row(np.squeeze)
def squeeze(a: Any, axis: Axes | None = None) -> Tensor:
    a = operand(a)
    if axis is None:
        return a.squeeze()
    if size(a, axis) != 1:
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return a.squeeze(integers(axis))


@row(np.expand_dims)
def expand_dims(a: Any, axis: Axes) -> Tensor:
    a, axes = operand(a), integers(axis)
    for dim in sorted(distinct_dims(axes, a.ndim + len(axes))):
        a = a.unsqueeze(dim)
    return a


@row(np.transpose)
def transpose(a: Any, axes: Any = None) -> Tensor:
    a = operand(a)
    return a.permute(range(a.ndim)[::-1] if axes is None else axes)


row(np.matrix_transpose)(lambda x: operand(x).swapaxes(-1, -2))
row(np.swapaxes)(lambda a, axis1, axis2: operand(a).swapaxes(axis1, axis2))
row(np.moveaxis)(lambda a, source, destination: operand(a).movedim(source, destination))
row(np.broadcast_to)(lambda array, shape: operand(array).broadcast_to(integers(shape)))


@row(np.broadcast_arrays)
def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """Broadcast arrays without numbers as well, which stay arrays: Matplotlib has words and None beside the numbers of its plots."""
    sizes = np.broadcast_shapes(*(np.shape(arg) for arg in args))
    return tuple(operand(arg).broadcast_to(sizes) if isinstance(arg, TensorImpl) or np.asarray(arg).dtype.kind in "biufc"
                 else np.broadcast_to(arg, sizes) for arg in args)


row(np.copy)(lambda a: operand(a).clone())


@row(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x: Any, window_shape: Axes, axis: Axes | None = None) -> Tensor:
    x, sizes = operand(x), integers(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else tuple(normalized_dim(dim, x.ndim) for dim in integers(axis))
    if len(sizes) != len(axes):
        raise ValueError(f"Must provide matching length window_shape and axis; got {len(sizes)} window_shape elements and {len(axes)} axes")
    if any(size < 0 for size in sizes):
        raise ValueError("`window_shape` cannot contain negative values")
    for size, dim in zip(sizes, axes, strict=True):
        if size > x.shape[dim]:
            raise ValueError("window shape cannot be larger than input array shape")
        x = x.unfold(dim, size, 1)
    return x


# ----- The same elements in other places -----
@row(np.flip)
def flip(m: Any, axis: Axes | None = None) -> Tensor:
    m = operand(m)
    return m.flip(tuple(range(m.ndim)) if axis is None else axis)


row(np.fliplr)(lambda m: operand(m).fliplr())
row(np.flipud)(lambda m: operand(m).flipud())


@row(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    a = operand(a)
    if axis is None:
        return a.roll(sum(integers(shift)))
    shifts, axes = np.broadcast_arrays(shift, axis)
    return a.roll(shifts.ravel().tolist(), axes.ravel().tolist())


@row(np.rot90)
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    m, (first, second) = operand(m), axes
    if k % 2:
        m = m.swapaxes(first, second)
    return m if k % 4 == 0 else m.flip(axes) if k % 4 == 2 else m.flip(first if k % 4 == 1 else second)


row(np.tile)(lambda A, reps: operand(A).tile(reps))


@row(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    return operand(a).repeat_interleave(repeats if is_integer(repeats) else operand(repeats), axis)


# ----- Diagonals -----
row(np.diag)(lambda v, k=0: operand(v).diag(k))
row(np.diagflat)(lambda v, k=0: operand(v).diagflat(k))
row(np.diagonal)(lambda a, offset=0, axis1=0, axis2=1: operand(a).diagonal(offset, axis1, axis2))
row(np.tril)(lambda m, k=0: operand(m).tril(k))
row(np.triu)(lambda m, k=0: operand(m).triu(k))


# ----- Joined -----
def _joined(tensors: Sequence[Tensor], axis: int, dtype: Any, casting: str) -> Tensor:
    """Join tensors along an axis; those without elements have dims as well, unlike torch's."""
    if len({tensor.ndim for tensor in tensors}) > 1:
        raise ValueError("all the input array dimensions except for the concatenation axis must match exactly, but the arrays have "
                         f"{', '.join(str(tensor.ndim) for tensor in tensors)} dimensions")
    return cast(joining.cat(tensors, axis), dtype, casting)


@row(np.concatenate)
def concatenate(arrays: Any, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    tensors = operands(arrays)
    if axis is None:
        tensors, axis = [tensor.ravel() for tensor in tensors], 0
    return _joined(tensors, axis, dtype, casting)


@row(np.stack)
def stack(arrays: Any, axis: int = 0, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    return cast(joining.stack(operands(arrays), axis), dtype, casting)


def _at_least(dims: int, arrays: Any) -> list[Tensor]:
    as_many = (None, shapes.atleast_1d, shapes.atleast_2d, shapes.atleast_3d)[dims]
    return [as_many(tensor) for tensor in operands(arrays)]  # type: ignore[misc]


@row(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    return _joined(_at_least(2, tup), 0, dtype, casting)


@row(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    tensors = _at_least(1, tup)
    return _joined(tensors, 0 if tensors[0].ndim == 1 else 1, dtype, casting)


row(np.dstack)(lambda tup: _joined(_at_least(3, tup), 2, None, ""))


@row(np.column_stack)
def column_stack(tup: Any) -> Tensor:
    return _joined([tensor.reshape(-1, 1) if tensor.ndim < 2 else tensor for tensor in operands(tup)], 1, None, "")


@row(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    return concatenate((arr, values), axis)


@row(np.block)
def block(arrays: Any) -> Tensor:
    """Join nested lists: the innermost along the last axis, those around them along the one before, and so on."""
    def depth(part: Any) -> int:
        if isinstance(part, tuple):
            raise TypeError("np.block: arrays is a tuple. Only lists can be used to arrange blocks, and np.block does not allow implicit "
                            "conversion from tuple to ndarray.")
        if not isinstance(part, list):
            return 0
        depths = {depth(inner) for inner in part}
        if len(depths) != 1:
            raise ValueError("List depths are mismatched, or a list is empty: np.block takes lists of one depth")
        return 1 + depths.pop()

    def leaves(part: Any) -> Any:
        return [leaf for inner in part for leaf in leaves(inner)] if isinstance(part, list) else [operand(part)]

    levels = depth(arrays)
    dims = max(levels, *(leaf.ndim for leaf in leaves(arrays)))

    def joined(part: Any, level: int) -> Tensor:
        if level:
            return joining.cat([joined(inner, level - 1) for inner in part], -level)
        tensor = operand(part)
        return tensor.reshape((1,) * (dims - tensor.ndim) + tuple(tensor.shape))

    return joined(arrays, levels)


# ----- Cut -----
@row(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    sections = indices_or_sections
    return [*operand(ary).tensor_split(sections if is_integer(sections) else [int(place) for place in sections], axis)]


@row(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    if is_integer(indices_or_sections) and operand(ary).shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


row(np.hsplit)(lambda ary, indices_or_sections: [*operand(ary).hsplit(indices_or_sections)])
row(np.vsplit)(lambda ary, indices_or_sections: [*operand(ary).vsplit(indices_or_sections)])
row(np.dsplit)(lambda ary, indices_or_sections: [*operand(ary).dsplit(indices_or_sections)])


if hasattr(np, "unstack"):      # from NumPy 2.1 on
    @row(np.unstack)
    def unstack(x: Any, *, axis: int = 0) -> tuple[Tensor, ...]:
        x = operand(x)
        if not x.ndim:
            raise ValueError("Input array must be at least 1-d.")
        return tuple(x.unbind(axis))


@row(np.meshgrid)
def meshgrid(*xi: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    return joining.meshgrid(*[operand(x).ravel() for x in xi], indexing=indexing)  # type: ignore[arg-type]
