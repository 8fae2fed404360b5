"""`Variable`, torch's former name of a tensor: for old code."""

from __future__ import annotations

import warnings
from typing import Any

from cygrad._core.engine.backward import queue_callback, run_backward
from cygrad.tensor import Tensor

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """Has all tensors count as instances of `Variable`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class _Engine:
    """`Variable._execution_engine` of torch."""

    queue_callback = staticmethod(queue_callback)
    run_backward = staticmethod(run_backward)


class Variable(metaclass=VariableMeta):
    """A tensor over the memory of another one, as a leaf of its own.

    `volatile` has no effect any more; TypeError where `data` is no tensor.

    >>> import cygrad
    >>> x = cygrad.autograd.Variable(cygrad.ones(2), requires_grad=True)
    >>> (x * 3).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> isinstance(x, cygrad.autograd.Variable)
    True
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool | None = None) -> Any:
        if volatile:
            warnings.warn("volatile was removed and now has no effect. Use `with cygrad.no_grad():` instead.", UserWarning, stacklevel=2)
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if data is None:
            from cygrad.data.creation import empty
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}; use cygrad.tensor()")
        return data.detach().requires_grad_(requires_grad)
