"""Writing where an index says: elements along a dim, slices along a dim, places in the order of elements, any index.

Kernels of places move the elements, NumPy reduces them; arguments are checked first, so that a refused call changes nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.creation import scalar_tensor
from cygrad._core.compute.indexing import checked_key, put_in_order, put_values
from cygrad._core.compute.inplace import check_disjoint
from cygrad._core.compute.places import changed_at, changed_slices_at, names_slices
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.operands.arrays import to_array
from cygrad.data import creation
from cygrad.operators._language.arguments import check_dtype, read_factor
from cygrad.operators._language.batches import along_index, behind, shifted
from cygrad.operators._language.declaration import IN_PLACE, changed, changed_numbers, changing, operator
from cygrad.operators._language.places import (
    check_bounds,
    check_flat_index,
    check_flat_places,
    elements_along,
    key_of,
    length_of,
    slices_along,
    value_for,
    vector,
    vector_of,
)
from cygrad.operators._language.tangents import filling, linear
from cygrad.operators.indexing import with_value_at
from cygrad.ops.dtypes import DTYPES
from cygrad.ops.gradients import attained, padded, product_without, times
from cygrad.ops.refusals import NO_LOOP, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from cygrad.tensor import Tensor
    from cygrad.typing import Number


# ----- Elements along a dim -----
def _check_source(input: Tensor, index: Tensor, src: Tensor) -> None:
    if input.dtype is not src.dtype:
        raise RuntimeError(f"{scatter.__name__}(): Expected self.dtype to be equal to src.dtype: {input.dtype} and {src.dtype}; convert "
                           "one of them first")
    shape, sizes = index.shape or (1,), src.shape or (1,)
    if shape == sizes or not index.numel():
        return
    if len(sizes) != len(shape) or any(n > m for n, m in zip(shape, sizes, strict=True)):
        raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from the dimension "
                           f"that is indexed and to be no larger size than src {list(src.shape)}")


def _read_part(src: Tensor, index: Tensor) -> np.ndarray:
    """Return the part of its source that a scatter reads."""
    array, shape = vector(to_array(src)), index.shape or (1,)
    return array if array.shape == shape else array[tuple([slice(size) for size in shape])]


def _summed(operator: Any, input: Tensor, dim: int, index: Tensor, src: Tensor, out: Tensor | None, **params: Any) -> Any:
    """Add the elements of a source to those that an index names, one for each place; a mean is divided by the `count`."""
    d = elements_along(scatter, input, dim, index, "self", src)
    _check_source(input, index, src)

    def change(numbers: Tensor) -> None:
        changed_at(numbers, d, index, src.detach(), "add")
        if "count" in params:
            array, divide = to_array(numbers), np.divide if input.dtype.is_differentiable else np.floor_divide
            divide(array, to_array(params["count"]), out=array)

    return changed_numbers(operator, (input, src, index), change, out, dim=d, **params)


def _reduced(operator: Any, ufunc: np.ufunc, input: Tensor, dim: int, index: Tensor, src: Tensor, out: Tensor | None) -> Any:
    """Reduce a source into the elements that an index names, one for each place."""
    d = elements_along(scatter, input, dim, index, "self", src)
    _check_source(input, index, src)

    def write(array: np.ndarray) -> None:
        if index.numel():
            ufunc.at(vector(array), key_of(input, index, d), _read_part(src, index))

    return changed(operator, (input, src, index), write, out, dim=d)


@operator(dinput=lambda g, dim, index: g.scatter(dim, index, 0),
          dvalue=lambda g, dim, index, value_shape: padded(g.gather(dim, index), value_shape), dindex=None,
          tangent=filling, batch=shifted("dim"), method=False)
def _scatter(input: Tensor, dim: int, index: Tensor, value: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Return a copy with elements of a tensor, or a number, written where an index says."""
    source = value if isinstance(value, TensorImpl) else None
    d = elements_along(scatter, input, dim, index, "self", source)
    if source is not None:
        _check_source(input, index, source)
    part = (value_for(scatter, input, value).expand(index.shape) if source is None else source).detach()
    return changed_numbers(_scatter, (input, source, index), lambda numbers: changed_at(numbers, d, index, part, "put"), out, dim=d)


