"""save and load: round trips, shared memory, files of all kinds, and files that are damaged or hostile."""

import binascii
import contextlib
import gzip
import io
import json
import math
import os
import random
import stat
import struct
import threading

import numpy as np
import pytest

import cygrad as cg
from cygrad import serialization
from cygrad._testing import fail_alloc, live_bytes
from cygrad.ops import dtypes


def saved(obj):
    file = io.BytesIO()
    cg.save(obj, file)
    return file.getvalue()


def loaded(data, **options):
    return cg.load(io.BytesIO(data), **options)


def same(a, b):
    """Return True if two trees are equal, their types and the tensors' metadata included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, cg.Tensor):
        return (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad) and a.tolist() == b.tolist()
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(p, q) for p, q in zip(a.items(), b.items(), strict=True))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or a != a and b != b


DTYPES = [getattr(cg, row.name) for row in dtypes.DTYPES]
OBJECTS = [
    None, True, False, 0, -7, 10**40, 1.5, -0.0, math.inf, -math.inf, math.nan, 1 + 2j, complex(math.inf, -0.0), "", "text", "é\ud800\n\0",
    b"", b"bytes\0", cg.Size([]), cg.Size([2, 3]), cg.float64, [], (), {}, [[], ()], {"a": {}}, [cg.bool, (1, [2])],
    {1: "int", "1": "str", None: 0, (1, ("a", b"b")): 3, 1.5: 4, cg.int8: 5, cg.Size([1]): 6, math.inf: 7},
    {"tensor": 0, "dict": [], "float": "nan"},
]


@pytest.mark.cases("obj", OBJECTS, ids=repr)
def test_plain_data_come_back(obj):
    assert same(loaded(saved(obj)), obj)


def test_the_sign_of_zero_is_kept():
    assert math.copysign(1, loaded(saved(-0.0))) == -1
    assert math.copysign(1, loaded(saved(complex(0, -0.0))).imag) == -1


LAYOUTS = [lambda t: t, lambda t: t.T, lambda t: t[1:], lambda t: t[:, 1::2], lambda t: t[0, 0], lambda t: t[:0],
           lambda t: t[None, :, None],
           lambda t: t[:, :1].expand(3, 100), lambda t: t[:1, :1].expand(2, 50), lambda t: t.reshape((1,) * 8 + (3, 4))]


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", DTYPES, ids=repr)
def test_tensors_come_back(dtype, layout):
    t = layout(cg.arange(12).reshape(3, 4).to(dtype))
    back = loaded(saved(t))
    assert same(back, t)
    assert [stride == 0 for stride in back.stride()] == [stride == 0 and size > 1 for stride, size in zip(t.stride(), t.shape, strict=True)]
    assert same(loaded(saved([t, t[...]]))[1], t)           # shared memory: with the same layout


def test_a_permuted_tensor_keeps_its_order():
    assert loaded(saved(cg.zeros(2, 3, 4).permute(2, 0, 1))).stride() == (1, 12, 4)


def test_a_view_takes_its_own_bytes_only():
    big = cg.zeros(100000)
    assert len(saved(big[5:7])) < 1000
    assert len(saved([big[5:7], big[9:]])) > 390000         # shared memory is kept as a whole, with the gap
    assert len(saved(cg.ones(1).expand(100000))) < 1000
    assert len(saved(cg.zeros(1000, 100)[:, 0])) < 5000


def test_shared_memory_is_shared_again():
    base = cg.arange(6.0)
    row, data, other = loaded(saved([base[2:4], base.data, cg.zeros(1)]))
    row.fill_(9)
    assert data.tolist() == [0, 1, 9, 9, 4, 5]
    assert row._version == data._version == 1
    assert other._version == 0


def test_one_object_comes_back_as_one():
    x, blob = cg.ones(2, requires_grad=True), bytes(3)
    back = loaded(saved({"a": x, "b": [x], "c": (blob, blob)}))
    assert back["a"] is back["b"][0]
    assert back["c"][0] is back["c"][1]
    assert back["a"].requires_grad and back["a"].is_leaf


def test_loaded_tensors_are_ordinary():
    x = loaded(saved(cg.ones(3, requires_grad=True)))
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert x.data_ptr() % 16 == 0


# ----- Refused when saving -----
def nested(depth):
    obj = 0
    for _ in range(depth):
        obj = [obj]
    return obj


def cyclic():
    obj = []
    obj.append({"inner": obj})
    return obj


class Field(cg.Tensor):
    pass


REFUSED = [
    (lambda: object(), TypeError, "obj is a builtins.object, which cannot be saved"),
    (lambda: {"a": [1, {2}]}, TypeError, r"obj\['a'\]\[1\] is a builtins.set"),
    (lambda: np.zeros(2), TypeError, "from_numpy"),
    (lambda: np.float32(1), TypeError, "item"),
    (lambda: print, TypeError, "builtin_function"),
    (lambda: type("Local", (cg.Tensor,), {})([1.0]), TypeError, "a class that load.* could not find by that name; .*as_subclass"),
    (lambda: [cg.ones(1, requires_grad=True) * 2], RuntimeError, r"Only Tensors created explicitly by the user.*obj\[0\].*MulBackward0"),
    (lambda: nested(65), ValueError, "more than 64 deep"),
    (cyclic, ValueError, "contains itself"),
]


@pytest.mark.parametrize(("make", "error", "message"), REFUSED)
def test_refused_objects(make, error, message, tmp_path):
    with pytest.raises(error, match=message):
        cg.save(make(), tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_the_deepest_nesting_comes_back():
    assert loaded(saved(nested(64))) == nested(64)
    assert saved({(((((),),),),): nested(50)})


# ----- Files -----
@pytest.mark.parametrize("as_path", [str, lambda path: path, os.fsencode], ids=["str", "Path", "bytes"])
def test_paths(as_path, tmp_path):
    path = as_path(tmp_path / "file.cg")
    cg.save([cg.ones(2)], path)
    assert same(cg.load(path), [cg.ones(2)])
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.cg"]


def test_records_follow_each_other_in_one_file():
    file = io.BytesIO()
    file.write(b"before")
    for number in range(3):
        cg.save(cg.full((number,), 1.0), file)
    file.seek(6)
    assert [cg.load(file).numel() for _ in range(3)] == [0, 1, 2]


class Unseekable:
    def __init__(self, data):
        self.read = io.BytesIO(data).read


def test_files_that_cannot_seek(tmp_path):
    assert same(cg.load(Unseekable(saved([cg.ones(3), b"b"]))), [cg.ones(3), b"b"])
    with gzip.open(tmp_path / "file.gz", "wb") as file:
        cg.save(cg.ones(3), file)
    with gzip.open(tmp_path / "file.gz") as file:
        assert same(cg.load(file), cg.ones(3))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=cg.save, args=(cg.ones(50000), tmp_path / "pipe"))
    writer.start()
    assert cg.load(tmp_path / "pipe").sum().item() == 50000
    writer.join()
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


class FullDisk(io.BytesIO):
    def write(self, data):
        raise OSError("no space left")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    cg.save("old", path)
    with pytest.raises(OSError, match="no space"):
        cg.save("new", FullDisk())
    monkeypatch.setattr(os, "fsync", lambda number: FullDisk().write(b""))
    with pytest.raises(OSError, match="no space"):
        cg.save("new", path)
    monkeypatch.undo()
    assert cg.load(path) == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_mode_and_link_of_the_target_are_kept(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    cg.save(1, path)
    path.chmod(0o600)
    link.symlink_to(path)
    cg.save(2, link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert cg.load(path) == 2


def test_text_files_are_refused(tmp_path):
    with pytest.raises(TypeError):
        cg.save(1, io.StringIO())
    (tmp_path / "text").write_text("some text that is long enough")
    with open(tmp_path / "text") as file, pytest.raises(TypeError, match="binary mode"):
        cg.load(file)


@pytest.mark.parametrize("place", ["cpu", cg.device("cpu"), None])
def test_map_location(place):
    assert loaded(saved(1), map_location=place) == 1


def test_another_map_location_is_refused():
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        loaded(saved(1), map_location="cuda")


# ----- Mapped files -----
@pytest.fixture
def mapped(tmp_path):
    cg.save({"a": cg.arange(6.0), "b": cg.zeros(0), "c": b"text", "d": cg.ones(2, requires_grad=True)}, tmp_path / "file")
    return tmp_path / "file"


@pytest.mark.parametrize("mode", [True, "c"])
def test_mapped_copy_on_write(mapped, mode):
    before, live = mapped.read_bytes(), live_bytes()
    tree = cg.load(mapped, mmap=mode)
    assert live_bytes() - live < 64                             # no memory of ours
    assert same(tree, cg.load(mapped))
    tree["a"].add_(1)
    assert tree["a"].tolist() == [1, 2, 3, 4, 5, 6]
    (tree["d"] * 2).sum().backward()
    assert tree["d"].grad.tolist() == [2, 2]
    assert mapped.read_bytes() == before


def test_mapped_read_only(mapped):
    a = cg.load(mapped, mmap="r")["a"]
    assert (a * 2).tolist() == [0, 2, 4, 6, 8, 10]
    assert not a.numpy().flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        a.add_(1)
    cg.save("new", mapped)                                      # the mapped file stays unchanged
    assert a.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("mode", ["w", "r+", 2, None])
def test_unknown_modes_are_refused(mapped, mode):
    with pytest.raises(ValueError, match="mmap must be"):
        cg.load(mapped, mmap=mode)


def test_file_objects_cannot_be_mapped():
    with pytest.raises(ValueError, match="mmap needs a path"):
        loaded(saved(1), mmap=True)


# ----- Damaged and hostile files -----
def record(header, segments=b"", length=None, checksum=None):
    """Return a file with any header, length and checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = struct.pack("<8sQI", serialization.MAGIC, len(text) if length is None else length,
                        binascii.crc32(text) if checksum is None else checksum) + text
    return start + bytes(-len(start) % 64) + segments


