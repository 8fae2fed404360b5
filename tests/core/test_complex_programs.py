"""Complex numbers in pending results, in chains of a backward, and in place: the same bits as node by node."""

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import pending_results
from cygrad.ops import ELEMENTWISE
from pending import SIZE, at_once
from samples import function, named, threads

DTYPES = ("complex64", "complex128")
ROWS = [row for row in ELEMENTWISE.values() if "c" in row.kinds and row.partials and not row.masks]
LONG = (1 << 17) + 13


def leaves(count, dtype, size=SIZE):
    stream = np.random.default_rng(count)
    return [cg.tensor((stream.uniform(0.3, 0.9, size) + 1j * stream.uniform(-0.5, 0.5, size)).astype(dtype)).requires_grad_()
            for _ in range(count)]


def bits(*tensors):
    return [tensor.detach().numpy().tobytes() for tensor in tensors]


def program(a, b, c, d):
    """Real and complex results in turn, some of which stay alive."""
    x = a * b + c
    y = x.tanh() * d
    z = y.abs() * x.sgn().angle()
    return (z * y.exp().conj_physical()).abs().square().sum() + x[7].real + z[-1]


def everything(compute, dtype, size=SIZE):
    inputs = leaves(4, dtype, size)
    value = compute(*inputs)
    value.backward()
    return bits(value, *(leaf.grad for leaf in inputs))


@pytest.mark.usefixtures("small_results_are_pending")
@pytest.mark.parametrize("dtype", DTYPES)
def test_pending_results_have_the_same_bits(dtype):
    with at_once():
        expected = everything(program, dtype)
    assert everything(program, dtype) == expected
    a, b = leaves(2, dtype)
    product = a * b
    assert pending_results() == 1 and product.abs().dtype != product.dtype


@pytest.mark.usefixtures("small_results_are_pending")
@pytest.mark.parametrize("row", named(ROWS))
def test_rows_read_pending_results(row):
    def compute():
        inputs = leaves(len(row.operands), "complex128")
        result = function(row)(*(x * 1 for x in inputs))
        return bits(result, *cg.autograd.grad(result, inputs, cg.ones_like(result)))

    with at_once():
        expected = compute()
    assert compute() == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_chains_threads_and_streams(dtype):
    """A backward of long tensors, by its nodes alone, and by any number of threads."""
    def compute(alone=False, size=LONG):
        inputs = leaves(4, dtype, size)
        results = [inputs[0] * inputs[1]]
        for other in inputs[2:]:
            results += [(results[-1] + other).sin(), results[-1] * other]
        results += [results[-1] * results[-2], (results[-1] * results[-2]).abs()]
        if alone:
            for result in results:
                result.grad_fn.register_prehook(lambda grads: None)
        return bits(*cg.autograd.grad(results[-1].sum(), inputs))

    expected = compute(alone=True)
    for count in (1, 2, 3):
        with threads(count, parallel=False):
            assert compute() == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_in_place_one_after_the_other(dtype):
    a, b, c = (x.detach() for x in leaves(3, dtype, 3001))
    result, expected = a.clone(), a
    for _ in range(3):
        result.mul_(b).add_(c).exp_().div_(1 + 2j)
        expected = (expected * b + c).exp() / (1 + 2j)
    assert bits(result) == bits(expected)
    strided = a.clone().reshape(3001, 1).expand(3001, 2).clone()[::2, 1]
    assert bits(strided.mul_(b[::2])) == bits(a[::2] * b[::2])
