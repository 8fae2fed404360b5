"""Functions that ask something of a tensor; the methods of these names are the core's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad._core.graph.tensor import TensorImpl
from cygrad.operators._language.arguments import checked_tensor
from cygrad.torch_names.storages import UntypedStorage

if TYPE_CHECKING:
    from typing import TypeGuard

    from cygrad.tensor import Tensor


def is_tensor(obj: object) -> TypeGuard[Tensor]:
    """Return True if an object is a tensor.

    >>> import cygrad
    >>> cygrad.is_tensor([1.])
    False
    """
    return isinstance(obj, TensorImpl)


def is_floating_point(input: Tensor) -> bool:
    """Return True if the elements are floating-point numbers."""
    return checked_tensor(is_floating_point, input).is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Return True if the elements are complex numbers."""
    return checked_tensor(is_complex, input).is_complex()


def is_signed(input: Tensor) -> bool:
    """Return True if the elements can be negative."""
    return checked_tensor(is_signed, input).is_signed()


def is_inference(input: Tensor) -> bool:
    """Return True if a tensor was made in inference mode.

    >>> import cygrad
    >>> with cygrad.inference_mode():
    ...     x = cygrad.ones(2)
    >>> cygrad.is_inference(x)
    True
    """
    return checked_tensor(is_inference, input).is_inference()


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return checked_tensor(numel, input).numel()


def is_nonzero(input: Tensor) -> bool:
    """Return True if the only element is not 0; RuntimeError for none or several.

    >>> import cygrad
    >>> cygrad.is_nonzero(cygrad.tensor([0.]))
    False
    """
    return bool(checked_tensor(is_nonzero, input))


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return True if two tensors have the same shape.

    >>> import cygrad
    >>> cygrad.is_same_size(cygrad.ones(2), cygrad.ones(3))
    False
    """
    return checked_tensor(is_same_size, input).shape == checked_tensor(is_same_size, other, "other", 2).shape


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return True if two tensors have the same memory, and the same shape and strides there: the method of the name."""
    other = checked_tensor(is_set_to, tensor, "tensor", 1)
    return (self.data_ptr(), self.shape, self.stride(), self.dtype) == (other.data_ptr(), other.shape, other.stride(), other.dtype)


def is_storage(obj: object) -> TypeGuard[UntypedStorage]:
    """Return True if an object is the memory of a tensor.

    >>> import cygrad
    >>> cygrad.is_storage(cygrad.ones(2).untyped_storage())
    True
    """
    return isinstance(obj, UntypedStorage)


def is_distributed(input: Tensor) -> bool:
    """Say no: a tensor lies in the memory of one process."""
    checked_tensor(is_distributed, input)
    return False


def is_vulkan_available() -> bool:
    """Say no: there is the CPU only."""
    return False


def get_device(input: Tensor) -> int:
    """Return -1, the number of the CPU.

    >>> import cygrad
    >>> cygrad.get_device(cygrad.ones(2))
    -1
    """
    checked_tensor(get_device, input)
    return -1


def typename(obj: object) -> str:
    """Return the name of an object's type: of a tensor as `Tensor.type()` gives it.

    >>> import cygrad
    >>> cygrad.typename(cygrad.ones(2)), cygrad.typename(3)
    ('cygrad.FloatTensor', 'int')
    """
    if isinstance(obj, TensorImpl):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", "") or ""
    return named.__qualname__ if module in ("", "builtins") else f"{module}.{named.__qualname__}"
