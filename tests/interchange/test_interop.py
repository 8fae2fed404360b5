"""NumPy and buffers, in and out: shared memory, lifetimes, read-only memory, and operators that stay on the tape."""

import array
import gc
import operator
import sys
import weakref

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import live_bytes
from cygrad.ops import dtypes

DTYPES = [row.name for row in dtypes.DTYPES if hasattr(np, row.name)]


def name(tensor):
    return str(tensor.dtype).rpartition(".")[2]


@pytest.fixture
def x():
    return cg.tensor([1.0, 2.0], dtype=cg.float64, requires_grad=True)


# ----- In -----


@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.parametrize(
    "convert", [cg.from_numpy, cg.asarray, cg.as_tensor], ids=["from_numpy", "asarray", "as_tensor"]
)
def test_arrays_come_in_without_a_copy(convert, dtype):
    a = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    t = convert(a)
    assert name(t) == dtype
    assert t.tolist() == a.tolist()
    assert t.data_ptr() == a.ctypes.data
    a[0, 0] = 1
    assert t.tolist() == a.tolist()
    t[1, 1] = 1
    assert a.tolist() == [[1, 1, 1], [1, 1, 1]]


LAYOUTS = [
    lambda a: a,
    lambda a: a.T,
    lambda a: a[::2],
    lambda a: a[:, 1:3],
    lambda a: a[1, 2],
    lambda a: a[None],
    lambda a: a[:0],
    lambda a: np.broadcast_to(a, (3, 4, 5)),
    lambda a: a.reshape(-1),
    lambda a: a[1:2, 3:],
]


@pytest.mark.parametrize("view", LAYOUTS)
def test_layouts_come_in_and_go_out(view):
    a = np.asarray(view(np.arange(20.0).reshape(4, 5)))
    a = a if a.flags.writeable else a.copy()
    t = cg.from_numpy(a)
    assert t.tolist() == a.tolist()
    assert tuple(t.shape) == a.shape
    if a.size:
        pairs = zip(t.stride(), a.strides, a.shape, strict=True)
        assert all(8 * stride == nbytes for stride, nbytes, size in pairs if size > 1)
    back = t.numpy()
    assert back.shape == a.shape
    assert back.tolist() == a.tolist()
    assert (t + 1).tolist() == (a + 1).tolist()


def test_tensor_copies():
    a = np.ones(3)
    t = cg.tensor(a)
    assert name(t) == "float64"
    a[0] = 5
    assert t.tolist() == [1, 1, 1]


NUMPY_DATA = [
    (np.float32(1.5), "float32", 1.5),
    (np.float64(1.5), "float64", 1.5),
    (np.int8(3), "int8", 3),
    (np.bool_(True), "bool", True),
    (np.array(2.5), "float64", 2.5),
    ([np.float32(1.5), np.float32(2.5)], "float32", [1.5, 2.5]),
    ([np.ones(2), np.zeros(2)], "float64", [[1, 1], [0, 0]]),
    (np.zeros((0, 3), np.int32), "int32", []),
]


@pytest.mark.parametrize(("data", "dtype", "values"), NUMPY_DATA, ids=str)
def test_numpy_data_keep_their_dtype(data, dtype, values):
    assert name(cg.tensor(data)) == dtype
    assert cg.tensor(data).tolist() == values


ASARRAY = [
    (lambda: cg.asarray([1, 2]), "int64", [1, 2]),
    (lambda: cg.asarray([1, 2], dtype=cg.float32), "float32", [1, 2]),
    (lambda: cg.asarray(3), "int64", 3),
    (lambda: cg.asarray(np.ones(2), dtype=cg.int32), "int32", [1, 1]),
    (lambda: cg.asarray([1.0], requires_grad=True), "float32", [1]),
]


@pytest.mark.parametrize(("call", "dtype", "values"), ASARRAY)
def test_asarray(call, dtype, values):
    assert name(call()) == dtype
    assert call().tolist() == values


