"""A log-likelihood over data that is spread over processes: logistic regression of scikit-learn's digits.

Each process holds its shard of the 1797 images and computes the likelihood of these alone; `mpi.optimize` adds up values, gradients and
Hessian products for SciPy's trust-region Newton method, which runs on each process with the same bits. The likelihood at the end is a
reproducible sum over the rows of all processes. Value and gradient are compared with one process's.

    python examples/shards_mpi.py [--output build/shards_mpi.svg]
    mpiexec -n 4 python -m mpi4py examples/shards_mpi.py
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
from sklearn.datasets import load_digits

import cygrad as cg
from cygrad import mpi

Array = NDArray[Any]
Parameters = dict[str, cg.Tensor]

INVERSE_PENALTY = 1.0       # C of scikit-learn
GRADIENT_TOLERANCE = 1e-5
TOLERANCE = 1e-11           # between one process and several, relative


def log_likelihoods(parameters: Parameters, images: Array, labels: Array) -> cg.Tensor:
    """Return the log-likelihood of each image's label."""
    scores = cg.from_numpy(images) @ parameters["weights"] + parameters["biases"]
    return cg.log_softmax(scores, dim=1)[cg.arange(len(labels)), cg.from_numpy(labels)]


def negative_log_posterior(images: Array, labels: Array, share: float) -> Callable[[Parameters], cg.Tensor]:
    """Return the function to minimise, or the part of it that belongs to a shard of the data; the penalty is divided by shares."""

    def f(parameters: Parameters) -> cg.Tensor:
        penalty = (parameters["weights"] ** 2).sum() / (2 * INVERSE_PENALTY)
        return share * penalty - log_likelihoods(parameters, images, labels).sum()

    return f


def draw(weights: Array, sizes: list[int], values: list[float], output: Path) -> None:
    """Write the picture: the weights of each digit, the shards, and the descent."""
    figure = plt.figure(figsize=(11, 3.4), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=[1.3, 1])
    left, right = halves
    largest = np.abs(weights).max()
    for digit, axes in enumerate(left.subplots(2, 5).flat):
        axes.imshow(weights[:, digit].reshape(8, 8), cmap="RdBu_r", vmin=-largest, vmax=largest)
        axes.set(title=str(digit), xticks=[], yticks=[])
    first, second = right.subplots(1, 2)
    first.bar(range(len(sizes)), sizes)
    first.set(title="Images of each process", xlabel="rank", xticks=range(len(sizes)))
    second.semilogy(np.array(values) - values[-1] + 1e-6)
    second.set(title="Value above the last", xlabel="iteration")
    write(figure, output)


def main() -> None:
    """Fit, compare with one process, and write the picture."""
    output = output_argument("Fit a likelihood of data that is spread over one or several processes.", "build/shards_mpi.svg")
    comm = MPI.COMM_WORLD
    digits = load_digits()
    images, labels = digits.data / 16, digits.target.astype(np.int64)
    shard = slice(comm.rank, None, comm.size)       # a program with files would read its own here
    mine = np.ascontiguousarray(images[shard]), np.ascontiguousarray(labels[shard])

    start = {"weights": np.zeros((64, 10)), "biases": np.zeros(10)}
    objective = mpi.optimize.value_and_grad(negative_log_posterior(*mine, 1 / comm.size), start, comm)
    values: list[float] = []
    begin = time.perf_counter()
    with progress(comm, values) as callback:
        fit = minimize(objective, objective.x0, jac=True, hessp=objective.hessp, method="trust-ncg", callback=callback,
                       options={"gtol": GRADIENT_TOLERANCE, "maxiter": 200})
    elapsed = time.perf_counter() - begin

    parameters = objective.unflatten(fit.x)
    likelihood = mpi.total(log_likelihoods(parameters, *mine), comm=comm, reproducible=True).item()
    sizes = comm.gather(len(mine[1]))
    if comm.rank == 0:
        assert sizes is not None
        draw(parameters["weights"].numpy(), sizes, values, output)
        print(f"{len(labels)} images on {comm.size} process{'es' * (comm.size > 1)}; picture: {output}")
        print(f"negative log-posterior: {fit.fun:.6f}; log-likelihood: {likelihood!r}")
        print(f"time: {elapsed:.2f} s for {fit.nit} iterations, {fit.njev} gradients and {fit.nhev} Hessian products")
    compare_with_one_process(comm, objective, negative_log_posterior(images, labels, 1.0), start, fit.x, TOLERANCE)


if __name__ == "__main__":
    main()
