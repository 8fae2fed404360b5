"""How random numbers get into a tensor's memory: samplers, and functions that draw from them, inside of vmap too.

A sampler fills a C-contiguous array from a stream of NumPy's. It gets the dtype besides: 16-bit floats are drawn in the dtype that is
computed in.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.compute.inplace import write_again
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import batched_level
from cygrad._core.levels.level import Level, innermost_level
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.operands.arrays import computed, to_array
from cygrad.data.creation import empty, out_tensor
from cygrad.data.limits import finfo, iinfo
from cygrad.operators.new_tensors import empty_like
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from cygrad._core.memory.storage import DType
    from cygrad.device import device as Device

    Sample = Callable[[np.random.Generator, np.ndarray, DType], None]


# ----- Drawing -----
def drawn(
    size: tuple[int, ...],
    sample: Sample,
    source: Callable[[], np.random.Generator],
    out: Tensor | None,
    dtype: DType | None,
    device: Device | str | None,
    requires_grad: bool,
) -> Tensor:
    """Return a tensor of a size, or `out`, filled by a sampler; with examples in front where each gets numbers of its own.

    `source` returns the stream to draw from, at each draw: a captured program draws again.
    """
    if out is None:
        levels = levels_that_differ()
        result = empty((*(level.size for level in levels), *size), dtype=dtype, device=device, requires_grad=requires_grad)
        write_again(result.detach(), lambda array: sample(source(), array, result.dtype))
        for level in levels:
            result = level.leave(result)
        return result
    target = checked_out(out, size, dtype)
    target[...] = drawn(size, sample, source, None, out.dtype, device, False)  # counts as an in-place change of out
    return out.requires_grad_(requires_grad or out.requires_grad)


def checked_out(out: Tensor, size: tuple[int, ...], dtype: DType | None) -> Tensor:
    """Return `out`, where random numbers of a size and, unless None, a dtype may be written."""
    if batched_level(out_tensor(out)) is not None or levels_that_differ():
        raise RuntimeError("vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out variants "
                           "as a workaround")
    if out.requires_grad and is_grad_enabled():
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad: write to out.detach() or under no_grad()"
        )
    if dtype is not None and dtype != out.dtype:
        raise RuntimeError(f"dtype {dtype} does not match dtype of out parameter ({out.dtype})")
    if tuple(out.shape) != tuple(size):
        raise RuntimeError(f"out has shape {tuple(out.shape)}, but the result has shape {tuple(size)}")
    return out


def levels_that_differ() -> list[Level]:
    """Return the calls of vmap, outer ones first, that this thread is in and that draw other numbers for each example."""
    levels: list[Level] = []
    level = innermost_level()
    while level is not None:
        if level.randomness == "none":
            raise RuntimeError("vmap: We do not yet support calling random operations inside of vmap: a backward of batched gradients drew "
                               "random numbers, and it is not said whether they are the same for all. Draw them in the forward pass.")
        if level.randomness == "error":
            raise RuntimeError("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
                               "randomness flags on vmap or perform the randomness operation out of vmap")
        if level.randomness == "different":
            levels.insert(0, level)
        level = level.outer
    return levels


def drawn_for(draw: Callable[..., np.ndarray], *parameters: Tensor, dtype: DType | None = None) -> Tensor:
    """Return `draw(*arrays)` of the values of parameters, without a history; None as `dtype`: of the dtype of the first one.

    In a vmap with different numbers for each example, the arrays have its dim in front.
    """
    levels = levels_that_differ()
    check_same(*parameters)
    values = [parameter.detach() for parameter in parameters]
    for level in reversed(levels):
        values = [level.enter(value) for value in values]
    result = computed(draw(*map(to_array, values))).to(dtype or parameters[0].dtype)
    for level in levels:
        result = level.leave(result)
    return result


def check_same(*parameters: Any) -> None:
    """Refuse parameters that differ among the examples of a vmap with the same numbers for all."""
    if any(level.randomness == "same" for level in map(batched_level, parameters) if level is not None):
        raise RuntimeError("Vmap does not currently support same randomness with a batched tensor input. Please use different randomness "
                           "with vmap")


def drawn_like(
    template: Tensor,
    sample: Sample,
    source: Callable[[], np.random.Generator],
    dtype: DType | None,
    device: Device | str | None,
    requires_grad: bool,
) -> Tensor:
    """Return a tensor of the shape, layout and (unless given) dtype of a template, filled by a sampler."""
    if sparse_part(checked_template(template)) is not None:
        raise NotImplementedError("random tensors are dense: draw one like the values() of the sparse tensor")
    if batched_level(template) is not None or levels_that_differ():
        return drawn(tuple(template.shape), sample, source, None, dtype or template.dtype, device, requires_grad)
    result = empty_like(template, dtype=dtype, device=device, requires_grad=requires_grad)
    write_again(result.detach(), lambda array: fill(array, sample, source(), result.dtype))
    return result


def fill(array: np.ndarray, sample: Sample, stream: np.random.Generator, dtype: DType) -> None:
    """Fill an array in index order for any strides, so that a seed means the same for every layout."""
    dense = array if array.flags.c_contiguous else np.empty(array.shape, array.dtype)
    sample(stream, dense, dtype)
    if dense is not array:
        array[...] = dense


def checked_template(template: Tensor, argument: str = "input") -> Tensor:
    if not isinstance(template, Tensor):
        raise TypeError(f"argument '{argument}' (position 1) must be Tensor, not {type(template).__name__}")
    return template


# ----- Samplers -----
def parts_of(array: np.ndarray) -> np.ndarray:
    """Return an array of complex numbers as one of their real and imaginary parts, and any other as it is."""
    return array.reshape(-1).view(array.real.dtype) if array.dtype.kind == "c" else array


def require_floating(distribution: str, numbers: np.ndarray | Tensor) -> None:
    if numbers.dtype.kind != "f":
        raise NotImplementedError(
            f"\"{distribution}\" not implemented for '{numbers.dtype.name}': expected a floating-point dtype"
        )


def numbers_of(function: Any, **parameters: Any) -> tuple[float, ...]:
    """Return the parameters of a distribution as floats; TypeError for values that are no numbers."""
    for word, value in parameters.items():
        if not isinstance(value, (int, float, np.number, TensorImpl)):
            raise TypeError(f"{function.__name__}(): argument '{word}' must be float, not {type(value).__name__}")
    return tuple(map(float, parameters.values()))


def require_continuous(distribution: str, dtype: DType) -> None:
    if not dtype.is_floating_point:
        raise RuntimeError(f"{distribution} distribution is a continuous probability distribution. dtype must be a floating point but you "
                           f"specified {dtype}")


def limits_of(dtype: DType) -> tuple[int, int]:
    """Return the bounds of the integers that `dtype` holds without a gap."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if dtype.is_floating_point:
        largest = int(2 / finfo(dtype).eps)
        return -largest, largest
    return iinfo(dtype).min, iinfo(dtype).max


