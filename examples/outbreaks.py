"""A Gamma-Poisson fit: how unevenly an infection spreads, from the number of others that each case infects.

Each case infects a Poisson number of others, with a rate of its own that is drawn from a Gamma distribution (Lloyd-Smith and others 2005):
so the numbers are negative binomial, with the mean R and the dispersion k, small where a few cases infect most. Newton's method by
`grad` and `hessian` finds the most likely R and k; the Hessian has their standard errors. `vmap` runs the fit for 500 simulated outbreaks
at once, and counts how often 95 % intervals hold the truth.

    python examples/outbreaks.py [--output build/outbreaks.svg]
"""

import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.stats import nbinom, poisson

import cygrad as cg
from cygrad.func import grad, hessian, vmap

Array = NDArray[Any]

MEAN, DISPERSION = 1.8, 0.35  # R and k
CASES, OUTBREAKS, STEPS = 400, 500, 12
DEVIATIONS = 1.96  # of an interval that holds 95 %
NAMES = ("mean R", "dispersion k")
TOLERANCE = 1e-8  # of the score by hand at the fit, of one case


def simulated() -> cg.Tensor:
    """Return the numbers of others that each case infects, (outbreaks, cases)."""
    rates = cg.random.standard_gamma(cg.full((OUTBREAKS, CASES), DISPERSION, dtype=cg.float64), rng=1) * (MEAN / DISPERSION)
    return cg.poisson(rates, rng=2)


def log_likelihood(parameters: cg.Tensor, counts: cg.Tensor) -> cg.Tensor:
    """Return the logarithm of the probability of the counts, for the logarithms of R and k."""
    mean, k = parameters.exp()
    ways = (counts + k).lgamma() - k.lgamma() - (counts + 1).lgamma()
    return (ways - k * (mean / k).log1p() + counts * (mean / (mean + k)).log()).sum()


def newton_step(parameters: cg.Tensor, counts: cg.Tensor) -> cg.Tensor:
    """Return better parameters; a step changes none of them by more than a factor e."""
    curvature = -hessian(log_likelihood)(parameters, counts)
    # Far from the maximum a direction may curve upwards: its absolute curvature still leads uphill.
    values, vectors = cg.linalg.eigh(curvature)
    step = vectors @ ((vectors.mT @ grad(log_likelihood)(parameters, counts)) / values.abs())
    return parameters + step.clamp(-1, 1)


def fitted(counts: cg.Tensor) -> tuple[cg.Tensor, cg.Tensor]:
    """Return the logarithms of R and k of each outbreak, and their standard errors."""
    parameters = cg.zeros(len(counts), 2, dtype=cg.float64)
    for _ in range(STEPS):
        parameters = vmap(newton_step)(parameters, counts)
    information = -vmap(hessian(log_likelihood))(parameters, counts)
    return parameters, cg.linalg.inv(information).diagonal(dim1=-2, dim2=-1).sqrt()


def score_by_hand(parameters: Array, counts: cg.Tensor) -> Array:
    """Return the derivatives by R and k as they stand in books, with digamma."""
    mean, k = np.exp(parameters)
    by_mean = (counts / mean - (counts + k) / (mean + k)).sum()
    by_k = (cg.digamma(counts + k) - cg.digamma(cg.tensor(k)) + np.log(k / (mean + k)) + 1 - (counts + k) / (mean + k)).sum()
    return np.array([by_mean.item(), by_k.item()])


