"""Reading where an index says, and finding places: gather, index_select, take, nonzero and their kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cygrad._core.compute.creation import empty_tensor
from cygrad._core.compute.lookups import places_in, taken_in_order
from cygrad._core.compute.places import elements_at, slices_at, spread_at
from cygrad._core.levels.batches import batched_level
from cygrad._core.memory.sizes import index_argument, normalized_dim
from cygrad._core.memory.storage import dtype_by_name
from cygrad._core.operands.arrays import to_array
from cygrad._core.operands.operands import broadcast_shape
from cygrad.operators._language.arguments import SEQUENCE, delivered, integers
from cygrad.operators._language.batches import along_index, behind, dynamic_shape
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.places import check_flat_index, check_flat_places, elements_along
from cygrad.operators._language.tangents import constant, first_linear
from cygrad.operators._sparse.pattern import pattern_of_coordinates

if TYPE_CHECKING:
    from typing import Literal

    from cygrad.tensor import Tensor
    from cygrad.typing import Ints


# ----- Along a dim -----
def _gathered_batch(level, operator, x, dim, index, **keywords):
    if not x.ndim:      # counts as a vector of one element
        behind(dim, 0)
        return x.reshape(1).gather(0, index.reshape(-1), **keywords).reshape(index.shape)
    if x.ndim == 1 and not index.ndim:
        return x.gather(dim, index.reshape(1), **keywords).reshape(())
    return level.leave(operator(level.enter(x), behind(dim, x.ndim), level.enter(index), **keywords))


def _spread_batch(level, operator, x, dim, index, shape):
    if not index.ndim or not shape:
        return operator(x.reshape(-1), dim, index.reshape(-1), shape or (1,)).reshape(shape)
    return level.leave(operator(level.enter(x), dim + 1, level.enter(index), (level.size, *shape)))


@operator(dinput=lambda g, dim, index: g.gather(dim, index), dindex=None, tangent=first_linear, batch=_spread_batch)
def _spread_along(input: Tensor, dim: int, index: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return zeros with elements added at places along a dim: the transpose of `gather`."""
    return recorded(_spread_along, (input, index), spread_at(input, dim, index, shape), dim=dim)


def _sparse_at(g: Tensor, input_shape: tuple[int, ...], dim: int, index: Tensor) -> Tensor:
    """Return a sparse tensor of elements at their places along a dim; inside of vmap, where places may differ, a dense one."""
    if not input_shape or batched_level(g) is not None or batched_level(index) is not None:
        return g._spread_along(dim, index, input_shape)
    coordinates = np.indices(index.shape).reshape(index.ndim, -1)
    coordinates[dim] = to_array(index).reshape(-1)
    return pattern_of_coordinates(coordinates, input_shape, False).around(g.reshape(-1))


@operator(dinput=lambda g, input_shape, dim, index: _sparse_at(g, input_shape, dim, index), dindex=None, tangent=first_linear,
          batch=_gathered_batch, node="GatherBackward0")
def _gather_with_sparse_gradient(input: Tensor, dim: int, index: Tensor) -> Tensor:
    return recorded(_gather_with_sparse_gradient, (input, index), elements_at(input, dim, index), dim=dim)


@operator(dinput=lambda g, input_shape, dim, index: g._spread_along(dim, index, input_shape), dindex=None,
          into=lambda whole, g, dim, index: whole.scatter_add_(dim, index, g), tangent=first_linear, batch=_gathered_batch)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """Elements that `index` names along `dim`, each at its own place in the other dims.

    `index` (int32 or int64) has as many dims as `input`, no longer than `input`'s except in `dim`; the result has its
    shape. With `sparse_grad` the gradient is a sparse tensor, of the elements that are named. RuntimeError where the index does not
    fit or is out of bounds.

    >>> import cygrad
    >>> cygrad.gather(cygrad.tensor([[1, 2], [3, 4]]), 1, cygrad.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    d = elements_along(gather, input, dim, index, "input")
    if sparse_grad:
        return delivered(_gather_with_sparse_gradient(input, d, index), out)
    return delivered(recorded(gather, (input, index), elements_at(input, d, index), dim=d), out)


@operator(dinput=lambda g, input_shape, dim, index: g.new_zeros(input_shape).index_add(dim, index, g), dindex=None,
          into=lambda whole, g, dim, index: whole.index_add_(dim, index, g), tangent=first_linear, batch=along_index("gather"))
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Slices of `input` along `dim` that the vector `index` (int32 or int64) names.

    >>> import cygrad
    >>> cygrad.index_select(cygrad.arange(6).reshape(3, 2), 0, cygrad.tensor([2, 0]))
    tensor([[4, 5],
            [0, 1]])
    """
    d = normalized_dim(dim, input.ndim)
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{index_select.__name__}(): Expected dtype int32 or int64 for index")
    if index.ndim > 1:
        raise IndexError(f"{index_select.__name__}(): Index is supposed to be a vector, but it has {index.ndim} dims")
    if input.ndim == 0 and index.numel() != 1:
        raise RuntimeError(f"{index_select.__name__}(): Index to scalar can have only 1 value, got {index.numel()} value(s)")
    result = slices_at(input, d, index)
    return delivered(recorded(index_select, (input, index), result if input.ndim else result.reshape(()), dim=d), out)


