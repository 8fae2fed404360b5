"""A spectral heat equation: the initial temperature of a ring, and its diffusivity, from pictures of it as it cools.

In Fourier's own coordinates each wave of temperature decays by itself, by exp(-D q^2 t), so the heat equation is solved by a transform, a
factor and a transform back. Waves shorter than a few centimetres are gone before the first picture: dividing by their factor raises
the noise without end. With a prior for the smoothness of the start, SciPy's Newton method finds start and diffusivity together;
for one diffusivity the best start has a formula, wave by wave, to compare with.

    python examples/cooling.py [--output build/cooling.svg]
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
Parameters = dict[str, cg.Tensor]

CELLS, LENGTH = 128, 64.0  # of the ring, and its length in cm
TIMES, NOISE = np.array([4.0, 8.0, 16.0]), 0.3  # s of each picture, and K of each of its cells
DIFFUSIVITY, TYPICAL = 1.1, 0.5  # cm^2/s: the truth, and the start of the search
HEIGHT, SMOOTH = 20.0, 2.0  # the prior of the start: its deviation in K, and the length in cm over which it varies
DEVIATIONS = 1.96  # of a band that holds 95 %
TOLERANCE = 1e-5  # between the start by gradients and by formula, of the hottest cell

WAVES = 2 * np.pi * np.fft.rfftfreq(CELLS, LENGTH / CELLS)  # 1/cm


def decay(diffusivity: cg.Tensor) -> cg.Tensor:
    """Return the factor of each wave in each picture, (pictures, waves)."""
    return (-diffusivity * cg.tensor(np.outer(TIMES, WAVES**2))).exp()


def temperatures(start: cg.Tensor, diffusivity: cg.Tensor) -> cg.Tensor:
    """Return the temperature of the cells in each picture."""
    return cg.fft.irfft(cg.fft.rfft(start) * decay(diffusivity), CELLS)


def expected_power() -> Array:
    """Return the mean square of each wave of a start drawn from the prior, a Gaussian process with a Gaussian kernel, and a little more."""
    power = np.exp(-((WAVES * SMOOTH) ** 2) / 2)
    return HEIGHT**2 * power / (power[0] + power[-1] + 2 * power[1:-1].sum()) * CELLS**2 + 1e-6


def by_formula(pictures: Array, diffusivity: float) -> Array:
    """Return the best start for a diffusivity: a mean of each wave's estimates and the prior's 0, weighted by certainty."""
    factors = np.exp(-diffusivity * np.outer(TIMES, WAVES**2))
    noise = CELLS * NOISE**2  # the mean square of a wave of noise
    spectrum = (factors * np.fft.rfft(pictures)).sum(0) / ((factors**2).sum(0) + noise / expected_power())
    return np.fft.irfft(spectrum, CELLS)


def draw(true: Array, pictures: Array, fit: Array, deviations: Array, diffusivity: float, output: Path) -> None:
    """Write the picture: the pictures taken, the start with its band, and the waves that can be seen."""
    figure, (late, first, waves) = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    place = np.arange(CELLS) * LENGTH / CELLS
    seen = temperatures(cg.from_numpy(fit), cg.tensor(diffusivity)).numpy()
    for number, (time_, measured, model) in enumerate(zip(TIMES, pictures, seen, strict=True)):
        late.plot(place, measured, ".", color=f"C{number}", ms=3)
        late.plot(place, model, color=f"C{number}", lw=1.2, label=f"after {time_:.0f} s")
    late.set(title="The pictures: measured (dots) and fitted", xlabel="place (cm)", ylabel="temperature (K)", xlim=(0, LENGTH))
    late.legend()

    first.fill_between(place, fit - DEVIATIONS * deviations, fit + DEVIATIONS * deviations, color="tab:blue", alpha=0.2, lw=0,
                       label="95 % band")
    first.plot(place, true, color="black", lw=1.2, label="true")
    first.plot(place, fit, color="tab:blue", lw=1.5, label="inferred")
    first.plot(place, pictures[0], color="tab:gray", lw=0.8, label=f"seen after {TIMES[0]:.0f} s")
    first.set(title="The start", xlabel="place (cm)", ylabel="temperature (K)", xlim=(0, LENGTH))
    first.legend()

    def size(values: Array) -> Array:
        return np.abs(np.fft.rfft(values)) / CELLS

    count = 30
    divided = np.fft.rfft(pictures[0]) / np.exp(-diffusivity * TIMES[0] * WAVES**2)
    waves.plot(size(true)[:count], color="black", lw=1.2, label="true")
    waves.plot(np.abs(divided)[:count] / CELLS, color="tab:orange", lw=1, label=f"after {TIMES[0]:.0f} s, divided by the decay")
    waves.plot(size(fit)[:count], color="tab:blue", lw=1.5, label="inferred")
    waves.axhline(NOISE / np.sqrt(CELLS), color="tab:gray", ls="--", lw=1, label="noise of a picture")
    waves.set(title="The waves of the start", xlabel="waves around the ring", ylabel="temperature (K)", yscale="log", ylim=(1e-4, 1e3),
              xlim=(0, count - 1))
    waves.legend(loc="lower left")
    write(figure, output)


def main() -> None:
    """Simulate, infer, compare with the formula, and write the picture."""
    output = output_argument("Infer from late pictures how a ring was heated.", "build/cooling.svg")
    place = np.arange(CELLS) * LENGTH / CELLS
    true = 40 * np.exp(-(((place - 16) / 3) ** 2)) + 30 * np.exp(-(((place - 25) / 2.5) ** 2)) + 20 / (1 + np.exp(-(place - 40) / 0.8)) / (
        1 + np.exp((place - 52) / 0.8))
    clean = temperatures(cg.from_numpy(true), cg.tensor(DIFFUSIVITY, dtype=cg.float64)).numpy()
    pictures = clean + NOISE * np.random.default_rng(0).standard_normal(clean.shape)
    data, scale = cg.from_numpy(pictures), cg.from_numpy(np.sqrt(expected_power()))

    def start_of(parameters: Parameters) -> cg.Tensor:
        """Return the start: white noise, whose waves the prior scales."""
        return cg.fft.irfft(cg.fft.rfft(parameters["white"], norm="ortho") * scale / CELLS**0.5, CELLS, norm="ortho")

    def f(parameters: Parameters) -> cg.Tensor:
        """Return the negative log-posterior, up to a constant."""
        misfit = (temperatures(start_of(parameters), parameters["log D"].exp()) - data) / NOISE
        return (misfit.square().sum() + parameters["white"].square().sum()) / 2

    objective = value_and_grad(f, {"white": np.zeros(CELLS), "log D": np.log(TYPICAL)})
    begin = time.perf_counter()
    fit = minimize(objective, objective.x0, jac=True, hessp=objective.hessp, method="trust-krylov", options={"gtol": 1e-7})
    end = time.perf_counter()
    parameters = objective.unflatten(fit.x)
    diffusivity, result = parameters["log D"].exp().item(), start_of(parameters).numpy()
    hessian = np.stack([objective.hessp(fit.x, axis) for axis in np.eye(len(fit.x))])
    covariance = np.linalg.inv(hessian)
    number = objective.flatten({"white": np.zeros(CELLS), "log D": 1.0}).argmax()
    error = diffusivity * np.sqrt(covariance[number, number])
    white = np.arange(len(fit.x)) != number
    factor = np.linalg.cholesky(covariance[np.ix_(white, white)])
    spread = cg.func.vmap(lambda row: start_of({"white": row}))(cg.tensor(factor.T))
    deviations = np.sqrt(np.square(spread.numpy()).sum(0))
    draw(true, pictures, result, deviations, diffusivity, output)

    apart = np.abs(result - by_formula(pictures, diffusivity)).max() / np.abs(true).max()
    inside = np.mean(np.abs(result - true) < DEVIATIONS * deviations)
    print(f"{CELLS} cells, {len(TIMES)} pictures with errors of {NOISE} K; picture: {output}")
    print(f"diffusivity (cm^2/s): {DIFFUSIVITY} true, {diffusivity:.3f} found, standard error {error:.3f}")
    print(f"start (K): {np.sqrt(np.square(pictures[0] - true).mean()):.2f} off as first seen, "
          f"{np.sqrt(np.square(result - true).mean()):.2f} as inferred; {100 * inside:.0f} % of the cells lie in their 95 % bands")
    print(f"by gradients and by formula the start differs by {apart:.0e}")
    print(f"time: {end - begin:.2f} s for {fit.nit} steps")
    if not (apart <= TOLERANCE and abs(diffusivity - DIFFUSIVITY) < 3 * error):
        sys.exit("the fit is not the formula's, or the diffusivity is wrong")


if __name__ == "__main__":
    main()
