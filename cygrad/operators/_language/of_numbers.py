"""Operators that are functions of numbers, element by element, and no rows of the table: computed on arrays, in float64.

    @operator(dv=undifferentiable("jv: v"), dinput=lambda g, v, input: ..., tangent=along_elements, batch=by_elements, method=False)
    def special_jv(v: Operand, input: Operand, *, out: Tensor | None = None) -> Tensor:
        return of_numbers(special_jv, (v, input), by_scipy(special_jv, "jv"), out)

Operands are tensors or numbers, which broadcast; integers are taken as floats. A result is rounded once, to the dtype of its operands.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.storage import get_default_dtype
from cygrad._core.operands.arrays import from_array, to_array
from cygrad._kernels.drivers.stepped import stepped
from cygrad.data.creation import as_tensor
from cygrad.data.limits import promote_types, result_type
from cygrad.operators import public_name
from cygrad.operators._language.arguments import check_kinds, delivered
from cygrad.operators._language.batches import left, named_arguments
from cygrad.operators._language.declaration import recorded
from cygrad.operators.shapes import broadcast_tensors
from cygrad.ops.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad.tensor import Tensor
    Compute = Callable[..., np.ndarray]


# ----- Operands -----
def aligned(operator: Any, operands: Sequence[Any]) -> Sequence[Tensor]:
    """Return operands in the dtype and the shape of their result."""
    operands = [as_tensor(operand) if isinstance(operand, np.ndarray) else operand for operand in operands]
    tensors = [operand for operand in operands if isinstance(operand, TensorImpl)]
    for place, operand in enumerate(operands):
        if not isinstance(operand, TensorImpl) and not (tensors and isinstance(operand, (int, float, np.number))):
            raise TypeError(f"{operator.name}(): argument '{operator.declaration.rule.inputs[place]}' (position {place + 1}) must be "
                            f"Tensor, not {type(operand).__name__}")
    check_kinds(operator, *tensors)
    first = max(tensors, key=lambda tensor: tensor.ndim)
    dtype = reduce(promote_types, [result_type(first, operand) for operand in operands])
    if dtype.is_complex:
        raise refusal(operator.name, dtype.name)
    dtype = dtype if dtype.is_floating_point else get_default_dtype()
    return broadcast_tensors(*[operand.to(dtype) if isinstance(operand, TensorImpl) else as_tensor(operand, dtype=dtype)
                               for operand in operands])


def of_numbers(operator: Any, operands: Sequence[Any], compute: Compute, out: Tensor | None = None, **params: Any) -> Tensor:
    """Return the result of a declared operator, recorded: `compute` is a function of float64 arrays of one shape."""
    inputs = aligned(operator, operands)
    with np.errstate(all="ignore"):
        result = np.asarray(compute(*[np.asarray(to_array(tensor.detach()), np.float64) for tensor in inputs]))
    return delivered(recorded(operator, tuple(inputs), from_array(result).to(inputs[0].dtype), **params), out)


# ----- Functions of arrays -----
def by_steps(name: str, parameter: float = 0) -> Compute:
    """Return a function of our own of one or two arrays."""
    return lambda a, b=None: in_their_order(lambda x, z: stepped(name, x, z, parameter), a, a if b is None else b)


def in_their_order(compute: Compute, *arrays: np.ndarray) -> np.ndarray:
    """Apply a function of row-major arrays; its result lies as its operands do, in NumPy's order."""
    template = np.nditer([*arrays, None], ["zerosize_ok"]).operands[-1]
    axes = sorted(range(template.ndim), key=lambda axis: -template.strides[axis])
    return compute(*[array.transpose(axes) for array in arrays]).transpose(np.argsort(axes))


@cache
def _scipy_special() -> Any:
    """Import SciPy's module once: a backward may run while Python shuts down, when nothing can be imported."""
    import scipy.special
    return scipy.special


def by_scipy(operator: Any, name: str) -> Compute:
    """Return the ufunc of `scipy.special` that computes an operator."""
    try:
        ufunc: Compute = getattr(_scipy_special(), name)
    except ImportError as error:
        raise ImportError(f"{public_name(operator.name)}() is computed by scipy.special.{name}, which needs SciPy: "
                          'pip install "cygrad[special]"') from error
    return ufunc


# ----- Derivatives -----
def undifferentiable(words: str) -> Callable[..., Any]:
    """Return the gradient for an operand that there is no derivative by, in torch's words: it raises."""
    def refuse(g: Tensor) -> Tensor:
        raise NotImplementedError(f"the derivative for '{words}' is not implemented.")

    return refuse


def along_elements(tangent_of: Callable[..., Any], operator: Any, result: Tensor, *arguments: Any, **keywords: Any) -> Any:
    """Return the sum of the gradients of each operand, applied to its tangent: each element is a function of its own numbers."""
    rule = operator.declaration.rule
    named = named_arguments(operator, arguments, keywords).arguments
    known = {**named, **dict(zip(rule.inputs, aligned(operator, [named[name] for name in rule.inputs]), strict=True)), "y": result}
    parts = []
    for name, gradient in zip(rule.inputs, rule.functions, strict=True):
        t = tangent_of(named[name]) if isinstance(named[name], TensorImpl) else None
        if t is not None:
            known["g"] = t.to(result.dtype).expand(result.shape)
            parts.append(gradient(*(known[word] for word in gradient.__code__.co_varnames[:gradient.__code__.co_argcount])))
    return sum(parts[1:], parts[0]) if parts else None


def by_elements(level: Any, operator: Any, *arguments: Any, **keywords: Any) -> Any:
    """Apply an operator in vmap: operands of one shape in an example broadcast with operands of all examples."""
    bound = named_arguments(operator, arguments, keywords)
    names = operator.declaration.rule.inputs
    inputs = aligned(operator, [bound.arguments[name] for name in names])
    bound.arguments.update({name: level.enter(x) if level.varies(x) else x for name, x in zip(names, inputs, strict=True)})
    return left(level, operator(*bound.args, **bound.kwargs))
