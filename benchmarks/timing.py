"""The interleaved timer, and the one row and printer that every benchmark uses.

All candidates run in one process, in short rounds of shuffled order, with the garbage collector on. A ratio is the
median of the ratios of each round, because a clock that halves for some milliseconds then meets both sides alike. torch
against itself gave 1 within 0.5 % for small operators, 3 % for large ones, 6 % for means. The empty loop (some 5 ns a
turn) is part of every time.
Nothing here is asserted: times belong in a table, not in a test. Not thread-safe.
"""

import gc
import importlib
import os
import random
import statistics
import time
import timeit
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Namespace = dict[str, Any]

ROUND_SECONDS = 1e-3
LONG_ROUND_SECONDS = 20e-3  # as the first execution after a pause, or after another library has filled the caches, is slow
PAUSE_SECONDS = 5e-3  # OpenMP's threads spin for some milliseconds after a parallel region, in the way of the next one
MINIMUM_ROUNDS, MAXIMUM_ROUNDS = 7, 500
PROCESSORS = os.cpu_count() or 1

_selected = ""


@dataclass(frozen=True)
class Row:
    """One line of the table: a ratio to a peer, or, without a ratio, a figure that is itself limited; a time may stand beside it."""

    work: str
    ours: float
    limit: float
    peer: str = ""
    theirs: float = 0.0
    ratio: float | None = None
    unit: str = "s"
    doubtful: bool = False

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the columns `COLUMNS`."""
        peer = f"{self.peer} {quantity(self.theirs, 's')}" if self.peer else ""
        if self.ratio is None:
            ratio, limit = "", quantity(self.limit, self.unit)
        else:
            ratio, limit = f"{self.ratio:.3f}", f"{self.limit:g} x"
        measure = self.ours if self.ratio is None else self.ratio
        ok = ("yes" if measure <= self.limit else "NO") + "?" * self.doubtful
        return self.work, quantity(self.ours, self.unit), peer, ratio, f"<= {limit}", ok


COLUMNS = ("work", "cygrad", "peer", "ratio", "must reach", "ok?")
WIDTHS = (66, 9, 14, 7, 11, 4)
DOUBT = "'?': other processes needed the processors meanwhile; run again on an idle machine."


@dataclass(frozen=True)
class Rounds:
    """The seconds of one execution of each candidate, round by round."""

    times: dict[str, list[float]]
    doubtful: bool

    def median(self, formula: Callable[..., float], *names: str) -> float:
        """Return the median over the rounds of a formula of the named candidates' times."""
        return statistics.median(map(formula, *(self.times[name] for name in names)))


def quantity(value: float, unit: str) -> str:
    """Return a value with three digits; seconds get a prefix."""
    if unit == "s":
        for factor, prefix in ((1e-9, "n"), (1e-6, "u"), (1e-3, "m")):
            if abs(value) < 999.5 * factor:
                return f"{value / factor:.3g} {prefix}s"
    return f"{value:.3g} {unit}".rstrip()


def print_cells(cells: Sequence[str]) -> None:
    """Print one line of the table on the terminal, at once."""
    print("  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip(), flush=True)


def markdown(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(row.cells() for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def select(part: str) -> None:
    """From now on only rows whose work contains this text are measured."""
    global _selected
    _selected = part


def selected(work: str) -> bool:
    """Say whether the row of that name is wanted."""
    return _selected in work


def peers(*names: str) -> dict[str, Any]:
    """Return the modules of that name which are installed, and print a line for each that is not."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name.partition(".")[0]:
                raise  # it is there, and broken
            print(f"{name} is not installed: the rows that compare with it are skipped")
    return found


def others_seconds() -> float:
    """Return the processor time that other processes have used since the start (0 where the system does not tell)."""
    statistics_file = Path("/proc/stat")
    if not statistics_file.exists():
        return 0.0
    user, nice, system, _, _, interrupts, soft_interrupts = statistics_file.read_text().split()[1:8]
    busy = sum(map(int, (user, nice, system, interrupts, soft_interrupts)))
    return busy / os.sysconf("SC_CLK_TCK") - time.process_time()


def interleave(
    candidates: Mapping[str, tuple[str, Namespace]], seconds: float = 1.5, threads: int = 1, round_seconds: float = ROUND_SECONDS
) -> Rounds:
    """Time candidates, each a statement and its names, in rounds until `seconds` are over.

    In a round each candidate is executed as often as fits `round_seconds`. With several threads each one first waits
    until the threads of the others have stopped spinning, and is executed once untimed.
    """
    timers = {name: timeit.Timer(text, "import gc; gc.enable()", globals=ns) for name, (text, ns) in candidates.items()}
    target = round_seconds if threads == 1 else LONG_ROUND_SECONDS
    counts = {}
    for name, timer in timers.items():
        timer.timeit(1)         # loads what loads at first use
        count = 1
        while (elapsed := timer.timeit(count)) < target / 2:
            count *= 2
        counts[name] = max(1, round(count * target / elapsed))
    gc.collect()

    shuffle = random.Random(0).shuffle  # a fixed order could keep step with a periodic disturbance
    order = list(timers)
    times: dict[str, list[float]] = {name: [] for name in timers}
    start, others = time.perf_counter(), others_seconds()
    for done in range(MAXIMUM_ROUNDS):
        if done >= MINIMUM_ROUNDS and time.perf_counter() - start > seconds:
            break
        shuffle(order)
        for name in order:
            if threads > 1:
                time.sleep(PAUSE_SECONDS)
                timers[name].timeit(1)
            times[name].append(timers[name].timeit(counts[name]) / counts[name])
    busy = (others_seconds() - others) / (time.perf_counter() - start)
    return Rounds(times, doubtful=threads + busy > PROCESSORS + 0.1)


def compare(
    work: str,
    statement: str,
    namespaces: Mapping[str, Namespace],
    limits: Mapping[str, float],
    per: int = 1,
    threads: int = 1,
    mean: bool = False,
) -> list[Row]:
    """Time one statement in the names of "cygrad" and of each peer; return a row for each peer with a limit.

    Times are divided by `per`, for figures per element or per operator. With `mean`, which a rare and long garbage
    collection does not escape, times are means, their ratio is the row's, and it is measured for longer, in longer rounds.
    """
    candidates = {name: (statement, ns) for name, ns in namespaces.items() if name == "cygrad" or name in limits}
    found = [peer for peer in candidates if peer != "cygrad"]
    if not found or not selected(work):
        return []
    rounds = interleave(candidates, 8.0, threads, LONG_ROUND_SECONDS) if mean else interleave(candidates, threads=threads)
    average = statistics.mean if mean else statistics.median
    time_of = {name: average(times) / per for name, times in rounds.times.items()}
    rows = []
    for peer in found:
        ratio = time_of["cygrad"] / time_of[peer] if mean else rounds.median(lambda ours, theirs: ours / theirs, "cygrad", peer)
        rows.append(Row(work, time_of["cygrad"], limits[peer], peer, time_of[peer], ratio, doubtful=rounds.doubtful))
    return rows
