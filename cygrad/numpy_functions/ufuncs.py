"""NumPy's ufuncs called on tensors: those that are operators here go on the tape, all others raise."""

from __future__ import annotations

from typing import Any

import numpy as np

from cygrad._core.compute.products import promoted_factors
from cygrad._core.graph.tensor import TensorImpl, tensor_class
from cygrad.numpy_functions.dispatch import ROWS
from cygrad.numpy_functions.rows import delivered, refusal, refuse_out
from cygrad.operators import find
from cygrad.ops import ELEMENTWISE, REDUCTIONS

_NAMES = {getattr(np, row.numpy): name for name, row in ELEMENTWISE.items() if row.numpy}
_REDUCTIONS = {getattr(np, row.ufunc): name for name, row in REDUCTIONS.items() if row.ufunc}


def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Compute a ufunc of which an input or output is a tensor."""
    outputs = keywords.pop("out", ())
    if any(output is not None and not isinstance(output, TensorImpl) for output in outputs):
        refuse_out(ufunc, inputs)
        plain = tuple(value.numpy() if isinstance(value, TensorImpl) else value for value in inputs)
        return getattr(ufunc, method)(*plain, out=outputs, **keywords)
    keywords = {name: value for name, value in keywords.items() if not (name == "where" and value is True)}
    if ufunc is np.matmul and method == "__call__":
        inputs = promoted_factors(*inputs)
    name = _operator_name(ufunc)
    if method == "__call__" and name is not None and not keywords:
        return getattr(tensor_class(), name)(*inputs, **({"out": outputs[0]} if outputs else {}))
    row = ROWS.get(ufunc) if method == "__call__" else None
    if row is not None:
        result = row(inputs, keywords)
        return delivered(ufunc, result, outputs) if outputs else result
    if ufunc is np.divmod and method == "__call__" and not keywords and not outputs:
        return tensor_class().floor_divide(*inputs), tensor_class().remainder(*inputs)
    if method == "reduce" and ufunc in _REDUCTIONS and set(keywords) <= {"axis", "keepdims", "dtype"}:
        dim = keywords.pop("axis", 0)
        reduction = getattr(tensor_class(), _REDUCTIONS[ufunc])
        return reduction(inputs[0], dim, keepdim=bool(keywords.get("keepdims")), dtype=keywords.get("dtype"))
    raise refusal(ufunc, "" if method == "__call__" else f".{method}", keywords)


def _operator_name(ufunc: np.ufunc) -> str | None:
    """Return the operator that stands for a ufunc of NumPy's; other libraries have ufuncs of the same names."""
    if ufunc in _NAMES:
        return _NAMES[ufunc]
    name = ufunc.__name__       # operators that are no rows are declared by NumPy's name
    return name if getattr(np, name, None) is ufunc and find(name) is not None else None
