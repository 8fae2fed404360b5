"""Derivatives as autograd gives them, by backward and by forward mode.

The rows of their results are gradients or tangents, one for each vector they were weighted with: with unit
vectors they are a Jacobian or its transpose, with one random vector a single product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cygrad._core.graph.node import Node
from cygrad.autograd.derivatives import grad
from cygrad.autograd.function import FunctionCtx
from cygrad.autograd.gradcheck.case import Case, memory_of
from cygrad.autograd.gradcheck.errors import GradcheckError
from cygrad.data.creation import from_numpy
from cygrad.tensor import Tensor


def _stacked(rows: Sequence[Sequence[np.ndarray]], tensors: Sequence[Tensor]) -> list[np.ndarray]:
    return [np.array(row, memory_of(tensor).dtype).reshape(len(row), tensor.numel()) for row, tensor in zip(rows, tensors, strict=True)]


# ----- Backward -----
def gradients(case: Case, output: int, weights: Iterable[np.ndarray], tolerance: float) -> list[np.ndarray]:
    """Return for each input an array of (weights, its elements): the gradients of one output, weighted. Runs may differ by `tolerance`."""
    rows: list[list[np.ndarray]] = [[] for _ in case.inputs]
    for weight in weights:
        first, second = _flat_gradients(case, output, weight), _flat_gradients(case, output, weight)
        for number, (row, one, other) in enumerate(zip(rows, first, second, strict=True)):
            _check_reproduced(one, other, output, number, tolerance)
            row.append(one)
    return _stacked(rows, case.inputs)


def _flat_gradients(case: Case, output: int, weight: np.ndarray) -> list[np.ndarray]:
    result = grad(case.outputs[output], case.inputs, from_numpy(weight.copy()), retain_graph=True, allow_unused=True)
    return [np.zeros(variable.numel()) if gradient is None else memory_of(gradient).flatten()
            for variable, gradient in zip(case.inputs, result, strict=True)]


def _check_reproduced(one: np.ndarray, other: np.ndarray, output: int, input: int, tolerance: float) -> None:
    with np.errstate(invalid="ignore"):
        difference = np.abs(one - other).max(initial=0)
    if difference > tolerance:
        raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                             f"different values. The tolerance for nondeterminism was {tolerance}, the gradients of output {output} with "
                             f"respect to input {input} differ by {difference}: give nondet_tol= if the function is not deterministic.")


def check_dtypes(case: Case, output: int) -> None:
    """Refuse gradients that a user's backward returned in another dtype than its input has."""
    for node in _functions_behind(case.outputs[output], case.inputs):
        if node._converted is not None:
            position, actual, expected = node._converted
            raise GradcheckError(f"Gradient has dtype mismatch: {node.name()}, used by output {output}, returned {actual} as gradient "
                                 f"{position} where its input has {expected}")


def _functions_behind(output: Tensor, inputs: Sequence[Tensor]) -> Iterator[FunctionCtx]:
    """Yield the nodes of users' Functions between inputs and an output."""
    seen: set[Node] = {variable._gradient_edge()[0] for variable in inputs}
    stack: list[Node] = [output._gradient_edge()[0]]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, FunctionCtx):
            yield node
        stack += [source for source, _ in node.next_functions if source is not None]


# ----- Forward mode -----
def tangents(case: Case, input: int, directions: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Return for each output an array of (directions, its elements): how the outputs change along directions of one input."""
    rows: list[list[np.ndarray]] = [[] for _ in case.outputs]
    for direction in directions:
        moved = [direction if number == input else np.zeros_like(memory_of(variable)) for number, variable in enumerate(case.inputs)]
        for row, (primal, tangent) in zip(rows, run_dual(case, moved), strict=True):
            row.append(np.zeros(primal.numel()) if tangent is None else memory_of(tangent).flatten())
    return _stacked(rows, case.outputs)


def run_dual(case: Case, directions: Sequence[Any]) -> list[tuple[Tensor, Tensor | None]]:
    """Return (value, tangent) of each output at inputs with tangents; an input whose direction is None has none."""
    from cygrad.autograd import forward_ad

    with forward_ad.dual_level():
        duals = [variable.detach() if direction is None else forward_ad.make_dual(variable.detach(), _as_tensor(direction))
                 for variable, direction in zip(case.inputs, directions, strict=True)]
        return [tuple(forward_ad.unpack_dual(output)) for output in case.run_outputs(case.replaced(duals))]


def _as_tensor(direction: Any) -> Tensor:
    return direction if isinstance(direction, Tensor) else from_numpy(direction)
