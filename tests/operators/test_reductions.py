"""Reductions over dims: values, dims in every form, empties, NaN, accuracy, gradients, and bits that depend only on the data.

REDUCERS has the rows of the table of reductions with their functions of NumPy, and operators composed of these; SCANS keep
the shape. A new row needs no entry here.
"""

import itertools
import math
import warnings

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad._kernels.drivers.elementwise import available_isas
from cygrad.autograd import grad, gradcheck, gradgradcheck
from cygrad.ops import REDUCTIONS
from samples import DTYPES, FLOATS, KINDS, LAYOUTS, NUMBERS, WRITABLE, array_of, same_bits

INF, NAN = math.inf, math.nan


def wide(dtype):
    return np.dtype(np.int64) if dtype.kind in "bui" else dtype


def numpy_logsumexp(a, axis=None, keepdims=False):
    return np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdims))


def numpy_softmax(a, axis):
    return np.exp(a) / np.exp(a).sum(axis, keepdims=True)


def numpy_reduction(row):
    """Return NumPy's function of a row, in the row's dtype, and the dtypes it is tested in."""
    function = samples.numpy_function(row)
    dtype_of = {"same": lambda dtype: dtype, "widest": wide, "truth": lambda dtype: dtype if dtype == np.uint8 else np.bool_}[row.result]
    wider = {"dtype": np.int64} if row.result == "widest" else {}
    return (lambda a, **k: function(a, **k, **(wider if a.dtype.kind in "bui" else {})).astype(dtype_of(a.dtype)),
            tuple(dtype for dtype in DTYPES if KINDS[dtype] in row.kinds))


# NumPy's function of (array, axis, keepdims), and the dtypes it is tested in.
REDUCERS = {name: numpy_reduction(row) for name, row in REDUCTIONS.items()} | {
    "nanmean": (np.mean, FLOATS),
    "var": (lambda a, **k: np.var(a, ddof=1, **k), FLOATS),
    "std": (lambda a, **k: np.std(a, ddof=1, **k), FLOATS),
    "logsumexp": (numpy_logsumexp, FLOATS),
    "max": (np.max, DTYPES),
    "min": (np.min, DTYPES),
    "argmax": (np.argmax, NUMBERS),
    "argmin": (np.argmin, NUMBERS),
}
SCANS = {
    "cumsum": (lambda a, axis: np.cumsum(a, axis, dtype=wide(a.dtype)).reshape(a.shape), DTYPES),
    "cumprod": (lambda a, axis: np.cumprod(a, axis, dtype=wide(a.dtype)).reshape(a.shape), DTYPES),
    "softmax": (numpy_softmax, FLOATS),
    "log_softmax": (lambda a, axis: np.log(numpy_softmax(a, axis)), FLOATS),
}
ONE_DIM = {"max", "min", "argmax", "argmin", *SCANS}  # take a single dim only
NEEDS_DIM = {"logsumexp", *SCANS}
SMOOTH = [*(name for name, row in REDUCTIONS.items() if row.gradient), "var", "std", "logsumexp", "max", "min", *SCANS]
NAMES = [*REDUCERS, *SCANS]
IN_THE_DTYPE_OF_OUT = {"cumsum", "cumprod", *(row.name for row in REDUCTIONS.values() if row.result == "widest" and "nan" not in row.step)}


def dtypes_of(name):
    return (REDUCERS | SCANS)[name][1]


SHAPES = samples.sizes((
    (),
    (1,),
    (7,),
    (17,),
    (3, 5),
    (2, 3, 4),
    (3, 200),
    (200, 3),
    (1, 5, 1),
    (2, 5000),
    (5000, 3),
    (5, 6, 7, 9),
    (9001,),
))
DIMS = (None, 0, 1, 2, -1, -3, (0,), (1, 2), (0, -1), [0, 1], (2, 0, 1), ())