def test_asarray_copy():
    a, t = np.ones(2), cg.ones(2)
    assert cg.asarray(t) is t
    assert cg.asarray(a, copy=False).data_ptr() == a.ctypes.data
    assert cg.asarray(a, copy=True).data_ptr() != a.ctypes.data
    assert cg.asarray(t, copy=True).data_ptr() != t.data_ptr()
    with pytest.raises(ValueError, match="can't alias"):
        cg.asarray([1, 2], copy=False)


def test_frombuffer():
    memory = bytearray(np.arange(4, dtype=np.int32).tobytes())
    t = cg.frombuffer(memory, dtype=cg.int32)
    assert t.tolist() == [0, 1, 2, 3]
    t[0] = 7
    assert memory[0] == 7
    assert cg.frombuffer(memory, dtype=cg.int32, offset=8).tolist() == [2, 3]
    assert cg.frombuffer(memory, dtype=cg.int32, count=2, offset=4).tolist() == [1, 2]
    assert cg.frombuffer(array.array("d", [1.5, 2.5]), dtype=cg.float64).tolist() == [1.5, 2.5]
    assert cg.frombuffer(memory, dtype=cg.int32, count=0 + 1).data_ptr() == t.data_ptr()


def test_frombuffer_of_unaligned_memory():
    memory = bytearray(1 + 8 * 3)
    memory[1:] = np.array([1.5, 2.5, 3.5]).tobytes()
    try:
        t = cg.frombuffer(memory, dtype=cg.float64, offset=1)
    except ValueError:
        return
    assert t.tolist() == [1.5, 2.5, 3.5]
    assert (t * 2).sum().item() == 15


REFUSED = [
    (lambda: cg.from_numpy([1]), TypeError, r"expected np.ndarray \(got list\)"),
    (lambda: cg.from_numpy(np.float64(3)), TypeError, r"expected np.ndarray \(got numpy.float64\)"),
    (lambda: cg.from_numpy(np.array(["a"])), TypeError, "can't convert np.ndarray of type numpy.str_"),
    (lambda: cg.from_numpy(np.array([object()])), TypeError, "can't convert np.ndarray of type numpy.object_"),
    (lambda: cg.from_numpy(np.zeros(2, [("a", "i4")])), TypeError, "can't convert np.ndarray of type numpy.void"),
    (
        lambda: cg.from_numpy(np.ones(2, ">f8")),
        ValueError,
        "given numpy array has byte order different from the native byte order",
    ),
    (lambda: cg.from_numpy(np.arange(3)[::-1]), ValueError, "At least one stride in the given numpy array is negative"),
    (
        lambda: cg.from_numpy(np.zeros(3, [("a", "i1"), ("b", "i4")])["b"]),
        ValueError,
        "strides not a multiple of the element byte size",
    ),
    (lambda: cg.frombuffer(bytearray(8)), TypeError, "dtype"),
    (lambda: cg.frombuffer(3, dtype=cg.int16), (ValueError, TypeError), "buffer"),
    (
        lambda: cg.frombuffer(b"", dtype=cg.uint8),
        ValueError,
        r"both buffer length \(0\) and count \(-1\) must not be 0",
    ),
    (
        lambda: cg.frombuffer(bytearray(3), dtype=cg.int16),
        ValueError,
        r"buffer length \(3 bytes\) after offset \(0 bytes\) must be",
    ),
    (
        lambda: cg.frombuffer(bytearray(4), dtype=cg.int16, count=5),
        ValueError,
        r"requested buffer length \(5 \* 2 bytes\) after off",
    ),
    (lambda: cg.frombuffer(bytearray(4), dtype=cg.int16, count=2**62), ValueError, "requested buffer length"),
    (
        lambda: cg.frombuffer(bytearray(4), dtype=cg.int16, offset=4),
        ValueError,
        r"offset \(4 bytes\) must be non-negative and no",
    ),
    (
        lambda: cg.frombuffer(bytearray(4), dtype=cg.int16, offset=-1),
        ValueError,
        r"offset \(-1 bytes\) must be non-negative",
    ),
]


