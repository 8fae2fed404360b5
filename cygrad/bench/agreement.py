"""Results that are compared are the same, but for rounding, before anything is timed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cygrad.bench.libraries import array

# Tolerances, as parts of the largest number of an array: sums differ by their order. Integers and bools are equal.
TOLERANCES = {"float16": 1e-2, "bfloat16": 6e-2, "float32": 1e-4, "float64": 1e-9, "complex64": 1e-4, "complex128": 1e-9}


class Disagreement(RuntimeError):
    """Two libraries have different results."""


def agree(work: str, results: Mapping[str, Sequence[Any]], dtype: str = "") -> None:
    """Raise Disagreement unless all libraries have the same results, but for rounding in that dtype, or in each result's."""
    names = list(results)
    for name in names[1:]:
        for ours, theirs in zip(results[names[0]], results[name], strict=True):
            actual, expected = array(ours), array(theirs)
            exact = expected.dtype.kind in "biu"
            tolerance = 0.0 if exact else TOLERANCES.get(dtype, TOLERANCES[expected.dtype.name])
            if expected.shape != actual.shape or not difference(actual, expected) <= tolerance:
                raise Disagreement(f"{work}: {names[0]} and {name} differ")


def difference(actual: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference of two arrays, as a part of the largest number of the second."""
    wide = np.result_type(expected.dtype if expected.dtype.name != "bfloat16" else np.float32, np.float64)
    actual, expected = actual.astype(wide), expected.astype(wide)
    scale = np.abs(expected).max(initial=1e-300)
    return float(np.abs(actual - expected).max(initial=0) / scale)
