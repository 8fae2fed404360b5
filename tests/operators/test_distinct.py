"""Distinct elements, smallest and largest at once: against NumPy and by their definition; NaN, empty tensors, gradients."""

import math

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad.autograd import grad
from cygrad.func import jvp, vmap
from samples import DTYPES, LAYOUTS, array_of, same_bits

NAN = math.nan
SHAPES = ((), (1,), (9,), (4, 5), (3, 2, 4))
FUNCTIONS = (cg.unique, cg.unique_consecutive)


def repeated(dtype, shape, layout):
    """Return a tensor with few different elements, and along each dim equal slices."""
    array = np.asarray(np.round(samples.draw(dtype, shape)).astype(dtype))
    array[array == 0] = 0       # no -0
    return LAYOUTS[layout](np.concatenate([array, array, array[:1]]) if shape else array)


def check_parts(results, array, dim):
    """Check that the inverse puts the input together again, and that counts are the occurrences of each part."""
    values, inverse, counts = map(array_of, results)
    d = 0 if dim is None else dim
    assert same_bits(values.take(inverse, d).reshape(array.shape), array)
    assert counts.tolist() == [(inverse == place).sum() for place in range(values.shape[d])]
    assert {inverse.dtype, counts.dtype} == {np.dtype("int64")}


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
def test_distinct_elements_and_slices(dtype, layout):
    for shape in SHAPES:
        tensor = repeated(dtype, shape, layout)
        array = array_of(tensor)
        for dim in (None, *range(-len(shape), len(shape))):
            results = tensor.unique(return_inverse=True, return_counts=True, dim=dim)
            expected = np.unique(array, return_inverse=True, return_counts=True, axis=dim)
            assert same_bits(array_of(results[0]), expected[0])
            assert results[1].tolist() == expected[1].reshape(array.shape if dim is None else -1).tolist()
            assert results[2].tolist() == expected[2].tolist()
            check_parts(results, array, dim)
            runs = tensor.unique_consecutive(return_inverse=True, return_counts=True, dim=dim)
            check_parts(runs, array, dim)
            assert (np.diff(array_of(runs[1]).reshape(-1)) >= 0).all()
            d = 0 if dim is None else dim
            rows = np.moveaxis(array_of(runs[0]), d, 0)
            assert all((before != behind).any() for before, behind in zip(rows, rows[1:], strict=False))


def test_the_types_of_results():
    x = cg.tensor([2, 1, 2])
    assert isinstance(x.unique(), cg.Tensor) and isinstance(cg.unique_consecutive(x), cg.Tensor)
    assert x.unique(sorted=False).tolist() == [1, 2]
    assert [part.tolist() for part in cg.unique(x, True, True)] == [[1, 2], [1, 0, 1]]
    assert [part.tolist() for part in x.unique(return_counts=True)] == [[1, 2], [1, 2]]
    assert [part.tolist() for part in x.unique_consecutive(return_counts=True)] == [[2, 1, 2], [1, 1, 1]]
    assert x[None].unique(axis=1).tolist() == [[1, 2]]


