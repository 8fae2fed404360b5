"""Memory that a process shares with those it forks, for `Tensor.share_memory_`: anonymous pages of the system, given back with the last
tensor over them."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from cygrad._core.exchange.aliases import byte_offset, storage_bytes, strided
from cygrad._core.levels.batches import refuse_special
from cygrad._core.operands.arrays import from_array

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

T = TypeVar("T", bound="Tensor")

_shared: WeakValueDictionary[int, mmap.mmap] = WeakValueDictionary()       # by the address of the first byte


def is_shared(tensor: Tensor) -> bool:
    """Return True if a tensor lies in such memory."""
    return storage_bytes(tensor).data_ptr() in _shared


def share(tensor: T) -> T:
    """Lay a tensor over a copy of its memory that is shared; itself if that is so."""
    refuse_special(tensor, "share_memory_()")
    memory = storage_bytes(tensor)
    if memory.numel() and not is_shared(tensor):
        pages = mmap.mmap(-1, memory.numel())
        copy = from_array(np.frombuffer(pages, np.uint8))
        copy.copy_(memory)
        setattr(tensor, "data", strided(copy, tensor.dtype, byte_offset(tensor), tensor.shape, tensor.stride()))  # noqa: B010 - a slot
        _shared[copy.data_ptr()] = pages
    return tensor
