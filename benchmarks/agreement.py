"""A program that two libraries run by one source, and how long each takes: `measured` compares results before anything is timed.

A program is a function of the library and a size. It makes its data and returns the measured function: one without arguments,
which returns its value and gradients.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import cygrad
from benchmarks.timing import Row, compare, peers, selected
from cygrad.bench.agreement import agree
from cygrad.bench.libraries import Run
from cygrad.bench.workloads import Workload


class Program(NamedTuple):
    """The measurement of a row: the mean of its executions, the garbage collector on."""

    work: str
    make: Callable[[Any, int], Run]
    size: int
    limit: float        # of torch's time


def whole(workload: Workload, limit: float) -> Program:
    """Return one of the programs that `python -m cygrad bench` measures, of its full size, with its limit."""
    return Program(f"{workload.name}, {workload.shape(workload.size)}", workload.make, workload.size, limit)


def captured(program: Program) -> Program:
    """Return the measurement of a program that cygrad has captured before (`cygrad.compile`)."""
    def make(library: Any, size: int) -> Run:
        run = program.make(library, size)
        return cygrad.compile(run, fullgraph=True) if library is cygrad else run

    return program._replace(work=f"{program.work}, captured", make=make)


def measured(programs: Sequence[Program], threads: int = 1) -> Iterator[Row]:
    """Yield a row for each program."""
    libraries = {"cygrad": cygrad, **peers("torch")}
    for library in libraries.values():
        library.set_num_threads(threads)
    for program in programs:
        if selected(program.work):
            runs = {name: program.make(library, program.size) for name, library in libraries.items()}
            agree(program.work, {name: run() for name, run in runs.items()})
            names = {name: {"run": run} for name, run in runs.items()}
            yield from compare(f"{program.work}, mean", "run()", names, {"torch": program.limit}, mean=True)
