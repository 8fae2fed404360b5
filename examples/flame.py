"""A stiff reaction front: SciPy's integrator with the Jacobian by colours.

A flame runs along a tube: heat and fuel diffuse, and react where it is hot. The equations of 200 cells are stiff, so SciPy's BDF
solves with their Jacobian, whose 400 rows have four entries. The operators of the right side show its pattern, once, which is
coloured; each Jacobian is four products in one batch.

    python examples/flame.py [--output build/flame.svg]
"""

import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.integrate import solve_ivp

import cygrad as cg
from cygrad.func import coloured, jacrev, sparse_jacobian, sparsity

Array = NDArray[Any]

CELLS, LENGTH, END = 200, 40.0, 15.0
SHARPNESS, LEWIS = 8.0, 1.5  # of the reaction by temperature; diffusion of heat over diffusion of fuel
WIDTH = LENGTH / CELLS
TOLERANCE = 1e-4  # between temperatures by the coloured Jacobian and by SciPy's differences


def right_side(state: cg.Tensor) -> cg.Tensor:
    """Return the rate of temperatures and fuel, which lie side by side for each cell."""
    heat, fuel = state.reshape(CELLS, 2).unbind(1)
    rate = SHARPNESS**2 / 2 * fuel * (SHARPNESS * (heat - 1) / (1 + 0.8 * (heat - 1))).exp()

    def diffused(values: cg.Tensor) -> cg.Tensor:
        wide = cg.cat([values[:1], values, values[-1:]])
        return (wide[2:] - 2 * values + wide[:-2]) / WIDTH**2

    return cg.stack([diffused(heat) + rate, diffused(fuel) / LEWIS - rate], 1).reshape(-1)


def draw(times: Array, states: Array, pattern: Any, output: Path) -> None:
    """Write the picture: temperatures at some times, the front's place, and the pattern with its colours."""
    figure, (fronts, path, places) = plt.subplots(1, 3, figsize=(12, 3.7), layout="constrained")
    cells = (np.arange(CELLS) + 0.5) * WIDTH
    for number in np.linspace(0, len(times) - 1, 6).astype(int):
        fronts.plot(cells, states[:, number].reshape(CELLS, 2)[:, 0], label=f"t = {times[number]:.0f}")
    fronts.set(title="Temperature", xlabel="place", xlim=(0, LENGTH))
    fronts.legend()
    path.plot(times, [cells[(state.reshape(CELLS, 2)[:, 0] > 0.5).sum() - 1] for state in states.T])
    path.set(title="The front", xlabel="time", ylabel="place")
    rows, columns = pattern.pattern.tocoo().coords
    near = (rows < 24) & (columns < 24)
    places.scatter(columns[near], rows[near], c=pattern.colour_of[(rows if pattern.by_rows else columns)[near]],
                   cmap="tab10", s=18)
    places.set(title=f"Corner of the Jacobian, {pattern.colours} colours", aspect="equal", ylim=(24, -1))
    write(figure, output)


def main() -> None:
    """Integrate with the coloured Jacobian and with SciPy's differences, compare, and write the picture."""
    output = output_argument("Integrate a flame with a coloured Jacobian.", "build/flame.svg")
    places = (np.arange(CELLS) + 0.5) * WIDTH
    hot = 1 / (1 + np.exp((places - 6) * 2))
    start = np.stack([hot, 1 - hot], 1).ravel()
    begin = time.perf_counter()
    pattern = coloured(sparsity(right_side, start))
    finding = time.perf_counter() - begin

    def rates(_: float, state: Array) -> Array:
        return right_side(cg.from_numpy(state.copy())).numpy()

    runs = {}
    for name, jac in ("coloured", lambda _, state: sparse_jacobian(right_side, state, pattern).to_scipy()), ("differences", None):
        begin = time.perf_counter()
        result = solve_ivp(rates, (0, END), start, "BDF", jac=jac, rtol=1e-6, atol=1e-8, t_eval=np.linspace(0, END, 61))
        runs[name] = result, time.perf_counter() - begin
    (result, seconds), (other, longer) = runs["coloured"], runs["differences"]
    draw(result.t, result.y, pattern, output)

    apart = np.abs(result.y - other.y).max()
    dense = jacrev(right_side)(cg.from_numpy(result.y[:, 30].copy()))
    wrong = (sparse_jacobian(right_side, result.y[:, 30], pattern).to_dense() - dense).abs().max().item()
    print(f"{2 * CELLS} unknowns, {pattern.pattern.nnz} entries, {pattern.colours} colours, found in {1e3 * finding:.0f} ms; "
          f"picture: {output}")
    print(f"coloured Jacobian: {result.njev} Jacobians, {seconds:.2f} s")
    print(f"SciPy's differences: {other.njev} Jacobians, {longer:.2f} s")
    print(f"the solutions differ by {apart:.0e}, the Jacobian and a dense one by {wrong:.0e}")
    if not (apart <= TOLERANCE and wrong < 1e-9 and pattern.colours == 4):
        sys.exit("the solutions or the Jacobians differ")


if __name__ == "__main__":
    main()
