"""Whether tensors are equal, or close."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cygrad._core.compute.dispatch import ops as rows
from cygrad._core.graph.tensor import TensorImpl
from cygrad.operators._language.declaration import operator

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


@operator
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Where `abs(input - other) <= atol + rtol * abs(other)`; infinities are close to themselves, NaN if `equal_nan`.

    >>> import cygrad
    >>> cygrad.isclose(cygrad.tensor([1., 2.]), cygrad.tensor([1., 2.1]))
    tensor([ True, False])
    """
    if not isinstance(other, TensorImpl):
        raise TypeError(f"{isclose.name}(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    if input.dtype != other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    return rows["isclose"](input, other, rtol, atol, equal_nan)


@operator
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close; see `isclose`.

    >>> import cygrad
    >>> cygrad.allclose(cygrad.ones(2), cygrad.ones(2) + 1e-7)
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@operator
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements.

    >>> import cygrad
    >>> cygrad.equal(cygrad.ones(2), cygrad.ones(3))
    False
    """
    return input.shape == other.shape and bool((input == other).all())
