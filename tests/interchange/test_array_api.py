"""The namespace of the array API standard: names, promotion, values and dtypes as NumPy 2 has them, derivatives, errors."""

import inspect
import itertools

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import gradcheck
from cygrad.func import vmap

if not hasattr(np, "unstack"):
    pytest.skip("NumPy, with which results are compared, has the standard's names from 2.1 on", allow_module_level=True)

xp = cg.array_api

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REAL, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
NUMERIC = (*INTEGERS, *REAL, *COMPLEX)
# The kinds of operands of each elementwise function; the others take real and complex floats.
KINDS = {
    **dict.fromkeys(("abs", "negative", "positive", "square", "sign", "add", "subtract", "multiply", "equal", "not_equal"), NUMERIC),
    **dict.fromkeys(("isfinite", "isinf", "isnan"), NUMERIC),
    **dict.fromkeys(("floor", "ceil", "trunc", "greater", "greater_equal", "less", "less_equal", "maximum", "minimum", "floor_divide",
                     "remainder"), (*INTEGERS, *REAL)),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift"), INTEGERS),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not"), ("bool",)),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter", "signbit"), REAL),
    **dict.fromkeys(("real", "imag", "conj"), COMPLEX),
    "round": (*INTEGERS, *REAL), "pow": NUMERIC, "divide": (*REAL, *COMPLEX),
}
ELEMENTWISE = {name: function for name, function in vars(xp).items()
               if getattr(function, "__module__", "") == "cygrad.array_api.elementwise" and name != "clip"}


def operand(dtype, shape=(2, 3), seed=0):
    """Return an array of numbers that are small, and above 1 of acosh alone."""
    numbers = np.random.default_rng(seed).integers(1, 4, shape)
    if dtype in COMPLEX:
        return (numbers / 5 + 1j * numbers.T.reshape(numbers.shape) / 7).astype(dtype)
    return (numbers / 5 if dtype in REAL else numbers % 2 if dtype == "bool" else numbers).astype(dtype)


def same(result, expected, name=""):
    """Compare a tensor, or several, with arrays: values, shapes, dtypes."""
    if isinstance(expected, tuple | list):
        assert len(result) == len(expected), name
        for one, other in zip(result, expected, strict=True):
            same(one, other, name)
        return
    assert isinstance(result, cg.Tensor), name
    array = result.detach().numpy()
    assert array.dtype == expected.dtype and array.shape == expected.shape, name
    np.testing.assert_allclose(array, expected, rtol=3e-6 if array.dtype.name in ("float32", "complex64") else 1e-12, atol=1e-7,
                               err_msg=str(name))


# ----- The namespace -----
def test_a_tensor_has_the_namespace():
    x = cg.ones(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2025.12") is xp
    with pytest.raises(ValueError, match=r"has the versions .*2025.12 of the standard, not '2019.01'"):
        x.__array_namespace__(api_version="2019.01")
    assert x.to_device("cpu") is x and x.to_device(x.device) is x
    with pytest.raises(AssertionError, match="CUDA"):
        x.to_device("cuda")
    with pytest.raises(ValueError, match="has no streams"):
        x.to_device("cpu", stream=1)


def test_information():
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.capabilities()["max dimensions"] == cg.ones((1,) * 64).ndim
    assert set(info.dtypes()) == {"bool", *NUMERIC} and set(info.dtypes(kind="real floating")) == set(REAL)
    assert info.default_dtypes()["real floating"] == cg.get_default_dtype()
    assert all(getattr(xp, name) == dtype for name, dtype in info.dtypes().items())
    for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"):
        expected = np.__array_namespace_info__().dtypes(kind=kind)
        assert set(info.dtypes(kind=kind)) == set(expected) == {name for name in info.dtypes() if xp.isdtype(getattr(xp, name), kind)}


def test_names_are_numpys():
    """NumPy has the standard, too."""
    for here, there in ((xp, np), (xp.linalg, np.linalg), (xp.fft, np.fft)):
        names = [*here.__all__] if here is not xp else [name for name in ELEMENTWISE]
        assert all(hasattr(there, name) or hasattr(np, name) for name in names)
    modules = ("creation", "dtypes", "manipulation", "searching", "statistics")
    assert [name for module in modules for name in getattr(xp, module).__all__ if not hasattr(np, name)] == []


# ----- Elementwise functions, promotion -----
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions(name):
    function, expected = ELEMENTWISE[name], getattr(np, name)
    count = len(inspect.signature(function).parameters)
    for dtypes in itertools.product(KINDS.get(name, (*REAL, *COMPLEX)), repeat=count):
        if len({np.dtype(dtype).kind in "iu" for dtype in dtypes}) > 1 or np.result_type(*dtypes).kind == "f" and "uint64" in dtypes:
            continue        # the standard has no such result
        for shapes in ([(2, 3)] * count, [(), (2, 3)][:count], [()] * count):
            arrays = [operand(dtype, shape, seed) for seed, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=True))]
            arrays = [array + np.asarray(1, array.dtype) for array in arrays] if name == "acosh" else arrays
            same(function(*map(xp.asarray, arrays)), np.asarray(expected(*arrays)), (name, dtypes))


