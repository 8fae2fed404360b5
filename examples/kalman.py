"""A Kalman filter whose parameters are fitted by likelihood: 4 states, 200 time steps, gradients through all of them.

Something moves in a plane, its velocity an Ornstein-Uhlenbeck process; positions are measured with correlated errors, and for a while not
at all. How sluggish it is, how hard it is pushed and the covariance of the errors are found by SciPy's L-BFGS from the gradients of
`filtered`, and their standard errors from its Hessian. The likelihood is compared with the likelihood of all measurements as one dense
Gaussian.

    python examples/kalman.py [--output build/kalman.svg]
"""

import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.optimize import OptimizeResult, minimize
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_limits

import cygrad as cg
from cygrad.optimize import value_and_grad

Array = NDArray[Any]

STEPS, GAP = 200, slice(92, 107)  # seconds; nothing is measured in the gap
PRIOR_DEVIATIONS = [100.0, 100.0, 10.0, 10.0]  # of x, y (m) and of their velocities (m/s) at the start
NAMES = ["log damping (1/s)", "log drive (m/s^1.5)", "log error of x (m)", "log error of y (m)", "coupling of errors (m)"]
TRUE = np.array([np.log(0.1), np.log(2.0), np.log(12.0), np.log(6.0), 5.0])
START = np.array([0.0, 0.0, np.log(30.0), np.log(30.0), 0.0])
DEVIATIONS = 1.96  # of a band that holds 95 %
TOLERANCE = 1e-8  # between the filter's likelihood and one dense Gaussian's, relative

POSITIONS = cg.eye(2, 4, dtype=cg.float64)  # the measured part of a state


def model(parameters: cg.Tensor) -> tuple[cg.Tensor, cg.Tensor, cg.Tensor]:
    """Return a state's transition over one second, the covariance of its noise, and of the errors of a measurement."""
    damping, drive, error_x, error_y = parameters[:4].exp()
    decay = (-damping).exp()
    travelled = (1 - decay) / damping
    variance = drive**2 * (1 - decay**2) / (2 * damping)
    shared = drive**2 * travelled**2 / 2
    spread = drive**2 / damping**2 * (1 - 2 * travelled + (1 - decay**2) / (2 * damping))
    one, zero, both = cg.ones_like(decay), cg.zeros_like(decay), cg.eye(2, dtype=cg.float64)
    transition = cg.kron(cg.stack([one, travelled, zero, decay]).reshape(2, 2), both)
    added = cg.kron(cg.stack([spread, shared, shared, variance]).reshape(2, 2), both)
    factor = cg.stack([error_x, zero, parameters[4], error_y]).reshape(2, 2)
    return transition, added, factor @ factor.mT


def filtered(parameters: cg.Tensor, measured: Array) -> tuple[cg.Tensor, list[cg.Tensor], list[cg.Tensor]]:
    """Return the log-likelihood of the measurements, and the mean and covariance of the state at each time, given the measurements so far.

    A measurement that is missing is NaN.
    """
    transition, added, errors = model(parameters)
    mean, covariance = cg.zeros(4, 1, dtype=cg.float64), cg.tensor(PRIOR_DEVIATIONS, dtype=cg.float64).square().diag()
    log_likelihood = cg.zeros((), dtype=cg.float64)
    means: list[cg.Tensor] = []
    covariances: list[cg.Tensor] = []
    there = ~np.isnan(measured[:, 0])
    for position, is_there in zip(cg.from_numpy(measured)[:, :, None], there, strict=True):
        if means:
            mean, covariance = transition @ mean, transition @ covariance @ transition.mT + added
        if is_there:
            seen, surprise = POSITIONS @ covariance, position - POSITIONS @ mean
            factor = cg.linalg.cholesky(seen @ POSITIONS.mT + errors)
            gain, white = cg.linalg.solve_triangular(factor, cg.cat([seen, surprise], dim=1), upper=False).split([4, 1], dim=1)
            mean, covariance = mean + gain.mT @ white, covariance - gain.mT @ gain
            log_likelihood = log_likelihood - white.square().sum() / 2 - factor.diagonal().log().sum() - np.log(2 * np.pi)
        means.append(mean)
        covariances.append(covariance)
    return log_likelihood, means, covariances


def simulated(seed: int) -> tuple[Array, Array]:
    """Return the true states, (steps, 4), and the measured positions, (steps, 2)."""
    random = np.random.default_rng(seed)
    transition, added, errors = (matrix.numpy() for matrix in model(cg.tensor(TRUE)))
    states = [random.normal(size=4) * [10, 10, 4, 4]]
    for push in random.multivariate_normal(np.zeros(4), added, STEPS - 1):
        states.append(transition @ states[-1] + push)
    measured = np.array(states)[:, :2] + random.multivariate_normal(np.zeros(2), errors, STEPS)
    measured[GAP] = np.nan
    return np.array(states), measured


def dense_log_likelihood(parameters: cg.Tensor, measured: Array) -> float:
    """Return the log-likelihood without a filter: all measurements are one Gaussian vector."""
    transition, added, errors = (matrix.numpy() for matrix in model(parameters))
    at_once = np.zeros((STEPS, 2, STEPS, 2))
    covariance = np.diag(np.square(PRIOR_DEVIATIONS))
    for step in range(STEPS):
        later = covariance
        for other in range(step, STEPS):
            at_once[other, :, step] = later[:2, :2]
            at_once[step, :, other] = later[:2, :2].T
            later = transition @ later
        at_once[step, :, step] += errors
        covariance = transition @ covariance @ transition.T + added
    present = ~np.isnan(measured).ravel()
    covariances = at_once.reshape(2 * STEPS, 2 * STEPS)[np.ix_(present, present)]
    return float(multivariate_normal(cov=covariances).logpdf(measured.ravel()[present]))


