"""Largest elements of windows, norms of windows, and the inverse of the first.

A largest element is found as its place in the dims that are pooled, dim by dim, without a gradient; its value, and so its gradient, is
`gather` of the places.
"""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.operands.arrays import computed, first_outside, to_array
from cygrad.operators._language.arguments import integers
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators._language.tangents import constant
from cygrad.operators.bands import Band
from cygrad.operators.pooling import (
    adaptive_sizes,
    adaptive_windows,
    avg_pool1d,
    check_input,
    nn_functional_avg_pool2d,
    nn_functional_avg_pool3d,
    per_dim,
    read_windows,
    regular_windows,
    window_counts,
)
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Ints, Real


# ----- Places -----
@operator(tangent=constant, batch=same)
def _places_of_largest(input: Tensor, bands: tuple[Band, ...]) -> Tensor:
    """Return the place of the largest element of each window of the last dims, counted in these; the first one, or the last NaN."""
    if any(not len(band.places) for band in bands):
        shape = (*input.shape[:input.ndim - len(bands)], *[len(band.places) for band in bands])
        return computed(np.zeros(shape, np.int64))
    best: np.ndarray = to_array(input)
    places: np.ndarray = np.zeros((), np.int64)
    inner = 1       # elements in the dims that are searched
    for dim, band in zip(range(input.ndim - 1, -1, -1), reversed(bands), strict=False):
        table, along = band.within, [-1] + [1] * (input.ndim - 1 - dim)
        source, source_places = best, places
        for k in range(table.shape[1]):
            part = source.take(table[:, k], dim)
            own = table[:, k].reshape(along) * inner + (source_places.take(table[:, k], dim) if source_places.ndim else 0)
            if k == 0:
                best, places = part, np.broadcast_to(own, part.shape).copy()
                continue
            better = part > best
            if part.dtype.kind == "f":
                better |= np.isnan(part)
            np.copyto(best, part, where=better)
            np.copyto(places, own, where=better)
        inner *= band.size
    return computed(places)


def _largest(input: Tensor, bands: Sequence[Band]) -> tuple[Tensor, Tensor]:
    """Return the largest elements of windows of the last dims, and their places."""
    dims = len(bands)
    places = input._places_of_largest(tuple(bands))
    if dims == 1:
        return input.gather(-1, places), places
    return input.flatten(-dims).gather(-1, places.flatten(-dims)).reshape(places.shape), places


def _max_pool(operator: Any, dims: int, input: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints,
              ceil_mode: bool) -> tuple[Tensor, Tensor]:
    kernel, step, pad, apart = read_windows(operator, dims, kernel_size, stride, padding, dilation)
    check_input(operator, input, dims)
    counts = window_counts(operator, input, kernel, step, pad, apart, ceil_mode)
    bands = [regular_windows(*extent) for extent in zip(input.shape[input.ndim - dims:], counts, kernel, step, pad, apart, strict=True)]
    if any((band.places < 0).all(1).any() for band in bands):
        raise RuntimeError(f"{operator.name}: a window has no element of the input, only padding: kernel {list(kernel)}, padding "
                           f"{list(pad)} and dilation {list(apart)} of sizes {list(input.shape[input.ndim - dims:])}")
    return _largest(input, bands)


