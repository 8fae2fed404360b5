"""The memory of a tensor as an object, as torch shows it: for code that compares memory, and reads its size.

>>> import cygrad
>>> x = cygrad.zeros(4)
>>> x[1:].untyped_storage().data_ptr() == x.data_ptr(), x[1:].untyped_storage().nbytes()
(True, 16)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from cygrad._core.memory.storage import DType
    from cygrad.device import device
    from cygrad.tensor import Tensor


class UntypedStorage:
    """All bytes of a tensor's memory, also where the tensor is a part of it; made by `Tensor.untyped_storage`."""

    is_cuda: ClassVar[bool] = False

    def __init__(self, elements: Tensor) -> None:
        self._elements = elements

    def __len__(self) -> int:
        return len(self._elements)

    def __getitem__(self, index: int) -> Any:
        return self._elements[index].item()

    def __setitem__(self, index: int, value: Any) -> None:
        self._elements[index] = value

    def __repr__(self) -> str:
        return f"<cygrad.torch_names.storages.{type(self).__name__} of {len(self)} elements of {self._elements.dtype}>"

    @property
    def device(self) -> device:
        """The CPU."""
        return self._elements.device

    def size(self) -> int:
        """Return the number of elements."""
        return len(self)

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._elements.nbytes

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return self._elements.itemsize

    def data_ptr(self) -> int:
        """Return the address of the memory."""
        return self._elements.data_ptr()

    def tolist(self) -> list[Any]:
        """Return the elements in the order in which they lie."""
        return self._elements.tolist()


class TypedStorage(UntypedStorage):
    """All elements of a tensor's memory; made by `Tensor.storage`, which torch keeps for old code."""

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._elements.dtype

    def untyped(self) -> UntypedStorage:
        """Return the bytes of the memory."""
        return self._elements.untyped_storage()