def uniform(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
    """Draw from [0, 1); of complex numbers both parts."""
    parts = parts_of(array)
    require_floating("uniform", parts)
    stream.random(out=parts, dtype=parts.dtype)
    if dtype.loops != dtype:    # as many digits as are stored, since rounding would make some of them 1
        largest = limits_of(dtype)[1]
        array *= largest
        np.floor(array, out=array)
        array /= largest


def standard_normal(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
    """Draw with variance 1; of complex numbers each part has half of it."""
    parts = parts_of(array)
    require_floating("normal", parts)
    stream.standard_normal(out=parts, dtype=parts.dtype)
    if parts is not array:
        parts *= math.sqrt(0.5)


def normal_around(mean: Any, std: Any) -> Sample:
    """Return the sampler of a mean and a standard deviation; a number as mean is the mean of both parts of complex numbers."""
    def sample(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
        standard_normal(stream, array, dtype)
        array *= std
        shifted = parts_of(array) if isinstance(mean, float) else array
        shifted += mean

    return sample


def log_normal(mean: float, std: float) -> Sample:
    """Return the sampler of exp of normal numbers."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    normally = normal_around(mean, std)

    def sample(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
        require_floating("log_normal", array)
        normally(stream, array, dtype)
        np.exp(array, out=array)

    return sample


def exponential(rate: float) -> Sample:
    """Return the sampler of the exponential distribution with mean 1 / rate."""
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")

    def sample(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
        require_continuous("Exponential", dtype)
        stream.standard_exponential(out=array, dtype=array.dtype)
        array /= rate

    return sample


def cauchy(median: float, sigma: float) -> Sample:
    """Return the sampler of the Cauchy distribution with half width `sigma`."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")

    def sample(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
        require_continuous("Cauchy", dtype)
        array[...] = stream.standard_cauchy(array.shape) * sigma + median

    return sample


def geometric(chance: float) -> Sample:
    """Return the sampler of the number of trials up to the first success."""
    if not 0 < chance < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={chance:g}")

    def sample(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
        if dtype.kind in "bc":
            raise NotImplementedError(f"\"geometric_\" not implemented for '{dtype.name}': expected a dtype of real numbers")
        array[...] = stream.geometric(chance, array.shape)

    return sample


def permutation(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
    largest = array.shape[-1] - 1
    if array.dtype.kind in "bc":
        raise NotImplementedError(f"\"randperm\" not implemented for '{array.dtype}': expected a dtype of real numbers")
    if largest > limits_of(dtype)[1]:
        raise RuntimeError(
            f"value cannot be converted to type {dtype.name} without overflow: up to {largest} is drawn"
        )
    array[...] = np.arange(array.shape[-1])
    if array.ndim == 1:
        stream.shuffle(array)
    else:
        stream.permuted(array, axis=-1, out=array)      # one for each example


def integers(low: Any, high: Any) -> Sample:
    """Return the sampler of `low` to `high - 1`, or of 0 to `low - 1` where `high` is None."""
    try:
        first, end = (0, operator.index(low)) if high is None else (operator.index(low), operator.index(high))
    except TypeError:
        limit = low if high is None or not hasattr(low, "__index__") else high
        raise TypeError(f"the bounds of the integers drawn must be int, not {type(limit).__name__}") from None
    if first >= end:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={first} >= to={end}")

    def sample(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
        least, largest = limits_of(dtype)
        for bound, number in (("from", first), ("to - 1", end - 1)):
            if not least <= number <= largest:
                raise RuntimeError(
                    f"{bound} is out of bounds for {dtype.name}: got {number}, expected {least} to {largest}"
                )
        kind = array.dtype if array.dtype.kind in "iub" else np.int64
        array[...] = stream.integers(first, end, array.shape, kind)

    return sample


def at_random(chance: Any) -> Sample:
    """Return the sampler of ones with a probability, zeros otherwise."""
    def sample(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
        if array.dtype.kind == "c":
            raise NotImplementedError(f"\"bernoulli\" not implemented for '{array.dtype}': expected a dtype of real numbers")
        np.less(stream.random(array.shape), chance, out=array, casting="unsafe")

    return sample
