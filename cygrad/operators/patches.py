"""Windows of several dims: as columns of a matrix, and added up from them."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.compute.patches import added_columns, columns_of
from cygrad.operators._language.arguments import checked_operand, hashable, integers
from cygrad.operators._language.declaration import operator, recorded
from cygrad.operators._language.tangents import linear
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad.tensor import Tensor
    from cygrad.typing import Ints


class Steps(NamedTuple):
    """Where windows lie: element k of window i along a dim is at i * stride - before + k * dilation."""

    stride: tuple[int, ...]
    before: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1


# ----- Arrays -----
class Layout(NamedTuple):
    """Where an array lies among zeros."""

    target: tuple[slice, ...]
    source: tuple[slice, ...]


@lru_cache(256)
def _layout(sizes: tuple[int, ...], before: tuple[int, ...], extent: tuple[int, ...]) -> Layout:
    target, source = [slice(None), slice(None)], [slice(None), slice(None)]
    for start, size, there in zip(before, extent, sizes, strict=True):
        low, high = max(start, 0), max(min(start + there, size), 0)
        target.append(slice(low, high))
        source.append(slice(low - start, max(high, low) - start))
    return Layout(tuple(target), tuple(source))


def placed(array: np.ndarray, before: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """Return an array (examples, channels, ...) with other sizes in the dims behind: zeros come before it and behind, or it is cut."""
    target, source = _layout(array.shape[2:], before, sizes)
    result = np.zeros(array.shape[:2] + sizes, array.dtype)
    result[target] = array[source]
    return result


@lru_cache(256)
def extent_of(steps: Steps, kernel: tuple[int, ...], count: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes that windows span."""
    return tuple([(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(count, steps.stride, kernel, steps.dilation, strict=True)])


# ----- Two operators, each of which is the adjoint of the other -----
def _of_all_examples(level: Any, operator: Any, x: Tensor, *arguments: Any) -> Tensor:
    """Apply an operator on (examples, ...) to the examples of all examples."""
    return level.leave(operator(level.enter(x).flatten(0, 1), *arguments).unflatten(0, (level.size, x.shape[0])))


@operator(dinput=lambda g, input_shape, steps, kernel, count: g._add_columns(steps, kernel, count, input_shape[2:]), tangent=linear,
          batch=_of_all_examples, node="Im2ColBackward0")
def _take_columns(input: Tensor, steps: Steps, kernel: tuple[int, ...], count: tuple[int, ...]) -> Tensor:
    """Copy windows of (examples, channels, *sizes) as (examples, channels * kernel, places), with zeros around the input."""
    return recorded(_take_columns, (input,), columns_of(input, steps, kernel, count, False), steps=steps, kernel=kernel, count=count)


@operator(dinput=lambda g, steps, kernel, count: g._take_columns(steps, kernel, count), tangent=linear, batch=_of_all_examples,
          node="Col2ImBackward0")
def _add_columns(input: Tensor, steps: Steps, kernel: tuple[int, ...], count: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    """Add windows up where they lie: the transpose of `_take_columns`."""
    return recorded(_add_columns, (input,), added_columns(input, steps, kernel, count, sizes), steps=steps, kernel=kernel, count=count)


# ----- Arguments -----
def _pair(word: str, value: Ints) -> tuple[int, ...]:
    numbers = integers(value)
    if len(numbers) not in (1, 2):
        raise RuntimeError(f"It is expected {word} equals to 2, but got size {len(numbers)}")
    return numbers if len(numbers) == 2 else numbers * 2


def _checked_steps(kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> tuple[Steps, tuple[int, ...]]:
    """Return where windows lie, and the sizes of each."""
    kernel, apart = _pair("kernel_size", kernel_size), _pair("dilation", dilation)
    before, step = _pair("padding", padding), _pair("stride", stride)
    for word, numbers in ("kernel size", kernel), ("dilation", apart), ("stride", step):
        if min(numbers) <= 0:
            raise RuntimeError(f"{word} should be greater than zero, but got {word.replace(' ', '_')}: {list(numbers)}")
    if min(before) < 0:
        raise RuntimeError(f"padding should be non-negative, but got padding: {list(before)}")
    return Steps(step, before, apart), kernel


def _count(sizes: tuple[int, ...], kernel: tuple[int, ...], steps: Steps) -> tuple[int, ...]:
    """Return the number of windows along each dim, none or less where a kernel is larger than the padded dim; at most 2**63 - 1."""
    return tuple([min((n + 2 * p - d * (k - 1) - 1) // s + 1, 2**63 - 1) for n, k, s, p, d in zip(
        sizes, kernel, steps.stride, steps.before, steps.dilation, strict=True)])


class Plan(NamedTuple):
    """Windows whose arguments are checked."""

    steps: Steps
    kernel: tuple[int, ...]
    places: tuple[int, ...]     # how many windows
    sizes: tuple[int, ...]      # of the image


@lru_cache(256)
def _plan_of_columns(shape: tuple[int, ...], kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Plan:
    steps, kernel = _checked_steps(kernel_size, dilation, padding, stride)
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
                           f"got: {list(shape)}")
    sizes = shape[-2:]
    count = _count(sizes, kernel, steps)
    if min(count) < 1:
        raise RuntimeError(f"Given input with spatial size {list(sizes)}, kernel_size={list(kernel)}, "
                           f"dilation={list(steps.dilation)}, padding={list(steps.before)}, stride={list(steps.stride)}, calculated shape "
                           f"of the array of sliding blocks as {list(count)}, but its components must be at least one.")
    return Plan(steps, kernel, count, sizes)


@lru_cache(256)
def _plan_of_sums(shape: tuple[int, ...], output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Plan:
    sizes = _pair("output_size", output_size)
    steps, kernel = _checked_steps(kernel_size, dilation, padding, stride)
    if min(sizes) <= 0:
        raise RuntimeError(f"output_size should be greater than zero, but got output_size: {list(sizes)}")
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
                           f"but got: {list(shape)}")
    if shape[-2] % prod(kernel):
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
                           f"input.size(1)={shape[-2]} and kernel_size={list(kernel)}.")
    count = _count(sizes, kernel, steps)
    if min(count) < 1 or prod(count) != shape[-1]:
        raise RuntimeError(f"Given output_size={list(sizes)}, kernel_size={list(kernel)}, dilation={list(steps.dilation)}, "
                           f"padding={list(steps.before)}, stride={list(steps.stride)}, expected size of input's dimension 2 to match the "
                           f"calculated number of sliding blocks {count[0]} * {count[1]} = {prod(count)}, but got input.size(2)="
                           f"{shape[-1]}.")
    return Plan(steps, kernel, count, sizes)


@operator(method=False, refuses={"i": NO_LOOP}, loop="im2col_out_cpu")
def nn_functional_unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """Windows of (examples, channels, height, width), or one example, as columns: (examples, channels * kernel, windows).

    Rows are channels and places in the window, columns the windows, both row-major; the input is 0 outside (`padding`). Numbers are one,
    or one for each dim. RuntimeError where they are not positive, or a window is larger than the padded input.

    >>> import cygrad
    >>> cygrad.nn.functional.unfold(cygrad.arange(6.).reshape(1, 2, 3), (2, 2))
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """
    steps, kernel, count, _ = _plan_of_columns(input.shape, *map(hashable, (kernel_size, dilation, padding, stride)))
    checked_operand(nn_functional_unfold, input)
    if input.ndim == 3:
        return input.unsqueeze(0)._take_columns(steps, kernel, count).squeeze(0)
    return input._take_columns(steps, kernel, count)


@operator(method=False, refuses={"i": NO_LOOP}, loop="col2im_out_cpu")
def nn_functional_fold(input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0,
                       stride: Ints = 1) -> Tensor:
    """Sum of windows where they lie, of (examples, channels * kernel, windows): the transpose of `unfold`, to (examples, channels, *size).

    RuntimeError where the number of rows is no multiple of the window's size, or the number of columns is not the number of windows.

    >>> import cygrad
    >>> cygrad.nn.functional.fold(cygrad.ones(4, 2), (2, 3), (2, 2))
    tensor([[[1., 2., 1.],
             [1., 2., 1.]]])
    """
    steps, kernel, count, sizes = _plan_of_sums(input.shape, *map(hashable, (output_size, kernel_size, dilation, padding, stride)))
    checked_operand(nn_functional_fold, input)
    if input.ndim == 2:
        return input.unsqueeze(0)._add_columns(steps, kernel, count, sizes).squeeze(0)
    return input._add_columns(steps, kernel, count, sizes)
