"""Messages of `cygrad.mpi` beside the same by mpi4py into buffers that are there, in turns: `mpiexec -n 2 python benchmarks/messages.py`.

Times are rank 0's medians and best, in microseconds; limits are on the ratio, or on the difference where they end in us.
"""

import time
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

import cygrad as cg
from cygrad import mpi

COMM = MPI.COMM_WORLD
ROUNDS = 41
Work = Callable[[], object]


def compared(name: str, ours: Work, raw: Work, repeats: int, limit: str) -> None:
    """Print the times of two functions that all ranks run in turns."""
    times: dict[Work, list[float]] = {ours: [], raw: []}
    for work in (ours, raw):
        work()
    for _ in range(ROUNDS):
        for work, results in times.items():
            COMM.Barrier()
            start = time.perf_counter()
            for _ in range(repeats):
                work()
            results.append((time.perf_counter() - start) / repeats * 1e6)
    if COMM.rank == 0:
        (median, best), (raw_median, raw_best) = ((np.median(results), min(results)) for results in times.values())
        print(f"{name:36} {median:9.2f} {raw_median:9.2f} {median / raw_median:6.2f}   {best:9.2f} {raw_best:9.2f} {best / raw_best:6.2f} "
              f"{best - raw_best:7.2f} us   at most {limit}", flush=True)


def sums(size: int, repeats: int, limits: tuple[str, str]) -> None:
    """Compare a recorded sum, and one with its backward."""
    x = cg.rand(size, dtype=cg.float64).requires_grad_()
    w = cg.ones(size, dtype=cg.float64)
    array, gradient, result, back = x.detach().numpy(), w.numpy(), np.empty(size), np.empty(size)

    def raw() -> None:
        COMM.Allreduce(array, result)

    def raw_twice() -> None:
        COMM.Allreduce(array, result)
        COMM.Allreduce(gradient, back)

    def ours_twice() -> None:
        cg.autograd.grad(mpi.allreduce(x), x, w)

    compared(f"allreduce of {size} doubles", lambda: mpi.allreduce(x), raw, repeats, limits[0])
    compared("  with its backward", ours_twice, raw_twice, repeats, limits[1])


def halo(size: int) -> None:
    """Compare a halo exchange with the same by buffers of NumPy."""
    cart = COMM.Create_cart(MPI.Compute_dims(COMM.size, 2), [True, True])
    x = cg.rand(size, size, dtype=cg.float64)
    array, wide = x.numpy(), np.empty((size + 2, size + 2))

    def raw() -> np.ndarray:
        wide[1:-1, 1:-1] = array
        for dim in range(2):
            part = wide[:, 1:-1] if dim == 0 else wide.T
            below, above = cart.Shift(dim, 1)
            received = np.empty(part.shape[1])
            for sent, place, dest, source in ((-2, 0, above, below), (1, -1, below, above)):
                cart.Sendrecv(np.ascontiguousarray(part[sent]), dest, 0, received, source, 0)
                part[place] = received
        return wide

    assert (mpi.halo_exchange(x, cart).numpy() == raw()).all()
    compared(f"halo_exchange of {size} x {size}", lambda: mpi.halo_exchange(x, cart), raw, 5, "1.3")


def reproducible(size: int) -> None:
    """Compare a reproducible sum over all rows with the plain one."""
    x = cg.rand(size // COMM.size, dtype=cg.float64)
    compared(f"reproducible sum of {size}", lambda: mpi.total(x, reproducible=True), lambda: mpi.total(x.sum()), 5, "10")


if __name__ == "__main__":
    if COMM.rank == 0:
        print(f"{'':36} {'median':>9} {'raw':>9} {'ratio':>6}   {'best':>9} {'raw':>9} {'ratio':>6}")
    sums(4, 500, ("5 us", ""))
    sums(1_000_000, 3, ("1.1", "1.15"))
    halo(1024)
    reproducible(1_000_000)