def fits(name, ndim, dim):
    """Return True if the function takes these dims."""
    if dim is None or dim == ():
        return name not in NEEDS_DIM and not (dim == () and name in ONE_DIM | {"any", "all"})
    if not isinstance(dim, int) and name in ONE_DIM:
        return False
    dims = [dim] if isinstance(dim, int) else dim
    return all(-ndim <= d < ndim for d in dims) and len({d % ndim for d in dims}) == len(dims)


def values_of(name, result):
    return result.values if name in ("max", "min") and isinstance(result, tuple) else result


def reference(name, array, dim, keepdim=False):
    """Compute by NumPy, floats in extended precision."""
    function, _ = REDUCERS.get(name) or SCANS[name]
    if array.dtype.kind == "f":
        array = array.astype(np.longdouble)
    if name in SCANS:
        return np.asarray(function(array, axis=dim))
    with np.errstate(all="ignore"):
        axis = tuple(dim) or None if isinstance(dim, tuple | list) else dim
        return np.asarray(function(array, axis=axis, keepdims=keepdim))


def check_values(name, result, array, dim, keepdim=False):
    """Compare with NumPy: integers and extrema to the bit; reductions are as good as pairwise summation in float64."""
    expected, values = reference(name, array, dim, keepdim), array_of(values_of(name, result))
    assert values.shape == expected.shape
    assert values.dtype == (array.dtype if expected.dtype == np.longdouble else expected.dtype)
    if values.dtype.kind != "f":
        assert same_bits(values, expected)
        return
    with np.errstate(all="ignore"):
        error, rounded = np.abs(values - expected), expected.astype(values.dtype)
        allowed = np.spacing(np.abs(rounded)) + tolerance(name, array, expected)
        near = (error <= allowed) | (values == rounded) | (np.isnan(values) & np.isnan(rounded))
    assert near.all(), (values[~near], expected[~near])


def tolerance(name, array, expected):
    """Return the error allowed beside the last rounding: reductions accumulate in float64, large sums and composites in their dtype."""
    if name in ("amax", "amin", "max", "min"):
        return 0
    if name in ("prod", "cumprod"):
        return 1e-310 + np.finfo(float).eps * array.size * np.abs(expected)
    if name in ("sum", "nansum", "mean", "cumsum"):  # the running sum adds one by one
        eps = np.finfo(array.dtype if name in ("sum", "mean") and array.size >= 128 else float).eps
        return (array.size if name == "cumsum" else 8) * eps * np.abs(array).sum(dtype=np.longdouble)
    return 32 * np.finfo(array.dtype).eps * (3 + np.abs(expected))


# ----- Values -----
@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.cases("dtype", dtypes_of)
def test_values_over_all_dims_and_layouts(name, dtype):
    domain = (-1.5, 1.5) if name in ("prod", "cumprod") else (-3, 3)
    for shape, layout, dim in itertools.product(SHAPES, LAYOUTS.values(), DIMS):
        if not fits(name, len(shape), dim) or name in ("var", "std") and math.prod(shape) < 2:
            continue
        tensor = layout(samples.draw(dtype, shape, 3, domain))
        function, array = getattr(cg, name), array_of(tensor)
        if name in SCANS:
            check_values(name, function(tensor, dim), array, dim)
            continue
        check_values(name, function(tensor) if dim is None else function(tensor, dim), array, dim)
        if dim is not None:
            check_values(name, function(tensor, dim, keepdim=True), array, dim, True)


@pytest.mark.parametrize("name", [*REDUCERS, *SCANS])
def test_dims_and_flags_in_every_spelling(name):
    x = cg.tensor(samples.draw("float64", (2, 3, 4)))
    function, method = getattr(cg, name), getattr(x, name)
    expected = array_of(values_of(name, function(x, 1)))
    calls = [method(1), function(x, dim=-2), method(axis=1), function(x, axis=np.int64(1))]
    if name not in ONE_DIM:
        calls += [method((1,)), function(x, dim=[1]), method(axis=(-2,))]
    for result in calls:
        assert same_bits(array_of(values_of(name, result)), expected)
    if name not in SCANS:
        expanded = np.expand_dims(expected, 1)
        by_position = [] if name in ("var", "std") else [method(1, True)]  # there the second argument is `unbiased`
        for result in (*by_position, method(1, keepdim=True), function(x, axis=1, keepdims=True)):
            assert same_bits(array_of(values_of(name, result)), expanded)


