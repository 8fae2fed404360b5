"""Largest elements of windows whose distances are not equal, and drawn at random."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from cygrad.data.creation import arange
from cygrad.data.sampling import drawn, uniform
from cygrad.generator import source_of
from cygrad.operators._language.arguments import SEQUENCE, all_examples, checked_operand, integers
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.places import place_outside
from cygrad.operators.joining import cat
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor
    from cygrad.typing import Ints

SIDES = {2: ("height", "width"), 3: ("time", "height", "width")}


# ----- Arguments -----
def _numbers(operator: Any, word: str, value: Ints, dims: int) -> tuple[int, ...]:
    numbers = integers(value)
    if len(numbers) not in (1, dims):
        raise RuntimeError(f"{_name(operator)}: {word} must either be a single Int or tuple of {'three ' * (dims == 3)}Ints, but got "
                           f"{list(numbers)}")
    return numbers if len(numbers) == dims else numbers * dims


def _name(operator: Any) -> str:
    return operator.name.removeprefix("nn_functional_").removesuffix("_with_indices")


def _check_shape(operator: Any, shape: tuple[int, ...], dims: int) -> None:
    place = f"{_name(operator)}{'_out' * (dims == 3)}()"
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{place}: Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(shape)}")
    for d in range(len(shape) - dims - 1, len(shape)):
        if not shape[d]:
            raise RuntimeError(f"{place}: Expected input to have non-zero size for non-batch dimensions, but got{list(shape)} with "
                               f"dimension {d} being empty.")


def _counts(operator: Any, sizes: tuple[int, ...], output_size: Ints | None, output_ratio: float | Sequence[float] | None
            ) -> tuple[int, ...]:
    """Return the number of windows along each dim."""
    dims = len(sizes)
    if output_size is not None:
        counts = _numbers(operator, "output_size", output_size, dims)
    elif output_ratio is None:
        raise ValueError(f"{_name(operator)} requires specifying either an output_size or an output_ratio")
    else:
        ratios: tuple[Any, ...] = tuple(output_ratio) if isinstance(output_ratio, SEQUENCE) else (output_ratio,) * dims
        if len(ratios) != dims:
            raise ValueError(f"{_name(operator)} requires output_ratio to either be a single Int or tuple of Ints, one for each of {dims} "
                             f"dims, but got {list(ratios)}")
        if not all(isinstance(ratio, (int, float)) and isfinite(ratio) for ratio in ratios):
            raise ValueError(f"{_name(operator)} requires output_ratio of finite numbers, but got {list(ratios)}")
        counts = tuple(int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True))
    if min(counts) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(counts)}: {list(counts)}")
    return counts


def _check_windows(operator: Any, sizes: tuple[int, ...], windows: tuple[int, ...], counts: tuple[int, ...]) -> None:
    if min(windows) <= 0:
        raise RuntimeError(f"{_name(operator)}(): kernel_size must be greater than zero, but got {list(windows)}")
    for side, size, window, count in zip(SIDES[len(sizes)], sizes, windows, counts, strict=True):
        if count + window - 1 > size:
            raise RuntimeError(f"{_name(operator)}{'_out' * (len(sizes) == 3)}(): pool {side} {window} too large relative to input {side} "
                               f"{size}, for {count} windows")


def _fractions(input: Tensor, dims: int, samples: Tensor | None) -> Tensor:
    """Return a number from 0 to 1 for each plane and dim that is pooled: (..., channels, dims)."""
    planes = input.shape[:-dims]
    if samples is None:
        return drawn((*planes, dims), uniform, source_of(None, None), None, input.dtype, None, False)
    if samples.dtype != input.dtype:
        raise RuntimeError(f"Expect _random_samples to have the same dtype as input, {input.dtype}, but got {samples.dtype}")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    batch = planes[0] if len(planes) == 2 else 1
    if samples.shape[0] < batch:
        raise RuntimeError(f"Expect _random_samples.size(0) no less then input batch size. It is {samples.shape[0]}, and the other {batch}")
    if samples.shape[1] != planes[-1]:
        raise RuntimeError(f"Expect _random_samples.size(1) equals to input channel size. It is {samples.shape[1]}, and the other "
                           f"{planes[-1]}")
    if samples.shape[2] != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {samples.shape[2]}.")
    if not bool(all_examples(samples.isfinite()).all()):
        raise RuntimeError("Expect _random_samples from 0 to 1, got numbers that are not finite")
    return samples.detach()[:batch].reshape(*planes, dims)


# ----- Windows -----
def _starts(fraction: Tensor, size: int, window: int, count: int) -> Tensor:
    """Return where the windows along a dim begin, in each plane; the last one ends at the end."""
    last = (fraction * 0).long().unsqueeze(-1) + (size - window)
    if count < 2:
        return last[..., :count]
    step = (size - window) / (count - 1)
    first = (fraction * step).long()
    inner = ((arange(count - 1, dtype=fraction.dtype) + fraction.unsqueeze(-1)) * step).long() - first.unsqueeze(-1)
    outside = place_outside(all_examples(inner), size - window + 1)
    if outside is not None:
        raise RuntimeError(f"Expect _random_samples from 0 to 1, got others, for which a window of {window} begins at {outside} of {size}")
    return cat((inner, last), -1)


def _places(fractions: Tensor, sizes: tuple[int, ...], windows: tuple[int, ...], counts: tuple[int, ...]) -> Tensor:
    """Return the places of the elements of each window, in the dims that are pooled, which count as one."""
    dims, planes, result = len(sizes), fractions.shape[:-1], None
    for d, (size, window, count) in enumerate(zip(sizes, windows, counts, strict=True)):
        # Torch's two dims have the numbers of a plane in the order of the pair (width, height), its three dims in their own.
        own = _starts(fractions[..., dims - 1 - d if dims == 2 else d], size, window, count).unsqueeze(-1) + arange(window)
        shape = [1] * (2 * dims)
        shape[d], shape[dims + d] = count, window
        own = own.reshape(*planes, *shape)
        result = own if result is None else result * size + own
    return result.flatten(-dims)        # type: ignore[union-attr]


def _first_largest(values: Tensor) -> Tensor:
    """Return the numbers of the largest elements of the last dim: of equal ones the first, and of several NaN the last."""
    is_nan = values != values
    last = values.shape[-1] - 1 - is_nan.flip(-1).long().argmax(-1)
    return last.where(is_nan.any(-1), values.argmax(-1))


def _fractional_max_pool(operator: Any, dims: int, input: Tensor, kernel_size: Ints, output_size: Ints | None,
                         output_ratio: float | Sequence[float] | None, samples: Tensor | None) -> tuple[Tensor, Tensor]:
    windows = _numbers(operator, "kernel_size", kernel_size, dims)
    _check_shape(operator, tuple(input.shape), dims)
    sizes = tuple(input.shape[-dims:])
    counts = _counts(operator, sizes, output_size, output_ratio)
    _check_windows(operator, sizes, windows, counts)
    checked_operand(operator, input)
    places = _places(_fractions(input, dims, samples).to(input.dtype.loops), sizes, windows, counts)
    values = input.detach().flatten(-dims).gather(-1, places.flatten(-dims - 1)).reshape(places.shape)
    chosen = _first_largest(values)
    indices = places.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
    return input._take_places(indices, dims), indices


# ----- Operators -----
@operator(method=False, refuses={"biuc": NO_LOOP}, loop="fractional_max_pool2d_out_frame")
def nn_functional_fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Ints, output_size: Ints | None = None, output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Largest elements of windows at random distances, and their places, as `fractional_max_pool2d` with `return_indices`.

    >>> import cygrad
    >>> cygrad.nn.functional.fractional_max_pool2d_with_indices(cygrad.arange(9.).reshape(1, 3, 3), 2, output_size=1)
    (tensor([[[8.]]]), tensor([[[8]]]))
    """
    return _fractional_max_pool(nn_functional_fractional_max_pool2d_with_indices, 2, input, kernel_size, output_size, output_ratio,
                                _random_samples)