@pytest.mark.cases(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ----- Out -----


@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.parametrize(
    "convert", [lambda t: t.numpy(), np.asarray, lambda t: t.__array__()], ids=["numpy", "asarray", "__array__"]
)
def test_tensors_go_out_without_a_copy(convert, dtype):
    t = cg.ones(2, 3, dtype=getattr(cg, dtype))
    a = convert(t)
    assert a.dtype == dtype
    assert a.flags.writeable
    assert a.ctypes.data == t.data_ptr()
    a[0, 0] = 0
    assert t.tolist() == a.tolist()
    assert t._version == 0


OUT_LAYOUTS = [
    lambda t: t.T,
    lambda t: t[1:, ::2],
    lambda t: t.expand(2, 3, 4),
    lambda t: t[0, 0],
    lambda t: t[:0],
    lambda t: t.reshape(2, 2, 3).permute(2, 0, 1),
]


@pytest.mark.cases("view", OUT_LAYOUTS)
@pytest.mark.cases("convert", [lambda t: t.numpy(), np.asarray, lambda t: np.array(memoryview(t))])
def test_views_go_out(convert, view):
    t = view(cg.arange(12.0).reshape(3, 4))
    assert convert(t).tolist() == t.tolist()
    assert convert(t).shape == tuple(t.shape)


def test_array_with_a_dtype_or_a_copy():
    t = cg.tensor([1.5, 2.5])
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert np.array(t, dtype=np.int64).tolist() == [1, 2]
    copy = np.array(t)
    copy[0] = 9
    assert t.tolist() == [1.5, 2.5]
    assert np.asarray(t, copy=False).ctypes.data == t.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, dtype=np.float64, copy=False)


LEAVING = [
    lambda t: t.numpy(),
    np.asarray,
    np.array,
    memoryview,
    lambda t: np.frombuffer(t),
    lambda t: t.__array__(),
    bytes,
]


@pytest.mark.parametrize("convert", LEAVING)
@pytest.mark.parametrize("derived", [lambda x: x, lambda x: x * 2, lambda x: x[0], lambda x: x.T])
def test_a_tensor_that_requires_a_gradient_does_not_leave_silently(x, convert, derived):
    with pytest.raises((RuntimeError, BufferError, TypeError, ValueError)):
        convert(derived(x))


@pytest.mark.parametrize("convert", [lambda t: t.numpy(), np.asarray, lambda t: t.__array__()])
def test_the_message_names_the_way_out(x, convert):
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        convert(x)
    assert convert(x.detach()).tolist() == [1, 2]


def test_force(x):
    assert x.numpy(force=True).tolist() == [1, 2]


@pytest.mark.cases("dtype", DTYPES)
def test_the_buffer_protocol(dtype):
    t = cg.ones(3, 2, dtype=getattr(cg, dtype))
    view = memoryview(t)
    a = t.numpy()
    assert (view.shape, view.strides, view.itemsize) == (a.shape, a.strides, a.itemsize)
    assert np.asarray(view).dtype == a.dtype
    assert not view.readonly
    assert np.asarray(view).tolist() == a.tolist()
    assert bytes(t) == a.tobytes()
    transposed = memoryview(t.T)
    assert transposed.strides == a.T.strides
    assert not transposed.c_contiguous


def test_a_buffer_of_0_dims():
    assert memoryview(cg.tensor(1.5)).shape == ()
    assert memoryview(cg.zeros(0, 3)).nbytes == 0


def test_strided_memory_needs_a_consumer_of_strides():
    with pytest.raises(BufferError):
        hash_of = __import__("hashlib").sha256
        hash_of(cg.ones(3, 2).T)