@pytest.mark.parametrize("name", [*REDUCERS, *SCANS])
def test_dims_out_of_range_or_twice(name):
    x = cg.ones(2, 3)
    for dim in (2, -3):
        with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\]"):
            getattr(x, name)(dim)
    for dim in (1.0, "0", *([(0, 1)] if name in ONE_DIM else [])):
        with pytest.raises(TypeError):
            getattr(x, name)(dim)
    with pytest.raises(TypeError, match="axis"):
        getattr(x, name)(dim=0, axis=1)
    if name not in ONE_DIM:
        with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
            getattr(x, name)((0, -2))
    with pytest.raises(IndexError, match="Dimension out of range"):
        getattr(cg.tensor(1.0), name)(1)


@pytest.mark.parametrize("name", sorted({*REDUCERS, *SCANS} - {"max", "min"}))
def test_out(name):
    x = cg.tensor(samples.draw("float32", (3, 5)))
    expected = array_of(getattr(x, name)(0))
    for layout in WRITABLE:
        out = LAYOUTS[layout](np.ones_like(expected))
        assert getattr(cg, name)(x, 0, out=out) is out
        assert out._version == 1
        assert same_bits(array_of(out), expected)
    for shape in ((7,), (2, *expected.shape)):
        with pytest.raises(RuntimeError, match=r"out= has shape \[.*\] but the result has shape"):
            getattr(cg, name)(x, 0, out=cg.zeros(shape, dtype=getattr(cg, expected.dtype.name)))
    if expected.dtype.kind == "f":
        if name not in IN_THE_DTYPE_OF_OUT:
            with pytest.raises(RuntimeError, match="can't be cast|Expected the dtype for input and out to match"):
                getattr(cg, name)(x, 0, out=cg.zeros(expected.shape, dtype=cg.int32))
        with pytest.raises(RuntimeError, match="out=... arguments don't support automatic differentiation"):
            getattr(cg, name)(x.requires_grad_(), 0, out=cg.zeros(expected.shape))


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "mean", "softmax", "log_softmax"])
@pytest.mark.cases("target", ["bool", "uint8", "int8", "int32", "int64", "float32", "float64"])
def test_the_dtype_argument(name, target):
    """The elements are converted first, and the result has that dtype."""
    floating = KINDS[target] == "f"
    for dtype in DTYPES:
        x = cg.tensor([1, 0, 1], dtype=getattr(cg, dtype))
        if not floating and name in ("mean", "softmax", "log_softmax"):
            with pytest.raises(RuntimeError):
                getattr(x, name)(0, dtype=getattr(cg, target))
            continue
        result = getattr(x, name)(0, dtype=getattr(cg, target))
        assert result.dtype == getattr(cg, target)
        if floating:
            assert same_bits(array_of(result), array_of(getattr(x.to(getattr(cg, target)), name)(0)))
        else:
            reduced = {"sum": 2, "prod": 0, "cumsum": [1, 1, 2]}[name]
            assert result.tolist() == np.array(reduced).astype(target).tolist()


# ----- Empties, NaN, overflow -----
with warnings.catch_warnings():
    warnings.simplefilter("ignore")     # from the mean
    NOTHING = {name: samples.numpy_function(row)(np.zeros(0)).item() for name, row in REDUCTIONS.items() if row.empty}
NOTHING |= {"var": NAN, "std": NAN, "logsumexp": -INF}