def draw(counts: Array, fits: Array, errors: Array, output: Path) -> None:
    """Write the picture: the counts of one outbreak, its likelihood with the steps of the fit, and the estimates of all outbreaks."""
    figure, (bars, hill, cloud) = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    mean, k = np.exp(fits[0])
    numbers = np.arange(13)
    bars.bar(numbers, [np.sum(counts == n) for n in numbers], color="lightgray", label=f"one outbreak, {CASES} cases")
    bars.plot(numbers, CASES * nbinom.pmf(numbers, k, k / (k + mean)), "o-", color="tab:blue", ms=4, label=f"R = {mean:.2f}, k = {k:.2f}")
    bars.plot(numbers, CASES * poisson.pmf(numbers, counts.mean()), "s--", color="tab:orange", ms=3, label="Poisson, the same mean")
    bars.set(title="Others infected by a case", xlabel="number of others (13 and more are left out)", ylabel="cases")
    bars.legend()

    means, ks = np.meshgrid(np.geomspace(0.9, 3.2, 60), np.geomspace(0.2, 1.1, 60))
    grid = cg.from_numpy(np.log(np.stack([means.ravel(), ks.ravel()], axis=1)))
    data = cg.from_numpy(counts)
    heights = vmap(lambda p: log_likelihood(p, data))(grid).numpy().reshape(means.shape)
    top = log_likelihood(cg.from_numpy(fits[0]), data).item()
    lines = hill.contour(means, ks, 2 * (top - heights), [1, 5.99, 20, 50, 100], cmap="viridis_r")
    hill.clabel(lines, fmt="%g")
    path = [cg.zeros(2, dtype=cg.float64)]
    for _ in range(STEPS):
        path.append(newton_step(path[-1], data))
    hill.plot(*np.exp(cg.stack(path).numpy()).T, "o-", color="tab:blue", ms=4, lw=1, label="steps of Newton's method")
    hill.plot(MEAN, DISPERSION, "*", color="tab:red", ms=11, label="truth")
    hill.set(title="Twice the log-likelihood below its top (5.99: 95 %)", xlabel=NAMES[0], ylabel=NAMES[1], xscale="log", yscale="log")

    inside = (np.abs(fits - np.log([MEAN, DISPERSION])) < DEVIATIONS * errors).all(axis=1)
    estimates = np.exp(fits)
    cloud.plot(*estimates[inside].T, ".", color="tab:blue", ms=3, label="both intervals hold the truth")
    cloud.plot(*estimates[~inside].T, "x", color="tab:orange", ms=4, label="one does not")
    cloud.plot(MEAN, DISPERSION, "*", color="tab:red", ms=11, label="truth")
    cloud.set(title=f"Estimates from {OUTBREAKS} outbreaks", xlabel=NAMES[0], ylabel=NAMES[1], ylim=(0.25, 0.5))
    for axis in (hill.xaxis, hill.yaxis):
        axis.set_major_formatter("{x:.1f}")
        axis.set_minor_formatter("{x:.1f}")
    for axes in (hill, cloud):
        axes.legend(loc="upper right")
    write(figure, output)


def main() -> None:
    """Simulate, fit, check the fit, and write the picture."""
    output = output_argument("Fit how unevenly an infection spreads.", "build/outbreaks.svg")
    counts = simulated()
    start = time.perf_counter()
    parameters, deviations = fitted(counts)
    seconds = time.perf_counter() - start
    fits, errors = parameters.numpy(), deviations.numpy()
    draw(counts[0].numpy(), fits, errors, output)
    truth = np.log([MEAN, DISPERSION])
    print(f"{OUTBREAKS} outbreaks of {CASES} cases; picture: {output}")
    print("parameter      true   first fit   standard error   spread of all fits   95 % intervals with the truth")
    for number, name in enumerate(NAMES):
        value, spread = np.exp(fits[0, number]), np.exp(truth[number]) * fits[:, number].std()
        inside = np.mean(np.abs(fits[:, number] - truth[number]) < DEVIATIONS * errors[:, number])
        print(f"{name:<12} {np.exp(truth[number]):6.2f} {value:11.3f} {value * errors[0, number]:16.3f} {spread:20.3f} "
              f"{100 * inside:29.1f} %")
    k = np.exp(fits[0, 1])
    theirs = nbinom.logpmf(counts[0].numpy(), k, k / (k + np.exp(fits[0, 0]))).sum()
    ours = log_likelihood(parameters[0], counts[0]).item()
    score = max(np.abs(score_by_hand(*pair)).max() for pair in zip(fits, counts, strict=True)) / CASES
    print(f"log-likelihood of the first: {ours:.9f}, SciPy's {theirs:.9f}; largest score by hand at a fit: {score:.1e}")
    print(f"time: {seconds:.2f} s for {STEPS} steps of {OUTBREAKS} fits")
    if not (score <= TOLERANCE and np.isclose(ours, theirs, rtol=1e-12)):
        sys.exit("a fit is no maximum, or the likelihood is not SciPy's")


if __name__ == "__main__":
    main()
