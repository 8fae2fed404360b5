"""The gradients of a batch of weights, or the tangents of a batch of directions, against each of them alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cygrad._core.levels.level import enter_level, exit_level
from cygrad.autograd.derivatives import grad
from cygrad.autograd.gradcheck.analytical import run_dual
from cygrad.autograd.gradcheck.case import Case, memory_of
from cygrad.autograd.gradcheck.directions import parts_of
from cygrad.autograd.gradcheck.errors import GradcheckError
from cygrad.data.creation import from_numpy
from cygrad.tensor import Tensor

_BACKWARD = ("gradcheck or gradgradcheck failed while testing batched gradient computation. The backward of each operator in the function "
             "has to work on a batch: if it cannot, give check_batched_grad=False.")
_FORWARD = ("gradcheck failed while testing batched gradient computation with forward-mode AD. The function has to work on a batch of "
            "tangents: if it cannot, give check_batched_forward_grad=False.")

Derivatives = Callable[[Tensor], Sequence[Tensor | None]]


def check_batched_gradients(case: Case) -> None:
    """Compare `grad` of a batch of weights with `grad` of each."""
    for output, tensor in enumerate(case.outputs):
        gradients = partial(grad, tensor, case.inputs, retain_graph=True, allow_unused=True)
        for input, pair in enumerate(_both_ways(gradients, tensor, case.inputs, _BACKWARD)):
            _compare(output, input, *pair, _BACKWARD)


def check_batched_tangents(case: Case) -> None:
    """Compare forward mode for a batch of tangents of one input with forward mode for each of them."""
    for input, variable in enumerate(case.inputs):
        for output, pair in enumerate(_both_ways(partial(_tangents, case, input), variable, case.outputs, _FORWARD)):
            _compare(output, input, *pair, _FORWARD)


def _tangents(case: Case, input: int, direction: Tensor) -> list[Tensor | None]:
    directions = [direction if number == input else None for number in range(len(case.inputs))]
    return [tangent for _, tangent in run_dual(case, directions)]


def _both_ways(derivatives: Derivatives, tensor: Tensor, targets: Sequence[Tensor], failure: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for each target, derivatives along a random batch of two vectors like a tensor: all at once and one by one."""
    stream = np.random.default_rng(0)
    parts = (part * stream.standard_normal((2, *tensor.shape)) for part in parts_of(tensor))
    batch = from_numpy(np.asarray(sum(parts), memory_of(tensor).dtype))
    expected = [derivatives(vector) for vector in batch]
    try:
        result = _at_once(derivatives, batch)
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{failure}") from error
    return [(_array(whole, (2, *target.shape)), np.stack([_array(part, target.shape) for part in parts]))
            for target, whole, *parts in zip(targets, result, *expected, strict=True)]


def _at_once(derivatives: Derivatives, batch: Tensor) -> list[Tensor | None]:
    """Call with a tensor that stands for any one of the batch, as `vmap` does."""
    level = enter_level(len(batch), "none")
    try:
        return [None if result is None else level.enter(result) for result in derivatives(level.leave(batch))]
    finally:
        exit_level(level)


def _array(derivative: Tensor | None, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape) if derivative is None else memory_of(derivative)


def _compare(output: int, input: int, result: np.ndarray, expected: np.ndarray, failure: str) -> None:
    if result.shape != expected.shape or not np.allclose(result, expected):
        raise GradcheckError(f"For output {output} and input {input}:\n\n{failure}\n\nGot:\n{from_numpy(result)}\n\nExpected:\n"
                             f"{from_numpy(expected)}")
