"""Operators on sparse tensors: a rule is the function that computes one, and has its name.

    @rule
    def clone(input: Tensor) -> Tensor: ...

The core calls `answer` for each operator of which an argument is sparse. A rule calls operators on values and index tensors, which have
gradients, tangents and batches, so it has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cygrad._core.entry.special import tensors_of
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.sparse import replace_sparse, sparse_part
from cygrad.operators._language.arguments import delivered

F = TypeVar("F", bound=Callable[..., Any])

RULES: dict[str, Callable[..., Any]] = {}       # by the operator's name


def rule(function: F) -> F:
    """Have a function compute the operator of its name where an argument is sparse."""
    RULES[function.__name__] = function
    return function


def answer(operator: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of an operator, or of a row that is given by its name, written into `out` if that is given."""
    name = operator if isinstance(operator, str) else operator.name
    out = keywords.pop("out", None)
    if out is None:
        return _computed(operator, name, arguments, keywords)
    if not any(sparse_part(tensor) is not None for tensor in tensors_of((*arguments, *keywords.values()))):
        raise RuntimeError(f"{name}(): out= is a sparse tensor, but the result is dense")
    return _delivered(name, _computed(operator, name, arguments, keywords), out)


def _computed(operator: Any, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of an operator; NotImplementedError where it has no rule."""
    function = RULES.get(name)
    if function is not None:
        return function(*arguments, **keywords)
    if isinstance(operator, str):
        return RULES["elementwise"](name, *arguments, **keywords)
    if name.endswith("_") and not name.startswith("_"):
        return changed_in_place(name, *arguments, **keywords)
    declaration = operator.declaration
    if declaration is not None and declaration.parts is not None:
        result = declaration.parts(*arguments, **keywords)
        if result is not NotImplemented:
            return result
    elif declaration is not None and declaration.forward is declaration.batch is None:      # composed of others
        return operator.function(*arguments, **keywords)
    raise _without_rule(name)


def _delivered(name: str, result: Any, out: Any) -> Any:
    """Write a result into the tensor given as out=, of its layout, shape and dtype, and return that."""
    if not isinstance(out, TensorImpl):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if (sparse_part(out) is None) != (sparse_part(result) is None):
        raise RuntimeError(f"{name}(): out= has the layout {out.layout!r}, but the result {result.layout!r}")
    if sparse_part(out) is None:
        return delivered(result, out)
    if is_grad_enabled() and (out.requires_grad or result.requires_grad):
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                           "requires grad.")
    return replaced(out, result)


def _without_rule(name: str) -> NotImplementedError:
    return NotImplementedError(f"{name}() is not implemented for sparse tensors: use to_dense(), or values()")


def changed_in_place(name: str, target: Any, *arguments: Any, **keywords: Any) -> Any:
    """Compute the operator of an in-place form, and have the target take on its result."""
    method = getattr(target, name[:-1], None)
    if method is None:
        raise _without_rule(name)
    return replaced(target, method(*arguments, **keywords))


def replaced(target: Any, result: Any) -> Any:
    """Have a tensor take on a result of its shape and dtype."""
    own, other = sparse_part(target), sparse_part(result)
    if own is None:
        return target.copy_(result if other is None else result.to_dense())
    if other is None or tuple(target.shape) != tuple(result.shape) or target.dtype != result.dtype:
        kind = "a dense tensor" if other is None else f"a tensor of shape {list(result.shape)} and {result.dtype}"
        raise RuntimeError(f"a sparse tensor of shape {list(target.shape)} and {target.dtype} does not take {kind} in place")
    if is_grad_enabled() and target.requires_grad and target.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    return replace_sparse(target, result.to_sparse(layout=target.layout))
