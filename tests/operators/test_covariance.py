"""Covariances of constant variables, of one observation, of 16 bits."""

import pytest

import cygrad as cg

X = cg.tensor([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]], dtype=cg.float64)


def test_constant_variables_and_one_observation():
    assert cg.corrcoef(cg.tensor([[1.0, 1.0], [0.0, 2.0]])).isnan().tolist() == [[True, True], [True, False]]
    assert cg.cov(cg.tensor(3.0)).isnan() and cg.cov(X, correction=3).isinf().all()
    assert cg.cov(X[:, :0]).isnan().all() and cg.cov(cg.ones(0, 3)).shape == (0, 0)


def test_correlations_of_16_bits_do_not_overflow():
    x = cg.tensor([[300.0, -300.0, 200.0], [-300.0, 300.0, -200.0]], dtype=cg.float16)
    assert x.corrcoef().tolist() == [[1, -1], [-1, 1]]


REFUSED = [
    (lambda: X.cov(fweights=cg.tensor([1, -1, 1])), RuntimeError, "fweights cannot be negative"),
    (lambda: X.cov(fweights=cg.tensor([1.0, 1, 1])), RuntimeError, "expected fweights to have integral dtype"),
    (lambda: X.cov(aweights=cg.tensor([1, 1, 1])), RuntimeError, "expected aweights to have floating point dtype"),
    (lambda: X.cov(aweights=cg.zeros(3)), RuntimeError, "weights sum to zero"),
    (lambda: X.cov(aweights=cg.ones(2)), RuntimeError, "the same numel as there are observations in the input but got 2 != 3"),
    (lambda: X[None].cov(), RuntimeError, "expected input to have two or fewer dimensions but got an input with 3 dimensions"),
    (lambda: (X > 1).corrcoef(), RuntimeError, "bool dtype is not supported for input"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
