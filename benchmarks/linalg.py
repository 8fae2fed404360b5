"""Dense linear algebra with gradients: single small matrices, batches of them, large ones, and two programs made of them.

Small matrices and the filter by one thread, the others by all. Large matrices take BLAS's time: here NumPy's against torch's.
Both by one thread: with `OPENBLAS_NUM_THREADS=1` and on one processor.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.agreement import Program, measured, whole
from benchmarks.timing import Row
from cygrad.bench.libraries import Run, differentiated
from cygrad.bench.timing import PROCESSORS
from cygrad.bench.workloads import WORKLOADS

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
PROGRAMS = {"Gaussian process": (0.95, PROCESSORS), "Kalman filter": (0.2, 1)}


def function_of(name: str, shape: tuple[int, ...]) -> Callable[[Any, int], Run]:
    """Return a program that computes a function of matrices that are positive definite, and its gradient."""
    def make(library: Any, size: int) -> Run:
        a = np.random.default_rng(size).standard_normal(shape)
        matrices = a @ a.swapaxes(-1, -2) / size + np.eye(size) * np.linspace(1, 1.1, size)
        return differentiated(library, lambda leaf: FUNCTIONS[name](library.linalg, leaf), matrices)

    return make


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    for title, shape, limit, threads in SIZES:
        yield from measured([Program(f"{name} and backward, {title}", function_of(name, shape), shape[-1], limit) for name in FUNCTIONS],
                            threads)
    for workload in WORKLOADS:
        if workload.name in PROGRAMS:
            limit, threads = PROGRAMS[workload.name]
            yield from measured([whole(workload, limit)], threads)
