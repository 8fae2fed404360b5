"""Sums over the rows of all ranks whose bits depend neither on the number of ranks nor on the distribution of rows.

Each element is split into parts on grids that all ranks share, a coarse one and a fine one (Demmel and Nguyen, Parallel reproducible
summation, IEEE Transactions on Computers 64 (2015) 2060-2070). The parts on one grid add up without rounding, so in any order. The grids
follow from the largest element of each column and the number of rows, on which the ranks agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cygrad._core.compute.grid_sums import largest_of_columns, sums_on_grids
from cygrad._core.operands.arrays import from_array, to_array
from cygrad.operators._messages.library import mpi
from cygrad.operators._messages.message import Message

LARGEST, SMALLEST = 1020, -1022     # exponents of a grid: its double is a number, its last bit is the smallest number


def row_total(message: Message, source: np.ndarray, target: np.ndarray, kind: Any) -> None:
    """Write the sum over dim 0 of all ranks' arrays into the target, which is the same on all ranks."""
    if source.dtype.kind in "fc":
        real = source.real.dtype
        columns = target.size * (1 + (source.dtype.kind == "c"))        # a complex number is two
        rows = source.reshape(-1).view(real).reshape(len(source), columns)
        target.reshape(-1).view(real)[...] = _sums(message.comm, rows.astype(np.float64, copy=False))
    else:
        local = np.asarray(source.sum(0, dtype=source.dtype))           # modulo 2**bits, in any order
        message.comm.Allreduce((local, kind), (target, kind), mpi().SUM)


def _sums(comm: Any, rows: np.ndarray) -> np.ndarray:
    """Return the sums of columns of float64 over the rows of all ranks."""
    x, columns = from_array(rows), rows.shape[1]
    largest, number = np.empty(columns), np.array(len(rows))
    comm.Allreduce(to_array(largest_of_columns(x)), largest, mpi().MAX)
    comm.Allreduce(mpi().IN_PLACE, number, mpi().SUM)
    if not np.isfinite(largest).all():
        return _with_infinities(comm, rows, np.isfinite(largest))
    spare = int(number).bit_length() + 1                # bits that a sum may have more than its elements
    exponents = np.frexp(largest)[1]
    scale = np.minimum(LARGEST - spare - exponents, 0)
    if scale.any():                                     # the grid would overflow
        x = from_array(np.ldexp(rows, scale))
    coarse = np.maximum(exponents + scale + spare, SMALLEST)
    fine = np.maximum(coarse - 53 + spare, SMALLEST)
    sums = np.empty((2, columns))
    comm.Allreduce(to_array(sums_on_grids(x, from_array(np.ldexp(1.5, [coarse, fine])))), sums, mpi().SUM)
    return np.ldexp(sums[0] + sums[1], -scale)


def _with_infinities(comm: Any, rows: np.ndarray, finite: np.ndarray) -> np.ndarray:
    """Return the sums where some columns hold infinities: these have the same plain sum in any order."""
    plain = np.empty(len(finite))
    comm.Allreduce(rows.sum(0), plain, mpi().SUM)
    return np.where(finite, _sums(comm, np.where(finite, rows, 0)), plain)
