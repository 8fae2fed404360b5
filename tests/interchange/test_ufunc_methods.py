"""The methods of NumPy's ufuncs, and the ufuncs of scipy.special, called on tensors: values, dtypes, gradients, and writing in place."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import gradcheck
from cygrad.func import vmap

ARITHMETIC = [np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.hypot,
              np.arctan2]
OTHERS = [np.logical_and, np.logical_or, np.logical_xor, np.floor_divide, np.remainder, np.power]
A = np.array([[1.5, 2.0, 3.0, 0.25], [0.5, 4.0, 1.25, 2.5]])
MASK = A > 1


def name_of(ufunc):
    return ufunc.__name__


def at(ufunc, array, indices, *others):
    """Return a copy that the ufunc changed in places."""
    copy = array * 1
    ufunc.at(copy, indices, *others)
    return copy


def reduced(ufunc, a, axis):
    """Reduce a tensor; of an array return the last partial result: NumPy 2.4 reduces arctan2 and power wrongly on AVX-512 processors."""
    if isinstance(a, cg.Tensor):
        return ufunc.reduce(a, axis=axis, keepdims=True)
    return np.take(ufunc.accumulate(a, axis), [-1], axis)


CALLS = {
    "reduce": lambda ufunc, a: reduced(ufunc, a, 0),
    "reduce -1": lambda ufunc, a: reduced(ufunc, a, -1),
    "accumulate": lambda ufunc, a: ufunc.accumulate(a),
    "accumulate -1": lambda ufunc, a: ufunc.accumulate(a, -1),
    "reduceat": lambda ufunc, a: ufunc.reduceat(a, [0, 2, 1, 3], axis=1),
    "outer": lambda ufunc, a: ufunc.outer(a, a[0]),
    "outer of a number": lambda ufunc, a: ufunc.outer(2.0, a[1]),
    "at": lambda ufunc, a: at(ufunc, a, ([0, 1, 0, 0], [1, 1, 1, 2]), a[1]),
    "at a mask": lambda ufunc, a: at(ufunc, a, MASK, 2.0),
}


def same(result, expected):
    assert isinstance(result, cg.Tensor)
    assert (str(result.dtype)[7:], tuple(result.shape)) == (expected.dtype.name, expected.shape)
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-14)


@pytest.mark.cases("call", CALLS)
@pytest.mark.cases("ufunc", ARITHMETIC + OTHERS, ids=name_of)
def test_methods(ufunc, call):
    same(CALLS[call](ufunc, cg.tensor(A)), CALLS[call](ufunc, A))


@pytest.mark.cases("call", CALLS)
@pytest.mark.cases("ufunc", ARITHMETIC, ids=name_of)
def test_derivatives(ufunc, call):
    x = cg.tensor(A + 0.01 * np.arange(8).reshape(2, 4), requires_grad=True)
    assert gradcheck(lambda x: CALLS[call](ufunc, x), (x,), check_forward_ad=True)


@pytest.mark.cases("call", [call for call in CALLS if not call.startswith("at")])
@pytest.mark.cases("ufunc", ARITHMETIC, ids=name_of)
def test_batches(ufunc, call):
    x = cg.tensor(np.stack([A, A[::-1] + 0.125]))
    result = vmap(lambda x: CALLS[call](ufunc, x))(x)
    np.testing.assert_allclose(result.numpy(), np.stack([CALLS[call](ufunc, each) for each in x.numpy()]), rtol=1e-13)


@pytest.mark.cases("dtype", ["i1", "u1", "i8", "f4", "?", "c16"])
@pytest.mark.cases("ufunc", [np.add, np.multiply, np.maximum, np.logical_and, np.bitwise_xor], ids=name_of)
def test_dtypes(ufunc, dtype):
    a = np.array([[1, 0, 3], [2, 2, 1]]).astype(dtype)
    for method in ("reduce", "accumulate"):
        try:
            expected = getattr(ufunc, method)(a, axis=1)
        except TypeError:
            continue
        if dtype == "c16" and ufunc is np.maximum:
            with pytest.raises((NotImplementedError, RuntimeError), match="ComplexDouble|complex"):
                getattr(ufunc, method)(cg.tensor(a), axis=1)
            continue
        same(getattr(ufunc, method)(cg.tensor(a), axis=1), expected)


def test_arguments_of_reductions():
    t = cg.tensor(A)
    same(np.add.reduce(t, axis=None, initial=2.0), np.asarray(np.add.reduce(A, axis=None, initial=2.0)))
    same(np.multiply.reduce(t, axis=(0, 1), where=MASK), np.asarray(np.multiply.reduce(A, axis=(0, 1), where=MASK)))
    same(np.add.reduce(t, dtype=np.float32), np.add.reduce(A, dtype=np.float32))
    same(np.subtract.reduce(t, axis=(1,)), np.subtract.reduce(A, axis=(1,)))
    same(np.add.accumulate(t, axis=1, dtype=np.complex128), np.add.accumulate(A, axis=1, dtype=np.complex128))
    out = cg.zeros(4, dtype=cg.float64)
    assert np.add.reduce(t, out=out) is out
    same(out, A.sum(0))
    array = np.zeros((2, 4))
    assert np.subtract.accumulate(t, out=array) is array
    np.testing.assert_array_equal(array, np.subtract.accumulate(A))
    same(np.multiply.accumulate(cg.tensor(A[:0])), np.multiply.accumulate(A[:0]))


def test_at_adds_up_elements_that_occur_several_times():
    x = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64, requires_grad=True)
    y = cg.zeros(4, dtype=cg.float64)
    np.add.at(y, [0, 3, 0], x)
    assert y.tolist() == [4, 0, 0, 2]
    (y * cg.arange(1, 5)).sum().backward()
    assert x.grad.tolist() == [1, 4, 1]
    z = cg.tensor([5.0, 6.0])
    np.negative.at(z, [1, 1, 0])
    assert z.tolist() == [-5, 6]
    np.add.at(z, [], [])
    assert z.tolist() == [-5, 6]


def test_at_changes_arrays_unless_a_history_is_lost():
    a = np.zeros(2)
    np.add.at(a, [0, 0], cg.tensor([1.0, 2.0]))
    assert a.tolist() == [3, 0]
    with pytest.raises(RuntimeError, match="np.add cannot write a tensor that requires grad into an array"):
        np.add.at(a, [0, 0], cg.ones(2, requires_grad=True))
    assert a.tolist() == [3, 0]


def test_bad_calls_change_nothing():
    t, whole = cg.ones(2, 3), cg.ones(3, dtype=cg.int64)
    cases = [
        (lambda: np.subtract.reduce(t, axis=(0, 1)), ValueError, "along one axis"),
        (lambda: np.subtract.reduce(t, axis=2), IndexError, "out of range"),
        (lambda: np.subtract.reduce(t[:0]), ValueError, "zero-size array to reduction operation subtract which has no identity"),
        (lambda: np.add.accumulate(cg.tensor(1.0)), TypeError, "cannot accumulate on a scalar"),
        (lambda: np.add.reduceat(t, [0, 3], axis=1), IndexError, r"index 3 out-of-bounds in add.reduceat \[0, 3\)"),
        (lambda: np.subtract.reduce(t, initial=1.0), TypeError, r"np.subtract.reduce is not supported on cygrad tensors with initial"),
        (lambda: np.modf(t, where=False), TypeError, "np.modf is not supported on cygrad tensors with where"),
        (lambda: np.fabs(t + 1j), TypeError, "np.fabs: x must be real numbers"),
        (lambda: np.cbrt(t + 1j), TypeError, "np.cbrt: x must be real numbers"),
        (lambda: np.ldexp(t, 0.5), TypeError, "np.ldexp: x2 must be integers"),
        (lambda: np.gcd(t, 2), NotImplementedError, "gcd takes integer tensors, not float32"),
        (lambda: np.add.at(whole, [0], 1.5), TypeError, "Cannot cast ufunc 'add' output from .*float.* to .*int64"),
        (lambda: np.add.at(whole, [3], 1), IndexError, "out of bounds"),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=words):
            call()
    assert t.tolist() == [[1, 1, 1]] * 2 and whole.tolist() == [1, 1, 1]


def test_parts_and_distances_at_the_ends():
    x = np.array([1.5, -2.25, np.inf, -np.inf, -0.0, np.nan])
    for result, expected in zip(np.modf(cg.tensor(x)), np.modf(x), strict=True):
        np.testing.assert_array_equal(result.numpy(), expected)
        np.testing.assert_array_equal(np.signbit(result.numpy()[:5]), np.signbit(expected[:5]))
    ends = np.array([0, -0.0, 5e-324, 1e-310, -3.7, np.inf, -np.inf, np.nan, 1.7e308, 1e-300])
    for function in (np.cbrt, np.degrees, np.fabs, lambda x: np.heaviside(x, 0.5), lambda x: np.frexp(x)[0], lambda x: np.frexp(x)[1],
                     *(lambda x, power=power: np.ldexp(x, power) for power in (1100, -1100, 5000, -5000))):
        np.testing.assert_array_equal(function(cg.tensor(ends)).numpy(), function(ends))
    for dtype in (np.float32, np.float64):
        limits = np.finfo(dtype)
        ends = np.array([1, -1, 0, np.inf, np.nan, limits.max, limits.tiny, -limits.smallest_subnormal], dtype)
        np.testing.assert_array_equal(np.spacing(cg.tensor(ends)).numpy(), np.spacing(ends))
    fraction, whole = cg.zeros(6, dtype=cg.float64), np.zeros(6)
    results = np.modf(cg.tensor(x), out=(fraction, whole))
    assert results[0] is fraction and results[1] is whole
    np.testing.assert_array_equal(whole, np.modf(x)[1])


# ----- SciPy -----
def special_ufuncs():
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    shared = {name: function for name, function in vars(special).items() if isinstance(function, np.ufunc) and hasattr(cg.special, name)}
    assert {"erf", "erfc", "expit", "ndtr", "xlogy"} <= set(shared)
    return special, shared


def test_special_functions_of_scipy_are_operators():
    _, shared = special_ufuncs()
    x = np.array([0.3, 0.6])
    for name, function in shared.items():
        if function.types[0].startswith("l"):       # its first operand is whole
            continue
        leaves = [cg.tensor(x / (1 + number), requires_grad=True) for number in range(function.nin)]
        result = function(*leaves)
        np.testing.assert_allclose(result.detach().numpy(), function(*[leaf.detach().numpy() for leaf in leaves]), rtol=1e-13)
        assert result.requires_grad and cg.autograd.grad(result.sum(), leaves[-1])[0].tolist() == cg.autograd.grad(
            getattr(cg.special, name)(*leaves).sum(), leaves[-1])[0].tolist()


def test_a_function_of_scipy_that_calls_a_ufunc_of_another_name():
    special, _ = special_ufuncs()
    x = np.array([1.5, 2.5])
    for arguments in ((cg.tensor(x), cg.tensor(x)), (2.0, cg.tensor(x)), (cg.tensor(x), 3)):
        same(special.zeta(*arguments), special.zeta(*[each.numpy() if isinstance(each, cg.Tensor) else each for each in arguments]))
    assert special.zeta(2.0, cg.tensor(x, requires_grad=True)).requires_grad


def test_special_functions_of_arrays_numbers_and_tensors():
    special, _ = special_ufuncs()
    x = np.array([0.0, 1.5])
    for arguments in ((cg.tensor(x), np.array([1.0, 2.0])), (2.0, cg.tensor(x)), (np.array([1.0, 2.0]), cg.tensor(x))):
        plain = [argument.numpy() if isinstance(argument, cg.Tensor) else argument for argument in arguments]
        same(special.xlogy(*arguments), special.xlogy(*plain))
    out = cg.zeros(2, dtype=cg.float64)
    assert special.erf(cg.tensor(x), out=out) is out
    same(out, special.erf(x))
    array = np.zeros(2)
    special.erfc(cg.tensor(x), out=array)
    np.testing.assert_allclose(array, special.erfc(x))
    with pytest.raises(RuntimeError, match="scipy.special.erf cannot write a tensor that requires grad into an array"):
        special.erf(cg.tensor(x, requires_grad=True), out=array)


def test_gamma_functions_of_scipy_take_numbers():
    """Their operators take tensors only, as torch's do; a number has no dtype beside a tensor."""
    special, _ = special_ufuncs()
    for dtype in ("float32", "float64"):
        x = np.array([0.3, 1.5], dtype)
        for function in (special.gammainc, special.gammaincc):
            for arguments in ((0.1, x), (2, x), (x, 0.1), (np.array([0.1, 2.0], dtype), x), (np.float64(0.1), x)):
                for place, array in enumerate(arguments):
                    if array is x:
                        leaves = [cg.tensor(y, requires_grad=True) if k == place and place else cg.tensor(y) if k == place else y
                                  for k, y in enumerate(arguments)]
                        result = function(*leaves)
                        assert result.dtype.name == dtype and result.requires_grad == bool(place)
                        np.testing.assert_allclose(result.detach().numpy(), function(*arguments), rtol=64 * np.finfo(dtype).eps)


def test_whole_orders_of_scipy_are_cut_off():
    special, _ = special_ufuncs()
    x = np.array([0.3, 1.5])
    for function in (special.kn, special.yn):
        for order in (2, 2.0, np.array([1.0, 3.0])):
            np.testing.assert_allclose(function(order, cg.tensor(x)).numpy(), function(order, x), rtol=1e-13)
        for order in (0.5, np.array([1.0, 2.7]), cg.tensor([1.0, 2.7])):
            with pytest.warns(RuntimeWarning, match="floating point number truncated to an integer"):
                result = function(order, cg.tensor(x))
            np.testing.assert_allclose(result.numpy(), function(np.trunc(order), x), rtol=1e-13)


def test_a_function_of_another_library_is_taken_for_no_special_one():
    other = np.frompyfunc(lambda x: x, 1, 1)
    with pytest.raises(TypeError, match="^the ufunc '.*' is not supported on cygrad tensors"):
        other(cg.ones(2))
