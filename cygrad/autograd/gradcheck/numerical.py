"""Derivatives by central differences.

Elements are moved in the input's own memory and put back, so no other thread may use the inputs meanwhile. A function may use
its inputs without taking them as arguments, and gradgradcheck's needs the very tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cygrad.autograd.gradcheck.case import Case, memory_of
from cygrad.autograd.gradcheck.directions import parts_of
from cygrad.tensor import Tensor


def numerical_jacobians(case: Case, variable: Tensor, positions: Sequence[int], eps: float) -> list[np.ndarray]:
    """Return for each result at `positions` an array of (parts of the variable, its elements, elements of the result)."""
    memory, parts = memory_of(variable), parts_of(variable)
    jacobians = [np.zeros((len(parts), memory.size, result.numel()), memory_of(result).dtype) for result in _at(case.results, positions)]
    for row, index in enumerate(np.ndindex(memory.shape)):
        for number, part in enumerate(parts):
            differences = _differences(case, positions, memory[*index, ...], part * eps, eps, f"on index {index} ")
            for jacobian, difference in zip(jacobians, differences, strict=True):
                jacobian[number, row] = difference
    return jacobians


def numerical_derivatives(case: Case, variable: Tensor, direction: np.ndarray, positions: Sequence[int], eps: float) -> list[np.ndarray]:
    """Return how each result at `positions` changes as the parts of the variable move in a direction: an array of (parts, elements)."""
    steps = [_differences(case, positions, memory_of(variable), part * direction * eps, eps, "") for part in parts_of(variable)]
    return [np.stack(differences) for differences in zip(*steps, strict=True)]


def _at(results: Sequence[Tensor], positions: Sequence[int]) -> list[Tensor]:
    return [results[position] for position in positions]


def _differences(case: Case, positions: Sequence[int], memory: np.ndarray, step: np.ndarray | complex, eps: float, place: str
                 ) -> list[np.ndarray]:
    """Return (f(x + step) - f(x - step)) / (2 eps) of each result at `positions`, where x is in `memory`."""

    def values() -> list[np.ndarray]:
        results = _at(case.run(case.arguments), positions)
        _check_alike(_at(case.results, positions), results, eps, place)
        return [memory_of(result).flatten() for result in results]     # copies: a result may be a view of the variable

    here = memory.copy()
    try:
        memory[...] = here - step
        below = values()
        memory[...] = here + step
        above = values()
    finally:
        memory[...] = here
    with np.errstate(all="ignore"):
        return [(high - low) / (2 * eps) for high, low in zip(above, below, strict=True)]


def _check_alike(expected: Sequence[Tensor], results: Sequence[Tensor], eps: float, place: str) -> None:
    for one, other in zip(expected, results, strict=True):
        for kind in ("shape", "dtype"):
            if getattr(one, kind) != getattr(other, kind):
                raise AssertionError(f"Expected `func` to return outputs with the same {kind} when inputs are perturbed {place}by {eps}, "
                                     f"but got: {kind}s {getattr(one, kind)} and {getattr(other, kind)}.")
