"""Comparisons for tests, and tensors of random numbers to test with, as `torch.testing` has them.

>>> import cygrad
>>> cygrad.testing.assert_close(cygrad.tensor([1.]), cygrad.tensor([1.0000001]))
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad import random
from cygrad._core.levels.overrides import overrides_off
from cygrad._core.memory.sizes import size_from_arguments
from cygrad._core.memory.storage import DType, dtype_by_name, resolve_dtype
from cygrad.data.creation import as_tensor, finished
from cygrad.data.limits import finfo, iinfo, promote_types
from cygrad.device import resolve_device
from cygrad.operators.comparison import isclose
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from cygrad._core.memory.formats import MemoryFormat
    from cygrad.typing import Device, DTypeLike, Real

__all__ = ["assert_close", "make_tensor"]

# (rtol, atol) by the numbers compared; those that are not listed have to be equal.
_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
               "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7), "float": (1e-7, 1e-7), "complex": (1e-7, 1e-7)}
_NUMBERS = (int, float, complex, np.number)


class _Mismatch(Exception):
    """The error of a comparison, and where in nested arguments it was."""

    def __init__(self, kind: type[Exception], text: str, place: tuple[Any, ...]) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text + (f"\n\nThe failure occurred for item {''.join(f'[{key}]' for key in place)}" if place else "")


# ----- Comparison -----
def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False, msg: str | Callable[[str], str] | None = None) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, and shapes and dtypes agree.

    Takes tensors, anything that becomes a tensor, numbers, bools, None, and sequences and mappings of these. The tolerances, of which
    either both or none are given, are by dtype: (1e-7, 1e-7) of float64, (1.3e-6, 1e-5) of float32, (1e-3, 1e-5) of float16, 0 of integers.
    `msg` replaces the message, or makes it of that. `check_device` and `check_layout` change nothing: there is one of each.

    >>> import cygrad
    >>> cygrad.testing.assert_close({"loss": 0.5}, {"loss": 0.75})
    Traceback (most recent call last):
    AssertionError: Scalars are not close!
    ...
    """
    __tracebackhide__ = True
    problem = None
    with overrides_off():
        try:
            for pair in list(_pairs(actual, expected, allow_subclasses, ())):
                _compare(*pair, rtol, atol, equal_nan, check_dtype, check_stride)
        except _Mismatch as mismatch:
            problem = mismatch
    if problem is not None:
        text = msg if isinstance(msg, str) else problem.text if msg is None else msg(problem.text)
        raise problem.kind(text)


