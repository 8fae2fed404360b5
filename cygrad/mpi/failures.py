"""A rank that fails, waits in vain or does something else ends in an error that says so, and does not leave the others waiting."""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from cygrad._core.memory.looks import look
from cygrad.operators._messages import agreement
from cygrad.operators._messages.checks import checked_communicator
from cygrad.operators._messages.library import is_running, mpi

FORWARDED = 1.0             # seconds for mpiexec to show the text: text that it has not read when a rank aborts is lost
_before: list[Any] = []     # the excepthook that was there before ours, while ours is on


def abort_on_error(enabled: bool = True) -> None:
    """Let an exception that ends this process end all ranks, or not; importing `cygrad.mpi` turns it on.

    Its text goes to stderr first, by the `sys.excepthook` that was set before. It is for uncaught exceptions of the main thread where MPI
    runs with several ranks. `python -m mpi4py` does so, too, and for `sys.exit` besides.

    >>> import cygrad
    >>> cygrad.mpi.abort_on_error(False)
    >>> cygrad.mpi.abort_on_error()
    """
    if enabled and not _before:
        _before.append(sys.excepthook)
        sys.excepthook = _excepthook
    elif not enabled and _before:
        hook = _before.pop()
        if sys.excepthook is _excepthook:
            sys.excepthook = hook


def _excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    try:
        (_before[0] if _before else sys.__excepthook__)(kind, error, trace)
    except Exception:       # a hook of the user's that fails itself
        traceback.print_exc()
    if is_running() and mpi().COMM_WORLD.size > 1:
        print(f"cygrad.mpi: rank {mpi().COMM_WORLD.rank} ends all ranks, as it was ended by {kind.__name__}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        time.sleep(FORWARDED)
        mpi().COMM_WORLD.Abort(1)


@contextlib.contextmanager
def _restored(before: float | None) -> Iterator[None]:
    try:
        yield
    finally:
        agreement.debug.set(before)


def debug(timeout: float | None = 60.0) -> contextlib.AbstractContextManager[None]:
    """Have the ranks compare, before each message, its operation, order, shape and dtype, for at most `timeout` seconds; None ends that.

    All ranks call it. A message that they disagree about raises RuntimeError on each, a rank that does not come within the time limit
    raises TimeoutError on the others: both name the operation, the shape and the ranks. As a context manager it holds for the block.
    Each message costs two more. Messages that are waited for later have the time limit only.

    >>> import cygrad
    >>> with cygrad.mpi.debug(timeout=5):
    ...     cygrad.mpi.allreduce(cygrad.tensor([1., 2.]))
    tensor([1., 2.])
    """
    if timeout is not None and not timeout > 0:
        raise ValueError(f"mpi.debug(): timeout={timeout} must be a number of seconds above 0, or None")
    before = agreement.debug.timeout
    agreement.debug.set(timeout)
    return _restored(before)


def barrier(comm: Any = None) -> None:
    """Wait until all ranks of a communicator have come here.

    >>> import cygrad
    >>> cygrad.mpi.barrier()
    """
    comm = checked_communicator(barrier, comm)
    look("mpi.barrier() is no operator")
    agreement.agree_on(comm, "barrier", "")
    comm.Barrier()
