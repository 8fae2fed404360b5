"""Where two threads begin to pay: for each kind of loop, against one thread, interleaved.

The crossing is the size from which on two threads are quicker. The grain size, below which a region has one thread, must lie above
it: a start costs more where cores are shared. Far above it two threads must take at most 1 / 1.6 of the time of one.

Times are processor times of the thread that calls, the quickest of many. It computes its part, and sleeps until the others are
done: so each kind of loop is measured in a process of its own, in which OpenMP's threads wait asleep. Work of other processes
is left out but for the memory they use.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import cygrad
from benchmarks.scaling import numbers
from benchmarks.timing import Row, selected
from cygrad._testing import grains

SIZES = tuple(2**k for k in range(11, 21))
ROUNDS, EXECUTIONS = 12, 3
GAIN = 1.6


class Loop(NamedTuple):
    """A kind of loop, and its cost class: `make(n)` returns a function that computes n elements."""

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
    Loop("rows of 4 times a column", 1, lambda n: into(cygrad.mul, numbers(n // 4, 4), numbers(n // 4, 1))),
    Loop("exp of rows of 4 of 8", 1, lambda n: into(cygrad.exp, numbers(n // 4, 8)[:, :4])),
    Loop("copy of every second", 1, lambda n: partial(numbers(n).copy_, numbers(2 * n)[::2])),
    Loop("copy of a transposed", 1, lambda n: partial(numbers(n // 64, 64).copy_, numbers(64, n // 64).t())),
    Loop("copy into float32", 0, lambda n: partial(numbers(n).float().copy_, numbers(n))),
    Loop("sum", 0, lambda n: numbers(n).sum),
    Loop("sum of rows of 128", 0, lambda n: partial(numbers(n // 128, 128).sum, 1)),
    Loop("sum of rows of 4", 1, lambda n: partial(numbers(n // 4, 4).sum, 1)),
    Loop("sum of 128 columns", 0, lambda n: partial(numbers(n // 128, 128).sum, 0)),
    Loop("sum of a middle dim", 1, lambda n: partial(numbers(n // 128, 32, 4).sum, 1)),
    Loop("amax of rows of 128", 0, lambda n: partial(numbers(n // 128, 128).amax, 1)),
    Loop("softmax of rows of 128", 1, lambda n: partial(numbers(n // 128, 128).softmax, 1)),
    Loop("argmax of rows of 128", 1, lambda n: partial(numbers(n // 128, 128).argmax, 1)),
    Loop("cumsum of rows of 128", 1, lambda n: partial(numbers(n // 128, 128).cumsum, 1)),
)


def quickest(run: Callable[[], Any]) -> tuple[float, float]:
    """Return the least time of an execution with one thread and with two, in turns."""
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for threads in (1, 2):
            cygrad.set_num_threads(threads)
            run()
            for _ in range(EXECUTIONS):
                before = time.thread_time()
                run()
                best[threads - 1] = min(best[threads - 1], time.thread_time() - before)
    return best[0], best[1]


def measured(work: str) -> list[tuple[float, float]]:
    """Return the times of a kind of loop, size by size."""
    command = [sys.executable, "-m", "benchmarks.threads", work]
    lines = subprocess.check_output(command, env=os.environ | {"OMP_WAIT_POLICY": "passive"}, text=True).splitlines()
    return [(float(one), float(two)) for one, two in map(str.split, lines)]


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
        if selected(loop.work):
            times = measured(loop.work)
            size = crossing(SIZES, [one for one, _ in times], [two for _, two in times])
            with grains(1) as grain:
                yield Row(f"{loop.work}: elements from which two threads pay", size, grain.before[loop.cost], unit="")
            one, two = times[-1]
            yield Row(f"{loop.work}: {SIZES[-1]:,} elements, 2 threads", two, 1 / GAIN, "1 thread", one, two / one)


def main(work: str) -> None:
    """Print the times of a kind of loop with one thread and with two, a line for each size."""
    (loop,) = (loop for loop in LOOPS if loop.work == work)
    with grains(1):
        for size in SIZES:
            print(*quickest(loop.make(size)))


if __name__ == "__main__":
    main(sys.argv[1])
