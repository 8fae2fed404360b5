"""Slices along a dim: Python's ends, views, copies and errors."""

import itertools

import pytest

import cygrad as cg


def test_ends_are_pythons():
    x = cg.arange(5)
    for start, end, step in itertools.product((None, -7, -2, 0, 1, 4, 9), (None, -7, -1, 0, 3, 9), (1, 2, 7)):
        assert cg.slice(x, 0, start, end, step).tolist() == x.tolist()[start:end:step]


def test_views_and_copies():
    x = cg.zeros(2, 4)
    cg.slice(x, -1, 1, None, 2).fill_(1)
    cg.slice_copy(x, 0).fill_(3)
    assert x.tolist() == [[0, 1, 0, 1]] * 2
    assert cg.func.vmap(lambda row: cg.slice(row, 0, 1, 3))(x).tolist() == [[1, 0]] * 2


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: cg.slice(cg.arange(5), 0, 1, 4, 0), RuntimeError, "slice step must be positive"),
    (lambda: cg.slice_copy(cg.arange(5), step=-1), RuntimeError, "slice step must be positive"),
    (lambda: cg.slice(cg.arange(5), 3), IndexError, "Dimension out of range"),
    (lambda: cg.slice(cg.tensor(1)), IndexError, r"slice\(\) cannot be applied to a 0-dim tensor"),
])
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
