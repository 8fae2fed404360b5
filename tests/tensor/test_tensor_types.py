"""Types of tensors by dtype: constructors, isinstance, `type()`, and `new`."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.ops.dtypes import DTYPES

ROWS = pytest.mark.parametrize("row", DTYPES, ids=[row.name for row in DTYPES])


def types():
    return {row.name: getattr(cg, row.tensors) for row in DTYPES}


@ROWS
def test_tensors_are_instances_of_the_type_of_their_dtype(row):
    x = cg.zeros(2, dtype=getattr(cg, row.name))
    assert [name for name, kind in types().items() if isinstance(x, kind)] == [row.name]
    assert getattr(cg, row.tensors).dtype == x.dtype
    assert not isinstance([1], getattr(cg, row.tensors))
    assert isinstance(cg.zeros(2).as_subclass(type("Field", (cg.Tensor,), {})), cg.FloatTensor)


@ROWS
def test_constructors(row):
    kind, dtype = getattr(cg, row.tensors), getattr(cg, row.name)
    assert kind().shape == (0,) and kind(2, 3).shape == kind(cg.Size([2, 3])).shape == (2, 3)
    for data in ([0, 1], (0, 1), np.array([0, 1]), [cg.tensor(0), cg.tensor(1)], range(2)):
        tensor = kind(data)
        assert type(tensor) is cg.Tensor and tensor.dtype == dtype and tensor.tolist() == [0, 1]
    source = cg.ones(2, dtype=dtype)
    assert kind(source).data_ptr() == source.data_ptr() and kind([[1], [0]], device="cpu").shape == (2, 1)
    assert source.new(3).dtype == source.new([1]).dtype == dtype and source.new([1]).tolist() == [1]


@ROWS
def test_type_names_a_dtype_and_converts(row):
    x, dtype = cg.ones(2), getattr(cg, row.name)
    assert x.to(dtype).type() == f"cygrad.{row.tensors}"
    for kind in (dtype, getattr(cg, row.tensors), f"cygrad.{row.tensors}", f"torch.{row.tensors}"):
        assert x.type(kind).dtype == dtype and x.to(dtype).type(kind).dtype == dtype
    assert all(getattr(x, name)().dtype == dtype for name in row.conversions)
    same = x.to(dtype)
    assert same.type(getattr(cg, row.tensors)) is same


def test_numbers_are_converted():
    assert cg.LongTensor([1.5, -2.5]).tolist() == [1, -2]
    assert cg.BoolTensor([0, 2, 0.5]).tolist() == [False, True, True]


REFUSED = [
    (lambda: cg.FloatTensor(cg.arange(3)), TypeError, r"got cygrad.int64"),
    (lambda: cg.ones(2).new(cg.arange(3)), TypeError, r"got cygrad.int64"),
    (lambda: cg.FloatTensor(3.5), TypeError, r"new\(\): data must be a sequence \(got float\)"),
    (lambda: cg.FloatTensor("ab"), TypeError, r"new\(\)"),
    (lambda: cg.FloatTensor([[1], [2, 3]]), ValueError, "expected sequence of length 1"),
    (lambda: cg.FloatTensor(2, device="cuda"), AssertionError, "not compiled with CUDA"),
    (lambda: cg.ones(2).type("LongTensor"), ValueError, "invalid type: 'LongTensor'"),
    (lambda: cg.ones(2).type("torch.cuda.FloatTensor"), AssertionError, "not compiled with CUDA"),
    (lambda: cg.ones(2).type(3), TypeError, "dtype"),
    (lambda: cg.set_default_tensor_type(cg.LongTensor), TypeError, "floating-point"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_default_may_be_set_by_a_type():
    try:
        cg.set_default_tensor_type(cg.DoubleTensor)
        assert cg.zeros(1).dtype == cg.float64
        cg.set_default_tensor_type("torch.FloatTensor")
        assert cg.zeros(1).dtype == cg.float32
    finally:
        cg.set_default_dtype(cg.float32)
