"""How a function of NumPy's becomes one of tensors: a row is a function with the parameters of NumPy's that it honours.

    @row(np.ptp)
    def peak_to_peak(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:

NumPy's own signature says how arguments are passed, and which have their defaults; other arguments are refused by their names. A row is
given them by name. `out` is no parameter of it: every row takes it where NumPy's function does.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cygrad._core.graph.tensor import TensorImpl, tensor_class
from cygrad._core.memory.storage import DType, resolve_dtype
from cygrad._core.operands.arrays import from_array, readable
from cygrad._core.operands.operands import checked_out
from cygrad.data.limits import promote_types
from cygrad.operators.joining import stack

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
Parameter = inspect.Parameter

ROWS: dict[Any, Row] = {}           # by NumPy's function


class Row:
    """A function of NumPy's, and the one of tensors that stands for it."""

    def __init__(self, numpy: Any, function: Callable[..., Any]) -> None:
        self.numpy, self.function = numpy, function

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """NumPy's parameters; the row's own for functions in C, whose parameters NumPy shows from 2.4 on."""
        try:
            return inspect.signature(self.numpy).parameters
        except ValueError:
            return self.honoured

    @cached_property
    def honoured(self) -> Mapping[str, Parameter]:
        return inspect.signature(self.function).parameters

    @cached_property
    def takes_any_name(self) -> bool:
        return any(parameter.kind is Parameter.VAR_KEYWORD for parameter in self.honoured.values())

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """The names of arguments by their place: none where any number is taken."""
        kinds = [parameter.kind for parameter in self.parameters.values()]
        return () if Parameter.VAR_POSITIONAL in kinds else tuple(
            name for name, kind in zip(self.parameters, kinds, strict=True) if kind not in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD))

    def __call__(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        names, out, by_name = self.positional, None, {}
        by_place = dict(zip(names, arguments, strict=False))
        if names and (len(arguments) > len(names) or not keywords.keys().isdisjoint(by_place)):
            raise TypeError(f"{name_of(self.numpy)}() takes {len(names)} positional arguments, each once, but {len(arguments)} were given, "
                            f"and {', '.join(keywords)}")
        for name, value in (by_place | keywords).items():
            parameter = self.parameters.get(name)
            if parameter is not None and name == "out":
                out = value
            elif parameter is None or not is_default(value, parameter.default):
                if name not in self.honoured and not self.takes_any_name:
                    raise TypeError(f"{name_of(self.numpy)} is not supported on cygrad tensors with {name}: leave it out, or call it on "
                                    "tensor.detach().numpy()")
                by_name[name] = value
        result = self.function(*(() if names else arguments), **by_name)
        return result if out is None else delivered(self.numpy, result, out)


def row(*functions: Any) -> Callable[[F], F]:
    """Declare the row of functions of NumPy's."""
    def declare(function: F) -> F:
        for each in functions:
            ROWS[each] = Row(each, function)
        return function

    return declare


def name_of(function: Any) -> str:
    """Return the name of a function of NumPy's as users write it; a ufunc does not hold the library that it is from."""
    name = function.__name__
    if isinstance(function, np.ufunc):
        libraries = {"np": np, "scipy.special": sys.modules.get("scipy.special")}
        return next((f"{library}.{name}" for library, module in libraries.items() if getattr(module, name, None) is function),
                    f"the ufunc {name!r}")
    return f"{(getattr(function, '__module__', None) or 'numpy').replace('numpy', 'np', 1)}.{name}"


def refusal(function: Any, method: str = "", keywords: Iterable[str] = ()) -> TypeError:
    """Return the exception for a function that takes no tensors, or not with these keywords; it names a method only where there is one."""
    name = function.__name__
    instead = f", or use tensor.{name}(...)" if callable(getattr(tensor_class(), name, None)) and not method else ""
    words = f" with {', '.join(keywords)}" if keywords else ""
    return TypeError(f"{name_of(function)}{method} is not supported on cygrad tensors{words}: call it on tensor.detach().numpy(){instead}")


def is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (bool, int, float, str)) and type(value) is type(default) and value == default)


# ----- Results -----
def delivered(function: Any, result: Any, out: Any) -> Any:
    """Return a result written into `out`, a tensor or an array."""
    if isinstance(out, tuple) and len(out) == 1:
        out, = out
    if isinstance(out, TensorImpl):
        return checked_out(out, result)
    refuse_out(function, (result,))
    if not isinstance(out, np.ndarray) or out.shape != tuple(result.shape):
        raise ValueError(f"{name_of(function)}: out= must be a tensor or an array of shape {tuple(result.shape)}")
    np.copyto(out, result.numpy(), casting="same_kind")
    return out


def refuse_out(function: Any, values: Sequence[Any]) -> None:
    """Refuse to write a tensor with a history into an array."""
    if any(isinstance(value, TensorImpl) and value.requires_grad for value in values):
        raise RuntimeError(f"{name_of(function)} cannot write a tensor that requires grad into an array: its history would be lost. "
                           "Use tensor.detach().")


# ----- Operands -----
def operand(value: Any) -> Any:
    """Return a value that NumPy takes for an array as a tensor: arrays, numbers, and nested sequences, of tensors, too."""
    if isinstance(value, TensorImpl):
        return value
    if isinstance(value, (list, tuple)) and holds_tensors(value):
        return stack(promoted(*value))
    return from_array(readable(np.asarray(value)))


def holds_tensors(values: Sequence[Any]) -> bool:
    return any(isinstance(value, TensorImpl) or (isinstance(value, (list, tuple)) and holds_tensors(value)) for value in values)


def operands(values: Any) -> list[Tensor]:
    """Return a sequence of arrays, which a tensor may be as well, as tensors."""
    return [*values.unbind(0)] if isinstance(values, TensorImpl) else [operand(value) for value in values]


def promoted(*values: Any) -> list[Tensor]:
    """Return operands as tensors of their common dtype, in which those without dims have a say, as NumPy has it."""
    tensors = operands(values)
    dtypes = {tensor.dtype for tensor in tensors}
    if len(dtypes) < 2:
        return tensors
    common = reduce(promote_types, dtypes)
    return [tensor.to(common) for tensor in tensors]


def values(tensor: Any) -> np.ndarray:
    """Return the elements as an array, of a tensor with a history as well: for answers that have no derivative."""
    return tensor.detach().numpy()


def arrays(tree: Any, convert: Callable[[Any], np.ndarray] = values) -> Any:
    """Return arguments with arrays in the place of tensors."""
    if isinstance(tree, TensorImpl):
        return convert(tree)
    if isinstance(tree, dict):
        return {key: arrays(value, convert) for key, value in tree.items()}
    return type(tree)([arrays(value, convert) for value in tree]) if type(tree) in (list, tuple) else tree


def is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer))


def numpy_dtype(dtype: Any) -> DType | None:
    """Return a `dtype=` argument as NumPy reads it, of which `float` is double."""
    return dtype if dtype is None or isinstance(dtype, DType) else resolve_dtype(np.dtype(dtype))


def check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"Device not understood. Only \"cpu\" is allowed, but received: {device}")


def cast(tensor: Any, dtype: Any, casting: str) -> Any:
    """Return a tensor in the requested dtype, by NumPy's rules of casting."""
    dtype = numpy_dtype(dtype)
    if dtype is not None and not np.can_cast(tensor.dtype.name, dtype.name, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {tensor.dtype} to {dtype} according to the rule {casting!r}")
    return tensor if dtype is None else tensor.to(dtype)