def test_promotion_of_unsigned_integers():
    for one, other in itertools.combinations_with_replacement(INTEGERS, 2):
        expected = np.promote_types(one, other)
        x, y = getattr(xp, one), getattr(xp, other)
        if expected.kind == "f":
            with pytest.raises(TypeError, match="no integer dtype holds the numbers of both"):
                xp.result_type(x, y)
            assert not xp.can_cast(x, y)
        else:
            assert xp.result_type(x, y) == getattr(xp, expected.name)
            assert xp.can_cast(x, y) == (expected == np.dtype(other))
    assert xp.add(xp.asarray(2**64 - 1, dtype=xp.uint64), xp.asarray(1, dtype=xp.uint8)).item() == 0
    assert xp.greater(xp.asarray(2**63, dtype=xp.uint64), xp.asarray(1, dtype=xp.uint64)).item() is True
    assert xp.floor_divide(xp.asarray(2**64 - 1, dtype=xp.uint64), 2).item() == 2**63 - 1


def test_tensors_without_dims_have_their_say():
    one, many = xp.asarray(1.0, dtype=xp.float64), xp.ones(3, dtype=xp.float32)
    assert xp.add(one, many).dtype == xp.float64 and (one + many).dtype == xp.float32       # as in torch
    assert xp.result_type(one, many) == xp.where(xp.asarray([True]), many, one).dtype == xp.float64
    assert xp.add(many, 1.0).dtype == xp.multiply(2, many).dtype == xp.result_type(many, 1.0) == xp.float32
    assert xp.result_type(many, 1j) == xp.complex64 and xp.result_type(one, 1j) == xp.complex128
    assert xp.result_type(xp.int8, 1) == xp.int8 and xp.result_type(xp.bool, True) == xp.bool


def test_signs_and_quotients_of_infinite_numbers():
    x = xp.asarray([np.nan, -2.0, 0.0])
    assert xp.isnan(xp.sign(x)).tolist() == [True, False, False] and xp.sign(x)[1:].tolist() == [-1.0, 0.0]
    quotients = xp.floor_divide(xp.asarray([np.inf, -np.inf, 3.0, -3.0]), xp.asarray([2.0, 2.0, -np.inf, np.inf]))
    assert quotients.tolist() == [np.inf, -np.inf, 0.0, 0.0] and xp.signbit(quotients).tolist() == [False, True, True, True]


# ----- The other functions -----
def a(dtype="float64", shape=(2, 3), seed=0):
    return operand(dtype, shape, seed)


