"""Largest elements of windows, norms of windows, and the inverse of the first.

The gradient of a largest element goes to its place in the dims that are pooled, which count as one.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, prod
from typing import TYPE_CHECKING, Any

from cygrad._core.compute.bands import largest
from cygrad._core.compute.places import added_behind, elements_behind
from cygrad.operators._language.arguments import all_examples, checked_operand, hashable, integers
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators._language.places import place_outside
from cygrad.operators._language.tangents import first_linear
from cygrad.operators.bands import Band
from cygrad.operators.pooling import (
    adaptive_plan,
    adaptive_sizes,
    avg_pool1d,
    check_shape,
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


# ----- Places in the last dims, which count as one -----
@operator(dinput=lambda g, places, dims, input_shape: g._add_at_places(places, input_shape[-dims:]), dplaces=None, tangent=first_linear,
          batch=same)
def _take_places(input: Tensor, places: Tensor, dims: int) -> Tensor:
    """Return the elements at places in the last dims."""
    return recorded(_take_places, (input, places), elements_behind(input, places, dims), dims=dims)


@operator(dinput=lambda g, places, sizes: g._take_places(places, len(sizes)), dplaces=None, tangent=first_linear, batch=same)
def _add_at_places(input: Tensor, places: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return zeros, of some sizes in the last dims, with the elements added at places in these dims."""
    return recorded(_add_at_places, (input, places), added_behind(input, places, sizes), sizes=sizes)


def _tangents_at_places(tangent_of: Any, operator: Any, result: Any, x: Tensor, bands: tuple[Band, ...]) -> tuple[Tensor | None, None]:
    t = tangent_of(x)
    return None if t is None else t._take_places(result[1], len(bands)), None


@operator(dinput=lambda g, places, dims, input_shape: g._add_at_places(places, input_shape[-dims:]), dplaces=None,
          tangent=_tangents_at_places, batch=same)
def _largest_of_windows(input: Tensor, bands: tuple[Band, ...]) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window of the last dims, and its place in these; of equal ones the first, or the last NaN."""
    values, places = largest(input, bands)
    return recorded(_largest_of_windows, (input, places), values, 2, dims=len(bands)), places


# ----- Windows -----
@lru_cache(256)
def _plan(operator: Any, dims: int, shape: tuple[int, ...], kernel_size: Any, stride: Any, padding: Any, dilation: Any,
          ceil_mode: bool) -> tuple[Band, ...]:
    """Check arguments, and return a band of windows for each dim."""
    kernel, step, pad, apart = read_windows(operator, dims, kernel_size, stride, padding, dilation)
    check_shape(operator, shape, dims)
    counts, sizes = window_counts(operator, shape, kernel, step, pad, apart, ceil_mode), shape[len(shape) - dims:]
    bands = tuple([regular_windows(*extent) for extent in zip(sizes, counts, kernel, step, pad, apart, strict=True)])
    if any((band.places < 0).all(1).any() for band in bands):
        raise RuntimeError(f"{operator.name}: a window has no element of the input, only padding: kernel {list(kernel)}, padding "
                           f"{list(pad)} and dilation {list(apart)} of sizes {list(sizes)}")
    return bands


def _max_pool(operator: Any, dims: int, input: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints,
              ceil_mode: bool) -> tuple[Tensor, Tensor]:
    bands = _plan(operator, dims, input.shape, hashable(kernel_size), hashable(stride), hashable(padding), hashable(dilation), ceil_mode)
    return checked_operand(operator, input)._largest_of_windows(bands)


@operator(method=False, aliases=("max_pool1d_with_indices",), refuses={"buc": NO_LOOP}, loop="max_pool2d")
def nn_functional_max_pool1d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                                          dilation: Ints = 1, ceil_mode: bool = False,
                                          return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Largest elements of windows and their places, as `max_pool1d` with `return_indices`.

    >>> import cygrad
    >>> cygrad.nn.functional.max_pool1d_with_indices(cygrad.tensor([[1., 3., 2., 0.]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return _max_pool(nn_functional_max_pool1d_with_indices, 1, input, kernel_size, stride, padding, dilation, ceil_mode)


@operator(method=False, aliases=("nn_functional_max_pool1d",), refuses={"biuc": NO_LOOP}, loop="max_pool1d_impl")
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


@operator(method=False, refuses={"buc": NO_LOOP}, loop="max_pool2d")
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


@operator(method=False, refuses={"buc": NO_LOOP}, loop="max_pool3d")
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
    bands = adaptive_plan(operator, dims, input.shape, adaptive_sizes(operator, output_size, dims))
    return checked_operand(operator, input)._largest_of_windows(bands)


@operator(method=False, aliases=("adaptive_max_pool1d",), refuses={"biuc": NO_LOOP}, loop="adaptive_max_pool2d")
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


@operator(method=False, refuses={"biuc": NO_LOOP}, loop="adaptive_max_pool2d")
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


@operator(method=False, refuses={"biuc": NO_LOOP}, loop="adaptive_max_pool3d_cpu")
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
    if not isinstance(norm_type, (int, float)):
        raise TypeError(f"{operator.__name__}(): argument 'norm_type' (position 2) must be float, not {type(norm_type).__name__}")
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
    check_shape(operator, input.shape, dims)
    checked_operand(operator, input)
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
    outside = place_outside(all_examples(indices), prod(sizes))
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
