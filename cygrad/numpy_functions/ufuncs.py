"""NumPy's ufuncs called on tensors: those that are operators here go on the tape, all others raise. SciPy's special ones likewise."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from cygrad._core.compute.dispatch import ops
from cygrad._core.compute.products import promoted_factors
from cygrad._core.graph.tensor import TensorImpl, tensor_class
from cygrad.data.creation import tensor
from cygrad.data.limits import result_type
from cygrad.numpy_functions import ufunc_methods
from cygrad.numpy_functions.dispatch import ROWS
from cygrad.numpy_functions.rows import arrays, delivered, name_of, operand, refusal, refuse_out
from cygrad.operators import find, modules_of
from cygrad.operators._language.arguments import all_examples
from cygrad.operators._written import registry
from cygrad.ops import ELEMENTWISE

_NAMES = {getattr(np, row.numpy): name for name, row in ELEMENTWISE.items() if row.numpy}


def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Compute a ufunc, or one of its methods, of which an input or output is a tensor."""
    outputs = keywords.pop("out", ())
    targets = inputs[:1] if method == "at" else outputs
    if any(target is not None for target in targets) and not any(isinstance(target, TensorImpl) for target in targets):
        refuse_out(ufunc, inputs)
        options = {"out": outputs} if outputs else {}
        return getattr(ufunc, method)(*arrays(inputs, np.asarray), **options, **keywords)
    keywords = {name: value for name, value in keywords.items() if not (name == "where" and value is True)}
    function = operator_of(ufunc)
    if method != "__call__":
        compute = ufunc_methods.METHODS.get(method)
        if function is None or compute is None or not compute.takes(ufunc, keywords):
            raise refusal(ufunc, f".{method}", keywords)
        result = compute(ufunc, *inputs, **keywords)
        return delivered(ufunc, result, outputs) if outputs else result
    if function is None or (keywords and ufunc not in ROWS):
        raise refusal(ufunc, "", keywords)
    if ufunc in ROWS:
        result = ROWS[ufunc](inputs, keywords)
    elif outputs:
        return function(*inputs, out=outputs[0])
    else:
        return function(*inputs)
    if len(outputs) > 1:
        return tuple(each if out is None else delivered(ufunc, each, out) for each, out in zip(result, outputs, strict=True))
    return delivered(ufunc, result, outputs) if outputs else result


def operator_of(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the function of tensors that stands for a ufunc of NumPy's or SciPy's; other libraries have ufuncs of the same names."""
    if ufunc is np.matmul:
        return lambda a, b, **keywords: tensor_class().matmul(*promoted_factors(a, b), **keywords)
    name = _NAMES.get(ufunc)
    if name is None and getattr(np, ufunc.__name__, None) is ufunc and find(ufunc.__name__) is not None:
        name = ufunc.__name__       # operators that are no rows of elementwise functions are declared by NumPy's name
    if name in ops and name not in modules_of(registry.FUNCTIONS):
        return ops[name]        # which takes a number beside a tensor, as NumPy does
    if name is not None:
        return getattr(tensor_class(), name)
    return ROWS.get(ufunc) or _special(ufunc)


def _special(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the operator of `cygrad.special` with the name of a ufunc of `scipy.special`, or of one that a function there calls."""
    name = ufunc.__name__.removeprefix("_")
    library = sys.modules.get("scipy.special")
    is_theirs = any(getattr(place, ufunc.__name__, None) is ufunc for place in (library, getattr(library, "_ufuncs", None)))
    if not is_theirs or f"special_{name}" not in modules_of(registry.SPECIAL):
        return None
    from cygrad import special
    function = getattr(special, name)
    of_tensors = [parameter.annotation == "Tensor" for parameter in inspect.signature(function).parameters.values()]

    def compute(*inputs: Any, **keywords: Any) -> Any:
        operands = [x if isinstance(x, (int, float)) else operand(x) for x in inputs]
        if ufunc.types[0].startswith("l"):      # the first operand is the order of a function for whole orders
            operands[0] = _whole(ufunc, operands[0])
        first = next(x for x in operands if isinstance(x, TensorImpl))
        for place, x in enumerate(operands):
            if of_tensors[place] and not isinstance(x, TensorImpl):
                operands[place] = tensor(x, dtype=result_type(first, x))
        return function(*operands, **keywords)

    return compute


def _whole(ufunc: np.ufunc, order: Any) -> Any:
    """Return an order without its fraction, with SciPy's warning if it has one."""
    whole = order.detach().trunc() if isinstance(order, TensorImpl) else float(np.trunc(order))
    if bool(all_examples(whole != order).any() if isinstance(order, TensorImpl) else whole != order):
        warnings.warn(f"{name_of(ufunc)}: floating point number truncated to an integer", RuntimeWarning, stacklevel=4)
    return whole
