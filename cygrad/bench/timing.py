"""The interleaved timer, and the noise of its measurements.

All candidates run in one process, in short rounds of shuffled order, with the garbage collector on. A ratio is the
median of the ratios of each round, because a clock that halves for some milliseconds then meets both sides alike. torch
against itself gave 1 within 0.5 % for small operators, 3 % for large ones, 6 % for means. The empty loop (some 5 ns a
turn) is part of every time. Not thread-safe.
"""
from __future__ import annotations

import gc
import os
import random
import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cygrad._kernels.system.machine import whole_number
from cygrad.bench.record import Spread

Namespace = dict[str, Any]

ROUND_SECONDS = 1e-3
LONG_ROUND_SECONDS = 20e-3  # as the first execution after a pause, or after another library has filled the caches, is slow
PAUSE_SECONDS = 5e-3  # OpenMP's threads spin for some milliseconds after a parallel region, in the way of the next one
MINIMUM_ROUNDS, MAXIMUM_ROUNDS = 7, 500
PROCESSORS = os.cpu_count() or 1

UNSTABLE, STRAY = 0.1, 0.5      # pyperf's limits for the deviation, and for the extremes, of the middle


@dataclass(frozen=True)
class Rounds:
    """The seconds of one execution of each candidate, round by round."""

    times: dict[str, list[float]]
    doubtful: bool

    def median(self, formula: Callable[..., float], *names: str) -> float:
        """Return the median over the rounds of a formula of the named candidates' times."""
        return statistics.median(map(formula, *(self.times[name] for name in names)))

    def ratios(self, ours: str, theirs: str) -> list[float]:
        """Return the ratio of two candidates' times in each round."""
        return [mine / other for mine, other in zip(self.times[ours], self.times[theirs], strict=True)]


def spread(values: Sequence[float]) -> Spread:
    """Return the median of values and their quartiles."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else list(values) * 3
    return {"median": middle, "low": low, "high": high}


def noise(rounds: Rounds) -> list[str]:
    """Return sentences on doubtful times of rounds, as pyperf judges; a deviation is the one of a normal distribution's quartiles.

    Rounds are short, so a few strays are no fault: the extremes are of nine rounds in ten.
    """
    said = ["other processes needed the processors meanwhile"] if rounds.doubtful else []
    for name, times in rounds.times.items():
        if len(times) < MINIMUM_ROUNDS:
            said.append(f"{name}: {len(times)} round{'s' * (len(times) > 1)}")
            continue
        result = spread(times)
        deviation = (result["high"] - result["low"]) / 1.349 / result["median"]
        low, *_, high = statistics.quantiles(times, n=20, method="inclusive")
        stray = max(high / result["median"] - 1, 1 - low / result["median"])
        if deviation > UNSTABLE:
            said.append(f"{name}: the deviation is {deviation:.0%} of the median")
        elif stray > STRAY:
            said.append(f"{name}: one round in ten is {stray:.0%} from the median")
    return said


def others_seconds() -> float:
    """Return the processor time that other processes have used since the start (0 where the system does not count it)."""
    statistics_file = Path("/proc/stat")
    if not statistics_file.exists():
        return 0.0
    user, nice, system, _, _, interrupts, soft_interrupts = statistics_file.read_text().split()[1:8]
    busy = sum(whole_number(text, 0, 1 << 60) or 0 for text in (user, nice, system, interrupts, soft_interrupts))
    return busy / os.sysconf("SC_CLK_TCK") - time.process_time()


def interleave(
    candidates: Mapping[str, tuple[str, Namespace]], seconds: float = 1.5, threads: int = 1, round_seconds: float | None = None,
    limit: float = float("inf"),
) -> Rounds:
    """Time candidates, each a statement and its names, in rounds until `seconds` are over and some are done, or `limit` is over.

    In a round each candidate is executed as often as fits `round_seconds`. With several threads each one first waits
    until the threads of the others have stopped spinning, and is executed once untimed.
    """
    timers = {name: timeit.Timer(text, "import gc; gc.enable()", globals=ns) for name, (text, ns) in candidates.items()}
    target = round_seconds or (ROUND_SECONDS if threads == 1 else LONG_ROUND_SECONDS)
    counts = {}
    for name, timer in timers.items():
        timer.timeit(1)         # loads the modules that load at first use
        count = 1
        while (elapsed := timer.timeit(count)) < target / 2:
            count *= 2
        counts[name] = max(1, round(count * target / elapsed))
    gc.collect()

    shuffle = random.Random(0).shuffle  # a fixed order could keep step with a periodic disturbance
    order = list(timers)
    times: dict[str, list[float]] = {name: [] for name in timers}
    start, others = time.perf_counter(), others_seconds()
    for round_number in range(MAXIMUM_ROUNDS):
        elapsed = time.perf_counter() - start
        if round_number and elapsed > (seconds if round_number >= MINIMUM_ROUNDS else limit):
            break
        shuffle(order)
        for name in order:
            if threads > 1:
                time.sleep(PAUSE_SECONDS)
                timers[name].timeit(1)
            times[name].append(timers[name].timeit(counts[name]) / counts[name])
    busy = (others_seconds() - others) / (time.perf_counter() - start)
    return Rounds(times, doubtful=threads + busy > PROCESSORS + 0.1)