def test_nan_and_zeros():
    x = cg.tensor([NAN, 1.0, NAN, 1.0])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert (values[0].item(), inverse.tolist(), counts.tolist()) == (1, [1, 0, 2, 0], [2, 1, 1]) and values[1:].isnan().all()
    assert cg.tensor([[NAN, 1.0], [NAN, 1.0]]).unique(dim=0).shape == (2, 2)
    assert cg.tensor([NAN, NAN, 1, 1]).unique_consecutive(return_counts=True)[1].tolist() == [1, 1, 2]
    assert cg.tensor([0.0, -0.0]).unique().tolist() == [0]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_of_nothing(function):
    for dim, shape in ((None, (0,)), (0, (0, 3))):
        values, inverse, counts = function(cg.zeros(0, 3), return_inverse=True, return_counts=True, dim=dim)
        assert (values.shape, inverse.shape, counts.shape) == (shape, (0, 3) if dim is None else (0,), (0,))
    with pytest.raises(RuntimeError, match="There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"):
        function(cg.zeros(0, 3), dim=1)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_refused(function):
    with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dimensions"):
        function(cg.tensor(1.0), dim=0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        function(cg.ones(2), dim=1)
    with pytest.raises(TypeError, match=r"must be Tensor, not list"):
        function([1])
    with pytest.raises(RuntimeError, match="vmap: We do not support batching operators that can output dynamic shape"):
        vmap(function)(cg.ones(2, 3))


def test_the_gradient_goes_to_the_first_of_equal_elements():
    x = cg.tensor([3.0, 1.0, 1.0, 3.0], requires_grad=True)
    weights = cg.tensor([2.0, 5.0])
    values, counts = x.unique(return_counts=True)
    assert not counts.requires_grad
    assert grad(values, x, weights)[0].tolist() == [5, 2, 0, 0]
    assert grad(x.unique_consecutive(), x, cg.tensor([1.0, 2.0, 3.0]))[0].tolist() == [1, 2, 0, 3]
    tangents = cg.tensor([10.0, 20.0, 30.0, 40.0])
    assert jvp(lambda x: x.unique(), (x,), (tangents,))[1].tolist() == [20, 10]
    assert jvp(lambda x: x.unique(return_inverse=True)[0], (x,), (tangents,))[1].tolist() == [20, 10]
    assert jvp(lambda x: x.unique_consecutive(), (x,), (tangents,))[1].tolist() == [10, 20, 40]


# ----- Smallest and largest at once -----
@pytest.mark.cases("dtype", DTYPES)
def test_aminmax(dtype):
    for shape in SHAPES:
        tensor = cg.tensor(samples.draw(dtype, shape))
        for dim in (None, *range(-len(shape), len(shape))):
            for keepdim in (False, True):
                result = cg.aminmax(tensor, dim=dim, keepdim=keepdim)
                assert same_bits(array_of(result.min), np.amin(array_of(tensor), dim, keepdims=keepdim))
                assert same_bits(array_of(result.max), np.amax(array_of(tensor), dim, keepdims=keepdim))


def test_aminmax_of_a_dim_without_elements():
    with pytest.raises(IndexError, match="^aminmax: Expected reduction dim 1 to have non-zero size"):
        cg.aminmax(cg.ones(5, 0, 5), dim=-2)
    assert cg.aminmax(cg.ones(5, 0, 5), dim=0).min.shape == (0, 5)


def test_aminmax_of_special_tensors_and_into_out():
    x = cg.tensor([1.0, 1.0, 3.0, 3.0], requires_grad=True)
    low, high = x.aminmax()
    assert grad(low + high, x)[0].tolist() == [0.5, 0.5, 0.5, 0.5]
    assert jvp(lambda x: x.aminmax()[1], (x,), (cg.tensor([1.0, 2.0, 3.0, 5.0]),))[1].item() == 4
    batch = cg.tensor([[1.0, 5.0], [7.0, 3.0]])
    assert [part.tolist() for part in vmap(lambda row: tuple(row.aminmax(dim=0)))(batch)] == [[1, 3], [5, 7]]
    assert cg.tensor([1.0, NAN]).aminmax().max.isnan()
    assert repr(cg.tensor([2, 1]).aminmax()) == "cygrad.return_types.aminmax(\nmin=tensor(1),\nmax=tensor(2))"
    out = cg.empty(2), cg.empty(2)
    assert cg.aminmax(batch, dim=1, out=out)[1] is out[1]
    assert [part.tolist() for part in out] == [[1, 3], [5, 7]]


def test_aminmax_of_nothing():
    with pytest.raises(RuntimeError, match=r"aminmax\(\): cannot compute aminmax over an empty dimension as the operation has no identity"):
        cg.zeros(0).aminmax()
    with pytest.raises(IndexError, match="Expected reduction dim 0 to have non-zero size"):
        cg.zeros(0, 2).aminmax(dim=0)
    assert cg.zeros(0, 2).aminmax(dim=1).min.shape == (0,)
