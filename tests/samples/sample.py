"""The classes of samples, and calls for several families."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import cygrad as cg


class Sample(NamedTuple):
    """A call of an operator: a function of float64 tensors of these shapes."""

    call: Callable
    shapes: tuple
    numpy: Callable | None      # the same function of arrays: then values are compared, in every layout and dtype
    kinds: str                  # the kinds of dtypes in which values are compared
    tolerances: Mapping         # of gradcheck
    exempt: Mapping             # the tests that it is not for, each with the reason: SUBJECTS


SUBJECTS = {"complex numbers", "narrow floats", "degenerate operands", "transforms", "vmap", "refusals"}
INSIDE = "an operator that the sample, or the operator itself, is composed of refuses first"


def sample(call: Callable, *shapes: tuple, numpy: Callable | None = None, kinds: str = "bif", tolerances: Mapping = {},
           exempt: Mapping = {}) -> Sample:
    assert set(exempt) <= SUBJECTS
    return Sample(call, shapes, numpy, kinds, tolerances, exempt)


def refused_otherwise(calls: Sequence[Sample], reason: str = INSIDE) -> list[Sample]:
    """Return samples whose errors for dtypes are not torch's."""
    return [call._replace(exempt={**call.exempt, "refusals": reason}) for call in calls]


class RowSample(NamedTuple):
    """The fields that tests of one row of a table need beside the row."""

    parameters: Mapping = {}                        # of the sample calls
    numpy: Callable | None = None                   # the function of arrays
    true: Callable | None = None                    # of mpmath's real numbers: the definition, not the row's formula
    slopes: Sequence[Callable] | None = None        # the partials between jumps, of a function that jumps too often for differences
    bounds: Mapping[str | None, Callable] = {}      # by operand, of its partial; None: of the value: the number whose units are allowed
    complex_true: Callable | None = None            # of mpmath's complex numbers
    complex_bound: Callable | None = None           # of them: the units allowed
    exponential: int = 0                            # the power of the operand in an exponential of the definition


ITS_OWN_DTYPE = {"narrow floats": "the result is of the default dtype"}


def dense(x):
    """Return a contiguous copy without a history."""
    return x.detach().clone(memory_format=cg.contiguous_format)


def write(key):
    """Return a function that writes its second operand into a copy of the first."""

    def written(x, value):
        y = x * 1
        y[key] = value
        return y

    return written
