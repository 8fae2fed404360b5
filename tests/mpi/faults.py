"""Programs that end badly: the first argument names one. Each rank prints its error."""

import sys
import time

from checking import COMM, MPI, RANK, SIZE, cg, mpi


def raises():
    """One rank raises while the others wait in a sum."""
    if RANK == SIZE - 1:
        raise ZeroDivisionError("of this rank")
    mpi.allreduce(cg.ones(2))


def raises_in_backward():
    x = cg.ones(2, requires_grad=True)
    y = mpi.allreduce(x * x)
    if RANK == 0:
        y.register_hook(lambda g: 1 / 0)
    y.sum().backward()


def does_not_abort():
    """With the hook turned off, a rank ends by itself."""
    mpi.abort_on_error(False)
    COMM.Barrier()
    MPI.Finalize()
    raise ZeroDivisionError(f"of rank {RANK}")


def after_finalize():
    """The first call, and a backward."""
    x = cg.ones(2, requires_grad=True)
    y = mpi.allreduce(x)
    MPI.Finalize()
    for call in (lambda: mpi.allreduce(x), y.sum().backward):
        try:
            call()
        except RuntimeError as error:
            print(error, flush=True)


def debugged(call):
    """Print the error of a call in the debug mode on each rank; a rank without one waits too, since its abort would end the others."""
    with mpi.debug(timeout=1.5):
        try:
            call()
        except (RuntimeError, TimeoutError) as error:
            print(f"{type(error).__name__} on {RANK}: {error}", flush=True)
    time.sleep(2.5)         # until all others have seen theirs
    MPI.COMM_WORLD.Abort(3)


def leaves_early():
    debugged(lambda: mpi.allreduce(cg.ones(4)) if RANK else time.sleep(3))


def other_shape():
    debugged(lambda: mpi.allreduce(cg.ones(3 if RANK == 1 else 4)))


def other_dtype():
    debugged(lambda: mpi.bcast(cg.ones(3, dtype=cg.float64 if RANK == 1 else cg.float32)))


def other_operation():
    debugged(lambda: mpi.bcast(cg.ones(4)) if RANK == 1 else mpi.allreduce(cg.ones(4)))


def other_root():
    debugged(lambda: mpi.reduce(cg.ones(4), root=min(RANK, 1)))


def other_tag():
    debugged(lambda: mpi.send(cg.ones(4), 1, tag=1) if RANK == 0 else mpi.recv(cg.ones(4), 0, tag=2) if RANK == 1 else None)


def no_sender():
    debugged(lambda: mpi.recv(cg.ones(4), 0) if RANK == 1 else time.sleep(3))


def never_waited_for():
    debugged(lambda: mpi.irecv(cg.ones(4), 0).wait() if RANK == 1 else time.sleep(3))


def loss_on_one_rank_without_a_tape():
    x = cg.ones(2, requires_grad=True)
    y = mpi.allreduce(x)
    debugged(lambda: y.sum().backward() if RANK == 0 else time.sleep(3))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
