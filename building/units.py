"""The units of a build: sources that become objects side by side, and a line for each that is done."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Event

from building.files import MadeFile

FIRST = ": about two minutes on two cores"      # of a build of all files


@dataclass(frozen=True)
class Unit:
    """The target of one source: an object, by way of a translation to C if it is Cython."""

    source: Path
    compiled: MadeFile
    translated: MadeFile | None = None

    def is_current(self) -> bool:
        return (self.translated is None or self.translated.is_current()) and self.compiled.is_current()


def build_units(units: Sequence[Unit], workers: int, force: bool = False) -> None:
    """Build the outdated units: translate in this thread, which Cython needs, while the compiler runs in others."""
    stale = [unit for unit in units if force or not unit.is_current()]
    if stale:
        print(f"{len(stale)} of {len(units)} files to build, {workers} at a time{FIRST * (len(stale) == len(units))}", flush=True)
    finished, ended = count(1), Event()

    def compile_one(unit: Unit) -> None:
        if ended.is_set():
            return
        try:
            unit.compiled.update(force)
        except BaseException:
            ended.set()     # the first that cannot be compiled ends the build
            raise
        print(f"[{next(finished)}/{len(stale)}] {unit.source}", flush=True)

    jobs: list[Future[None]] = []
    with ThreadPoolExecutor(workers) as pool:
        try:
            for unit in stale:
                if unit.translated and not ended.is_set():
                    unit.translated.update(force)
                jobs.append(pool.submit(compile_one, unit))
            for job in jobs:
                job.result()
        finally:
            ended.set()
