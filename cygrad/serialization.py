"""save and load: tensors and plain data in one file, without pickle, so that loading never runs code.

A record: 8 bytes MAGIC, length and CRC-32 of the header (u64, u32, little-endian), the header (JSON), then the segments:
raw little-endian bytes, each padded to a multiple of 64, as the header is. The header has the segments [bytes, CRC-32], the
tensors [segment, offset, dtype, shape, strides, requires_grad] and the tree that holds them. Every number in it is checked
against the bytes there are before memory is allocated for them. Thread-safe: nothing is kept between calls.
"""

from __future__ import annotations

import binascii
import io
import json
import math
import os
import stat
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import MemberDescriptorType
from typing import IO, Any, Literal

import numpy as np

from cygrad._core.exchange.aliases import as_instance, byte_offset, storage_bytes, storages, strided
from cygrad._core.levels.overrides import overrides_off
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.formats import layout_named
from cygrad._core.memory.sizes import Size, extent_of_strides
from cygrad._core.memory.storage import DType, dtype_by_name
from cygrad._core.operands.arrays import from_array, to_bits
from cygrad.copying import attributes_of, compact, refuse_history
from cygrad.data.creation import empty_tensor
from cygrad.device import device as Device
from cygrad.device import resolve_device
from cygrad.operators._sparse.making import from_parts, parts_of
from cygrad.tensor import Tensor

__all__ = ["load", "save"]

MAGIC = b"\x93CYGRAD\x01"           # no text, and the last byte is the version of the format
PREFIX = struct.Struct("<8sQI")
ALIGNMENT = 64
DEEPEST = 64                        # containers in containers
LONGEST_HEADER = 1 << 28

_File = str | bytes | os.PathLike[str] | IO[bytes]