@operator(in_place=changing, forms=True)
def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor | Number | None = None, *, value: Number | None = None,
            reduce: Literal["add", "multiply"] | None = None, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with elements of `src`, or a number, written where `index` says along `dim`.

    The inverse of `gather`. `reduce` "add" or "multiply" combines instead of replacing; otherwise one of several elements that go
    to one place stays. RuntimeError where shapes do not fit, dtypes differ or an index is out of bounds.

    >>> import cygrad
    >>> cygrad.scatter(cygrad.zeros(2, 3), 1, cygrad.tensor([[2], [0]]), 5)
    tensor([[0., 0., 5.],
            [5., 0., 0.]])
    """
    source: Any = value if src is None else src
    if source is None:
        raise TypeError(f"{scatter.__name__}() missing 1 required positional arguments: \"src\"; or give a number as value=")
    if not isinstance(src, TensorImpl) and (reduce is not None or isinstance(value, TensorImpl)):
        source = value_for(scatter, input, source).expand(index.shape)
    if reduce is None:
        return _scatter(input, dim, index, source, out=out)
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce}")
    return (scatter_add if reduce == "add" else _scatter_prod)(input, dim, index, source, out=out)


@operator(dinput=lambda g: g, dsrc=lambda g, dim, index, src_shape: padded(g.gather(dim, index), src_shape), dindex=None,
          tangent=linear, batch=shifted("dim"), in_place=changing)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with the elements of `src` added where `index` says along `dim`.

    >>> import cygrad
    >>> cygrad.scatter_add(cygrad.zeros(3), 0, cygrad.tensor([0, 2, 0]), cygrad.ones(3))
    tensor([2., 0., 1.])
    """
    return _summed(scatter_add, input, dim, index, src, out)


