"""Helpers of the tests of captured functions."""

import pytest

import cygrad as cg

X = cg.tensor([1., -2., 3.], dtype=cg.float64)


def captured(function, **options):
    return cg.compile(function, fullgraph=True, **options)


def refusal(function, *args):
    """Return why a function cannot be captured."""
    with pytest.raises(RuntimeError, match="cannot be captured") as error:
        captured(function)(*args)
    return str(error.value)


class Failing(cg.autograd.Function):
    """Its backward raises."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise ValueError("no gradient")


def same(ours, theirs):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert ours.detach().numpy().tobytes() == theirs.detach().numpy().tobytes()


def same_outcomes(outcome, function, compiled, *values):
    """Compare the tensors that an outcome has of a function and of its compiled form, for the same values."""
    for theirs, ours in zip(outcome(function, *values), outcome(compiled, *values), strict=True):
        same(ours, theirs)