@pytest.mark.parametrize(("name", "identity"), NOTHING.items())
def test_an_empty_reduction_gives_the_identity(name, identity):
    method = lambda x, *dims: array_of(getattr(x, name)(*dims))  # noqa: E731
    assert np.array_equal(method(cg.zeros(0), 0), identity, equal_nan=True)
    assert np.array_equal(method(cg.zeros(2, 0, 3), 1), np.full((2, 3), identity), equal_nan=True)
    assert np.array_equal(method(cg.zeros(2, 0, 3), (0, 1)), np.full(3, identity), equal_nan=True)
    assert np.array_equal(method(cg.zeros(2, 0, 3), (0, 1, 2)), identity, equal_nan=True)
    assert np.array_equal(method(cg.zeros(3, 0, 2).permute(2, 0, 1), (0, 2)), np.full(3, identity), equal_nan=True)
    assert method(cg.zeros(2, 0, 3), 0).shape == (0, 3)
    if name not in NEEDS_DIM:
        assert np.array_equal(method(cg.zeros(2, 0, 3)), identity, equal_nan=True)


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_an_empty_reduction_of_integers(name):
    assert getattr(cg.zeros(0, dtype=cg.int8), name)().tolist() == NOTHING[name]


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min", "argmax", "argmin"])
def test_an_empty_reduction_without_identity_is_refused(name):
    with pytest.raises(
        (IndexError, RuntimeError),
        match=rf"^{name}\(\): Expected reduction dim to be specified for input.numel\(\) == 0",
    ):
        getattr(cg.zeros(0), name)()
    for x, dim in ((cg.zeros(0), 0), (cg.zeros(2, 0, 3), 1), (cg.zeros(2, 0, 3), -2)):
        with pytest.raises(
            IndexError, match=rf"^{name}\(\): Expected reduction dim {dim % x.ndim} to have non-zero size"
        ):
            getattr(x, name)(dim)
    assert values_of(name, getattr(cg.zeros(2, 0, 3), name)(0)).shape == (0, 3)


