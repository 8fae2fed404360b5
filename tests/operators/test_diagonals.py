"""Fills of diagonals against NumPy's, and their errors."""

import numpy as np
import pytest

import cygrad as cg


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (8, 3), (2, 5), (4, 1), (0, 3), (3, 0), (3, 3, 3), (2, 2, 2, 2)], ids=str)
def test_fill_diagonal(shape, wrap):
    x, expected = cg.zeros(shape), np.zeros(shape, np.float32)
    if expected.size:
        np.fill_diagonal(expected, 2, wrap)
    assert x.fill_diagonal_(2, wrap) is x
    np.testing.assert_array_equal(x.numpy(), expected)
    if len(shape) == 2 and not wrap:
        y = cg.zeros(shape[::-1]).T.fill_diagonal_(cg.tensor(2))
        np.testing.assert_array_equal(y.numpy(), expected)


def test_fill_diagonal_cuts_the_gradient():
    x = cg.ones(2, 2, requires_grad=True)
    (x * 3).fill_diagonal_(5).sum().backward()
    assert x.grad.tolist() == [[0, 3], [3, 0]]
    assert cg.func.vmap(lambda row: row.clone().fill_diagonal_(7))(cg.zeros(2, 2, 2)).tolist() == [[[7, 0], [0, 7]]] * 2


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: cg.zeros(3).fill_diagonal_(1), RuntimeError, "dimensions must larger than 1"),
    (lambda: cg.zeros(3, 4, 3).fill_diagonal_(1), RuntimeError, "all dimensions of input must be of equal length"),
    (lambda: cg.zeros(3, 3).fill_diagonal_(cg.ones(2)), TypeError, "argument 'fill_value' .position 1. must be Number, not Tensor"),
    (lambda: cg.zeros(3, 3).fill_diagonal_("a"), TypeError, "argument 'fill_value' .position 1. must be"),
])
def test_fill_diagonal_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()