# ----- Saving -----
def save(obj: Any, f: _File) -> None:
    """Write tensors and plain data to a file: a path, which is replaced at once when all is written, or a binary file object.

    Takes tensors (leaves), instances of subclasses with their attributes, None, bool, int, float, complex, str, bytes, Size, dtype, and
    lists, tuples and dicts of these. Tensors that share memory share it after loading; the gradient is not saved. TypeError for any other
    object, ValueError for tensors that are nested more than 64 deep, RuntimeError for a tensor with a history.

    >>> import cygrad, io
    >>> file = io.BytesIO()
    >>> cygrad.save({"weight": cygrad.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> cygrad.load(file)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    _need_little_endian()
    with overrides_off():
        _save(obj, f)


def _save(obj: Any, f: _File) -> None:
    record = _Record()
    tree = record.encode(obj, "obj", DEEPEST)
    if hasattr(f, "write"):
        record.write(tree, f)
        return
    path = Path(os.path.realpath(os.fsdecode(f)))
    mode = path.stat().st_mode if path.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:      # a pipe or a device is not replaced
            record.write(tree, file)
        return
    temporary = _unused_neighbour(path)
    try:
        with open(temporary, "xb") as file:
            record.write(tree, file)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _unused_neighbour(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{os.urandom(8).hex()}")


class _Record:
    """The content to write: the tensors of a tree, and the memory they need."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.numbers: dict[int, int] = {}       # of the tensors and bytes by their id
        self.blobs: list[bytes] = []
        self.instances: set[int] = set()        # numbers of those tensors whose class and attributes are in the tree

    def encode(self, obj: Any, place: str, depth: int) -> Any:
        """Return the JSON form of an object: itself, or {kind: content}."""
        kind = type(obj)
        if obj is None or kind in (bool, int, str):
            return obj
        if kind is float:
            return obj if math.isfinite(obj) else {"float": str(obj)}
        if kind is complex:
            return {"complex": [str(obj.real), str(obj.imag)]}
        if kind is DType:
            return {"dtype": obj.name}
        if kind is Size:
            return {"size": list(obj)}
        if kind is bytes:
            return {"bytes": self.numbered(obj, self.blobs)}
        if isinstance(obj, Tensor):
            refuse_history(obj, f"cygrad.save ({place})")
            if sparse_part(obj) is not None:
                layout, *parts = parts_of(obj)
                return {"sparse": [layout.name, *(self.encode(part, f"a part of {place}", depth - 1) for part in parts)]}
            number = self.numbered(obj, self.tensors)
            return {"tensor": number} if kind is Tensor else {"instance": self.of_subclass(obj, number, place, depth)}
        if kind not in (list, tuple, dict):
            ways = {np.ndarray: "cygrad.from_numpy()", np.generic: ".item()", dict: "dict()",
                    list: "list()", tuple: "tuple()"}
            way = next((f"; {way} gives one that can" for base, way in ways.items() if isinstance(obj, base)), "")
            raise TypeError(f"{place} is a {kind.__module__}.{kind.__qualname__}, which cannot be saved{way}. These can: tensors, None, "
                            "bool, int, float, complex, str, bytes, Size, dtype, and lists, tuples and dicts of these.")
        if not depth:
            raise ValueError(f"cannot save an object that is nested more than {DEEPEST} deep, or contains itself: {place}")
        if kind is dict:
            return {"dict": [[self.encode(key, f"a key of {place}", depth - 1), self.encode(value, f"{place}[{key!r}]", depth - 1)]
                             for key, value in obj.items()]}
        items = [self.encode(item, f"{place}[{k}]", depth - 1) for k, item in enumerate(obj)]
        return items if kind is list else {"tuple": items}

    def of_subclass(self, obj: Tensor, number: int, place: str, depth: int) -> list[Any]:
        """Return the tensor of an instance of a subclass, the name of its class, and its attributes; these once, as they may contain it."""
        kind = type(obj)
        if number in self.instances:
            return [number]
        if _class_named(kind.__module__, kind.__qualname__) is not kind:
            raise TypeError(f"{place} is a {kind.__module__}.{kind.__qualname__}, a class that load() could not find by that name; "
                            ".as_subclass(cygrad.Tensor) gives a tensor that can be saved")
        if not depth:
            raise ValueError(f"cannot save containers that are nested more than {DEEPEST} deep, or contain themselves: {place}")
        self.instances.add(number)
        return [number, kind.__module__, kind.__qualname__, self.encode(attributes_of(obj), f"the attributes of {place}", depth - 1)]

    def numbered(self, obj: Any, among: list[Any]) -> int:
        if id(obj) not in self.numbers:
            self.numbers[id(obj)] = len(among)
            among.append(obj)
        return self.numbers[id(obj)]

    def layout(self) -> tuple[list[Any], list[memoryview]]:
        """Return the descriptions of the tensors, and the segments that they and the bytes lie in.

        A tensor that shares its memory with no other needs no more than its own elements.
        """
        roots = [storages(tensor)[1] for tensor in self.tensors]
        sharing: dict[int, list[int]] = {}
        for k, root in enumerate(roots):
            sharing.setdefault(id(root), []).append(k)
        segments = [memoryview(blob) for blob in self.blobs]
        described: list[Any] = [None] * len(self.tensors)
        for group in sharing.values():
            starts: list[int]
            if len(group) == 1:
                elements, strides = compact(self.tensors[group[0]])
                memory, starts, every_strides = to_bits(elements), [0], [strides]
            else:
                tensors = [self.tensors[k] for k in group]
                spans = [(byte_offset(t), byte_offset(t) + extent_of_strides(t.itemsize, t.shape, t.stride())) for t in tensors]
                # Elements stay aligned to their size, whichever it is.
                first, last = min(start for start, _ in spans) // 16 * 16, max(end for _, end in spans)
                memory, every_strides = storage_bytes(tensors[0]).numpy()[first:last], [t.stride() for t in tensors]
                starts = [start - first for start, _ in spans]
            for k, start, strides in zip(group, starts, every_strides, strict=True):
                tensor = self.tensors[k]
                described[k] = [len(segments), start, tensor.dtype.name, list(tensor.shape), list(strides), tensor.requires_grad]
            segments.append(memoryview(memory.view(np.uint8)))  # type: ignore[arg-type]
        return described, segments

    def write(self, tree: Any, file: Any) -> None:
        tensors, segments = self.layout()
        header = {"tree": tree, "blobs": len(self.blobs), "tensors": tensors,
                  "segments": [[segment.nbytes, binascii.crc32(segment)] for segment in segments]}
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
        if len(text) > LONGEST_HEADER:
            raise ValueError(f"the header is {len(text)} bytes long, the limit is {LONGEST_HEADER}: put long lists of numbers into tensors")
        start = PREFIX.pack(MAGIC, len(text), binascii.crc32(text)) + text
        file.write(start + bytes(_padded(len(start)) - len(start)))
        for segment in segments:
            file.write(segment)
            file.write(bytes(_padded(segment.nbytes) - segment.nbytes))


