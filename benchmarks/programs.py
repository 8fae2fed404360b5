"""Whole programs, value and gradients, as a user of torch writes them, and captured: limits in parts of torch's time; selects of a leaf."""

import statistics
import time
import timeit
from collections.abc import Iterator
from typing import Any

import numpy as np

import cygrad
from benchmarks.agreement import captured, measured, whole
from benchmarks.timing import Row, selected
from cygrad.bench.libraries import Run, differentiated
from cygrad.bench.workloads import WORKLOADS

LIMITS = {
    "pairwise potential": 0.6, "Gaussian mixture": 0.9, "heat equation": 0.33, "LSTM": 0.1, "Jacobian of slices": 0.35,
    "option pricing": 0.4, "elementwise chain": 0.4, "MLP step": 0.65,
}
# Of torch's time as well, of a function that was captured before.
CAPTURED = {
    "pairwise potential": 0.2, "Gaussian mixture": 0.2, "heat equation": 0.12, "LSTM": 0.006, "option pricing": 0.27,
    "elementwise chain": 0.3, "MLP step": 0.65, "Gaussian process": 0.6, "Kalman filter": 0.02,
}
PROGRAMS = [whole(workload, LIMITS[workload.name]) for workload in WORKLOADS if workload.name in LIMITS]
CAPTURED_PROGRAMS = [captured(whole(workload, CAPTURED[workload.name])) for workload in WORKLOADS if workload.name in CAPTURED]
SELECT_LIMIT = 2e-6
SELECT_SIZES, SELECT_ROUNDS = (1000, 10_000, 100_000), 5


def added_selects(library: Any, size: int) -> Run:
    """Add the elements of a leaf, one by one."""
    def total(x: Any) -> Any:
        result = x[0]
        for i in range(1, size):
            result = result + x[i]
        return result

    return differentiated(library, total, np.random.default_rng(0).standard_normal(size))


def stacked_selects(library: Any, size: int) -> Run:
    """Take a leaf apart, and put it together again."""
    def total(x: Any) -> Any:
        return library.stack([x[i] for i in range(size)]).sum()

    return differentiated(library, total, np.random.default_rng(0).standard_normal(size))


SELECTS = {"added": added_selects, "stacked": stacked_selects}


def selects() -> Iterator[Row]:
    """Yield the processor time of a select of one leaf, forward and backward: the same for every number of them."""
    for how, make in SELECTS.items():
        for size in SELECT_SIZES:
            work = f"{size:,} selects of one leaf, {how}, forward + backward, each, mean"
            if selected(work):
                timer = timeit.Timer("run()", "import gc; gc.enable()", time.process_time, {"run": make(cygrad, size)})
                timer.timeit(1)     # loads the modules that load at first use
                count = max(SELECT_SIZES) // size
                yield Row(work, statistics.mean(timer.repeat(SELECT_ROUNDS, count)) / count / size, SELECT_LIMIT)


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    yield from measured(PROGRAMS)
    yield from measured(CAPTURED_PROGRAMS)
    cygrad.set_num_threads(1)
    yield from selects()
