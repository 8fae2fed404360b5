"""Checks of communicators, ranks, tags and counts."""

from __future__ import annotations

from operator import index
from typing import Any

from cygrad.operators import public_name
from cygrad.operators._messages.library import mpi

TAG_BOUND = 32767       # the least bound of tags that MPI's standard allows


def words_for(operator: Any) -> str:
    """Return the name of an operator, or another function of the namespace, in errors."""
    name = getattr(operator, "name", None)
    return f"mpi.{operator.__name__}" if name is None else public_name(name)


def check_usable(name: str, comm: Any) -> None:
    """Refuse a communicator that was freed, and calls after MPI_Finalize; a backward may come that late, too."""
    if mpi().Is_finalized():
        raise RuntimeError(f"{name}(): MPI_Finalize was called, so there is no communication any more")
    if comm == mpi().COMM_NULL:
        raise ValueError(f"{name}(): the communicator is MPI.COMM_NULL: it was freed, or this rank is no member of it")


def checked_communicator(operator: Any, comm: Any) -> Any:
    """Return the communicator of a call: COMM_WORLD for None; refuse objects that are none, freed ones, and calls after MPI_Finalize."""
    if comm is None:
        comm = mpi().COMM_WORLD
    if not isinstance(comm, mpi().Comm):
        raise TypeError(f"{words_for(operator)}(): argument 'comm' must be a communicator of mpi4py, not {type(comm).__name__}")
    check_usable(words_for(operator), comm)
    if not isinstance(comm, mpi().Intracomm):
        raise TypeError(f"{words_for(operator)}(): argument 'comm' must be a communicator within one group, not {type(comm).__name__}")
    return comm


def _integer(operator: Any, word: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{words_for(operator)}(): argument '{word}' must be int, not {type(value).__name__}") from None


def checked_rank(operator: Any, word: str, rank: Any, comm: Any, null: bool = False) -> int:
    """Return a rank of a communicator; with `null` it may be MPI.PROC_NULL, or None for the same."""
    if null and (rank is None or rank == mpi().PROC_NULL):
        return int(mpi().PROC_NULL)
    number = _integer(operator, word, rank)
    if not 0 <= number < comm.size:
        raise ValueError(f"{words_for(operator)}(): {word}={number} is out of range for a communicator of {comm.size} "
                         f"process{'es' * (comm.size > 1)}" + ("; MPI.ANY_SOURCE is refused, as the gradient goes back to the source"
                                                               if number == mpi().ANY_SOURCE and word == "source" else ""))
    return number


def checked_tag(operator: Any, word: str, tag: Any) -> int:
    number = _integer(operator, word, tag)
    if not 0 <= number <= TAG_BOUND:
        raise ValueError(f"{words_for(operator)}(): {word}={number} must lie between 0 and {TAG_BOUND}")
    return number


def checked_counts(operator: Any, counts: Any, comm: Any, rows: int | None) -> tuple[int, ...]:
    """Return a count of rows for each rank; `rows` is their sum, None where this rank has no rows to count."""
    try:
        numbers = tuple(index(count) for count in counts)
    except TypeError:
        raise TypeError(f"{words_for(operator)}(): argument 'counts' must be a sequence of ints, one for each rank") from None
    if len(numbers) != comm.size or any(count < 0 for count in numbers):
        raise ValueError(f"{words_for(operator)}(): counts={list(numbers)} must be {comm.size} numbers of rows, one for each rank")
    if rows is not None and sum(numbers) != rows:
        raise ValueError(f"{words_for(operator)}(): counts={list(numbers)} add up to {sum(numbers)} rows, but the tensor has {rows}")
    return numbers


def checked_rows(operator: Any, input: Any) -> int:
    """Return the number of rows of a tensor that has a dim 0."""
    if not input.ndim:
        raise ValueError(f"{words_for(operator)}(): a tensor of 0 dims has no rows: it must have at least 1 dim")
    return int(input.shape[0])
