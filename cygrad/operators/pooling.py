"""Means of windows, one window after the other, or as many as there are results; and the arguments of all poolings.

Windows of several dims are products of windows of one: their sums are computed dim by dim, as their largest elements are.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.memory.sizes import index_argument
from cygrad._core.operands.arrays import computed
from cygrad.data.creation import check_room
from cygrad.operators._language.arguments import SEQUENCE, checked_operand, delivered, hashable, integers
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators.bands import Band, Bands
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Ints

NUMERALS = {1: "one", 2: "two", 3: "three"}


# ----- Arguments -----
def _name(operator: Any) -> str:
    return operator.name.removeprefix("nn_functional_").removesuffix("_with_indices")


def per_dim(operator: Any, word: str, value: Ints, dims: int, more: str = "") -> tuple[int, ...]:
    """Return one number for each dim that is pooled."""
    numbers = integers(value)
    if len(numbers) not in (1, dims):
        raise RuntimeError(f"{_name(operator)}: {word} must either be {more}a single int, or a tuple of {NUMERALS[dims]} ints, but got "
                           f"{list(numbers)}")
    return numbers if len(numbers) == dims else numbers * dims


def check_shape(operator: Any, shape: tuple[int, ...], dims: int) -> None:
    name, ndims, ndim = _name(operator), f"{dims + 1}D or {dims + 2}D", len(shape)
    if ndim not in (dims + 1, dims + 2):
        if name.startswith("adaptive") and dims > 1:
            # Torch's function looks at few dims first, and its loop at many.
            raise (ValueError(f"Input dimension should be at least {dims + 1}, but got a tensor of shape {list(shape)}")
                   if ndim <= dims else RuntimeError(f"{name}(): Expected {ndims} tensor, but got {list(shape)}"))
        if name in ("avg_pool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d"):
            raise RuntimeError(f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while "
                               f"checking arguments for {name})")
        if dims > 1:
            raise RuntimeError(f"non-empty {ndims} (batch mode) tensor expected for input, but got: {list(shape)}")
    elif 0 not in shape[1 if ndim == dims + 2 else 0:]:
        return
    elif name.startswith("adaptive"):
        empty = next(d for d in range(ndim - dims - 1, ndim) if not shape[d])
        raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                           f"{list(shape)} with dimension {empty} being empty")
    elif dims == 3:
        template = "max_pool3d_with_indices_out_cpu_template" if name == "max_pool3d" else name
        raise RuntimeError(f"{template}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
                           f"{list(shape)} and non-batch dimension {shape[ndim - 4:].index(0)} has length zero!")
    raise RuntimeError(f"{'max_pool1d: ' if name == 'max_pool1d' else ''}Expected {ndims} (batch mode) tensor with optional 0 dim batch "
                       f"size for input, but got:{list(shape)}")


def read_windows(operator: Any, dims: int, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints) -> list[tuple[int, ...]]:
    """Return a kernel, stride, padding and dilation for each dim."""
    kernel = per_dim(operator, "kernel_size", kernel_size, dims)
    step = kernel if stride is None or isinstance(stride, SEQUENCE) and not stride else per_dim(
        operator, "stride", stride, dims, "omitted, ")
    pad, apart = per_dim(operator, "padding", padding, dims), per_dim(operator, "dilation", dilation, dims)
    one = f"{operator.name}() " if operator.name == "max_pool1d" else ""     # has words of its own
    if min(kernel) <= 0:
        raise RuntimeError(f"{one}kernel_size must be greater than zero, but got {kernel[0]}" if one else
                           f"kernel size should be greater than zero, but got {list(kernel)}")
    if min(step) <= 0:
        raise RuntimeError(f"{one}stride must be greater than zero, but got {step[0]}" if one else
                           f"stride should not be zero, but be positive, and it is {list(step)}")
    if min(pad) < 0:
        raise RuntimeError(f"{one}padding must be non-negative, but got {pad[0]}" if one else
                           f"pad must be non-negative, but got pad: {min(pad)}")
    if min(apart) <= 0:
        raise RuntimeError(f"{one}dilation must be greater than zero, but got {apart[0]}" if one else
                           f"dilation should be greater than zero, but got dilation: {list(apart)}")
    for k, p, d in zip(kernel, pad, apart, strict=True):
        if p > k // 2:
            half = "at most half of effective" if p > (d * (k - 1) + 1) // 2 else "smaller than or equal to half of"
            raise RuntimeError(f"{one}padding should be at most half of kernel size, but got padding={p} and kernel_size={k}" if one else
                               f"pad should be {half} kernel size, but got pad={p}, kernel_size={k} and dilation={d}")
    return [kernel, step, pad, apart]


def window_counts(operator: Any, shape: tuple[int, ...], kernel: tuple[int, ...], step: tuple[int, ...], pad: tuple[int, ...],
                  apart: tuple[int, ...], ceil_mode: bool) -> list[int]:
    """Return the number of windows of each dim; with `ceil_mode` one more that begins before the end."""
    result, sizes = [], shape[len(shape) - len(kernel):]
    for size, k, s, p, d in zip(sizes, kernel, step, pad, apart, strict=True):
        count = (size + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        result.append(count - 1 if ceil_mode and (count - 1) * s >= size + p else count)
    if min(result) < 1:
        if _name(operator) == "max_pool1d":
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {result[0]}")
        channels = shape[-1 - len(kernel)]
        raise RuntimeError(f"Given input size: ({'x'.join(map(str, (channels, *sizes)))}). Calculated output size: "
                           f"({'x'.join(map(str, (channels, *result)))}). Output size is too small")
    return result


def adaptive_sizes(operator: Any, output_size: int | None | Sequence[int | None], dims: int) -> tuple[int | None, ...]:
    """Return the sizes of an adaptive result; None is the input's."""
    sizes = tuple(output_size) if isinstance(output_size, SEQUENCE) else (output_size,) * dims
    if len(sizes) != dims:
        raise RuntimeError(f"{_name(operator)}() argument 'output_size' should contain one int (got {len(sizes)})" if dims == 1 else
                           f"{_name(operator)}: output_size must be {dims}, but got {len(sizes)} numbers")
    return tuple([None if size is None else index_argument(size, "output_size") for size in sizes])