@operator(method=False)
def nn_functional_fractional_max_pool2d(
    input: Tensor, kernel_size: Ints, output_size: Ints | None = None, output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:
    """Largest elements of windows of the last two dims of (examples, channels, height, width), or of one example, at random distances.

    There are `output_size` windows, or the sizes of the input times `output_ratio`, which are `kernel_size` long. With a random number u
    from 0 to 1 for each plane and dim, and the step s = (size - window) / (count - 1), window i begins at int((i + u) s) - int(u s), the
    last one at size - window (Graham 2014, "Fractional max-pooling"). Numbers come from the package's default generator;
    `_random_samples`, (examples, channels, 2), gives them. With `return_indices` also the places of the elements, counted in both dims.

    Raises:
        ValueError: neither `output_size` nor `output_ratio`.
        RuntimeError: windows that do not fit, a shape or dtype that has no planes, samples of another shape or dtype.

    >>> import cygrad
    >>> x = cygrad.arange(16.).reshape(1, 4, 4)
    >>> cygrad.nn.functional.fractional_max_pool2d(x, 2, output_size=2, _random_samples=cygrad.zeros(1, 1, 2))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    results = nn_functional_fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio,
                                                               _random_samples=_random_samples)
    return results if return_indices else results[0]


@operator(method=False, refuses={"biuc": NO_LOOP}, loop="fractional_max_pool3d_out_frame")
def nn_functional_fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Ints, output_size: Ints | None = None, output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Largest elements of windows at random distances, and their places, as `fractional_max_pool3d` with `return_indices`.

    >>> import cygrad
    >>> cygrad.nn.functional.fractional_max_pool3d_with_indices(cygrad.arange(8.).reshape(1, 2, 2, 2), 2, output_size=1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return _fractional_max_pool(nn_functional_fractional_max_pool3d_with_indices, 3, input, kernel_size, output_size, output_ratio,
                                _random_samples)


@operator(method=False)
def nn_functional_fractional_max_pool3d(
    input: Tensor, kernel_size: Ints, output_size: Ints | None = None, output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:
    """Largest elements of windows of the last three dims at random distances; see `fractional_max_pool2d`.

    >>> import cygrad
    >>> cygrad.nn.functional.fractional_max_pool3d(cygrad.arange(8.).reshape(1, 2, 2, 2), 2, output_size=1)
    tensor([[[[7.]]]])
    """
    results = nn_functional_fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio,
                                                               _random_samples=_random_samples)
    return results if return_indices else results[0]
