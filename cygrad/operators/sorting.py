"""Sorting, the elements at a rank, places in sorted tensors, membership and distinct elements; the gradient goes to the elements chosen.

NumPy's sorts put NaN last. Equal elements keep their order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from cygrad._core.compute.places import elements_at, fits_ranking, ranked
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import dtype_by_name
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.limits import promote_types
from cygrad.operators._language.arguments import (
    ValuesAndIndices,
    checked_operand,
    checked_tensor,
    delivered,
    delivered_together,
    exact_integer,
    pair_type,
)
from cygrad.operators._language.batches import dynamic_shape, is_tensor, shifted
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.tangents import constant, selecting
from cygrad.ops.gradients import shared_among
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:

    from cygrad.tensor import Tensor
    from cygrad.typing import Number, Pair


# ----- Order -----
def _ranked(array: np.ndarray, dim: int, descending: bool = False) -> np.ndarray:
    """Return the places along a dim in the order of their elements, equal ones as they stand."""
    if descending:      # backwards twice, so that equal elements keep their order
        backwards = (*(slice(None),) * dim, slice(None, None, -1))
        return array.shape[dim] - 1 - _ranked(array[backwards], dim)[backwards]
    if not _is_long(array, dim) or array.itemsize < 4:      # of two bytes and less the stable sort is by digits
        return array.argsort(dim, kind="stable")
    # Where NumPy has vectors for it, its other sort takes a tenth of the time. Then the places of a run of equal elements are sorted.
    rows, length = np.moveaxis(array, dim, -1), array.shape[dim]
    places = rows.argsort()
    result = _along(rows, places, -1)
    before = result[..., :-1]
    begins = (result[..., 1:] != before) & (before == before)    # NaN is last, and one run
    if not begins.all():
        runs = np.zeros(places.shape, np.int64)
        np.cumsum(begins, -1, out=runs[..., 1:])
        places += runs * length
        places.sort()
        places -= runs * length
    return np.ascontiguousarray(np.moveaxis(places, -1, dim))


def _along(array: np.ndarray, places: np.ndarray, dim: int) -> np.ndarray:
    """Return the elements at places along a dim."""
    return array[places] if array.ndim == 1 else np.take_along_axis(array, places, dim)


def _is_long(array: np.ndarray, dim: int) -> bool:
    """Return True if real numbers along a dim are so many that a sort takes longer than some passes."""
    return array.shape[dim] >= 512 and array.dtype.kind != "c"


def _at_rank(array: np.ndarray, dim: int, rank: int) -> np.ndarray:
    """Return the places along a dim, kept, of the elements that sorting would put at a rank."""
    if _is_long(array, dim):
        element = np.take(np.partition(array, rank, dim), [rank], dim)
        if (element == element).all():
            before = (array < element).sum(dim, keepdims=True)
            return ((array == element).cumsum(dim) > rank - before).argmax(dim, keepdims=True)
    return _ranked(array, dim)[*(slice(None),) * dim, rank:rank + 1]


def _leading(array: np.ndarray, dim: int, count: int, descending: bool) -> np.ndarray:
    """Return the first places along a dim in the order of their elements."""
    along = (slice(None),) * dim
    if _is_long(array, dim) and 0 < count < array.shape[dim] // 2:
        border = array.shape[dim] - count if descending else count - 1
        parted = np.argpartition(array, border, dim)
        places = np.sort(parted[*along, border:] if descending else parted[*along, :count], dim)
        result, last = (_along(array, chosen, dim) for chosen in (places, parted[*along, border:border + 1]))
        if (last == last).all() and ((result == last).sum(dim) == (array == last).sum(dim)).all():   # else others are equal to the last one
            return _along(places, _ranked(result, dim, descending), dim)
    return _ranked(array, dim, descending)[*along, :count]


def _places(input: Tensor, dim: int, count: int, descending: bool) -> Tensor:
    """Return the first places along a dim in the order of their elements."""
    if fits_ranking(input, dim):
        return ranked(input, dim, descending, count)
    return computed(_leading(to_array(input), dim, count, descending))


def _chosen(operator: Any, pair: type[ValuesAndIndices], input: Tensor, dim: int, indices: Tensor, drop: bool,
            out: Pair | None) -> ValuesAndIndices:
    """Return the elements at the places along a dim, and the places; `drop` the dim, which has one."""
    full_indices = places = indices if input.ndim else indices.reshape(())
    results = elements_at(input, dim, full_indices)
    if drop and input.ndim:
        results, places = results.squeeze(dim), places.squeeze(dim).clone()
    result = recorded(operator, (input, full_indices), results, 2, dim=dim)
    return delivered_together(pair, (result, places), out)


def _to_their_places(g, input_shape, dim, indices):
    """Return the gradient of elements that were chosen along a dim."""
    return g.reshape(indices.shape)._spread_along(dim, indices, input_shape)


_sorted, _top, _kth = map(pair_type, ("sort", "topk", "kthvalue"))


@operator(dinput=_to_their_places, dindices=None, tangent=selecting, batch=shifted("dim"),
          refuses={"c": RuntimeError("Sort does not support complex dtypes on CPU")})
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False, *, out: Pair | None = None) -> ValuesAndIndices:
    """Elements in order along `dim`, with the places they had: (values, indices). Equal ones keep their order; NaN is the largest.

    >>> import cygrad
    >>> cygrad.sort(cygrad.tensor([3., 1., 2.])).indices
    tensor([1, 2, 0])
    """
    d = normalized_dim(dim, checked_operand(sort, input).ndim)
    return _chosen(sort, _sorted, input, d, _places(input, d, input.shape[d] if input.ndim else 1, descending), False, out)


@operator(tangent=constant, batch=shifted("dim"),
          refuses={"c": RuntimeError("Sort does not support complex dtypes on CPU")})
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Places of the elements along `dim` in their order; see `sort`.

    >>> import cygrad
    >>> cygrad.argsort(cygrad.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    return delivered(sort(checked_operand(argsort, input).detach(), dim, descending).indices, out)


@operator
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements in order along the first dim.

    >>> import cygrad
    >>> cygrad.msort(cygrad.tensor([3., 1., 2.]))
    tensor([1., 2., 3.])
    """
    return delivered(sort(input, 0).values, out)


