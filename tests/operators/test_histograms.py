"""Histograms at the ends of their range, of NaN and of no elements."""

import pytest

import cygrad as cg

NAN = float("nan")
X = cg.tensor([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]], dtype=cg.float64)


def test_elements_at_the_ends_of_a_range_are_counted_and_nan_is_not():
    x = cg.tensor([0.0, 1.0, 2.0, 2.0, 3.0, NAN])
    assert x.histogram(2, range=(0.0, 2.0)).hist.tolist() == [1, 3]
    assert x.histogram(cg.tensor([0.0, 1.0, 2.0]), weight=cg.arange(6.0)).hist.tolist() == [0, 6]
    assert cg.tensor([3.0, 3.0]).histogram(2).bin_edges.tolist() == [2.5, 3, 3.5]
    assert cg.tensor([3.0, 3.0]).histc(2).tolist() == [0, 2] and cg.tensor([]).histc(2).tolist() == [0, 0]


def test_bincount_of_no_elements():
    assert cg.tensor([], dtype=cg.int64).bincount(minlength=2).tolist() == [0, 0]
    assert cg.tensor([1], dtype=cg.uint8).bincount(cg.tensor([0.5])).dtype == cg.float32


def test_a_hundred_bins_by_default():
    x = cg.tensor([3.0, 1.0, 2.0])
    assert cg.equal(x.histogram().hist, x.histogram(100).hist) and cg.histogram(x, range=(0.0, 4.0)).bin_edges.shape == (101,)


REFUSED = [
    (lambda: X.histc(0), RuntimeError, "bins must be > 0, but got 0"),
    (lambda: X.histc(3, 2, 1), RuntimeError, "max must be larger than min, got 2 and 1"),
    (lambda: cg.tensor([1.0, NAN]).histc(3), RuntimeError, r"range of \[nan, nan\] is not finite"),
    (lambda: X.long().histc(3), NotImplementedError, "not implemented for 'Long'"),
    (lambda: X.histogram(0), RuntimeError, "bins must be > 0, but got 0"),
    (lambda: X.histogram(2, range=(2.0, 1.0)), RuntimeError, "min should not exceed max, but got min 2.0 max 1.0"),
    (lambda: X.histogram(2, range=(1.0,)), RuntimeError, "range should have 2 elements, but got 1"),
    (lambda: X.histogram(2, weight=cg.ones(2).double()), RuntimeError, "weight tensor .* should have the same shape"),
    (lambda: X.histogram(cg.ones(2)), RuntimeError, "should have the same dtype"),
    (lambda: X.histogram(cg.tensor([0.0, NAN]).double()), RuntimeError, r"bins must be numbers, but got \[0.0, nan\] for dimension 0"),
    (lambda: cg.histogramdd(X[:, :2], [X[0, :2], cg.tensor([NAN, 1.0]).double()]), RuntimeError, "must be numbers, .* for dimension 1"),
    (lambda: cg.histogramdd(X, [2, 2]), RuntimeError, "The size of bins must be equal to the innermost dimension of the input"),
    (lambda: cg.histogramdd(X[0], [2]), RuntimeError, "input tensor should have at least 2 dimensions, but got 1"),
    (lambda: cg.tensor([-1]).bincount(), RuntimeError, "bincount only supports 1-d non-negative integral inputs"),
    (lambda: cg.tensor([1]).bincount(minlength=-1), RuntimeError, "minlength should be >= 0, got -1"),
    (lambda: cg.tensor([1]).bincount(cg.ones(2)), RuntimeError, "weights should be 1-d and have the same length as input"),
    (lambda: cg.tensor([0.5]).bincount(), NotImplementedError, "not implemented for 'Float'"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
