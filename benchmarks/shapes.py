"""Operators of shapes that drivers are tested by: short rows, small reductions, long rows of floats, results of large operators.

Forward alone where nothing else is said. `out=` and in-place changes are also compared with a fresh result.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cygrad
from benchmarks.agreement import Program, measured
from benchmarks.timing import Row, compare, peers, selected
from cygrad.bench.libraries import Run, differentiated
from cygrad.bench.timing import Namespace, interleave

LARGE = 4_000_000


def forward(function: Callable[..., Any], *shape_of: Callable[[int], tuple[int, ...]]) -> Callable[[Any, int], Run]:
    """Return a program that computes a function of doubles without gradients."""
    def make(library: Any, size: int) -> Run:
        random = np.random.default_rng(0)
        tensors = [library.tensor(random.standard_normal(shape(size))) for shape in shape_of]
        return lambda: [function(*tensors)]

    return make


def rows_of_floats(function: Callable[[Any], Any], reduces: bool = True) -> Callable[[Any, int], Run]:
    """Return a program that computes a function of rows of 1024 floats, and its gradient."""
    def make(library: Any, size: int) -> Run:
        random = np.random.default_rng(0)
        x = random.standard_normal((size, 1024), dtype=np.float32)
        seed = random.standard_normal((size,) if reduces else x.shape, dtype=np.float32)
        return differentiated(library, function, x, seed=seed)

    return make


PROGRAMS = (
    Program("(360000, 3) * (360000, 1), doubles", forward(lambda a, b: a * b, lambda n: (n, 3), lambda n: (n, 1)), 360_000, 1.0),
    Program("sum(-1) of (360000, 3), doubles", forward(lambda a: a.sum(-1), lambda n: (n, 3)), 360_000, 0.3),
    Program("sum(1) of (600, 600, 3), doubles", forward(lambda a: a.sum(1), lambda n: (n, n, 3)), 600, 1.0),
    Program("sum(-1) of (2048, 1024) floats and backward", rows_of_floats(lambda x: x.sum(-1)), 2048, 0.9),
    Program("amax(-1) of (2048, 1024) floats and backward", rows_of_floats(lambda x: x.amax(-1)), 2048, 0.9),
    Program("softmax(-1) of (2048, 1024) floats and backward", rows_of_floats(lambda x: x.softmax(-1), reduces=False), 2048, 0.6),
)


def over_older() -> Iterator[Row]:
    """Yield the time of a result written over older ones, against the time of a fresh one, and against torch's."""
    libraries = {"cygrad": cygrad, **peers("torch")}
    for library in libraries.values():
        library.set_num_threads(1)
    arrays = np.random.default_rng(0).standard_normal((3, LARGE))
    names: dict[str, Namespace] = {
        name: {"add": library.add, **dict(zip("abo", map(library.tensor, arrays), strict=True))} for name, library in libraries.items()
    }
    for statement in ("add(a, b, out=o)", "o.add_(b)"):
        work = f"{statement}, 4e6 doubles, 1 thread, median"
        yield from compare(work, statement, names, {"torch": 1.0})
        if selected(work):
            rounds = interleave({"ours": (statement, names["cygrad"]), "fresh": ("add(a, b)", names["cygrad"])})
            ours, fresh = (rounds.median(float, name) for name in ("ours", "fresh"))
            ratio = rounds.median(lambda x, y: x / y, "ours", "fresh")
            yield Row(work, ours, 1.05, "fresh", fresh, ratio, doubtful=rounds.doubtful)


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    yield from measured(PROGRAMS)
    yield from over_older()
