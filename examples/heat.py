"""An implicit heat equation: SciPy's banded solver as a differentiable function of one's own.

A rod of a graded alloy is heated at one end by pulses and kept cold at the other. How its diffusivity varies along it is inferred from
four thermometers: 50 unknowns, 60 implicit time steps, each a system of tridiagonal equations. `TridiagonalSolve` gives SciPy's
solver to the tape; its gradient is a solution with the transposed matrix, so gradients of gradients need no line more. They give the
Newton method its Hessian products, and the band of the answer.

    python examples/heat.py [--output build/heat.svg]
"""

import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.linalg import solve_banded
from scipy.optimize import minimize

import cygrad as cg
from cygrad.autograd import Function, gradcheck, gradgradcheck
from cygrad.optimize import value_and_grad

Array = NDArray[Any]

CELLS, WIDTH = 50, 5.0  # mm each
STEPS, STEP = 60, 10.0  # s each
PERIOD, HEAT = 200.0, 60.0  # s, and K above the cold end
THERMOMETERS, ERROR = [10, 20, 30, 40], 0.05  # cells, and K
TYPICAL, ROUGHNESS = 30.0, 0.15  # the prior: mm^2/s, and how much its logarithm varies from cell to cell
DEVIATIONS = 1.96  # of a band that holds 95 %
TOLERANCE = 1e-12  # between temperatures by banded and by dense matrices, relative


def after(values: cg.Tensor) -> cg.Tensor:
    """Return the values moved by one place, a zero in front."""
    return cg.cat([cg.zeros_like(values[:1]), values[:-1]])


def before(values: cg.Tensor) -> cg.Tensor:
    """Return the values moved back by one place, a zero behind."""
    return cg.cat([values[1:], cg.zeros_like(values[:1])])


class TridiagonalSolve(Function):
    """x of A x = right; A is given by its diagonals, (3, n), as SciPy has them: column j of A is column j of them.

    Of lambda, the solution of A^T lambda = g, the gradients are: by the right side lambda, by A -lambda x^T.
    """

    @staticmethod
    def forward(diagonals: cg.Tensor, right: cg.Tensor) -> cg.Tensor:
        return cg.from_numpy(solve_banded((1, 1), diagonals.numpy(), right.numpy(), check_finite=False))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[cg.Tensor, cg.Tensor], output: cg.Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, g: cg.Tensor) -> tuple[cg.Tensor, cg.Tensor]:
        (above, middle, below), x = ctx.saved_tensors
        adjoint = TridiagonalSolve.apply(cg.stack([after(below), middle, before(above)]), g)
        return -cg.stack([after(adjoint), adjoint, before(adjoint)]) * x, adjoint


def diffusivity(steps: cg.Tensor) -> cg.Tensor:
    """Return the diffusivity of each cell: its logarithm is a walk of independent steps, of variance 1 before anything is measured."""
    return TYPICAL * (ROUGHNESS * steps.cumsum(0)).exp()


def heating() -> Array:
    """Return the temperature of the heated end in each step: on and off."""
    return HEAT * (np.arange(STEPS) * STEP % PERIOD < PERIOD / 2)


def diagonals(diffusivity: cg.Tensor) -> tuple[cg.Tensor, cg.Tensor]:
    """Return the matrix of one implicit step, by its diagonals, and the heated end's part in the first cell."""
    resistance = 1 / diffusivity
    between = 2 / (resistance[1:] + resistance[:-1])  # of the two halves of neighbours, one behind the other
    flow = STEP / WIDTH**2 * cg.cat([2 * diffusivity[:1], between, 2 * diffusivity[-1:]])
    return cg.stack([-flow[:-1], 1 + flow[:-1] + flow[1:], -flow[1:]]), flow[0]


def temperatures(diffusivity: cg.Tensor) -> cg.Tensor:
    """Return the temperature of all cells after each step, (steps, cells), above the cold end's."""
    matrix, inflow = diagonals(diffusivity)
    first = cg.zeros(CELLS, dtype=cg.float64)
    first[0] = 1
    inflow = inflow * first
    now, steps = cg.zeros(CELLS, dtype=cg.float64), []
    for end in heating().tolist():
        now = TridiagonalSolve.apply(matrix, now + end * inflow)
        steps.append(now)
    return cg.stack(steps)


def dense_temperatures(diffusivity: Array) -> Array:
    """Return the same with full matrices, in NumPy."""
    matrix, inflow = diagonals(cg.tensor(diffusivity))
    above, middle, below = matrix.numpy()
    step = np.linalg.inv(np.diag(middle) + np.diag(above[1:], 1) + np.diag(below[:-1], -1))
    now, steps = np.zeros(CELLS), []
    for end in heating():
        now = step @ (now + end * inflow.item() * np.eye(CELLS)[0])
        steps.append(now)
    return np.array(steps)


