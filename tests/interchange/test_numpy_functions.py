"""NumPy's functions called on tensors, against NumPy on the arrays: values, dtypes, derivatives, arguments; none falls back to arrays."""

import inspect
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.testing.overrides import get_overridable_numpy_array_functions

import cygrad as cg
from cygrad.func import grad, jvp, vmap
from cygrad.numpy_functions.dispatch import CONVERSIONS, QUESTIONS, ROWS, WRAPPINGS
from cygrad.numpy_functions.rows import name_of
from interchange.numpy_samples import OF_MATRICES, SAMPLES
from interchange.numpy_samples_of_parts import SAMPLES_OF_PARTS

SAMPLES = SAMPLES | OF_MATRICES | SAMPLES_OF_PARTS
CALLS = [pytest.param(sample, id=f"{name_of(function)} {number}") for function, samples in SAMPLES.items()
         for number, sample in enumerate(samples)]
REFUSALS = (RuntimeError, NotImplementedError, TypeError, IndexError)


def drawn(shapes, dtype=np.float64):
    """Return arrays of distinct numbers from -1 to 1."""
    generator = np.random.default_rng(7)
    arrays = []
    for shape in shapes:
        numbers = generator.permutation(np.linspace(-0.97, 1.03, int(np.prod(shape)) or 1))[:int(np.prod(shape))].reshape(shape)
        numbers = np.asarray(numbers + 0.011 * len(arrays))
        if np.dtype(dtype).kind == "c":
            numbers = numbers + 1j * numbers[..., ::-1] if numbers.ndim else numbers + 0.5j
        arrays.append(np.asarray(numbers * 4 if np.dtype(dtype).kind in "iu" else numbers > 0 if dtype == np.bool_ else numbers, dtype))
    return arrays


def listed(result):
    return [*result] if isinstance(result, tuple | list) else [result]


def same(result, expected, rtol=1e-12):
    """Check one or several tensors against arrays."""
    assert isinstance(expected, tuple | list) == isinstance(result, tuple | list)
    assert len(listed(result)) == len(listed(expected))
    for tensor, array in zip(listed(result), listed(expected), strict=True):
        if type(tensor) is int:
            assert tensor == array
            continue
        assert isinstance(tensor, cg.Tensor)
        assert (str(tensor.dtype)[7:], tuple(tensor.shape)) == (np.asarray(array).dtype.name, np.shape(array))
        rtol = max(rtol, 8 * np.finfo(array.dtype).eps) if np.asarray(array).dtype.kind in "fc" else rtol
        np.testing.assert_allclose(tensor.detach().numpy(), array, rtol=rtol, atol=rtol)


@pytest.mark.cases("sample", CALLS)
def test_plain_tensors(sample):
    arrays = drawn(sample.shapes)
    same(sample.call(*map(cg.from_numpy, arrays)), sample.call(*arrays))


@pytest.mark.cases("sample", CALLS)
@pytest.mark.cases("place", [0, 1])
def test_a_tensor_among_arrays(place, sample):
    arrays = drawn(sample.shapes)
    if len(arrays) < 2:
        pytest.skip("one operand")
    mixed = [cg.from_numpy(array) if number == place else array for number, array in enumerate(arrays)]
    same(sample.call(*mixed), sample.call(*arrays))


@pytest.fixture(scope="module")
def doubles():
    """Use double precision by default, as NumPy does: elementwise functions of integers give the default dtype."""
    before = cg.get_default_dtype()
    cg.set_default_dtype(cg.float64)
    yield
    cg.set_default_dtype(before)


