"""float16 and bfloat16 in formulas of several steps: computed in float32, rounded once at the end."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.operands.checks import in_loops as in_loops

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad._core.memory.storage import DType


class Widened(NamedTuple):
    """Arguments in float32, and the 16-bit dtype that the result is rounded to."""

    arguments: list[Any]
    dtype: DType


def widened(arguments: Sequence[Any]) -> Widened | None:
    """Return arguments with their 16-bit tensors in float32; None if no tensor is a 16-bit float, or two dtypes meet."""
    dtypes = {argument.dtype for argument in arguments if isinstance(argument, TensorImpl)}
    if len(dtypes) != 1:
        return None
    dtype, = dtypes
    if not dtype.is_floating_point or dtype.loops == dtype:
        return None
    return Widened([argument.to(dtype.loops) if isinstance(argument, TensorImpl) else argument for argument in arguments], dtype)


def rounded_once(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return a formula that computes 16-bit tensors in float32 and rounds its result once. Its first argument is a tensor."""
    @wraps(formula)
    def rounded(*arguments: Any) -> Any:
        dtype = arguments[0].dtype
        wide = None if dtype.loops is dtype else widened(arguments)
        return formula(*arguments) if wide is None else formula(*wide.arguments).to(wide.dtype)

    return rounded


def of_unrounded_result(compute: Callable[..., Any], gradient: Callable[..., Any]) -> Callable[..., Any]:
    """Return a gradient that reads the result; of 16-bit tensors `compute` computes that again in float32: rounded, it is too coarse an
    exponent."""
    def of_result(g: Any, input: Any, y: Any, dim: Any) -> Any:
        wide = widened((g, input))
        if wide is None:
            return gradient(g, input, y, dim)
        wide_g, x = wide.arguments
        return gradient(wide_g, x, compute(x, dim), dim).to(wide.dtype)

    return of_result
