"""NumPy's functions of order, samples, polynomials and places: NaN and ends, memory that is written, and bad arguments."""

import warnings

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import gradcheck, gradgradcheck
from cygrad.func import grad, hessian, jvp, vmap

X = cg.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]], dtype=cg.float64)


def same(result, expected):
    assert isinstance(result, cg.Tensor)
    np.testing.assert_array_equal(result.detach().numpy(), expected)


# ----- NaN, and ends -----
@pytest.mark.parametrize("function", [np.median, np.nanmedian, np.nanmax, np.nanmin, np.nanvar, np.nanstd, np.nanprod])
def test_missing_and_infinite_elements(function):
    nan, inf = np.nan, np.inf
    a = np.array([[nan, 1.0, 2.0, 4.0], [nan, nan, nan, nan], [inf, inf, -1.0, inf], [1.0, inf, nan, -inf], [2.0, 2.0, 2.0, 2.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for axis in (None, 0, 1):
            expected = np.asarray(function(a, axis))
            np.testing.assert_allclose(function(cg.tensor(a), axis).numpy(), expected, rtol=1e-14)
        assert np.isnan(np.median(np.zeros(0))) and np.isnan(float(np.median(cg.zeros(0))))
        assert np.median(cg.zeros(2, 0), axis=1).tolist() == pytest.approx([np.nan] * 2, nan_ok=True)


def test_medians_of_missing_elements_have_gradients_of_the_others():
    x = cg.tensor([np.nan, 3.0, 1.0, 2.0, 7.0], dtype=cg.float64)
    assert grad(np.nanmedian)(x).tolist() == [0, 0.5, 0, 0.5, 0]
    assert grad(lambda x: np.nanmax(x) + np.nanstd(x[:1], ddof=0).nan_to_num() + np.nanvar(x[3:4]))(x).tolist() == [0, 0, 0, 0, 1]
    assert grad(np.nanstd)(cg.full(3, 2.0)).tolist() == [0, 0, 0]


def test_a_slice_of_missing_elements_has_no_place():
    for function in (np.nanargmax, np.nanargmin):
        for axis in (0, None):
            with pytest.raises(ValueError, match="All-NaN slice encountered"):
                function(cg.full(2, np.nan), axis)


def test_quantiles_of_integers_are_elements():
    large = cg.tensor([2**62 + 1, 2**62 + 3, 5])
    assert np.quantile(large, 0.5, method="lower").item() == 2**62 + 1
    assert np.quantile(large, 1).item() == 2**62 + 3
    assert np.percentile(large, [0, 100], method="nearest").tolist() == [5, 2**62 + 3]


def test_numbers_of_16_bits_are_rounded_once():
    x = cg.tensor([1.0, 1.0009765625, 3.0, 60000.0], dtype=cg.float16)
    for function in (np.median, np.nanmedian, np.nanvar, np.nanstd, lambda x: np.quantile(x, 0.3), lambda x: np.percentile(x, 61.0)):
        assert function(x).dtype == cg.float16
        assert function(x).item() == function(x.double()).half().item()


def test_interpolation_at_points_and_beyond():
    xp, fp = [0.0, 1.0, 2.0], cg.tensor([1.0, np.inf, 3.0], dtype=cg.float64)
    at = [-1.0, 0.0, 1.0, 2.0, 5.0, np.nan]
    np.testing.assert_array_equal(np.interp(at, xp, fp).numpy(), np.interp(at, xp, fp.numpy()))
    x = cg.tensor([0.25, 1.5], dtype=cg.float64, requires_grad=True)
    np.interp(x, xp, [1.0, 5.0, 3.0]).sum().backward()
    assert x.grad.tolist() == [4, -2]
    assert grad(lambda x: np.interp(x, xp, [1.0, 5.0, 3.0]).sum())(cg.tensor(xp, dtype=cg.float64)).tolist() == [4, -2, -2]
    twice = [0.0, 1.0, 1.0, 2.0]
    for x in ([0.5, 1.0, 1.5], [2.0]):
        same(np.interp(cg.tensor(x, dtype=cg.float64), twice, [1.0, 5.0, 7.0, 3.0]), np.interp(x, twice, [1.0, 5.0, 7.0, 3.0]))
    for values in ([np.inf, np.inf, 1.0], [1.0, -np.inf, np.inf], [np.nan, 1.0, 2.0]):
        np.testing.assert_array_equal(np.interp(at + [0.5, 1.5], xp, cg.tensor(values, dtype=cg.float64)).numpy(),
                                      np.interp(at + [0.5, 1.5], xp, values))


def test_ends_of_ranges_are_exact():
    start, stop = cg.tensor([0.1, -3.0], dtype=cg.float64), cg.tensor([0.7, 1e300], dtype=cg.float64)
    assert np.linspace(start, stop, 7)[-1].tolist() == stop.tolist()
    numbers = np.geomspace(cg.tensor(3.0, dtype=cg.float64), 1000.0, 9)
    assert (numbers[0].item(), numbers[-1].item()) == (3, 1000)
    spiral = np.geomspace(cg.tensor(1 + 0j), -1j, 4)
    np.testing.assert_allclose(spiral.numpy(), np.geomspace(1 + 0j, -1j, 4), rtol=1e-6, atol=1e-6)


def test_higher_derivatives_and_batches():
    def f(x):
        return np.sum(np.convolve(x, x * x)[:3]) + np.polyval(x, x[0]) + np.median(x**3) + np.trapezoid(np.interp(x, [0.0, 9.0], x[:2]))

    x = cg.tensor([1.5, 0.5, 2.0], dtype=cg.float64)
    curvature, step = hessian(f)(x), 1e-5
    for place in range(3):
        moved = cg.zeros(3, dtype=cg.float64)
        moved[place] = step
        np.testing.assert_allclose(curvature[place].numpy(), ((grad(f)(x + moved) - grad(f)(x - moved)) / (2 * step)).numpy(), rtol=1e-5,
                                   atol=1e-6)
    np.testing.assert_allclose(jvp(f, (x,), (x,))[1].item(), (grad(f)(x) @ x).item(), rtol=1e-12)
    rows = cg.stack([x, x + 1])
    np.testing.assert_allclose(vmap(grad(f))(rows).numpy(), np.stack([grad(f)(row).numpy() for row in rows]), rtol=1e-12)


def test_gradients_of_sets_go_to_the_first_of_equal_elements():
    x = cg.tensor([2.0, 1.0, 2.0, 3.0], dtype=cg.float64, requires_grad=True)
    weights = cg.tensor([1.0, 10.0, 100.0], dtype=cg.float64)
    assert cg.autograd.grad((np.unique(x) * weights).sum(), x)[0].tolist() == [10, 1, 0, 100]
    assert cg.autograd.grad(np.setdiff1d(x, [1.0]).sum(), x)[0].tolist() == [1, 0, 0, 1]
    assert cg.autograd.grad(np.union1d(x, x).sum(), x)[0].tolist() == [1, 1, 0, 1]


def test_edges_of_histograms_follow_the_ends():
    x = cg.tensor([1.0, 4.0, 2.0], dtype=cg.float64, requires_grad=True)
    counts, edges = np.histogram(x, 3)
    assert not counts.requires_grad and edges.tolist() == [1, 2, 3, 4]
    assert cg.autograd.grad(edges[1], x)[0].tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    w = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64, requires_grad=True)
    assert cg.autograd.grad(np.histogram(x, 3, weights=w)[0][1], w)[0].tolist() == [0, 0, 1]


# ----- Written -----
WRITERS = {
    "copyto": lambda a, t: np.copyto(a, t),
    "copyto where": lambda a, t: np.copyto(a, 0.5, where=t > 1),
    "put": lambda a, t: np.put(a, [0, -1], t),
    "place": lambda a, t: np.place(a, [True, False, True], t),
    "putmask": lambda a, t: np.putmask(a, t > 1, t),
    "put_along_axis": lambda a, t: np.put_along_axis(a, np.array([2, 0, 1]), t, 0),
    "fill_diagonal": lambda a, t: np.fill_diagonal(a.reshape(1, 3), t[1]),
    "full_like": lambda a, t: np.copyto(a, np.full_like(a, t)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_tensors_are_written_into_arrays_and_tensors(name):
    values, expected = np.array([1.0, 2.0, 3.0]), np.array([7.0, 8.0, 9.0])
    WRITERS[name](expected, values)
    array, tensor = np.array([7.0, 8.0, 9.0]), cg.tensor([7.0, 8.0, 9.0], dtype=cg.float64)
    for target in (array, tensor):
        WRITERS[name](target, cg.tensor(values))
        assert target.tolist() == expected.tolist()


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "copyto where"])
def test_a_history_is_written_into_tensors_only(name):
    x = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64, requires_grad=True)
    array = np.array([7.0, 8.0, 9.0])
    with pytest.raises(RuntimeError, match="requires grad"):
        WRITERS[name](array, x)
    assert array.tolist() == [7, 8, 9]
    tensor = cg.tensor([7.0, 8.0, 9.0], dtype=cg.float64)
    WRITERS[name](tensor, x)
    assert tensor.requires_grad
    leaf = cg.ones(3, dtype=cg.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        WRITERS[name](leaf, x.detach())
    assert leaf.tolist() == [1, 1, 1]


def test_gradients_of_elements_written_go_to_their_sources():
    x, y = cg.tensor([1.0, 2.0], dtype=cg.float64, requires_grad=True), cg.ones(2, 2, dtype=cg.float64, requires_grad=True)
    z = y * 1
    np.fill_diagonal(z, x)
    np.put(z, [1], x[1] * 3)
    z.sum().backward()
    assert x.grad.tolist() == [1, 4]
    assert y.grad.tolist() == [[0, 0], [1, 0]]


# ----- Bad arguments -----
BAD = {
    "quantile": (lambda x: np.quantile(x, 1.5), ValueError, r"Quantiles must be in the range \[0, 1\]"),
    "percentile": (lambda x: np.percentile(x, [-1, 50]), ValueError, r"Percentiles must be in the range \[0, 100\]"),
    "quantile of NaN": (lambda x: np.quantile(x, np.nan), ValueError, "must be in the range"),
    "method": (lambda x: np.quantile(x, 0.5, method="best"), ValueError, "'best' is not a valid method"),
    "method beside NaN": (lambda x: np.nanquantile(x, 0.5, method="hazen"), TypeError, r"method='hazen'.*\.numpy\(\)"),
    "weights": (lambda x: np.quantile(x, 0.5, method="inverted_cdf", weights=x), TypeError, "np.quantile is not supported .* with weights"),
    "complex median": (lambda x: np.median(x + 1j), TypeError, "must be an array of real numbers"),
    "interp": (lambda x: np.interp(1.0, x[0], x[0, :2]), ValueError, "not of the same length"),
    "interp of no points": (lambda x: np.interp(x, x[0, :0], x[0, :0]), ValueError, "sample points is empty"),
    "interp period": (lambda x: np.interp(1.0, x[0], x[0], period=0), ValueError, "period must be a non-zero value"),
    "pad width": (lambda x: np.pad(x, -1), ValueError, "index can't contain negative values"),
    "pad mode": (lambda x: np.pad(x, 1, "mirror"), ValueError, "mode 'mirror' is not supported"),
    "pad argument": (lambda x: np.pad(x, 1, "edge", constant_values=3), ValueError, "unsupported keyword arguments for mode 'edge'"),
    "pad odd": (lambda x: np.pad(x, 1, "reflect", reflect_type="odd"), TypeError, r"with reflect_type: .*\.numpy\(\)"),
    "pad function": (lambda x: np.pad(x, 1, lambda *arguments: None), TypeError, r"function as mode.*\.numpy\(\)"),
    "pad statistics": (lambda x: np.pad(x, 1, "mean", stat_length=0), ValueError, "stat_length of 0"),
    "gradient size": (lambda x: np.gradient(x[:1]), ValueError, "Shape of array too small"),
    "gradient order": (lambda x: np.gradient(x, edge_order=3), ValueError, "'edge_order' greater than 2 not supported"),
    "gradient spacing": (lambda x: np.gradient(x, 1.0, 2.0, 3.0), TypeError, "invalid number of arguments"),
    "gradient positions": (lambda x: np.gradient(x, x[0], axis=0), ValueError, "must match the length"),
    "convolve": (lambda x: np.convolve(x[0], x[0, :0]), ValueError, "v cannot be empty"),
    "convolve mode": (lambda x: np.convolve(x[0], x[0], "all"), ValueError, "mode must be one of"),
    "convolve dims": (lambda x: np.convolve(x, x[0]), ValueError, "object too deep"),
    "correlate": (lambda x: np.correlate(x[0, :0], x[0]), ValueError, "first array argument cannot be empty"),
    "cov": (lambda x: np.cov(x[None]), ValueError, "m has more than 2 dimensions"),
    "cov ddof": (lambda x: np.cov(x, ddof=0.5), ValueError, "ddof must be integer"),
    "cov fweights": (lambda x: np.cov(x, fweights=[0.5, 1, 1]), TypeError, "fweights must be integer"),
    "histogram bins": (lambda x: np.histogram(x, 0), ValueError, "`bins` must be positive"),
    "histogram of half bins": (lambda x: np.histogram(x, 1.5), TypeError, "`bins` must be an integer"),
    "histogram edges": (lambda x: np.histogram(x, [1.0, 0.0]), ValueError, "must increase monotonically"),
    "histogram edge of NaN": (lambda x: np.histogram(x, [0.0, np.nan, 1.0]), ValueError, "must increase monotonically"),
    "histogram range": (lambda x: np.histogram(x, 3, (1, 0)), ValueError, "max must be larger than min"),
    "histogram of NaN": (lambda x: np.histogram(x * np.nan), ValueError, r"autodetected range of \[nan, nan\] is not finite"),
    "histogram weights": (lambda x: np.histogram(x, weights=x[0]), ValueError, "same shape as a"),
    "histogramdd": (lambda x: np.histogramdd(x, (1, 2)), ValueError, "dimension of bins must be equal"),
    "bincount": (lambda x: np.bincount(x[0]), TypeError, "Cannot cast array data from .*float64"),
    "bincount of negative numbers": (lambda x: np.bincount(-x[0].long()), ValueError, "not negative"),
    "bincount weights": (lambda x: np.bincount(x[0].long(), x[0, :2]), ValueError, "don't have the same length"),
    "digitize": (lambda x: np.digitize(x, [0.0, 2.0, 1.0]), ValueError, "monotonically increasing or decreasing"),
    "partition": (lambda x: np.partition(x, 3), ValueError, r"kth\(=3\) out of bounds \(3\)"),
    "lexsort": (lambda x: np.lexsort((x[0], x)), ValueError, "all keys need to be the same shape"),
    "select": (lambda x: np.select([x > 1], [x, x]), ValueError, "same length"),
    "select conditions": (lambda x: np.select([x], [x]), TypeError, "invalid entry 0 in condlist"),
    "choose": (lambda x: np.choose([0, 5, 0], x), ValueError, "invalid entry in choice array"),
    "piecewise": (lambda x: np.piecewise(x, [x > 1], [1, 2, 3]), ValueError, "1 or 2 functions are expected"),
    "delete": (lambda x: np.delete(x, 5, 0), IndexError, "out of bounds"),
    "insert": (lambda x: np.insert(x, 9, 0.0), IndexError, "out of bounds"),
    "resize": (lambda x: np.resize(x, -1), ValueError, "non-negative"),
    "put": (lambda x: np.put(x, [9], 1.0), IndexError, "index 9 is out of bounds for axis 0 with size 6"),
    "put at a half": (lambda x: np.put(x, [0.5], 1.0), TypeError, "indices must be integers"),
    "put mode": (lambda x: np.put(x, [0], 1.0, "twice"), ValueError, "clipmode must be one of"),
    "place": (lambda x: np.place(x, [True], 1.0), ValueError, "must be the same size"),
    "place of nothing": (lambda x: np.place(x, x > 0, []), ValueError, "Cannot insert from an empty array"),
    "putmask": (lambda x: np.putmask(x, [True], 1.0), ValueError, "must be the same size"),
    "put_along_axis": (lambda x: np.put_along_axis(x, np.array([[7]]), 1.0, 1), IndexError, "out of bounds"),
    "copyto": (lambda x: np.copyto(x, cg.tensor(1j)), TypeError, "according to the rule 'same_kind'"),
    "copyto where": (lambda x: np.copyto(x, 1.0, where=x), TypeError, "Cannot cast array data from .* to bool"),
    "copyto shape": (lambda x: np.copyto(x, np.ones(4)), RuntimeError, "expand"),
    "fill_diagonal": (lambda x: np.fill_diagonal(x[0], 1.0), ValueError, "at least 2-d"),
    "linspace": (lambda x: np.linspace(x, 1.0, -1), ValueError, "Number of samples, -1, must be non-negative"),
    "linspace of a half": (lambda x: np.linspace(x, 1.0, 2.5), TypeError, "cannot be interpreted as an integer"),
    "trim_zeros": (lambda x: np.trim_zeros(x[0], "middle"), ValueError, "unexpected character"),
    "linspace device": (lambda x: np.linspace(x, 1.0, device="gpu"), ValueError, "Device not understood"),
    "geomspace of zero": (lambda x: np.geomspace(x * 0, 1.0), ValueError, "Geometric sequence cannot include zero"),
    "geomspace of signs": (lambda x: np.geomspace(x, -1.0), ValueError, "different signs"),
    "windows": (lambda x: np.lib.stride_tricks.sliding_window_view(x, (3, 1)), ValueError, "window shape cannot be larger"),
    "dims of windows": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 1), ValueError, "Must provide matching length"),
    "vander": (np.vander, ValueError, "one-dimensional"),
    "ix_": (np.ix_, ValueError, "Cross index must be 1 dimensional"),
    "unwrap": (lambda x: np.unwrap(x.byte()), TypeError, "differences of .*uint8 wrap around"),
    "rollaxis": (lambda x: np.rollaxis(x, 0, 4), np.exceptions.AxisError, "-2 <= start < 3, but 4"),
    "polyfit": (lambda x: np.polyfit(x[0], x[0, :2], 1), TypeError, "expected x and y to have same length"),
    "polyfit degree": (lambda x: np.polyfit(x[0], x[0], -1), ValueError, "expected deg >= 0"),
    "polyfit covariance": (lambda x: np.polyfit(x[0], x[0], 2, cov=True), ValueError, "number of data points must exceed order"),
    "polyder": (lambda x: np.polyder(x[0], -1), ValueError, "Order of derivative must be positive"),
    "polyint": (lambda x: np.polyint(x[0], 3, [1, 2]), ValueError, "k must be a scalar or a rank-1 array"),
    "roots": (np.roots, ValueError, "rank-1"),
    "poly": (np.poly, ValueError, "1d or non-empty square 2d"),
    "apply_along_axis": (lambda x: np.apply_along_axis(np.sum, 1, x[:0]), ValueError, "any iteration dimensions are 0"),
    "cumulative_sum": (lambda x: getattr(np, "cumulative_sum", lambda x: np.cumsum(x, 5))(x), (ValueError, IndexError), "axis|range"),
}


