"""Selection by masks and by places in the order of elements, and index_put: read, write, and find the places.

As in `scattering`, arguments are checked before anything is written. Loaded at first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad._core.compute.indexing import array_key
from cygrad._core.compute.windows import broadcast_shape
from cygrad._core.graph.rules import record_by_name
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import from_array, to_array
from cygrad.operators.arguments import checked_tensor, delivered
from cygrad.operators.elementwise import functions, publish
from cygrad.operators.scattering import Plan, check_index, gather, scattering, shape_of, value_for, vector


# ----- Masks -----
def _checked_mask(name: str, message: str, input: Any, mask: Any) -> Any:
    checked_tensor(name, input)
    if not isinstance(mask, TensorImpl):
        raise TypeError(f"{name}(): argument 'mask' (position 2) must be Tensor, not {type(mask).__name__}")
    if mask.dtype.kind != "b":
        raise RuntimeError(f"{message} {mask.dtype}; compare, or convert it with .bool()")
    return mask


def _masking(plan: Callable[..., Plan]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return function and method of a plan: the function broadcasts the input to the mask, the method cannot."""
    function, method = scattering(plan)

    @functools.wraps(function)
    def broadcasting(input: Any, mask: Any, *arguments: Any, **keywords: Any) -> Any:
        if isinstance(input, TensorImpl) and isinstance(mask, TensorImpl):
            input = input.expand(broadcast_shape(mask, input))
        return function(input, mask, *arguments, **keywords)

    return broadcasting, method


def _array_of_mask(input: Any, mask: Any) -> np.ndarray:
    """Return a mask broadcast to the shape of what is written to."""
    shape = broadcast_shape(mask, input)
    if shape != shape_of(input):
        raise RuntimeError(f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(shape)}")
    return np.broadcast_to(to_array(mask), shape)


def _masked_fill(input: Any, mask: Any, value: Any) -> Plan:
    """Copy of `input` with `value`, a number or a 0-d tensor, where the bool tensor `mask` holds.

    >>> import cygrad
    >>> cygrad.masked_fill(cygrad.ones(2), cygrad.tensor([True, False]), 0)
    tensor([0., 1.])
    """
    _checked_mask("masked_fill", "masked_fill_ only supports boolean masks, but got mask with dtype", input, mask)
    filling, where = value_for("masked_fill", input, value), _array_of_mask(input, mask)
    return "masked_fill", (filling, mask), (), lambda array: np.copyto(array, to_array(filling), where=where)


