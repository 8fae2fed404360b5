"""Integrals and derivatives of functions by few and by uneven samples."""

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

X = cg.tensor([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]], dtype=cg.float64)


def test_samples_of_two_points_and_uneven_positions():
    assert cg.gradient(cg.tensor([1.0, 3.0]))[0].tolist() == [2, 2]
    a, t = np.array([0.0, 1.0, 8.0, 27.0]), np.array([0.0, 1.0, 2.0, 3.5])
    for order in (1, 2):
        ours = cg.gradient(cg.tensor(a), spacing=(cg.tensor(t),), edge_order=order)[0]
        np.testing.assert_allclose(array_of(ours), np.gradient(a, t, edge_order=order), rtol=1e-14)
    assert cg.trapezoid(cg.ones(1)).tolist() == 0 and cg.cumulative_trapezoid(cg.ones(2, 1)).shape == (2, 0)
    assert cg.trapezoid(cg.tensor([1, 2])).tolist() == 1.5


@pytest.mark.parametrize("dtype", [cg.uint8, cg.int8, cg.int16, cg.int32, cg.int64])
def test_integrals_of_integers_do_not_wrap_around(dtype):
    y, x = cg.tensor([100, 120, 5], dtype=dtype), cg.tensor([1, 4, 2], dtype=dtype)
    assert cg.trapezoid(y).tolist() == 172.5
    assert cg.trapezoid(y, x).tolist() == 205
    assert cg.cumulative_trapezoid(y, x).tolist() == [330, 205]


REFUSED = [
    (lambda: cg.trapezoid(X, X[0], dx=1.0), TypeError, "not both"),
    (lambda: cg.trapezoid(X, cg.ones(2)), RuntimeError, "There must be one `x` value for each sample point"),
    (lambda: cg.trapezoid(X > 1), RuntimeError, "received a bool input for `y`"),
    (lambda: cg.gradient(X, edge_order=3), RuntimeError, "only supports edge_order=1 and edge_order=2, got 3"),
    (lambda: cg.gradient(X, edge_order=2), RuntimeError, r"expected each dimension size to be at least edge_order\+1"),
    (lambda: cg.gradient(X, spacing=(1.0,)), RuntimeError, "got a list of length 1"),
    (lambda: cg.gradient(X, spacing=(cg.ones(3), 1.0)), RuntimeError, r"one position for each of 2 samples, got the shape \[3\]"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
