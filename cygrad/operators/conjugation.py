"""Real parts and conjugates: a tensor of real numbers is its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad.operators.arguments import checked_tensor
from cygrad.operators.declaration import operator

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@operator(method=False)
def real(input: Tensor) -> Tensor:
    """Real part of each element: the tensor itself.

    >>> import cygrad
    >>> cygrad.real(cygrad.tensor([1., 2.]))
    tensor([1., 2.])
    """
    return checked_tensor("real", input)


@operator
def conj(input: Tensor) -> Tensor:
    """Conjugate of each element: the tensor itself where it is real.

    >>> import cygrad
    >>> cygrad.conj(cygrad.tensor([1., 2.]))
    tensor([1., 2.])
    """
    input = checked_tensor("conj", input)
    return input.conj_physical() if input.is_complex() else input


@operator
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor with a conjugation that is pending carried out: the tensor itself.

    >>> import cygrad
    >>> cygrad.resolve_conj(cygrad.tensor([1., 2.]))
    tensor([1., 2.])
    """
    return checked_tensor("resolve_conj", input)