# ----- Windows along a dim: the places of their elements, -1 where they have fewer -----
@lru_cache(64)
def regular_windows(size: int, count: int, k: int, s: int, p: int, d: int) -> Band:
    first, last = max(0, -(((count - 1) * s - p) // d)), min(k - 1, (size - 1 + p) // d)       # of a window, that are in the input
    check_room(count, max(last + 1 - first, 0))
    places = np.arange(count)[:, None] * s - p + np.arange(first, last + 1) * d
    return Band(np.where((places >= 0) & (places < size), places, -1), None, size)


@lru_cache(64)
def adaptive_windows(size: int, count: int) -> Band:
    """Return `count` windows that cover a dim: from i size / count, rounded down, to (i + 1) size / count, rounded up."""
    check_room(count, -(-size // max(count, 1)))
    first, end = np.arange(count) * size // max(count, 1), -(-np.arange(1, count + 1) * size // max(count, 1))
    places = first[:, None] + np.arange(int((end - first).max(initial=0)))
    return Band(np.where(places < end[:, None], places, -1), None, size)


# ----- Plans: arguments that are checked. They are cached, as a program pools the same shapes over and over -----
@lru_cache(256)
def adaptive_plan(operator: Any, dims: int, shape: tuple[int, ...], output_size: tuple[int | None, ...]) -> tuple[Band, ...]:
    """Return a band of windows for each dim."""
    check_shape(operator, shape, dims)
    own = shape[len(shape) - dims:]
    sizes = [size if number is None else number for number, size in zip(output_size, own, strict=True)]
    if min(sizes) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {[*shape[:-dims], *sizes]}"
                           if "max" in operator.name else
                           f"{_name(operator)}: elements of output_size must be greater than or equal to 0 but received {sizes}")
    return tuple(map(adaptive_windows, own, sizes))


class Means(NamedTuple):
    """Sums of windows, and their divisor: a number, or a number for each result."""

    bands: Bands
    divisor: int | np.ndarray


def _over(bands: Sequence[Band], divisors: Sequence[np.ndarray]) -> Means:
    """Return means over the product of a number for each dim."""
    if all((numbers == numbers[0]).all() for numbers in divisors if len(numbers)):
        divisor = prod(int(numbers[0]) for numbers in divisors if len(numbers))
    else:
        divisor = prod(numbers.reshape([-1] + [1] * k).astype(float) for k, numbers in enumerate(reversed(divisors)))
    return Means(tuple(enumerate(bands, -len(bands))), divisor)


@lru_cache(256)
def _average_plan(operator: Any, dims: int, shape: tuple[int, ...], kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                  count_include_pad: bool) -> Means:
    kernel, step, pad, apart = read_windows(operator, dims, kernel_size, stride, padding, 1)
    check_shape(operator, shape, dims)
    counts = window_counts(operator, shape, kernel, step, pad, apart, ceil_mode)
    extents = list(zip(shape[len(shape) - dims:], counts, kernel, step, pad, apart, strict=True))
    bands = [regular_windows(*extent) for extent in extents]
    if count_include_pad:       # padding counts, but no elements behind it
        return _over(bands, [k + np.minimum(0, size + 2 * p - k - np.arange(count) * s) for size, count, k, s, p, _ in extents])
    return _over(bands, [(band.places >= 0).sum(1) for band in bands])


@lru_cache(256)
def _adaptive_average_plan(operator: Any, dims: int, shape: tuple[int, ...], output_size: tuple[int | None, ...]) -> Means:
    bands = adaptive_plan(operator, dims, shape, output_size)
    return _over(bands, [(band.places >= 0).sum(1) for band in bands])


# ----- Means -----
@rounded_once
def _means(input: Tensor, bands: Bands, divisor: int | np.ndarray) -> Tensor:
    """Return the sums of windows of the last dims over a number, or over a number for each result."""
    sums = input._banded(bands)
    number = divisor if isinstance(divisor, int) else computed(divisor).to(input.dtype)
    return sums / number if input.is_floating_point() else sums.div(number, rounding_mode="trunc")


def _average(operator: Any, dims: int, input: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool,
             count_include_pad: bool, divisor_override: int | None = None) -> Tensor:
    bands, divisor = _average_plan(operator, dims, input.shape, hashable(kernel_size), hashable(stride), hashable(padding), ceil_mode,
                                   count_include_pad)
    checked_operand(operator, input)
    if input.dtype.kind == "i" and input.dtype.name != "int64":
        raise NotImplementedError(f"\"avg_pool{max(dims, 2)}d\" not implemented for '{DTYPES[NUMBER[input.dtype.name]].title}'")
    if divisor_override is not None:
        divisor = index_argument(divisor_override, "divisor_override")
        if divisor == 0:
            raise RuntimeError("divisor must be not zero, but divisor_override is 0")
    return _means(input, bands, divisor)


@operator(method=False, aliases=("nn_functional_avg_pool1d",), refuses={"bc": NO_LOOP}, loop="avg_pool2d")
def avg_pool1d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    """Means of windows along the last dim of (examples, channels, size), or of one example.

    Windows are `stride` apart (by default as far as they are long), and the input is 0 outside, `padding` elements at each end, at most
    half a window. With `ceil_mode` there is one window more where the last does not reach the end. A mean is over a whole window, padding
    included, or without `count_include_pad` over elements of the input. Means of int64 are rounded towards 0. RuntimeError where
    numbers are not positive, or no window fits.

    >>> import cygrad
    >>> cygrad.nn.functional.avg_pool1d(cygrad.tensor([[1., 2., 3., 4.]]), 2)
    tensor([[1.5000, 3.5000]])
    """
    return _average(avg_pool1d, 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@operator(method=False, refuses={"bc": NO_LOOP}, loop="avg_pool2d")
def nn_functional_avg_pool2d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
                             count_include_pad: bool = True, divisor_override: int | None = None, *,
                             out: Tensor | None = None) -> Tensor:
    """Means of windows of the last two dims, or with `divisor_override` sums over that number. See `avg_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.avg_pool2d(cygrad.arange(8.).reshape(1, 2, 4), 2)
    tensor([[[2.5000, 4.5000]]])
    """
    means = _average(nn_functional_avg_pool2d, 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return delivered(means, out)


@operator(method=False, refuses={"bc": NO_LOOP}, loop="avg_pool3d_out_frame")
def nn_functional_avg_pool3d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
                             count_include_pad: bool = True, divisor_override: int | None = None, *,
                             out: Tensor | None = None) -> Tensor:
    """Means of windows of the last three dims, or with `divisor_override` sums over that number. See `avg_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.avg_pool3d(cygrad.arange(8.).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    means = _average(nn_functional_avg_pool3d, 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return delivered(means, out)


def _adaptive_average(operator: Any, dims: int, input: Tensor, output_size: Any) -> Tensor:
    means = _adaptive_average_plan(operator, dims, input.shape, adaptive_sizes(operator, output_size, dims))
    return _means(checked_operand(operator, input), *means)


@operator(method=False, aliases=("nn_functional_adaptive_avg_pool1d",), refuses={"bic": NO_LOOP}, loop="adaptive_avg_pool2d")
def adaptive_avg_pool1d(input: Tensor, output_size: Ints) -> Tensor:
    """Means of `output_size` windows that cover the last dim of (examples, channels, size), or of one example, and are about as long.

    Window i is from i size / output_size, rounded down, to (i + 1) size / output_size, rounded up.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_avg_pool1d(cygrad.tensor([[1., 2., 3.]]), 2)
    tensor([[1.5000, 2.5000]])
    """
    return _adaptive_average(adaptive_avg_pool1d, 1, input, output_size)


@operator(method=False, refuses={"bic": NO_LOOP}, loop="adaptive_avg_pool2d")
def nn_functional_adaptive_avg_pool2d(input: Tensor, output_size: int | None | Sequence[int | None]) -> Tensor:
    """Means of windows that cover the last two dims; `output_size` for each or both, None for as many as elements.

    See `adaptive_avg_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_avg_pool2d(cygrad.arange(6.).reshape(1, 2, 3), (1, None))
    tensor([[[1.5000, 2.5000, 3.5000]]])
    """
    return _adaptive_average(nn_functional_adaptive_avg_pool2d, 2, input, output_size)


@operator(method=False, refuses={"bic": NO_LOOP}, loop="adaptive_avg_pool3d_cpu")
def nn_functional_adaptive_avg_pool3d(input: Tensor, output_size: int | None | Sequence[int | None]) -> Tensor:
    """Means of windows that cover the last three dims; `output_size` for each or all, None for as many as elements.

    See `adaptive_avg_pool1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.adaptive_avg_pool3d(cygrad.arange(8.).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return _adaptive_average(nn_functional_adaptive_avg_pool3d, 3, input, output_size)