def header(tree=None, blobs=0, tensors=(), segments=()):
    return {"tree": tree, "blobs": blobs, "tensors": tensors, "segments": segments}


def with_tensor(*described):
    return record(header({"tensor": 0}, tensors=[list(described)], segments=[[64, binascii.crc32(bytes(64))]]), bytes(64))


def test_the_files_made_here_would_be_sound():
    assert loaded(record(header([1]))) == [1]
    assert loaded(with_tensor(0, 8, "float64", [7], [1], False)).tolist() == [0] * 7


HUGE = 2**62
HOSTILE = {
    "empty": b"",
    "short": serialization.MAGIC,
    "text": b"This is a text of some length, and no record.",
    "pickle": b"\x80\x04" + bytes(100),
    "zip": b"PK\x03\x04" + bytes(100),
    "another version": serialization.MAGIC[:-1] + b"\x02" + bytes(100),
    "long header": record(header(), length=10**6),
    "huge header": record(header(), length=2**64 - 1),
    "checksum": record(header(), checksum=0),
    "no JSON": record(b"{"),
    "no UTF-8": record(b'"\xff\xfe"'),
    "deep JSON": record(b"[" * 100000),
    "NaN": record(b'{"tree": NaN, "blobs": 0, "tensors": [], "segments": []}'),
    "long number": record(b'{"tree": ' + b"9" * 5000 + b', "blobs": 0, "tensors": [], "segments": []}'),
    "a list": record([]),
    "missing": record({"tree": 1}),
    "segments": record(header(segments=[[HUGE, 0]])),
    "more segments": record(header(segments=[[64, 0]] * 3), bytes(64)),
    "negative segment": record(header(segments=[[-64, 0]])),
    "float segment": record(header(segments=[[1.0, 0]])),
    "odd segment": record(header(segments=[[1, 0, 0]])),
    "no segments": record(header(segments=7)),
    "blobs": record(header(blobs=1)),
    "negative blobs": record(header(blobs=-1)),
    "size": with_tensor(0, 0, "float32", [17], [1], False),
    "sizes": with_tensor(0, 0, "float32", [HUGE, HUGE], [0, 0], False),
    "sizes of nothing": with_tensor(0, 0, "float32", [0, HUGE, HUGE], [0, 0, 0], False),
    "negative size": with_tensor(0, 0, "float32", [-1], [1], False),
    "stride": with_tensor(0, 0, "float32", [2], [16], False),
    "huge stride": with_tensor(0, 0, "float32", [2], [2**63], False),
    "huge stride of one": with_tensor(0, 0, "float32", [1], [2**63], False),
    "negative stride": with_tensor(0, 60, "float32", [2], [-1], False),
    "strides": with_tensor(0, 0, "float32", [1, 1], [1], False),
    "many dims": with_tensor(0, 0, "float32", [1] * 65, [1] * 65, False),
    "bool size": with_tensor(0, 0, "float32", [True], [1], False),
    "float size": with_tensor(0, 0, "float32", [1.0], [1], False),
    "text size": with_tensor(0, 0, "float32", "1", "1", False),
    "offset": with_tensor(0, 64, "float32", [1], [1], False),
    "askew": with_tensor(0, 2, "float32", [1], [1], False),
    "negative offset": with_tensor(0, -4, "float32", [1], [1], False),
    "huge offset": with_tensor(0, 2**70, "float32", [0], [1], False),
    "dtype": with_tensor(0, 0, "float31", [1], [1], False),
    "no dtype": with_tensor(0, 0, None, [1], [1], False),
    "list dtype": with_tensor(0, 0, [], [1], [1], False),
    "requires_grad": with_tensor(0, 0, "int32", [1], [1], True),
    "no requires_grad": with_tensor(0, 0, "float32", [1], [1], 1),
    "segment": with_tensor(1, 0, "float32", [1], [1], False),
    "last segment": with_tensor(-1, 0, "float32", [1], [1], False),
    "tensor": record(header({"tensor": 0})),
    "last tensor": record(header({"tensor": -1})),
    "no tensor": record(header({"tensor": None})),
    "code": record(header({"eval": "1"})),
    "method": record(header({"__class__": 1})),
    "two forms": record(header({"float": "1", "size": []})),
    "no form": record(header({})),
    "no float": record(header({"float": "one"})),
    "no complex": record(header({"complex": ["1"]})),
    "no size": record(header({"size": ["x"]})),
    "unhashable": record(header({"dict": [[[], 1]]})),
    "pairs": record(header({"dict": [[1]]})),
    "no dict": record(header({"dict": 5})),
    "nested": record(b'{"tree":' + b"[" * 70 + b"]" * 70 + b',"blobs":0,"tensors":[],"segments":[]}'),
    "nested tuples": record(b'{"tree":' + b'{"tuple":[' * 200 + b"]}" * 200 + b',"blobs":0,"tensors":[],"segments":[]}'),
}


