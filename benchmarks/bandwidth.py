"""Large arrays, where memory sets the pace: `a + b` and `sum` of 1e7 floats.

The result of `a + b` is thrown away at once, so each execution takes and frees a fresh one. Sums are also checked for
the conditions of speed: the same bits for every number of threads, and an error as small as pairwise summation's.
"""

from collections.abc import Iterator

import numpy as np

import cygrad
from benchmarks.timing import Row, compare, peers
from cygrad.bench.timing import Namespace

SIZE = 10_000_000


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    libraries = {"cygrad": cygrad, **peers("torch")}
    random = np.random.default_rng(0)
    a, b = (random.random(SIZE, dtype=np.float32) for _ in range(2))
    names: dict[str, Namespace] = {"numpy": {"a": a, "b": b}}
    names |= {name: {"a": library.from_numpy(a), "b": library.from_numpy(b)} for name, library in libraries.items()}

    for library in libraries.values():
        library.set_num_threads(1)
    yield from compare(
        "a + b, 1e7 floats, fresh result, 1 thread, median", "a + b", names, {"torch": 0.25, "numpy": 0.9}
    )

    for threads in (1, 2):
        for library in libraries.values():
            library.set_num_threads(threads)
        work = f"sum of 1e7 floats, {threads} thread{'s' * (threads > 1)}, median"
        yield from compare(work, "a.sum()", names, {"torch": 1.1}, threads=threads)

    sums = []
    for threads in (1, 2, 3, 7):
        cygrad.set_num_threads(threads)
        sums.append(cygrad.from_numpy(a).sum().item())
    yield Row("different sums of 1e7 floats with 1, 2, 3, 7 threads", len(set(sums)), 1, unit="")
    exact = a.sum(dtype=np.float64)
    yield Row("relative error of that sum", max(abs(total - exact) / exact for total in sums), 1e-6, unit="")
