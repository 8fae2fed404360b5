"""The class of a sample, and calls for several families."""

from collections.abc import Callable
from typing import NamedTuple


class Sample(NamedTuple):
    """A call of an operator: a function of float64 tensors of these shapes."""

    call: Callable
    shapes: tuple
    numpy: Callable | None      # the same function of arrays: then values are compared, in every layout and dtype
    kinds: str                  # the kinds of dtypes in which values are compared


def sample(call: Callable, *shapes: tuple, numpy: Callable | None = None, kinds: str = "bif") -> Sample:
    return Sample(call, shapes, numpy, kinds)


def write(key):
    """Return a function that writes its second operand into a copy of the first."""

    def written(x, value):
        y = x * 1
        y[key] = value
        return y

    return written
