"""Sorting, the elements at a rank, places in what is sorted, and membership; the gradient goes to the elements chosen.

NumPy's stable sort puts NaN last.

Loaded at first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from cygrad._core.graph.rules import record_by_name
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import dtype_by_name
from cygrad._core.operands.arrays import from_array, to_array
from cygrad.limits import promote_types
from cygrad.operators.arguments import checked_tensor, delivered, delivered_pair, numpy_names, pair_type
from cygrad.operators.elementwise import named, publish


def _ranked(array: np.ndarray, dim: int, descending: bool = False) -> np.ndarray:
    """Return the places along a dim in the order of their elements, equal ones as they stand."""
    if not descending:
        return np.argsort(array, dim, kind="stable")
    # Backwards twice, so that equal elements keep their order.
    return array.shape[dim] - 1 - np.flip(np.argsort(np.flip(array, dim), dim, kind="stable"), dim)


def _chosen(name: str, result_type: Any, input: Any, dim: int, indices: np.ndarray, drop: bool, out: Any) -> Any:
    """Return the elements at the places along a dim, and the places; `drop` the dim, which has one."""
    array = np.atleast_1d(to_array(input))
    shape = indices.shape if input.ndim else ()
    values = from_array(np.take_along_axis(array, indices, dim).reshape(shape))
    kept = from_array(indices.reshape(shape))
    result, places = values, kept
    if drop and input.ndim:
        result, places = (from_array(to_array(part).squeeze(dim).copy()) for part in (values, kept))
    record_by_name(name, (input, kept), result, (tuple(input.shape), dim), 2)
    return delivered_pair(result_type, result, places, out)


_sorted, _top, _kth = map(pair_type, ("sort", "topk", "kthvalue"))


@numpy_names
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False, *, out: Any = None) -> Any:
    """Elements in order along `dim`, with the places they had: (values, indices). Equal ones keep their order; NaN is the largest.

    >>> import cygrad
    >>> cygrad.sort(cygrad.tensor([3., 1., 2.])).indices
    tensor([1, 2, 0])
    """
    d = normalized_dim(dim, checked_tensor("sort", input).ndim)
    return _chosen("sort", _sorted, input, d, _ranked(np.atleast_1d(to_array(input)), d, descending), False, out)


@numpy_names
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False, *, out: Any = None) -> Any:
    """Places of the elements along `dim` in their order; see `sort`.

    >>> import cygrad
    >>> cygrad.argsort(cygrad.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    return delivered(sort(checked_tensor("argsort", input).detach(), dim, descending).indices, out)


def msort(input: Any, *, out: Any = None) -> Any:
    """Elements in order along the first dim.

    >>> import cygrad
    >>> cygrad.msort(cygrad.tensor([3., 1., 2.]))
    tensor([1., 2., 3.])
    """
    return delivered(sort(checked_tensor("msort", input), 0).values, out)


@numpy_names
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Any:
    """The `k` largest elements along `dim` (or smallest), in order, with their places: (values, indices).

    >>> import cygrad
    >>> cygrad.topk(cygrad.tensor([3., 1., 2.]), 2).values
    tensor([3., 2.])
    """
    d = normalized_dim(dim, checked_tensor("topk", input).ndim)
    array = np.atleast_1d(to_array(input))
    if not 0 <= k <= array.shape[d]:
        raise RuntimeError(f"selected index k out of range: k is {k}, dimension {d} has size {array.shape[d]}")
    places = _ranked(array, d, largest)[(slice(None),) * d + (slice(k),)]
    if not input.ndim and not k:
        raise RuntimeError("selected index k out of range: a 0-d tensor has one element, which k=0 leaves out")
    return _chosen("topk", _top, input, d, places, False, out)


@numpy_names
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The `k`-th smallest element along `dim`, counted from 1, with its place: (values, indices).

    >>> import cygrad
    >>> cygrad.kthvalue(cygrad.tensor([3., 1., 2.]), 2).values
    tensor(2.)
    """
    d = normalized_dim(dim, checked_tensor("kthvalue", input).ndim)
    array = np.atleast_1d(to_array(input))
    if not 1 <= k <= array.shape[d]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}: k is {k}, the size {array.shape[d]}")
    places = _ranked(array, d)[(slice(None),) * d + (slice(k - 1, k),)]
    return _chosen("kthvalue", _kth, input, d, places, not keepdim, out)


def _median_function(name: str, skips_nan: bool, sentence: str) -> Callable[..., Any]:
    pair = pair_type(name)

    def place(array: np.ndarray, dim: int) -> np.ndarray:
        """Return the place of the lower median along a dim, kept."""
        missing = array != array
        count = array.shape[dim] - missing.sum(dim, keepdims=True) * skips_nan
        found = np.take_along_axis(_ranked(array, dim), np.maximum(count - 1, 0) // 2, dim)
        return found if skips_nan else np.where(missing.any(dim, keepdims=True), missing.argmax(dim, keepdims=True), found)

    @numpy_names
    def function(input: Any, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
        checked_tensor(name, input)
        if dim is None:
            array = to_array(input).reshape(-1)
            if not array.size and array.dtype.kind != "f":
                raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            value = array[place(array, 0)[0]] if array.size else np.nan
            result = from_array(np.array(value, array.dtype))
            return delivered(record_by_name(name + "_of_all", (input,), result, ()) if array.size else result, out)
        d = normalized_dim(dim, input.ndim)
        array = np.atleast_1d(to_array(input))
        if not array.shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return _chosen(name, pair, input, d, place(array, d), not keepdim, out)

    return named(function, name, f"{sentence}\n\nWith `dim` also its place: (values, indices). Of all, equal ones share the gradient.\n\n"
                 f">>> import cygrad\n>>> cygrad.{name}(cygrad.tensor([3., 1., 2., 4.]))\ntensor(2.)\n")


median = _median_function("median", False, "Lower median of all elements, or along `dim`; NaN if there is one.")
nanmedian = _median_function("nanmedian", True, "Lower median of the elements that are not NaN.")


# ----- Places in what is sorted -----
def _check_search(sequence: Any, input: Any, right: bool, side: str | None, sorter: Any) -> None:
    if not isinstance(sequence, TensorImpl) or not isinstance(input, TensorImpl | int | float):
        raise TypeError("searchsorted() received an invalid combination of arguments - got "
                        f"({type(sequence).__name__}, {type(input).__name__}), but expected a tensor, and a tensor or a number")
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    shape, given = list(sequence.shape), list(input.shape) if isinstance(input, TensorImpl) else []
    if len(shape) != 1 and not given:
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
                           f"boundaries tensor dim({len(shape)}) and input value's dim(0) numel(1)")
    if len(shape) != 1 and shape[:-1] != given[:-1]:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
                           f"and input value tensor must match, but we got boundaries tensor {shape} and input value tensor {given}")
    if sorter is None:
        return
    if not isinstance(sorter, TensorImpl):
        raise TypeError(f"searchsorted(): argument 'sorter' must be Tensor, not {type(sorter).__name__}")
    if list(sorter.shape) != shape:
        raise RuntimeError(f"torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {shape} and got "
                           f"sorter tensor {list(sorter.shape)}")
    if sorter.dtype.name != "int64":
        raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype}")


def searchsorted(sorted_sequence: Any, input: Any = None, *, out_int32: bool = False, right: bool = False, side: str | None = None,
                 sorter: Any = None, out: Any = None, self: Any = None) -> Any:
    """Places where the numbers of `input` keep a sorted last dim in order: before equal elements, or behind them (`right`).

    The other dims of both are the same, or the sequence is a vector. `side="right"` is another way to say `right`; `sorter` gives
    the places of the sequence in order, if it is not sorted. NaN is the largest. The result is int64, or int32 (`out_int32`).

    >>> import cygrad
    >>> cygrad.searchsorted(cygrad.tensor([1., 3., 5.]), cygrad.tensor([0., 3., 9.]))
    tensor([0, 1, 3])
    """
    input = self if input is None else input
    _check_search(sorted_sequence, input, right, side, sorter)
    wanted = dtype_by_name["int32" if out_int32 else "int64"]
    if out is not None and isinstance(out, TensorImpl) and out.dtype is not wanted:
        raise RuntimeError("torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
                           f"whether out_int32 flag is True, but we got output tensor's dtype {out.dtype} and out_int32 flag is "
                           f"{bool(out_int32)}")
    values = np.asarray(to_array(input) if isinstance(input, TensorImpl) else input)
    array = to_array(sorted_sequence)
    if sorter is not None:
        places = to_array(sorter)
        if ((places < 0) | (places >= array.shape[-1])).any():
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        array = np.take_along_axis(array, places, -1)
    where: Literal["left", "right"] = "right" if right or side == "right" else "left"
    found = np.empty(values.shape, wanted.name)
    if array.ndim == 1:
        found[...] = np.searchsorted(array, values, where)
    else:
        for row in np.ndindex(array.shape[:-1]):
            found[row] = np.searchsorted(array[row], values[row], where)
    return delivered(from_array(found), out)


def bucketize(input: Any = None, boundaries: Any = None, *, out_int32: bool = False, right: bool = False, out: Any = None,
              self: Any = None) -> Any:
    """Number of the bucket between sorted boundaries that each element lies in; the upper one (or with `right` the lower) belongs to it.

    >>> import cygrad
    >>> cygrad.bucketize(cygrad.tensor([0., 3., 9.]), cygrad.tensor([1., 3., 5.]))
    tensor([0, 1, 3])
    """
    if isinstance(boundaries, TensorImpl) and boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, self if input is None else input, out_int32=out_int32, right=right, out=out)


# ----- Membership -----
def isin(elements: Any = None, test_elements: Any = None, *, assume_unique: bool = False, invert: bool = False, element: Any = None,
         test_element: Any = None, out: Any = None) -> Any:
    """Say of each element whether it is among the test elements, or (`invert`) whether it is not; NaN is among none.

    One of the two may be a number, also by the names `element` and `test_element`. `assume_unique` promises that no element
    repeats in either, and saves time.

    >>> import cygrad
    >>> cygrad.isin(cygrad.tensor([1, 2, 3]), cygrad.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    elements = element if elements is None else elements
    test_elements = test_element if test_elements is None else test_elements
    given = (elements, test_elements)
    numbers = [value for value in given if isinstance(value, int | float)]
    if len(numbers) + sum(isinstance(value, TensorImpl) for value in given) < 2 or len(numbers) == 2:
        raise TypeError("isin() received an invalid combination of arguments - got "
                        f"({', '.join(type(value).__name__ for value in given)}), but expected two tensors, or a tensor and a number")
    if numbers:
        found = elements == test_elements
        found = found if isinstance(elements, TensorImpl) else found.any()
        return delivered(~found if invert else found, out)
    dtype = promote_types(elements.dtype, test_elements.dtype)
    array, tests = (to_array(value.detach().to(dtype)) for value in given)
    return delivered(from_array(np.asarray(np.isin(array, tests, assume_unique=assume_unique, invert=invert))), out)


publish(__name__, globals())
