"""A heat equation on several processes: halo exchange, and the initial state that explains later measurements.

A plate, periodic in one direction and cold at the edges of the other, cools by explicit steps. Thermometers at some cells measure it at
a few later times; from them the initial temperature of every cell is inferred. Each process steps its part of the plate, and gets its
neighbours' edges by `mpi.halo_exchange`; the gradient goes back through all steps and all processes. Value and gradient are compared
with the same program on one process.

    python examples/heat_mpi.py [--output build/heat_mpi.svg]
    mpiexec -n 4 python -m mpi4py examples/heat_mpi.py
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from pictures import output_argument, write
from ranks import compare_with_one_process, progress
from scipy.optimize import minimize

import cygrad as cg
from cygrad import mpi

Array = NDArray[Any]
Loss = Callable[[cg.Tensor], cg.Tensor]

CELLS = 96, 96
STEPS, LOOKS = 30, (10, 20, 30)     # steps, and the numbers of the steps after which there are measurements
FLOW = 0.2                          # diffusivity times the time step over the square of a cell
SPACING, ERROR = 3, 0.02            # cells between thermometers, and the error of a measurement
ROUGHNESS = 0.3                     # of the initial state: a typical difference between neighbours
ITERATIONS = 25
TOLERANCE = 1e-12                   # between one process and several, relative


def true_state() -> Array:
    """Return the initial temperature: two hot spots and a ring."""
    x, y = np.meshgrid(*(np.linspace(-1, 1, size) for size in CELLS), indexing="ij")
    ring = np.exp(-(((np.hypot(x + 0.3, y - 0.3) - 0.35) / 0.06) ** 2))
    return np.exp(-((x - 0.5) ** 2 + (y - 0.4) ** 2) / 0.02) + np.exp(-((x - 0.3) ** 2 + (y + 0.5) ** 2) / 0.05) + ring


def part_of(cart: MPI.Cartcomm) -> tuple[slice, slice]:
    """Return the cells of this process."""
    bounds = (np.linspace(0, size, count + 1).astype(int) for size, count in zip(CELLS, cart.dims, strict=True))
    first, second = (slice(int(bound[at]), int(bound[at + 1])) for bound, at in zip(bounds, cart.coords, strict=True))
    return first, second


def stepped(state: cg.Tensor, cart: MPI.Cartcomm) -> cg.Tensor:
    """Return the state after one step: each cell takes up heat from its four neighbours."""
    wide = mpi.halo_exchange(state, cart, 1)
    around = wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2]
    return state + FLOW * (around - 4 * state)


def looks(state: cg.Tensor, cart: MPI.Cartcomm) -> dict[int, cg.Tensor]:
    """Return this process's part of the states that are measured, by the number of the step."""
    states = {}
    for step in range(1, STEPS + 1):
        state = stepped(state, cart)
        if step in LOOKS:
            states[step] = state
    return states


def negative_log_posterior(cart: MPI.Cartcomm, measured: dict[int, Array], thermometers: Array) -> Loss:
    """Return this process's share of the function to minimise, of the whole initial state."""
    here = part_of(cart)
    mask = cg.tensor(thermometers[here])
    data = {step: cg.tensor(values[here]) for step, values in measured.items()}

    def f(state: cg.Tensor) -> cg.Tensor:
        mine = state[here]
        misfit = sum(((values - data[step]) / ERROR * mask).square().sum() for step, values in looks(mine, cart).items())
        wide = mpi.halo_exchange(mine, cart, 1)[1:, 1:]
        rough = (wide[1:, :-1] - mine).square().sum() + (wide[:-1, 1:] - mine).square().sum()
        return (misfit + rough / ROUGHNESS**2) / 2

    return f


def draw(true: Array, seen: Array, result: Array, values: list[float], output: Path) -> None:
    """Write the picture: the true and the inferred initial state, the last measurement, and the descent."""
    figure, parts = plt.subplots(1, 4, figsize=(14, 3.4), layout="constrained")
    fields = (true, "true initial state"), (seen, f"measured after {LOOKS[-1]} steps"), (result, "inferred initial state")
    for axes, (field, title) in zip(parts, fields, strict=False):
        image = axes.imshow(field.T, origin="lower", cmap="inferno", vmin=0, vmax=true.max(), interpolation="none")
        axes.set(title=title, xticks=[], yticks=[])
        axes.grid(False)
    figure.colorbar(image, ax=parts[:3], label="temperature")
    parts[3].semilogy(values)
    parts[3].set(title="Negative log-posterior", xlabel="iteration")
    write(figure, output)


def main() -> None:
    """Simulate, infer, compare with one process, and write the picture."""
    output = output_argument("Infer the initial state of a plate, on one or several processes.", "build/heat_mpi.svg")
    comm = MPI.COMM_WORLD
    periods = [True, False]
    cart = comm.Create_cart(MPI.Compute_dims(comm.size, 2), periods)
    alone = MPI.COMM_SELF.Create_cart([1, 1], periods)

    true, random = true_state(), np.random.default_rng(0)
    thermometers = np.zeros(CELLS)
    thermometers[::SPACING, ::SPACING] = 1
    measured = {step: (state.numpy() + random.normal(scale=ERROR, size=CELLS)) for step, state in looks(cg.tensor(true), alone).items()}

    objective = mpi.optimize.value_and_grad(negative_log_posterior(cart, measured, thermometers), np.zeros(CELLS), comm)
    values: list[float] = []
    start = time.perf_counter()
    with progress(comm, values, ITERATIONS) as callback:
        fit = minimize(objective, objective.x0, jac=True, method="L-BFGS-B", callback=callback, options={"maxiter": ITERATIONS})
    elapsed = time.perf_counter() - start

    if comm.rank == 0:
        result = fit.x.reshape(CELLS)
        draw(true, measured[LOOKS[-1]], result, values, output)
        error, before = (np.sqrt(np.square(state - true).mean()) for state in (result, measured[LOOKS[0]]))
        print(f"{CELLS[0]} x {CELLS[1]} cells on {' x '.join(map(str, cart.dims))} processes, {STEPS} steps, "
              f"{int(thermometers.sum()) * len(LOOKS)} measurements; picture: {output}")
        print(f"initial state: off by {error:.3f} on average; the first measurement is by {before:.3f}")
        print(f"time: {elapsed:.2f} s for {fit.nit} iterations and {fit.nfev} gradients")
    compare_with_one_process(comm, objective, negative_log_posterior(alone, measured, thermometers), np.zeros(CELLS), fit.x, TOLERANCE)


if __name__ == "__main__":
    main()