@pytest.mark.cases("sample", CALLS)
@pytest.mark.cases("dtype", [np.float32, np.int64, np.int8, np.uint8, np.bool_, np.complex128], ids=lambda dtype: dtype.__name__)
@pytest.mark.usefixtures("doubles")
def test_dtypes(dtype, sample):
    """Results have NumPy's values and NumPy's dtype; some dtypes that NumPy takes are refused."""
    if np.dtype(dtype).itemsize == 1 and any(sample in samples for samples in OF_MATRICES.values()):
        pytest.skip("products of small integers wrap around")
    arrays = drawn(sample.shapes, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = sample.call(*arrays)
        except TypeError:
            pytest.skip("refused by NumPy")
        try:
            result = sample.call(*map(cg.tensor, arrays))
        except REFUSALS:
            pytest.skip("refused by cygrad")
    if np.float16 in (getattr(array, "dtype", None) for array in listed(expected)):
        pytest.skip("of small integers NumPy makes small floats")
    same(result, expected, 1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.cases("sample", CALLS)
def test_gradients(sample):
    """Gradients against differences of NumPy's results."""
    arrays = drawn(sample.shapes)
    tensors = [cg.tensor(array, requires_grad=True) for array in arrays]
    results = listed(sample.call(*tensors))
    expected = [np.asarray(result) for result in listed(sample.call(*arrays))]
    weights = [np.cos(np.arange(array.size)).reshape(array.shape) for array in expected]
    smooth = [number for number, array in enumerate(expected) if array.dtype == np.float64]
    recorded = [number for number in smooth if results[number].requires_grad]
    gradients = [np.zeros(array.shape) for array in arrays]
    if recorded:
        total = sum((results[number] * cg.from_numpy(weights[number])).sum() for number in recorded)
        gradients = [gradient.numpy() for gradient in cg.autograd.grad(total, tensors, materialize_grads=True)]

    def value():
        return sum(float((np.asarray(result) * weights[number]).sum()) for number, result in enumerate(listed(sample.call(*arrays)))
                   if number in smooth)

    for array, gradient in zip(arrays, gradients, strict=True):
        for place in np.ndindex(array.shape):
            before, step = array[place], 1e-6
            array[place] = before + step
            above = value()
            array[place] = before - step
            difference = (above - value()) / (2 * step)
            array[place] = before
            assert gradient[place] == pytest.approx(difference, rel=1e-6, abs=1e-7, nan_ok=True)


@pytest.mark.cases("sample", CALLS)
@pytest.mark.usefixtures("nothing_left")
def test_batches(sample):
    """Functions that are independent of values: two examples at once, and each by itself."""
    arrays = drawn([(2, *shape) for shape in sample.shapes])
    tensors, results = [cg.tensor(array) for array in arrays], None
    try:
        results = listed(vmap(lambda *tensors: tuple(map(cg.as_tensor, listed(sample.call(*tensors)))))(*tensors))
    except (RuntimeError, NotImplementedError, TypeError) as error:
        assert "vmap" in str(error) or "batch" in str(error)
    if results is None:         # not above: a skip would keep the error that it came in, and the examples in its frames
        pytest.skip("depends on values")
    examples = [listed(sample.call(*(tensor[number] for tensor in tensors))) for number in range(2)]
    for result, *parts in zip(results, *examples, strict=True):
        np.testing.assert_allclose(result.numpy(), np.stack([np.asarray(part) for part in parts]), rtol=1e-10, atol=1e-12)


# ----- Arguments -----
def parameters(function):
    """Return the named parameters of a function of NumPy's, without *args and **kwargs."""
    try:
        by_name = inspect.signature(function).parameters
    except ValueError:          # of functions in C, before NumPy 2.4
        return {}
    if isinstance(function, np.ufunc):
        return {}               # their arguments for axes exclude each other
    return {name: each for name, each in by_name.items() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}


def test_importing_the_package_loads_no_row():
    code = "import sys, cygrad; sys.exit(any(name.startswith('cygrad.numpy_functions') for name in sys.modules))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_each_row_has_a_sample():
    without = {name_of(function) for function in {*ROWS} - {*SAMPLES}}
    assert without == set(), "give samples in tests/interchange/numpy_samples.py, or in numpy_samples_of_parts.py"
    assert {*SAMPLES} <= {*ROWS}


def test_results_have_the_names_of_numpy():
    x = cg.eye(3, dtype=cg.float64)
    for function in (np.linalg.eig, np.linalg.eigh, np.linalg.svd, np.linalg.qr, np.linalg.slogdet):
        result, expected = function(x), function(x.numpy())
        assert result._fields == expected._fields
        for name in result._fields:
            same(abs(getattr(result, name)), abs(getattr(expected, name)))


@pytest.mark.cases("function", [*ROWS], ids=name_of)
def test_rows_have_the_parameters_and_defaults_of_numpy(function):
    row, theirs = ROWS[function], parameters(function)
    ours = inspect.signature(row.function).parameters
    if not theirs or "newshape" in theirs:
        pytest.skip("an older NumPy")
    positional = [name for name, each in theirs.items() if each.kind is not each.KEYWORD_ONLY]
    assert [name for name in positional if name in ours] == [name for name in ours if name in positional]
    for name, parameter in ours.items():
        default = theirs[name].default if name in theirs else parameter.empty
        if parameter.empty not in (parameter.default, default) and repr(default) != "<no value>":
            assert parameter.default == default or (name, parameter.default) in (("shape", None), ("axis", -1)), name


@pytest.mark.cases("function", [function for function, calls in SAMPLES.items() if calls[0].call is function], ids=name_of)
def test_defaults_may_be_passed(function):
    defaults = {name: each.default for name, each in parameters(function).items()
                if each.default is not each.empty and each.kind is not each.POSITIONAL_ONLY}
    arrays = drawn(SAMPLES[function][0].shapes)
    same(function(*map(cg.from_numpy, arrays), **defaults), function(*arrays))


@pytest.mark.cases("function", [*ROWS], ids=name_of)
def test_unsupported_arguments_are_refused_by_name(function):
    row = ROWS[function]
    arguments = {name: each for name, each in parameters(function).items()}
    refused = {*arguments} - {*inspect.signature(row.function).parameters} - {"out"}
    needed = [cg.ones(2, 2)] * sum(each.default is each.empty for each in arguments.values())
    for name in refused:
        with pytest.raises(TypeError, match=rf"{name_of(function)} is not supported on cygrad tensors with {name}: .*\.numpy\(\)"):
            row(tuple(needed) or (cg.ones(2, 2),), {name: object()})


OUTS = {
    np.clip: (lambda a, out: np.clip(a, -0.5, 0.5, out), [(2, 3)]),
    np.compress: (lambda a, out: np.compress([False, True], a, out=out), [(2, 3)]),
    np.concatenate: (lambda a, b, out: np.concatenate([a, b], out=out), [(2, 3), (2, 3)]),
    np.dot: (lambda a, b, out: np.dot(a, b, out), [(2, 3), (3,)]),
    np.einsum: (lambda a, out: np.einsum("ii->i", a, out=out), [(3, 3)]),
    np.outer: (np.outer, [(2,), (3,)]),
    np.stack: (lambda a, b, out: np.stack([a, b], out=out), [(2, 3), (2, 3)]),
    np.take: (lambda a, out: np.take(a, [3, -1], out=out), [(2, 3)]),
    np.choose: (lambda a, out: np.choose([0, 1, 1], a, out=out), [(2, 3)]),
    **{function: (lambda a, out, function=function: function(a, 0.5, 0, out), [(2, 3)])
       for function in (np.quantile, np.percentile, np.nanquantile, np.nanpercentile)},
    **{function: (lambda a, out, function=function: function(a, axis=0, out=out), [(2, 3)])
       for function in (getattr(np, name, None) for name in ("cumulative_sum", "cumulative_prod"))},
}


@pytest.mark.cases("function", [function for function in ROWS if "out" in parameters(function)], ids=name_of)
def test_out(function):
    """A tensor or an array; a result with a history is written into neither."""
    call, shapes = OUTS.get(function, (function, [(2, 3)]))
    arrays = drawn(shapes)
    plain, recorded = ([cg.tensor(array, requires_grad=requires_grad) for array in arrays] for requires_grad in (False, True))
    expected = call(*arrays, out=None)
    result, array = cg.zeros(np.shape(expected), dtype=call(*plain, out=None).dtype), np.zeros_like(expected)
    assert call(*plain, out=result) is result
    same(result, expected)
    array = np.zeros_like(expected)
    assert call(*plain, out=array) is array
    np.testing.assert_allclose(array, expected, rtol=1e-12)
    if call(*recorded, out=None).requires_grad:
        for out in (result, array):
            with pytest.raises(RuntimeError, match="history would be lost|automatic differentiation"):
                call(*recorded, out=out)
    for out in (cg.zeros(7, 5, dtype=result.dtype), np.zeros((2, *array.shape), array.dtype)):
        with pytest.raises((RuntimeError, ValueError)):
            call(*plain, out=out)


# ----- Functions without a row -----
OTHERS = sorted(get_overridable_numpy_array_functions() - {*ROWS, *QUESTIONS, *CONVERSIONS, *WRAPPINGS}, key=name_of)


@pytest.mark.cases("function", OTHERS, ids=name_of)
@pytest.mark.cases("requires_grad", [False, True])
def test_functions_that_are_no_operators_name_themselves(function, requires_grad):
    x = cg.ones(2, 2, requires_grad=requires_grad)
    with pytest.raises(TypeError, match=rf"^{name_of(function)} is not supported on cygrad tensors: .*\.numpy\(\)"):
        x.__array_function__(function, (cg.Tensor,), (x,), {})


@pytest.mark.parametrize("call", [lambda x: np.zeros(3, like=x), lambda x: np.is_busday(x), lambda x: np.lib.scimath.sqrt(x)])
def test_no_function_computes_on_arrays_unseen(call):
    for x in (cg.ones(2), cg.ones(2, requires_grad=True)):
        with pytest.raises(TypeError, match=r"not supported on cygrad tensors.*\.numpy\(\)"):
            call(x)


X, ARRAY = cg.tensor([1.0, 2.0], dtype=cg.float64), np.array([1.0, 2.0])
CALLED = {
    np.allclose: lambda x: np.allclose(x, ARRAY),
    np.array_equal: lambda x: np.array_equal(ARRAY, x),
    np.array_equiv: lambda x: np.array_equiv([x, ARRAY], x),
    np.iscomplexobj: np.iscomplexobj,
    np.isrealobj: np.isrealobj,
    np.shares_memory: lambda x: np.shares_memory(x, x),
    np.may_share_memory: lambda x: np.may_share_memory(x, x),
    np.result_type: lambda x: np.result_type(x, np.float32),
    np.can_cast: lambda x: np.can_cast(np.float32, np.float64),
    np.min_scalar_type: lambda x: np.min_scalar_type(x),
    np.common_type: lambda x: np.common_type(x, ARRAY),
    np.array_repr: np.array_repr,
    np.array_str: np.array_str,
    np.array2string: lambda x: np.array2string(x, precision=2),
    np.einsum_path: lambda x: np.einsum_path("i,i", x, x),
}


@pytest.mark.parametrize("function", sorted(QUESTIONS, key=name_of), ids=name_of)
def test_questions_are_answered(function):
    """With or without a gradient: their results have none."""
    for x in (X, X.clone().requires_grad_()):
        answer = CALLED[function](x)
        assert not isinstance(answer, cg.Tensor | np.ndarray)
        assert answer == CALLED[function](ARRAY)


@pytest.mark.parametrize("function", sorted(CONVERSIONS, key=name_of), ids=name_of)
def test_conversions_make_arrays_of_tensors_without_gradient(function, tmp_path):
    """As np.asarray does."""
    def call(x):
        writes = function.__name__.startswith("save")
        return function(tmp_path / "file.npz", x) if writes else function(x)

    assert not isinstance(call(X), cg.Tensor)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        call(X.clone().requires_grad_())


@pytest.mark.parametrize("function", WRAPPINGS, ids=name_of)
def test_atleast_1d_and_its_kin_make_arrays_unless_that_loses_a_derivative(function):
    """SciPy calls them on results of functions, and needs arrays. With a history, a tangent, or in vmap, they are operators."""
    assert isinstance(function(X), np.ndarray)
    same(function(X.clone().requires_grad_()), function(ARRAY))
    same(function(X.clone().requires_grad_(), 2.0), function(ARRAY, 2.0))
    assert grad(lambda x: function(x).sum())(X).equal(cg.ones_like(X))
    assert jvp(function, (X,), (X,))[1].equal(cg.from_numpy(function(ARRAY)))
    assert vmap(lambda x: function(x).sum())(X).equal(X.reshape(len(X), -1).sum(1))


def test_nothing_wraps_around_where_elements_are_compared():
    small, number = cg.tensor([2, 254], dtype=cg.uint8), np.array(-2)
    assert np.isin(number, small).item() is False
    assert np.isclose(small, number).tolist() == [False, False]
    assert np.searchsorted(small, number).item() == 0
    assert np.dot(small, number).tolist() == [-4, -508]


def test_lists_hold_tensors_that_stay_on_the_tape():
    x = cg.tensor([1.0, 2.0], dtype=cg.float64, requires_grad=True)
    y = np.concatenate([[x[0], x[1] * 3], x])
    assert y.tolist() == [1, 6, 1, 2]
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="requires grad"):
        np.concatenate([[x[0], x[1]], [1.0]])       # NumPy sees lists only, and finds no tensor in them


def test_arrays_in_any_layout():
    x = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64)
    unaligned = np.frombuffer(bytearray(25), np.float64, 3, 1)
    for array in (np.arange(6.0)[::-2], np.arange(3.0).astype(">f8"), unaligned, np.broadcast_to(2.0, 3)):
        same(np.concatenate([x, array]), np.concatenate([x.numpy(), array.astype(float)]))
        same(np.dot(array, x), np.dot(array, x.numpy()))
        for operate in (np.multiply, np.matmul, np.subtract):
            same(operate(array, x), np.asarray(operate(array.astype(float), x.numpy())))
            same(operate(x, array), np.asarray(operate(x.numpy(), array.astype(float))))
        same(x * array, x.numpy() * array.astype(float))
    for junk in (np.array(["a", "b", "c"]), np.array([1, 2, None]), np.ones(3, [("a", "f8")])):
        with pytest.raises(TypeError, match="can't convert np.ndarray"):
            np.concatenate([x, junk])


