"""Trees of tensors for the tests of cygrad.func: a dataclass to put them in, and a comparison with trees of numbers."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

import cygrad as cg


@dataclass
class Model:
    weight: Any
    bias: Any


def tensor(*numbers):
    """Return a vector of doubles."""
    return cg.tensor(numbers, dtype=cg.float64)


def same(actual, expected):
    """Check a tree of tensors without history against a tree of the same containers, with numbers or arrays in place of tensors."""
    if isinstance(actual, cg.Tensor):
        assert not actual.requires_grad
        assert tuple(actual.shape) == np.shape(expected)
        np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-12, atol=1e-13)
        return
    assert type(actual) is type(expected)
    if isinstance(actual, Model):
        actual, expected = ([getattr(tree, field.name) for field in fields(tree)] for tree in (actual, expected))
    elif isinstance(actual, dict):
        assert list(actual) == list(expected)
        actual, expected = actual.values(), expected.values()
    assert isinstance(actual, list | tuple | type({}.values()))
    assert len(actual) == len(expected)
    for part, other in zip(actual, expected, strict=True):
        same(part, other)
