"""The end of each program of this folder: its functions `check_...` run one after the other, on all ranks."""

import faulthandler

import numpy as np
from mpi4py import MPI

import cygrad as cg
from cygrad import mpi

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.rank, COMM.size


def run(namespace):
    """Run the checks of a module, and print how many there were."""
    faulthandler.dump_traceback_later(120, exit=True)
    checks = [function for name, function in namespace.items() if name.startswith("check_")]
    assert checks
    for check in checks:
        check()
        COMM.Barrier()
    if RANK == 0:
        print(f"{len(checks)} checks passed on {SIZE} ranks", flush=True)


def drawn(shape, rank=RANK, seed=0, dtype="float64"):
    """Return an array that every rank can draw for each rank."""
    stream = np.random.default_rng([seed, rank, *shape])
    if np.dtype(dtype).kind == "c":
        return (stream.integers(-8, 8, shape) + 1j * stream.integers(-8, 8, shape)).astype(dtype)
    return stream.integers(-8 if np.dtype(dtype).kind in "if" else 0, 8, shape).astype(dtype)


def refused(error, call, words):
    """Check that a call raises an error with some words; it must not have sent a message."""
    try:
        call()
    except error as caught:
        assert words in str(caught), caught
    else:
        raise AssertionError(f"not refused: {words}")


__all__ = ["COMM", "MPI", "RANK", "SIZE", "cg", "drawn", "mpi", "np", "refused", "run"]