@operator(dinput=_to_their_places, dindices=None, tangent=selecting, batch=shifted("dim"),
          refuses={"c": RuntimeError("topk does not support complex dtypes on CPU"), "b": RuntimeError("topk does not support bool "
                                     "dtypes on CPU")})
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Pair | None = None) -> ValuesAndIndices:
    """The `k` largest elements along `dim` (or smallest), in order, with their places: (values, indices).

    >>> import cygrad
    >>> cygrad.topk(cygrad.tensor([3., 1., 2.]), 2).values
    tensor([3., 2.])
    """
    d, k = normalized_dim(dim, checked_operand(topk, input).ndim), exact_integer(k)
    size = input.shape[d] if input.ndim else 1
    if not 0 <= k <= size:
        raise RuntimeError(f"selected index k out of range: k is {k}, dimension {d} has size {size}")
    if not input.ndim and not k:
        raise RuntimeError("selected index k out of range: a 0-d tensor has one element, which k=0 leaves out")
    return _chosen(topk, _top, input, d, _places(input, d, k, largest), False, out)


@operator(dinput=_to_their_places, dindices=None, tangent=selecting, batch=shifted("dim"),
          refuses={"c": NO_LOOP})
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Pair | None = None) -> ValuesAndIndices:
    """The `k`-th smallest element along `dim`, counted from 1, with its place: (values, indices).

    >>> import cygrad
    >>> cygrad.kthvalue(cygrad.tensor([3., 1., 2.]), 2).values
    tensor(2.)
    """
    d, k = normalized_dim(dim, checked_operand(kthvalue, input).ndim), exact_integer(k)
    array = np.atleast_1d(to_array(input))
    if not array.shape[d]:
        raise IndexError(f"{kthvalue.__name__}(): Expected reduction dim {d} to have non-zero size.")
    if not 1 <= k <= array.shape[d]:
        raise RuntimeError(f"{kthvalue.__name__}(): selected number k out of range for dimension {d}: k is {k}, the size {array.shape[d]}")
    return _chosen(kthvalue, _kth, input, d, computed(_at_rank(array, d, k - 1)), not keepdim, out)


