"""The memory that a tensor lies in: as an object, its address, and the order of dims in it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from cygrad._core.exchange.aliases import byte_offset, storage_bytes, strided
from cygrad._core.levels.batches import batched_level
from cygrad._core.memory.formats import MemoryFormat
from cygrad._core.memory.looks import look
from cygrad.operators._language.declaration import operator
from cygrad.torch_names.storages import TypedStorage, UntypedStorage

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def _memory_of(tensor: Tensor) -> Tensor:
    if batched_level(tensor) is not None:
        raise RuntimeError("vmap: storage() under vmap transform is not allowed: the tensor stands for one of many examples")
    look("its storage was asked for")
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


@operator(function=False)
def const_data_ptr(input: Tensor) -> int:
    """Return the address of the first element, as `data_ptr` does, to read from.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return input.data_ptr()


# ----- The order of dims -----
def _inner_first(input: Tensor, first: int, second: int) -> bool | None:
    """Return True if the first dim is within the second in memory, by strides, and sizes of equal ones; None: there is no telling."""
    (stride, size), (other_stride, other_size) = ((input.stride(dim), input.shape[dim]) for dim in (first, second))
    if not stride or not other_stride:
        return None
    if stride == other_stride:
        return False if other_size < size else None
    return stride < other_stride


@operator(function=False)
def dim_order(self: Tensor, *, ambiguity_check: bool | list[MemoryFormat] = False) -> tuple[int, ...]:
    """Return the dims from the outermost in memory to the innermost.

    Where several orders describe the memory, as with sizes of 1, it is one of them: the dims in their order where that is possible.
    `ambiguity_check` refuses these with RuntimeError; formats of memory in a list allow those that have exactly one of the formats.

    >>> import cygrad
    >>> cygrad.empty(2, 3, 5).permute(1, 2, 0).dim_order()
    (2, 0, 1)
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(each, MemoryFormat) for each in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    several = 1 in self.shape or any(a == b for a, b in itertools.pairwise(self.stride()))
    if ambiguity_check is not False and several and sum(self.is_contiguous(memory_format=each) for each in formats) != 1:
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
    if self.is_contiguous():
        return tuple(range(self.ndim))
    order = list(range(self.ndim))[::-1]        # from the innermost, sorted by insertion: pairs without an order stay
    for end in range(1, self.ndim):
        place = end
        for before in reversed(range(end)):
            inner = _inner_first(self, order[before], order[place])
            if inner:
                break
            if inner is False:
                order[before], order[place], place = order[place], order[before], before
    if ambiguity_check is not False and not all(_inner_first(self, a, b) for a, b in itertools.pairwise(order)):
        raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(order[::-1])
