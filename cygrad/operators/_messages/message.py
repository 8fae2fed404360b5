"""A message as data: its operation, both of its sides, and its transpose.

Differentiated is the sum, over all ranks, of the tensors that each rank calls backward on. A message is linear, so its gradient is the
transposed message: the other operation of its pair, with the sides exchanged. As it is a message again, so are all further derivatives.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from cygrad._core.graph.noted_calls import declare_plain
from cygrad.operators._messages.library import Reduction

# Each operation and its transpose, in both directions.
PAIRS = (
    ("allreduce", "allreduce"),
    ("total", "replicate"),             # the sum of all ranks on each, of which the ranks have one copy together
    ("row_total", "rows"),              # the same of the rows of all ranks, with bits that do not depend on where the rows are
    ("reduce", "bcast"),
    ("gather", "scatter"),
    ("gatherv", "scatterv"),
    ("allgather", "reduce_scatter"),
    ("allgatherv", "reduce_scatterv"),
    ("alltoall", "alltoall"),
    ("alltoallv", "alltoallv"),
    ("sendrecv", "sendrecv"),
    ("send", "recv"),
    ("halo_exchange", "halo_add"),
)
TRANSPOSES = {operation: transpose for pair in PAIRS for operation, transpose in (pair, pair[::-1])}
ADDING = {"allreduce", "total", "row_total", "reduce", "reduce_scatter", "reduce_scatterv", "halo_add"}    # these compute with numbers
WITHOUT_MESSAGE = {"replicate", "rows"}         # these copy on each rank


class Side(NamedTuple):
    """One side of a message, on one rank: the shape of its tensor; counts of rows by rank, or the one other rank and the tag."""

    shape: tuple[int, ...]
    counts: tuple[int, ...] | None = None
    peer: int = -1
    tag: int = 0

    def of_examples(self, size: int) -> Side:
        return self._replace(shape=(*self.shape, size))


class Message(NamedTuple):
    """One operation of a communicator, as one rank takes part in it."""

    operation: str
    comm: Any
    sends: Side
    receives: Side
    root: int = 0
    reduction: Reduction | None = None              # of the operations that add; None: a sum
    widths: tuple[int, ...] = ()                    # of halos, by dim

    @property
    def is_linear(self) -> bool:
        return self.reduction is None or self.reduction.name == "sum"

    def transposed(self) -> Message:
        """Return the message of the gradient."""
        if not self.is_linear:
            raise no_derivative(self)
        return self._replace(operation=TRANSPOSES[self.operation], sends=self.receives, receives=self.sends)

    def of_examples(self, size: int) -> Message:
        """Return the message for many examples, which lie along a further dim at the end."""
        return self._replace(sends=self.sends.of_examples(size), receives=self.receives.of_examples(size))

    def agreed(self) -> str:
        """Return a text in which all ranks of a collective operation agree."""
        shape = self.receives.shape if self.operation in ("bcast", "scatter") else self.sends.shape
        counts = ""
        if self.operation.endswith("v"):
            shape = shape[1:]
            counts = f" in rows {list(self.sends.counts or self.receives.counts or ())}" if self.operation != "alltoallv" else " in rows"
        elif self.operation in ("row_total", "halo_exchange", "halo_add"):
            shape = shape[1:]
        words = f" ({self.reduction.name})" if self.reduction is not None else ""
        root = f" at root {self.root}" if self.operation in ("reduce", "bcast", "gather", "scatter", "gatherv", "scatterv") else ""
        return f"{self.operation}{words}{root} of {list(shape)}{counts}"

    @property
    def row(self) -> int:
        """The number of elements in a row, along dim 0, of the operations that have counts."""
        return prod(self.sends.shape[1:])


declare_plain(Message)


def no_derivative(message: Message) -> Exception:
    """Return the exception for a gradient or a tangent of a reduction that has none."""
    assert message.reduction is not None
    return NotImplementedError(f"mpi.{message.operation}(op={message.reduction.name!r}) has no derivative: only sums have one. Give it "
                               "x.detach()")
