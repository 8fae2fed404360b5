"""A Gaussian process on real data: the ground of a mountain range from heights measured at 300 places.

The heights, of a part of Tennessee, come with Matplotlib; 2000 others are held out. The kernel and the likelihood are the ten lines of
`covariance` and `log_likelihood`; SciPy's L-BFGS finds the four hyperparameters by `cygrad.optimize`. scikit-learn's process, whose
gradients are written by hand, is given the same kernel, and linear interpolation is the baseline.

    python examples/gaussian_process.py [--output build/gaussian_process.png]
"""

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from numpy.typing import NDArray
from pictures import output_argument, write
from scipy.interpolate import griddata
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

import cygrad as cg
from cygrad.optimize import value_and_grad

Array = NDArray[Any]
Parameters = dict[str, cg.Tensor]

PART = slice(0, 130), slice(130, 270)  # of the map, north and east
GIVEN, HELD_OUT, SEED = 300, 2000, 0
KM_PER_DEGREE = 111.2  # of latitude
DEVIATIONS = 1.96  # of a band that holds 95 %
TOLERANCE = 1e-9  # between our likelihood and scikit-learn's, relative


class Survey(NamedTuple):
    """Places in km east and north, (n, 2), and heights in m, (n,)."""

    places: Array
    heights: Array


def terrain() -> tuple[Array, Array, Array]:
    """Return how far east and north the points of a map lie, in km, and their heights in m, (north, east)."""
    archive: Any = get_sample_data("jacksboro_fault_dem.npz")
    with archive as data:
        heights, latitude = data["elevation"][::-1][PART].astype(float), np.radians(float(data["ymax"]))
        north, east = (np.arange(count) * float(data["dy"]) * KM_PER_DEGREE for count in heights.shape)
    return east * np.cos(latitude), north, heights


def covariance(parameters: Parameters, left: cg.Tensor, right: cg.Tensor) -> cg.Tensor:
    """Return the Matern kernel of order 3/2 between all pairs of places, with a length for each axis."""
    lengths = parameters["log lengths"].exp()
    difference = (left / lengths)[:, None] - right / lengths
    distance = (3 * difference.square().sum(dim=-1)).clamp(min=1e-12).sqrt()  # the root has no derivative at 0
    return (2 * parameters["log deviation"]).exp() * (1 + distance) * (-distance).exp()


def factorised(parameters: Parameters, survey: Survey) -> tuple[cg.Tensor, cg.Tensor]:
    """Return the Cholesky factor of the covariance of the measurements, and the heights divided by it."""
    places, heights = cg.from_numpy(survey.places), cg.from_numpy(survey.heights)
    noise = (2 * parameters["log noise"]).exp() * cg.eye(len(places), dtype=cg.float64)
    factor = cg.linalg.cholesky(covariance(parameters, places, places) + noise)
    return factor, cg.linalg.solve_triangular(factor, heights[:, None], upper=False)


def log_likelihood(parameters: Parameters, survey: Survey) -> cg.Tensor:
    """Return the log marginal likelihood of the heights."""
    factor, white = factorised(parameters, survey)
    return -white.square().sum() / 2 - factor.diagonal().log().sum() - len(survey.heights) / 2 * np.log(2 * np.pi)


