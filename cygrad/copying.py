"""Tensors as Python objects: copy, deepcopy, pickle, and instances of subclasses.

A copy of any kind is a leaf, so a tensor with a history is refused: it would be lost without a word. A pickle that is
unpickled is checked before it is used, and nothing but the functions here runs. Imported at the first use.
"""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cygrad._core.exchange.aliases import as_instance, byte_offset, storage_bytes, storages, strided
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import refuse_special
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.sizes import Size, extent_of_strides
from cygrad._core.memory.storage import DType
from cygrad._core.operands.arrays import from_array, to_bits
from cygrad.data.creation import empty, empty_tensor, get_default_dtype
from cygrad.data.creation import tensor as new_tensor
from cygrad.device import resolve_device

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

T = TypeVar("T", bound="Tensor")


def refuse_history(tensor: Tensor, call: str) -> None:
    """Raise torch's RuntimeError of deepcopy for a tensor that is no leaf, and for one that has a tangent or is one of many."""
    if tensor.grad_fn is not None:
        raise RuntimeError(f"Only Tensors created explicitly by the user (graph leaves) support {call} at the moment: this one is the "
                           f"result of {tensor.grad_fn.name()}, and its history would be lost. detach() it first.")
    part = sparse_part(tensor)
    refuse_special(tensor if part is None else part.inner, call)


# ----- copy and deepcopy -----
def shallow_copy(tensor: T) -> T:
    """Return another tensor object over the same memory, with the same attributes."""
    refuse_history(tensor, "copy.copy()")
    return _with_state(as_instance(tensor, type(tensor)), tensor.requires_grad, tensor.__getstate__())


def deep_copy(tensor: T, memo: dict[int, Any]) -> T:
    """Return a copy with memory of its own; tensors that share memory share it in the copy, too."""
    refuse_history(tensor, "the deepcopy protocol")
    if id(tensor) in memo:
        return memo[id(tensor)]
    part = sparse_part(tensor)
    if part is not None:
        result = memo[id(tensor)] = part.around(copy.deepcopy(part.inner, memo))
        return result
    memory = _copied_memory(tensor, memo)
    copied = strided(memory, tensor.dtype, byte_offset(tensor), tensor.shape, tensor.stride())
    result = memo[id(tensor)] = as_instance(copied, type(tensor))
    _with_state(result, tensor.requires_grad, copy.deepcopy(tensor.__getstate__(), memo))
    if tensor.grad is not None:
        result.grad = copy.deepcopy(tensor.grad, memo)
    return result


def _copied_memory(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """Return the copy of a tensor's whole memory, made once for all tensors over it."""
    storage, root = storages(tensor)
    if id(root) not in memo:        # deepcopy keeps every tensor alive until it ends, so the ids stay theirs
        memo[id(root)] = storage_bytes(tensor).clone()
    if id(storage) not in memo:
        memo[id(storage)] = memo[id(root)].data
    return memo[id(storage)]


# ----- pickle -----
def reduce(tensor: Tensor, protocol: int) -> Any:
    """Return the value of `__reduce_ex__`: from protocol 5 on, the elements may be passed out of band."""
    if type(tensor).__reduce__ is not object.__reduce__:
        return tensor.__reduce__()
    refuse_history(tensor, "pickle")
    if sparse_part(tensor) is not None:
        from cygrad.operators._sparse.making import from_parts, parts_of
        return from_parts, parts_of(tensor)
    elements, strides = compact(tensor)
    memory: Any = to_bits(elements)
    data = pickle.PickleBuffer(memory) if protocol >= 5 else memory.tobytes()
    arguments = type(tensor), data, tensor.dtype, tuple(tensor.shape), strides, tensor.requires_grad
    state = tensor.__getstate__()
    return (rebuild, arguments) if state is None else (rebuild, arguments, state)


def compact(tensor: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """Return a dense vector of a tensor's elements, without a copy where they lie so, and the strides over that vector.

    The order of dims is kept, and repeated elements (stride 0) are in the vector once.
    """
    part = tensor.detach()
    for d, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[d] > 1:
            part = part.narrow(d, 0, 1)
    order = sorted(range(part.ndim), key=part.stride().__getitem__, reverse=True)
    strides, step = [0] * part.ndim, 1
    for d in reversed(order):
        strides[d] = step if part.shape[d] == tensor.shape[d] else 0
        step *= max(part.shape[d], 1)
    return part.permute(order).contiguous().reshape(-1), tuple(strides)


def rebuild(cls: type[T], data: Any, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], requires_grad: bool) -> T:
    """Make an unpickled tensor: over the buffer it is given, or over a copy where that is `bytes` or lies askew."""
    if not isinstance(dtype, DType) or not isinstance(shape, tuple) or not isinstance(strides, tuple):
        raise ValueError(f"a pickled tensor needs a dtype and tuples of sizes and strides, got {dtype!r}, {shape!r} and {strides!r}")
    memory = memoryview(data).cast("B")
    expected = extent_of_strides(dtype.itemsize, shape, strides)
    if memory.nbytes != expected:
        raise ValueError(f"a pickled tensor of shape {list(shape)} and {dtype!r} needs {expected} bytes, got {memory.nbytes}")
    array = np.asarray(memory)
    if isinstance(data, bytes) or array.ctypes.data % dtype.itemsize:
        source = empty_tensor((expected,), np.uint8)
        source.numpy()[...] = array
    else:
        source = from_array(array)
    return _with_state(as_instance(strided(source, dtype, 0, shape, strides), cls), requires_grad, None)


# ----- Subclasses -----
def make_subclass(cls: type[T], data: Tensor, require_grad: bool = False) -> T:
    """Return a leaf of a subclass over the memory of a tensor."""
    if not isinstance(data, TensorImpl):
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}")
    return _with_state(as_instance(data.data, cls), require_grad, None)


def construct(cls: type[T], arguments: tuple[Any, ...], device: Any, dtype: DType | None = None) -> T:
    """Return the result of calling the class, in torch's old way: sizes make unset memory, a sequence is copied."""
    resolve_device(device)
    data = arguments[0] if len(arguments) == 1 else None
    if isinstance(data, TensorImpl):
        if dtype is not None and data.dtype != dtype:
            raise TypeError(f"expected a tensor of {dtype} (got {data.dtype}); convert it with .to({dtype})")
        return data.as_subclass(cls)
    if isinstance(data, Size) or all(isinstance(size, int) for size in arguments):
        return as_instance(empty(*(arguments or (0,)), dtype=dtype), cls)
    if len(arguments) > 1 or isinstance(data, str) or not hasattr(data, "__getitem__"):
        problem = "got several arguments that are not all sizes" if len(arguments) > 1 else f"got {type(data).__name__}"
        raise TypeError(f"new(): data must be a sequence ({problem}); cygrad.tensor() takes numbers, too")
    return as_instance(new_tensor(data, dtype=dtype or get_default_dtype()), cls)


def _with_state(tensor: T, requires_grad: bool, state: Any) -> T:
    """Give a new leaf its attributes: `state` is the result of `object.__getstate__`, a dict, or a dict and one of slots."""
    if requires_grad:
        tensor.requires_grad_()
    for name, value in _named(state).items():
        setattr(tensor, name, value)
    return tensor


def attributes_of(tensor: Tensor) -> dict[str, Any]:
    """Return the attributes of an instance of a subclass, those in slots included, by their names."""
    return _named(tensor.__getstate__())


def _named(state: Any) -> dict[str, Any]:
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    return {**(attributes or {}), **(slots or {})}