def draw(places: Array, measured: Array, true: Array, result: Array, deviations: Array, field: Array, output: Path) -> None:
    """Write the picture: the temperature in place and time, at the thermometers, and the diffusivity with its band."""
    figure, parts = plt.subplot_mosaic([["field", "found"], ["times", "found"]], figsize=(10, 5.2), layout="constrained")
    seconds = STEP * np.arange(1, STEPS + 1)
    image = parts["field"].imshow(field.T, origin="lower", aspect="auto", extent=(0, seconds[-1], 0, CELLS * WIDTH), cmap="inferno",
                                  interpolation="none")
    figure.colorbar(image, ax=parts["field"], label="temperature (K)")
    parts["field"].set(title="Temperature above the cold end, as fitted", xlabel="time (s)", ylabel="place (mm)")
    parts["field"].grid(False)
    for number, cell in enumerate(THERMOMETERS):
        colour = f"C{number}"
        parts["field"].axhline(places[cell], color="white", lw=0.8, ls=":")
        parts["times"].plot(seconds, measured[:, number], ".", color=colour, ms=4)
        parts["times"].plot(seconds, field[:, cell], color=colour, lw=1, label=f"{places[cell]:.0f} mm")
        parts["found"].axvline(places[cell], color=colour, lw=1, ls=":")
    parts["times"].set(title="The thermometers: measured (dots) and fitted", xlabel="time (s)", ylabel="temperature (K)",
                       xlim=(0, seconds[-1]), ylim=(None, 1.3 * measured.max()))
    parts["times"].legend(loc="upper left", ncols=4)

    low, high = result * np.exp(-DEVIATIONS * deviations), result * np.exp(DEVIATIONS * deviations)
    axes = parts["found"]
    axes.fill_between(places, low, high, color="tab:blue", alpha=0.2, lw=0, label="95 % band")
    axes.plot(places, true, color="black", lw=1.2, label="true")
    axes.plot(places, result, color="tab:blue", lw=1.5, label="inferred")
    axes.axhline(TYPICAL, color="grey", lw=1, ls="--", label="start")
    axes.set(title="Diffusivity; dotted: the thermometers", xlabel="place (mm)", ylabel="diffusivity (mm²/s)",
             xlim=(0, CELLS * WIDTH), ylim=(0, None))
    axes.legend(loc="best")
    write(figure, output)


def main() -> None:
    """Simulate, infer, check the solver's derivatives, and write the picture."""
    output = output_argument("Infer how a rod conducts heat.", "build/heat.svg")
    places = WIDTH * (np.arange(CELLS) + 0.5)
    true = TYPICAL * np.exp(-1.2 * np.exp(-(((places - 90) / 30) ** 2)) + 0.5 * np.tanh((places - 170) / 20))
    random = np.random.default_rng(0)
    truth = temperatures(cg.tensor(true)).numpy()
    measured = truth[:, THERMOMETERS] + random.normal(scale=ERROR, size=(STEPS, len(THERMOMETERS)))
    data = cg.from_numpy(measured)

    def f(steps: cg.Tensor) -> cg.Tensor:
        """Return the negative log-posterior, up to a constant."""
        misfit = (temperatures(diffusivity(steps))[:, THERMOMETERS] - data) / ERROR
        return (misfit.square().sum() + steps.square().sum()) / 2

    objective = value_and_grad(f, np.zeros(CELLS))
    start = time.perf_counter()
    fit = minimize(objective, objective.x0, jac=True, hessp=objective.hessp, method="Newton-CG")
    middle = time.perf_counter()
    hessian = np.stack([objective.hessp(fit.x, axis) for axis in np.eye(CELLS)])
    covariance = np.linalg.inv(hessian).cumsum(axis=0).cumsum(axis=1) * ROUGHNESS**2  # of the logarithm of the diffusivity
    deviations = np.sqrt(covariance.diagonal())
    end = time.perf_counter()
    result = diffusivity(cg.tensor(fit.x)).numpy()
    field = temperatures(cg.tensor(result)).numpy()
    draw(places, measured, true, result, deviations, field, output)

    cg.manual_seed(0)
    matrix = cg.rand(3, 6, dtype=cg.float64) + cg.tensor([[0.0], [4.0], [0.0]], dtype=cg.float64)
    inputs = matrix.requires_grad_(), cg.randn(6, dtype=cg.float64, requires_grad=True)
    right = gradcheck(TridiagonalSolve.apply, inputs) and gradgradcheck(TridiagonalSolve.apply, inputs)
    apart = np.abs(dense_temperatures(true) - truth).max() / truth.max()
    misfit = np.sqrt(np.square(field[:, THERMOMETERS] - measured).mean())
    inside = np.abs(np.log(true / result)) < DEVIATIONS * deviations
    error = np.sqrt(np.square(np.log(true / result)).mean())
    print(f"{CELLS} cells, {STEPS} steps, {measured.size} measurements with errors of {ERROR} K; picture: {output}")
    print(f"misfit of the thermometers: {misfit:.3f} K")
    print(f"diffusivity: off by {100 * error:.1f} % on average, from {100 * np.sqrt(np.square(np.log(true / TYPICAL)).mean()):.0f} % "
          f"at the start; {100 * inside.mean():.0f} % of the cells lie in their 95 % bands")
    print(f"gradcheck and gradgradcheck of the solver: {right}; banded and dense steps differ by {apart:.0e}")
    print(f"time: {middle - start:.2f} s for {fit.nit} steps with {fit.njev} gradients and {fit.nhev} Hessian products, "
          f"{end - middle:.2f} s for the {CELLS} products of the band")
    if not apart <= TOLERANCE:
        sys.exit(f"banded and dense steps differ by more than {TOLERANCE:.0e}: one of them is wrong")


if __name__ == "__main__":
    main()