# ----- Medians -----
def _middle(array: np.ndarray, dim: int, skips_nan: bool) -> np.ndarray:
    """Return the place of the lower median along a dim, kept."""
    missing = array != array
    if not missing.any():
        return _at_rank(array, dim, (array.shape[dim] - 1) // 2)
    count = array.shape[dim] - missing.sum(dim, keepdims=True) * skips_nan
    result = _along(_ranked(array, dim), np.maximum(count - 1, 0) // 2, dim)
    return result if skips_nan else np.where(missing.any(dim, keepdims=True), missing.argmax(dim, keepdims=True), result)


def _middle_along(operator: Any, pair: type[ValuesAndIndices], input: Tensor, dim: int, keepdim: bool,
                  out: Pair | None) -> ValuesAndIndices:
    name = pair.__name__
    d = normalized_dim(dim, input.ndim)
    array = np.atleast_1d(to_array(input))
    if not array.shape[d]:
        raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    return _chosen(operator, pair, input, d, computed(_middle(array, d, name == "nanmedian")), not keepdim, out)


def _middle_of_all(operator: Any, name: str, input: Tensor) -> Tensor:
    array = to_array(input).reshape(-1)
    if not array.size:
        if array.dtype.kind != "f":
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        return input.new_full((), math.nan)
    return recorded(operator, (input,), computed(np.array(array[_middle(array, 0, name == "nanmedian")[0]], array.dtype)))


def _of_each(along):
    """Take the median of each example along the dim of its elements."""
    def batch(level, operator, x):
        return level.leave(along(level.enter(x).reshape(level.size, -1), 1, False).values)

    return batch


_median_pair, _nanmedian_pair = pair_type("median"), pair_type("nanmedian")


@operator(dinput=_to_their_places, dindices=None, tangent=selecting, batch=shifted("dim"), method=False)
def _median(input: Tensor, dim: int, keepdim: bool, *, out: Pair | None = None) -> ValuesAndIndices:
    return _middle_along(_median, _median_pair, input, dim, keepdim, out)


@operator(dinput=lambda g, input, y: shared_among(g, input, y, None), node="MedianBackward0", batch=_of_each(_median), method=False,
          refuses={"c": NO_LOOP}, loop="median_cpu")
def _median_of_all(input: Tensor) -> Tensor:
    return _middle_of_all(_median_of_all, "median", input)


@overload
def median(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def median(input: Tensor, dim: int, keepdim: bool = False, *, out: Pair | None = None) -> ValuesAndIndices: ...
@operator(refuses={"c": NO_LOOP}, loop="median_out")
def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """Lower median of all elements, or along `dim`; NaN if there is one.

    With `dim` also its place: (values, indices). Of all, equal ones share the gradient.

    >>> import cygrad
    >>> cygrad.median(cygrad.tensor([3., 1., 2., 4.]))
    tensor(2.)
    """
    checked_operand(_median_of_all if dim is None else median, input)
    return delivered(_median_of_all(input), out) if dim is None else _median(input, dim, keepdim, out=out)


@operator(dinput=_to_their_places, dindices=None, tangent=selecting, batch=shifted("dim"), method=False)
def _nanmedian(input: Tensor, dim: int, keepdim: bool, *, out: Pair | None = None) -> ValuesAndIndices:
    return _middle_along(_nanmedian, _nanmedian_pair, input, dim, keepdim, out)


@operator(dinput=lambda g, input, y: shared_among(g, input, y, None), node="NanmedianBackward0", batch=_of_each(_nanmedian), method=False,
          refuses={"c": NO_LOOP}, loop="median_cpu")
def _nanmedian_of_all(input: Tensor) -> Tensor:
    return _middle_of_all(_nanmedian_of_all, "nanmedian", input)


@overload
def nanmedian(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = False, *, out: Pair | None = None) -> ValuesAndIndices: ...
@operator(refuses={"c": NO_LOOP}, loop="median_out")
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """Lower median of the elements that are not NaN, or along `dim`.

    With `dim` also its place: (values, indices). Of all, equal ones share the gradient.

    >>> import cygrad
    >>> cygrad.nanmedian(cygrad.tensor([3., cygrad.nan, 2., 4.]))
    tensor(3.)
    """
    checked_operand(_nanmedian_of_all if dim is None else nanmedian, input)
    return delivered(_nanmedian_of_all(input), out) if dim is None else _nanmedian(input, dim, keepdim, out=out)


# ----- Places in sorted tensors -----
def _check_search(sequence: Tensor, input: Tensor | Number | None, right: bool, side: str | None, sorter: Tensor | None) -> None:
    if not isinstance(input, (TensorImpl, int, float, np.number, np.bool_)):
        raise TypeError(f"{searchsorted.__name__}() received an invalid combination of arguments - got "
                        f"({type(sequence).__name__}, {type(input).__name__}), but expected a tensor, and a tensor or a number")
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    shape, input_shape = list(sequence.shape), list(input.shape) if isinstance(input, TensorImpl) else []
    if len(shape) != 1 and not input_shape:
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
                           f"boundaries tensor dim({len(shape)}) and input value's dim(0) numel(1)")
    if not shape:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if len(shape) != 1 and shape[:-1] != input_shape[:-1]:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
                           f"and input value tensor must match, but we got boundaries tensor {shape} and input value tensor {input_shape}")
    if sorter is None:
        return
    if not isinstance(sorter, TensorImpl):
        raise TypeError(f"{searchsorted.__name__}(): argument 'sorter' must be Tensor, not {type(sorter).__name__}")
    if list(sorter.shape) != shape:
        raise RuntimeError(f"torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {shape} and got "
                           f"sorter tensor {list(sorter.shape)}")
    if sorter.dtype.name != "int64":
        raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype}")