def _pairs(actual: Any, expected: Any, allow_subclasses: bool, place: tuple[Any, ...]) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Yield the pairs to compare, with their places in containers; TypeError for objects of other kinds."""
    if all(isinstance(each, Sequence) and not isinstance(each, str) for each in (actual, expected)):
        if len(actual) != len(expected):
            raise _Mismatch(AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place)
        for key in range(len(actual)):
            yield from _pairs(actual[key], expected[key], allow_subclasses, (*place, key))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, additional = ([key for key in one if key not in other] for one, other in ((expected, actual), (actual, expected)))
        if missing or additional:
            raise _Mismatch(AssertionError, "The keys of the mappings do not match:\n"
                            f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {additional}", place)
        for key in actual:
            yield from _pairs(actual[key], expected[key], allow_subclasses, (*place, key))
    elif actual is None or expected is None or all(isinstance(each, (bool, np.bool_)) for each in (actual, expected)):
        yield actual, expected, place
    elif all(isinstance(each, _NUMBERS) for each in (actual, expected)):
        yield (*(each.item() if isinstance(each, np.number) else each for each in (actual, expected)), place)
    else:
        yield *_tensors(actual, expected, allow_subclasses, place), place


def _tensors(actual: Any, expected: Any, allow_subclasses: bool, place: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if related and (allow_subclasses or type(actual) is type(expected)):
        try:
            return as_tensor(actual), as_tensor(expected)
        except (TypeError, ValueError, RuntimeError):
            pass        # no numbers
    raise _Mismatch(TypeError, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.", place)


def _compare(actual: Any, expected: Any, place: tuple[Any, ...], rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool,
             check_stride: bool) -> None:
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", place)
    elif all(isinstance(each, (bool, np.bool_)) for each in (actual, expected)):
        if bool(actual) is not bool(expected):
            raise _Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}", place)
    elif isinstance(actual, Tensor):
        _compare_tensors(actual, expected, place, rtol, atol, equal_nan, check_dtype, check_stride)
    else:
        _compare_numbers(actual, expected, place, rtol, atol, equal_nan, check_dtype)


def _tolerances(names: tuple[str, str], rtol: float | None, atol: float | None, place: tuple[Any, ...]) -> tuple[float, float]:
    if (rtol is None) != (atol is None):
        raise _Mismatch(ValueError, "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                        f"'{'rtol' if rtol is None else 'atol'}'.", place)
    if rtol is not None and atol is not None:
        return rtol, atol
    pairs = [_TOLERANCES.get(name, (0.0, 0.0)) for name in names]
    return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


def _compare_numbers(actual: Any, expected: Any, place: tuple[Any, ...], rtol: float | None, atol: float | None, equal_nan: bool,
                     check_dtype: bool) -> None:
    rtol, atol = _tolerances((type(actual).__name__, type(expected).__name__), rtol, atol, place)
    if check_dtype and type(actual) is not type(expected):
        raise _Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.", place)
    if actual == expected or equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    difference = abs(actual - expected)
    if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    relative = math.inf if expected == 0 else difference / abs(expected)
    allowed = ["", ""] if rtol == atol == 0 else [f" (up to {bound} allowed)" for bound in (atol, rtol)]
    raise _Mismatch(AssertionError, f"Scalars are not {'close' if allowed[0] else 'equal'}!\n\nExpected {expected} but got {actual}.\n"
                    f"Absolute difference: {difference}{allowed[0]}\nRelative difference: {relative}{allowed[1]}", place)


def _compare_tensors(actual: Tensor, expected: Tensor, place: tuple[Any, ...], rtol: float | None, atol: float | None, equal_nan: bool,
                     check_dtype: bool, check_stride: bool) -> None:
    rtol, atol = _tolerances((actual.dtype.name, expected.dtype.name), rtol, atol, place)
    for attribute, is_checked, *values in (("shape", True, actual.shape, expected.shape),
                                           ("stride()", check_stride, actual.stride(), expected.stride()),
                                           ("dtype", check_dtype, actual.dtype, expected.dtype)):
        if is_checked and values[0] != values[1]:
            raise _Mismatch(AssertionError, f"The values for attribute '{attribute}' do not match: {values[0]} != {values[1]}.", place)
    actual, expected = actual.detach(), expected.detach()
    if actual.dtype != expected.dtype:
        common = promote_types(*(_signed(tensor.dtype) for tensor in (actual, expected)))
        actual, expected = actual.to(common), expected.to(common)
    matches = isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(matches.all()):
        return
    wrong = ~matches.reshape(-1)
    one, other = (tensor.reshape(-1) if tensor.dtype.is_differentiable else tensor.reshape(-1).long() for tensor in (actual, expected))
    differences = (one - other).abs()
    allowed = ["", ""] if rtol == atol == 0 else [f" (up to {bound} allowed)" for bound in (atol, rtol)]
    lines = []
    for word, numbers, bound in (("absolute", differences, allowed[0]), ("relative", differences / other.abs(), allowed[1])):
        largest = numbers.masked_fill(~wrong, 0).max(0)
        index = tuple(int(i) for i in np.unravel_index(int(largest.indices), actual.shape))
        lines.append(f"Greatest {word} difference: {largest.values.item()} at index {index}{bound}")
    count = int(wrong.sum())
    raise _Mismatch(AssertionError, f"Tensor-likes are not {'close' if allowed[0] else 'equal'}!\n\nMismatched elements: {count} / "
                    f"{wrong.numel()} ({count / wrong.numel():.1%})\n" + "\n".join(lines), place)


def _signed(dtype: DType) -> DType:
    """Return a dtype that promotes: int64 for the larger unsigned ones."""
    return dtype_by_name["int64"] if dtype.name in ("uint16", "uint32", "uint64") else dtype


# ----- Random numbers -----
def make_tensor(*shape: int | Sequence[int], dtype: DTypeLike, device: Device = None, low: Real | None = None, high: Real | None = None,
                requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: MemoryFormat | None = None) -> Tensor:
    """Return a tensor of uniform random numbers from `low` to below `high`: by default from -9 to 9, of unsigned integers from 0, of bools
    both.

    `noncontiguous`: with gaps between the elements. `exclude_zero`: 0 is replaced by 1, of floats by the least normal number.

    >>> import cygrad
    >>> cygrad.testing.make_tensor(2, 3, dtype=cygrad.float32).shape
    cygrad.Size([2, 3])
    """
    kind = resolve_dtype(dtype)
    resolve_device(device)
    sizes = size_from_arguments(shape, "make_tensor") if shape else ()
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
                         f"noncontiguous={noncontiguous} and memory_format={memory_format}")
    if requires_grad and not kind.is_differentiable:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={kind}")
    first, end = _interval(kind, low, high)
    gaps = noncontiguous and math.prod(sizes) > 1
    drawn = (*sizes[:-1], 2 * sizes[-1]) if gaps else sizes
    if kind.is_differentiable:
        parts = random.rand((*drawn, 2) if kind.is_complex else drawn, dtype=dtype_by_name["float64"])
        numbers = (parts * (end - first) + first).clamp(first, end if end <= first else math.nextafter(end, first))
        result = (numbers.view_as_complex() if kind.is_complex else numbers).to(kind)
    else:
        result = random.randint(math.ceil(first), math.ceil(end), drawn, dtype=kind)
    if gaps:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result.masked_fill_(result == 0, finfo(kind).tiny if kind.is_differentiable else 1)
    return finished(result, requires_grad)


def _interval(dtype: DType, low: Real | None, high: Real | None) -> tuple[float, float]:
    """Return the bounds of random numbers, cut to the dtype's; ValueError where they hold none."""
    default: tuple[float, float] = (0, 2) if dtype.kind == "b" else (-9, 9) if dtype.is_differentiable else (-9, 10)
    if dtype.kind == "b":
        least, most = 0.0, 2.0
    elif dtype.is_differentiable:
        least, most = finfo(dtype).min, finfo(dtype).max
    else:
        least, most = iinfo(dtype).min, iinfo(dtype).max + (dtype.name != "int64")
    first, end = default[0] if low is None else low, default[1] if high is None else high
    if first != first or end != end:
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={first} and high={end}")
    if first > end or first == end and not dtype.is_differentiable:
        raise ValueError(f"`low` must be less than `high`, but got {first} >= {end}")
    if end < least or first >= most:
        raise ValueError(f"The value interval specified by `low` and `high` is [{first}, {end}), but {dtype} only supports [{least}, "
                         f"{most})")
    return min(max(first, least), most), min(max(end, least), most)