@pytest.mark.parametrize("name", SCANS)
def test_scans_of_nothing(name):
    for x, dim in ((cg.zeros(0), 0), (cg.zeros(2, 0, 3), 1), (cg.zeros(2, 0, 3), 0)):
        assert getattr(x, name)(dim).shape == x.shape


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin", "max", "min", "var", "std", "logsumexp"])
def test_nan_comes_through_from_everywhere(name, dtype):
    for n in (1, 2, 17, 300, 5000):
        for place in {0, n // 2, n - 1}:
            array = np.ones((2, n), dtype)
            array[1, place] = NAN
            for tensor, dim in ((cg.tensor(array), 1), (cg.tensor(array.T.copy()), 0)):
                first, second = array_of(values_of(name, getattr(tensor, name)(dim)))
                assert np.isnan(second)
                assert not np.isnan(first) or name in ("var", "std")


def test_places_of_nan_and_of_ties():
    x = cg.tensor([[1.0, 3.0, 3.0], [1.0, NAN, NAN], [-INF, -INF, INF]])
    assert x.argmax(1).tolist() == x.max(1).indices.tolist() == [1, 1, 2]
    assert x.argmin(1).tolist() == x.min(1).indices.tolist() == [0, 1, 0]
    assert x.argmax().item() == 4
    assert x.argmax(keepdim=True).tolist() == [[4]]
    assert x.T.argmin().item() == 4
    assert np.isnan(x.max().item())
    assert x[::2].argmax().item() == 5


def test_infinities():
    assert cg.tensor([INF, 1.0]).sum().item() == INF
    assert np.isnan(cg.tensor([INF, -INF]).sum().item())
    assert cg.tensor([-INF, -INF]).amax().item() == -INF
    assert cg.tensor([-INF, 0.0]).logsumexp(0).item() == 0
    assert cg.tensor([-INF, -INF]).logsumexp(0).item() == -INF
    assert cg.tensor([INF, 0.0]).logsumexp(0).item() == INF
    assert cg.tensor([1000.0, 1000.0]).logsumexp(0).item() == pytest.approx(1000 + math.log(2))
    assert cg.tensor([-INF, 0.0, 0.0]).softmax(0).tolist() == [0, 0.5, 0.5]
    assert cg.tensor([1e4, 0.0]).log_softmax(0).tolist() == [0, -1e4]
    assert np.isnan(array_of(cg.tensor([-INF, -INF]).softmax(0))).all()


def test_integers_wrap_around():
    assert cg.tensor([2**62] * 4).sum().item() == 0
    assert cg.tensor([2**32] * 2).prod().item() == 0
    assert cg.tensor([127, 127], dtype=cg.int8).sum().item() == 254
    assert cg.tensor([127, 127], dtype=cg.int8).sum(dtype=cg.int8).item() == -2
    assert cg.tensor([16, 16], dtype=cg.int8).prod(dtype=cg.int8).item() == 0
    assert cg.tensor([127, 127], dtype=cg.int8).cumsum(0, dtype=cg.int8).tolist() == [127, -2]
    assert cg.tensor([255, 1], dtype=cg.uint8).sum(dtype=cg.uint8).item() == 0
    assert cg.tensor([1.7, 2.7]).sum(dtype=cg.int64).item() == 3


# ----- Accuracy -----
@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-6), ("float64", 1e-14)])
def test_large_sums(dtype, bound):
    """Ten million elements in one reduction, along either axis, and in a running one."""
    array = samples.draw(dtype, (10_000_000,), 1, (0.0, 1.0))
    exact = math.fsum(array.tolist())
    x = cg.tensor(array)
    for total in (
        x.sum().item(),
        x.mean().item() * len(array),
        x[::2].sum().item() + x[1::2].sum().item(),
        math.fsum(x.reshape(2_500_000, 4).sum(0).tolist()),
        math.fsum(x.reshape(4, 2_500_000).sum(1).tolist()),
    ):
        assert abs(total - exact) <= bound * exact
    assert abs(x.cumsum(0)[-1].item() - exact) <= max(bound, 1e-12) * exact  # one after the other, in float64


@pytest.mark.parametrize("name", ["var", "std"])
def test_variance_and_mean_at_once(name):
    function, x = getattr(cg, name + "_mean"), cg.rand(2, 3, 4, dtype=cg.float64)
    for positional, keywords in (((), {}), ((1,), {"correction": 0}), (((0, 2), False, True), {}), ((False,), {}),
                                 ((), {"axis": -1, "keepdims": True}), (([],), {})):
        spread, mean = function(x, *positional, **keywords)
        dims = {key: value for key, value in keywords.items() if key != "correction"}
        assert cg.equal(spread, getattr(x, name)(*positional, **keywords))
        boolean = positional and isinstance(positional[0], bool)
        keepdim = {"keepdim": positional[2]} if len(positional) > 2 else {}
        assert cg.equal(mean, x.mean(*(() if boolean else positional[:1]), **keepdim, **dims))
    with pytest.raises(RuntimeError, match=f"{name}_mean only support floating point and complex dtypes"):
        function(x.int())
    with pytest.raises(TypeError, match=rf"{name}_mean\(\) got an unexpected keyword argument 'dims'"):
        function(x, dims=1)


def test_large_broadcast_gradients_and_variances():
    array = samples.draw("float32", (1_000_000, 2), 1, (0.0, 1.0))
    bias = cg.zeros(2, requires_grad=True)
    ((cg.zeros(1_000_000, 2) + bias) * cg.tensor(array)).sum().backward()
    exact = [math.fsum(column) for column in array.T.tolist()]
    assert bias.grad.tolist() == pytest.approx(exact, rel=1e-6)
    shifted = cg.tensor(array) + 1000
    assert shifted.var(0).tolist() == pytest.approx(array_of(shifted).astype(float).var(0, ddof=1).tolist(), rel=1e-5)