def _ranks_batch(level, operator, sorted_sequence, input=None, *, out_int32=False, right=False, side=None, sorter=None, self=None):
    """Count the elements that lie before each value; NaN is the largest."""
    sequence, values = sorted_sequence, self if input is None else input
    _check_search(sequence, values, right, side, sorter)
    values = values if is_tensor(values) else sequence.new_full((), values, dtype=float)
    sequence = sequence if sorter is None else sequence.gather(-1, sorter)
    row, value = sequence if sequence.ndim == 1 else sequence.unsqueeze(-2), values.unsqueeze(-1)
    before = row <= value if right or side == "right" else row < value
    missing = value != value
    before = before | missing if right or side == "right" else before | missing & (row == row)
    return before.sum(-1).int() if out_int32 else before.sum(-1)


@operator(tangent=constant, batch=_ranks_batch, method=False,
          refuses={"c": NO_LOOP}, loop="searchsorted_out_cpu", forms=True)
def searchsorted(sorted_sequence: Tensor, input: Tensor | Number | None = None, *, out_int32: bool = False, right: bool = False,
                 side: Literal["left", "right"] | None = None, sorter: Tensor | None = None, out: Tensor | None = None,
                 self: Number | None = None) -> Tensor:
    """Places where the numbers of `input` keep a sorted last dim in order: before equal elements, or behind them (`right`).

    The other dims of both are the same, or the sequence is a vector. `side="right"` is another way to say `right`; `sorter` gives
    the places of the sequence in order, if it is not sorted. NaN is the largest. The result is int64, or int32 (`out_int32`).

    >>> import cygrad
    >>> cygrad.searchsorted(cygrad.tensor([1., 3., 5.]), cygrad.tensor([0., 3., 9.]))
    tensor([0, 1, 3])
    """
    input = self if input is None else input
    _check_search(sorted_sequence, input, right, side, sorter)
    index_dtype = dtype_by_name["int32" if out_int32 else "int64"]
    if out is not None and isinstance(out, TensorImpl) and out.dtype is not index_dtype:
        raise RuntimeError(f"torch.{searchsorted.__name__}(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
                           f"depending on whether out_int32 flag is True, but we got output tensor's dtype {out.dtype} and out_int32 flag "
                           f"is {bool(out_int32)}")
    checked_operand(searchsorted, sorted_sequence)
    values = np.asarray(to_array(input) if isinstance(input, TensorImpl) else input)
    checked_operand(searchsorted, values)
    array = to_array(sorted_sequence)
    if sorter is not None:
        places = to_array(sorter)
        if ((places < 0) | (places >= array.shape[-1])).any():
            raise RuntimeError(f"torch.{searchsorted.__name__}(): sorter index out of range")
        array = np.take_along_axis(array, places, -1)
    where: Literal["left", "right"] = "right" if right or side == "right" else "left"
    result = np.empty(values.shape, index_dtype.name)
    if array.ndim == 1:
        result[...] = np.searchsorted(array, values, where)
    else:
        for row in np.ndindex(array.shape[:-1]):
            result[row] = np.searchsorted(array[row], values[row], where)
    return delivered(computed(result), out)


