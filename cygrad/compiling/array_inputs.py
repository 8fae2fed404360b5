"""Arrays of NumPy's among the arguments, as inputs of a program, which holds for all values in arrays of a kind.

NumPy reads and writes arrays where no operator sees it. So a function is captured with an `ArrayInput` in place of each array: its shape
and dtype are the array's, its parts are inputs, too, and operators take the tensor over the memory. All else ends the capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.signature import Parts, signature_of
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.looks import look
from cygrad._core.operands.arrays import from_array
from cygrad.compiling.number_inputs import replaced

if TYPE_CHECKING:
    from collections.abc import Callable

LAYOUT = {"shape", "ndim", "dtype", "size", "itemsize", "nbytes"}
REASON = "an array of NumPy's among the arguments is used otherwise than as an operand of tensors: give a tensor"


class ArrayInput:
    """A value in place of an array, while a function is captured: `isinstance(x, numpy.ndarray)` holds, only `type(x)` is another one."""

    __slots__ = ("_array", "_tensor")

    def __init__(self, array: np.ndarray, tensor: Any) -> None:
        self._array, self._tensor = array, tensor

    @property           # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        args, kwargs = replaced((args, kwargs or {}), cls, cls.__tensor__)
        return func(*args, **kwargs)

    def __tensor__(self) -> Any:
        """Return a new tensor over the memory."""
        return self._tensor.detach()

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: Any) -> Any:
        parts = index if type(index) is tuple else (index,)
        if all(part is None or part is ... or type(part) in (int, slice) for part in parts):
            view = self._array[index]
            if type(view) is np.ndarray and min(view.strides, default=0) >= 0:
                return ArrayInput(view, self._tensor[index])
        raise_used()

    def __getattr__(self, name: str) -> Any:
        if name == "T":
            return ArrayInput(self._array.T, self._tensor.permute(*range(self._array.ndim)[::-1]))
        return getattr(self._array, name) if name in LAYOUT else raise_used()


def raise_used(*_: Any) -> Any:
    """Uncapturable, also where code of the function catches that."""
    look(REASON)
    raise Uncapturable(REASON)


def with_operand(self: ArrayInput, other: Any) -> Any:
    """Leave an operator to a tensor beside the array."""
    return NotImplemented if isinstance(other, TensorImpl) else raise_used()


BINARY = {f"__{reflected}{name}__" for reflected in ("", "r") for name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")} | {
    f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne")}
for _name in vars(np.ndarray).keys() - vars(ArrayInput).keys() - {"__getattribute__", "__new__"} | {"__hash__"}:
    if _name in BINARY:
        setattr(ArrayInput, _name, with_operand)
    elif _name.startswith("__") and callable(getattr(np.ndarray, _name)):
        setattr(ArrayInput, _name, raise_used)


def signature_with_arrays(arguments: tuple[Any, Any]) -> tuple[tuple[Any, Any], Any, Parts, list[Any]]:
    """Return (args, kwargs) with inputs in place of arrays, copies of containers, and their signature: its key, the values, and the objects
    of which there are copies among these.

    TypeError or ValueError for arrays that are no tensors.
    """
    parts, copies = Parts(), cast("dict[int, tuple[Any, Any]]", {})
    args, kwargs = replaced(arguments, np.ndarray, lambda array: ArrayInput(array, from_array(array)), copies=copies)
    key = signature_of(args, kwargs, parts)
    originals = {id(copy): value for value, copy in copies.values()}
    return (args, kwargs), key, parts, [originals.get(id(each), each) for each in parts.objects]


def as_arrays(value: Any) -> Any:
    """Return a value with arrays in place of inputs."""
    return replaced(value, ArrayInput, lambda each: each._array)
