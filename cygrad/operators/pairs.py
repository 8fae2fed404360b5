"""Messages from one process to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.compute.inplace import overwrite
from cygrad._core.graph.modes import is_grad_enabled
from cygrad.operators._language.declaration import operator
from cygrad.operators._messages.checks import checked_communicator, checked_rank, checked_tag, words_for
from cygrad.operators._messages.library import DATATYPES
from cygrad.operators._messages.message import Message, Side
from cygrad.operators._messages.tokens import thread
from cygrad.operators._messages.transport import received_into
from cygrad.operators.transfers import is_taped, sent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad.tensor import Tensor


@operator
def mpi_sendrecv(input: Tensor, dest: int | None, source: int | None, *, sendtag: int = 0, recvtag: int = 0,
                 shape: Sequence[int] | None = None, comm: Any = None) -> Tensor:
    """Send a tensor to the rank `dest`, and return the tensor that the rank `source` sends to this one.

    Its shape is `shape`, by default the shape of `input`; its dtype is `input`'s. With None or MPI.PROC_NULL nothing is sent, and zeros are
    received. The gradient goes back from `source`'s receiver to its sender. Raises ValueError for a rank or a tag that is out of range, and
    for MPI.ANY_SOURCE.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> mpi.sendrecv(cygrad.tensor([1, 5]), 0, 0)
    tensor([1, 5])
    """
    comm = checked_communicator(mpi_sendrecv, comm)
    received = tuple(input.shape if shape is None else shape)
    sends = Side(input.shape, None, checked_rank(mpi_sendrecv, "dest", dest, comm, True), checked_tag(mpi_sendrecv, "sendtag", sendtag))
    receives = Side(received, None, checked_rank(mpi_sendrecv, "source", source, comm, True), checked_tag(mpi_sendrecv, "recvtag", recvtag))
    return sent(input, Message("sendrecv", comm, sends, receives))


def message_to(operator: Any, input: Tensor, dest: Any, tag: Any, comm: Any) -> Message:
    """Return the message of `send`; refuse a gradient outside of a tape: its backward has to receive, which only a tape reaches."""
    comm = checked_communicator(operator, comm)
    if input.requires_grad and is_grad_enabled() and thread.token is None:
        raise RuntimeError(f"{words_for(operator)}(): a tensor that requires a gradient is sent inside of `with mpi.Tape() as tape:`; "
                           "tape.backward() receives the gradient. Otherwise send x.detach()")
    side = Side(input.shape, None, checked_rank(operator, "dest", dest, comm), checked_tag(operator, "tag", tag))
    return Message("send", comm, side, Side((0,)))


def message_from(operator: Any, input: Tensor, source: Any, tag: Any, comm: Any) -> Message:
    """Return the message of `recv`."""
    comm = checked_communicator(operator, comm)
    side = Side(tuple(input.shape), None, checked_rank(operator, "source", source, comm), checked_tag(operator, "tag", tag))
    return Message("recv", comm, Side((0,)), side)


def can_receive(tensor: Tensor) -> bool:
    """Return True if MPI may write into the memory of a tensor: it is dense, and has numbers that MPI has."""
    return tensor.is_contiguous() and tensor.dtype.name in DATATYPES


@operator
def mpi_send(input: Tensor, dest: int, *, tag: int = 0, comm: Any = None) -> None:
    """Send a tensor to the rank `dest`, which receives it by `recv`.

    A tensor with a gradient is sent inside of a `Tape`. Raises RuntimeError for one outside, ValueError for a rank or tag out of range.
    """
    sent(input, message_to(mpi_send, input, dest, tag, comm))


@operator
def mpi_recv(input: Tensor, source: int, *, tag: int = 0, comm: Any = None) -> Tensor:
    """Receive the tensor that the rank `source` sends into `input`, of the same shape and dtype, and return it.

    Inside of a `Tape` the gradient goes back to the sender; outside the numbers are constants. Raises RuntimeError where `input` cannot be
    changed in place, ValueError for a rank or tag out of range.
    """
    message = message_from(mpi_recv, input, source, tag, comm)
    if not is_taped(input) and can_receive(input):
        dtype = input.dtype
        overwrite(input, lambda array: received_into(message, array, dtype))
        return input
    nothing = input.new_empty((0,))
    return input.copy_(sent(nothing, message))
