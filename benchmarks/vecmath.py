"""Time per element of the vector mathematics: 1e6 elements, fresh result, one thread, no grad.

Arguments are uniform over the range in which the function is neither constant nor out of range. How exact the functions
are is the tests' business. erf of doubles, which begins from a table, is compared with exp where both are in the cache as well.
"""

from collections.abc import Iterator

import numpy as np

import cygrad
from benchmarks.timing import Row, compare, peers, selected
from cygrad.bench.timing import Namespace, interleave

SIZE = 1_000_000
NEAR = 2_000            # doubles that the first-level cache holds beside a result
ERF_LIMIT = 1.3         # of the time of exp there; by a polynomial alone erf took twice as long
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
    yield from erf_beside_exp()


def erf_beside_exp() -> Iterator[Row]:
    """Yield the time of erf of doubles in the first-level cache, against exp's."""
    work = f"erf, float64, per element of {NEAR:,}, in the cache, median"
    if not selected(work):
        return
    x = cygrad.from_numpy(np.random.default_rng(0).uniform(-3, 3, NEAR)).clone()
    names: Namespace = {"erf": cygrad.erf, "exp": cygrad.exp, "x": x, "o": x.clone()}
    rounds = interleave({name: (f"{name}(x, out=o)", names) for name in ("erf", "exp")})
    erf, exp = (rounds.median(float, name) / NEAR for name in ("erf", "exp"))
    yield Row(work, erf, ERF_LIMIT, "exp", exp, rounds.median(lambda a, b: a / b, "erf", "exp"), doubtful=rounds.doubtful)
