"""The cost of the profiler: an event of an operator, of a node and of a named range, and a range without a profile.

Events are counted in runs of 1000 operators on 4 doubles; the time of the same run without a profile is taken off. Reading the
records afterwards is not part of it. The check of operators for a profile is part of every figure of `overhead`.
"""

from collections.abc import Iterator
from typing import Any

import cygrad
from benchmarks.timing import Row
from cygrad.autograd.profiler import profile, record_function
from cygrad.bench.timing import Namespace, interleave

RUN = 1000
LIMIT = 1e-6


def operators(x: Any) -> None:
    """Call an operator again and again."""
    for _ in range(RUN):
        x * 2.0


def nodes(x: Any) -> None:
    """Differentiate a chain of operators."""
    y = x
    for _ in range(RUN):
        y = y * 2.0
    cygrad.autograd.grad(y, x, cygrad.ones_like(y))


def ranges() -> None:
    """Enter a named range again and again."""
    for _ in range(RUN):
        with record_function("range"):
            pass


def loop() -> None:
    """Do nothing again and again."""
    for _ in range(RUN):
        pass


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    cygrad.set_num_threads(1)
    x = cygrad.ones(4, dtype=cygrad.float64)
    names: Namespace = {"x": x, "leaf": x.clone().requires_grad_(), "profile": profile, "operators": operators, "nodes": nodes,
                        "ranges": ranges, "loop": loop}
    statements = {"operators": "operators(x)", "nodes": "nodes(leaf)", "ranges": "ranges()", "loop": "loop()"}
    statements |= {f"{name}, profiled": f"with profile(): {call}" for name, call in statements.items()}
    statements["shapes"] = "with profile(record_shapes=True): operators(x)"
    statements["stacks"] = "with profile(with_stack=True): operators(x)"
    rounds = interleave({name: (statement, names) for name, statement in statements.items()}, seconds=5)

    def row(work: str, on: str, off: str, events: int) -> Row:
        return Row(work, rounds.median(lambda with_it, without: (with_it - without) / events, on, off), LIMIT, doubtful=rounds.doubtful)

    yield row("event of an operator, median", "operators, profiled", "operators", RUN)
    yield row("event of an operator with shapes, median", "shapes", "operators", RUN)
    yield row("event of an operator with its stack, median", "stacks", "operators", RUN)
    yield row("events of a chain, forward and backward, each, median", "nodes, profiled", "nodes", 3 * RUN)     # a node has two
    yield row("record_function in a profile, median", "ranges, profiled", "loop", RUN)
    yield row("record_function without a profile, median", "ranges", "loop", RUN)