@operator(method=False)
def bucketize(input: Tensor | Number | None = None, boundaries: Tensor | None = None, *, out_int32: bool = False, right: bool = False,
              out: Tensor | None = None, self: Number | None = None) -> Tensor:
    """Number of the bucket between sorted boundaries that each element lies in; the upper one (or with `right` the lower) belongs to it.

    >>> import cygrad
    >>> cygrad.bucketize(cygrad.tensor([0., 3., 9.]), cygrad.tensor([1., 3., 5.]))
    tensor([0, 1, 3])
    """
    sequence = checked_tensor(bucketize, boundaries, "boundaries", 2)
    if sequence.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({sequence.ndim})")
    return searchsorted(sequence, self if input is None else input, out_int32=out_int32, right=right, out=out)


# ----- Membership -----
def _members(elements: Any, test_elements: Any, element: Any, test_element: Any) -> tuple[Any, Any]:
    """Return the elements and the tensor they are looked for in; one may be a number."""
    pair = (element if elements is None else elements, test_element if test_elements is None else test_elements)
    numbers = [isinstance(value, (int, float)) for value in pair]
    if all(numbers) or not all(isinstance(value, (int, float, TensorImpl)) for value in pair):
        raise TypeError(f"{isin.__name__}() received an invalid combination of arguments - got "
                        f"({', '.join(type(value).__name__ for value in pair)}), but expected two tensors, or a tensor and a number")
    return pair


def _among_batch(level, operator, elements=None, test_elements=None, *, assume_unique=False, invert=False, element=None, test_element=None):
    elements, tests = _members(elements, test_elements, element, test_element)
    if is_tensor(elements):
        result = (elements.unsqueeze(-1) == (tests.reshape(-1) if is_tensor(tests) else tests)).any(-1)
    else:
        result = (tests == elements).any()
    return ~result if invert else result


@operator(tangent=constant, batch=_among_batch, method=False,
          refuses={"bc": RuntimeError("Unsupported input type encountered for {name}(): {dtype}")})
