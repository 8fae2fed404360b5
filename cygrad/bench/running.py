"""The plan of a run, the run, and its record.

A full run measures float32 and float64 at all sizes, other dtypes at two, further numbers of threads at large sizes. In a quick one the
first operator of each family stands for it, where it comes to other dtypes and further threads.
"""
from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, reduce
from typing import Any, NamedTuple

import cygrad
from cygrad._kernels.system.free_memory import granted_bytes
from cygrad.bench import ceilings, tasks, workloads
from cygrad.bench.agreement import Disagreement, agree
from cygrad.bench.libraries import LIKE_TORCH, ONE_THREAD, PEERS, blas_note, entered, numpy_dtype, set_threads, split, threads_kept
from cygrad.bench.operators import OPERATORS, Operator
from cygrad.bench.record import FORMAT, Ceiling, Record, Row
from cygrad.bench.schema import printable
from cygrad.bench.tables import elements
from cygrad.bench.timing import LONG_ROUND_SECONDS, ROUND_SECONDS, Rounds, interleave, noise, spread
from cygrad.bench.work import OF_BLAS, OPERATOR, OVERHEAD, Task, Work
from cygrad.config import describe
from cygrad.ops.dtypes import DTYPES, NUMBER

SECONDS = {True: 40.0, False: 1200.0}       # of a run, quick or not; a quick one ends there
ROW_SECONDS = (0.01, 1.0)                   # the least and the most that the rounds of a row get of them
PATIENCE = {True: 0.25, False: 2.0}         # seconds until the first rounds of a row must be done, or it has fewer
ATTEMPTS = 2                                # to bring a row above a ceiling below it
CENTRAL = ("float32", "float64")
SIZES = tuple(10**k for k in range(1, 8))
FEW = (1000, 1_000_000)                     # sizes of other dtypes
COPIES = 50                                 # of an operand, in all libraries together: work that memory has no room for is left out
LARGE = 100_000                             # elements from which on further numbers of threads are measured


class Stage(NamedTuple):
    """How far a run is: pieces of work done, the last one, its row, and the seconds that are left if known."""

    number: int
    total: int
    work: str
    row: Row | None
    seconds_left: float | None


@dataclass(frozen=True)
class Plan:
    """The works to measure; empty parts are chosen. A dtype that is named is measured at all sizes."""

    quick: bool = False
    only: str = ""
    threads: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    seconds: float = 0.0

    def __post_init__(self) -> None:
        known = [row.name for row in DTYPES]
        for dtype in self.dtypes:
            if dtype not in known:
                raise ValueError(f"unknown dtype {dtype!r}: choose from {', '.join(known)}")
        for count in self.threads:
            try:
                with threads_kept():
                    cygrad.set_num_threads(count)
            except RuntimeError as error:
                raise ValueError(f"{count} threads cannot be measured: {error}") from None
        split(self.libraries)
        if not self.works():
            raise ValueError(f"no work has {self.only!r} in its name and is computed in {', '.join(self.dtypes) or 'any dtype'}")

    def counts(self) -> tuple[int, ...]:
        """Return the numbers of threads, rising."""
        return tuple(sorted(set(self.threads))) or tuple(sorted({1, cygrad.get_num_threads()}))

    def works(self) -> list[tuple[Work, int]]:
        """Return the works to measure, and with how many threads: family by family. In a quick run, which may end before all is done, first
        come works that stand for the rest, last the dtypes that are not central.
        """
        results: list[tuple[int, Work, int]] = []
        for threads in self.counts():
            first = threads == self.counts()[0]
            for row in OPERATORS:
                if self.only in row.name or self.only in row.family:
                    for dtype in filter(self.includes, row.dtypes()):
                        rank = 2 if dtype not in self.central() else row is not leader(row.family)
                        results += [(rank, tasks.work(row, dtype, *place), threads) for place in self.grid(row, dtype, first)]
            if first or not self.quick:
                results += [(0, work, threads) for work in workloads.works(self.quick) if self.includes(work.dtype)
                          if self.only in work.name or self.only in work.family]
        families = list(dict.fromkeys(work.family for _, work, _ in results))
        ordered = sorted(results, key=lambda each: each[0] if self.quick else families.index(each[1].family))
        return [(work, threads) for _, work, threads in ordered]

    def central(self) -> tuple[str, ...]:
        """Return the dtypes that are measured at all sizes."""
        return self.dtypes or CENTRAL

    def includes(self, dtype: str) -> bool:
        """Return True if a dtype is measured: one that NumPy lacks has nothing to be compared with."""
        return (not self.dtypes or dtype in self.dtypes) and has_twin(dtype)

    def grid(self, row: Operator, dtype: str, first: bool) -> Iterator[tuple[int, str]]:
        """Yield the sizes and directions of a row, for the first number of threads or a further one."""
        directions, central = row.directions(dtype), dtype in self.central()
        main, leads = dtype in (self.dtypes or CENTRAL[-1:]), row is leader(row.family)
        if first and not row.note and (main if self.quick else central):
            yield from ((OVERHEAD, direction) for direction in directions)
        if self.quick:
            if row.largest > OVERHEAD and (main or leads if first else main and leads):
                yield row.largest // 100, directions[-1]
                if main:
                    yield row.largest // 10, directions[0]
            return
        for size in SIZES if central else FEW if first else ():
            if size <= row.largest and (first or size >= LARGE) and size * DTYPES[NUMBER[dtype]].itemsize * COPIES <= granted_bytes():
                yield from ((size, direction) for direction in directions)


