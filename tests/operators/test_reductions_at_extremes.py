"""Products with zeros among factors that overflow, and extrema of NaNs: values and derivatives.

A zero makes a product 0 for any size of the other factors, and its derivatives 0 or finite: inf * 0 on the way is no NaN.
"""

import itertools
import math

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import forward_ad, grad
from samples import FLOATS, SHAPES, array_of

INF, NAN = math.inf, math.nan
HUGE, TINY = {"float32": 1e30, "float64": 1e200}, {"float32": 1e-30, "float64": 1e-200}


# ----- Products -----
def product(factors):
    """Return the product of numbers, 0 if one is; it overflows where the type does."""
    return 0.0 if 0 in factors else math.prod(factors)


def arrays(dtype, shape):
    """Yield huge and tiny factors with no zero, one, two, and with zeros only."""
    places = list(np.ndindex(*shape))
    for size, zeros in itertools.product((HUGE[dtype], TINY[dtype], 3.0), ([], places[:1], places[-1:], places[::2], places)):
        array = np.full(shape, size, dtype)
        for place in zeros:
            array[place] = 0
        yield array


def along(function, array, dim):
    """Apply a function of a list of numbers, which returns as many, along a dim or to all elements."""
    flat = array.astype(float)
    if dim is None:
        return np.array(function(flat.ravel().tolist())).reshape(array.shape)
    return np.apply_along_axis(lambda row: np.array(function(row.tolist())), dim, flat)


def in_type(values, dtype):
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(dtype)


def without_each(factors):
    return [product(factors[:k] + factors[k + 1:]) for k in range(len(factors))]


def running(factors):
    return [product(factors[:k + 1]) for k in range(len(factors))]


def gradients_of_running(factors):
    """Return the sum, over all running products, of their derivatives by each factor."""
    count = range(len(factors))
    return [sum(product(factors[:i] + factors[i + 1:j + 1]) for j in count if j >= i) for i in count]


SMALL_SHAPES = [shape for shape in SHAPES if 0 < math.prod(shape) <= 24 and math.prod(shape) not in range(6, 15)]


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.cases("shape", SMALL_SHAPES, ids=str)
def test_products_and_gradients_beside_zeros(shape, dtype):
    for array, dim in itertools.product(arrays(dtype, shape), (None, *range(len(shape)))):
        if not (array == 0).any():
            continue
        x = cg.tensor(array, requires_grad=True)
        for create_graph in (False, True):
            y = x.prod() if dim is None else x.prod(dim, keepdim=True)
            values = along(lambda factors: [product(factors)] * len(factors), array, dim)
            assert np.array_equal(np.broadcast_to(array_of(y), shape), in_type(values, dtype)), (array, dim)
            gradient, = grad(y.sum(), x, create_graph=create_graph)
            beside = along(lambda factors: [0 in factors] * len(factors), array, dim)
            expected = in_type(along(without_each, array, dim), dtype)
            assert np.allclose(array_of(gradient)[beside], expected[beside], rtol=1e-5), (array, dim)


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.cases("shape", [shape for shape in SMALL_SHAPES if shape], ids=str)
def test_running_products_and_gradients(shape, dtype):
    """Products beside zeros, and behind running products that overflow."""
    for array, dim in itertools.product(arrays(dtype, shape), range(len(shape))):
        x = cg.tensor(array, requires_grad=True)
        y = x.cumprod(dim)
        assert np.allclose(array_of(y), in_type(along(running, array, dim), dtype), rtol=1e-5), (array, dim)
        gradient, = grad(y.sum(), x)
        assert np.allclose(array_of(gradient), in_type(along(gradients_of_running, array, dim), dtype), rtol=1e-5), (array, dim)


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.cases("zeros", [(0,), (3,), (0, 1, 2), range(5)], ids=str)
@pytest.mark.parametrize("call", [lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.reshape(1, -1).prod(1)], ids=["all", "dim", "rows"])
def test_second_derivatives_and_tangents_beside_zeros(call, zeros, dtype):
    for size in (HUGE[dtype], TINY[dtype], 2.0):
        array = np.full(5, size, dtype)
        array[list(zeros)] = 0
        x = cg.tensor(array, requires_grad=True)
        gradient, = grad(call(x).sum(), x, create_graph=True)
        for k in range(5):
            rest = [float(value) for i, value in enumerate(array) if i != k]
            expected = np.insert(without_each(rest), k, 0.0)
            assert np.allclose(array_of(grad(gradient[k], x, retain_graph=True)[0]), in_type(expected, dtype), rtol=1e-5), (size, k)
            with forward_ad.dual_level():
                tangent = cg.tensor(np.eye(5, dtype=dtype)[k])
                result = forward_ad.unpack_dual(call(forward_ad.make_dual(x.detach(), tangent))).tangent
                assert np.allclose(array_of(result), in_type(np.array(product(rest)), dtype), rtol=1e-5), (size, k)


@pytest.mark.parametrize("dtype", FLOATS)
def test_many_factors_and_one_zero(dtype):
    for place in (0, 1000, 1999):
        x = cg.full((2000,), 3.0, dtype=getattr(cg, dtype))
        x[place] = 0
        x.requires_grad_()
        assert x.prod().item() == x.prod(0).item() == x.cumprod(0)[-1].item() == 0
        gradient, = grad(x.prod(), x)
        assert gradient[place].item() == INF
        assert gradient.isfinite().sum().item() == 1999
        assert gradient.count_nonzero().item() == 1