def test_python_numbers():
    assert cg.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert [type(value) for value in (cg.tensor(1).item(), cg.tensor(1.0).item(), cg.tensor(True).item())] == [
        int,
        float,
        bool,
    ]
    assert (float(cg.tensor(2.5)), int(cg.tensor(2.5)), bool(cg.tensor([0.0])), complex(cg.tensor(1.5))) == (
        2.5,
        2,
        False,
        1.5,
    )
    assert list(range(3))[cg.tensor(1)] == 1
    assert cg.tensor(1e-40, dtype=cg.float32).item() == np.float32(1e-40).item()


# ----- Lifetimes -----


class Owned(np.ndarray):
    """An array that takes weak references."""


def test_a_tensor_keeps_its_array_and_lets_it_go():
    a = np.arange(1000.0).view(Owned)
    owner = weakref.ref(a)
    t = cg.from_numpy(a)
    view = t[10:20]
    del a, t
    gc.collect()
    assert owner() is not None
    assert view.tolist() == list(range(10, 20))
    del view
    gc.collect()
    assert owner() is None


@pytest.mark.parametrize("convert", [lambda t: t.numpy(), np.asarray, lambda t: np.asarray(memoryview(t))])
@pytest.mark.parametrize("elements", [10, 1_000_000])
def test_an_array_keeps_its_tensor_and_lets_it_go(convert, elements):
    gc.collect()
    before = live_bytes()
    t = cg.arange(float(elements))
    a = convert(t)[5:]
    del t
    gc.collect()
    cg.zeros(elements).add_(7)  # would reuse the memory, were it free
    assert a[0] == 5
    assert a[-1] == elements - 1
    assert live_bytes() > before
    del a
    gc.collect()
    assert live_bytes() == before


def test_a_round_trip_is_the_same_memory():
    t = cg.ones(3)
    assert cg.from_numpy(t.numpy()).data_ptr() == t.data_ptr()
    a = np.ones(3)
    assert cg.from_numpy(a).numpy().ctypes.data == a.ctypes.data


def test_a_buffer_stays_exported_while_a_tensor_lives():
    memory = bytearray(16)
    t = cg.frombuffer(memory, dtype=cg.int32)
    view = t[1:]
    with pytest.raises(BufferError):
        memory.extend(b"more")
    del t
    with pytest.raises(BufferError):
        memory.extend(b"more")
    del view
    gc.collect()
    memory.extend(b"more")


@pytest.mark.parametrize("convert", [cg.from_numpy, cg.tensor, cg.asarray, lambda a: cg.from_numpy(a) * 2])
def test_references_do_not_leak(convert):
    a = np.ones(10)
    for _ in range(3):
        convert(a)
    before = sys.getrefcount(a)
    for _ in range(100):
        convert(a)
    gc.collect()
    assert sys.getrefcount(a) == before


# ----- Read-only memory -----


def read_only_array():
    a = np.ones(3)
    a.flags.writeable = False
    return a


READ_ONLY = {
    "array": lambda: cg.from_numpy(read_only_array()),
    "asarray": lambda: cg.asarray(read_only_array()),
    "broadcast array": lambda: cg.from_numpy(np.broadcast_to(np.ones(1), (3,))),
    "bytes": lambda: cg.frombuffer(np.ones(3).tobytes(), dtype=cg.float64),
    "view": lambda: cg.from_numpy(read_only_array())[:],
    "detached": lambda: cg.from_numpy(read_only_array()).detach(),
    "data": lambda: cg.from_numpy(read_only_array()).data,
}
WRITES = {
    "add_": lambda t: t.add_(1),
    "zero_": lambda t: t.zero_(),
    "setitem": lambda t: t.__setitem__(0, 5),
    "setitem by mask": lambda t: t.__setitem__(t > 0, 5),
    "out": lambda t: cg.add(cg.ones(3, dtype=cg.float64), 1, out=t),
    "copy_": lambda t: t.copy_(cg.zeros(3)),
    "through numpy": lambda t: t.numpy().__setitem__(0, 5),
    "through a buffer": lambda t: memoryview(t).__setitem__(0, 5.0),
    "+=": lambda t: operator.iadd(t, 1),
}