def _masked_scatter(input: Any, mask: Any, source: Any) -> Plan:
    """Copy of `input` with the elements of `source`, in their order, where the bool tensor `mask` holds.

    >>> import cygrad
    >>> cygrad.masked_scatter(cygrad.zeros(3), cygrad.tensor([True, False, True]), cygrad.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    _checked_mask("masked_scatter", "masked_scatter_ only supports boolean masks, but got mask with dtype", input, mask)
    if not isinstance(source, TensorImpl):
        raise TypeError(f"masked_scatter(): argument 'source' (position 3) must be Tensor, not {type(source).__name__}")
    if input.dtype != source.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got {input.dtype} and {source.dtype}")
    where = _array_of_mask(input, mask)
    count = int(np.count_nonzero(where))
    if source.numel() < count:
        raise RuntimeError(f"Number of elements of source < number of ones in mask: {source.numel()} < {count}")

    def write(array: np.ndarray) -> None:
        array[where] = to_array(source).reshape(-1)[:count]

    return "masked_scatter", (source, mask), (shape_of(source),), write


masked_fill, masked_fill_ = _masking(_masked_fill)
masked_scatter, masked_scatter_ = _masking(_masked_scatter)


def masked_select(input: Any, mask: Any, *, out: Any = None) -> Any:
    """Vector of the elements where the bool tensor `mask` holds; both broadcast.

    >>> import cygrad
    >>> cygrad.masked_select(cygrad.tensor([1., 2.]), cygrad.tensor([True, False]))
    tensor([1.])
    """
    _checked_mask("masked_select", "masked_select: expected BoolTensor for mask, got", input, mask)
    input = input.expand(broadcast_shape(mask, input))
    result = from_array(to_array(input)[_array_of_mask(input, mask)])
    return delivered(record_by_name("masked_select", (input, mask), result, (shape_of(input),)), out)


# ----- Places -----
def _index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Plan:
    """Copy of `input` with `values` written, or added (`accumulate`), at the index made of the tensors in the tuple `indices`.

    Where places repeat, one of their values stays, or all are added.

    >>> import cygrad
    >>> cygrad.index_put(cygrad.zeros(3), (cygrad.tensor([0, 2]),), cygrad.tensor(5.))
    tensor([5., 0., 5.])
    """
    checked_tensor("index_put", input)
    if not isinstance(indices, tuple | list):
        raise TypeError(f"index_put(): argument 'indices' (position 2) must be tuple of Tensors, not {type(indices).__name__}")
    for number, index in enumerate(indices):
        if not isinstance(index, TensorImpl):
            raise TypeError(f"expected Tensor as element {number} in argument 1, but got {type(index).__name__}")
    if not isinstance(values, TensorImpl):
        raise TypeError(f"index_put(): argument 'values' (position 3) must be Tensor, not {type(values).__name__}")
    if input.dtype != values.dtype:
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {input.dtype} for the destination and "
                           f"{values.dtype} for the source.")
    key, shape = array_key(input, tuple(indices))
    try:
        written = np.broadcast_to(to_array(values), shape)
    except ValueError:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
                           f"{list(shape)}") from None

    def write(array: np.ndarray) -> None:
        if accumulate:
            np.add.at(array, key, written)
        else:
            array[key] = written

    return "index_put", (values,), (key, accumulate, shape_of(values), values.dtype), write


def _checked_places(name: str, input: Any, index: Any) -> np.ndarray:
    """Return places in the order of elements, which may count from the end."""
    checked_tensor(name, input)
    check_index(name, 2, index)
    if index.dtype.name != "int64":
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype}")
    places, count = to_array(index), input.numel()
    if places.size and not count:
        raise IndexError(f"{name}(): tried to {name} {'from' if name == 'take' else 'into'} an empty tensor")
    outside = (places < -count) | (places >= count)
    if outside.any():
        raise IndexError(f"out of range: tried to access index {places[outside][0]} on a tensor of {count} elements.")
    return places


def take(input: Any, index: Any, *, out: Any = None) -> Any:
    """Elements at places in the flattened input; the result has the shape of `index` (int64).

    >>> import cygrad
    >>> cygrad.take(cygrad.tensor([[1., 2.], [3., 4.]]), cygrad.tensor([0, 3]))
    tensor([1., 4.])
    """
    places = _checked_places("take", input, index)
    result = from_array(np.asarray(to_array(input).reshape(-1)[places]) if input.numel() else np.empty(places.shape, input.dtype.name))
    return delivered(record_by_name("take", (input, index), result, (shape_of(input),)), out)


def _put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Plan:
    """Copy of `input` with the elements of `source` written, or added (`accumulate`), at places in the flattened input.

    >>> import cygrad
    >>> cygrad.put(cygrad.zeros(3), cygrad.tensor([0, -1]), cygrad.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    places = _checked_places("put", input, index)
    if not isinstance(source, TensorImpl):
        raise TypeError(f"put(): argument 'source' (position 3) must be Tensor, not {type(source).__name__}")
    if input.dtype != source.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{input.dtype} and source.dtype = {source.dtype}")
    if source.numel() != index.numel():
        raise IndexError("put_(): Expected source and index to have the same number of elements, but got "
                         f"source.numel() = {source.numel()}, index.numel() = {index.numel()}")

    def write(array: np.ndarray) -> None:
        if not places.size:
            return
        array = vector(array)
        key, values = np.unravel_index(places % array.size, array.shape), to_array(source).reshape(places.shape)
        if accumulate:
            np.add.at(array, key, values)
        else:
            array[key] = values

    return "put", (source, index), (accumulate, shape_of(source)), write


index_put, index_put_ = scattering(_index_put)
put, put_ = scattering(_put)


def take_along_dim(input: Any, indices: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """Elements that `indices` (int64) name along `dim`; the other dims of both broadcast. Without `dim`, of the flattened input.

    Takes what argsort and argmax give.

    >>> import cygrad
    >>> x = cygrad.tensor([[10., 30., 20.]])
    >>> cygrad.take_along_dim(x, x.argmax(1, keepdim=True), 1)
    tensor([[30.]])
    """
    checked_tensor("take_along_dim", input)
    check_index("take_along_dim", 2, indices)
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1), out=out)
    if indices.dtype.name != "int64":
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if input.ndim != indices.ndim:
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
                           f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices")
    d = normalized_dim(dim, input.ndim)
    if input.ndim == 0:
        return gather(input, 0, indices, out=out)
    size = input.shape[d]
    shape = broadcast_shape(input.select(d, 0) if size else input.sum(d), indices.sum(d))
    indices = functions["where"](indices < 0, indices + size, indices)
    return gather(input.expand(shape[:d] + (size,) + shape[d:]), d, indices.expand(shape[:d] + (indices.shape[d],) + shape[d:]), out=out)


def nonzero(input: Any, *, as_tuple: bool = False, out: Any = None) -> Any:
    """Places of the elements that are not 0, row-major: one row of indices each, or (`as_tuple`) one tensor a dim.

    >>> import cygrad
    >>> cygrad.nonzero(cygrad.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    array = to_array(checked_tensor("nonzero", input))
    if as_tuple:
        return tuple(from_array(indices) for indices in np.atleast_1d(array).nonzero())
    return delivered(from_array(np.argwhere(array)), out)


def argwhere(input: Any) -> Any:
    """Places of the elements that are not 0, one row of indices each.

    >>> import cygrad
    >>> cygrad.argwhere(cygrad.tensor([0, 5]))
    tensor([[1]])
    """
    return nonzero(checked_tensor("argwhere", input))


publish(__name__, globals())