@cache
def leader(family: str) -> Operator:
    """Return the row that stands for a family."""
    return next(row for row in OPERATORS if row.family == family)


@cache
def has_twin(dtype: str) -> bool:
    """Return True if NumPy has a dtype."""
    return numpy_dtype(dtype) is not None


@dataclass
class Benchmark:
    """A run: iterate over it, and ask for its record, whenever it ends."""

    plan: Plan
    timer: Callable[..., Rounds] = interleave
    measure_ceilings: Callable[..., Ceiling] = ceilings.measured
    rows: list[Row] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    complete: bool = False

    def __post_init__(self) -> None:
        self.info: Any = describe()     # before anything is allocated
        self.works = self.plan.works()
        self.installed, self.missing = split(self.plan.libraries or PEERS)
        self.installed |= split(["numpy"])[0]
        if not has_twin("bfloat16"):
            self.missing["ml_dtypes"] = "pip install ml_dtypes"
        self.ceilings: dict[int, Ceiling] = {}
        self.dtypes = list(dict.fromkeys(work.dtype for work, _ in self.works))
        self.seconds = self.plan.seconds or SECONDS[self.plan.quick]
        self.started, self.start = datetime.now(UTC), time.perf_counter()

    def __iter__(self) -> Iterator[Stage]:
        """Measure, and yield the progress: before the ceilings, then after each piece of work."""
        self.start, frozen = time.perf_counter(), gc.get_freeze_count()
        try:
            with threads_kept():
                yield from self.events()
        finally:
            self.judge()
            if not frozen:      # by other code, before
                gc.unfreeze()

    def events(self) -> Iterator[Stage]:
        """Measure ceilings and rows, in time."""
        total, current, end = len(self.works), 0, self.start + self.seconds
        self.enter()
        for threads in self.plan.counts():
            yield Stage(0, total, f"ceilings of {threads} thread{'s' * (threads > 1)}", None, None)
            self.measure(threads)
        begin = time.perf_counter()
        for number, (work, threads) in enumerate(self.works):
            if threads != current:
                set_threads(["cygrad", *self.installed], threads)
                current = threads
            now = time.perf_counter()
            if self.plan.quick and now > end and number:
                break
            row = self.row(work, threads, (end - now) / (total - number))
            self.rows.append(row)
            after = time.perf_counter()
            left = (after - begin) / (number + 1) * (total - number - 1)
            yield Stage(number + 1, total, work.title, row, min(left, max(end - after, 0.0)) if self.plan.quick else left)
        else:
            self.complete = True
        self.measure_again()

    def done_families(self) -> list[str]:
        """Return the families of which all rows are measured."""
        left = {work.family for work, _ in self.works[len(self.rows):]}
        return list(dict.fromkeys(row["family"] for row in self.rows if row["family"] not in left))

    def enter(self) -> None:
        """Import the libraries compared with, and no other; one whose import fails is not there."""
        used = {name for work, threads in self.works for name in self.present(work, threads)}
        self.installed = {name: version for name, version in self.installed.items() if name in used}
        for name in list(self.installed):
            try:
                entered(name)
            except Exception as error:      # any error of a broken installation
                del self.installed[name]
                self.missing[name] = f"its import fails, {type(error).__name__}: {error}"

    # ----- A row -----
    def present(self, work: Work, threads: int) -> list[str]:
        """Return the libraries that may take part."""
        operator_peers = ("numpy", "torch") if self.plan.quick and work.kind == OPERATOR else PEERS
        return ["cygrad", *(name for name in self.installed if name in operator_peers and (threads == 1 or name not in ONE_THREAD))]

    def row(self, work: Work, threads: int, seconds: float) -> Row:
        """Check work in all libraries, and time it; so many seconds are for both."""
        row: Row = {"work": work.name, "family": work.family, "kind": work.kind, "dtype": work.dtype, "size": work.size,
                    "shape": work.shape, "direction": work.direction, "threads": threads, "bytes": 0, "flops": 0,
                    "times": {}, "ratios": {}, "share": {}, "noise": [], "note": blas_note() if work.family in OF_BLAS else None,
                    "error": None}
        begin, modules = time.perf_counter(), len(sys.modules)
        try:
            prepared = work.prepare(self.present(work, threads))
            row["bytes"], row["flops"] = prepared.bytes, prepared.flops
            able = checked(work, prepared.tasks)
            if len(sys.modules) > modules:
                gc.collect()
                gc.freeze()     # objects that libraries made while they were imported are not walked in each row
            seconds = min(max(begin + seconds - time.perf_counter(), ROW_SECONDS[0]), ROW_SECONDS[1])
            candidates = {name: (prepared.tasks[name].statement, prepared.tasks[name].names) for name in able}
            rounds = self.timer(candidates, seconds=seconds, threads=threads, round_seconds=self.round_seconds(threads),
                                limit=PATIENCE[self.plan.quick])
        except Disagreement as error:
            return self.failed(row, str(error))
        except Exception as error:      # any error of a library: it ends a row, and not the run
            return self.failed(row, f"{title(row)}: {type(error).__name__}: {error}")
        if unfinished := [name for name in able if not rounds.times.get(name)]:
            return self.failed(row, f"{title(row)}: no round of {' and '.join(unfinished)} was finished")
        row["times"] = {name: {**spread(times), "rounds": len(times)} for name, times in rounds.times.items()}
        row["ratios"] = {name: spread(rounds.ratios("cygrad", name)) for name in able if name != "cygrad"}
        row["noise"] = noise(rounds)
        row["share"] = self.share(row)
        return row

    def failed(self, row: Row, error: str) -> Row:
        """Return a row that is an error of the benchmark."""
        row["error"] = error
        self.errors.append(error)
        return row

    def round_seconds(self, threads: int) -> float:
        """Return the length of a round."""
        return ROUND_SECONDS if threads == 1 else LONG_ROUND_SECONDS / (4 if self.plan.quick else 1)

    # ----- Ceilings -----
    def measure(self, threads: int) -> None:
        """Measure the ceilings of a number of threads, which are no lower than before, and than with fewer threads."""
        known = [result for count, result in self.ceilings.items() if count <= threads]
        new = self.measure_ceilings(threads, self.dtypes, [name for name in self.installed if name in LIKE_TORCH], self.plan.quick)
        self.ceilings[threads] = reduce(ceilings.higher, known, new)

    def share(self, row: Row) -> dict[str, float]:
        """Return the part of each ceiling that a row reaches."""
        return ceilings.shares(self.ceilings[row["threads"]], row["bytes"], row["flops"] if row["family"] in OF_BLAS else 0, row["dtype"],
                               row["times"]["cygrad"]["median"])

    def measure_again(self) -> None:
        """Measure the ceilings again that a row stands above, then the rows still above them: other processes may have come or gone."""
        for _ in range(ATTEMPTS):
            for threads in {row["threads"] for row in self.rows if above(row)}:
                self.measure(threads)
                for row in self.rows:
                    if row["threads"] == threads and row["times"]:
                        row["share"] = self.share(row)
            for k, (work, threads) in enumerate(self.works[:len(self.rows)]):
                if above(self.rows[k]):
                    set_threads(["cygrad", *self.installed], threads)
                    self.rows[k] = self.row(work, threads, ROW_SECONDS[1])

    def judge(self) -> None:
        """Say of rows above a ceiling that they are errors of the benchmark."""
        for row in filter(above, self.rows):
            ceiling, share = max(row["share"].items(), key=lambda item: item[1])
            self.failed(row, f"{title(row)}: {share:.0%} of the ceiling of {ceiling}: the bytes or operations are counted wrongly, "
                             "or the ceiling is measured wrongly" + ", if no other process disturbed it" * bool(row["noise"]))

    def record(self) -> Record:
        """Return the measurements so far."""
        return printable({
            "format": FORMAT, "version": cygrad.__version__, "started": self.started.isoformat(timespec="seconds"),
            "seconds": time.perf_counter() - self.start, "complete": self.complete, "info": self.info,
            "libraries": self.installed, "missing": self.missing,
            "settings": {"quick": self.plan.quick, "only": self.plan.only, "threads": list(self.plan.counts()),
                         "dtypes": self.dtypes, "libraries": list(self.installed), "seconds": self.seconds},
            "ceilings": {str(threads): ceiling for threads, ceiling in self.ceilings.items()}, "rows": self.rows, "errors": self.errors,
        })


def checked(work: Work, tasks_by_name: dict[str, Task]) -> list[str]:
    """Return the libraries that do the work and agree; a peer that has no such operator, or not in this dtype, is left out."""
    results, able = {}, []
    for name, task in tasks_by_name.items():
        try:
            results[name] = task.results()
        except (NotImplementedError, RuntimeError, TypeError, ValueError):
            if name in ("cygrad", "numpy"):
                raise
            continue
        able.append(name)
    agree(work.title, results, work.dtype)
    return able


def above(row: Row) -> bool:
    """Return True if a row stands above a ceiling by more than measuring errs."""
    return max(row["share"].values(), default=0.0) > 1 + ceilings.TOLERANCE


def title(row: Row) -> str:
    """Return the name of a row in sentences."""
    return f"{row['work']}, {elements(row['size'])} {row['dtype']}, {row['direction']}, {row['threads']} thread{'s' * (row['threads'] > 1)}"