def _class_named(module: str, name: str) -> Any:
    """Return the object of a name in a module that is imported; None if there is none."""
    place: Any = sys.modules.get(module)
    for word in name.split("."):
        place = getattr(place, word, None)
    return place


def _set_attribute(instance: Tensor, cls: type, name: Any, value: Any) -> None:
    """Set a slot of a subclass, or an entry of an instance's `__dict__`, without a call of the class; the tensor's own attributes stay."""
    own = cls.__mro__[:cls.__mro__.index(Tensor)]
    slot = next((vars(kind)[name] for kind in own if name in vars(kind)), None)
    if isinstance(slot, MemberDescriptorType):
        slot.__set__(instance, value)
    elif isinstance(name, str) and hasattr(instance, "__dict__"):
        instance.__dict__[name] = value
    else:
        raise _Unsound(f"an instance of {cls.__qualname__} has no attribute {name!r}")


def _padded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def _need_little_endian() -> None:
    if sys.byteorder != "little":
        raise NotImplementedError("cygrad.save and cygrad.load need a little-endian machine")


# ----- Loading -----
def load(f: _File, map_location: str | Device | None = None, *, mmap: bool | Literal["r", "c"] = False, weights_only: bool = True) -> Any:
    """Return the tree that `save` wrote to a path, or to a binary file object from where it stands. No code in the file is ever run.

    With `mmap` the tensors of a path are read from the file as they are used: with "r" they are read-only, with "c" or True they
    can be changed, which the file does not see; then their checksums are not compared. While that lasts the file may be replaced,
    as `save` does, but not be shortened. `map_location` can only be the CPU; `weights_only` changes nothing.

    ValueError, which names the damage, for any other or a damaged file.

    >>> import cygrad, io
    >>> file = io.BytesIO()
    >>> cygrad.save([1, (cygrad.zeros(2), "text")], file)
    >>> _ = file.seek(0)
    >>> cygrad.load(file)
    [1, (tensor([0., 0.]), 'text')]
    """
    _need_little_endian()
    resolve_device(map_location)
    if mmap not in (False, True, "r", "c"):
        raise ValueError(f"mmap must be a bool, 'r' (read-only) or 'c' (copy-on-write), got {mmap!r}")
    if hasattr(f, "read"):
        if mmap:
            raise ValueError("mmap needs a path, got a file object")
        return _loaded(*_with_size(f))
    with open(f, "rb") as file:
        size = os.fstat(file.fileno()).st_size if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
        if size is None:
            return _loaded(*_with_size(file))
        memory = np.memmap(file, np.uint8, "r" if mmap == "r" else "c") if mmap and size else None
        file.seek(0)
        result = _loaded(file, size, memory)
        _check(file.tell() == size, f"{size - file.tell()} bytes follow its end")
        return result


