"""The MPI call of a message, on arrays that lie dense: one call, or several of fewer elements where MPI's counts are 32-bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cygrad._core.compute.creation import empty_tensor
from cygrad._core.operands.arrays import to_bits
from cygrad.operators._messages import halos, row_totals
from cygrad.operators._messages.agreement import agree
from cygrad.operators._messages.checks import check_usable
from cygrad.operators._messages.library import DATATYPES, KINDS, datatype, largest_count, mpi
from cygrad.operators._messages.message import ADDING, Message

Array = np.ndarray


def transported(message: Message, input: Any) -> Any:
    """Send a tensor and return the tensor that is received, without recording."""
    dtype = input.dtype
    check_usable(f"mpi.{message.operation}", message.comm)
    check_reduction(message, dtype)
    source = to_bits(input.detach().contiguous())
    result = empty_tensor(message.receives.shape, dtype)
    agree(message, dtype.name)
    OPERATIONS[message.operation](message, source, to_bits(result), datatype(dtype))
    return result


def received_into(message: Message, array: Array, dtype: Any) -> None:
    """Receive the message of a `recv` in a dense array."""
    agree(message, dtype.name)
    _receive(message, None, array, datatype(dtype))


def check_reduction(message: Message, dtype: Any) -> None:
    """Refuse a dtype that MPI cannot add, or reduce as the message has it."""
    if message.operation not in ADDING:
        return
    if dtype.name not in DATATYPES:
        raise TypeError(f"mpi.{message.operation}(): MPI has no arithmetic of {dtype.name}: convert the tensor, for example by x.float()")
    if dtype.kind not in (KINDS["sum"] if message.reduction is None else message.reduction.kinds):
        name = "sum" if message.reduction is None else message.reduction.name
        raise TypeError(f"mpi.{message.operation}(): MPI has no {name} of {dtype.name}")


def operation_of(message: Message) -> Any:
    """Return the MPI.Op of a message."""
    return mpi().SUM if message.reduction is None else message.reduction.operation


# ----- Element by element -----
def pieces(*arrays: Any) -> Iterator[tuple[Any, ...]]:
    """Yield arrays of one size in parts that one call takes; None stands for no array."""
    limit, size = largest_count(), next(array.size for array in arrays if array is not None)
    if size <= limit:
        yield arrays
        return
    flat = [array if array is None else array.reshape(-1) for array in arrays]
    for start in range(0, size, limit):
        yield tuple([array if array is None else array[start:start + limit] for array in flat])


def _allreduce(message: Message, source: Array, target: Array, kind: Any) -> None:
    operation = operation_of(message)
    for sent, received in pieces(source, target):
        message.comm.Allreduce((sent, kind), (received, kind), operation)


def _reduce(message: Message, source: Array, target: Array, kind: Any) -> None:
    is_root = message.comm.rank == message.root
    for sent, received in pieces(source, target):
        message.comm.Reduce((sent, kind), (received, kind) if is_root else None, operation_of(message), message.root)
    if not is_root:
        target[...] = 0


def _bcast(message: Message, source: Array, target: Array, kind: Any) -> None:
    if message.comm.rank == message.root:
        target[...] = source
    for (received,) in pieces(target):
        message.comm.Bcast((received, kind), message.root)


def _replicate(message: Message, source: Array, target: Array, kind: Any) -> None:
    target[...] = source


def start_send(message: Message, source: Array, kind: Any) -> list[Any]:
    """Return the requests of an array that is sent to the other rank."""
    return [message.comm.Isend((part, kind), message.sends.peer, message.sends.tag) for (part,) in pieces(source)]


def start_receive(message: Message, target: Array, kind: Any) -> list[Any]:
    """Return the requests of an array that the other rank sends."""
    return [message.comm.Irecv((part, kind), message.receives.peer, message.receives.tag) for (part,) in pieces(target)]


def _sendrecv(message: Message, source: Array, target: Array, kind: Any) -> None:
    sends, receives, null = message.sends, message.receives, mpi().PROC_NULL
    if source.size <= largest_count() and target.size <= largest_count():
        message.comm.Sendrecv((source, kind), sends.peer, sends.tag, (target, kind), receives.peer, receives.tag)
    else:
        mpi().Request.Waitall(start_send(message, source, kind) + start_receive(message, target, kind))
    if receives.peer == null:
        target[...] = 0


def _send(message: Message, source: Array, target: Any, kind: Any) -> None:
    for (part,) in pieces(source):
        message.comm.Send((part, kind), message.sends.peer, message.sends.tag)


def _receive(message: Message, source: Any, target: Array, kind: Any) -> None:
    for (part,) in pieces(target):
        message.comm.Recv((part, kind), message.receives.peer, message.receives.tag)
    if message.receives.peer == mpi().PROC_NULL:
        target[...] = 0


# ----- In blocks, one for each rank -----
def _gather(message: Message, source: Array, target: Array, kind: Any) -> None:
    comm, root = message.comm, message.root
    if _is_large(comm.size * source.size):
        counts = [source.size] * comm.size
        _in_rounds(message, source, None, target, counts, kind, _call_gatherv)
    else:
        comm.Gather((source, kind), (target, kind) if comm.rank == root else None, root)
    if comm.rank != root:
        target[...] = 0


def _scatter(message: Message, source: Array, target: Array, kind: Any) -> None:
    comm, root = message.comm, message.root
    if _is_large(comm.size * target.size):
        _in_rounds(message, source, [target.size] * comm.size, target, None, kind, _call_scatterv)
    else:
        comm.Scatter((source, kind) if comm.rank == root else None, (target, kind), root)


def _allgather(message: Message, source: Array, target: Array, kind: Any) -> None:
    if _is_large(target.size):
        _in_rounds(message, source, None, target, [source.size] * message.comm.size, kind, _call_allgatherv)
    else:
        message.comm.Allgather((source, kind), (target, kind))


def _alltoall(message: Message, source: Array, target: Array, kind: Any) -> None:
    if _is_large(source.size):
        counts = [source.size // message.comm.size] * message.comm.size
        _in_rounds(message, source, counts, target, counts, kind, _call_alltoallv)
    else:
        message.comm.Alltoall((source, kind), (target, kind))


def _reduce_scatter(message: Message, source: Array, target: Array, kind: Any) -> None:
    if _is_large(source.size):
        _in_rounds(message, source, [target.size] * message.comm.size, target, None, kind, _call_reduce_scatter)
    else:
        message.comm.Reduce_scatter_block((source, kind), (target, kind), operation_of(message))


def _gatherv(message: Message, source: Array, target: Array, kind: Any) -> None:
    _in_rounds(message, source, None, target, _elements(message, message.receives.counts), kind, _call_gatherv)
    if message.comm.rank != message.root:
        target[...] = 0


def _scatterv(message: Message, source: Array, target: Array, kind: Any) -> None:
    _in_rounds(message, source, _elements(message, message.sends.counts), target, None, kind, _call_scatterv)


def _allgatherv(message: Message, source: Array, target: Array, kind: Any) -> None:
    _in_rounds(message, source, None, target, _elements(message, message.receives.counts), kind, _call_allgatherv)


def _alltoallv(message: Message, source: Array, target: Array, kind: Any) -> None:
    sent, received = (_elements(message, side.counts) for side in (message.sends, message.receives))
    _in_rounds(message, source, sent, target, received, kind, _call_alltoallv)


def _reduce_scatterv(message: Message, source: Array, target: Array, kind: Any) -> None:
    _in_rounds(message, source, _elements(message, message.sends.counts), target, None, kind, _call_reduce_scatter)


def _elements(message: Message, counts: Any) -> list[int]:
    return [count * message.row for count in counts]


def _is_large(size: int) -> bool:
    return size > largest_count()


Buffer = tuple[Any, ...]        # an array, a list of its counts where it has blocks (a tuple has another meaning), and the datatype


def _call_gatherv(message: Message, sent: Buffer, received: Buffer) -> None:
    message.comm.Gatherv(sent, received if message.comm.rank == message.root else None, message.root)


def _call_scatterv(message: Message, sent: Buffer, received: Buffer) -> None:
    message.comm.Scatterv(sent if message.comm.rank == message.root else None, received, message.root)


def _call_allgatherv(message: Message, sent: Buffer, received: Buffer) -> None:
    message.comm.Allgatherv(sent, received)


def _call_alltoallv(message: Message, sent: Buffer, received: Buffer) -> None:
    message.comm.Alltoallv(sent, received)


def _call_reduce_scatter(message: Message, sent: Buffer, received: Buffer) -> None:
    array, counts, kind = sent
    message.comm.Reduce_scatter((array, kind), received, counts, operation_of(message))


def _in_rounds(message: Message, source: Array, sent: list[int] | None, target: Array, received: list[int] | None, kind: Any,
               call: Callable[[Message, Buffer, Buffer], None]) -> None:
    """Call once; or in rounds, each with the next few elements of every block, where there are more than one call takes.

    `sent` and `received` are the elements by rank, None on a side that has one block alone. All ranks call equally often: the counts of one
    side are the same everywhere, except in `alltoallv`, where the ranks ask each other.
    """
    largest, limit = max(sent or received or ()), largest_count()
    total = max(sum(sent or ()), sum(received or ()))
    if sent is not None and received is not None and limit < 2**63 - 1:
        total, largest = (message.comm.allreduce(number, mpi().MAX) for number in (total, largest))
    if total <= limit:
        call(message, (source, kind) if sent is None else (source, sent, kind),
             (target, kind) if received is None else (target, received, kind))
        return
    step = max(limit // message.comm.size, 1)
    blocks_sent, blocks_received = _blocks(source, sent), _blocks(target, received)
    for start in range(0, largest, step):
        parts = [block[start:start + step] for block in blocks_sent]
        places = [block[start:start + step] for block in blocks_received]
        buffer = np.empty(sum(place.size for place in places), target.dtype)
        call(message, (np.concatenate(parts), kind) if sent is None else (np.concatenate(parts), _round(sent, start, step), kind),
             (buffer, kind) if received is None else (buffer, _round(received, start, step), kind))
        position = 0
        for place in places:
            place[...] = buffer[position:position + place.size]
            position += place.size


def _round(counts: list[int], start: int, step: int) -> list[int]:
    return [min(max(count - start, 0), step) for count in counts]


def _blocks(array: Array, counts: list[int] | None) -> list[Array]:
    """Return an array's blocks as vectors; a rank that has none of the elements has empty ones."""
    flat = array.reshape(-1)
    return [flat] if counts is None else np.split(flat, np.cumsum(counts[:-1], dtype=int))


OPERATIONS: dict[str, Callable[[Message, Any, Any, Any], None]] = {
    "allreduce": _allreduce, "total": _allreduce, "replicate": _replicate, "rows": _replicate, "row_total": row_totals.row_total,
    "reduce": _reduce, "bcast": _bcast, "gather": _gather, "scatter": _scatter, "gatherv": _gatherv, "scatterv": _scatterv,
    "allgather": _allgather, "reduce_scatter": _reduce_scatter, "allgatherv": _allgatherv, "reduce_scatterv": _reduce_scatterv,
    "alltoall": _alltoall, "alltoallv": _alltoallv, "sendrecv": _sendrecv, "send": _send, "recv": _receive,
    "halo_exchange": halos.exchange, "halo_add": halos.add,
}
