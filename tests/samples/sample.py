"""The class of a sample, and calls for several families."""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Sample(NamedTuple):
    """A call of an operator: a function of float64 tensors of these shapes."""

    call: Callable
    shapes: tuple
    numpy: Callable | None      # the same function of arrays: then values are compared, in every layout and dtype
    kinds: str                  # the kinds of dtypes in which values are compared
    tolerances: Mapping         # of gradcheck
    exempt: Mapping             # the tests that it is not for, each with the reason: SUBJECTS


SUBJECTS = {"complex numbers", "narrow floats", "degenerate operands", "transforms", "vmap"}


def sample(call: Callable, *shapes: tuple, numpy: Callable | None = None, kinds: str = "bif", tolerances: Mapping = {},
           exempt: Mapping = {}) -> Sample:
    assert set(exempt) <= SUBJECTS
    return Sample(call, shapes, numpy, kinds, tolerances, exempt)


def write(key):
    """Return a function that writes its second operand into a copy of the first."""

    def written(x, value):
        y = x * 1
        y[key] = value
        return y

    return written
