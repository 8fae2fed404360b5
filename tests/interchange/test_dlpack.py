"""DLPack: arrays out and in, lifetimes on both sides, capsules of either kind, and producers with wrong or hostile fields."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

import cygrad as cg
from cygrad._testing import live_bytes
from cygrad.ops import dtypes

DTYPES = [row.name for row in dtypes.DTYPES if hasattr(np, row.name)]
LAYOUTS = [lambda a: a, lambda a: a.T, lambda a: a[::2], lambda a: a[:, 1:3], lambda a: a[1, 2], lambda a: a[None], lambda a: a[:0],
           lambda a: a[1:2, 3:]]
signalled = pytest.mark.skipif(not hasattr(np, "unstack"), reason="NumPy before 2.1, whose DLPack cannot say that memory is read-only")


class Producer:
    """A producer that returns the result of `make`; one from before DLPack 1.0 takes no keywords but `stream`."""

    def __init__(self, make, device=(1, 0), old=False):
        self.make, self.device, self.old, self.requests = make, device, old, []

    def __dlpack__(self, **keywords):
        self.requests.append(keywords)
        if self.old and keywords.keys() - {"stream"}:
            raise TypeError(f"unexpected keyword {min(keywords)}")
        return self.make(**keywords)

    def __dlpack_device__(self):
        return self.device


def capsule_name(capsule):
    return repr(capsule).split('"')[1]


# ----- Out -----
@pytest.mark.usefixtures("no_leak")
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
def test_tensors_go_out(dtype, layout):
    t = layout(cg.arange(20).reshape(4, 5).to(getattr(cg, dtype)))
    a = np.from_dlpack(t)
    assert (a.dtype, a.shape, a.tolist()) == (dtype, tuple(t.shape), t.tolist())
    if a.size:
        assert a.ctypes.data == t.data_ptr()
        assert a.strides == tuple(stride * t.itemsize for stride in t.stride())
        t.fill_(0)
        assert not a.any()


VERSIONS = [({}, "dltensor"), ({"max_version": None}, "dltensor"), ({"max_version": (0, 8)}, "dltensor"),
            ({"max_version": (1, 0)}, "dltensor_versioned"), ({"max_version": (99, 9), "copy": True}, "dltensor_versioned"),
            ({"stream": None, "dl_device": (1, 0), "copy": False}, "dltensor"), ({"stream": -1, "copy": True}, "dltensor")]


@pytest.mark.usefixtures("no_leak")
@pytest.mark.parametrize(("keywords", "name"), VERSIONS, ids=str)
def test_capsules_without_a_consumer_are_freed(keywords, name):
    assert capsule_name(cg.ones(1000).__dlpack__(**keywords)) == name


def test_copy():
    t = cg.ones(3)
    for copy, shared in ((True, False), (None, True), (False, True)):
        a = np.from_dlpack(Producer(lambda flag=copy, **_: t.__dlpack__(copy=flag)))
        assert (a.ctypes.data == t.data_ptr()) is shared


def test_device():
    assert cg.ones(1).__dlpack_device__() == (1, 0)


REFUSED_OUT = [
    ({"stream": 1}, AssertionError, "stream should be None on cpu"),
    ({"stream": "1"}, TypeError, "stream must be ``int`` or ``none``"),
    ({"dl_device": (2, 0)}, BufferError, "unsupported device requested"),
    ({"dl_device": 1}, TypeError, "dl_device"),
    ({"max_version": 1}, TypeError, "max_version"),
]


@pytest.mark.parametrize(("keywords", "error", "message"), REFUSED_OUT)
def test_refused_out(keywords, error, message):
    with pytest.raises(error, match=message):
        cg.ones(1).__dlpack__(**keywords)


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 2], ids=["leaf", "result"])
def test_gradients_do_not_go_out(make):
    x = make(cg.ones(2, requires_grad=True))
    for copy in (None, True):
        with pytest.raises(BufferError, match="Can't export tensors that require gradient, use tensor.detach()"):
            x.__dlpack__(copy=copy)
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        cg.from_dlpack(x)
    assert np.from_dlpack(x.detach()).tolist() == x.tolist()


def read_only():
    array = np.arange(3.0)
    array.flags.writeable = False
    return array


@signalled
def test_read_only_tensors_stay_read_only():
    t = cg.from_numpy(read_only())
    assert not np.from_dlpack(t).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()                                  # the old capsule has no flag for that
    assert capsule_name(t.__dlpack__(copy=True)) == "dltensor"
    assert np.from_dlpack(Producer(lambda **_: t.__dlpack__(max_version=(1, 0), copy=True))).flags.writeable


@pytest.mark.usefixtures("no_leak")
def test_arrays_outlive_their_tensor():
    before = live_bytes()
    a = np.from_dlpack(cg.arange(1000.0)[500:])
    gc.collect()
    assert live_bytes() - before == 4000
    assert a[0] == 500
    thread = threading.Thread(target=lambda array=[a]: array.pop())
    del a
    thread.start()
    thread.join()


# ----- In -----
@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES)
@pytest.mark.parametrize("old", [False, True])
def test_arrays_come_in(dtype, layout, old):
    a = np.asarray(layout(np.arange(20).reshape(4, 5).astype(dtype)))
    t = cg.from_dlpack(Producer(a.__dlpack__, old=old))
    assert (str(t.dtype), tuple(t.shape), t.tolist()) == (f"cygrad.{dtype}", a.shape, a.tolist())
    if a.base is not None and a.size:
        a[...] = 0
        assert not t.any()
        t.fill_(1)
        assert a.all()


@signalled
def test_read_only_arrays_stay_read_only():
    t = cg.from_dlpack(read_only())
    assert (t + 1).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        t.zero_()
    assert cg.from_dlpack(read_only(), copy=True).zero_().tolist() == [0, 0, 0]


@pytest.mark.parametrize("old", [False, True])
def test_copies_in(old):
    a = np.arange(3.0)
    for copy, shared in ((True, False), (None, True), (False, True)):
        producer = Producer(a.__dlpack__, old=old)
        assert (cg.from_dlpack(producer, copy=copy).data_ptr() == a.ctypes.data) is shared
        assert producer.requests[0].get("copy") is copy
        assert producer.requests[0]["max_version"] >= (1, 0)


def test_a_copy_is_refused_with_copy_false():
    with pytest.raises(ValueError, match="it gave a copy"):
        cg.from_dlpack(Producer(lambda **_: cg.ones(2).__dlpack__(max_version=(1, 0), copy=True)), copy=False)


def test_tensors_come_in_with_their_version():
    x, t = cg.ones(2, requires_grad=True), cg.ones(2)
    assert cg.from_dlpack(t).data_ptr() == t.data_ptr()
    assert cg.from_dlpack(t, copy=True).data_ptr() != t.data_ptr()
    product = (x * t).sum()
    cg.from_dlpack(t).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_tensors_over_foreign_memory_compute():
    t = cg.from_dlpack(np.linspace(0, 1, 1001)).requires_grad_()
    t.exp().sum().backward()
    assert cg.allclose(t.grad, t.detach().exp())


def test_the_array_outlives_its_name():
    a = np.arange(1000.0)
    gone = weakref.ref(a)
    t = cg.from_dlpack(a)[10:]
    del a
    assert gone() is not None
    assert t[0].item() == 10
    del t
    assert gone() is None


def test_asarray_takes_objects_that_have_dlpack_only():
    a = np.arange(3.0)
    assert cg.asarray(Producer(a.__dlpack__)).data_ptr() == a.ctypes.data
    assert cg.asarray(Producer(a.__dlpack__), copy=True).data_ptr() != a.ctypes.data


def test_a_capsule_is_consumed_once():
    capsule = np.arange(3.0).__dlpack__()
    assert cg.from_dlpack(capsule).tolist() == [0, 1, 2]
    assert capsule_name(capsule) == "used_dltensor"
    with pytest.raises(RuntimeError, match="invalid capsule. Note that DLTensor capsules can be consumed only once"):
        cg.from_dlpack(capsule)


def raising(error):
    def make(**_):
        raise error

    return make


REFUSED_IN = [
    ([1.0], RuntimeError, "from_dlpack received an invalid capsule"),
    (None, RuntimeError, "from_dlpack received an invalid capsule"),
    (Producer(lambda **_: 5), RuntimeError, "from_dlpack received an invalid capsule"),
    (Producer(lambda **_: np.random.default_rng().bit_generator.capsule), RuntimeError, "from_dlpack received an invalid capsule"),
    (Producer(raising(KeyError("mine"))), KeyError, "mine"),
    (Producer(raising(TypeError("mine"))), TypeError, "mine"),
    (Producer(None, device=(2, 0)), BufferError, "on the CPU only"),
    (np.arange(3.0)[::-1], ValueError, "At least one stride in the given DLPack tensor is negative"),
]


@pytest.mark.parametrize(("obj", "error", "message"), REFUSED_IN)
def test_refused_in(obj, error, message):
    with pytest.raises(error, match=message):
        cg.from_dlpack(obj)


def test_another_device_is_refused():
    assert cg.from_dlpack(np.ones(2), device="cpu").tolist() == [1, 1]
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        cg.from_dlpack(np.ones(2), device="cuda")


# ----- Capsules made by hand -----
class Described(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Described), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
                ("flags", ctypes.c_uint64), ("tensor", Described)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Handmade:
    """A capsule over 16 float32 with any fields; `deleted` counts the calls of its deleter."""

    def __init__(self, *, versioned=True, shape=(4, 4), strides=(4, 1), data=None, major=1, flags=0, deleter=True, **fields):
        self.memory = np.arange(16, dtype=np.float32)
        self.deleted = 0
        self.managed = (Versioned if versioned else Legacy)()
        tensor = self.managed.tensor
        tensor.data = self.memory.ctypes.data if data is None else data
        tensor.device, tensor.ndim, tensor.code, tensor.bits, tensor.lanes = 1, len(shape or ()), 2, 32, 1
        tensor.shape = None if shape is None else (ctypes.c_int64 * len(shape))(*shape)
        tensor.strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        for name, value in fields.items():
            setattr(tensor, name, value)
        if versioned:
            self.managed.major, self.managed.minor, self.managed.flags = major, 0, flags
        if deleter:
            self.managed.deleter = DELETER(self.delete)
        self.name = b"dltensor_versioned" if versioned else b"dltensor"
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)

    def delete(self, managed):
        assert managed == ctypes.addressof(self.managed)
        self.deleted += 1


get_pointer, set_name = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_SetName
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]


@pytest.mark.usefixtures("no_leak")
@pytest.mark.parametrize("name", [b"dltensor", b"dltensor_versioned"], ids=repr)
def test_our_deleter_needs_no_gil_and_no_python(name):
    """A consumer in C reads the struct and calls the deleter from a thread of its own."""
    kind = Versioned if name.endswith(b"versioned") else Legacy
    t = cg.arange(6.0).reshape(2, 3).T
    capsule = t.__dlpack__(max_version=(1, 0) if kind is Versioned else None)
    managed = kind.from_address(get_pointer(capsule, name))
    used = b"used_" + name
    set_name(capsule, used)
    fields = managed.tensor
    assert (fields.data, fields.device, fields.ndim, fields.code, fields.bits, fields.lanes) == (t.data_ptr(), 1, 2, 2, 32, 1)
    assert (fields.shape[:2], fields.strides[:2], fields.byte_offset) == ([3, 2], [1, 3], 0)
    if kind is Versioned:
        assert (managed.major, managed.flags) == (1, 0)
    address = t.data_ptr()
    del t, capsule
    assert (ctypes.c_float * 6).from_address(address)[:] == [0, 1, 2, 3, 4, 5]
    thread = threading.Thread(target=managed.deleter, args=(ctypes.addressof(managed),))    # ctypes gives up the GIL
    thread.start()
    thread.join()


ROWS = np.arange(16).reshape(4, 4)
SOUND = [
    ({}, ROWS),
    ({"strides": None}, ROWS),
    ({"strides": (1, 4)}, ROWS.T),
    ({"byte_offset": 4, "shape": (3, 5), "strides": (5, 1)}, np.arange(1, 16).reshape(3, 5)),
    ({"byte_offset": 8, "shape": (3,), "strides": None}, np.array([2, 3, 4])),
    ({"shape": (), "strides": ()}, np.array(0)),
    ({"shape": None, "strides": None}, np.array(0)),
    ({"shape": (0, 3), "strides": None, "data": 0}, np.zeros((0, 3))),
    ({"shape": (0, 3), "strides": (-7, 2**62)}, np.zeros((0, 3))),
    ({"shape": (1, 4), "strides": (-(2**60), 4)}, np.array([[0, 4, 8, 12]])),
    ({"shape": (2, 3), "strides": (0, 1)}, np.array([[0, 1, 2]] * 2)),
    ({"deleter": False}, ROWS),
    ({"shape": (1,) * 64, "strides": None}, np.zeros((1,) * 64)),
]


@pytest.mark.cases("versioned", [False, True])
@pytest.mark.cases(("fields", "values"), SOUND, ids=lambda value: str(value)[:60])
def test_sound_capsules(fields, values, versioned):
    handmade = Handmade(versioned=versioned, **fields)
    t = cg.from_dlpack(handmade.capsule)
    assert capsule_name(handmade.capsule) == "used_" + handmade.name.decode()
    assert (tuple(t.shape), t.tolist()) == (values.shape, values.tolist())
    view = t.detach()
    del t
    assert handmade.deleted == 0
    del view
    assert handmade.deleted == fields.get("deleter", True)


UNSOUND = [
    ({"device": 2}, BufferError, "on the CPU only"),
    ({"lanes": 4}, BufferError, "Unsupported DLPack dtype"),
    ({"lanes": 0}, BufferError, "Unsupported DLPack dtype"),
    ({"code": 4, "bits": 32}, BufferError, "Unsupported DLPack dtype"),
    ({"code": 5, "bits": 32}, BufferError, "Unsupported DLPack dtype"),
    ({"code": 6, "bits": 32}, BufferError, "Unsupported DLPack dtype"),
    ({"bits": 4}, BufferError, "Unsupported DLPack dtype"),
    ({"ndim": -1}, BufferError, "-1 dims"),
    ({"ndim": 65}, BufferError, "65 dims"),
    ({"ndim": 2**31 - 1}, BufferError, "dims"),
    ({"shape": None, "ndim": 1}, BufferError, "dims"),
    ({"shape": (4, -1)}, BufferError, "impossible layout"),
    ({"shape": (2**40, 2**40)}, BufferError, "impossible layout"),
    ({"shape": (2**40, 2**40), "strides": None}, BufferError, "impossible layout"),
    ({"shape": (0, 2**40, 2**40), "strides": None}, BufferError, "impossible layout"),
    ({"strides": (4, -1)}, ValueError, "stride in the given DLPack tensor is negative"),
    ({"strides": (2**62, 1)}, BufferError, "impossible layout"),
    ({"data": 0}, BufferError, "no memory"),
    ({"byte_offset": 2, "shape": (2, 2)}, BufferError, "not aligned"),
    ({"major": 2, "device": 77}, BufferError, "Unsupported DLPack version 2.0"),
    ({"major": 0}, BufferError, "Unsupported DLPack version 0.0"),
]


@pytest.mark.cases(("fields", "error", "message"), UNSOUND, ids=str)
def test_unsound_capsules_are_refused_and_deleted_once(fields, error, message):
    for versioned in (True, False)[:1 if "major" in fields else 2]:
        handmade = Handmade(versioned=versioned, **fields)
        with pytest.raises(error, match=message):
            cg.from_dlpack(handmade.capsule)
        assert handmade.deleted == 1
        assert capsule_name(handmade.capsule).startswith("used_")


@pytest.mark.parametrize("flags", range(4))
def test_flags(flags):
    handmade = Handmade(flags=flags)
    t = cg.from_dlpack(handmade.capsule)
    assert t.numpy().flags.writeable == (not flags & 1)
    out = Handmade(flags=flags)
    if flags & 2:
        with pytest.raises(ValueError, match="gave a copy"):
            cg.from_dlpack(out.capsule, copy=False)
        assert out.deleted == 1
    elif flags & 1:
        with pytest.raises(BufferError, match="read-only"):
            t.__dlpack__()


def test_a_deleter_may_run_python_and_raise_nothing_into_us():
    """The last tensor dies while an exception propagates."""
    handmade = Handmade()

    def fail():
        t = cg.from_dlpack(handmade.capsule)
        raise KeyError(t.shape)

    with pytest.raises(KeyError, match="Size"):
        fail()
    gc.collect()
    assert handmade.deleted == 1


@signalled
@pytest.mark.usefixtures("no_leak")
def test_many_round_trips_leak_nothing():
    t = cg.arange(1000.0)
    for _ in range(1000):
        t = cg.from_dlpack(np.from_dlpack(t))
    assert t[999].item() == 999
    del t