def isin(elements: Tensor | Number | None = None, test_elements: Tensor | Number | None = None, *, assume_unique: bool = False,
         invert: bool = False, element: Number | None = None, test_element: Number | None = None, out: Tensor | None = None) -> Tensor:
    """Say of each element whether it is among the test elements, or (`invert`) whether it is not; NaN is among none.

    One of the two may be a number, also by the names `element` and `test_element`. `assume_unique` promises that no element
    repeats in either, and saves time.

    >>> import cygrad
    >>> cygrad.isin(cygrad.tensor([1, 2, 3]), cygrad.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    pair = _members(elements, test_elements, element, test_element)
    if not all(isinstance(value, TensorImpl) for value in pair):
        result = pair[0] == pair[1]
        result = result if isinstance(pair[0], TensorImpl) else result.any()
        return delivered(~result if invert else result, out)
    dtype = promote_types(pair[0].dtype, pair[1].dtype)
    array, tests = (to_array(checked_operand(isin, value.detach().to(dtype))) for value in pair)
    return delivered(computed(np.asarray(np.isin(array, tests, assume_unique=assume_unique, invert=invert))), out)


# ----- Distinct elements -----
def _in_order(rows: np.ndarray) -> np.ndarray:
    """Return the places of the rows in their order, the first column deciding first; equal ones as they stand."""
    if rows.shape[1] == 1:
        return _ranked(rows[:, 0], 0)
    return np.lexsort(rows.T[::-1])


def _found(operator: Any, input: Tensor, dim: int | None, is_sorted: bool, return_inverse: bool, return_counts: bool,
           return_index: bool = False) -> Any:
    """Return the first of each run of equal slices in their order, or as they stand, and the other requested results."""
    checked_operand(operator, input)
    if dim is None:
        d, whole = 0, input.reshape(-1)
    else:
        d = normalized_dim(dim, input.ndim)
        if not input.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        whole = input
    size, columns = whole.shape[d], math.prod(whole.shape[:d] + whole.shape[d + 1:])
    if not columns:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: the shape is "
                           f"{list(input.shape)} and dim is {dim}")
    rows = np.moveaxis(to_array(whole), d, 0).reshape(size, columns)
    order = _in_order(rows) if is_sorted else np.arange(size)
    rows = rows[order]
    begins = np.ones(size, bool)
    begins[1:] = (rows[1:] != rows[:-1]).any(1)
    first = begins.nonzero()[0]
    results = [whole.index_select(d, computed(order[first]))]
    if return_index:
        results.append(computed(order[first]))
    if return_inverse:
        inverse = np.empty(size, np.int64)
        inverse[order] = begins.cumsum() - 1
        results.append(computed(inverse.reshape(input.shape if dim is None else -1)))
    if return_counts:
        results.append(computed(np.diff(first, append=size)))
    return tuple(results) if len(results) > 1 else results[0]


@overload
def unique(input: Tensor, sorted: bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False,
           dim: int | None = None, *, return_index: Literal[False] = False) -> Tensor: ...
@overload
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None, *, return_index: bool = False) -> Any: ...
@operator(tangent="transposed", batch=dynamic_shape,
          refuses={"c": NO_LOOP}, loop="unique")
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None, *,
           return_index: bool = False) -> Any:
    """Distinct elements in order, or distinct slices along `dim`; a NaN differs from all.

    With `return_inverse` also where each element of the input went, with `return_counts` how often each one occurs; with `return_index`,
    first of these and as in NumPy, where each one occurs first. They are in order with `sorted=False`, too. The gradient goes to the first
    of equal elements.

    >>> import cygrad
    >>> cygrad.unique(cygrad.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    return _found(unique, input, dim, True, return_inverse, return_counts, return_index)


@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[False] = False, return_counts: Literal[False] = False,
                       dim: int | None = None) -> Tensor: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any: ...
@operator(tangent="transposed", batch=dynamic_shape,
          refuses={"c": NO_LOOP}, loop="unique")
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """First of each run of equal elements, or of equal slices along `dim`; see `unique`.

    >>> import cygrad
    >>> cygrad.unique_consecutive(cygrad.tensor([3, 3, 1, 3]))
    tensor([3, 1, 3])
    """
    return _found(unique_consecutive, input, dim, False, return_inverse, return_counts)
