"""Where two threads begin to pay: by cost class and kind of loop, against one thread, interleaved.

The crossing is the size from which on two threads are quicker. The grain size, below which a region has one thread, must lie above
it: a start costs more where cores are shared. Far above it two threads must take at most 1 / 1.6 of the time of one.
Times are those of a clock on the wall, the quickest of many: what others do on the processors meanwhile is left out.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import cygrad
from benchmarks.scaling import numbers
from benchmarks.timing import PAUSE_SECONDS, Row, others_seconds, selected
from cygrad._testing import grains

SIZES = tuple(2**k for k in range(11, 21))
LARGE = 2**20
SECONDS = 0.3
GAIN = 1.6


class Loop(NamedTuple):
    """A kind of loop: `make(n)` returns what computes n elements."""

    work: str
    cost: int
    make: Callable[[int], Callable[[], Any]]


def into(function: Callable[..., Any], *operands: Any) -> Callable[[], Any]:
    """Return a call that writes into a result that lies in the caches."""
    return partial(function, *operands, out=function(*operands))


LOOPS = (
    Loop("a + b", 0, lambda n: into(cygrad.add, numbers(n), numbers(n))),
    Loop("exp", 1, lambda n: into(cygrad.exp, numbers(n))),
    Loop("pow", 2, lambda n: into(cygrad.pow, numbers(n), numbers(n))),
    Loop("rows of 128 plus one row", 0, lambda n: into(cygrad.add, numbers(n // 128, 128), numbers(128))),
    Loop("rows of 128 times a column", 0, lambda n: into(cygrad.mul, numbers(n // 128, 128), numbers(n // 128, 1))),
    Loop("rows of 4 times a column", 0, lambda n: into(cygrad.mul, numbers(n // 4, 4), numbers(n // 4, 1))),
    Loop("exp of rows of 4 of 8", 1, lambda n: into(cygrad.exp, numbers(n // 4, 8)[:, :4])),
    Loop("copy of every second", 0, lambda n: partial(numbers(n).copy_, numbers(2 * n)[::2])),
    Loop("copy of a transposed", 0, lambda n: partial(numbers(n // 64, 64).copy_, numbers(64, n // 64).t())),
    Loop("copy into float32", 0, lambda n: partial(numbers(n).float().copy_, numbers(n))),
    Loop("sum", 0, lambda n: numbers(n).sum),
    Loop("sum of rows of 128", 0, lambda n: partial(numbers(n // 128, 128).sum, 1)),
    Loop("sum of rows of 4", 0, lambda n: partial(numbers(n // 4, 4).sum, 1)),
    Loop("sum of 128 columns", 0, lambda n: partial(numbers(n // 128, 128).sum, 0)),
    Loop("sum of a middle dim", 0, lambda n: partial(numbers(n // 128, 32, 4).sum, 1)),
    Loop("amax of rows of 128", 0, lambda n: partial(numbers(n // 128, 128).amax, 1)),
    Loop("argmax of rows of 128", 1, lambda n: partial(numbers(n // 128, 128).argmax, 1)),
    Loop("cumsum of rows of 128", 1, lambda n: partial(numbers(n // 128, 128).cumsum, 1)),
)


def quickest(run: Callable[[], Any], seconds: float = SECONDS) -> tuple[float, float]:
    """Return the least time of an execution with one thread and with two, in turns."""
    best = [float("inf"), float("inf")]
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for threads in (1, 2):
            cygrad.set_num_threads(threads)
            time.sleep(PAUSE_SECONDS)       # who has slept is woken before those who compute all the time
            run()
            for _ in range(3):
                before = time.perf_counter()
                run()
                best[threads - 1] = min(best[threads - 1], time.perf_counter() - before)
    return best[0], best[1]


def crossing(sizes: Sequence[int], ones: Sequence[float], twos: Sequence[float]) -> float:
    """Return the size from which on two threads are quicker, between the sizes measured, by the ratios of their times."""
    ratios = [two / one for one, two in zip(ones, twos, strict=True)]
    for k in range(len(sizes) - 1, -1, -1):
        if ratios[k] >= 1:
            if k == len(sizes) - 1:
                return float("inf")
            return sizes[k] + (sizes[k + 1] - sizes[k]) * (ratios[k] - 1) / (ratios[k] - ratios[k + 1])
    return sizes[0]


def rows() -> Iterator[Row]:
    """Yield the crossing of each kind of loop, and the gain of two threads far above it."""
    for loop in LOOPS:
        if not selected(loop.work):
            continue
        start, others = time.perf_counter(), others_seconds()
        with grains(1) as grain:
            times = [quickest(loop.make(size)) for size in SIZES]
        size = crossing(SIZES, [one for one, _ in times], [two for _, two in times])
        one, two = times[SIZES.index(LARGE)]
        doubtful = (others_seconds() - others) / (time.perf_counter() - start) > 0.1
        yield Row(f"{loop.work}: elements from which two threads pay", size, grain.before[loop.cost], unit="", doubtful=doubtful)
        yield Row(f"{loop.work}: {LARGE:,} elements, 2 threads", two, 1 / GAIN, "1 thread", one, two / one, doubtful=doubtful)
