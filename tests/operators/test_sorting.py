"""Sorting, ranks and running extrema: against NumPy, with NaN, ties and places; the other running reductions."""

import math

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.autograd import grad
from samples import DTYPES, LAYOUTS, NUMBERS, array_of, same_bits

NAN = math.nan
SHAPES = ((7,), (3, 5), (2, 3, 4), (1, 1), (40, 3))


def places_of(values, indices, array, dim):
    """Return True if the elements at the indices are the values."""
    return same_bits(np.take_along_axis(array, array_of(indices), dim), array_of(values))


# ----- Values -----
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
def test_sorting(dtype, layout):
    for shape in SHAPES:
        tensor = LAYOUTS[layout](samples.draw(dtype, shape))
        array = array_of(tensor)
        for dim in range(-len(shape), len(shape)):
            for descending in (False, True):
                values, indices = tensor.sort(dim, descending)
                expected = np.sort(array, dim)
                assert same_bits(array_of(values), np.flip(expected, dim) if descending else expected)
                assert places_of(values, indices, array, dim)
                assert tensor.argsort(dim, descending=descending).tolist() == indices.tolist()
                size = shape[dim]
                for k in {0, 1, size // 2, size} if dtype != "bool" else ():
                    top = tensor.topk(k, dim, largest=descending)
                    assert same_bits(array_of(top.values), np.take(array_of(values), range(k), dim))
                    assert places_of(*top, array, dim)
            for k in range(1, shape[dim] + 1):
                value = tensor.kthvalue(k, dim, keepdim=True)
                assert same_bits(array_of(value.values), np.take(expected, [k - 1], dim))
                assert places_of(*value, array, dim)
                assert same_bits(array_of(tensor.kthvalue(k, dim).values), np.take(expected, k - 1, dim))
            for function in (cg.median, cg.nanmedian):
                value = function(tensor, dim, keepdim=True)
                assert same_bits(array_of(value.values), np.take(expected, [(shape[dim] - 1) // 2], dim))
                assert places_of(*value, array, dim)
                assert function(tensor, dim).indices.shape == expected.shape[:dim % len(shape)] + expected.shape[dim % len(shape) + 1:]
        assert same_bits(array_of(tensor.msort()), np.sort(array, 0))
        assert array_of(tensor.median()) == np.sort(array.reshape(-1))[(array.size - 1) // 2]


def test_equal_elements_keep_their_order():
    x = cg.tensor([1, 0, 1, 0, 1])
    assert x.sort().indices.tolist() == [1, 3, 0, 2, 4]
    assert x.sort(descending=True, stable=True).indices.tolist() == [0, 2, 4, 1, 3]


@pytest.mark.cases("dtype", [dtype for dtype in NUMBERS if not dtype.startswith("complex")])
@pytest.mark.parametrize("among", (3, 400, 1_000_000))
def test_equal_elements_of_rows_keep_their_order(among, dtype):
    """Long rows are sorted and partitioned by methods that are not stable: zeros, NaN and runs are put in order afterwards. Short ones have
    a loop of their own, by runs of sixteen."""
    random = np.random.default_rng(3)
    for shape, dim in ((1_200,), 0), ((3, 700), 1), ((600, 4), 0), ((16,), 0), ((2, 17, 3), 1), ((100, 4), 0), ((3, 511), 1):
        tensor = cg.tensor(random.integers(0, among, shape) % 120).to(getattr(cg, dtype))
        if tensor.is_floating_point():
            tensor = tensor.masked_fill(cg.tensor(random.random(shape) < 0.2), -0.0).masked_fill(cg.tensor(random.random(shape) < 0.1), NAN)
        array = np.moveaxis(array_of(tensor.double()), dim, -1)
        expected = np.moveaxis(np.argsort(array, kind="stable"), -1, dim)
        backwards = np.moveaxis(array.shape[-1] - 1 - np.argsort(array[..., ::-1], kind="stable")[..., ::-1], -1, dim)
        middle = shape[dim] // 2
        assert array_of(tensor.argsort(dim)).tolist() == expected.tolist()
        assert array_of(tensor.argsort(dim, descending=True)).tolist() == backwards.tolist()
        assert array_of(tensor.topk(9, dim, largest=False).indices).tolist() == np.take(expected, range(9), dim).tolist()
        assert array_of(tensor.topk(9, dim).indices).tolist() == np.take(backwards, range(9), dim).tolist()
        assert array_of(tensor.kthvalue(middle, dim).indices).tolist() == np.take(expected, middle - 1, dim).tolist()


def test_limits_of_integers_are_in_order():
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        array = np.array([np.iinfo(dtype).max, 0, np.iinfo(dtype).min, 1], dtype)
        assert cg.tensor(array).argsort().tolist() == np.argsort(array, kind="stable").tolist()


def test_nan_is_the_largest():
    x = cg.tensor([3.0, NAN, 1.0, NAN])
    assert x.sort().indices.tolist() == [2, 0, 1, 3]
    assert x.sort(descending=True).indices.tolist() == [1, 3, 0, 2]
    assert x.topk(2, largest=False).values.tolist() == [1, 3]
    assert x.median(0).indices.item() == 1
    assert math.isnan(x.median().item())
    assert tuple(part.item() for part in x.nanmedian(0)) == (1, 2)
    assert x.nanmedian().item() == 1
    assert cg.tensor([NAN, NAN]).nanmedian(0).indices.item() == 0
    assert grad(cg.tensor([3.0, NAN], requires_grad=True).median(), x.requires_grad_(), allow_unused=True) == (None,)
    leaf = cg.tensor([3.0, NAN, NAN], requires_grad=True)
    assert grad(leaf.median(), leaf)[0].tolist() == [0, 0.5, 0.5]


def test_gradients_of_ties():
    x = cg.tensor([2.0, 1.0, 2.0, 2.0], requires_grad=True)
    assert grad(x.median(), x)[0].tolist() == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3])
    assert grad(x.median(0).values, x)[0].tolist() == [1, 0, 0, 0]
    assert grad(x.cummax(0).values.sum(), x)[0].tolist() == [2, 0, 1, 1]
    assert grad(x.sort().values[-1], x)[0].tolist() == [0, 0, 0, 1]


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
def test_running_extrema(dtype, layout):
    for shape in SHAPES:
        tensor = LAYOUTS[layout](samples.draw(dtype, shape))
        array = array_of(tensor)
        for dim in range(-len(shape), len(shape)):
            for function, extremum in ((cg.cummax, np.maximum), (cg.cummin, np.minimum)):
                values, indices = function(tensor, dim)
                assert same_bits(array_of(values), extremum.accumulate(array, dim))
                assert places_of(values, indices, array, dim)


def test_running_extrema_of_nan_and_ties():
    x = cg.tensor([1.0, 3.0, 2.0, 3.0, NAN, 1.0])
    assert x.cummax(0).indices.tolist() == [0, 1, 1, 3, 4, 4]
    assert np.array_equal(array_of(x.cummax(0).values), [1, 3, 3, 3, NAN, NAN], equal_nan=True)


def test_logcumsumexp():
    for shape, dtype in ((SHAPES[1], "float64"), (SHAPES[2], "float32")):
        array = samples.draw(dtype, shape)
        for dim in (0, -1):
            expected = np.log(np.cumsum(np.exp(array.astype(np.longdouble)), dim))
            assert np.allclose(array_of(cg.tensor(array).logcumsumexp(dim)), expected, rtol=1e-5, atol=1e-5)
    large = cg.tensor([-math.inf, 1000.0, 1000.0, -1000.0], dtype=cg.float64, requires_grad=True)
    result = large.logcumsumexp(0)
    assert result.tolist() == pytest.approx([-math.inf, 1000, 1000 + math.log(2), 1000 + math.log(2)])
    assert grad(result[1:].sum(), large)[0].tolist() == pytest.approx([0, 2, 1, 0])


def test_gradients_of_running_products_with_zeros():
    for zeros in ([], [0], [2], [1, 3], [0, 1, 2, 3]):
        array = np.array([2.0, 3.0, -1.0, 0.5])
        array[zeros] = 0
        x = cg.tensor(array, requires_grad=True)
        weight = np.array([1.0, 10.0, 100.0, 1000.0])
        expected = [sum(weight[i] * np.prod(np.delete(array[: i + 1], k)) for i in range(k, 4)) for k in range(4)]
        assert grad(x.cumprod(0), x, cg.tensor(weight))[0].tolist() == pytest.approx(expected)


def test_differences():
    array = samples.draw("float64", (3, 5))
    x = cg.tensor(array)
    for n in range(7):
        assert np.allclose(array_of(x.diff(n)), np.diff(array, n))
    ends = x.diff(dim=0, prepend=x[:1] * 2, append=x[1:])
    assert np.allclose(array_of(ends), np.diff(array, axis=0, prepend=array[:1] * 2, append=array[1:]))
    assert cg.tensor([True, True, False]).diff().tolist() == [False, True]
    assert cg.tensor([1, 4, 9]).diff().tolist() == [3, 5]
    assert x.diff(0).data_ptr() != x.data_ptr()


def test_counts():
    x = cg.tensor([[0, 5], [3, 4]])
    assert x.count_nonzero().item() == 3
    assert x.count_nonzero(0).tolist() == [1, 2]
    assert cg.count_nonzero(x, dim=(0, 1)).item() == 3
    nan = cg.tensor([1.0, NAN, 3.0], requires_grad=True)
    assert nan.nansum().item() == 4
    assert nan.nanmean().item() == 2
    assert grad(nan.nanmean(), nan)[0].tolist() == [0.5, 0, 0.5]
    assert math.isnan(cg.tensor([NAN]).nanmean().item())


def test_scalars_and_nothing():
    x, none = cg.tensor(5.0), cg.zeros(0, 3)
    for pair in (x.sort(), x.topk(1), x.kthvalue(1), x.median(0), x.cummax(0)):
        assert [part.tolist() for part in pair] == [5, 0]
    assert x.cumprod(0).item() == x.logcumsumexp(0).item() == x.median().item() == 5
    assert none.sort(0).values.shape == none.sort(1).indices.shape == none.cummax(0).values.shape == (0, 3)
    assert none.topk(2, 1).values.shape == (0, 2)
    assert none.median(1).values.shape == (0,)
    assert math.isnan(none.median().item())


def test_results_are_named_and_written_to_out():
    x = cg.tensor([3.0, 1.0, 2.0])
    assert repr(x.sort()) == "cygrad.return_types.sort(\nvalues=tensor([1., 2., 3.]),\nindices=tensor([1, 2, 0]))"
    values, indices = cg.zeros(3), cg.zeros(3, dtype=cg.int64)
    result = cg.sort(x, out=(values, indices))
    assert (result.values is values, result.indices is indices) == (True, True)
    assert values.tolist() == [1, 2, 3]


def test_changed_indices_are_noticed():
    x = cg.tensor([3.0, 1.0, 2.0], requires_grad=True)
    result = x.sort()
    result.indices.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grad(result.values.sum(), x)
    single = x.median(0)
    single.indices.zero_()
    assert grad(single.values, x)[0].tolist() == [0, 0, 1]


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", NUMBERS)
def test_membership(dtype, layout):
    x, among = LAYOUTS[layout](samples.draw(dtype, (3, 5))), LAYOUTS[layout](samples.draw(dtype, (2, 4), 1))
    among[0, :2] = x[0, :2].clone() if layout != "expanded" else x[0, 0].clone()
    expected = np.isin(array_of(x), array_of(among))
    assert expected.any()
    assert same_bits(array_of(cg.isin(x, among)), expected)
    assert same_bits(array_of(cg.isin(x, among, invert=True)), ~expected)
    out = cg.empty(3, 5, dtype=cg.bool)
    assert cg.isin(elements=x, test_elements=among, out=out) is out and same_bits(array_of(out), expected)
    mapped = cg.vmap(lambda row: cg.isin(row, among))(x), cg.vmap(lambda row: cg.isin(x, row, invert=True))(among)
    assert same_bits(array_of(mapped[0]), expected)
    assert same_bits(array_of(mapped[1]), np.stack([~np.isin(array_of(x), row) for row in array_of(among)]))


def test_membership_of_numbers_nothing_and_nan():
    x = cg.tensor([[0.1, 2.0], [3.0, NAN]])
    assert cg.isin(x, 0.1).tolist() == cg.isin(x, test_element=0.1).tolist() == [[True, False], [False, False]]
    assert cg.isin(2, x).tolist() is cg.isin(element=2, test_elements=x).tolist() is True
    assert cg.isin(2, x, invert=True).tolist() is False
    assert not cg.isin(x, cg.tensor([])).any() and cg.isin(x, cg.tensor([]), invert=True).all()
    assert cg.isin(cg.zeros(0, 2), x).shape == (0, 2) and cg.isin(cg.tensor(2), x).shape == ()
    assert not cg.isin(x[1, 1], x).item()
    assert cg.isin(cg.tensor([1, 2, 3]), cg.tensor([2.0, 3.5])).tolist() == [False, True, False]
    assert cg.isin(cg.tensor([1, 2, 3]), cg.tensor([3, 1]), assume_unique=True).tolist() == [True, False, True]
    assert not cg.isin(x.requires_grad_(), x).requires_grad


X = cg.ones(2, 3)
def test_counts_are_integers_of_any_type():
    x = cg.tensor([3.0, 1.0, 2.0])
    for two in (2, np.int64(2), np.uint8(2), cg.tensor(2), cg.tensor([2])):
        assert x.topk(two).values.tolist() == [3.0, 2.0]
        assert x.kthvalue(two).values.item() == 2.0


REFUSED = [
    (lambda: X.topk(True), TypeError, "argument 'k' .*must be int, not bool"),
    (lambda: X.topk(cg.tensor(2.0)), TypeError, "only integer tensors of a single element|must be int"),
    (lambda: X.kthvalue(True), TypeError, "argument 'k' .*must be int, not bool"),
    (lambda: cg.ones(0).kthvalue(1), IndexError, r"kthvalue\(\): Expected reduction dim 0 to have non-zero size"),
    (lambda: cg.ones(2, 0).kthvalue(0, 1), IndexError, r"kthvalue\(\): Expected reduction dim 1 to have non-zero size"),
    (lambda: cg.isin(1, 2), TypeError, r"isin\(\) received an invalid combination of arguments - got \(int, int\)"),
    (lambda: cg.isin(X, [1.0]), TypeError, r"isin\(\) received an invalid combination of arguments - got \(Tensor, list\)"),
    (lambda: X.sort(2), IndexError, "Dimension out of range"),
    (lambda: X.topk(4), RuntimeError, "selected index k out of range"),
    (lambda: X.topk(-1), RuntimeError, "selected index k out of range"),
    (lambda: X.kthvalue(0), RuntimeError, r"kthvalue\(\): selected number k out of range for dimension 1"),
    (lambda: X.kthvalue(4), RuntimeError, r"kthvalue\(\): selected number k out of range for dimension 1"),
    (lambda: cg.zeros(0, 2).median(0), IndexError, r"median\(\): Expected reduction dim 0 to have non-zero size"),
    (lambda: X.cummax(3), IndexError, "Dimension out of range"),
    (lambda: X.long().logcumsumexp(0), NotImplementedError, "\"logcumsumexp_out_cpu\" not implemented for 'Long'"),
    (lambda: X.diff(-1), RuntimeError, "order must be non-negative but got -1"),
    (lambda: cg.tensor(1.0).diff(), RuntimeError, "diff expects input to be at least one-dimensional"),
    (lambda: X.diff(prepend=X[0]), RuntimeError, "diff expects prepend or append to be the same dimension as input"),
    (lambda: X.long().nanmean(), RuntimeError, r"nanmean\(\): expected input to have floating point or complex dtype"),
    (lambda: cg.sort([1.0]), TypeError, r"sort\(\): argument 'input' \(position 1\) must be Tensor, not list"),
]


@pytest.mark.cases(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
