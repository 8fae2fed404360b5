"""Forward mode: dual tensors, whose tangents every operator hands on; torch's names.

One level of these functions at a time, as in torch; `cygrad.func.jvp` nests.

>>> import cygrad
>>> from cygrad.autograd import forward_ad
>>> with forward_ad.dual_level():
...     x = forward_ad.make_dual(cygrad.tensor([1., 2.]), cygrad.tensor([1., 0.]))
...     forward_ad.unpack_dual(x * x).tangent
tensor([2., 0.])
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from cygrad._core.exchange.aliases import storage_bytes
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import batched_level
from cygrad._core.levels.level import enter_level, exit_level
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.levels.tangents import set_tangent, tangent_of, without_overlap, without_tangent
from cygrad.autograd import tangents as tangents  # the rules that operators name
from cygrad.autograd.grad_mode import ContextDecorator

_state = threading.local()      # `level`: this thread's


def _current() -> Any:
    return getattr(_state, "level", None)


def __getattr__(name: str) -> int:
    """Write the number of the level into `_current_level`, -1 outside of one, as torch's module does."""
    if name == "_current_level":
        return -1 if _current() is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_dual_level(level: Any) -> bool:
    """Return True if a level is the one that these functions use in this thread."""
    return level is _current()


# ----- Levels -----
def enter_dual_level() -> int:
    """Begin the level of forward mode that the other functions use; `dual_level` is the usual form. Returns its number, 0."""
    if _current() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment; use cygrad.func.jvp, which nests")
    _state.level = enter_level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level, and with it all tangents that were made in it."""
    if _current() is None or level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    ended, _state.level = _state.level, None
    exit_level(ended)


class dual_level(ContextDecorator):
    """Context manager and decorator in which dual tensors exist; when it ends, their tangents are gone.

    RuntimeError where one such level is in another: `cygrad.func.jvp` is for that.

    >>> import cygrad
    >>> from cygrad.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     dual = fwAD.make_dual(cygrad.ones(2), cygrad.ones(2))
    ...     primal, tangent = fwAD.unpack_dual(dual.exp())
    >>> tangent
    tensor([2.7183, 2.7183])
    >>> fwAD.unpack_dual(dual).tangent is None
    True
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        exit_dual_level()


# ----- Dual tensors -----
def dual(primal: Any, tangent: Any, level: Any) -> Any:
    """Return a view of a tensor that has a tangent at a level."""
    for name, value in (("primal", primal), ("tangent", tangent)):
        if not value.dtype.is_differentiable:
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}; convert it first, "
                             "e.g. with .float()")
    if tangent.shape != primal.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                           f"supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
                           f"{list(tangent.shape)}.")
    if primal.is_complex() and not tangent.is_complex():
        tangent = tangent.to(primal.dtype)      # a real direction
    if tangent.dtype != primal.dtype:
        raise RuntimeError(f"Expected tangent to have the same dtype as primal, {primal.dtype}, but got {tangent.dtype}")
    part = sparse_part(primal)
    if part is not None:
        return part.around(dual(part.inner, _values_at(part.pattern, tangent), level))
    result = without_overlap(primal.view_as(primal))
    set_tangent(result, level, tangent)
    return result


def _values_at(pattern: Any, tangent: Any) -> Any:
    """Return the values of the tangent of a sparse tensor."""
    part = sparse_part(tangent)
    if part is None or not pattern.same_places(part.pattern):
        raise RuntimeError("The tangent of a sparse tensor must be a sparse tensor with values at the same places, but is "
                           + ("dense: use sparse_mask()" if part is None else "one with values at other places"))
    return part.inner


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a tensor over the memory of `tensor` that has `tangent`, of the same shape and dtype, beside its value.

    `tangent` is taken as it is where its memory is laid out as `tensor`'s (strides, and the size of all), else a copy of it.
    Differentiable with respect to both. RuntimeError outside of `dual_level`; ValueError for tensors that are not floating-point.

    >>> import cygrad
    >>> from cygrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(cygrad.tensor(3.), cygrad.tensor(1.))
    ...     print(forward_ad.unpack_dual(x ** 3).tangent)
    tensor(27.)
    """
    current = _current()
    if current is None or level not in (None, 0):
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, TensorImpl):
            raise TypeError(f"make_dual(): argument '{name}' must be Tensor, not {type(value).__name__}")
    if tangent_of(tensor, current) is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same level is not supported: "
                           "unpack_dual() it first")
    if tangent_of(tangent, current) is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level is not supported: "
                           "unpack_dual() it first")
    return dual(tensor, tangent if _lie_alike(tensor, tangent) else tangent.clone(), current)


def _lie_alike(tensor: Any, other: Any) -> bool:
    """Return True if two tensors have the same steps in memories of the same size; a sparse one, or one of many examples, has none."""
    if any(batched_level(each) is not None or sparse_part(each) is not None for each in (tensor, other)):
        return True
    return (all(a == b or size == 1 for a, b, size in zip(tensor.stride(), other.stride(), tensor.shape, strict=False))
            and len(storage_bytes(tensor)) == len(storage_bytes(other)))


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: the value without its tangent, and the tangent or None."""

    primal: Any
    tangent: Any


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return (primal, tangent) of a tensor; the tangent is None where it has none, and outside of `dual_level`.

    >>> import cygrad
    >>> from cygrad.autograd import forward_ad
    >>> forward_ad.unpack_dual(cygrad.ones(1))
    UnpackedDualTensor(primal=tensor([1.]), tangent=None)
    """
    current = _current()
    if current is None or level not in (None, 0):
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(without_tangent(tensor, current), tangent_of(tensor, current))