@operator(method=False, aliases=("max_pool1d_with_indices",), refuses={"bic": NO_LOOP}, loop="max_pool1d_impl")
def nn_functional_max_pool1d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                                          dilation: Ints = 1, ceil_mode: bool = False,
                                          return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Largest elements of windows and their places, as `max_pool1d` with `return_indices`.

    >>> import cygrad
    >>> cygrad.nn.functional.max_pool1d_with_indices(cygrad.tensor([[1., 3., 2., 0.]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return _max_pool(nn_functional_max_pool1d_with_indices, 1, input, kernel_size, stride, padding, dilation, ceil_mode)


@operator(method=False, aliases=("nn_functional_max_pool1d",), refuses={"bic": NO_LOOP}, loop="max_pool1d_impl")
def max_pool1d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """Largest elements of windows of the last dim of (examples, channels, size), or of one example; NaN where a window has one.

    Windows are `stride` apart (by default as far as they are long), their elements `dilation`; `padding` elements at each end, at most
    half a window, are less than all others. With `ceil_mode` there is one window more where the last does not reach the end. With
    `return_indices` also the places of the elements, of equal ones the first. RuntimeError where numbers are not positive, or no
    window fits.

    >>> import cygrad
    >>> cygrad.nn.functional.max_pool1d(cygrad.tensor([[1., 3., 2., 0.]]), 2)
    tensor([[3., 2.]])
    """
    operator = nn_functional_max_pool1d_with_indices if return_indices else max_pool1d
    results = _max_pool(operator, 1, input, kernel_size, stride, padding, dilation, ceil_mode)
    return results if return_indices else results[0]


@operator(method=False, refuses={"bc": NO_LOOP}, loop="max_pool2d")
def nn_functional_max_pool2d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                                          dilation: Ints = 1, ceil_mode: bool = False,
                                          return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Largest elements of windows and their places, as `max_pool2d` with `return_indices`.

    >>> import cygrad
    >>> cygrad.nn.functional.max_pool2d_with_indices(cygrad.arange(8.).reshape(1, 2, 4), 2)
    (tensor([[[5., 7.]]]), tensor([[[5, 7]]]))
    """
    return _max_pool(nn_functional_max_pool2d_with_indices, 2, input, kernel_size, stride, padding, dilation, ceil_mode)


@operator(method=False, aliases=("nn_functional_max_pool2d",))
def max_pool2d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """Largest elements of windows of the last two dims, with `return_indices` their places, counted in both. See `max_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.max_pool2d(cygrad.arange(8.).reshape(1, 2, 4), 2)
    tensor([[[5., 7.]]])
    """
    results = nn_functional_max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return results if return_indices else results[0]


@operator(method=False, refuses={"bc": NO_LOOP}, loop="max_pool3d")
def nn_functional_max_pool3d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                                          dilation: Ints = 1, ceil_mode: bool = False,
                                          return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Largest elements of windows and their places, as `max_pool3d` with `return_indices`.

    >>> import cygrad
    >>> cygrad.nn.functional.max_pool3d_with_indices(cygrad.arange(8.).reshape(1, 2, 2, 2), 2)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return _max_pool(nn_functional_max_pool3d_with_indices, 3, input, kernel_size, stride, padding, dilation, ceil_mode)


@operator(method=False, aliases=("nn_functional_max_pool3d",))
def max_pool3d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """Largest elements of windows of the last three dims, with `return_indices` their places, counted in all. See `max_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.max_pool3d(cygrad.arange(8.).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    results = nn_functional_max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return results if return_indices else results[0]


# ----- As many windows as results -----
def _adaptive_max_pool(operator: Any, dims: int, input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    sizes = adaptive_sizes(operator, input, output_size, dims)
    return _largest(input, [adaptive_windows(own, size) for own, size in zip(input.shape[input.ndim - dims:], sizes, strict=True)])


@operator(method=False, aliases=("adaptive_max_pool1d",), refuses={"bic": NO_LOOP}, loop="adaptive_max_pool2d")
def nn_functional_adaptive_max_pool1d_with_indices(input: Tensor, output_size: Ints,
                                                   return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Largest elements of `output_size` windows that cover the last dim, and their places.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool1d_with_indices(cygrad.tensor([[1., 2., 3.]]), 2)
    (tensor([[2., 3.]]), tensor([[1, 2]]))
    """
    return _adaptive_max_pool(nn_functional_adaptive_max_pool1d_with_indices, 1, input, output_size)


@operator(method=False)
def nn_functional_adaptive_max_pool1d(input: Tensor, output_size: Ints, return_indices: bool = False) -> Any:
    """Largest elements of `output_size` windows that cover the last dim, with `return_indices` also their places.

    See `adaptive_avg_pool1d`, `max_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool1d(cygrad.tensor([[1., 2., 3.]]), 2)
    tensor([[2., 3.]])
    """
    results = nn_functional_adaptive_max_pool1d_with_indices(input, output_size)
    return results if return_indices else results[0]


@operator(method=False, refuses={"bic": NO_LOOP}, loop="adaptive_max_pool2d")
def nn_functional_adaptive_max_pool2d_with_indices(input: Tensor, output_size: int | None | Sequence[int | None],
                                                   return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Largest elements of `output_size` windows that cover the last two dims, and their places. See `adaptive_avg_pool2d`, `max_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool2d_with_indices(cygrad.arange(6.).reshape(1, 2, 3), (1, 2))
    (tensor([[[4., 5.]]]), tensor([[[4, 5]]]))
    """
    return _adaptive_max_pool(nn_functional_adaptive_max_pool2d_with_indices, 2, input, output_size)


@operator(method=False)
def nn_functional_adaptive_max_pool2d(input: Tensor, output_size: int | None | Sequence[int | None], return_indices: bool = False) -> Any:
    """Largest elements of `output_size` windows that cover the last two dims, with `return_indices` also their places.

    See `adaptive_avg_pool2d`, `max_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool2d(cygrad.arange(6.).reshape(1, 2, 3), (1, 2))
    tensor([[[4., 5.]]])
    """
    results = nn_functional_adaptive_max_pool2d_with_indices(input, output_size)
    return results if return_indices else results[0]


@operator(method=False, refuses={"bic": NO_LOOP}, loop="adaptive_max_pool3d_cpu")
def nn_functional_adaptive_max_pool3d_with_indices(input: Tensor, output_size: int | None | Sequence[int | None],
                                                   return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Largest elements of `output_size` windows that cover the last three dims, and their places. See `adaptive_avg_pool3d`, `max_pool3d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool3d_with_indices(cygrad.arange(8.).reshape(1, 2, 2, 2), 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return _adaptive_max_pool(nn_functional_adaptive_max_pool3d_with_indices, 3, input, output_size)


@operator(method=False)
def nn_functional_adaptive_max_pool3d(input: Tensor, output_size: int | None | Sequence[int | None], return_indices: bool = False) -> Any:
    """Largest elements of `output_size` windows that cover the last three dims, with `return_indices` also their places.

    See `adaptive_avg_pool3d`, `max_pool3d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_max_pool3d(cygrad.arange(8.).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    results = nn_functional_adaptive_max_pool3d_with_indices(input, output_size)
    return results if return_indices else results[0]


# ----- Norms -----
@rounded_once
def _norms(input: Tensor, dims: int, norm_type: Real, kernel: tuple[int, ...], stride: Ints | None, ceil_mode: bool) -> Tensor:
    pool = (avg_pool1d, nn_functional_avg_pool2d, nn_functional_avg_pool3d)[dims - 1]
    means = pool(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    return (means.sign() * means.abs().relu() * prod(kernel)).pow(1 / norm_type)


def _lp_pool(operator: Any, dims: int, input: Tensor, norm_type: Real, kernel_size: Ints, stride: Ints | None, ceil_mode: bool) -> Tensor:
    if not isinstance(norm_type, int | float):
        raise TypeError(f"{operator.name}(): argument 'norm_type' (position 2) must be float, not {type(norm_type).__name__}")
    if norm_type == 0:
        raise ValueError(f"{operator.name}(): argument 'norm_type' must not be 0: there is no power 1 / 0")
    kernel = per_dim(operator, "kernel_size", kernel_size, dims)
    if norm_type in (inf, -inf):
        pool, sign = (max_pool1d, max_pool2d, max_pool3d)[dims - 1], 1 if norm_type > 0 else -1
        return sign * pool(sign * input.abs(), kernel, stride, 0, 1, ceil_mode)
    return _norms(input, dims, norm_type, kernel, stride, ceil_mode)


@operator(method=False)
def nn_functional_lp_pool1d(input: Tensor, norm_type: Real, kernel_size: Ints, stride: Ints | None = None,
                            ceil_mode: bool = False) -> Tensor:
    """Sums of the powers `norm_type` of elements in windows of the last dim, to the power 1 / `norm_type`.

    Elements are not made positive; the power of a negative sum is the power of its absolute value or NaN, as in torch. An
    infinite power makes the largest or least absolute value. See `avg_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.lp_pool1d(cygrad.tensor([[3., 4., 6., 8.]]), 2, 2)
    tensor([[ 5., 10.]])
    """
    return _lp_pool(nn_functional_lp_pool1d, 1, input, norm_type, kernel_size, stride, ceil_mode)


@operator(method=False)
def nn_functional_lp_pool2d(input: Tensor, norm_type: Real, kernel_size: Ints, stride: Ints | None = None,
                            ceil_mode: bool = False) -> Tensor:
    """Norms of windows of the last two dims. See `lp_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.lp_pool2d(cygrad.ones(1, 2, 4), 1, 2)
    tensor([[[4., 4.]]])
    """
    return _lp_pool(nn_functional_lp_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


@operator(method=False)
def nn_functional_lp_pool3d(input: Tensor, norm_type: Real, kernel_size: Ints, stride: Ints | None = None,
                            ceil_mode: bool = False) -> Tensor:
    """Norms of windows of the last three dims. See `lp_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.lp_pool3d(cygrad.ones(1, 2, 2, 2), 1, 2)
    tensor([[[[8.]]]])
    """
    return _lp_pool(nn_functional_lp_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)


# ----- The inverse -----
def _max_unpool(operator: Any, dims: int, input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints,
                output_size: Sequence[int] | None) -> Tensor:
    kernel, step, pad, _ = read_windows(operator, dims, kernel_size, stride, padding, 1)
    if indices.dtype.name != "int64":
        raise RuntimeError(f"elements in indices should be type int64 but got: {DTYPES[NUMBER[indices.dtype.name]].title}")
    check_input(operator, input, dims)
    if indices.shape != input.shape:
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices tensor "
                           f"with shape: {list(indices.shape)}")
    sizes = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(input.shape[input.ndim - dims:], step, kernel, pad, strict=True)]
    if output_size is not None:
        numbers = integers(output_size)
        own = list(numbers[2:] if len(numbers) == dims + 2 else numbers)
        if len(own) != dims:
            raise ValueError(f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
                             f"'{len(own)}'")
        for d, (size, usual, s) in enumerate(zip(own, sizes, step, strict=True)):
            if not usual - s < size < usual + s:
                raise ValueError(f'invalid output_size "{own}" (dim {d} must be between {usual - s} and {usual + s})')
        sizes = own
    if min(sizes) < 0:
        raise ValueError(f"max_unpooling: output_size must contain non-negative spatial dimensions, but got {sizes}")
    outer = input.shape[:input.ndim - dims]
    zeros = input.new_zeros((*outer, prod(sizes)))      # refuses impossible sizes
    outside = first_outside(to_array(indices), 0, prod(sizes))
    if outside is not None:
        raise RuntimeError(f"Found an invalid max index: {outside} (output volumes are of size {'x'.join(map(str, sizes))})")
    result = zeros.scatter(-1, indices.flatten(-dims), input.flatten(-dims))
    return result.reshape(*outer, *sizes)


@operator(method=False, refuses={"bic": NO_LOOP}, loop="max_unpooling2d_forward_out")
def nn_functional_max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                               output_size: Sequence[int] | None = None) -> Tensor:
    """Zeros with the elements at the places of the last dim that `indices` names: partial inverse of `max_pool1d`.

    `output_size` selects one of the sizes that pooling maps to the input's.

    >>> import cygrad
    >>> cygrad.nn.functional.max_unpool1d(cygrad.tensor([[5., 7.]]), cygrad.tensor([[1, 2]]), 2)
    tensor([[0., 5., 7., 0.]])
    """
    return _max_unpool(nn_functional_max_unpool1d, 1, input, indices, kernel_size, stride, padding, output_size)


@operator(method=False, refuses={"bic": NO_LOOP}, loop="max_unpooling2d_forward_out")
def nn_functional_max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                               output_size: Sequence[int] | None = None) -> Tensor:
    """Zeros with the elements at the places of the last two dims that `indices` names: partial inverse of `max_pool2d`.

    `output_size` selects one of the sizes that pooling maps to the input's.

    >>> import cygrad
    >>> cygrad.nn.functional.max_unpool2d(cygrad.tensor([[[5.]]]), cygrad.tensor([[[3]]]), 2)
    tensor([[[0., 0.],
             [0., 5.]]])
    """
    return _max_unpool(nn_functional_max_unpool2d, 2, input, indices, kernel_size, stride, padding, output_size)


@operator(method=False, refuses={"bic": NO_LOOP}, loop="max_unpooling3d_forward_out")
def nn_functional_max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                               output_size: Sequence[int] | None = None) -> Tensor:
    """Zeros with the elements at the places of the last three dims that `indices` names: partial inverse of `max_pool3d`.

    `output_size` selects one of the sizes that pooling maps to the input's.

    >>> import cygrad
    >>> cygrad.nn.functional.max_unpool3d(cygrad.tensor([[[[5.]]]]), cygrad.tensor([[[[3]]]]), 2).shape
    cygrad.Size([1, 2, 2, 2])
    """
    return _max_unpool(nn_functional_max_unpool3d, 3, input, indices, kernel_size, stride, padding, output_size)
