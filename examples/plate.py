"""An implicit heat equation on a plate: its conductivity is inferred by the adjoint of a sparse solve.

A square plate is heated at four spots and cooled at its edge. Its conductivity differs from place to place, which is inferred from the
temperatures of some cells at a few times. Each implicit step is a solution with one sparse matrix, whose values are computed from 400
unknowns; a gradient is a solution with the same factors for each step.

    python examples/plate.py [--output build/plate.svg]
"""

import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.optimize import minimize

import cygrad as cg
from cygrad.optimize import value_and_grad

Array = NDArray[Any]

SIDE = 20  # cells along each edge
STEPS, STEP = 12, 4.0
ERROR, ROUGHNESS = 0.01, 0.15  # of a temperature; of the logarithm of the conductivity, from cell to cell
TOLERANCE = 1e-9  # between gradients by sparse and by dense solves, relative

NUMBERS = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
LEFT = np.concatenate([NUMBERS[:, :-1].ravel(), NUMBERS[:-1].ravel()])  # of each pair of neighbours, one cell and the other
RIGHT = np.concatenate([NUMBERS[:, 1:].ravel(), NUMBERS[1:].ravel()])
EDGE = ((NUMBERS % SIDE == 0) | (NUMBERS % SIDE == SIDE - 1) | (NUMBERS < SIDE) | (NUMBERS >= SIDE * (SIDE - 1))).ravel()
SEEN = NUMBERS[1::3, 1::3].ravel()
SPOTS = ((5, 4), (14, 6), (6, 15), (15, 14))
PLACES = cg.from_numpy(np.stack([np.concatenate([LEFT, RIGHT, LEFT, RIGHT, NUMBERS.ravel()]),
                                 np.concatenate([LEFT, RIGHT, RIGHT, LEFT, NUMBERS.ravel()])]))
SOURCE = cg.from_numpy(np.sum([np.exp(-((NUMBERS // SIDE - y) ** 2 + (NUMBERS % SIDE - x) ** 2) / 8) for x, y in SPOTS], 0).ravel())


def step_matrix(logarithms: cg.Tensor) -> cg.Tensor:
    """Return the matrix of an implicit step, 1 + STEP * (flow to neighbours and out of the edge), whose entries at one place add up."""
    conductivity = logarithms.exp()
    flow = STEP * 2 / (1 / conductivity[LEFT] + 1 / conductivity[RIGHT])
    own = 1 + STEP * 0.2 * cg.from_numpy(EDGE.astype(float))
    return cg.sparse_coo_tensor(PLACES, cg.cat([flow, flow, -flow, -flow, own]), (SIDE * SIDE, SIDE * SIDE))


def temperatures(logarithms: cg.Tensor, dense: bool = False) -> cg.Tensor:
    """Return the temperatures after each step, by one factorization."""
    A = step_matrix(logarithms)
    whole = A.to_dense()
    solve = (lambda b: cg.linalg.solve(whole, b)) if dense else cg.sparse.factorized(A)
    states = [cg.zeros(SIDE * SIDE, dtype=cg.float64)]
    for _ in range(STEPS):
        states.append(solve(states[-1] + STEP * SOURCE))
    return cg.stack(states[1:])


def draw(true: Array, fit: Array, last: Array, output: Path) -> None:
    """Write the picture: the conductivity, true and inferred, and the last temperatures with the cells that are measured."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axis, values, title in zip(axes, (true, fit, last), ("Conductivity, true", "inferred", "Temperature at the end"), strict=True):
        image = axis.imshow(values.reshape(SIDE, SIDE), cmap="viridis" if axis is not axes[2] else "inferno")
        axis.set(title=title, xticks=[], yticks=[])
        axis.grid(False)
        figure.colorbar(image, ax=axis)
    axes[2].plot(SEEN % SIDE, SEEN // SIDE, "w.", ms=4)
    write(figure, output)


def main() -> None:
    """Simulate, infer, compare gradients with the gradients of dense solves, and write the picture."""
    output = output_argument("Infer the conductivity of a plate.", "build/plate.svg")
    rows, columns = np.divmod(NUMBERS.ravel(), SIDE)
    true = 0.8 * np.tanh((columns - rows) / 4) - 0.6 * np.exp(-((rows - 13) ** 2 + (columns - 13) ** 2) / 12)
    clean = temperatures(cg.from_numpy(true))[:, SEEN].numpy()
    data = cg.from_numpy(clean + ERROR * np.random.default_rng(0).standard_normal(clean.shape))

    def f(logarithms: cg.Tensor, dense: bool = False) -> cg.Tensor:
        """Return the negative log-posterior, up to a constant."""
        misfit = (temperatures(logarithms, dense)[:, SEEN] - data) / ERROR
        roughness = (logarithms[LEFT] - logarithms[RIGHT]) / ROUGHNESS
        return (misfit.square().sum() + roughness.square().sum()) / 2

    start = cg.zeros(SIDE * SIDE, dtype=cg.float64)
    sparse_gradient, dense_gradient = cg.func.grad(f)(start), cg.func.grad(lambda x: f(x, True))(start)
    apart = ((sparse_gradient - dense_gradient).abs().max() / dense_gradient.abs().max()).item()
    objective = value_and_grad(f, start)
    begin = time.perf_counter()
    fit = minimize(objective, objective.x0, jac=True, method="L-BFGS-B", options={"maxiter": 400, "maxfun": 500})
    end = time.perf_counter()
    result = objective.unflatten(fit.x)
    draw(np.exp(true), result.exp().numpy(), temperatures(result)[-1].numpy(), output)

    residual = (temperatures(result)[:, SEEN] - data).square().mean().sqrt().item()
    before, after = np.std(true), np.sqrt(np.square(result.numpy() - true).mean())
    print(f"{SIDE} x {SIDE} cells, {len(SEEN)} of them measured {STEPS} times with errors of {ERROR}; picture: {output}")
    print(f"gradients by sparse and by dense solves differ by {apart:.0e}")
    print(f"logarithm of the conductivity: {before:.2f} its variation, {after:.2f} the error of the fit; residuals of {residual:.4f}")
    print(f"time: {end - begin:.1f} s for {fit.nfev} gradients")
    if not (apart <= TOLERANCE and 0.8 * ERROR < residual < 1.2 * ERROR and after < before / 4):
        sys.exit("the gradients differ, or the fit is wrong")


if __name__ == "__main__":
    main()