class _Unsound(ValueError):
    """The file is no file of `save`."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"this is no sound file of cygrad.save: {problem}")


def _check(condition: bool, problem: str) -> None:
    if not condition:
        raise _Unsound(problem)


def _with_size(file: Any) -> tuple[Any, int]:
    """Return a file object and how many bytes it has left; one without a size is read to its end."""
    try:
        here = file.tell()
        size = file.seek(0, os.SEEK_END) - here
        file.seek(here)
    except (AttributeError, OSError, ValueError):
        rest = file.read()
        file, size = io.BytesIO(rest), len(rest)
    return file, size


def _fill(file: Any, view: memoryview) -> None:
    """Read as many bytes as fit."""
    readinto = getattr(file, "readinto", None)
    while view.nbytes:
        if readinto is not None:
            count = readinto(view)
        else:
            part = file.read(view.nbytes)
            if not isinstance(part, (bytes, bytearray)):
                raise TypeError(f"load() needs a file opened in binary mode, its read() gave {type(part).__name__}")
            count = len(part)
            view[:count] = part
        _check(bool(count), f"it ends {view.nbytes} bytes early")
        view = view[count:]


def _take(file: Any, length: int) -> bytearray:
    buffer = bytearray(length)
    _fill(file, memoryview(buffer))
    return buffer


def _loaded(file: Any, size: int, memory: np.ndarray | None = None) -> Any:
    """Read a record of at most `size` bytes; segments of tensors are views of `memory` if that is given."""
    _check(size >= PREFIX.size, f"it has {size} bytes")
    magic, length, checksum = PREFIX.unpack(_take(file, PREFIX.size))
    _check(magic[:-1] == MAGIC[:-1], f"it starts with {magic!r}" + (", so torch.save or pickle wrote it" if magic[:1] in b"P\x80" else ""))
    _check(magic == MAGIC, f"its format has version {magic[-1]}, this reads version {MAGIC[-1]}")
    start = _padded(PREFIX.size + length)
    _check(length <= LONGEST_HEADER and start <= size, f"its header of {length} bytes does not fit into its {size} bytes")
    text = _take(file, start - PREFIX.size)[:length]
    _check(binascii.crc32(text) == checksum, "its header was changed: the checksum differs")
    tree, blobs, tensors, segments = _header(text, size - start)

    contents: list[Any] = []
    for number, (nbytes, checksum) in enumerate(segments):
        if memory is not None and number >= blobs and nbytes:
            contents.append(from_array(np.asarray(memory[start:start + nbytes])))
            file.seek(_padded(nbytes), os.SEEK_CUR)
        else:
            contents.append(_segment(file, nbytes, checksum, number, number < blobs))
        start += _padded(nbytes)
    leaves = []
    for segment, offset, dtype, shape, strides, requires_grad in tensors:
        tensor = strided(contents[segment], dtype_by_name[dtype], offset, shape, strides)
        leaves.append(tensor.requires_grad_(requires_grad))
    return _Tree(contents[:blobs], leaves).decode(tree, DEEPEST)


def _no_constant(name: str) -> None:
    raise TypeError(f"{name} is no number of JSON")


def _segment(file: Any, nbytes: int, checksum: int, number: int, is_blob: bool) -> Any:
    """Return the next segment as bytes or as a uint8 tensor."""
    content = None if is_blob else empty_tensor((nbytes,), np.uint8)
    view = memoryview(bytearray(nbytes) if content is None else content)
    _fill(file, view)
    _check(binascii.crc32(view) == checksum, f"the bytes of segment {number} were changed: the checksum differs")
    _take(file, _padded(nbytes) - nbytes)
    return bytes(view) if content is None else content


def _header(text: bytearray, available: int) -> tuple[Any, int, list[Any], list[Any]]:
    """Return tree, number of blobs, tensors and segments of a header that can be: its segments fit, and its tensors into them."""
    try:
        header = json.loads(text, parse_constant=_no_constant)
        tree, blobs, tensors, segments = (header[key] for key in ("tree", "blobs", "tensors", "segments"))
        total = 0
        for number, (nbytes, checksum) in enumerate(segments):
            _check(_is_count(nbytes) and _is_count(checksum), f"segment {number} has {nbytes!r} bytes with checksum {checksum!r}")
            total += _padded(nbytes)
        _check(total <= available, f"its segments take {total} bytes, and {available} follow the header")
        _check(_is_count(blobs) and blobs <= len(segments), f"{blobs!r} of {len(segments)} segments are bytes")
        for number, (segment, offset, dtype, shape, strides, requires_grad) in enumerate(tensors):
            _check(_is_count(segment) and blobs <= segment < len(segments), f"tensor {number} lies in segment {segment!r}")
            there, itemsize = segments[segment][0], dtype_by_name[dtype].itemsize
            needed = extent_of_strides(itemsize, shape, strides)
            _check(_is_count(offset) and offset % itemsize == 0 and offset + needed <= there,
                   f"tensor {number} takes {needed} bytes from byte {offset!r} on, its segment has {there}")
            _check(requires_grad is False or requires_grad is True and dtype_by_name[dtype].is_differentiable,
                   f"tensor {number} of dtype {dtype} has requires_grad={requires_grad!r}")
        return tree, blobs, tensors, segments
    except _Unsound:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _Unsound(f"its header cannot be read ({type(error).__name__}: {error})") from None


def _is_count(number: Any) -> bool:
    return type(number) is int and number >= 0


class _Tree:
    """Makes the objects of a tree."""

    def __init__(self, blobs: list[bytes], tensors: list[Tensor]) -> None:
        self.blobs, self.tensors = blobs, tensors
        self.instances: dict[int, Tensor] = {}

    def instance(self, form: list[Any], depth: int) -> Tensor:
        """Return an instance of a subclass, whose class has to be there already: nothing is imported, no method of it is called."""
        number, *rest = form
        if number in self.instances and not rest:
            return self.instances[number]
        tensor = self.of_number(self.tensors, number)
        module, name, attributes = rest
        cls = _class_named(module, name)
        if not (isinstance(cls, type) and issubclass(cls, Tensor)):
            raise _Unsound(f"it has an instance of {module}.{name}, and there is no such subclass of Tensor: import its module first")
        instance = self.instances[number] = as_instance(tensor, cls)
        if tensor.requires_grad:
            instance.requires_grad_()
        for key, value in self.decode(attributes, depth).items():
            _set_attribute(instance, cls, key, value)
        return instance

    def sparse(self, layout: Any, *parts: Any, depth: int) -> Tensor:
        """Return a sparse tensor, whose indices are checked as its maker checks them."""
        try:
            return from_parts(layout_named(layout), *(self.decode(part, depth) for part in parts))
        except (AttributeError, RuntimeError) as error:
            raise _Unsound(f"it has a sparse tensor that cannot be ({error})") from None

    def decode(self, form: Any, depth: int) -> Any:
        """Return the object of a JSON form."""
        if form is None or isinstance(form, (bool, int, float, str)):
            return form
        _check(depth >= 0, f"it is nested more than {DEEPEST} deep")
        if isinstance(form, list):
            return [self.decode(item, depth - 1) for item in form]
        try:
            ((kind, content),) = form.items()
            return _KINDS[kind](self, content, depth - 1)
        except _Unsound:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise _Unsound(f"{form!r:.200} stands for no object ({type(error).__name__}: {error})") from None

    def of_number(self, things: list[Any], number: Any) -> Any:
        _check(_is_count(number), f"it counts {number!r} things")
        return things[number]


_KINDS: dict[str, Callable[[_Tree, Any, int], Any]] = {
    "float": lambda tree, text, depth: float(text),
    "complex": lambda tree, parts, depth: complex(float(parts[0]), float(parts[1])),
    "dtype": lambda tree, name, depth: dtype_by_name[name],
    "size": lambda tree, sizes, depth: Size(map(int, sizes)),
    "bytes": lambda tree, number, depth: tree.of_number(tree.blobs, number),
    "instance": lambda tree, form, depth: tree.instance(form, depth),
    "tensor": lambda tree, number, depth: tree.of_number(tree.tensors, number),
    "sparse": lambda tree, parts, depth: tree.sparse(*parts, depth=depth),
    "tuple": lambda tree, items, depth: tuple(tree.decode(item, depth) for item in items),
    "dict": lambda tree, pairs, depth: {tree.decode(key, depth): tree.decode(value, depth) for key, value in pairs},
}
