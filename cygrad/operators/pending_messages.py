"""Messages that a process waits for later: the operators return handles, whose `wait` returns the tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.compute.inplace import overwrite
from cygrad.operators._language.declaration import operator, recorded, recorded_together
from cygrad.operators._messages.checks import checked_communicator
from cygrad.operators._messages.library import reduction
from cygrad.operators._messages.message import Message, Side
from cygrad.operators._messages.pending import Exchange
from cygrad.operators._messages.tokens import thread
from cygrad.operators.collectives import mpi_allreduce
from cygrad.operators.pairs import can_receive, message_from, message_to
from cygrad.operators.transfers import arrived, check_derivative, is_taped, new_token

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


# ----- The start and the end of a message, each a node -----
def _started(input: Tensor, exchange: Exchange) -> Exchange:
    """Start a message, recorded."""
    taped = is_taped(input)
    exchange.ticket = _start_message(input, thread.token if taped else None, exchange)
    if taped:
        thread.token = exchange.ticket
    return exchange


def _ended(exchange: Exchange) -> Tensor:
    """Wait for a message, and return the tensor that it brings, recorded."""
    taped = is_taped(exchange.result)
    result, token = _end_message(thread.token if taped else exchange.ticket, exchange)
    if taped:
        thread.token = token
    return result


def _start_gradients(gs: list[Any], exchange: Exchange) -> tuple[Any, Any]:
    """Wait for the gradient that the end's gradient has started to send."""
    assert exchange.back is not None
    back, exchange.back = exchange.back, None
    return _ended(back), gs[0]


def _end_gradients(gs: list[Any], exchange: Exchange, dtype: Any) -> tuple[Any]:
    """Start to send the gradient."""
    g, token = arrived(gs, exchange.message, dtype)
    exchange.back = _started(g, Exchange(exchange.message.transposed()))
    return (token,)


def _refused(tangent_of: Any, operator: Any, result: Any, *arguments: Any) -> Any:
    raise NotImplementedError("mpi: a message under way has no tangent")


@operator(each=_start_gradients, tangent=_refused, method=False)
def _start_message(input: Tensor, token: Any, exchange: Exchange) -> Tensor:
    if exchange.result is None:
        exchange.start(input)
    return recorded(_start_message, (input, token), new_token(), exchange=exchange)


@operator(each=_end_gradients, tangent=_refused, method=False)
def _end_message(ticket: Tensor, exchange: Exchange) -> tuple[Tensor, Tensor]:
    result = exchange.finish()
    return recorded_together(_end_message, (ticket,), (result, new_token()), exchange=exchange, dtype=result.dtype)


# ----- Operators -----
class Pending:
    """A message under way. Every one is waited for, in the same order on all ranks."""

    def __init__(self, exchange: Exchange, into: Any = None) -> None:
        self._exchange, self._into = exchange, into
        self._result: Any = None

    def test(self) -> bool:
        """Return True if the message has ended, so that `wait` returns at once."""
        return self._result is not None or self._exchange.test()

    def wait(self) -> Any:
        """Wait for the end, and return the tensor: the result of `iallreduce`, the argument of `isend` and `irecv`."""
        if self._result is None:
            into = self._into
            if into is not None and self._exchange.result is into:
                overwrite(into, lambda array: self._exchange.finish())      # counts the change
                self._result = into
            else:
                result = _ended(self._exchange)
                self._result = result if into is None else into.copy_(result)
        return self._result


class _Ended(Pending):
    """The handle of a message that has ended."""

    def __init__(self, result: Tensor) -> None:
        self._result = result


class _Sent(Pending):
    """The handle of a tensor that is sent."""

    def __init__(self, exchange: Exchange, input: Tensor) -> None:
        super().__init__(exchange)
        self._input = input

    def wait(self) -> Any:
        super().wait()
        return self._input


def _ended_at_once(input: Tensor, op: Any = "sum", *, comm: Any = None) -> Any:
    """Return the handle of a message that has ended, for tensors that have a tangent or are one example of many."""
    return _Ended(mpi_allreduce(input, op, comm=comm))


@operator(parts=_ended_at_once)
def mpi_iallreduce(input: Tensor, op: Any = "sum", *, comm: Any = None) -> Pending:
    """Start `allreduce`, and return a handle: `wait()` returns the tensor.

    In a backward the gradient is sent where the forward waited, and waited for where the forward started. Until then `input` must not be
    changed.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> handle = mpi.iallreduce(cygrad.tensor([1., 2.]))
    >>> handle.wait()
    tensor([1., 2.])
    """
    comm, shape = checked_communicator(mpi_iallreduce, comm), input.shape
    message = Message("allreduce", comm, Side(shape), Side(shape), 0, reduction("mpi.iallreduce", op))
    check_derivative(message, input)
    return Pending(_started(input, Exchange(message)))


@operator(special=False)
def mpi_isend(input: Tensor, dest: int, *, tag: int = 0, comm: Any = None) -> Pending:
    """Start `send`, and return a handle, which is waited for before `input` is changed. Errors are `send`'s."""
    return _Sent(_started(input, Exchange(message_to(mpi_isend, input, dest, tag, comm))), input)


@operator(special=False)
def mpi_irecv(input: Tensor, source: int, *, tag: int = 0, comm: Any = None) -> Pending:
    """Start `recv`, and return a handle: `wait()` returns `input` with the numbers that have come. Errors are `recv`'s.

    Until then `input` must be neither read nor changed.
    """
    exchange = Exchange(message_from(mpi_irecv, input, source, tag, comm))
    nothing = input.new_empty((0,))
    if not is_taped(input) and can_receive(input) and not input.requires_grad:
        exchange.start(nothing, input)
        return Pending(exchange, input)
    return Pending(_started(nothing, exchange), input)
