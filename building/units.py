"""The units of a build: sources that become objects side by side, and a line for each that is done."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from building.files import MadeFile


@dataclass(frozen=True)
class Unit:
    """What one source becomes: an object, by way of a translation to C if it is Cython."""

    source: Path
    compiled: MadeFile
    translated: MadeFile | None = None

    def is_current(self) -> bool:
        return (self.translated is None or self.translated.is_current()) and self.compiled.is_current()


def build_units(units: Sequence[Unit], workers: int, force: bool = False) -> None:
    """Build what is not current: translate in this thread, which Cython needs, while the compiler runs in others."""
    stale = [unit for unit in units if force or not unit.is_current()]
    if stale:
        print(f"{len(stale)} of {len(units)} files to build, {workers} at a time", flush=True)
    done = count(1)

    def compile_one(unit: Unit) -> None:
        unit.compiled.update(force)
        print(f"[{next(done)}/{len(stale)}] {unit.source}", flush=True)

    jobs: list[Future[None]] = []
    with ThreadPoolExecutor(workers) as pool:
        try:
            for unit in stale:
                for job in filter(Future.done, jobs):
                    job.result()        # the first that cannot be compiled ends the build
                if unit.translated:
                    unit.translated.update(force)
                jobs.append(pool.submit(compile_one, unit))
            for job in as_completed(jobs):
                job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