@pytest.mark.slow
@pytest.mark.usefixtures("no_leak")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name, tmp_path):
    with pytest.raises(ValueError, match="this is no sound file of cygrad.save: "):
        loaded(HOSTILE[name])
    (tmp_path / "file").write_bytes(HOSTILE[name])
    for mode in (False, "r", "c"):
        with pytest.raises(ValueError, match="this is no sound file of cygrad.save: "):
            cg.load(tmp_path / "file", mmap=mode)


def test_a_changed_byte_of_the_data_is_found():
    data = bytearray(saved(cg.ones(1000)))
    data[-2000] ^= 1
    with pytest.raises(ValueError, match="the bytes of segment 0 were changed"):
        loaded(data)


def test_bytes_after_the_end_of_a_path_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(saved(1) + b"more")
    with pytest.raises(ValueError, match="4 bytes follow its end"):
        cg.load(tmp_path / "file")


SAMPLE = {"a": cg.arange(40.0).reshape(5, 8), "b": [(1, 2.5, "text", b"blob"), cg.Size([3]), cg.float64],
          "c": cg.zeros(3, 2, dtype=cg.int16).T}


@pytest.mark.slow
@pytest.mark.usefixtures("no_leak")
@pytest.mark.parametrize("seed", range(6))
def test_fuzzed_files(seed, tmp_path):
    """Flipped, cut, doubled and overwritten bytes give a ValueError or, in the padding, the same objects."""
    rng, data = random.Random(seed), saved(SAMPLE)
    path = tmp_path / "file"
    refused = 0
    for _ in range(250):
        changed = bytearray(data)
        place = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                del changed[place:]
            case 2:
                changed[place:place] = changed[place:place + rng.randrange(1, 100)]
            case 3:
                changed[place:place + 8] = rng.randbytes(8)
        try:
            assert same(loaded(bytes(changed)), SAMPLE)
        except ValueError:
            refused += 1
        path.write_bytes(changed)
        with contextlib.suppress(ValueError):
            cg.load(path, mmap="c")
    assert refused > 100


