"""Convolutions of one to three dims, plain and transposed.

All are one form, linear in an input x, kernels w and results y: the sum over n, i, k of y[n, :, i] w[:, :, k] x[n, :, i s - p + k d] with
stride s, padding p and dilation d. Its derivative by y is a convolution, by x a transposed one, by w the gradient of kernels. So each of
these three operators has the other two as its gradients, to every order.

Each is one matrix product: windows of the zero-padded input are copied into columns (im2col: Chellapilla, Puri and Simard 2006), a block
at a time, which is multiplied while it is in the cache. Kernels of many elements are multiplied in the frequency domain: the errors are
rounding errors of the largest elements of a channel, not of each result; where a result is not finite, all are computed by windows.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.compute import convolution as compiled
from cygrad._core.compute.convolution import is_spectral, set_ways
from cygrad._core.compute.patches import added_columns, columns_of
from cygrad._core.memory.sizes import index_argument
from cygrad._core.operands.arrays import computed, to_array
from cygrad.operators._language.arguments import checked_operand, integers
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.operators._language.tangents import bilinear
from cygrad.operators.padding import constant_pad_nd
from cygrad.operators.patches import Steps, extent_of, placed
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Ints

Sizes = tuple[int, ...]

# Elements of columns that are copied and multiplied at a time.
BLOCK = 1 << 18
# Elements of a kernel, and places, from which on transforms are quicker: measured from 1 to 8 channels, along one dim and two.
LONG, MANY = 128, 512
# Columns are gathered, rather than added up, where they have no more than ADDING times the elements, and there are so many results.
ADDING, SMALL = 1.25, 1 << 10


# ----- Products of columns -----
class Block(NamedTuple):
    """A part of the windows: examples, and places along the first dim."""

    examples: slice
    rows: slice


@lru_cache(256)
def _blocks(size: int, examples: int, channels: int, kernel: Sizes, count: Sizes) -> tuple[Block, ...]:
    """Return parts of the windows, of about so many elements."""
    each = channels * prod(kernel) * prod(count[1:])        # elements of the windows in a row of places
    step = max(size // max(each, 1), 1)                    # rows in a block
    if step >= count[0]:
        step //= max(count[0], 1)
        return tuple([Block(slice(n, min(n + step, examples)), slice(0, count[0])) for n in range(0, examples, step)])
    rows = [slice(row, min(row + step, count[0])) for row in range(0, count[0], step)]
    return tuple([Block(slice(n, n + 1), each_rows) for n in range(examples) for each_rows in rows])


def _columns(x: Tensor, block: Block, groups: int, steps: Steps, kernel: Sizes, count: Sizes) -> Tensor:
    """Return windows as matrices: a row for each channel of a group and place in the kernel, a column for each window."""
    examples, (first, end, _) = block.examples, block.rows.indices(count[0])
    part = x if examples.stop - examples.start == len(x) else x[examples]
    columns = columns_of(part, steps, kernel, (end - first, *count[1:]), True, first)
    return columns if groups == 1 else columns.reshape(groups, columns.shape[0] // groups, columns.shape[1])


def _convolved(x: Tensor, w: Tensor, steps: Steps, count: Sizes) -> Tensor:
    """Return the products of windows with kernels, (examples, channels, *count)."""
    shape, sizes, groups = w.shape, x.shape, steps.groups
    channels, kernel, examples, own = shape[0], shape[2:], sizes[0], sizes[1]
    matrix = w.flatten(1)
    result = x.new_empty((examples, channels, *count))          # sizes that do not fit into memory end here
    matrix = matrix if groups == 1 else matrix.reshape(groups, channels // groups, matrix.shape[1])
    for block in _blocks(BLOCK, examples, own, kernel, count) if result.numel() else ():
        part = result[block.examples, :, block.rows]
        product = matrix @ _columns(x, block, groups, steps, kernel, count)
        part.copy_(product.reshape(channels, len(part), *part.shape[2:]).transpose(0, 1))
    return result


def _kernels(x: Tensor, y: Tensor, steps: Steps, kernel: Sizes) -> Tensor:
    """Return the sums of products of windows with results, (channels of y, channels of a group, *kernel)."""
    result = None
    sizes, own, groups = y.shape, x.shape[1], steps.groups
    examples, channels, count = sizes[0], sizes[1], sizes[2:]
    for block in _blocks(BLOCK, examples, own, kernel, count) if y.numel() else ():
        part = y[block.examples, :, block.rows]
        rows = part.transpose(0, 1).reshape(channels, -1)
        if groups > 1:
            rows = rows.reshape(groups, channels // groups, rows.shape[1])
        product = rows @ _columns(x, block, groups, steps, kernel, count).mT
        result = product if result is None else result.add_(product)
    shape = (channels, own // groups, *kernel)
    return x.new_zeros(shape) if result is None else result.reshape(shape)


def _spread(y: Tensor, w: Tensor, steps: Steps, sizes: Sizes) -> Tensor:
    """Return the sums of kernels, times results, at the places of their windows, (examples, channels, *sizes)."""
    shape, groups = w.shape, steps.groups
    own, channels, kernel = shape[0], shape[1], shape[2:]
    examples, places = y.shape[0], y.shape[2:]
    matrix = w.reshape(groups, own // groups, channels * prod(kernel)).mT
    values = y.reshape(examples, groups, own // groups, prod(places))
    result = y.new_empty((examples, groups * channels, *sizes))
    block = max(BLOCK // max(groups * channels * prod(kernel) * prod(places), 1), 1)
    for n in range(0, examples, block):
        columns = (matrix @ values[n:n + block]).flatten(1, 2)
        result[n:n + block] = added_columns(columns, steps, kernel, places, sizes)
    return result


@lru_cache(256)
def _in_reverse(steps: Steps, kernel: tuple[int, ...]) -> Steps:
    """Return where windows of results lie, of which each place of the input is the sum, in reverse order."""
    first = tuple([(k - 1) * d - b for k, d, b in zip(kernel, steps.dilation, steps.before, strict=True)])
    return steps._replace(before=first)


def _gathered(y: Tensor, w: Tensor, steps: Steps, sizes: Sizes) -> Tensor | None:
    """Return the same with stride 1, as a convolution: each place has a window of results, and the kernels in reverse order. None where
    adding up is quicker."""
    if max(steps.stride) > 1 or w.shape[0] * prod(sizes) > ADDING * steps.groups * w.shape[1] * prod(y.shape[2:]):
        return None
    (own, channels, *_), kernel, groups = w.shape, w.shape[2:], steps.groups
    turned = w.flip(tuple(range(2, 2 + len(kernel))))
    if groups > 1:
        turned = turned.reshape(groups, own // groups, channels, *kernel)
        turned = turned.transpose(1, 2).reshape(groups * channels, own // groups, *kernel)
    else:
        turned = turned.transpose(0, 1)
    return y._convolve(turned, _in_reverse(steps, kernel), sizes)


# ----- Products of spectra -----
@lru_cache(256)
def _quick_size(size: int) -> int:
    """Return the next size that has no prime factor but 2, 3 and 5."""
    while True:
        rest = size
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return size
        size += 1


def _apart(array: np.ndarray, step: Sizes) -> np.ndarray:
    """Return an array with its elements `step` apart in the dims behind the first two, and zeros between."""
    if max(step) == 1:
        return array
    result = np.zeros(array.shape[:2] + tuple([(n - 1) * s + 1 for n, s in zip(array.shape[2:], step, strict=True)]), array.dtype)
    result[:, :, *[slice(None, None, s) for s in step]] = array
    return result


def _by_spectra(a: np.ndarray, b: np.ndarray, formula: str, extent: Sizes, groups: tuple[int, int], reverse: bool) -> np.ndarray | None:
    """Return the sums over channels of convolutions of two arrays of (..., channels, *sizes), or of correlations (`reverse`), up to
    `extent`; None where a result is not finite.

    groups: the dim of the second array that has channels of groups, and their number; in the first it is dim 1.
    """
    dims, (dim, number) = len(extent), groups
    axes, sizes = tuple(range(2, 2 + dims)), [_quick_size(size) for size in extent]
    is_real = a.dtype.kind == b.dtype.kind == "f"
    forward, backward = (np.fft.rfftn, np.fft.irfftn) if is_real else (np.fft.fftn, np.fft.ifftn)
    with np.errstate(all="ignore"):
        first, second = forward(a, sizes, axes), forward(b.conj() if reverse else b, sizes, axes)
        second = second.conj() if reverse else second
        first = first.reshape(first.shape[0], number, first.shape[1] // number, *first.shape[2:])
        second = second.reshape(*second.shape[:dim], number, second.shape[dim] // number, *second.shape[dim + 1:])
        product = np.einsum(formula, first, second)
        merged = product.reshape(-1, product.shape[-1 - dims], *product.shape[-dims:])
        result = backward(merged, sizes, axes)[:, :, *[slice(size) for size in extent]]
    if not np.isfinite(result).all():
        return None
    return result.reshape(*product.shape[:-dims], *extent).astype(a.dtype, copy=False)


def _convolved_by_spectra(x: np.ndarray, w: np.ndarray, steps: Steps, count: Sizes) -> np.ndarray | None:
    extent = extent_of(steps, w.shape[2:], count)
    groups = (0, steps.groups)
    result = _by_spectra(placed(x, steps.before, extent), _apart(w, steps.dilation), "ngc...,goc...->ngo...", extent, groups, True)
    if result is None:
        return None
    part = [slice(0, (n - 1) * s + 1, s) for n, s in zip(count, steps.stride, strict=True)]
    return result.reshape(x.shape[0], w.shape[0], *extent)[:, :, *part]


def _spread_by_spectra(y: np.ndarray, w: np.ndarray, steps: Steps, sizes: Sizes) -> np.ndarray | None:
    extent = extent_of(steps, w.shape[2:], y.shape[2:])
    result = _by_spectra(_apart(y, steps.stride), _apart(w, steps.dilation), "ngo...,goc...->ngc...", extent, (0, steps.groups), False)
    if result is None:
        return None
    return placed(result.reshape(y.shape[0], steps.groups * w.shape[1], *extent), tuple([-b for b in steps.before]), sizes)


def _kernels_by_spectra(x: np.ndarray, y: np.ndarray, steps: Steps, kernel: Sizes) -> np.ndarray | None:
    extent = extent_of(steps, kernel, y.shape[2:])
    result = _by_spectra(placed(x, steps.before, extent), _apart(y, steps.stride), "ngc...,ngo...->goc...", extent, (1, steps.groups), True)
    if result is None:
        return None
    part = [slice(0, (k - 1) * d + 1, d) for k, d in zip(kernel, steps.dilation, strict=True)]
    return result.reshape(y.shape[1], x.shape[1] // steps.groups, *extent)[:, :, *part]


# ----- Three operators, each of which is the adjoint of the others -----
def _with_groups(level: Any, x: Tensor) -> Tensor:
    """Return examples of a tensor (batch, channels, ...) as groups of channels."""
    return level.enter(x).transpose(0, 1).flatten(1, 2)


def _from_groups(level: Any, result: Tensor) -> Tensor:
    return level.leave(result.unflatten(1, (level.size, result.shape[1] // level.size)).transpose(0, 1))


def _convolved_examples(level: Any, operator: Any, x: Tensor, w: Tensor, steps: Steps, sizes: tuple[int, ...]) -> Tensor:
    if not level.varies(w):
        return level.leave(operator(level.enter(x).flatten(0, 1), w, steps, sizes).unflatten(0, (level.size, x.shape[0])))
    steps = steps._replace(groups=steps.groups * level.size)
    return _from_groups(level, operator(_with_groups(level, x), level.enter(w).flatten(0, 1), steps, sizes))


def _kernels_of_examples(level: Any, operator: Any, x: Tensor, y: Tensor, steps: Steps, kernel: tuple[int, ...]) -> Tensor:
    steps = steps._replace(groups=steps.groups * level.size)
    result = operator(_with_groups(level, x), _with_groups(level, y), steps, kernel)
    return level.leave(result.unflatten(0, (level.size, y.shape[1])))


# Those that are not computed at once:
def _convolved_else(x: Tensor, w: Tensor, steps: Steps, count: Sizes) -> Tensor:
    result = _convolved_by_spectra(to_array(x), to_array(w), steps, count) if is_spectral(w.shape[2:], count, w) else None
    return _convolved(x, w, steps, count) if result is None else computed(result)


def _spread_else(y: Tensor, w: Tensor, steps: Steps, sizes: Sizes) -> Tensor:
    result = _spread_by_spectra(to_array(y), to_array(w), steps, sizes) if is_spectral(w.shape[2:], y.shape[2:], w) else None
    return _spread(y, w, steps, sizes) if result is None else computed(result)


def _kernels_else(x: Tensor, y: Tensor, steps: Steps, kernel: Sizes) -> Tensor:
    result = _kernels_by_spectra(to_array(x), to_array(y), steps, kernel) if is_spectral(kernel, y.shape[2:], y) else None
    return _kernels(x, y, steps, kernel) if result is None else computed(result)


OTHERWISE = {"convolve": _convolved_else, "gathered": _gathered, "spread_kernels": _spread_else, "sum_kernels": _kernels_else}


def _otherwise(name: str, one: Tensor, other: Tensor, steps: Steps, sizes: Sizes) -> Tensor | None:
    return OTHERWISE[name](one.detach(), other.detach(), steps, sizes)


def choose_ways() -> None:
    """Have the core compute convolutions by the limits above."""
    set_ways(BLOCK, SMALL, LONG, MANY, _otherwise)


choose_ways()


@operator(compiled.convolve, dinput=lambda g, weight, steps, input_shape: g._spread_kernels(weight, steps, input_shape[2:]),
          dweight=lambda g, input, steps, weight_shape: input._sum_kernels(g, steps, weight_shape[2:]),
          tangent=bilinear, batch=_convolved_examples, node="ConvolutionBackward0")
def _convolve(input: Tensor, weight: Tensor, steps: Steps, count: tuple[int, ...]) -> Tensor:
    """Convolve (examples, channels, *sizes) with kernels (channels of the result, channels of a group, *kernel) at so many places."""


@operator(compiled.spread_kernels, dinput=lambda g, weight, steps, input_shape: g._convolve(weight, steps, input_shape[2:]),
          dweight=lambda g, input, steps, weight_shape: g._sum_kernels(input, steps, weight_shape[2:]),
          tangent=bilinear, batch=_convolved_examples, node="ConvolutionBackward0")
def _spread_kernels(input: Tensor, weight: Tensor, steps: Steps, sizes: tuple[int, ...]) -> Tensor:
    """Transpose of `_convolve` by its input: from results to a tensor of sizes."""


@operator(compiled.sum_kernels, dinput=lambda g, other, steps, input_shape: other._spread_kernels(g, steps, input_shape[2:]),
          dother=lambda g, input, steps, other_shape: input._convolve(g, steps, other_shape[2:]),
          tangent=bilinear, batch=_kernels_of_examples, node="ConvolutionBackward0")
def _sum_kernels(input: Tensor, other: Tensor, steps: Steps, kernel: tuple[int, ...]) -> Tensor:
    """Transpose of `_convolve` by its kernels: from an input and results to kernels."""


# ----- Arguments -----
def _per_dim(word: str, value: Ints, dims: int) -> tuple[int, ...]:
    """Return one number for each dim of a kernel."""
    if type(value) is int:
        return (value,) * dims
    numbers = integers(value)
    if len(numbers) not in (1, dims):
        raise RuntimeError(f"expected {word} to be a single integer value or a list of {dims} values to match the convolution dimensions, "
                           f"but got {word}={list(numbers)}")
    return numbers if len(numbers) == dims else numbers * dims


def _check_operands(operator: Any, dims: int, input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {operator.name}, but got input of size: "
                           f"{list(input.shape)}")
    if weight.ndim < 3:
        raise RuntimeError(f"weight should have at least three dimensions, but got weight of size {list(weight.shape)}")
    if weight.ndim != dims + 2:
        sizes = [1] * (dims + 2 - input.ndim) + list(input.shape)
        raise RuntimeError(f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight{list(weight.shape)}, but got "
                           f"{dims + 2}-dimensional input of size {sizes} instead; {operator.name} takes a weight of {dims + 2} dims")
    dtype = input.dtype
    if weight.dtype is not dtype:
        raise RuntimeError(f"expected scalar type {DTYPES[NUMBER[dtype.name]].title} but found {DTYPES[NUMBER[weight.dtype.name]].title}: "
                           "input and weight must have the same dtype")
    if bias is not None and bias.dtype is not dtype:
        of_input, of_bias = (DTYPES[NUMBER[each.name]].spelling.replace("int64_t", "long int") for each in (dtype, bias.dtype))
        raise RuntimeError(f"Input type ({of_input}) and bias type ({of_bias}) should be the same")
    checked_operand(operator, input)


def _check_channels(shape: Sizes, weight: Sizes, bias: Sizes | None, groups: int, transposed: bool) -> None:
    """Refuse shapes that do not fit; the input has its dim of examples."""
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported, but got groups={groups}")
    own, channels = (weight[0], weight[1] * groups) if transposed else (weight[1] * groups, weight[0])
    if weight[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
                           f"{list(weight)} instead")
    if weight[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
                           f"[{list(weight)}] instead")
    if shape[1] != own:
        raise RuntimeError(f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size {list(weight)}, expected input"
                           f"{list(shape)} to have {own} channels, but got {shape[1]} channels instead")
    if bias is not None and bias != (channels,):
        raise RuntimeError(f"Given {'transposed=1, ' if transposed else ''}weight of size {list(weight)}, expected bias to be "
                           f"1-dimensional with {channels} elements, but got bias of size {list(bias)} instead")
    if 0 in weight[2:]:
        raise RuntimeError(f"kernel size should be greater than zero, but got kernel {list(weight[2:])}")


def _check_steps(steps: Steps) -> Steps:
    if min(steps.before) < 0:
        raise RuntimeError(f"negative padding is not supported, but got padding={list(steps.before)}")
    if min(steps.stride) <= 0:
        raise RuntimeError(f"non-positive stride is not supported, but got stride={list(steps.stride)}")
    if min(steps.dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(steps.dilation)}")
    return steps


class Plan(NamedTuple):
    """A convolution whose arguments are checked."""

    steps: Steps
    sizes: tuple[int, ...]          # of the result
    behind: tuple[int, ...] = ()    # zeros that the input gets behind, for `constant_pad_nd`


# Plans are kept, as a program convolves the same shapes over and over. (A refused one is not: an exception has no result.)
@lru_cache(256)
def _planned(shape: Sizes, weight: Sizes, bias: Sizes | None, stride: Sizes, padding: Sizes | str, dilation: Sizes, groups: int) -> Plan:
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise RuntimeError(f"Invalid padding string: '{padding}'; there are 'same' and 'valid'")
    steps = _check_steps(Steps(stride, (0,) * len(stride) if isinstance(padding, str) else padding, dilation, groups))
    _check_channels(shape, weight, bias, groups, False)
    sizes = shape[2:]
    behind: tuple[int, ...] = ()
    if padding == "same":       # of an odd number of zeros there is one more behind
        if any(step != 1 for step in stride):
            raise RuntimeError(f"padding='same' is not supported for strided convolutions, but got stride={list(stride)}")
        total = [d * (k - 1) for d, k in zip(dilation, weight[2:], strict=True)]
        steps = steps._replace(before=tuple([more // 2 for more in total]))
        sizes = tuple(map(add, sizes, [more % 2 for more in total]))
        behind = tuple([count for more in reversed(total) for count in (0, more % 2)]) if sizes != shape[2:] else ()
    padded = [size + 2 * more for size, more in zip(sizes, steps.before, strict=True)]
    extent = [d * (k - 1) + 1 for d, k in zip(dilation, weight[2:], strict=True)]
    if any(size > there for size, there in zip(extent, padded, strict=True)):
        raise RuntimeError(f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
                           f"({' x '.join(map(str, extent))}). Kernel size can't be greater than actual input size")
    return Plan(steps, tuple([(there - size) // s + 1 for there, size, s in zip(padded, extent, stride, strict=True)]), behind)


@lru_cache(256)
def _planned_transpose(shape: Sizes, weight: Sizes, bias: Sizes | None, stride: Sizes, padding: Sizes, more: Sizes, dilation: Sizes,
                       groups: int) -> Plan:
    steps = _check_steps(Steps(stride, padding, dilation, groups))
    if min(more) < 0:
        raise RuntimeError(f"negative output_padding is not supported, but got output_padding={list(more)}")
    _check_channels(shape, weight, bias, groups, True)
    if any(count >= max(s, d) for count, s, d in zip(more, stride, dilation, strict=True)):
        raise RuntimeError("output padding must be smaller than either stride or dilation, but got output_padding: "
                           f"{list(more)} stride: {list(stride)} dilation: {list(dilation)}")
    sizes = tuple([(n - 1) * s - 2 * p + d * (k - 1) + extra + 1
                   for n, s, p, d, k, extra in zip(shape[2:], stride, padding, dilation, weight[2:], more, strict=True)])
    if min(sizes) < 1 or 0 in shape[2:]:
        raise RuntimeError(f"Given input size per channel: ({' x '.join(map(str, shape[2:]))}). Calculated output size per channel: "
                           f"({' x '.join(map(str, sizes))}). Output size is too small")
    return Plan(steps, sizes)


@rounded_once
def _with_bias(input: Tensor, weight: Tensor, bias: Tensor | None, operator: Any, plan: Plan) -> Tensor:
    result = operator(constant_pad_nd(input, plan.behind) if plan.behind else input, weight, plan.steps, plan.sizes)
    return result if bias is None else result + bias.reshape([-1] + [1] * len(plan.sizes))


def _convolution(operator: Any, dims: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints | str,
                 dilation: Ints, groups: int) -> Tensor:
    """Check the arguments of a convolution, and compute it."""
    _check_operands(operator, dims, input, weight, bias)
    if input.ndim == dims + 1:
        return _convolution(operator, dims, input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    plan = _planned(input.shape, weight.shape, None if bias is None else bias.shape, _per_dim("stride", stride, dims),
                    padding if isinstance(padding, str) else _per_dim("padding", padding, dims), _per_dim("dilation", dilation, dims),
                    groups if type(groups) is int else index_argument(groups, "groups"))
    return _with_bias(input, weight, bias, _convolve, plan)


def _transposed_convolution(operator: Any, dims: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints,
                            output_padding: Ints, groups: int, dilation: Ints) -> Tensor:
    """Check the arguments of a transposed convolution, and compute it."""
    _check_operands(operator, dims, input, weight, bias)
    if input.ndim == dims + 1:
        batch = input.unsqueeze(0)
        return _transposed_convolution(operator, dims, batch, weight, bias, stride, padding, output_padding, groups, dilation).squeeze(0)
    plan = _planned_transpose(input.shape, weight.shape, None if bias is None else bias.shape, _per_dim("stride", stride, dims),
                              _per_dim("padding", padding, dims), _per_dim("output_padding", output_padding, dims),
                              _per_dim("dilation", dilation, dims), index_argument(groups, "groups"))
    return _with_bias(input, weight, bias, _spread_kernels, plan)


# ----- Convolutions -----
@operator(method=False, aliases=("nn_functional_conv1d",), refuses={"b": NO_LOOP}, loop="slow_conv2d_cpu")
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | str = 0,
           dilation: Ints = 1, groups: int = 1) -> Tensor:
    """Convolution along one dim of (examples, channels, size), or one example, by (channels of the result, channels / groups, size).

    Result i of channel o is bias[o] + the sum over c and k of weight[o, c, k] input[c, i stride - padding + k dilation], where the input is
    0 outside; so the kernel is not reversed. Each of `groups` parts of the result's channels reads the same part of the input's.
    `padding`: zeros at each end, "valid" for none, "same" for as many as keep the size (with stride 1).

    Floating-point, complex and integer numbers, the same for all operands. RuntimeError where sizes do not fit, or the kernel is larger
    than the padded input. Complexity and method: the module's documentation.

    >>> import cygrad
    >>> cygrad.nn.functional.conv1d(cygrad.tensor([[1., 2., 4., 7.]]), cygrad.tensor([[[-1., 1.]]]))
    tensor([[1., 2., 3.]])
    """
    return _convolution(conv1d, 1, input, weight, bias, stride, padding, dilation, groups)


@operator(method=False, aliases=("nn_functional_conv2d",), refuses={"b": NO_LOOP}, loop="slow_conv2d_cpu")
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | str = 0,
           dilation: Ints = 1, groups: int = 1) -> Tensor:
    """Convolution along two dims: (examples, channels, height, width), or one example. See `conv1d`; numbers are one, or one for each dim.

    >>> import cygrad
    >>> cygrad.nn.functional.conv2d(cygrad.arange(9.).reshape(1, 3, 3), cygrad.ones(1, 1, 2, 2))
    tensor([[[ 8., 12.],
             [20., 24.]]])
    """
    return _convolution(conv2d, 2, input, weight, bias, stride, padding, dilation, groups)


@operator(method=False, aliases=("nn_functional_conv3d",), refuses={"b": NO_LOOP}, loop="slow_conv3d_cpu")
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | str = 0,
           dilation: Ints = 1, groups: int = 1) -> Tensor:
    """Convolution along three dims: (examples, channels, depth, height, width), or one example. See `conv1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.conv3d(cygrad.ones(1, 2, 2, 2), cygrad.ones(1, 1, 2, 2, 2))
    tensor([[[[8.]]]])
    """
    return _convolution(conv3d, 3, input, weight, bias, stride, padding, dilation, groups)


@operator(method=False, aliases=("nn_functional_conv_tbc",))
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution along the first dim of (time, examples, channels) with a weight (size, channels, channels of the result). See `conv1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.conv_tbc(cygrad.ones(3, 1, 1), cygrad.ones(2, 1, 1), cygrad.zeros(1)).flatten()
    tensor([2., 2.])
    """
    for tensor, word, ndim in (input, "Input", 3), (weight, "Weight", 3), (bias, "Bias", 1):
        if tensor.ndim != ndim:
            raise RuntimeError(f"{word} must have {ndim} dims{': time, batch, in_channel' if word == 'Input' else ''}, but it has "
                               f"{tensor.ndim}")
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1).contiguous()


# ----- Transposed convolutions -----
@operator(method=False, aliases=("nn_functional_conv_transpose1d",), refuses={"b": NO_LOOP}, loop="slow_conv_transpose2d_out_cpu")
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints = 0,
                     output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1) -> Tensor:
    """Transpose of `conv1d` of the same stride, padding, dilation and groups, as a linear map of its input; the weight is the same.

    The input has the weight's first number of channels, the result its second, times `groups`. The size of the result is
    (size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1: a convolution maps several sizes to one, of which
    `output_padding` selects one. RuntimeError where sizes do not fit, or `output_padding` is not less than the stride or the dilation.

    >>> import cygrad
    >>> cygrad.nn.functional.conv_transpose1d(cygrad.tensor([[1., 2.]]), cygrad.tensor([[[1., 10., 100.]]]), stride=2)
    tensor([[  1.,  10., 102.,  20., 200.]])
    """
    return _transposed_convolution(conv_transpose1d, 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operator(method=False, aliases=("nn_functional_conv_transpose2d",), refuses={"b": NO_LOOP}, loop="slow_conv_transpose2d_out_cpu")
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints = 0,
                     output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1) -> Tensor:
    """Transpose of `conv2d`, see `conv_transpose1d`; numbers are one, or one for each dim.

    >>> import cygrad
    >>> cygrad.nn.functional.conv_transpose2d(cygrad.ones(1, 2, 2), cygrad.ones(1, 1, 2, 2))
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    return _transposed_convolution(conv_transpose2d, 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operator(method=False, aliases=("nn_functional_conv_transpose3d",), refuses={"b": NO_LOOP}, loop="slow_conv_transpose3d_out_cpu")
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints = 0,
                     output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1) -> Tensor:
    """Transpose of `conv3d`, see `conv_transpose1d`.

    >>> import cygrad
    >>> cygrad.nn.functional.conv_transpose3d(cygrad.ones(1, 1, 1, 1), cygrad.ones(1, 1, 1, 1, 3))
    tensor([[[[1., 1., 1.]]]])
    """
    return _transposed_convolution(conv_transpose3d, 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operator(method=False)
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
                transposed: bool, output_padding: Sequence[int], groups: int) -> Tensor:
    """Convolution along as many dims as the weight has behind its channels, or its transpose. See `conv1d` and `conv_transpose1d`.

    >>> import cygrad
    >>> cygrad.convolution(cygrad.ones(1, 1, 3), cygrad.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    dims = weight.ndim - 2
    if not 1 <= dims <= 3:
        raise RuntimeError(f"weight should have at least three dimensions, and at most five, but got weight of size {list(weight.shape)}")
    if input.ndim != weight.ndim:
        raise RuntimeError(f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight {list(weight.shape)}, but got "
                           f"{input.ndim}-dimensional input of size {list(input.shape)} instead")
    if transposed:
        return _transposed_convolution(convolution, dims, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolution(convolution, dims, input, weight, bias, stride, padding, dilation, groups)
