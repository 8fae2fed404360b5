"""Numerical and analytical derivatives side by side: whole Jacobians, or products of them with random vectors.

A complex tensor is a pair of real ones, as in torch: of an output the gradients of each part are checked by themselves, where those for
an input are dRe + i dIm, and in forward mode the tangents along each part of an input.

The products are torch's fast mode ("Gradcheck mechanics", https://pytorch.org/docs/stable/notes/gradcheck.html). With random
u and v, differences along u give J u and one backward gives v J; both then give the number v J u. Forward mode gives J u.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cygrad.autograd.gradcheck.analytical import check_dtypes, gradients, tangents
from cygrad.autograd.gradcheck.case import Case, Settings
from cygrad.autograd.gradcheck.directions import PART_NAMES, in_parts, parts_of, random_directions, unit_vectors
from cygrad.autograd.gradcheck.errors import GradcheckError
from cygrad.autograd.gradcheck.numerical import numerical_derivatives, numerical_jacobians
from cygrad.data.creation import from_numpy
from cygrad.tensor import Tensor


def _checked_gradients(case: Case, output: int, weights: Iterable[np.ndarray], settings: Settings) -> list[np.ndarray]:
    rows = gradients(case, output, weights, settings.nondet_tol)
    if settings.check_grad_dtypes:
        check_dtypes(case, output)
    return rows


def compare_jacobians(case: Case, settings: Settings) -> None:
    """Compare the derivative of each element of each output with respect to each element of each input."""
    numerical = [numerical_jacobians(case, variable, case.output_positions, settings.eps) for variable in case.inputs]
    if settings.check_backward_ad:
        for output, part in _parts_in_turn(case.outputs):
            weights = unit_vectors(case.outputs[output], part)
            for input, jacobian in enumerate(_checked_gradients(case, output, weights, settings)):
                expected = _of_output(numerical[input][output], part, case.inputs[input])
                _compare(case, settings, Place(output, input, part), expected, jacobian.T, settings.atol)
    if settings.check_forward_ad:
        for input, part in _parts_in_turn(case.inputs):
            directions = unit_vectors(case.inputs[input], part)
            for output, jacobian in enumerate(tangents(case, input, directions)):
                expected = _along_input(numerical[input][output], part, case.inputs[input])
                _compare(case, settings, Place(output, input, part, forward=True), expected, jacobian, settings.atol)


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
        for output, part in _parts_in_turn(case.outputs):
            weight = in_parts(case.outputs[output], v[output], [part])
            for input, (gradient,) in enumerate(_checked_gradients(case, output, [weight], settings)):
                with np.errstate(all="ignore"):
                    expected = _of_output(numerical[input][output], part, case.inputs[input]) @ v[output].ravel()
                    result = gradient @ u[input].ravel()
                _compare(case, settings, Place(output, input, part), expected, result, settings.atol * u[input].sum() * v[output].sum())
    if settings.check_forward_ad:
        for input, part in _parts_in_turn(case.inputs):
            direction = in_parts(case.inputs[input], u[input], [part])
            for output, (tangent,) in enumerate(tangents(case, input, [direction])):
                expected = _along_input(numerical[input][output], part, case.inputs[input])
                _compare(case, settings, Place(output, input, part, forward=True), expected, tangent, settings.atol * u[input].sum())


def compare_with_zero(case: Case, settings: Settings) -> None:
    """Check a function without outputs: it must not change as its inputs move."""
    positions = [position for position, result in enumerate(case.results) if result.dtype.is_differentiable]
    directions = random_directions(case.inputs, np.random.default_rng(0))
    for input, (variable, direction) in enumerate(zip(case.inputs, directions, strict=True)):
        if settings.fast_mode:
            results = numerical_derivatives(case, variable, direction, positions, settings.eps)
        else:
            results = numerical_jacobians(case, variable, positions, settings.eps)
        for position, derivatives in zip(positions, results, strict=True):
            if not (np.abs(derivatives) <= (settings.nondet_tol if settings.fast_mode else 0)).all():
                raise GradcheckError("Numerical gradient for function expected to be zero: no result requires a gradient, but result "
                                     f"{position} changes with input {input},\nnumerical:{_shown(derivatives)}\n")


@dataclass(frozen=True)
class Place:
    """The compared derivative: of a part of an output, or in forward mode along a part of an input."""

    output: int
    input: int
    part: complex
    forward: bool = False

    def described(self, case: Case) -> str:
        """Begin the message of a mismatch, in torch's words."""
        divided, name = (case.inputs[self.input], "inputs") if self.forward else (case.outputs[self.output], "outputs")
        which = f"While considering the {PART_NAMES[self.part]} part of complex {name} only, " if divided.is_complex() else ""
        mode = "computed with forward mode " if self.forward else ""
        return f"{which}Jacobian {mode}mismatch for output {self.output} with respect to input {self.input},\n"


def _parts_in_turn(tensors: Sequence[Tensor]) -> list[tuple[int, complex]]:
    """Return (number, part) of tensors: one part of all of them first, as in torch."""
    return [(number, part) for part in parts_of(*tensors) for number, tensor in enumerate(tensors) if part in parts_of(tensor)]


def _of_output(numerical: np.ndarray, part: complex, variable: Tensor) -> np.ndarray:
    """Return the derivative of a part of an output: for a complex variable dRe + i dIm."""
    steps = parts_of(variable)
    return np.tensordot(np.array(steps), np.real(np.conj(part) * numerical), 1)


def _along_input(numerical: np.ndarray, part: complex, variable: Tensor) -> np.ndarray:
    return numerical[parts_of(variable).index(part)]


def _compare(case: Case, settings: Settings, place: Place, numerical: np.ndarray, analytical: np.ndarray, atol: float) -> None:
    if np.allclose(analytical, numerical, settings.rtol, atol):
        return
    message = (f"{place.described(case)}numerical:{_shown(numerical)}\nanalytical:{_shown(analytical)}\n{case.company(place.input)}")
    raise GradcheckError(message + (_whole_jacobians(case, settings, place) if settings.fast_mode else ""))


def _shown(array: np.ndarray) -> str:
    return f"{from_numpy(np.asarray(array))}"


def _whole_jacobians(case: Case, settings: Settings, place: Place) -> str:
    """Return a text to add to the message of a comparison in fast mode that failed."""
    variable = case.inputs[place.input]
    parts = numerical_jacobians(case, variable, [case.output_positions[place.output]], settings.eps)[0]
    vectors = unit_vectors(variable if place.forward else case.outputs[place.output], place.part)
    if place.forward:
        numerical, analytical = _along_input(parts, place.part, variable), tangents(case, place.input, vectors)[place.output]
    else:
        numerical = _of_output(parts, place.part, variable)
        analytical = gradients(case, place.output, vectors, settings.nondet_tol)[place.input].T
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