def draw(states: Array, measured: Array, means: Array, covariances: Array, values: list[float], output: Path) -> None:
    """Write the picture: the track, one coordinate of it with its band, and the likelihood after each step of the fit."""
    figure, parts = plt.subplot_mosaic([["track", "x"], ["track", "fit"]], figsize=(10, 5.2), width_ratios=(1.1, 1), layout="constrained")
    seconds = np.arange(STEPS)

    track = parts["track"]
    for number, (mean, covariance) in enumerate(zip(means[::8, :2], covariances[::8, :2, :2], strict=True)):
        lengths, axes = np.linalg.eigh(covariance)
        width, height = 2 * np.sqrt(2 * np.log(20) * lengths)  # of the ellipse that holds 95 %
        angle = np.degrees(np.arctan2(axes[1, 0], axes[0, 0]))
        label = "95 % region, every 8 s" if not number else None
        track.add_patch(Ellipse(mean, width, height, angle=angle, color="tab:blue", alpha=0.13, lw=0, label=label))
    track.plot(*states[:, :2].T, color="black", lw=1, label="true")
    track.plot(*measured.T, ".", color="tab:orange", ms=4, label="measured")
    track.plot(*means[:, :2].T, color="tab:blue", lw=1.3, label="filtered")
    track.set(title="The track", xlabel="x (m)", ylabel="y (m)", aspect="equal", adjustable="datalim")
    track.legend(loc="best")

    width = DEVIATIONS * np.sqrt(covariances[:, 0, 0])
    parts["x"].fill_between(seconds, means[:, 0] - width, means[:, 0] + width, color="tab:blue", alpha=0.2, lw=0, label="95 % band")
    parts["x"].plot(seconds, states[:, 0], color="black", lw=1, label="true")
    parts["x"].plot(seconds, measured[:, 0], ".", color="tab:orange", ms=4, label="measured")
    parts["x"].plot(seconds, means[:, 0], color="tab:blue", lw=1.3, label="filtered")
    parts["x"].set(title=f"x; nothing is measured for {GAP.stop - GAP.start} s", xlabel="time (s)", ylabel="x (m)",
                   xlim=(0, STEPS), ylim=(None, 260))
    parts["x"].legend(loc="upper left", ncols=2)

    parts["fit"].plot(np.array(values[:-1]) - values[-1], "o-", color="tab:blue", ms=3)
    parts["fit"].set(title="The fit", xlabel="step of L-BFGS", ylabel="log-likelihood\nbelow the best", yscale="log", xlim=(0, None))
    parts["fit"].xaxis.set_major_locator(MaxNLocator(integer=True))
    write(figure, output)


def main() -> None:
    """Simulate, fit, compare with a dense Gaussian, and write the picture."""
    output = output_argument("Fit a Kalman filter by likelihood.", "build/kalman.svg")
    states, measured = simulated(seed=5)

    def f(parameters: cg.Tensor) -> cg.Tensor:
        return -filtered(parameters, measured)[0]

    objective = value_and_grad(f, START)
    values = [objective(objective.x0)[0]]

    def step(intermediate_result: OptimizeResult) -> None:
        values.append(intermediate_result.fun)

    with threadpool_limits(1, "blas"):  # the products of NumPy and SciPy here are too small to share
        start = time.perf_counter()
        fit = minimize(objective, objective.x0, jac=True, method="L-BFGS-B", callback=step)
        seconds = time.perf_counter() - start

    hessian = np.stack([objective.hessp(fit.x, axis) for axis in np.eye(len(fit.x))])
    deviations = np.sqrt(np.linalg.inv(hessian).diagonal())
    with cg.no_grad():
        _, tensors, matrices = filtered(cg.tensor(fit.x), measured)
        means, covariances = cg.stack(tensors)[..., 0].numpy(), cg.stack(matrices).numpy()
    draw(states, measured, means, covariances, values, output)

    dense = dense_log_likelihood(cg.tensor(fit.x), measured)
    apart = abs(dense + fit.fun) / abs(dense)
    seen = ~np.isnan(measured[:, 0])
    raw, better = (np.sqrt(np.square(x[seen, :2] - states[seen, :2]).sum(axis=1).mean()) for x in (measured, means))
    inside = np.abs(means - states)[:, :2] < DEVIATIONS * np.sqrt(covariances[:, [0, 1], [0, 1]])
    print(f"{STEPS} steps, {seen.sum()} of them measured; picture: {output}")
    print("parameter                  true   fitted   standard error")
    for name, true, result, deviation in zip(NAMES, TRUE, fit.x, deviations, strict=True):
        print(f"{name:<24} {true:>6.2f} {result:>8.2f} {deviation:>16.2f}")
    print(f"distance from the true position: {raw:.1f} m measured, {better:.1f} m filtered; "
          f"{100 * inside.mean():.0f} % of the coordinates lie in their 95 % bands")
    print(f"log-likelihood: {-fit.fun:.6f}, as one dense Gaussian {dense:.6f}")
    print(f"time: {seconds:.2f} s for {fit.nfev} values with gradients, {1000 * seconds / fit.nfev:.0f} ms each")
    if not apart <= TOLERANCE:
        sys.exit(f"filter and dense Gaussian differ by more than {TOLERANCE:.0e}: one of them is wrong")


if __name__ == "__main__":
    main()