# ----- Bits -----
def results_of(name, x, dim, weight=None):
    """Return the values and, if there is one, the gradient."""
    call = getattr(cg, name)
    result = values_of(name, call(x) if dim is None else call(x, dim))
    arrays = [array_of(result)]
    if result.requires_grad:
        arrays.append(array_of(grad(result, x, cg.ones_like(result) if weight is None else weight)[0]))
    return arrays


@pytest.mark.slow
@pytest.mark.cases("shape", samples.sizes([(540_001,), (3, 180_001), (180_001, 3), (600, 901)]), ids=str)
@pytest.mark.parametrize("name", [*REDUCERS, *SCANS])
def test_bits_depend_on_no_thread_count(name, shape):
    array = samples.draw("float32", shape)
    if "prod" in name:      # of numbers near 1: where products overflow, the gradient takes elements one after the other
        array = (1 + array / 1e6).astype("float32")
    for layout, dim in (("contiguous", None), ("contiguous", 0), ("contiguous", 1), ("transposed", 0)):
        if not fits(name, len(shape), dim):
            continue
        expected = None
        for threads in (1, 2, 3, 7):
            with samples.threads(threads, parallel=name != "cumsum" or len(shape) > 1):  # one line is one thread's
                results = results_of(name, samples.leaf(array, layout), dim)
            expected = expected or results
            assert all(same_bits(a, b) for a, b in zip(results, expected, strict=True))


@pytest.mark.cases("dtype", FLOATS)
@pytest.mark.parametrize("name", [*REDUCERS, *SCANS])
def test_bits_depend_on_no_position(name, dtype):
    """Equal rows (columns) of a tensor give equal bits, as the row alone does at any address."""
    for n in (1, 3, 5, 16, 63, 64, 65, 300, 4097, 9001):
        row = samples.draw(dtype, (n,), 4)
        alone = results_of(name, samples.leaf(row), 0)
        shifted = cg.tensor(np.concatenate([np.ones(3, dtype), row]))[3:].requires_grad_()
        assert all(same_bits(a, b) for a, b in zip(results_of(name, shifted, 0), alone, strict=True))
        rows = results_of(name, samples.leaf(np.tile(row, (5, 1))), 1)
        assert all(same_bits(a, np.broadcast_to(b, a.shape)) for a, b in zip(rows, alone, strict=True))
        columns = results_of(name, samples.leaf(np.tile(row[:, None], 5)), 0)
        for result in columns:
            assert same_bits(result, np.repeat(result[..., :1], 5, -1))


def results_of_all_reductions():
    """Return the results and gradients of all reductions, for comparison between instruction sets."""
    results = {}
    for name, dtype in ((one, dtype) for one in NAMES for dtype in dtypes_of(one)):
        for shape, dim in itertools.product(((17,), (3, 70), (70, 3), (5000,)), (None, 0, 1)):
            if not fits(name, len(shape), dim):
                continue
            array = samples.draw(dtype, shape, 5)
            x = samples.leaf(array) if KINDS[dtype] == "f" else cg.tensor(array)
            for number, array in enumerate(results_of(name, x, dim)):
                results[f"{name} {dtype} {shape} {dim} {number}"] = array
    return results


@pytest.mark.slow
@pytest.mark.parametrize("level", available_isas()[:-1])
def test_instruction_sets_agree(level):
    here, by_level = (
        results_of_all_reductions(),
        samples.at_level(level, "test_reductions", "results_of_all_reductions"),
    )
    assert set(by_level) == set(here)
    for key, array in here.items():
        if key.split()[0] in ("logsumexp", "softmax", "log_softmax"):   # exp and log use fused multiply-adds where there are any
            eps = np.finfo(array.dtype).eps
            assert np.allclose(array, by_level[key], rtol=16 * eps, atol=16 * eps), key
        else:
            assert same_bits(array, by_level[key]), key


