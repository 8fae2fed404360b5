"""Sums of pending products as products of matrices: values, gradients, the sums that are left as they are, the switch."""

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import live_bytes, pending_results, program_checks, set_programs
from cygrad.config import set_contraction
from samples import array_of, same_bits

pytestmark = pytest.mark.usefixtures("small_results_are_pending")


def elementwise(function):
    """Compute without contractions."""
    before = set_contraction(False)
    try:
        return function()
    finally:
        set_contraction(before)


def leaf(*shape, dtype=cg.float64, seed=0):
    return cg.tensor(np.random.default_rng(seed).normal(size=shape)).to(dtype).requires_grad_()


CONTRACTIONS = {
    "matrices": lambda m: (m(20, 30, 1) * m(1, 30, 25)).sum(1),
    "batches": lambda m: (m(7, 20, 1, 10) * m(7, 1, 15, 10)).sum(-1),
    "a batch in one factor": lambda m: (m(5, 12, 1, 10) * m(15, 10)).sum(-1),
    "keepdim": lambda m: (m(20, 30, 1) * m(30, 25)).sum(1, keepdim=True),
    "two dims": lambda m: (m(20, 1, 6, 5) * m(25, 6, 5)).sum((2, 3)),
    "first dim": lambda m: (m(40, 12, 1) * m(40, 1, 13)).sum(0),
    "columns first": lambda m: (m(1, 14, 20) * m(13, 1, 20)).sum(2),
    "strides": lambda m: (m(20, 60, 1)[:, ::2] * m(1, 30, 50)[..., 5:30]).sum(1),
}


@pytest.mark.cases("dtype", [cg.float64, cg.float32], ids=str)
@pytest.mark.parametrize("name", CONTRACTIONS)
def test_values_and_gradients(name, dtype):
    def compute():
        leaves = []

        def matrix(*shape):
            leaves.append(leaf(*shape, dtype=dtype, seed=len(leaves)))
            return leaves[-1]

        result = CONTRACTIONS[name](matrix)
        return [array_of(value) for value in (result, *cg.autograd.grad(result.square().sum(), leaves))]

    eps = np.finfo(str(dtype)[7:]).eps
    contracted, summed = compute(), elementwise(compute)
    assert not all(map(same_bits, contracted, summed))
    for one, other in zip(contracted, summed, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=200 * eps * np.abs(other).max())


def test_gradients_are_contracted_too():
    """Their products are products of partials; sums of products by FMA have other bits."""
    def compute():
        a, b = leaf(20, 30, 1), leaf(1, 30, 25, seed=1)
        return [array_of(g) for g in cg.autograd.grad((a * b).sum(1), [a, b], leaf(20, 25, seed=2))]

    contracted, summed = compute(), elementwise(compute)
    assert not any(map(same_bits, contracted, summed))


@pytest.mark.parametrize("make", [
    lambda a, b: (a * b).sum(-1),                                   # no dim of its own
    lambda a, b: (a * b[0]).sum(-1),
    lambda a, b: (a[:, :3, None] * b[None, :3, :]).sum(1),          # too few summands
    lambda a, b: (a[:, :, None] * b[:, None, :]).sum(2),            # a sum of one factor
    lambda a, b: (a[:, :, None] + b[:, None, :]).sum(0),
    lambda a, b: (a.mT[:, :, None] * b.mT[:, None, :]).sum(1),      # not row-major
    lambda a, b: (a[:, :, None] * b[:, None, :]).amax(0),
    lambda a, b: (a[:, :, None] * b[:, None, :]).tanh().sum(0),
    lambda a, b: (a.int()[:, :, None] * b.int()[:, None, :] + a[:, :1, None].int()).sum(0),
], ids=["alike", "row", "few", "one factor", "sum", "transposed", "maximum", "tanh", "integers"])
def test_other_sums_have_the_same_bits(make):
    a, b = leaf(60, 50), leaf(60, 50, seed=1)
    assert same_bits(array_of(make(a, b)), elementwise(lambda: array_of(make(a, b))))


def test_a_product_that_is_read_besides_is_summed_by_elements():
    a, b = leaf(60, 50), leaf(60, 50, seed=1)

    def compute():
        product = a[:, :, None] * b[:, None, :]
        alias = product.detach()
        return array_of(product.sum(0)), array_of(alias)

    assert all(map(same_bits, compute(), elementwise(compute)))


def test_the_elements_are_never_made():
    a, b = leaf(60, 50), leaf(60, 50, seed=1)
    product = a[:, :, None] * b[:, None, :]
    total = product.sum(0)
    assert pending_results() == 1
    np.testing.assert_allclose(array_of(total), array_of(a).T @ array_of(b))
    np.testing.assert_array_equal(array_of(product), array_of(a)[:, :, None] * array_of(b)[:, None, :])
    del product
    start = live_bytes()
    (a[:, :, None] * b[:, None, :]).sum(0).detach()
    assert pending_results() == 0 and live_bytes() == start


def test_eager_programs_sum_by_elements():
    a, b = leaf(60, 50), leaf(60, 50, seed=1)
    before = set_programs("eager")
    result = array_of((a[:, :, None] * b[:, None, :]).sum(0))
    set_programs(before)
    assert same_bits(result, elementwise(lambda: array_of((a[:, :, None] * b[:, None, :]).sum(0))))
    assert program_checks()[1] == 0
