"""The memory that a tensor lies in, as an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad._core.exchange.aliases import byte_offset, storage_bytes, strided
from cygrad._core.levels.batches import batched_level
from cygrad.operators._language.declaration import operator
from cygrad.torch_names.storages import TypedStorage, UntypedStorage

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def _memory_of(tensor: Tensor) -> Tensor:
    if batched_level(tensor) is not None:
        raise RuntimeError("vmap: storage() under vmap transform is not allowed: the tensor stands for one of many examples")
    return storage_bytes(tensor)


@operator(function=False)
def untyped_storage(input: Tensor) -> UntypedStorage:
    """Return the bytes of the memory that the tensor lies in."""
    return UntypedStorage(_memory_of(input))


@operator(function=False)
def storage(input: Tensor) -> TypedStorage:
    """Return the elements of the memory that the tensor lies in; bytes in front of and behind whole elements are left out."""
    memory, itemsize = _memory_of(input), input.itemsize
    start = byte_offset(input) % itemsize
    return TypedStorage(strided(memory, input.dtype, start, ((len(memory) - start) // itemsize,), (1,)))
