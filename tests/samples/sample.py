"""The type of a sample, and calls that families share."""

from collections.abc import Callable
from typing import NamedTuple


class Sample(NamedTuple):
    """A call of an operator: a function of float64 tensors of these shapes."""

    call: Callable
    shapes: tuple
    numpy: Callable | None      # the same of arrays: then its values are compared, in every layout and dtype
    kinds: str                  # the kinds of dtypes that values are compared in


def sample(call: Callable, *shapes: tuple, numpy: Callable | None = None, kinds: str = "bif") -> Sample:
    return Sample(call, shapes, numpy, kinds)


def write(key):
    """Return a function that writes its second operand into a copy of the first."""

    def written(x, value):
        y = x * 1
        y[key] = value
        return y

    return written