class Other:
    def __array_function__(self, function, types, arguments, keywords):
        return "theirs"


def test_other_packages_get_their_turn():
    assert np.concatenate([X, Other()]) == "theirs"


def test_derivatives_and_batches_of_functions_that_call_numpy():
    def f(x):
        return np.sum(np.where(x > 0, np.dot(x, x) * np.exp(x), np.mean(x)))

    x = cg.tensor([0.5, -1.0, 2.0], dtype=cg.float64)
    rows = cg.stack([x, x + 1])

    def g(x):
        return cg.where(x > 0, (x @ x) * x.exp(), x.mean()).sum()

    for ours, theirs in ((grad(f)(x), grad(g)(x)), (jvp(f, (x,), (x,))[1], jvp(g, (x,), (x,))[1]), (vmap(f)(rows), vmap(g)(rows)),
                         (vmap(grad(f))(rows), vmap(grad(g))(rows))):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-13)


@pytest.mark.parametrize("left", ["f2", "f4", "f8", "i1", "i8", "u1", "c8", "?"])
@pytest.mark.cases("right", [cg.float16, cg.float32, cg.float64, cg.int64, cg.complex64], ids=str)
def test_products_of_arrays_and_tensors_promote_alike(left, right):
    array, tensor = np.ones((2, 2), left), cg.ones(2, 2, dtype=right)
    expected = cg.promote_types(cg.tensor(array).dtype, right)
    for product in (array @ tensor, tensor @ array, np.matmul(array, tensor), np.matmul(tensor, array), np.dot(array, tensor)):
        assert isinstance(product, cg.Tensor)
        assert product.dtype == expected
        assert product.tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float16", "float32", "float64", "complex64"])
def test_a_dtype_is_one_to_numpy(name):
    dtype = getattr(cg, name)
    assert np.dtype(dtype) == np.zeros(2, dtype=dtype).dtype == np.asarray(cg.ones(2), dtype=dtype).dtype == np.dtype(name)
    assert np.promote_types(dtype, np.complex64) == np.promote_types(name, np.complex64)