def test_products_with_infinities_and_nan():
    for factors, expected in (([INF, 0], NAN), ([NAN, 0], NAN), ([0, -INF, 2], NAN), ([INF, 2], INF), ([1e308, 1e308], INF), ([], 1)):
        x = cg.tensor(factors, dtype=cg.float64)
        assert np.array_equal(array_of(x.prod()), expected, equal_nan=True)
        assert np.array_equal(array_of(x.cumprod(0))[-1:], [expected][:len(factors)], equal_nan=True)


# ----- Extrema of NaNs -----
# torch 2.13's gradients of max, min, median and nanmedian, of all elements and along a dim.
NANS = {
    (1, NAN, 3, NAN): {"max min median": ([0, 0.5, 0, 0.5], [0, 1, 0, 0]), "nanmedian": ([1, 0, 0, 0], [1, 0, 0, 0])},
    (NAN,): {"max min median nanmedian": ([1], [1])},
    (NAN, NAN, NAN, NAN): {"max min median": ([0.25] * 4, [1, 0, 0, 0]), "nanmedian": ([0.25] * 4, None)},     # torch's choice is open
    (1, 3, 3): {"max median nanmedian": ([0, 0.5, 0.5], [0, 1, 0]), "min": ([1, 0, 0], [1, 0, 0])},
}
NAN_CASES = [(name, values, *expected) for values, table in NANS.items() for names, expected in table.items() for name in names.split()]


@pytest.mark.cases("create_graph", [False, True])
@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.parametrize(("name", "values", "of_all", "of_dim"), NAN_CASES)
def test_gradients_of_extrema_of_nans(name, values, of_all, of_dim, dtype, create_graph):
    x = cg.tensor(values, dtype=getattr(cg, dtype), requires_grad=True)
    assert grad(getattr(x, name)(), x, create_graph=create_graph)[0].tolist() == of_all
    rows = x.reshape(1, -1)
    for call in (lambda: getattr(x, name)(0), lambda: getattr(rows, name)(1), lambda: getattr(rows, name)(-1, keepdim=True)):
        gradient = grad(call().values.sum(), x, create_graph=create_graph)[0].tolist()
        assert gradient == of_dim or of_dim is None and sorted(gradient) == [0, 0, 0, 1]


@pytest.mark.parametrize("name", ["amax", "amin"])
@pytest.mark.parametrize("values", NANS)
def test_amax_and_amin_of_nans_have_the_gradients_of_max(name, values):
    """torch divides 0 by 0 there, and all gradients are NaN; one rule for both is better."""
    x = cg.tensor(values, dtype=cg.float64, requires_grad=True)
    expected = grad(getattr(x, name[1:])(), x)[0].tolist()
    for dim in (None, 0, (0,)):
        assert grad(getattr(x, name)(dim), x)[0].tolist() == expected
    pair = cg.stack([x, cg.ones_like(x)])
    assert grad(getattr(pair, name)(1).sum(), x)[0].tolist() == expected


def test_gradients_of_other_extrema_of_nans():
    x, source = cg.tensor([1.0, 2.0], requires_grad=True), cg.tensor([NAN, NAN, 5.0], requires_grad=True)
    result = x.scatter_reduce(0, cg.tensor([0, 0, 1]), source, "amax")
    assert [part.tolist() for part in grad(result.sum(), (x, source))] == [[0, 0], [0.5, 0.5, 1]]
    y = cg.tensor([1.0, NAN], requires_grad=True)
    for order in (INF, -INF):
        assert grad(y.norm(order), y)[0].tolist() == [0, 0]


pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.mark.cases("dtype", ["float64", "float32", "bfloat16", "int64", "uint8"])
def test_the_first_of_equal_extrema_is_found_anywhere(dtype):
    """Elements are compared many at once, and the last ones, and those with other strides, one by one."""
    for size in (1, 63, 64, 65, 200):
        for place in range(0, size, 7):
            x = cg.zeros(3, size, dtype=getattr(cg, dtype))
            x[1, place:] = 5
            assert x.max(1).indices.tolist() == [0, place, 0]
            assert x.T.contiguous().max(0).indices.tolist() == [0, place, 0]


@pytest.mark.cases("name", ["any", "all"])
@pytest.mark.cases("none", [(), []], ids=str)
def test_truth_values_over_no_dims(name, none):
    """Of each element, as in torch; other reductions take no dims for all."""
    x = cg.tensor([[0, 2], [1, 0]])
    for result in (getattr(x, name)(none), getattr(cg, name)(x, dim=none), getattr(x, name)(dim=none, keepdim=True),
                   getattr(x.mT, name)(none).mT, cg.vmap(lambda row: getattr(row, name)(none))(x)):
        assert result.dtype == cg.bool and result.tolist() == [[False, True], [True, False]]
    assert getattr(cg.tensor(2.0), name)(none).tolist() is True and getattr(cg.ones(0, 2), name)(none).shape == (0, 2)
    assert x.sum(none).item() == 3
