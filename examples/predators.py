"""Hares and lynxes: the rates of a predator-prey model from counts, with the solver of the equations captured once.

    dh/dt = a h - b h l,    dl/dt = d h l - g l        (Lotka 1925, Volterra 1926)

400 steps of Runge-Kutta and their gradient are tens of thousands of small kernels. `cygrad.compile` notes them in the first call, and
replays them in C from then on. The fit by SciPy runs both ways: eager and compiled, with the same bits at each step.

    python examples/predators.py [--output build/predators.svg]
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.optimize import OptimizeResult, minimize

import cygrad as cg

Array = NDArray[Any]

YEARS, STEPS = 40.0, 400
EVERY = 8  # steps between two counts
RATES, START = np.array([0.55, 0.028, 0.024, 0.80]), np.array([30.0, 4.0])  # per year (b and d per thousand); thousands
GUESS = np.log(np.array([0.6, 0.03, 0.02, 0.9]))
NOISE = 0.1  # of the logarithm of a count


def growth(state: cg.Tensor, rates: cg.Tensor) -> cg.Tensor:
    """Return the change per year of hares and lynxes."""
    meetings = state[0] * state[1]
    return cg.stack([rates[0] * state[0] - rates[1] * meetings, rates[2] * meetings - rates[3] * state[1]])


def trajectory(start: cg.Tensor, rates: cg.Tensor) -> cg.Tensor:
    """Return the populations at the times of the counts, (counts, 2)."""
    step, state, states = YEARS / STEPS, start, []
    for number in range(STEPS):
        if number % EVERY == 0:
            states.append(state)
        k1 = growth(state, rates)
        k2 = growth(state + step / 2 * k1, rates)
        k3 = growth(state + step / 2 * k2, rates)
        k4 = growth(state + step * k3, rates)
        state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return cg.stack(states)


def misfit_and_gradient(start: cg.Tensor, counts: cg.Tensor, logarithms: cg.Tensor) -> tuple[cg.Tensor, cg.Tensor]:
    """Return half the sum of squares of the logarithms' errors, and its gradient."""
    leaf = logarithms.detach().requires_grad_()
    misfit = ((trajectory(start, leaf.exp()).log() - counts) / NOISE).square().sum() / 2
    (gradient,) = cg.autograd.grad(misfit, leaf)
    return misfit.detach(), gradient


def fitted(function: Callable[..., Any], start: cg.Tensor, counts: cg.Tensor) -> tuple[OptimizeResult, list[float], float]:
    """Return SciPy's result, the misfit of each call, and the time that the calls took."""
    values: list[float] = []
    begin = time.perf_counter()

    def objective(x: Array) -> tuple[float, Array]:
        value, gradient = function(start, counts, cg.tensor(x))
        values.append(value.item())
        return values[-1], gradient.numpy()

    result = minimize(objective, GUESS, jac=True, method="BFGS")
    return result, values, time.perf_counter() - begin


def draw(counts: Array, start: cg.Tensor, result: OptimizeResult, values: list[float], seconds: dict[str, float], output: Path) -> None:
    """Write the picture: the counts and the fit, the misfit of each call, and the time of a call."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", width_ratios=(2, 1, 1))
    years = np.arange(len(counts)) * EVERY * YEARS / STEPS
    model = trajectory(start, cg.tensor(np.exp(result.x))).numpy()
    for number, name in enumerate(("hares", "lynxes")):
        left.plot(years, np.exp(counts[:, number]), ".", color=f"C{number}", ms=4)
        left.plot(years, model[:, number], color=f"C{number}", lw=1.3, label=name)
    left.set(title="Counted (dots) and fitted", xlabel="year", ylabel="thousands", xlim=(0, YEARS))
    left.legend()
    middle.plot(values, ".-", lw=1)
    middle.set(title="The misfit", xlabel="call", yscale="log")
    right.bar(list(seconds), [1e3 * value for value in seconds.values()], color=["tab:gray", "tab:blue"])
    right.set(title="Value and gradient", ylabel="ms a call", yscale="log")
    write(figure, output)


def main() -> None:
    """Simulate counts, fit the rates eagerly and compiled, compare, and write the picture."""
    output = output_argument("Fit the rates of a predator-prey model.", "build/predators.svg")
    start = cg.from_numpy(START)
    clean = trajectory(start, cg.from_numpy(RATES)).log().numpy()
    counts = clean + NOISE * np.random.default_rng(0).standard_normal(clean.shape)
    data = cg.from_numpy(counts).clone()
    compiled = cg.compile(misfit_and_gradient, fullgraph=True)
    compiled(start.clone(), data, cg.tensor(GUESS))  # captures
    results = {name: fitted(function, start.clone(), data) for name, function in (("eager", misfit_and_gradient), ("compiled", compiled))}
    seconds = {name: time_ / len(values) for name, (_, values, time_) in results.items()}
    result, values, _ = results["compiled"]
    draw(counts, start, result, values, seconds, output)

    rates, errors = np.exp(result.x), np.exp(result.x) * np.sqrt(np.diag(result.hess_inv))
    print(f"{len(counts)} counts in {YEARS:.0f} years, {STEPS} steps of Runge-Kutta; picture: {output}")
    print("rate     true   fitted   standard error")
    for name, true, rate, error in zip("abdg", RATES, rates, errors, strict=True):
        print(f"{name}      {true:7.4f}  {rate:7.4f}  {error:.4f}")
    print(f"{len(values)} calls of value and gradient, the same bits each: {values == results['eager'][1]}")
    print(f"a call: {1e3 * seconds['eager']:.2f} ms eager, {1e3 * seconds['compiled']:.2f} ms compiled")
    print(compiled.explain(start.clone(), data, cg.tensor(GUESS)).splitlines()[0])
    if values != results["eager"][1] or not (np.abs(rates - RATES) < 4 * errors).all():
        sys.exit("the fits differ, or the rates are wrong")


if __name__ == "__main__":
    main()
