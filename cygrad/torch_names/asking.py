"""Functions that ask something of a tensor; the methods of these names are the core's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad._core.graph.tensor import TensorImpl
from cygrad.operators._language.arguments import checked_tensor

if TYPE_CHECKING:
    from typing import TypeGuard

    from cygrad.tensor import Tensor


def is_tensor(obj: object) -> TypeGuard[Tensor]:
    """Say whether an object is a tensor.

    >>> import cygrad
    >>> cygrad.is_tensor([1.])
    False
    """
    return isinstance(obj, TensorImpl)


def is_floating_point(input: Tensor) -> bool:
    """Say whether the elements are floating-point numbers."""
    return checked_tensor(is_floating_point, input).is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Say whether the elements are complex numbers."""
    return checked_tensor(is_complex, input).is_complex()


def is_signed(input: Tensor) -> bool:
    """Say whether the elements can be negative."""
    return checked_tensor(is_signed, input).is_signed()


def is_inference(input: Tensor) -> bool:
    """Say whether a tensor was made in inference mode.

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
