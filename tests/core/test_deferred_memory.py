"""Pending results read memory later: writes to it, reads of it and exports of it meanwhile change no bit."""

import contextlib
import copy
import ctypes
import io
import pickle

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import pending_results
from pending import SIZE, at_once, leaves
from samples import array_of, same_bits

pytestmark = pytest.mark.usefixtures("small_results_are_pending")


# ----- Writes -----
def by_view(a):
    a.detach()[3:9].mul_(5)


def by_setitem(a):
    with cg.no_grad():
        a[5] = 100.0


def by_data(a):
    a.data.add_(1)


def by_assigning_data(a):
    a.data = cg.zeros(SIZE, dtype=cg.float64)


def by_out(a):
    cg.zeros(SIZE, dtype=cg.float64).add(1, out=a.detach())
    cg.add(cg.zeros(2, dtype=cg.float64), 7, out=a.detach()[1:3])


def by_numpy(a):
    a.detach().numpy()[:] = 3


def by_buffer(a):
    np.frombuffer(a.detach(), dtype="float64")[:] = 3


def by_dlpack(a):
    np.from_dlpack(a.detach().clone().copy_(a.detach()))
    np.asarray(a.detach())[:] = 4


def by_address(a):
    ctypes.memset(a.data_ptr(), 0, 8 * SIZE)


def by_random_numbers(a):
    cg.rand(SIZE, dtype=cg.float64, out=a.detach())


def by_resize(a):
    a.detach().resize_(2 * SIZE).zero_()


def by_set(a):
    a.detach().set_(cg.zeros(3, dtype=cg.float64))


def by_scatter(a):
    a.detach().index_fill_(0, cg.tensor([1, 2]), 9.0)
    a.detach().masked_fill_(cg.ones(SIZE, dtype=cg.bool), 2.0)


def by_copy(a):
    a.detach().copy_(cg.zeros(SIZE))
    a.detach()[:3].copy_(cg.ones(3))


WRITES = (by_view, by_setitem, by_data, by_assigning_data, by_out, by_numpy, by_buffer, by_dlpack, by_address, by_random_numbers, by_resize,
          by_set, by_scatter, by_copy)


@pytest.mark.cases("write", WRITES, ids=lambda write: write.__name__)
def test_operands_that_are_written_to(write):
    a, b = leaves(2)
    expected = array_of(a) * array_of(b) + 1.0
    x = a * b + 1.0
    assert pending_results() == 1
    write(a)
    np.testing.assert_array_equal(array_of(x), expected)


@pytest.mark.cases("write", WRITES, ids=lambda write: write.__name__)
def test_results_that_are_written_to(write):
    results = []
    for wait in (at_once, contextlib.nullcontext):
        with wait():
            a, b = leaves(2)
            x = a * b
            assert pending_results() == (wait is not at_once)
            cg.manual_seed(0)
            write(x)
            results.append(array_of(x * 2.0 + 1.0))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("reach", [
    lambda a: a.detach().numpy(), lambda a: np.asarray(memoryview(a.detach())), lambda a: np.from_dlpack(a.detach()),
    lambda a: a.data.numpy(), lambda a: a.detach()[:].numpy(),
    lambda a: np.frombuffer((ctypes.c_double * SIZE).from_address(a.data_ptr())),
], ids=["numpy", "buffer", "dlpack", "data", "view", "address"])
def test_operands_whose_memory_is_exported(reach):
    a, b = leaves(2)
    outside = reach(a)
    expected = array_of(a) * array_of(b)
    x = a * b
    outside[:] = 0
    np.testing.assert_array_equal(array_of(x), expected)


def test_arrays_that_are_gone_do_not_count():
    a, b = leaves(2)
    for _ in range(3):
        a.detach().numpy().sum(), np.from_dlpack(a.detach()).sum(), a.data.numpy().sum(), a.tolist(), repr(a)
    x = a * b
    assert pending_results() == 1
    del x