@operator
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements that `indices` (int64) name along `dim`; the other dims of both broadcast. Without `dim`, of the flattened input.

    Takes the results of argsort and argmax.

    >>> import cygrad
    >>> x = cygrad.tensor([[10., 30., 20.]])
    >>> cygrad.take_along_dim(x, x.argmax(1, keepdim=True), 1)
    tensor([[30.]])
    """
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1), out=out)
    if indices.dtype.name != "int64":
        raise RuntimeError(f"torch.{take_along_dim.__name__}(): dtype of indices should be Long but got {indices.dtype}")
    if input.ndim != indices.ndim:
        raise RuntimeError(f"torch.{take_along_dim.__name__}(): input and indices should have the same number of dimensions, but got "
                           f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices")
    d = normalized_dim(dim, input.ndim)
    if input.ndim == 0:
        return gather(input, 0, indices, out=out)
    size = input.shape[d]
    shape = broadcast_shape(input.select(d, 0) if size else input.sum(d), indices.sum(d))
    indices = (indices + size).where(indices < 0, indices)
    return gather(input.expand(shape[:d] + (size,) + shape[d:]), d, indices.expand(shape[:d] + (indices.shape[d],) + shape[d:]), out=out)


# ----- In the order of elements -----
def _taken_batch(level, operator, x, index):
    check_flat_index(take, index)
    return x.reshape(-1)[index]


@operator(dinput=lambda g, input_shape, index: g.new_zeros(input_shape).put(index, g, True), dindex=None,
          into=lambda whole, g, index: whole.put_(index, g, True), tangent=first_linear, batch=_taken_batch)
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements at places in the flattened input; the result has the shape of `index` (int64).

    >>> import cygrad
    >>> cygrad.take(cygrad.tensor([[1., 2.], [3., 4.]]), cygrad.tensor([0, 3]))
    tensor([1., 4.])
    """
    check_flat_index(take, index)
    result = taken_in_order(input, index)
    if result is None:
        check_flat_places(take, input, index)
    return delivered(recorded(take, (input, index), result), out)


# ----- Places of elements that are not 0 -----
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False, out: Tensor | None = None) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@operator(tangent=constant, batch=dynamic_shape)
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """Places of the elements that are not 0, row-major: one row of indices each, or (`as_tuple`) one tensor a dim.

    >>> import cygrad
    >>> cygrad.nonzero(cygrad.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    if as_tuple and out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    places = places_in(input)
    return places.unbind() if as_tuple else delivered(places[:input.ndim].mT, out)


@operator(tangent=constant, batch=dynamic_shape)
def argwhere(input: Tensor) -> Tensor:
    """Places of the elements that are not 0, one row of indices each.

    >>> import cygrad
    >>> cygrad.argwhere(cygrad.tensor([0, 5]))
    tensor([[1]])
    """
    return nonzero(input)


@operator(method=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """Places of the first `size` elements that are not 0, row-major, one row of indices each; rows that are left over have `fill_value`.

    Of a fixed shape, unlike `nonzero`. RuntimeError for a negative size, and for `out` that is not int64.

    >>> import cygrad
    >>> cygrad.nonzero_static(cygrad.tensor([0, 3, 5]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    count, filling = index_argument(size, "size"), index_argument(fill_value, "fill_value")
    if count < 0:
        raise RuntimeError(f"{nonzero_static.__name__}: 'size' must be an non-negative integer, got {count}")
    if out is not None and out.dtype.name != "int64":
        raise RuntimeError(f"{nonzero_static.__name__}: Expected out tensor to have scalar type Long but got scalar type "
                           f"{out.dtype.name}")
    result = empty_tensor((count, input.ndim), dtype_by_name["int64"]).fill_(filling)
    places = nonzero(input)[:count]
    result[:len(places)] = places
    return delivered(result, out)


@operator(method=False)
def unravel_index(indices: Tensor, shape: Ints) -> tuple[Tensor, ...]:
    """Places in a tensor of some shape, a tensor for each dim, of indices into its elements in row-major order.

    The indices are not compared with the size, as in torch: those beyond the end go round in the first dim. TypeError for indices that are
    no integers, ValueError for negative sizes.

    >>> import cygrad
    >>> cygrad.unravel_index(cygrad.tensor([3, 5]), (2, 3))
    (tensor([1, 1]), tensor([0, 2]))
    """
    if indices.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = tuple(shape) if isinstance(shape, SEQUENCE) else (shape,)
    for size in sizes:
        if isinstance(size, bool) or not hasattr(type(size), "__index__"):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    sizes = integers(sizes)
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    indices = indices.to(dtype_by_name["int64"])
    results: list[Tensor] = []
    for size in reversed(sizes):
        results.append(indices.remainder(size) if indices.numel() else indices.clone())
        indices = indices.floor_divide(size) if indices.numel() else indices
    return tuple(reversed(results))
