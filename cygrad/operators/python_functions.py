"""Python's functions of the elements of a tensor, one number after another: slow, without a history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad.operators._language.declaration import operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.tensor import Tensor


def _write(operator: Any, target: Tensor, function: Any, *others: Tensor) -> Tensor:
    """Write the results of a function of the elements at each place, after the last call has succeeded."""
    name = operator.__name__
    if any(x.requires_grad for x in (target, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if not callable(function):
        raise TypeError(f"'{type(function).__name__}' object is not callable: {name}() takes a function of numbers")
    numbers = [function(*elements) for elements in zip(*(x.flatten().tolist() for x in (target, *others)), strict=True)]
    for number in numbers:
        if not isinstance(number, (int, float, complex)):
            raise TypeError(f"must be real number, not {type(number).__name__}: {name}() got this from its function")
    return target.copy_(target.new_tensor(numbers).reshape(target.shape)) if numbers else target


def _beside(operator: Any, target: Tensor, **others: Any) -> list[Tensor]:
    """Return other operands of the dtype of the target in its shape."""
    for name, other in others.items():
        if other.dtype != target.dtype:
            described = f"'{name}'" if len(others) == 1 else f"argument '{name}'"       # torch's words
            raise TypeError(f"{operator.__name__}: expected {target.type()} for {described} (got {other.type()})")
    return [other.expand(target.shape) for other in others.values()]


@operator(special=False)
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by the result of a Python function, which gets it as a number of Python's.

    Numbers are converted as by `tensor`. Where the function raises, the tensor is as it was.

    Raises:
        RuntimeError: the tensor requires a gradient.
        TypeError: the function returns something that is no number.

    >>> import cygrad
    >>> cygrad.tensor([1., 2.]).apply_(lambda number: number + 0.5)
    tensor([1.5000, 2.5000])
    """
    return _write(apply_, self, callable)


@operator(special=False)
def map_(self: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a Python function of it and of the element of `other`, which broadcasts.

    Numbers are converted as by `tensor`. Where the function raises, the tensor is as it was.

    Raises:
        RuntimeError: one of the tensors requires a gradient; `other` does not broadcast to this tensor.
        TypeError: `other` has another dtype; the function returns something that is no number.

    >>> import cygrad
    >>> cygrad.tensor([1., 2.]).map_(cygrad.tensor([10.]), max)
    tensor([10., 10.])
    """
    return _write(map_, self, callable, *_beside(map_, self, other=other))


@operator(special=False)
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a Python function of it and of the elements of `x` and `y`, which broadcast. See `map_`.

    >>> import cygrad
    >>> cygrad.tensor([1., 2.]).map2_(cygrad.tensor([10.]), cygrad.tensor(0.5), lambda a, x, y: a + x * y)
    tensor([6., 7.])
    """
    return _write(map2_, self, callable, *_beside(map2_, self, x=x, y=y))
