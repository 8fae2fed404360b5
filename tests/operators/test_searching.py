"""Places in sorted sequences: searchsorted and bucketize, against NumPy row by row."""

import math

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.func import jvp, vmap
from samples import DTYPES, LAYOUTS, array_of

NAN = math.nan
ROWS = (((5,), ()), ((5,), (3,)), ((0,), (3,)), ((1,), (2, 3)), ((2, 5), (2, 3)), ((2, 1, 4), (2, 1, 6)), ((2, 4), (2, 0)),
        ((0, 4), (0, 2)))
S = cg.tensor([1.0, 2.0, 3.0])


def rounded(dtype, shape):
    return np.asarray(np.round(samples.draw(dtype, shape)).astype(dtype))


def expected(sequence, values, side):
    places = np.zeros(values.shape, np.int64)
    for row in np.ndindex(sequence.shape[:-1]):
        places[row] = np.searchsorted(sequence[row], values[row] if row else values, side)
    return places


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
def test_places(dtype, layout):
    for shape, other in ROWS:
        sequence = LAYOUTS[layout](np.sort(rounded(dtype, shape), -1))
        values = LAYOUTS[layout](rounded(dtype, other))
        for right in (False, True):
            places = expected(array_of(sequence), array_of(values), "right" if right else "left")
            result = cg.searchsorted(sequence, values, right=right)
            assert (result.dtype, result.shape, result.tolist()) == (cg.int64, values.shape, places.tolist())
            assert cg.searchsorted(sequence, values, side="right" if right else "left").tolist() == places.tolist()
            assert cg.searchsorted(sequence, values, right=right, out_int32=True).dtype == cg.int32
            if len(shape) == 1:
                assert cg.bucketize(values, sequence, right=right).tolist() == places.tolist()


def test_numbers_and_unlike_dtypes():
    assert cg.searchsorted(S, 2.5).tolist() == 2 and cg.searchsorted(S, 2).tolist() == 1 and cg.bucketize(2, S, right=True).tolist() == 2
    assert cg.searchsorted(S, self=2.5).tolist() == cg.bucketize(self=2.5, boundaries=S).tolist() == 2
    assert cg.searchsorted(S, cg.tensor([2])).tolist() == [1]
    assert cg.searchsorted(cg.tensor([1, 2, 3]), cg.tensor([2.5])).tolist() == [2]
    assert cg.searchsorted(S, cg.tensor([2.0000001], dtype=cg.float64)).tolist() == [2]


def test_nan_is_the_largest():
    x = cg.tensor([1.0, NAN, NAN])
    for search in (cg.searchsorted, lambda *a, **k: vmap(lambda row: cg.searchsorted(a[0], row, **k))(a[1][None])[0]):
        assert search(S, cg.tensor([NAN])).tolist() == [3]
        assert search(x, cg.tensor([0.0, 2.0, NAN])).tolist() == [0, 1, 1]
        assert search(x, cg.tensor([0.0, 2.0, NAN]), right=True).tolist() == [0, 1, 3]


def test_sorter():
    x, values = cg.tensor([[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]]), cg.tensor([[1.5, 2.5], [7.5, 9.5]])
    assert cg.searchsorted(x, values, sorter=x.argsort()).tolist() == [[1, 2], [1, 3]]
    assert vmap(lambda row, v: cg.searchsorted(row, v, sorter=row.argsort()))(x, values).tolist() == [[1, 2], [1, 3]]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(("sequence", "in_dims"), [(S, (None, 0)), (cg.stack([S, S + 1]), (0, 0)), (cg.stack([S, S + 1]), (0, None))])
def test_batches(sequence, in_dims, right):
    values = cg.tensor([[0.5, 2.0, 9.0], [2.5, 3.0, -1.0]])
    rows = [(sequence[k] if in_dims[0] == 0 else sequence, values[k] if in_dims[1] == 0 else values) for k in range(2)]
    alone = [cg.searchsorted(*row, right=right).tolist() for row in rows]
    assert vmap(lambda s, v: cg.searchsorted(s, v, right=right), in_dims)(sequence, values).tolist() == alone
    assert vmap(lambda s, v: cg.bucketize(v, s, right=right), in_dims)(sequence, values).tolist() == alone


