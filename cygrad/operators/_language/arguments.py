"""Arguments and results of operators: checks, dims and integers in all the ways they are given, `out`."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import batched_level
from cygrad._core.memory.sizes import distinct_dims as distinct_dims
from cygrad._core.memory.sizes import integers as integers
from cygrad._core.memory.sizes import normalized_dims as normalized_dims
from cygrad._core.operands.checks import check_dtype as check_dtype
from cygrad._core.operands.checks import checked_operand as checked_operand
from cygrad._core.operands.operands import checked_out
from cygrad.ops.refusals import refusal, refused_factor

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.tensor import Tensor

T = TypeVar("T")
# Tuples, as a union of types is made again by each call.
SEQUENCE, SCALARS, NUMBERS = (tuple, list), (np.generic, TensorImpl), (int, float, complex)
KINDS = "biufc"     # of dtypes, lowest first


def checked_tensor(function: Callable[..., Any], value: Any, argument: str = "input", position: int = 1) -> Any:
    """Return an argument that is not declared as a tensor, by default the first; TypeError if it is no tensor.

    The operator itself checks those that are (`operator_object.h`).
    """
    if not isinstance(value, TensorImpl):
        raise TypeError(f"{function.__name__}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}")
    return value


def refused(operator: Any, tensor: Tensor) -> Exception:
    """Return the exception for a tensor of a dtype that an operator does not take."""
    return refusal(operator.name, tensor.dtype.name)


def check_kinds(operator: Any, tensor: Any, *others: Any) -> None:
    """Refuse tensors whose dtype together, the one of the highest kind, is none that the operator takes."""
    for other in others:
        if KINDS.index(other.dtype.kind) > KINDS.index(tensor.dtype.kind):
            tensor = other
    check_dtype(operator.name, tensor)


def all_examples(tensor: Any) -> Any:
    """Return a tensor for a check of its values: without a history, and inside of vmap with all examples."""
    tensor = tensor.detach()
    while (level := batched_level(tensor)) is not None:
        tensor = level.enter(tensor)
    return tensor


def check_ndim(message: str, tensor: Tensor, ndim: int) -> None:
    """Refuse a tensor of another number of dims; the message opens with the name of the operator, and says how many there are."""
    if not isinstance(tensor, TensorImpl):
        raise TypeError(f"{message.partition(' ')[0]} must be Tensor, not {type(tensor).__name__}")
    if tensor.ndim != ndim:
        raise RuntimeError(message.format(tensor.ndim))


def read_factor(operator: Any, word: str, factor: Any, *tensors: Any) -> Any:
    """Return a factor, a number or a 0-d tensor without a gradient, as a Python number.

    It has no say in the dtype: one of a higher kind than the tensors is refused.
    """
    if isinstance(factor, SCALARS) and not getattr(factor, "requires_grad", False) and not factor.ndim:
        factor = factor.item()
    if not isinstance(factor, NUMBERS):
        raise TypeError(f"{operator.name}(): argument '{word}' must be Number, not {type(factor).__name__}: a number, or a 0-d tensor "
                        "that does not require a gradient; a factor with a gradient is multiplied by")
    if isinstance(factor, complex) and not any(tensor.is_complex() for tensor in tensors):
        raise refused_factor(word, "c")
    if isinstance(factor, float) and not any(tensor.dtype.is_differentiable for tensor in tensors):
        raise refused_factor(word, "f")
    return factor


def exact_integer(value: Any) -> int:
    """Return an integer of any type as an int; TypeError, in words of the operator's signature, for others, bools among them."""
    if isinstance(value, bool):
        raise TypeError("an integer is required")
    return index(value)


def hashable(value: Any) -> Any:
    """Return integers, one or several, or None, as a key of plans."""
    return value if value is None or type(value) is int else integers(value)


def delivered(result: Any, out: Any) -> Any:
    """Return a result, written into `out` if that is given."""
    return result if out is None else checked_out(out, result)


def spread(sizes: tuple[Any, ...], by_name: Any = None) -> tuple[int, ...]:
    """Return integers that were given one by one, as one sequence, or by the parameter's name."""
    if by_name is not None:
        if sizes:
            raise TypeError(f"the integers were given twice: as {sizes} and by keyword as {by_name}")
        return integers(by_name)
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], SEQUENCE) else sizes


def given_tensors(operator: Any, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return tensors that were given one by one or as one sequence."""
    tensors = spread(tensors)
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, TensorImpl):
            raise TypeError(f"{operator.name}(): expected Tensor as element {number} in argument 0, but got {type(tensor).__name__}")
    return tensors


def shown(results: Any, name: str) -> str:
    """Return the text of the named tuple that an operator returns, as torch has it."""
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(results._fields, results, strict=True))
    return f"cygrad.return_types.{name}(\n{fields})"


def shown_as(name: str) -> Callable[[type[T]], type[T]]:
    """Give a type of named tuples the text that torch has for the results of an operator of that name."""
    def named(kind: type[T]) -> type[T]:
        kind.__repr__ = lambda results: shown(results, name)  # type: ignore[method-assign]
        return kind

    return named


class ValuesAndIndices(NamedTuple):
    """The results of operators that find elements along a dim."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return shown(self, type(self).__name__)


def delivered_together(result_type: Any, results: Any, out: Any) -> Any:
    """Return several results as a named tuple, written into the tensors of `out` if that is given."""
    if out is not None:
        if not isinstance(out, SEQUENCE) or len(out) != len(results):
            raise TypeError(f"argument 'out' must be tuple of {len(results)} Tensors, not {type(out).__name__}")
        results = map(checked_out, out, results)
    return result_type(*results)


def pair_type(name: str) -> Any:
    """Return the type of the (values, indices) that a function of that name gives."""
    return type(name, (ValuesAndIndices,), {"__slots__": ()})
