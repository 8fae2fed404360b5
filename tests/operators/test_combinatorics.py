"""Combinations of none, one and several elements."""

import pytest

import cygrad as cg

X = cg.ones(2, 3)


def test_few_elements():
    x = cg.tensor([1, 2])
    assert cg.combinations(x, 0).shape == (0,) and cg.combinations(x, 3).shape == (0, 3) and cg.combinations(x, 1).tolist() == [[1], [2]]
    assert cg.cartesian_prod(x, x[:0]).shape == (0, 2)


REFUSED = [
    (lambda: cg.combinations(X), RuntimeError, r"Expect a 1D vector, but got shape \[2, 3\]"),
    (lambda: cg.combinations(X[0], -1), RuntimeError, "Expect a non-negative number, but got -1"),
    (lambda: cg.cartesian_prod(X), RuntimeError, "Expect a 1D vector"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
