"""Real parts and conjugates: a tensor of real numbers is its own.

Loaded at first use.
"""

from __future__ import annotations

from typing import Any

from cygrad.operators.arguments import checked_tensor
from cygrad.operators.elementwise import publish


def real(input: Any) -> Any:
    """Real part of each element: the tensor itself.

    >>> import cygrad
    >>> cygrad.real(cygrad.tensor([1., 2.]))
    tensor([1., 2.])
    """
    return checked_tensor("real", input)


def conj(input: Any) -> Any:
    """Conjugate of each element: the tensor itself.

    >>> import cygrad
    >>> cygrad.conj(cygrad.tensor([1., 2.]))
    tensor([1., 2.])
    """
    return checked_tensor("conj", input)


def resolve_conj(input: Any) -> Any:
    """The tensor with a conjugation that is pending carried out: the tensor itself.

    >>> import cygrad
    >>> cygrad.resolve_conj(cygrad.tensor([1., 2.]))
    tensor([1., 2.])
    """
    return checked_tensor("resolve_conj", input)


publish(__name__, globals())
