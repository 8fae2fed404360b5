"""A program that two libraries run by one source: what it is, that both give the same, and how long each takes.

A program is a function of the library and a size. It makes its data and returns what is measured: a function without arguments,
which returns its value and gradients. They are compared before anything is timed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import cygrad
from benchmarks.timing import Row, compare, peers, selected

Run = Callable[[], Sequence[Any]]

TOLERANCES = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}   # sums of float32 differ by their order


class Program(NamedTuple):
    """What a row measures: the mean of its executions, the garbage collector on."""

    work: str
    make: Callable[[Any, int], Run]
    size: int
    limit: float        # of torch's time


def differentiated(library: Any, function: Callable[..., Any], *arrays: np.ndarray, seed: np.ndarray | None = None) -> Run:
    """Return what computes a function of leaves, and the gradient of each; a function that is no scalar gets `seed`."""
    leaves = [library.tensor(array, requires_grad=True) for array in arrays]
    weight = None if seed is None else library.tensor(seed)

    def run() -> Sequence[Any]:
        value = function(*leaves)
        value.backward(weight)
        results = [value.detach(), *(leaf.grad for leaf in leaves)]
        for leaf in leaves:
            leaf.grad = None
        return results

    return run


def agree(work: str, results: Mapping[str, Sequence[Any]]) -> None:
    """Raise RuntimeError unless all libraries have the same results, but for rounding."""
    names = list(results)
    for name in names[1:]:
        for ours, theirs in zip(results[names[0]], results[name], strict=True):
            expected, actual = np.asarray(theirs), np.asarray(ours)
            scale = np.abs(expected).max(initial=1e-300)
            if expected.shape != actual.shape or not np.abs(actual - expected).max(initial=0) <= TOLERANCES[expected.dtype] * scale:
                raise RuntimeError(f"{work}: {names[0]} and {name} differ")


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