def test_special_tensors():
    assert vmap(lambda s: cg.searchsorted(s, 2.5, out_int32=True))(cg.stack([S, S + 1])).dtype == cg.int32
    value, tangent = jvp(lambda x: x * cg.searchsorted(S, x), (cg.tensor([2.5]),), (cg.tensor([1.0]),))
    assert (value.tolist(), tangent.tolist()) == ([5], [2])
    assert not cg.searchsorted(S.clone().requires_grad_(), S.clone().requires_grad_()).requires_grad


@pytest.mark.parametrize("number", [np.int64(2), np.float32(2), np.uint8(2)], ids=repr)
def test_numbers_of_numpy(number):
    assert cg.searchsorted(S, number).tolist() == cg.searchsorted(S, 2).tolist() == cg.bucketize(number, S).tolist()


REFUSED = [
    (lambda: cg.searchsorted(S, 2.0, side="x"), RuntimeError, "side can only be 'left' or 'right' but got x"),
    (lambda: cg.searchsorted(S, 2.0, side="left", right=True), RuntimeError, "side and right can't be set to opposites"),
    (lambda: cg.searchsorted(cg.ones(2, 2), 2.0), RuntimeError, "input value can be a scalar only when boundaries tensor dimension is 1"),
    (lambda: cg.searchsorted(cg.tensor(1.0), 2.0), RuntimeError, "input value can be a scalar only when boundaries tensor dimension is 1"),
    (lambda: cg.searchsorted(cg.ones(2, 2), cg.ones(3, 1)), RuntimeError, "boundaries tensor should be 1 dimension or the first N-1"),
    (lambda: cg.searchsorted(S, S, sorter=cg.tensor([0, 1])), RuntimeError, "boundary and sorter must have the same size"),
    (lambda: cg.searchsorted(S, S, sorter=S), RuntimeError, "sorter must be a tensor of long dtype"),
    (lambda: cg.searchsorted(S, S, sorter=cg.tensor([0, 3, 1])), RuntimeError, "sorter index out of range"),
    (lambda: cg.searchsorted(S, S, sorter=[0, 1, 2]), TypeError, "argument 'sorter' must be Tensor, not list"),
    (lambda: cg.searchsorted(S, S, out=cg.empty(3)), RuntimeError, "output tensor's dtype is wrong"),
    (lambda: cg.searchsorted(S, S, out_int32=True, out=cg.empty(3, dtype=cg.int64)), RuntimeError, "output tensor's dtype is wrong"),
    (lambda: cg.searchsorted([1.0], 2.0), TypeError, "argument 'sorted_sequence' .position 1. must be Tensor, not list"),
    (lambda: cg.searchsorted(S, "a"), TypeError, "received an invalid combination of arguments - got"),
    (lambda: cg.bucketize(2.5, cg.ones(2, 2)), RuntimeError, r"boundaries tensor must be 1 dimension, but got dim\(2\)"),
    (lambda: cg.searchsorted(cg.tensor(1.0), cg.ones(2)), RuntimeError, "tensor should have positive dimension, but got 0 dimension"),
    (lambda: vmap(lambda row: cg.searchsorted(row, 1.0))(cg.ones(2, 2, 2)), RuntimeError, "input value can be a scalar only when"),
]


@pytest.mark.cases(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dtype", [cg.uint8, cg.int16, cg.int32, cg.int64])
def test_coordinates_are_int64(dtype):
    """Indices of any integer dtype, sizes beyond it included."""
    rows, columns = cg.unravel_index(cg.tensor([3, 120], dtype=dtype), (2, 400))
    assert rows.dtype == columns.dtype == cg.int64
    assert rows.tolist() == [0, 0] and columns.tolist() == [3, 120]
    assert cg.unravel_index(cg.tensor([], dtype=dtype), (2, 3))[0].dtype == cg.int64


def test_a_tuple_of_places_has_no_out():
    out = cg.zeros(2, 1, dtype=cg.int64)
    with pytest.raises(RuntimeError, match="nonzero does not support the out kwarg when as_tuple is True"):
        cg.nonzero(S, as_tuple=True, out=out)
    assert out.tolist() == [[0], [0]]