@pytest.mark.parametrize("write", list(WRITES))
@pytest.mark.cases("source", list(READ_ONLY))
def test_read_only_memory_stays_so(source, write):
    t = READ_ONLY[source]()
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        WRITES[write](t)
    assert t.tolist() == [1, 1, 1]


@pytest.mark.parametrize("source", list(READ_ONLY))
def test_read_only_memory_can_be_read(source):
    t = READ_ONLY[source]()
    assert (t * 2).tolist() == [2, 2, 2]
    assert not t.numpy().flags.writeable
    assert memoryview(t).readonly
    copy = t.clone()
    copy += 1
    assert copy.tolist() == [2, 2, 2]


def test_a_gradient_can_be_taken_of_read_only_memory():
    t = cg.from_numpy(read_only_array()).requires_grad_()
    (t * t).sum().backward()
    assert t.grad.tolist() == [2, 2, 2]


# ----- Operators between arrays and tensors -----

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.matmul]
FLAT_OPERATORS = [operator.floordiv, operator.mod]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("operate", OPERATORS)
def test_an_array_and_a_tensor_stay_on_the_tape(x, operate):
    a = np.array([3.0, 5.0])
    for result, expected in (
        (operate(a, x), operate(a, x.tolist())),
        (operate(x, a), operate(np.array(x.tolist()), a)),
    ):
        assert isinstance(result, cg.Tensor)
        assert result.requires_grad
        assert result.tolist() == pytest.approx(expected.tolist())
    left = operate(cg.tensor(a), x)
    assert cg.autograd.grad(operate(a, x).sum(), x)[0].tolist() == cg.autograd.grad(left.sum(), x)[0].tolist()


@pytest.mark.parametrize("operate", [*OPERATORS, *FLAT_OPERATORS, *COMPARISONS])
def test_an_array_and_a_tensor_without_gradient(operate):
    a, t = np.array([3.0, 5.0]), cg.tensor([1.0, 2.0], dtype=cg.float64)
    for result, expected in ((operate(a, t), operate(a, t.numpy())), (operate(t, a), operate(t.numpy(), a))):
        assert isinstance(result, cg.Tensor)
        assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("scalar", [np.float64(2), np.float32(2), np.int64(2), np.array(2.0)], ids=repr)
def test_numpy_scalars(x, scalar):
    for result, values in ((scalar * x, [2, 4]), (x * scalar, [2, 4]), (scalar - x, [1, 0]), (scalar / x, [2, 1])):
        assert isinstance(result, cg.Tensor)
        assert result.requires_grad
        assert result.tolist() == values


def test_a_0d_tensor_and_an_array():
    x = cg.tensor(2.0, dtype=cg.float64, requires_grad=True)
    y = np.array([1.0, 2.0]) * x
    assert isinstance(y, cg.Tensor)
    y.sum().backward()
    assert x.grad.item() == 3


UFUNCS = [
    (np.exp, cg.exp),
    (np.log, cg.log),
    (np.sin, cg.sin),
    (np.cos, cg.cos),
    (np.tan, cg.tan),
    (np.tanh, cg.tanh),
    (np.sqrt, cg.sqrt),
    (np.square, cg.square),
    (np.absolute, cg.abs),
    (np.negative, operator.neg),
    (np.log1p, cg.log1p),
    (np.expm1, cg.expm1),
    (np.reciprocal, cg.reciprocal),
]


