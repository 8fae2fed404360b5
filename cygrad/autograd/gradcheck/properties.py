"""Gradients of nothing: weights that are zero or missing give zeros, and so do tangents."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from cygrad.autograd.derivatives import grad
from cygrad.autograd.function import Function
from cygrad.autograd.gradcheck.analytical import run_dual
from cygrad.autograd.gradcheck.case import Case, memory_of
from cygrad.autograd.gradcheck.directions import in_parts, parts_of, random_directions
from cygrad.autograd.gradcheck.errors import GradcheckError
from cygrad.data.creation import from_numpy
from cygrad.operators.new_tensors import zeros_like
from cygrad.tensor import Tensor


def check_zero_gradients(case: Case) -> None:
    """Check that backward gives zeros for weights of zero. Frees the graph of the outputs."""
    input = _input_with_gradient(case.outputs, case.inputs)
    if input is not None:
        raise GradcheckError(f"backward not multiplied by grad_output: input {input} gets a gradient where all grad_outputs are zero")


def _input_with_gradient(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> int | None:
    """Return the number of the first input whose gradient is not zero where the weights of all outputs are; None if there is none."""
    weights = [zeros_like(output).contiguous() for output in outputs]
    gradients = grad(outputs, inputs, weights, allow_unused=True)
    return next((number for number, gradient in enumerate(gradients) if gradient is not None and memory_of(gradient).any()), None)


class _UndefinedGradient(Function):
    """The identity, whose backward passes no gradient on."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> None:
        return None


def check_undefined_gradients(case: Case) -> None:
    """Check backward with no gradient for any output, then, where there are several, with none for each in turn."""
    every = range(len(case.outputs))
    for undefined in [every, *([number] for number in every if len(every) > 1)]:
        outputs = [_UndefinedGradient.apply(output) if number in undefined else output
                   for number, output in enumerate(case.run_outputs(case.arguments))]
        described = f"{'output' if len(undefined) == 1 else 'outputs'} {', '.join(map(str, undefined))}"
        try:
            input = _input_with_gradient(outputs, case.inputs)
        except Exception as error:
            _warn()
            raise GradcheckError(f"Expected backward function to handle undefined output grads. It got none for {described} and raised: "
                                 f"{error}. Test each gradient for None, or leave set_materialize_grads on.") from error
        if input is not None:
            _warn()
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or zero. Where "
                                 f"{described} had none, input {input} got one that is not zero.")


def _warn() -> None:
    warnings.warn("Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
                  "existing callers of this function. If this is true for you, you can call this function with "
                  '"check_undefined_grad=False" to disable the feature', stacklevel=5)


def check_undefined_tangents(case: Case) -> None:
    """Check that a missing tangent of an input counts as zero, for each input beside random tangents of the others."""
    directions = [in_parts(variable, direction, parts_of(variable))
                  for variable, direction in zip(case.inputs, random_directions(case.inputs, np.random.default_rng(0)), strict=True)]
    for input, direction in enumerate(directions):
        with_zeros = run_dual(case, [*directions[:input], np.zeros_like(direction), *directions[input + 1:]])
        missing = run_dual(case, [*directions[:input], None, *directions[input + 1:]])
        for output, pairs in enumerate(zip(with_zeros, missing, strict=True)):
            expected, result = (np.zeros(tuple(primal.shape)) if tangent is None else memory_of(tangent) for primal, tangent in pairs)
            if not np.allclose(result, expected):
                raise GradcheckError(f"Mismatch in tangent values for output with index: {output} when input: {input} has an undefined "
                                     f"tangent value. Got: {from_numpy(result)} but expected: {from_numpy(expected)}")