# ----- Gradients -----
@pytest.mark.cases("dim", DIMS, ids=str)
@pytest.mark.parametrize("name", SMOOTH)
def test_first_and_second_derivatives(name, dim):
    if not fits(name, 3, dim):
        return
    x = samples.leaf(samples.rule_operands([(2, 3, 2)])[0])
    flags = [{}] if dim is None or name in SCANS else [{}, {"keepdim": True}]
    for keywords in flags:

        def call(x, keywords=keywords):
            result = getattr(x, name)(**keywords) if dim is None else getattr(x, name)(dim, **keywords)
            return values_of(name, result)

        assert gradcheck(call, x)
        assert gradgradcheck(call, x)


@pytest.mark.parametrize("zeros", [[], [1], [0, 2], [0, 1, 2], [0, 1, 2, 3]], ids=len)
def test_products_with_zeros(zeros):
    array = np.array([2.0, 3.0, -1.5, 0.5])
    array[zeros] = 0
    for call, values in (
        (lambda x: x.prod(), array),
        (lambda x: x.prod(0), array),
        (lambda x: x.prod(1, keepdim=True), np.stack([array, array[::-1] + 1, array[::-1]])),
    ):
        x = samples.leaf(values)
        assert gradcheck(call, x)
        assert gradgradcheck(call, x)
    x = samples.leaf(array)
    expected = [math.prod(np.delete(array, k)) for k in range(4)]
    assert grad(x.prod(), x)[0].tolist() == pytest.approx(expected)


# Torch's gradients at ties, NaN, and where there is no variance: (call, operand, gradient).
CONVENTIONS = {
    "max of all": (lambda x: x.max(), [1, 3, 3], [0, 0.5, 0.5]),
    "min of all": (lambda x: x.min(), [1, 1, 3], [0.5, 0.5, 0]),
    "amax": (lambda x: x.amax(0), [1, 3, 3, 3], [0, 1 / 3, 1 / 3, 1 / 3]),
    "amin": (lambda x: x.amin(), [1, 1, 1, 2], [1 / 3, 1 / 3, 1 / 3, 0]),
    "max along a dim": (lambda x: x.max(0).values, [1, 3, 3], [0, 1, 0]),
    "min along a dim": (lambda x: x.min(0).values, [1, 1, 3], [1, 0, 0]),
    "max of NaN along a dim": (lambda x: x.max(0).values, [1, NAN, 3, NAN], [0, 1, 0, 0]),
    "prod, one zero": (lambda x: x.prod(), [2, 0, 3], [0, 6, 0]),
    "prod, two zeros": (lambda x: x.prod(), [2, 0, 0], [0, 0, 0]),
    "std of equal values": (lambda x: x.std(), [2, 2, 2], [0, 0, 0]),
    "std of one value": (lambda x: x.std(), [2], [NAN]),
    "var of equal values": (lambda x: x.var(), [2, 2], [0, 0]),
    "var of one value": (lambda x: x.var(), [2], [NAN]),
    "logsumexp with inf": (lambda x: x.logsumexp(0), [INF, 0], [NAN, 0]),
    "logsumexp with -inf": (lambda x: x.logsumexp(0), [-INF, 0], [0, 1]),
    "softmax with -inf": (lambda x: x.softmax(0)[1], [-INF, 0, 0], [0, 0.25, -0.25]),
    "log_softmax with -inf": (lambda x: x.log_softmax(0)[1], [-INF, 0, 0], [0, 0.5, -0.5]),
}


@pytest.mark.cases("create_graph", [False, True])
@pytest.mark.cases(("call", "values", "expected"), CONVENTIONS.values(), ids=CONVENTIONS)
def test_gradients_at_ties_and_poles_are_torchs(call, values, expected, create_graph):
    x = cg.tensor(values, dtype=cg.float64, requires_grad=True)
    (gradient,) = grad(call(x), x, create_graph=create_graph)
    assert np.allclose(array_of(gradient), expected, rtol=1e-15, atol=0, equal_nan=True), gradient


