"""Numerical and analytical derivatives side by side: whole Jacobians, or products of them with random vectors.

The products are torch's fast mode ("Gradcheck mechanics", https://pytorch.org/docs/stable/notes/gradcheck.html). With random
u and v, differences along u give J u and one backward gives v J; both then give the number v J u. Forward mode gives J u.
"""

from __future__ import annotations

import numpy as np

from cygrad.autograd.gradcheck.analytical import gradients, tangents
from cygrad.autograd.gradcheck.case import Case, Settings
from cygrad.autograd.gradcheck.directions import random_directions, unit_vectors
from cygrad.autograd.gradcheck.errors import GradcheckError
from cygrad.autograd.gradcheck.numerical import numerical_derivatives, numerical_jacobians
from cygrad.creation import from_numpy


def compare_jacobians(case: Case, settings: Settings) -> None:
    """Compare the derivative of each element of each output with respect to each element of each input."""
    numerical = [numerical_jacobians(case, variable, case.output_positions, settings.eps) for variable in case.inputs]
    if settings.check_backward_ad:
        for output, tensor in enumerate(case.outputs):
            for input, jacobian in enumerate(gradients(case, output, unit_vectors(tensor), settings)):
                _compare(case, settings, output, input, numerical[input][output], jacobian.T, settings.atol)
    if settings.check_forward_ad:
        for input, variable in enumerate(case.inputs):
            for output, jacobian in enumerate(tangents(case, input, unit_vectors(variable))):
                _compare(case, settings, output, input, numerical[input][output], jacobian, settings.atol, forward=True)


def compare_products(case: Case, settings: Settings) -> None:
    """Compare one random combination of all derivatives for each output and input.

    Where the elements of two Jacobians differ by atol, their products with vectors that have no negative elements differ by
    atol times the sums of the vectors.
    """
    stream = np.random.default_rng(0)
    u, v = random_directions(case.inputs, stream), random_directions(case.outputs, stream)
    numerical = [numerical_derivatives(case, variable, direction, case.output_positions, settings.eps)
                 for variable, direction in zip(case.inputs, u, strict=True)]
    if settings.check_backward_ad:
        for output, weight in enumerate(v):
            for input, (gradient,) in enumerate(gradients(case, output, [weight], settings)):
                with np.errstate(all="ignore"):
                    products = weight.ravel() @ numerical[input][output], gradient @ u[input].ravel()
                _compare(case, settings, output, input, *products, settings.atol * u[input].sum() * weight.sum())
    if settings.check_forward_ad:
        for input, direction in enumerate(u):
            for output, (tangent,) in enumerate(tangents(case, input, [direction])):
                _compare(case, settings, output, input, numerical[input][output], tangent, settings.atol * direction.sum(), forward=True)


def compare_with_zero(case: Case, settings: Settings) -> None:
    """Check a function without outputs: it must not change as its inputs move."""
    positions = [position for position, result in enumerate(case.results) if result.dtype.is_differentiable]
    directions = random_directions(case.inputs, np.random.default_rng(0))
    for input, (variable, direction) in enumerate(zip(case.inputs, directions, strict=True)):
        if settings.fast_mode:
            found = numerical_derivatives(case, variable, direction, positions, settings.eps)
        else:
            found = numerical_jacobians(case, variable, positions, settings.eps)
        for position, derivatives in zip(positions, found, strict=True):
            if not (np.abs(derivatives) <= (settings.nondet_tol if settings.fast_mode else 0)).all():
                raise GradcheckError("Numerical gradient for function expected to be zero: no result requires a gradient, but result "
                                     f"{position} changes with input {input},\nnumerical:{_shown(derivatives)}\n")


def _compare(case: Case, settings: Settings, output: int, input: int, numerical: np.ndarray, analytical: np.ndarray, atol: float,
             forward: bool = False) -> None:
    if np.allclose(analytical, numerical, settings.rtol, atol):
        return
    message = (f"Jacobian {'computed with forward mode ' if forward else ''}mismatch for output {output} with respect to input {input},\n"
               f"numerical:{_shown(numerical)}\nanalytical:{_shown(analytical)}\n{case.company(input)}")
    raise GradcheckError(message + (_whole_jacobians(case, settings, output, input, forward) if settings.fast_mode else ""))


def _shown(array: np.ndarray) -> str:
    return f"{from_numpy(np.asarray(array))}"


def _whole_jacobians(case: Case, settings: Settings, output: int, input: int, forward: bool) -> str:
    """Return what to add to the message of a comparison in fast mode that failed."""
    numerical = numerical_jacobians(case, case.inputs[input], [case.output_positions[output]], settings.eps)[0]
    if forward:
        analytical = tangents(case, input, unit_vectors(case.inputs[input]))[output]
    else:
        analytical = gradients(case, output, unit_vectors(case.outputs[output]), settings)[input].T
    with np.errstate(all="ignore"):
        difference = np.abs(numerical - analytical).max()
    message = ("\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode, along random "
               "directions. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
               f"Numerical:\n {_shown(numerical)}\nAnalytical:\n{_shown(analytical)}\n\n"
               f"The max per-element difference (slow mode) is: {difference}.\n")
    if np.allclose(analytical, numerical, settings.rtol, settings.atol):
        message += ("Fast gradcheck failed but element-wise differences are small. This means that the test might've passed in slow_mode! "
                    "Call it with fast_mode=False.\n")
    return message