# ----- Reductions of elements along a dim -----
def _leading_part(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the input whose gradient is `padded`."""
    if not x.shape:
        return x.reshape(shape)
    return x if tuple(x.shape) == tuple(shape) else x[tuple(slice(size) for size in shape)]


def _product_gradients(g: Tensor, x: Tensor, src: Tensor, index: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the gradients of `x.scatter_reduce(dim, index, src, "prod")` for x and the part of src that was read."""
    part = _leading_part(src, index.shape)
    zero, zero_part = x == 0, part == 0
    groups = (x.masked_fill(zero, 1).scatter_reduce(dim, index, part.masked_fill(zero_part, 1), "prod"),
              zero.to(g.dtype).scatter_add(dim, index, zero_part.to(g.dtype)),
              x.where(zero, 0.0).scatter_add(dim, index, part.where(zero_part, 0.0)))
    return (times(g, product_without(x, *groups)),
            times(g.gather(dim, index), product_without(part, *(group.gather(dim, index) for group in groups))))


def _extremum_gradients(g: Tensor, x: Tensor, src: Tensor, index: Tensor, y: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the gradients of "amax" or "amin", shared among the elements that attain it, for x and the part of src that was read."""
    mask = attained(x, y).to(g.dtype)
    mask_part = attained(_leading_part(src, index.shape), y.gather(dim, index)).to(g.dtype)
    share = g / mask.scatter_add(dim, index, mask_part)
    return mask * share, mask_part * share.gather(dim, index)


@operator(dinput=lambda g: g, dsrc=lambda g, dim, index, src_shape: padded(g.gather(dim, index), src_shape), dindex=None,
          node="ScatterReduceBackward0", tangent=linear, batch=shifted("dim"), method=False)
def _scatter_sum(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    return _summed(_scatter_sum, input, dim, index, src, out)


@operator(dinput=lambda g, input, src, index, dim: _product_gradients(g, input, src, index, dim)[0],
          dsrc=lambda g, input, src, index, dim, src_shape: padded(_product_gradients(g, input, src, index, dim)[1], src_shape),
          dindex=None, node="ScatterReduceBackward0", batch=shifted("dim"), method=False)
def _scatter_prod(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    return _reduced(_scatter_prod, np.multiply, input, dim, index, src, out)


@operator(dinput=lambda g, count: g / count,
          dsrc=lambda g, count, dim, index, src_shape: padded((g / count).gather(dim, index), src_shape), dindex=None,
          node="ScatterReduceBackward0", tangent=linear, batch=shifted("dim"), method=False)
def _scatter_mean(input: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, *, out: Tensor | None = None) -> Tensor:
    count = creation.ones(input.shape, dtype=input.dtype).scatter_add(dim, index, creation.ones(src.shape, dtype=src.dtype))
    count = count if include_self else count - (count != 1).to(count.dtype)
    return _summed(_scatter_mean, input, dim, index, src, out, count=count)


@operator(dinput=lambda g, input, src, index, y, dim: _extremum_gradients(g, input, src, index, y, dim)[0],
          dsrc=lambda g, input, src, index, y, dim, src_shape: padded(_extremum_gradients(g, input, src, index, y, dim)[1], src_shape),
          dindex=None, node="ScatterReduceBackward0", batch=shifted("dim"), method=False)
def _scatter_extremum(input: Tensor, dim: int, index: Tensor, src: Tensor, largest: bool, *, out: Tensor | None = None) -> Tensor:
    return _reduced(_scatter_extremum, np.maximum if largest else np.minimum, input, dim, index, src, out)


def _neutral(reduce: str, dtype: Any) -> Any:
    """Return the number that changes no reduction."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    if dtype.is_floating_point:
        return math.inf if reduce == "amin" else -math.inf
    row = DTYPES[dtype.number]
    return row.highest if reduce == "amin" else row.lowest


refuse("scatter_amax", {"c": NO_LOOP}, "scatter_gather_tensor_cpu_reduce_amax")
refuse("scatter_amin", {"c": NO_LOOP}, "scatter_gather_tensor_cpu_reduce_amin")
refuse("scatter_mean", {"b": NO_LOOP}, "div_floor_cpu")


@operator(in_place=changing)
def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: Literal["sum", "prod", "mean", "amax", "amin"], *,
                   include_self: bool = True, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with the elements of `src` reduced into it where `index` says along `dim`.

    `reduce` is "sum", "prod", "mean", "amax" or "amin". Without `include_self` the elements of `input` at these places do not
    count. Extrema share the gradient evenly at ties.

    >>> import cygrad
    >>> cygrad.scatter_reduce(cygrad.zeros(2), 0, cygrad.tensor([0, 1, 0]), cygrad.tensor([1., 2., 3.]), "amax")
    tensor([3., 2.])
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    check_dtype(f"scatter_{reduce}", input)
    _check_source(input, index, src)
    if not include_self:
        if out is IN_PLACE:
            check_disjoint(input, (src, index))
        input = _scatter(input, dim, index, _neutral(reduce, input.dtype), out=IN_PLACE if out is IN_PLACE else None)
    if reduce == "mean":
        return _scatter_mean(input, dim, index, src, include_self, out=out)
    if reduce in ("amax", "amin"):
        return _scatter_extremum(input, dim, index, src, reduce == "amax", out=out)
    return (_scatter_sum if reduce == "sum" else _scatter_prod)(input, dim, index, src, out=out)


# ----- Slices along a dim -----
def _dim_of_slices(operator: Any, input: Tensor, dim: int, index: Tensor, source: Tensor) -> int:
    """Return the dim along which slices of the source are reduced into those that an index names."""
    d = normalized_dim(dim, input.ndim)
    if names_slices(input, d, index, source):
        return d
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{operator.name}_(): Expected dtype int32/int64 for index but got: {index.dtype}")
    if index.ndim > 1:
        raise IndexError(f"{operator.name}_(): Index is supposed to be a vector, but got dim: {index.ndim} with size: {list(index.shape)}")
    if input.dtype != source.dtype:
        raise RuntimeError(f"{operator.name}_(): self ({input.dtype}) and source ({source.dtype}) must have the same scalar type")
    count = source.shape[d] if source.ndim > d else 1
    if index.numel() != count:
        raise RuntimeError(f"{operator.name}_(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({count}), for "
                           f"dim: {d}")
    raise RuntimeError("source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
                       f"{list(input.shape)} source.shape = {list(source.shape)}")


@operator(dinput=lambda g: g,
          dsource=lambda g, dim, index, source_shape, alpha: g.index_select(dim, index).reshape(source_shape) * alpha, dindex=None,
          tangent=linear, batch=along_index("scatter_add"), in_place=changing)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `alpha` times the slices of `source` added at the places along `dim` that `index` names.

    >>> import cygrad
    >>> cygrad.index_add(cygrad.zeros(3), 0, cygrad.tensor([0, 2, 0]), cygrad.ones(3))
    tensor([2., 0., 1.])
    """
    d = _dim_of_slices(index_add, input, dim, index, source)
    if type(alpha) is not int or alpha != 1:
        alpha = read_factor(index_add, "alpha", alpha, input)
        scalar_tensor(alpha, input.dtype)       # refuses numbers that the dtype does not hold

    def change(numbers: Tensor) -> None:
        values = source.detach().to(numbers.dtype)
        changed_slices_at(numbers, d, index, values if alpha == 1 else values * scalar_tensor(alpha, numbers.dtype), "add")

    return changed_numbers(index_add, (input, source, index), change, out, dim=d, alpha=alpha)


def _put_slices(dim: int, index: Tensor, source: Tensor) -> Callable[[Tensor], None]:
    """Return a function that writes the slices of a source, or a number, at places along a dim."""
    return lambda numbers: put_values(vector_of(numbers), (slice(None),) * dim + (index.reshape(-1),), source.detach(), False)


@operator(dinput=lambda g, dim, index: g.index_fill(dim, index, 0),
          dsource=lambda g, dim, index, source_shape: g.index_select(dim, index).reshape(source_shape), dindex=None,
          tangent=linear, batch=along_index("scatter"), in_place=changing)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with the slices of `source` written at the places along `dim` that `index` names.

    >>> import cygrad
    >>> cygrad.index_copy(cygrad.zeros(3), 0, cygrad.tensor([2, 0]), cygrad.tensor([1., 2.]))
    tensor([2., 0., 1.])
    """
    d = slices_along(index_copy, input, dim, index, ("int64",), "{}_(): Expected a long tensor for index, but got {}")
    if index.ndim > 1:
        raise IndexError(f"{index_copy.__name__}_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if source.ndim == 0 and index.numel() != 1:
        raise IndexError(f"{index_copy.__name__}_(): When source is scalar, index should have one element (got {index.numel()})")
    if source.ndim != input.ndim and source.ndim and input.ndim:
        raise IndexError(f"{index_copy.__name__}_(): When source and destination are not scalars, their dimensionality must match. "
                         f"Source dimensionality ({source.ndim}), destination dimensionality ({input.ndim})")
    if input.dtype != source.dtype:
        raise RuntimeError(f"{index_copy.__name__}_(): self and source expected to have the same dtype, but got "
                           f"(self) {input.dtype} and (source) {source.dtype}")
    ours, theirs = (shape[:d] + shape[d + 1:] for shape in (input.shape, source.shape))
    if ours != theirs:
        raise RuntimeError(f"{index_copy.__name__}_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
                           f"{' '.join(map(str, ours))} at dimension {d} and source slice shape: {' '.join(map(str, theirs))} at dimension "
                           "0.")
    if source.ndim and index.numel() != source.shape[d]:
        raise IndexError(f"{index_copy.__name__}_(): Number of indices ({index.numel()}) should be equal to source.size(dim) "
                         f"({source.shape[d]})")
    check_bounds(index, length_of(input, d), d, IndexError, f"{index_copy.__name__}_(): ")
    return changed_numbers(index_copy, (input, source, index), _put_slices(d, index, source), out, dim=d)


def _filled_batch(level, operator, x, dim, index, value):
    """Fill as `scatter` does, whose index does not count from the end; a tensor is written where a mask says that the index hits."""
    if isinstance(value, TensorImpl):
        return value_for(index_fill, x, value).where(x.new_zeros(x.shape).index_fill(dim, index, 1) != 0, x)
    size = x.shape[behind(dim, x.ndim) - 1] if x.ndim else 1
    return along_index("scatter")(level, operator, x, dim, (index + size).where(index < 0, index), value)


@operator(dinput=lambda g, dim, index: g.index_fill(dim, index, 0),
          dvalue=lambda g, dim, index: (g - g.index_fill(dim, index, 0)).sum(), dindex=None,
          tangent=filling, batch=_filled_batch, in_place=changing, forms=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `value`, a number or a 0-d tensor, in the slices along `dim` that `index` names; it may count from the end.

    >>> import cygrad
    >>> cygrad.index_fill(cygrad.zeros(3), 0, cygrad.tensor([0, -1]), 7)
    tensor([7., 0., 7.])
    """
    d = slices_along(index_fill, input, dim, index, ("int64",), "{}_(): Expected dtype int64 for index, got {}", IndexError)
    if index.ndim > 1:
        raise RuntimeError(f"Index has to be a vector/scalar, but it has {index.ndim} dims")
    filling = value_for(index_fill, input, value)
    check_bounds(index, length_of(input, d), d, IndexError, from_end=True)
    return changed_numbers(index_fill, (input, filling, index), _put_slices(d, index, filling), out, dim=d)


def _slices_reduced(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: Any, *, include_self: bool = True,
                    out: Tensor | None = None) -> Tensor:
    """Reduce slices by the operator that takes an index of whole elements."""
    d = normalized_dim(dim, input.ndim)
    elements = index.reshape([-1 if k == d else 1 for k in range(input.ndim)]).expand(source.shape)
    return scatter_reduce(input, d, elements, source, reduce, include_self=include_self, out=out)


@operator(parts=_slices_reduced, in_place=changing)
def index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: Literal["prod", "mean", "amax", "amin"], *,
                 include_self: bool = True, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with the slices of `source` reduced into the places along `dim` that `index` names; see `scatter_reduce`.

    `reduce` is "prod", "mean", "amax" or "amin"; for sums see `index_add`.

    >>> import cygrad
    >>> cygrad.index_reduce(cygrad.ones(3), 0, cygrad.tensor([0, 2, 0]), cygrad.tensor([2., 3., 4.]), "prod")
    tensor([8., 1., 3.])
    """
    d = _dim_of_slices(index_reduce, input, dim, index, source)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"{index_reduce.__name__}(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    check_bounds(index, length_of(input, d), d, IndexError, "index out of range in self: ")
    return _slices_reduced(input, dim, index, source, reduce, include_self=include_self, out=out)


# ----- Places -----
def _check_put(input: Tensor, index: Tensor, source: Tensor) -> None:
    if input.dtype != source.dtype:
        raise RuntimeError(f"{put.__name__}_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{input.dtype} and source.dtype = {source.dtype}")
    if source.numel() != index.numel():
        raise IndexError(f"{put.__name__}_(): Expected source and index to have the same number of elements, but got "
                         f"source.numel() = {source.numel()}, index.numel() = {index.numel()}")


def _put_batch(level, operator, x, index, source, accumulate=False):
    check_flat_index(put, index)
    _check_put(x, index, source)
    return x.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate).reshape(x.shape)


@operator(dinput=lambda g, index, accumulate: g if accumulate else g.put(index, g.new_zeros(index.shape)),
          dsource=lambda g, index, source_shape: g.take(index).reshape(source_shape), dindex=None,
          tangent=linear, batch=_put_batch, in_place=changing)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Copy of `input` with the elements of `source` written, or added (`accumulate`), at places in the flattened input.

    >>> import cygrad
    >>> cygrad.put(cygrad.zeros(3), cygrad.tensor([0, -1]), cygrad.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    check_flat_places(put, input, index)
    _check_put(input, index, source)
    return changed_numbers(put, (input, source, index), lambda numbers: put_in_order(numbers, index, source, accumulate), out,
                           accumulate=accumulate)


def _check_index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor) -> None:
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"{index_put.__name__}(): argument 'indices' (position 2) must be tuple of Tensors, not {type(indices).__name__}")
    for number, index in enumerate(indices):
        if not isinstance(index, TensorImpl):
            raise TypeError(f"expected Tensor as element {number} in argument 1, but got {type(index).__name__}")
    if input.dtype != values.dtype:
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {input.dtype} for the destination and "
                           f"{values.dtype} for the source.")


def _index_put_batch(level, operator, x, indices, values, accumulate=False):
    _check_index_put(x, indices, values)
    if not accumulate:
        return with_value_at(x, tuple(indices), values)
    places = x.new_zeros(()).expand(x.shape)[tuple(indices)]
    return x + values.expand(places.shape)._scatter_key(tuple(x.shape), tuple(indices), True)


@operator(dinput=lambda g, key, accumulate: g if accumulate else g._with_zeros_at(key),
          dvalues=lambda g, key, values_shape, values_dtype: g[key].sum_to_size(values_shape)._convert(values_dtype),
          tangent=linear, batch=_index_put_batch, in_place=changing)
def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False, *,
              out: Tensor | None = None) -> Tensor:
    """Copy of `input` with `values` written, or added (`accumulate`), at the index made of the tensors in the tuple `indices`.

    Where places repeat, one of their values stays, or all are added.

    >>> import cygrad
    >>> cygrad.index_put(cygrad.zeros(3), (cygrad.tensor([0, 2]),), cygrad.tensor(5.))
    tensor([5., 0., 5.])
    """
    _check_index_put(input, indices, values)
    key, shape = checked_key(input, tuple(indices))
    try:
        written = values.detach().expand(shape)
    except RuntimeError:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
                           f"{list(shape)}") from None
    return changed_numbers(index_put, (input, values), lambda numbers: put_values(numbers, key, written, accumulate), out, key=key,
                           accumulate=accumulate)