MATRICES = np.array([[[4.0, 1.0], [1.0, 3.0]], [[2.0, -1.0], [-1.0, 5.0]]])
# Calls with a namespace and arrays of it.
CALLS = {
    "arange": [lambda xp: xp.arange(5), lambda xp: xp.arange(1, 6, 2), lambda xp: xp.arange(5, 1, -2), lambda xp: xp.arange(3, 1),
               lambda xp: xp.arange(0.0, 1.0, 0.25, dtype=xp.float64), lambda xp: xp.arange(3, dtype=xp.uint16)],
    "full": [lambda xp: xp.full((2, 1), 3), lambda xp: xp.full(2, 1.5, dtype=xp.float64), lambda xp: xp.ones(2, dtype=xp.uint32),
             lambda xp: xp.zeros((2, 0), dtype=xp.complex64), lambda xp: xp.full((), True)],
    "eye": [lambda xp: xp.eye(2, 3, k=1, dtype=xp.float64), lambda xp: xp.eye(2, dtype=xp.int8), lambda xp: xp.eye(3, k=-2, dtype=xp.bool)],
    "linspace": [lambda xp: xp.linspace(0, 1, 5, dtype=xp.float64), lambda xp: xp.linspace(0, 1, 4, endpoint=False, dtype=xp.float32),
                 lambda xp: xp.linspace(0, 1j, 3, dtype=xp.complex128), lambda xp: xp.linspace(2.0, 3.0, 0, dtype=xp.float64)],
    "like": [lambda xp, x: xp.ones_like(x), lambda xp, x: xp.full_like(x, 2, dtype=xp.int16), lambda xp, x: xp.zeros_like(x)],
    "triangles": [lambda xp, x: xp.tril(x, k=-1), lambda xp, x: xp.triu(x, k=1)],
    "meshgrid": [lambda xp, x: xp.meshgrid(x[0], x[1]), lambda xp, x: xp.meshgrid(x[0], x[1], indexing="ij")],
    "astype": [lambda xp, x: xp.astype(x, xp.int8), lambda xp, x: xp.astype(x, xp.complex64)],
    "broadcast": [lambda xp, x: xp.broadcast_to(x, (4, 2, 3)), lambda xp, x: xp.broadcast_arrays(x, x[0])],
    "concat": [lambda xp, x: xp.concat([x, x], axis=-1), lambda xp, x: xp.concat((x, xp.astype(x, xp.uint8)), axis=None),
               lambda xp: xp.concat([xp.ones(2, dtype=xp.uint16), xp.ones(1, dtype=xp.int8)])],
    "stack": [lambda xp, x: xp.stack([x, x], axis=1), lambda xp, x: xp.unstack(x, axis=1)],
    "dims": [lambda xp, x: xp.expand_dims(x, 1), lambda xp, x: xp.expand_dims(x, (0, -1)), lambda xp, x: xp.squeeze(x[None], 0),
             lambda xp, x: xp.permute_dims(x, (1, 0)), lambda xp, x: xp.moveaxis(x, 0, -1), lambda xp, x: xp.matrix_transpose(x)],
    "order": [lambda xp, x: xp.flip(x), lambda xp, x: xp.flip(x, axis=1), lambda xp, x: xp.roll(x, 2), lambda xp, x: xp.roll(x, 1, axis=0),
              lambda xp, x: xp.roll(x, (1, 2), axis=(0, 1)), lambda xp, x: xp.tile(x, (2, 1)), lambda xp, x: xp.reshape(x, (3, 2)),
              lambda xp, x: xp.repeat(x, 2), lambda xp, x: xp.repeat(x, xp.asarray([1, 2, 0]), axis=1)],
    "take": [lambda xp, x: xp.take(x, xp.asarray([1, 0]), axis=1), lambda xp, x: xp.take(x, xp.asarray([[1, 0]]), axis=0),
             lambda xp, x: xp.take(x[0], xp.asarray(1), axis=0), lambda xp, x: xp.take_along_axis(x, xp.asarray([[1], [0]]), axis=1)],
    "search": [lambda xp, x: xp.argmax(x), lambda xp, x: xp.argmin(x, axis=0), lambda xp, x: xp.argmax(x, axis=1, keepdims=True),
               lambda xp, x: xp.count_nonzero(xp.subtract(x, x[0, 0]), axis=0), lambda xp, x: xp.nonzero(xp.subtract(x, x[0, 0])),
               lambda xp, x: xp.where(xp.greater(x, x[0]), x, 0),
               lambda xp, x: xp.searchsorted(xp.sort(x[0]), x, side="right"), lambda xp, x: xp.isin(x, x[0, :1]),
               lambda xp, x: xp.isin(x, x[0, :1], invert=True)],
    "sort": [lambda xp, x: xp.sort(x), lambda xp, x: xp.argsort(x, axis=0), lambda xp, x: xp.flip(xp.sort(x, axis=0), axis=0)],
    "sets": [lambda xp, x: xp.unique_all(x), lambda xp, x: xp.unique_counts(x), lambda xp, x: xp.unique_inverse(x),
             lambda xp, x: xp.unique_values(x)],
    "sums": [lambda xp, x: xp.sum(x), lambda xp, x: xp.sum(x, axis=(0, 1), keepdims=True), lambda xp, x: xp.prod(x, axis=0),
             lambda xp, x: xp.sum(x, axis=()), lambda xp, x: xp.sum(x, dtype=xp.float32), lambda xp, x: xp.cumulative_sum(x, axis=1),
             lambda xp, x: xp.cumulative_sum(x[0], include_initial=True),
             lambda xp, x: xp.cumulative_prod(x, axis=0, include_initial=True)],
    "extremes": [lambda xp, x: xp.max(x), lambda xp, x: xp.min(x, axis=1), lambda xp, x: xp.max(x, axis=(0, 1), keepdims=True)],
    "truth": [lambda xp, x: xp.all(xp.equal(x, x[0]), axis=0), lambda xp, x: xp.any(xp.less(x, x[0])), lambda xp, x: xp.any(x, axis=()),
              lambda xp, x: xp.all(x, axis=(0, 1), keepdims=True)],
    "products": [lambda xp, x: xp.matmul(x, xp.matrix_transpose(x)), lambda xp, x: xp.tensordot(x, x, axes=((1,), (1,))),
                 lambda xp, x: xp.vecdot(x, x), lambda xp, x: xp.linalg.outer(x[0], x[1]), lambda xp, x: xp.linalg.cross(x, x[0]),
                 lambda xp, x: xp.linalg.trace(x, offset=1), lambda xp, x: xp.linalg.diagonal(x)],
    "diff": [lambda xp, x: xp.diff(x), lambda xp, x: xp.diff(x, axis=0, n=2), lambda xp, x: xp.diff(x, prepend=x[:, :1], append=x[:, 1:])],
}
REAL_CALLS = {
    "statistics": [lambda xp, x: xp.mean(x), lambda xp, x: xp.mean(x, axis=(0, 1), keepdims=True), lambda xp, x: xp.std(x, axis=0),
                   lambda xp, x: xp.var(x, correction=1), lambda xp, x: xp.var(x, axis=(), correction=0),
                   lambda xp, x: xp.mean(x, axis=())],
    "clip": [lambda xp, x: xp.clip(x, 0.3, 0.5), lambda xp, x: xp.clip(x, x[0], None), lambda xp, x: xp.clip(x)],
    "fft": [lambda xp, x: xp.fft.fft(x), lambda xp, x: xp.fft.rfftn(x, axes=(0, 1), norm="ortho"),
            lambda xp, x: xp.fft.irfft(x, n=5, axis=0),
            lambda xp, x: xp.fft.fftshift(x, axes=1), lambda xp, x: xp.fft.ihfft(x), lambda xp, x: xp.fft.ifftn(x, s=(2, 2), axes=(0, 1)),
            lambda xp: xp.fft.fftfreq(5, d=0.1), lambda xp: xp.fft.rfftfreq(4)],
    "linalg": [lambda xp: xp.linalg.cholesky(xp.asarray(MATRICES)), lambda xp: xp.linalg.cholesky(xp.asarray(MATRICES), upper=True),
               lambda xp: xp.linalg.det(xp.asarray(MATRICES)), lambda xp: xp.linalg.inv(xp.asarray(MATRICES)),
               lambda xp: xp.linalg.eigh(xp.asarray(MATRICES)).eigenvalues, lambda xp: xp.linalg.eigvalsh(xp.asarray(MATRICES)),
               lambda xp: xp.linalg.slogdet(xp.asarray(MATRICES)), lambda xp: xp.linalg.svd(xp.asarray(MATRICES)).S,
               lambda xp: xp.linalg.svdvals(xp.asarray(MATRICES)), lambda xp: xp.linalg.pinv(xp.asarray(MATRICES)),
               lambda xp: xp.linalg.matrix_power(xp.asarray(MATRICES), -2), lambda xp: xp.linalg.matrix_rank(xp.asarray(MATRICES)),
               lambda xp: xp.linalg.matrix_norm(xp.asarray(MATRICES), ord="nuc"), lambda xp: xp.linalg.matrix_norm(xp.zeros((2, 0, 3))),
               lambda xp: xp.linalg.vector_norm(xp.asarray(MATRICES), axis=(0, 1), ord=1),
               lambda xp: xp.linalg.vector_norm(xp.asarray(MATRICES)),
               lambda xp: xp.linalg.solve(xp.asarray(MATRICES), xp.asarray(MATRICES[0, 0])),
               lambda xp: xp.linalg.solve(xp.asarray(MATRICES), xp.asarray(MATRICES))],
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.cases("dtype", ["float64", "float32", "uint8", "uint16", "uint64", "int32"])
def test_other_functions(name, dtype):
    check(CALLS[name], dtype)


@pytest.mark.parametrize("name", REAL_CALLS)
@pytest.mark.cases("dtype", REAL)
def test_functions_of_floats(name, dtype):
    check(REAL_CALLS[name], dtype)


def check(calls, dtype):
    before = cg.get_default_dtype()
    cg.set_default_dtype(cg.float64)        # as NumPy's
    try:
        for number, call in enumerate(calls):
            x = [a(dtype)] * (len(inspect.signature(call).parameters) - 1)
            expected = call(np, *x)
            expected = expected if isinstance(expected, tuple | list) else np.asarray(expected)
            same(call(xp, *map(xp.asarray, x)), expected, number)
    finally:
        cg.set_default_dtype(before)


def test_sorting_keeps_equal_elements_in_place():
    x = xp.asarray([1, 0, 1, 0])
    assert xp.argsort(x).tolist() == [1, 3, 0, 2] and xp.argsort(x, descending=True).tolist() == [0, 2, 1, 3]
    assert xp.sort(x, descending=True).tolist() == [1, 1, 0, 0]


def test_distinct_elements():
    x = xp.asarray([2.0, np.nan, 1.0, np.nan, 2.0])
    values, indices, inverse, counts = xp.unique_all(x)
    assert values.tolist()[:2] == [1.0, 2.0] and xp.isnan(values).tolist() == [False, False, True, True]
    assert indices.tolist() == [2, 0, 1, 3] and inverse.tolist() == [1, 2, 0, 3, 1] and counts.tolist() == [1, 2, 1, 1]


def test_limits():
    assert xp.finfo(xp.float32).dtype == xp.float32 and xp.finfo(cg.ones(1, dtype=cg.complex128)).eps == 2.0**-52
    assert xp.iinfo(xp.asarray([1], dtype=xp.uint64)).max == 2**64 - 1 and xp.iinfo(xp.int8).dtype == xp.int8


# ----- Derivatives -----
@pytest.mark.cases("call", [
    lambda x: xp.multiply(xp.exp(x), xp.atan2(x, 2.0)), lambda x: xp.std(x, axis=0), lambda x: xp.linalg.matrix_norm(x),
    lambda x: xp.prod(x),
    lambda x: xp.cumulative_prod(x, axis=1, include_initial=True), lambda x: xp.where(x > 0.3, x**2, 0.0), lambda x: xp.clip(x, 0.3, None),
    lambda x: xp.concat([x, xp.ones((1, 3), dtype=xp.float64)]), lambda x: xp.take(x, xp.asarray([[1, 1]]), axis=1), lambda x: xp.sort(x),
    lambda x: xp.vecdot(x, x), lambda x: xp.diff(x, prepend=x[:, :1]), lambda x: xp.repeat(x, 2), lambda x: xp.unique_values(x),
    lambda x: xp.linalg.solve(xp.matmul(x, xp.matrix_transpose(x)), x), lambda x: xp.abs(xp.fft.rfft(x)), lambda x: xp.max(x, axis=0),
    lambda x: xp.add(x, xp.asarray(1.0, dtype=xp.float32)), lambda x: xp.expand_dims(x, (0, 2)), lambda x: xp.unstack(x)[1],
])
def test_functions_stay_on_the_tape(call):
    x = cg.tensor([[0.31, 0.72, 0.15], [0.94, 0.26, 0.58]], dtype=cg.float64, requires_grad=True)
    assert gradcheck(call, x)


def test_functions_in_vmap():
    x = cg.tensor([[0.31, 0.72, 0.15], [0.94, 0.26, 0.58]])
    assert cg.allclose(vmap(lambda row: xp.divide(xp.exp(row), xp.sum(xp.exp(row))))(x), x.softmax(1))


# ----- Bad input -----
BAD = [
    (lambda: xp.add(1, 2), TypeError, "add() expected a tensor, but got int, int"),
    (lambda: xp.add(xp.ones(2), "1"), TypeError, "expected a tensor, a dtype or a number, not str"),
    (lambda: xp.sin([1.0]), TypeError, "sin(): argument 'x' must be Tensor, not list"),
    (lambda: xp.result_type(1, 2.0), ValueError, "at least one tensor or dtype is required"),
    (lambda: xp.add(xp.ones(2, dtype=xp.uint64), xp.ones(2, dtype=xp.int8)), TypeError, "both uint64 and int8"),
    (lambda: xp.isdtype(xp.int8, "integer"), ValueError, "unknown kind of dtype: 'integer'"),
    (lambda: xp.squeeze(xp.ones((2, 1)), 0), ValueError, "squeeze(): dim 0 has size 2, not 1"),
    (lambda: xp.expand_dims(xp.ones(2), 2), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
    (lambda: xp.expand_dims(xp.ones(2), (0, 0)), ValueError, "are not distinct"),
    (lambda: xp.broadcast_shapes((2,), (3,)), ValueError, "broadcast"),
    (lambda: xp.reshape(xp.permute_dims(xp.ones((2, 3)), (1, 0)), (6,), copy=False), ValueError, "reshape(copy=False)"),
    (lambda: xp.asarray([1], copy=False), ValueError, "can't alias the memory of a list"),
    (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), ValueError, "left out for a vector only, but the tensor has 2 dims"),
    (lambda: xp.cumulative_sum(xp.ones((2, 2))), ValueError, "the axis can be left out for a vector only"),
    (lambda: xp.nonzero(xp.asarray(1)), ValueError, "nonzero() expected a tensor with dims"),
    (lambda: xp.matrix_transpose(xp.ones(2)), ValueError, "2 or more dims, but got 1"),
    (lambda: xp.linalg.cross(xp.ones(2), xp.ones(2)), ValueError, "vectors of size 3, but got 2"),
    (lambda: xp.zeros(2, device="cuda"), AssertionError, "CUDA"),
]


@pytest.mark.cases(("call", "error", "message"), BAD)
def test_bad_input(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
