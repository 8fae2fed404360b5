"""A piece of work: the function, its size and dtype, and how each library computes it.

Bytes are the ones that have to move: each operand and seed read once, each result and gradient written once. Operations are the ones of the
textbook. So both are lower bounds, and no time can stand above a ceiling of the machine.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cygrad.bench.record import BOTH as BOTH
from cygrad.bench.record import FORWARD as FORWARD
from cygrad.bench.record import OPERATOR as OPERATOR
from cygrad.bench.record import WORKLOAD as WORKLOAD
from cygrad.bench.tables import elements

OVERHEAD = 4    # elements of an operator whose kernel is next to nothing
OF_BLAS = ("matmul", "linalg")      # families that BLAS computes: a ceiling of operations is theirs, and its threads are its own


class Task(NamedTuple):
    """The work in one library: a statement that is timed, in these names, and a function that returns its results as arrays."""

    statement: str
    names: dict[str, Any]
    results: Callable[[], Sequence[Any]]


class Prepared(NamedTuple):
    """Work whose data is there: tasks by library, and their bytes and operations."""

    tasks: dict[str, Task]
    bytes: int
    flops: int


@dataclass(frozen=True)
class Work:
    """A row of the record before it is measured; `prepare` makes its data, and the tasks of the named libraries that have one."""

    name: str
    family: str
    kind: str
    dtype: str
    size: int
    shape: str
    direction: str
    prepare: Callable[[Sequence[str]], Prepared] = field(compare=False)

    @property
    def title(self) -> str:
        """Its name in sentences."""
        return f"{self.name}, {elements(self.size)} {self.dtype}, {self.direction}"