@pytest.mark.cases("name", BAD)
def test_bad_arguments_raise_and_change_nothing(name):
    call, kind, words = BAD[name]
    x = X.clone()
    with pytest.raises(kind, match=words):
        call(x)
    same(x, X.numpy())


def test_a_fit_with_too_few_points_warns_the_caller():
    with pytest.warns(np.exceptions.RankWarning, match="poorly conditioned") as records:
        np.polyfit(cg.ones(3, dtype=cg.float64), X[0], 1)
    assert records[0].filename == __file__


# ----- Convolutions -----
@pytest.mark.cases("mode", ["full", "same", "valid"])
@pytest.mark.cases("sizes", [(5, 3), (2, 4), (1, 1), (3, 3), (4, 2), (2, 5)], ids=str)
@pytest.mark.cases("function", [np.convolve, np.correlate])
def test_derivatives_of_convolutions(function, sizes, mode):
    """Of both orders, forward, in batches, and of complex numbers."""
    for dtype in (cg.float64, cg.complex128):
        operands = [cg.randn(size, dtype=dtype, requires_grad=True) for size in sizes]
        assert gradcheck(lambda a, v: function(a, v, mode), operands, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(lambda a, v: function(a, v, mode), operands)
    a, v = (cg.randn(3, size, dtype=cg.float64) for size in sizes)
    expected = np.stack([function(x, y, mode) for x, y in zip(a.numpy(), v.numpy(), strict=True)])
    np.testing.assert_allclose(vmap(lambda a, v: function(a, v, mode))(a, v).numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16])
def test_convolutions_of_16_bits_are_rounded_once(dtype):
    a, v = cg.randn(200).to(dtype), cg.randn(50).to(dtype)
    assert np.convolve(a, v).tolist() == np.convolve(a.float(), v.float()).to(dtype).tolist()