def predicted(parameters: Parameters, survey: Survey, places: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of measurements at other places."""
    with cg.no_grad():
        factor, white = factorised(parameters, survey)
        shared = covariance(parameters, cg.from_numpy(survey.places), cg.from_numpy(places))
        shared = cg.linalg.solve_triangular(factor, shared, upper=False)
        prior = (2 * parameters["log deviation"]).exp() + (2 * parameters["log noise"]).exp()
        return (shared.mT @ white)[:, 0].numpy(), (prior - shared.square().sum(dim=0)).sqrt().numpy()


def theirs(survey: Survey, start: Parameters) -> GaussianProcessRegressor:
    """Return scikit-learn's process with the same kernel, fitted from the same start."""
    lengths, deviation, noise = (np.exp(start[name].numpy()) for name in ("log lengths", "log deviation", "log noise"))
    kernel = ConstantKernel(deviation**2, (1, 1e6)) * Matern(lengths, nu=1.5) + WhiteKernel(noise**2, (1e-2, 1e4))
    return GaussianProcessRegressor(kernel, alpha=0).fit(survey.places, survey.heights)


def root_mean_square(errors: Array) -> float:
    return float(np.sqrt(np.square(errors).mean()))


def draw(east: Array, north: Array, heights: Array, survey: Survey, parameters: Parameters, output: Path) -> None:
    """Write the picture: the map, the data, the estimate and its uncertainty; and a cut through all."""
    figure, parts = plt.subplot_mosaic([["true", "mean", "deviation"], ["cut", "cut", "cut"]], figsize=(11, 6.2),
                                       height_ratios=(1.25, 1), layout="constrained")
    queries = np.stack(np.meshgrid(east[::2], north[::2]), axis=-1)
    mean, deviation = (values.reshape(queries.shape[:2]) for values in predicted(parameters, survey, queries.reshape(-1, 2)))
    scale: dict[str, Any] = {"cmap": "terrain", "vmin": heights.min(), "vmax": heights.max()}
    maps = {"true": (heights[::2, ::2], f"The ground, {GIVEN} places measured", "height above the mean (m)", scale),
            "mean": (mean, "Values that follow from them", "height above the mean (m)", scale),
            "deviation": (deviation, "How sure that is", "standard deviation (m)", {"cmap": "viridis"})}
    for name, (values, title, unit, colours) in maps.items():
        axes = parts[name]
        image = axes.imshow(values, origin="lower", extent=(0, east[-1], 0, north[-1]), interpolation="none", **colours)
        figure.colorbar(image, ax=axes, label=unit, shrink=0.9)
        axes.set(title=title, xlabel="east (km)", ylabel="north (km)")
        axes.grid(False)
    parts["true"].plot(*survey.places.T, ".", color="black", ms=1.5)

    row = len(north) // 2
    mean, deviation = predicted(parameters, survey, np.stack([east, np.full_like(east, north[row])], axis=1))
    for name in ("true", "mean"):
        parts[name].axhline(north[row], color="black", lw=1, ls="--")
    near = np.abs(survey.places[:, 1] - north[row]) < 0.25
    cut, width = parts["cut"], DEVIATIONS * deviation
    cut.fill_between(east, mean - width, mean + width, color="tab:blue", alpha=0.2, lw=0, label="95 % band")
    cut.plot(east, heights[row], color="black", lw=1, label="ground")
    cut.plot(east, mean, color="tab:blue", lw=1.5, label="mean")
    cut.plot(survey.places[near, 0], survey.heights[near], "o", color="tab:orange", ms=4, label="measured within 250 m")
    cut.set(title="Along the dashed line", xlabel="east (km)", ylabel="height above the mean (m)", xlim=(0, east[-1]), ylim=(None, 550))
    cut.legend(loc="upper right", ncols=4)
    write(figure, output)


def main() -> None:
    """Fit, compare with scikit-learn, and write the picture."""
    output = output_argument("Fit a Gaussian process to a part of Tennessee.", "build/gaussian_process.png")
    east, north, heights = terrain()
    chosen = np.random.default_rng(SEED).choice(heights.size, GIVEN + HELD_OUT, replace=False)
    row, column = np.unravel_index(chosen, heights.shape)
    places, measured = np.stack([east[column], north[row]], axis=1), heights[row, column]
    centre = measured[:GIVEN].mean()
    survey, queries, truth = Survey(places[:GIVEN], measured[:GIVEN] - centre), places[GIVEN:], measured[GIVEN:] - centre

    start = {"log lengths": cg.zeros(2, dtype=cg.float64), "log deviation": cg.tensor(100.0, dtype=cg.float64).log(),
             "log noise": cg.tensor(10.0, dtype=cg.float64).log()}
    objective = value_and_grad(lambda parameters: -log_likelihood(parameters, survey), start)
    with threadpool_limits(1):  # threads for 300 x 300 numbers mostly wait for each other
        begin = time.process_time()
        fit = minimize(objective, objective.x0, jac=True, method="L-BFGS-B")
        middle = time.process_time()
        process = theirs(survey, start)
        end = time.process_time()
        fitted = objective.unflatten(fit.x)
        mean, deviation = predicted(fitted, survey, queries)
        draw(east, north, heights - centre, survey, fitted, output)

    print(f"{GIVEN} heights given, {HELD_OUT} held out; picture: {output}")
    print("                       error (m)   in the 95 % band   log-likelihood   CPU time (s)")
    for name, (values, widths), likelihood, seconds in (
        ("cygrad", (mean, deviation), -fit.fun, middle - begin),
        ("scikit-learn", process.predict(queries, return_std=True), process.log_marginal_likelihood_value_, end - middle),
    ):
        inside = np.abs(values - truth) < DEVIATIONS * widths
        print(f"{name:<20} {root_mean_square(values - truth):>11.1f} {100 * inside.mean():>16.0f} % {likelihood:>16.3f} {seconds:>14.2f}")
    linear = griddata(survey.places, survey.heights, queries, "linear")
    hull = ~np.isnan(linear)
    print(f"within the hull of the places: linear interpolation {root_mean_square((linear - truth)[hull]):.1f} m, "
          f"cygrad {root_mean_square((mean - truth)[hull]):.1f} m")

    kernel = process.kernel_
    same = {"log lengths": cg.tensor(np.log(kernel.k1.k2.length_scale)),
            "log deviation": cg.tensor(np.log(kernel.k1.k1.constant_value) / 2), "log noise": cg.tensor(np.log(kernel.k2.noise_level) / 2)}
    apart = abs(log_likelihood(same, survey).item() / process.log_marginal_likelihood_value_ - 1)
    lengths, deviations, noise = (value.exp().numpy() for value in fitted.values())
    print(f"lengths {lengths[0]:.2f} km to the east, {lengths[1]:.2f} km to the north; deviation {deviations:.0f} m, noise {noise:.1f} m")
    print(f"at scikit-learn's optimum the likelihoods differ by {apart:.0e}; "
          f"{fit.nfev} values with gradients took {1000 * (middle - begin) / fit.nfev:.0f} ms each")
    if not apart <= TOLERANCE:
        sys.exit(f"our likelihood and scikit-learn's differ by more than {TOLERANCE:.0e}: one of them is wrong")


if __name__ == "__main__":
    main()
