"""The dispatch of a NumPy function called with a tensor: it has a row, or is a question, or makes arrays; all others raise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad.numpy_functions import choices as choices
from cygrad.numpy_functions import editing as editing
from cygrad.numpy_functions import elements as elements
from cygrad.numpy_functions import matrices as matrices
from cygrad.numpy_functions import numbers as numbers
from cygrad.numpy_functions import polynomials as polynomials
from cygrad.numpy_functions import products as products
from cygrad.numpy_functions import quantiles as quantiles
from cygrad.numpy_functions import ranges as ranges
from cygrad.numpy_functions import reductions as reductions
from cygrad.numpy_functions import samples as samples
from cygrad.numpy_functions import sets as sets
from cygrad.numpy_functions import shapes as shapes
from cygrad.numpy_functions import statistics as statistics
from cygrad.numpy_functions import transforms as transforms
from cygrad.numpy_functions.rows import ROWS, arrays, operands, refusal, values
from cygrad.operators.shapes import atleast_1d, atleast_2d, atleast_3d

# Their answers are no numbers that have a derivative: yes or no, a dtype, text. So they are asked of values alone.
QUESTIONS = frozenset({
    np.allclose, np.array_equal, np.array_equiv, np.iscomplexobj, np.isrealobj, np.shares_memory, np.may_share_memory,
    np.result_type, np.can_cast, np.min_scalar_type, np.common_type, np.array_repr, np.array_str, np.array2string, np.einsum_path})
# They make arrays, or files: as `np.asarray` does, which NumPy does not dispatch.
CONVERSIONS = frozenset({np.save, np.savez, np.savez_compressed, np.savetxt})
# SciPy calls these on results of functions, and goes on with arrays. A tensor that cannot become an array stays a tensor.
WRAPPINGS = {np.atleast_1d: atleast_1d, np.atleast_2d: atleast_2d, np.atleast_3d: atleast_3d}


def call(function: Any, types: Iterable[type], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Compute a function of which an argument is a tensor."""
    if not all(issubclass(kind, TensorImpl | np.ndarray) for kind in types):
        return NotImplemented
    row = ROWS.get(function)
    if row is not None:
        return row(arguments, keywords)
    if function in QUESTIONS:
        return function(*arrays(arguments, values), **arrays(keywords, values))
    if function in WRAPPINGS:
        try:
            return function(*arrays(arguments, np.asarray))
        except RuntimeError:        # arrays have no history, no tangent, and are no examples of vmap
            return WRAPPINGS[function](*operands(arguments))
    if function in CONVERSIONS:
        return function(*arrays(arguments, np.asarray), **arrays(keywords, np.asarray))
    raise refusal(function)
