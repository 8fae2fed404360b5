"""Dense linear algebra with gradients: single small matrices, batches of them, large ones, and two programs made of them.

Small matrices and the filter by one thread, the others by all. What a large matrix takes is BLAS's: here that of NumPy against torch's.
Both by one thread: with `OPENBLAS_NUM_THREADS=1` and on one processor.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.agreement import Program, Run, differentiated, measured
from benchmarks.timing import PROCESSORS, Row

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "solve": lambda linalg, a: linalg.solve(a, a.mT.detach()).sum(),
    "cholesky": lambda linalg, a: linalg.cholesky(a).sum(),
    "inv": lambda linalg, a: linalg.inv(a).sum(),
    "det": lambda linalg, a: linalg.det(a).sum(),
    "eigh": lambda linalg, a: sum(part.square().sum() for part in linalg.eigh(a)),
    "qr": lambda linalg, a: sum(part.sum() for part in linalg.qr(a)),
    "svd": lambda linalg, a: sum(part.square().sum() for part in linalg.svd(a, full_matrices=False)),
}
SIZES = (("3 x 3", (3, 3), 0.35, 1), ("a batch of 1000, 3 x 3", (1000, 3, 3), 0.6, PROCESSORS), ("200 x 200", (200, 200), 1.0, PROCESSORS))


def function_of(name: str, shape: tuple[int, ...]) -> Callable[[Any, int], Run]:
    """Return a program that computes a function of matrices that are positive definite, and its gradient."""
    def make(library: Any, size: int) -> Run:
        a = np.random.default_rng(size).standard_normal(shape)
        matrices = a @ a.swapaxes(-1, -2) / size + np.eye(size) * np.linspace(1, 1.1, size)
        return differentiated(library, lambda leaf: FUNCTIONS[name](library.linalg, leaf), matrices)

    return make


def gaussian_process(library: Any, points: int, features: int = 3) -> Run:
    """Return the negative log likelihood of a Gaussian process, by its scales, amplitude and noise."""
    random = np.random.default_rng(0)
    x = library.tensor(random.standard_normal((points, features)))
    y = library.tensor(random.standard_normal((points, 1)))
    eye = library.eye(points, dtype=x.dtype)

    def likelihood(scales: Any, amplitude: Any, noise: Any) -> Any:
        scaled = x / scales.exp()
        squares = (scaled * scaled).sum(-1)
        distances = squares[:, None] + squares - 2 * scaled @ scaled.mT
        kernel = (2 * amplitude).exp() * (-0.5 * distances).exp() + (2 * noise).exp() * eye
        factor = library.linalg.cholesky(kernel)
        return 0.5 * (y * library.cholesky_solve(y, factor)).sum() + factor.diagonal().log().sum() + 0.5 * points * math.log(2 * math.pi)

    return differentiated(library, likelihood, np.zeros(features), np.array(0.1), np.array(-1.0))


def kalman_filter(library: Any, steps: int, states: int = 4, observed: int = 2) -> Run:
    """Return the log likelihood of observations under a linear state-space model, by its matrices."""
    random = np.random.default_rng(0)
    observations = library.tensor(random.standard_normal((steps, observed, 1)))
    eye = library.eye(states, dtype=observations.dtype)

    def likelihood(transition: Any, reading: Any, drift: Any, noise: Any) -> Any:
        process, measurement = drift.exp().diag(), noise.exp().diag()
        mean, covariance, total = library.zeros(states, 1, dtype=eye.dtype), eye, 0.0
        for k in range(steps):
            mean, covariance = transition @ mean, transition @ covariance @ transition.mT + process
            residual = observations[k] - reading @ mean
            spread = reading @ covariance @ reading.mT + measurement
            gain = library.linalg.solve(spread, reading @ covariance).mT
            total = total - 0.5 * (residual * library.linalg.solve(spread, residual)).sum() - 0.5 * library.linalg.slogdet(spread)[1]
            mean, covariance = mean + gain @ residual, (eye - gain @ reading) @ covariance
        return total

    return differentiated(library, likelihood, 0.9 * np.eye(states) + 0.05 * random.standard_normal((states, states)),
                          random.standard_normal((observed, states)), np.full(states, -1.0), np.full(observed, -1.0))


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    for title, shape, limit, threads in SIZES:
        yield from measured([Program(f"{name} and backward, {title}", function_of(name, shape), shape[-1], limit) for name in FUNCTIONS],
                            threads)
    yield from measured([Program("likelihood of a Gaussian process, 300 points", gaussian_process, 300, 0.95)], PROCESSORS)
    yield from measured([Program("likelihood of a Kalman filter, 4 states, 200 steps", kalman_filter, 200, 0.2)])
