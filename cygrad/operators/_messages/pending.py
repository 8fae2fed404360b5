"""Messages under way: non-blocking MPI calls, from their start to their end."""

from __future__ import annotations

import time
from typing import Any

from cygrad._core.compute.creation import empty_tensor
from cygrad._core.memory.looks import look
from cygrad._core.operands.arrays import to_bits
from cygrad.operators._messages.agreement import PAUSE, debug
from cygrad.operators._messages.checks import check_usable
from cygrad.operators._messages.library import datatype, mpi
from cygrad.operators._messages.message import Message
from cygrad.operators._messages.transport import check_reduction, operation_of, pieces, start_receive, start_send


class Exchange:
    """A message that was started: its requests, the arrays that MPI reads and writes, and in a backward the message that goes back."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.back: Exchange | None = None
        self.ticket: Any = None             # the tensor without elements that leads from the start to the end in the graph
        self.result: Any = None
        self._requests: list[Any] = []
        self._arrays: tuple[Any, ...] = ()

    def start(self, input: Any, into: Any = None) -> None:
        """Start to send a tensor, and to receive: into the memory of the dense tensor `into`, if that is given."""
        message, dtype = self.message, input.dtype
        check_usable(f"mpi.i{message.operation}", message.comm)
        check_reduction(message, dtype)
        look("a message that is under way is no step")
        self.result = empty_tensor(message.receives.shape, dtype) if into is None else into
        source, target, kind = to_bits(input.detach().contiguous()), to_bits(self.result), datatype(dtype)
        self._arrays = source, target
        if message.operation == "send":
            self._requests = start_send(message, source, kind)
        elif message.operation == "recv":
            self._requests = start_receive(message, target, kind)
        else:
            operation = operation_of(message)
            self._requests = [message.comm.Iallreduce((part, kind), (place, kind), operation) for part, place in pieces(source, target)]

    def test(self) -> bool:
        """Return True if the message has ended."""
        return bool(mpi().Request.Testall(self._requests))

    def finish(self) -> Any:
        """Wait for the end, in the debug mode up to its time limit, and return the tensor that was received."""
        if debug.timeout is not None:
            end = time.monotonic() + debug.timeout
            while not self.test():
                if time.monotonic() > end:
                    raise TimeoutError(f"mpi.debug: rank {self.message.comm.rank} waits for {self._words()}, which has not ended within "
                                       f"{debug.timeout} s")
                time.sleep(PAUSE)
        mpi().Request.Waitall(self._requests)
        self._requests, self._arrays = [], ()
        return self.result

    def _words(self) -> str:
        sends, receives = self.message.sends, self.message.receives
        if self.message.operation == "send":
            return f"send to rank {sends.peer} of {list(sends.shape)} with tag {sends.tag}"
        if self.message.operation == "recv":
            return f"recv from rank {receives.peer} of {list(receives.shape)} with tag {receives.tag}"
        return self.message.agreed()