@pytest.mark.usefixtures("no_leak")
@pytest.mark.parametrize("seed", range(6))
def test_fuzzed_headers(seed):
    """With a right checksum, any header gives a ValueError or an object."""
    rng, data = random.Random(seed), saved(SAMPLE)
    length, = struct.unpack_from("<Q", data, 8)
    start = -(-(20 + length) // 64) * 64
    for _ in range(400):
        text = bytearray(data[20:20 + length])
        for _ in range(rng.randrange(1, 4)):
            text[rng.randrange(length)] = rng.choice(b'0123456789[]{},:"-.eabcdfloatinsz')
        try:
            loaded(record(bytes(text), data[start:]))
        except ValueError as error:
            assert str(error).startswith("this is no sound file")


def test_failing_allocations_leak_nothing():
    data, before = saved([cg.zeros(1000), cg.zeros(5)]), live_bytes()
    for n in range(1, 20):
        with fail_alloc(n) as failure, contextlib.suppress(MemoryError):
            loaded(data)
        assert live_bytes() == before
        if not failure.fired:
            break
    assert n > 1


# ----- Subclasses -----
class Slotted(cg.Tensor):
    __slots__ = ("unit",)


class Watching(cg.Tensor):
    """A class whose code must not run while a file is read."""

    calls = []

    def __setattr__(self, name, value):
        self.calls.append(name)
        super().__setattr__(name, value)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs)