# ----- Reads -----
LOOKS = {
    "item": lambda x: x[3].item(),
    "numpy": lambda x: array_of(x),
    "tolist": lambda x: x.tolist(),
    "repr": repr,
    "buffer": lambda x: bytes(memoryview(x.detach())),
    "dlpack": lambda x: np.from_dlpack(x.detach()).copy(),
    "address": lambda x: list((ctypes.c_double * SIZE).from_address(x.data_ptr())),
    "view": lambda x: array_of(x.view(-1, 5003)[0, 4990:]),
    "small view": lambda x: array_of(-x[17:20]),
    "select": lambda x: float(x[5]),
    "truth": lambda x: bool(x[0]),
    "iteration": lambda x: [float(v) for v in x[:3]],
    "matmul": lambda x: array_of(x @ x),
    "matrix": lambda x: array_of(x.expand(2, -1) @ x),
    "small sum": lambda x: array_of(x[:9].sum()),
    "sum of a dim": lambda x: array_of(x.reshape(1, SIZE).sum(1)),
    "sum across": lambda x: array_of(x.reshape(SIZE, 1).sum(0)),
    "cumsum": lambda x: array_of(x.cumsum(0)),
    "sort": lambda x: array_of(x.sort()[0]),
    "max": lambda x: [array_of(v) for v in x.max(0)],
    "indices": lambda x: array_of(x[cg.tensor([1, 5])]),
    "mask": lambda x: array_of(x[x > 0.5]),
    "where": lambda x: array_of(cg.where(x > 0.5, x, 0)),
    "cat": lambda x: array_of(cg.cat([x, x])),
    "dtype": lambda x: array_of(x.float()),
    "clone": lambda x: array_of(x.clone()),
    "copy": lambda x: array_of(copy.copy(x.detach())),
    "deepcopy": lambda x: array_of(copy.deepcopy(x.detach())),
    "pickle": lambda x: array_of(pickle.loads(pickle.dumps(x.detach()))),
    "data": lambda x: array_of(x.data),
    "detach": lambda x: array_of(x.detach()),
    "broadcast": lambda x: array_of(x.reshape(SIZE, 1) * cg.ones(2)),
    "strided": lambda x: array_of(x[::2] * 2.0),
    "equal": lambda x: cg.equal(x, x),
    "resize": lambda x: array_of(x.detach().resize_(3)),
    "grow": lambda x: array_of(x.detach().resize_(2 * SIZE))[:SIZE],
    "unfold": lambda x: array_of(x.unfold(0, 2, 2)),
    "diagonal": lambda x: array_of(x[:4900].view(70, 70).diagonal()),
    "ufunc": lambda x: np.add(x.detach(), 1.0).tolist(),
    "array": lambda x: np.asarray(x.detach()).copy(),
    "out": lambda x: array_of( cg.mul(x.detach(), 2, out=cg.empty(SIZE, dtype=cg.float64))),
    "saved": lambda x: array_of(x.exp().grad_fn._saved_result),
    "kthvalue": lambda x: array_of(x.kthvalue(3)[0]),
    "einsum": lambda x: array_of(cg.einsum("i,i->", x, x)),
    "save": lambda x: saved(x.detach()),
}


def saved(x):
    file = io.BytesIO()
    cg.save(x, file)
    file.seek(0)
    return array_of(cg.load(file))


@pytest.mark.cases("look", LOOKS)
def test_reads_of_pending_results(look):
    results = []
    for wait in (at_once, contextlib.nullcontext):
        with wait():
            a, b = leaves(2)
            x = (a * b).exp()
            assert pending_results() == (wait is not at_once)
            results.append(LOOKS[look](x))
    np.testing.assert_equal(*results)


def test_gradients_that_are_pending_results():
    """A gradient is itself a pending result: from hooks, from create_graph, from Functions."""
    class Twice(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            with cg.enable_grad():
                return g.detach().requires_grad_() * 2.0 + 0.0

    def compute():
        a, b, weight = leaves(3)
        y = Twice.apply((a * b).tanh())
        y.register_hook(lambda g: g * weight)
        (first,) = cg.autograd.grad((y * y).sum(), a, create_graph=True)
        second = cg.autograd.grad(first.exp().sum(), (a, b, weight), allow_unused=True)
        return [array_of(first), *(array_of(g) for g in second if g is not None)]

    with at_once():
        expected = compute()
    assert all(same_bits(x, y) for x, y in zip(compute(), expected, strict=True))
