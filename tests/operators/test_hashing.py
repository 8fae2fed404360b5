"""Hashes of tensors: bits, dims, ends and errors. Values against NumPy's are in test_samples.py."""

import pytest

import cygrad as cg


def test_bits():
    assert cg.hash_tensor(cg.tensor([-0.0, 0.0])).item() == 2**63 and cg.hash_tensor(cg.tensor([-1], dtype=cg.int8)).item() == 2**64 - 1
    assert cg.hash_tensor(cg.tensor(3.0)).item() == 4613937818241073152       # torch's number
    assert cg.hash_tensor(cg.tensor([[1, 2, 3], [4, 5, 7]]).bfloat16(), 1).tolist() == [4609434218613702656, 4618441417868443648]
    assert cg.hash_tensor(cg.tensor([2**64 - 1], dtype=cg.uint64)).item() == 2**64 - 1
    assert cg.hash_tensor(cg.ones(2, 3, dtype=cg.bool), (0, 1)).item() == 0


def test_dims():
    x = cg.arange(6).reshape(2, 3)
    assert x.hash_tensor().dtype == cg.uint64 and x.hash_tensor(()).item() == x.hash_tensor().item() == 1
    assert x.hash_tensor(-1, keepdim=True).tolist() == [[3], [2]] and x.T.hash_tensor(0).tolist() == [3, 2]
    assert cg.zeros(2, 0).hash_tensor(0).shape == (0,)
    out = cg.empty(3, dtype=cg.uint64)
    assert x.hash_tensor(0, out=out) is out and out.tolist() == [3, 5, 7]
    assert cg.func.vmap(lambda row: row.hash_tensor())(x).tolist() == [3, 2]


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: cg.hash_tensor(cg.ones(2), mode=1), RuntimeError, "Unknown hash_tensor mode: 1"),
    (lambda: cg.hash_tensor(cg.zeros(0)), RuntimeError, "Expected reduction dim to be specified for"),
    (lambda: cg.hash_tensor(cg.zeros(2, 0), 1), IndexError, "Expected reduction dim 1 to have non-zero size"),
    (lambda: cg.hash_tensor(cg.zeros(2), 5), IndexError, "Dimension out of range"),
    (lambda: cg.hash_tensor(cg.zeros(2, 3), (0, -2)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (lambda: cg.hash_tensor(cg.zeros(2).to(cg.complex64)), NotImplementedError, "\"xor_sum_cpu\" not implemented for 'ComplexFloat'"),
])
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
