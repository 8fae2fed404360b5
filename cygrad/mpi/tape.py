"""A tape of messages, for graphs that differ by rank."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from cygrad import autograd
from cygrad._core.capture.compiled_node import suspend_replays
from cygrad._core.graph.tensor import TensorImpl
from cygrad.operators._messages.tokens import thread
from cygrad.operators.transfers import new_token


class Tape:
    """Reaches every message of a block in a backward, in reverse order, also on ranks whose loss does not depend on it.

    Without it, a backward sends the gradients of those messages only that lead to its loss, and hangs where another rank expects one.
    Each message of the block takes a token, a tensor without elements, and returns the next one; the last is a further root of the
    backward. All ranks call `backward` or `grad` of their tape. Messages whose dtype has no gradients are left out. `send`, `recv`, `isend`
    and `irecv` have gradients inside of a tape only.

    >>> import cygrad
    >>> from cygrad import mpi
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with mpi.Tape() as tape:
    ...     loss = mpi.reduce(x * x, root=0).sum()
    >>> tape.backward(loss)                 # on ranks without a loss: tape.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        self._start: Any = None
        self._end: Any = None
        self._outer: Any = None

    def __enter__(self) -> Tape:
        if self._start is not None:
            raise RuntimeError("mpi.Tape: a tape is entered once")
        self._outer, self._start = thread.token, new_token().requires_grad_()
        thread.token = self._start
        suspend_replays(1)      # a program has no nodes for its messages
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end, thread.token = thread.token, self._outer
        suspend_replays(-1)

    def backward(self, tensors: Any = (), gradients: Any = None, *, retain_graph: bool | None = None, create_graph: bool = False) -> None:
        """Accumulate gradients into leaves, as `cygrad.autograd.backward` of the tensors does, through all messages of the tape."""
        roots, weights = self._roots(tensors, gradients)
        with _Further(self, create_graph):
            autograd.backward(roots, weights, retain_graph=retain_graph, create_graph=create_graph)

    def grad(self, outputs: Any, inputs: Any, grad_outputs: Any = None, *, retain_graph: bool | None = None,
             create_graph: bool = False) -> tuple[Any, ...]:
        """Return gradients, as `cygrad.autograd.grad` does with `allow_unused`, through all messages of the tape.

        With `create_graph` the messages of the gradients are added to the tape, for its next `backward` or `grad`.
        """
        roots, weights = self._roots(outputs, grad_outputs)
        inputs = (inputs,) if isinstance(inputs, TensorImpl) else tuple(inputs)
        with _Further(self, create_graph):
            results = autograd.grad(roots, (*inputs, self._start), weights, retain_graph=retain_graph, create_graph=create_graph,
                                    allow_unused=True)
        return results[:-1]

    def _roots(self, tensors: Any, gradients: Any) -> tuple[list[Any], list[Any]]:
        if self._end is None:
            raise RuntimeError("mpi.Tape: backward and grad are called after the block of the tape")
        roots: Sequence[Any] = (tensors,) if isinstance(tensors, TensorImpl) else tensors
        weights = (gradients,) if gradients is None or isinstance(gradients, TensorImpl) else gradients
        weights = [None] * len(roots) if gradients is None else [*weights]
        if not self._end.requires_grad or self._end is self._start:
            return [*roots], weights
        return [*roots, self._end], [*weights, new_token()]


class _Further:
    """A block in which messages are added to the end of a tape, where a graph is made."""

    def __init__(self, tape: Tape, is_recorded: bool) -> None:
        self._tape, self._is_recorded, self._outer = tape, is_recorded, thread.token

    def __enter__(self) -> None:
        thread.token = self._tape._end if self._is_recorded else None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._is_recorded:
            self._tape._end = thread.token
        thread.token = self._outer