def test_instances_of_subclasses_keep_class_attributes_and_shared_memory():
    field, slotted = Field(cg.arange(4.0)).requires_grad_(), Slotted([1.0])
    field.name, field.parts, slotted.unit = "velocity", [cg.ones(2), {"own": field}], "m"
    result, part, other, again = loaded(saved([field, field[:2].detach(), slotted, field]))
    assert type(result) is Field and type(other) is Slotted and again is result
    assert (result.tolist(), result.requires_grad, result.is_leaf, result.name) == ([0, 1, 2, 3], True, True, "velocity")
    assert type(part) is Field and part.data_ptr() == result.data_ptr()
    assert result.parts[0].tolist() == [1, 1] and result.parts[1]["own"] is result and other.unit == "m"


def test_loading_runs_no_code_of_a_class():
    data = Watching([1.0])
    data.name = "x"
    text = saved(data)
    Watching.calls.clear()
    result = loaded(text)
    assert Watching.calls == [] and type(result) is Watching and result.__dict__ == {"name": "x"}


def test_a_class_that_is_not_there_is_named():
    text = saved(Field([1.0]))
    original, globals()["Field"] = Field, int
    try:
        with pytest.raises(ValueError, match=r"an instance of .*\.Field, and there is no such subclass of Tensor: import its module first"):
            loaded(text)
    finally:
        globals()["Field"] = original


@pytest.mark.parametrize("name", ["data", "requires_grad", "__class__", "grad", "ndim"])
def test_files_cannot_set_attributes_of_the_tensor_itself(name):
    field = Field([1.0])
    field.__dict__[name] = 3
    result = loaded(saved(field))
    assert type(result) is Field and result.tolist() == [1] and not result.requires_grad
    assert result.grad is None and result.ndim == 1
