"""Hooks on tensors that the graph saves for backward, and the ready-made pairs: on the CPU, on disk, cloned when changed.

Public through `cygrad.autograd.graph`. Which pair is active is a property of the thread; the innermost applies.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cygrad._core.graph.saved import HookPair, disable_hooks
from cygrad._core.memory.storage import DType
from cygrad._core.operands.arrays import from_bits, to_bits
from cygrad._core.operands.operands import set_write_guard
from cygrad.tensor import Tensor

__all__ = ["allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "save_on_disk", "saved_tensors_hooks"]


class saved_tensors_hooks(HookPair):
    """Have each tensor that an operator saves for backward replaced by the result of `pack_hook`.

    Backward gets `unpack_hook(packed)`, which must be a tensor of the same values. A context manager, for this thread; of nested
    ones the innermost applies. Hooks run without recording. A packed tensor that still shares the saved one's memory is checked
    for changes in place; a hook's copy is not.

    Args:
        pack_hook: a function of the saved tensor; it must not change it. It may return any object.
        unpack_hook: a function of that object.

    Raises:
        TypeError: a hook is not callable, or `unpack_hook` returned no tensor.
        RuntimeError: `pack_hook` changed its input; hooks are disabled.

    Example:
        >>> import cygrad
        >>> x = cygrad.tensor([1., 2.], requires_grad=True)
        >>> with cygrad.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), cygrad.from_numpy):
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        super().__init__(pack_hook, unpack_hook)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Refuse `saved_tensors_hooks` in this thread by a RuntimeError with a message; a context manager and a decorator.

    RuntimeError, too, where hooks are active already.

    >>> import cygrad
    >>> with cygrad.autograd.graph.disable_saved_tensors_hooks("not here"), cygrad.autograd.graph.save_on_cpu():
    ...     pass
    Traceback (most recent call last):
    RuntimeError: not here
    """
    before = disable_hooks(error_message)
    try:
        yield
    finally:
        disable_hooks(before)


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors on the CPU, where they are: none is copied, unless `pin_memory` asks for copies.

    >>> import cygrad
    >>> x = cygrad.tensor([1., 2.], requires_grad=True)
    >>> with cygrad.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        # Without history, so that a saved result does not hold its own node.
        super().__init__(lambda tensor: tensor.detach().clone() if pin_memory else tensor.detach(), lambda tensor: tensor)


SEGMENT_BYTES = 1 << 26     # of a file at least; a sixteenth of all that was written if that is more, so files stay few
ALIGNMENT = 64


class save_on_disk(saved_tensors_hooks):
    """Keep saved tensors in files of a directory, mapped into memory, so that the system can take the memory back.

    Several tensors share a file. A file has no name as soon as it is mapped (on Windows: until it is closed), so nothing is left
    behind in any case; its space is free again when the last of its tensors is. Leaves that require a gradient stay in
    memory, since the graph holds them anyway, and so do tensors below `min_bytes`.

    Args:
        directory: an existing directory, on a real disk to be of use (/tmp may be memory).
        min_bytes: size from which tensors are written.

    Raises:
        NotADirectoryError: there is no such directory.
        OSError: the disk is full; the operator that was saving raises it.

    Example:
        >>> import cygrad, tempfile
        >>> x = cygrad.rand(1000, requires_grad=True)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with cygrad.autograd.graph.save_on_disk(directory):
        ...         y = x.exp().exp().sum()
        ...     y.backward()
    """

    def __init__(self, directory: str | os.PathLike[str], *, min_bytes: int = 4096) -> None:
        if not os.path.isdir(directory):
            raise NotADirectoryError(f"save_on_disk: {os.fspath(directory)!r} is not a directory; make it first")
        super().__init__(self._pack, self._unpack)
        self.directory, self.min_bytes = directory, min_bytes
        self._segment: np.ndarray | None = None
        self._used = self._written_bytes = 0
        self._written: dict[int, tuple[Any, int, Any]] = {}     # by id: the tensor, its version, where it is

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        HookPair.__exit__(self)     # super() would allocate
        self._segment = None

    def _pack(self, tensor: Tensor) -> Tensor | tuple[np.ndarray, DType]:
        if tensor.nbytes < self.min_bytes or (tensor.is_leaf and tensor.requires_grad):
            return tensor.detach()
        # A result is saved again as the operand of the next operators.
        source, version, place = self._written.get(id(tensor), (None, 0, None))
        array: np.ndarray | None = place() if source is not None and source() is tensor and version == tensor._version else None
        if array is None:
            memory = to_bits(tensor.detach())
            array = self._reserve(tensor.nbytes).view(memory.dtype).reshape(tensor.shape)
            array[...] = memory
            self._written[id(tensor)] = weakref.ref(tensor), tensor._version, weakref.ref(array)
            weakref.finalize(tensor, self._written.pop, id(tensor), None)
        return array, tensor.dtype

    @staticmethod
    def _unpack(packed: Tensor | tuple[np.ndarray, DType]) -> Tensor:
        return packed if isinstance(packed, Tensor) else from_bits(*packed)

    def _reserve(self, nbytes: int) -> np.ndarray:
        """Return bytes of the present file, or of a new one; views of it keep it mapped."""
        if self._segment is None or self._used + nbytes > len(self._segment):
            size = max(SEGMENT_BYTES, nbytes, self._written_bytes // 16)
            with tempfile.TemporaryFile(dir=self.directory, prefix="cygrad-") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error now, not a bus error later
                self._segment, self._used = np.memmap(file, np.uint8, "w+", shape=(size,)), 0
        start, self._used = self._used, -(-(self._used + nbytes) // ALIGNMENT) * ALIGNMENT
        self._written_bytes += nbytes
        return self._segment[start:start + nbytes]


# ----- Clones on mutation -----
class _Handle:
    """Stands for a saved tensor of one version in the graph."""

    def __init__(self, version: int) -> None:
        self.version = version


def _memory(tensor: Tensor) -> int:
    return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()


class _MutationContext:
    """The state of `allow_mutation_on_saved_tensors`: `original` and `cloned` tensors by the handles in the graph."""

    def __init__(self) -> None:
        self.original: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.cloned: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self._handles: weakref.WeakValueDictionary[tuple[Any, ...], _Handle] = weakref.WeakValueDictionary()
        self._by_memory: dict[int, weakref.WeakSet[_Handle]] = {}

    def pack(self, tensor: Tensor) -> _Handle:
        memory = _memory(tensor)
        key = (memory, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride(), tensor._version)
        handle = self._handles.get(key)
        if handle is None:
            self._handles[key] = handle = _Handle(tensor._version)
            self.original[handle] = tensor.detach()
            self._by_memory.setdefault(memory, weakref.WeakSet()).add(handle)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        if handle in self.cloned:
            return self.cloned[handle]
        if handle not in self.original:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                                 "originally recorded.")
        if self.original[handle]._version != handle.version:
            raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation that "
                               "allow_mutation_on_saved_tensors() does not see: the accumulation of a gradient. Save a clone() of it.")
        return self.original[handle]

    def before_write(self, target: Tensor) -> None:
        """Clone the saved tensors of memory that is about to be written."""
        for handle in tuple(self._by_memory.get(_memory(target), ())):
            if handle in self.original:
                self.cloned[handle] = self.original.pop(handle).clone()

    def clear(self) -> None:
        for table in (self.original, self.cloned, self._handles, self._by_memory):
            table.clear()


class _Contexts(threading.local):
    inside = False


_thread = _Contexts()
_active: list[_MutationContext] = []


def _before_write(target: Tensor) -> None:
    for context in tuple(_active):
        context.before_write(target)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_MutationContext]:
    """Allow tensors that are saved for backward to be changed in place: they are cloned first, and backward uses the clone.

    Forward and backward must both run inside. Memory that is written by other routes than operators (NumPy) is not seen.
    RuntimeError where contexts are nested; AssertionError for a backward outside.

    >>> import cygrad
    >>> a = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.autograd.graph.allow_mutation_on_saved_tensors():
    ...     b = a.clone()
    ...     y = (b ** 2).sum()
    ...     b = b.sin_()
    ...     y.backward()
    >>> a.grad
    tensor([2., 2.])
    """
    if _thread.inside:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _MutationContext()
    with saved_tensors_hooks(context.pack, context.unpack):
        try:
            _thread.inside = True
            _active.append(context)
            set_write_guard(_before_write)
            yield context
        finally:
            _thread.inside = False
            if context in _active:
                _active.remove(context)
            if not _active:
                set_write_guard(None)
            context.clear()
