"""The debug mode: before each message its partners compare their descriptions of it, within a time limit.

Descriptions travel by non-blocking messages on a copy of COMM_WORLD, so that no check can hang. Each begins with the number of the message
in its communicator, so a rank that has left out one is named by the first that it disagrees in.
"""

from __future__ import annotations

import time
from typing import Any

from cygrad._core.graph.notes import note_message
from cygrad.operators._messages.library import mpi
from cygrad.operators._messages.message import WITHOUT_MESSAGE, Message

LENGTH = 480        # bytes of a description
PAUSE = 1e-4        # seconds between two looks


class Debug:
    """The state of the debug mode: the time limit in seconds, None while it is off; the copy of COMM_WORLD; messages so far."""

    def __init__(self) -> None:
        self.timeout: float | None = None
        self.comm: Any = None
        self.counts: dict[tuple[int, ...], int] = {}

    def set(self, timeout: float | None) -> None:
        """Turn the mode on or off; all ranks do so together."""
        if timeout is not None and self.comm is None:
            self.comm = mpi().COMM_WORLD.Dup()
        self.timeout = timeout
        self.counts.clear()


debug = Debug()


def agree(message: Message, dtype: str) -> None:
    """Announce a message. In the debug mode raise RuntimeError where ranks disagree about it, TimeoutError where a rank does not come."""
    if message.operation not in WITHOUT_MESSAGE:
        note_message()
    if debug.timeout is None or message.operation in WITHOUT_MESSAGE:
        return
    if message.operation in ("sendrecv", "send", "recv"):
        null = mpi().PROC_NULL
        dest = [message.sends.peer] * (message.operation != "recv" and message.sends.peer != null)
        source = [message.receives.peer] * (message.operation != "send" and message.receives.peer != null)
        _compare(message.comm, message.operation, f"{dtype} {list(message.sends.shape)} with tag {message.sends.tag}", dest,
                 f"{dtype} {list(message.receives.shape)} with tag {message.receives.tag}", source, numbered=False)
    else:
        agree_on(message.comm, message.agreed(), dtype)


def agree_on(comm: Any, words: str, dtype: str) -> None:
    """Compare the words for a collective operation with the words of all other ranks."""
    if debug.timeout is not None:
        others = [rank for rank in range(comm.size) if rank != comm.rank]
        words = f"{words} of dtype {dtype}" if dtype else words
        _compare(comm, words, words, others, words, others, numbered=True)


def _compare(comm: Any, operation: str, sent: str, dests: list[int], expected: str, sources: list[int], numbered: bool) -> None:
    members = tuple(comm.group.Translate_ranks([*range(comm.size)], debug.comm.group))
    number = ""
    if numbered:
        debug.counts[members] = debug.counts.get(members, 0) + 1
        number = f"message {debug.counts[members]}: "
    data = (number + sent).encode()[:LENGTH].ljust(LENGTH)
    requests = [debug.comm.Isend(data, members[rank]) for rank in dests]
    answers = {rank: bytearray(LENGTH) for rank in sources}
    waiting = {rank: debug.comm.Irecv(answers[rank], members[rank]) for rank in sources}
    assert debug.timeout is not None
    end = time.monotonic() + debug.timeout
    late = dict(waiting)
    while late and time.monotonic() < end:
        late = {rank: request for rank, request in late.items() if not request.Test()}
        if late:
            time.sleep(PAUSE)
    here = f"rank {comm.rank} is in {number}{operation}"
    if late:
        for request in late.values():
            request.Cancel()
        raise TimeoutError(f"mpi.debug: {here}, {expected}; within {debug.timeout} s there came no message from rank"
                           f"{'s' * (len(late) > 1)} {', '.join(map(str, late))}")
    others = {rank: bytes(answer).decode().rstrip() for rank, answer in answers.items()}
    different = {rank: words for rank, words in others.items() if words != number + expected}
    if different:
        raise RuntimeError(f"mpi.debug: ranks disagree. {here}, {expected}; "
                           + "; ".join(f"rank {rank}: {words}" for rank, words in different.items()))
    for request in requests:
        request.Free()
