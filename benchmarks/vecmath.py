"""Time per element of the vector mathematics: 1e6 elements, fresh result, one thread, no grad.

Arguments are uniform over the range in which the function is neither constant nor out of range. How exact the functions
are is the tests' business.
"""

from collections.abc import Iterator

import numpy as np

import cygrad
from benchmarks.timing import Row, compare, peers
from cygrad.bench.timing import Namespace

SIZE = 1_000_000
RANGES = {"tanh": (-5, 5), "exp": (-20, 20), "log": (1e-3, 1e3), "sin": (-20, 20), "erf": (-3, 3)}


def rows() -> Iterator[Row]:
    """Yield the rows of this benchmark."""
    libraries = {"cygrad": cygrad, **peers("torch")}
    for library in libraries.values():
        library.set_num_threads(1)
    random = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        for function, (low, high) in RANGES.items():
            x = random.uniform(low, high, SIZE).astype(dtype)
            names: dict[str, Namespace] = {
                name: {"f": getattr(library, function), "x": library.from_numpy(x)}
                for name, library in libraries.items()
            }
            work = f"{function}, {dtype.__name__}, per element of 1e6, 1 thread, median"
            yield from compare(work, "f(x)", names, {"torch": 0.5}, per=SIZE)