@pytest.mark.parametrize(("ufunc", "function"), UFUNCS)
def test_ufuncs_stay_on_the_tape(x, ufunc, function):
    result = ufunc(x)
    assert isinstance(result, cg.Tensor)
    assert result.tolist() == function(x).tolist()
    assert cg.autograd.grad(result.sum(), x)[0].tolist() == cg.autograd.grad(function(x).sum(), x)[0].tolist()


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.subtract, np.true_divide, np.maximum, np.power, np.matmul])
def test_ufuncs_of_two(x, ufunc):
    for arguments in ((x, np.array([3.0, 5.0])), (np.array([3.0, 5.0]), x), (x, x), (x, cg.tensor([3.0, 5.0]))):
        result = ufunc(*arguments)
        assert isinstance(result, cg.Tensor)
        assert result.requires_grad
        plain = [argument.detach().numpy() if isinstance(argument, cg.Tensor) else argument for argument in arguments]
        assert result.tolist() == pytest.approx(ufunc(*plain).tolist())


def numpy_functions():
    """Return every ufunc of NumPy, and functions that would turn their argument into an array."""
    ufuncs = {name: value for name, value in vars(np).items() if isinstance(value, np.ufunc)}
    names = "sum mean prod max min std var cumsum dot concatenate stack where clip round sort transpose reshape ravel squeeze"
    names += (
        " copy array ascontiguousarray linalg.norm linalg.inv fft.fft einsum tensordot atleast_2d diff outer trace tile"
    )
    return ufuncs | {name: operator.attrgetter(name)(np) for name in names.split()}


@pytest.mark.parametrize("name", sorted(numpy_functions()))
def test_no_function_of_numpy_drops_the_gradient(name):
    function = numpy_functions()[name]
    vector, matrix = (cg.full(shape, 0.5, dtype=cg.float64, requires_grad=True) for shape in ((2,), (2, 2)))
    attempts = [(vector,), (matrix,), (vector, vector), (np.ones(2), vector), (matrix, 0), ([vector, vector],)]
    attempts += [("ij->ji", matrix), (vector > 0, vector, vector), (vector, 0, 1), (vector, (2, 1))]
    for arguments in attempts:
        try:
            results = function(*arguments)
        except Exception:  # noqa: BLE001  (raising is right: only a silent loss is wrong)
            continue
        results = results if isinstance(results, tuple) else (results,)
        assert all(isinstance(result, cg.Tensor) for result in results), arguments
        floats = [result for result in results if result.is_floating_point()]
        # np.atleast_2d has a result for each operand, which is an array among them
        assert any(result.requires_grad for result in floats) if name == "atleast_2d" else all(result.requires_grad for result in floats)


ONTO_ARRAYS = {
    "+=": lambda a, t: operator.iadd(a, t),
    "*=": lambda a, t: operator.imul(a, t),
    "out=": lambda a, t: np.exp(t, out=a),
    "out= of two": lambda a, t: np.add(a, t, out=a),
    "setitem": lambda a, t: a.__setitem__(slice(None), t),
    "reduce": lambda a, t: np.add.reduce(t),
    "at": lambda a, t: np.add.at(a, [0, 1], t),
    "full": lambda a, t: np.full(2, t),
    "list": lambda a, t: np.array([t, t]),
}


@pytest.mark.parametrize("name", list(ONTO_ARRAYS))
def test_writing_a_gradient_into_an_array_raises_or_stays_on_the_tape(x, name):
    a = np.ones(2)
    try:
        result = ONTO_ARRAYS[name](a, x * 3)
    except (RuntimeError, TypeError, ValueError, BufferError):
        assert a.tolist() == [1, 1]
    else:
        assert isinstance(result, cg.Tensor)
        assert result.requires_grad
        assert a.tolist() == [1, 1]


def test_an_unknown_object_gets_its_turn():
    class Reflecting:
        def __radd__(self, other):
            return "reflected"

        def __lt__(self, other):
            return "compared"

    assert cg.ones(2) + Reflecting() == "reflected"
    assert (cg.ones(2) > Reflecting()) == "compared"