def test_second_derivatives_of_std_at_equal_values_are_finite():
    x = cg.tensor([2.0, 2.0], dtype=cg.float64, requires_grad=True)
    (first,) = grad(x.std(), x, create_graph=True)
    assert np.isfinite(array_of(grad(first.sum(), x)[0])).all()


# ----- Two results, two tensors, corrections -----
@pytest.mark.parametrize(("name", "pairwise"), [("max", "maximum"), ("min", "minimum")])
def test_extrema_have_places(name, pairwise):
    x = cg.tensor([[1.0, 4.0], [3.0, 2.0]], requires_grad=True)
    result = getattr(cg, name)(x, 1)
    values, indices = result
    assert (result.values is values, result.indices is indices) == (True, True)
    assert indices.dtype == cg.int64
    assert not indices.requires_grad
    assert x.detach()[[0, 1], indices].tolist() == values.tolist()
    assert values.grad_fn.name() == f"{name.capitalize()}Backward0"
    (values * cg.tensor([1.0, 10.0])).sum().backward()
    assert x.grad[[0, 1], indices].tolist() == [1, 10]
    assert x.grad.sum().item() == 11
    other = cg.tensor([2.0, 3.0])
    assert same_bits(array_of(getattr(x, name)(other)), array_of(getattr(cg, pairwise)(x, other)))
    out = cg.zeros(2), cg.zeros(2, dtype=cg.int64)
    written = getattr(cg, name)(x.detach(), 0, out=out)
    assert written[0] is out[0]
    assert written[1] is out[1]
    assert out[1].tolist() == getattr(x, name)(0).indices.tolist()
    with pytest.raises(TypeError):
        getattr(x, name)(keepdim=True)


def test_corrections_of_variance():
    array = np.array([1.0, 2.0, 4.0, 9.0])
    x = cg.tensor(array)
    for ddof, calls in {
        1: [
            x.var(),
            x.var(0),
            x.var(unbiased=True),
            x.var(True),
            x.var(0, True),
            x.var(correction=1),
            cg.var(x, ddof=1),
        ],
        0: [
            x.var(unbiased=False),
            x.var(False),
            x.var(0, False),
            x.var(dim=0, correction=0),
            cg.var(x, axis=0, ddof=0),
        ],
        2: [x.var(correction=2)],
    }.items():
        assert [result.item() for result in calls] == pytest.approx([array.var(ddof=ddof)] * len(calls))
    assert x.std(correction=0.5).item() == pytest.approx(math.sqrt(((array - 4) ** 2).sum() / 3.5))
    assert x.var(correction=4).item() == x.var(correction=5).item() == INF
    assert np.isnan(cg.tensor([2.0]).std().item())
    assert cg.tensor([2.0]).var(correction=0).item() == 0


@pytest.mark.parametrize("name", ["mean", "var", "std", "softmax", "log_softmax"])
@pytest.mark.cases("dtype", [dtype for dtype in DTYPES if dtype not in FLOATS])
def test_integers_are_refused(name, dtype):
    with pytest.raises(RuntimeError):
        getattr(cg.ones(2, dtype=getattr(cg, dtype)), name)(0)


def test_logsumexp_of_integers():
    assert cg.tensor([1, 2]).logsumexp(0).item() == pytest.approx(2 + math.log1p(math.exp(-1)), rel=1e-6)
    assert cg.tensor([1, 2]).logsumexp(0).dtype == cg.float32


# ----- Completeness -----
@pytest.mark.parametrize("name", REDUCTIONS)
def test_every_row_is_covered(name):
    row = REDUCTIONS[name]
    assert name in REDUCERS, "give its NumPy function"
    assert {KINDS[dtype] for dtype in REDUCERS[name][1]} == set(row.kinds) - {"c", "u"}     # those are in test_complexmath and test_dtypes
    assert callable(getattr(cg, name))
    assert getattr(cg.Tensor, name)
    assert row.scan is None or row.scan in SCANS
    assert row.empty == (name in NOTHING)
