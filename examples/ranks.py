"""The common parts of the examples on several processes: the progress of a fit, and the comparison with one process."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from mpi4py import MPI
from tqdm import tqdm

import cygrad as cg


@contextmanager
def progress(comm: MPI.Comm, values: list[float], total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show a bar on the first process; the callback for SciPy appends the value of each iteration."""
    with tqdm(total=total, desc=f"{comm.size} processes", disable=comm.rank != 0, leave=False) as bar:
        def callback(intermediate_result: Any) -> None:
            values.append(float(intermediate_result.fun))
            bar.set_postfix(value=f"{values[-1]:.3f}")
            bar.update()

        yield callback


def compare_with_one_process(comm: MPI.Comm, objective: Any, loss: Callable[..., cg.Tensor], start: Any, x: Any, tolerance: float) -> None:
    """Compare value and gradient with the whole loss on one process: print the difference, and exit above the tolerance."""
    value, gradient = objective(x)
    apart = 0.0
    if comm.rank == 0:
        twin = cg.optimize.value_and_grad(loss, start)
        other_value, other_gradient = twin(x)
        scale = np.abs(twin(objective.x0)[1]).max()
        apart = max(abs(value / other_value - 1), np.abs(gradient - other_gradient).max() / scale)
        print(f"value and gradient differ from one process's by {apart:.0e}")
    if not comm.bcast(apart) <= tolerance:
        sys.exit(f"several processes and one differ by more than {tolerance:.0e}")
