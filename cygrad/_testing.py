"""Switches and counters for tests: failing allocations, live memory, threads, pending results; programs by hand. Not public.

They act on the whole process and are not meant for several threads at once.
"""
from __future__ import annotations

from typing import Self

from cygrad._core.capture.captured import exchange_arenas
from cygrad._core.graph.notes import Notes
from cygrad._core.programs.pending import defer_from, pending_results
from cygrad._kernels.programs.by_hand import run_steps
from cygrad._kernels.programs.checking import program_checks
from cygrad._kernels.programs.settings import group_from, set_programs
from cygrad._kernels.system.allocator import fail_after, live_bytes
from cygrad._kernels.system.threads import exchange_grains, region_threads, reset_region_threads

__all__ = ["Notes", "arenas", "defer_from", "fail_alloc", "grains", "group_from", "live_bytes", "pending_results", "program_checks",
           "run_steps", "set_programs", "threads_used"]


class fail_alloc:
    """Make the n-th storage allocation from now on fail, once; n = 0 takes that back.

    Called alone it stays armed; in a `with` statement until its end, after which `fired` is True if it happened:

        for n in itertools.count(1):
            with fail_alloc(n) as failure:
                ...
            if not failure.fired:
                break
    """

    def __init__(self, n: int) -> None:
        self.fired = False
        fail_after(n)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.fired = fail_after(0) == 0


class arenas:
    """Fill the memory of replays with NaN before each, in a `with` statement.

    reuses: whether a value may have the memory of one that no later step of its program reads, as usual.
    """

    def __init__(self, reuses: bool = True) -> None:
        self.reuses = reuses

    def __enter__(self) -> Self:
        self.before = exchange_arenas(0xff, self.reuses)
        return self

    def __exit__(self, *_: object) -> None:
        exchange_arenas(*self.before)


class grains:
    """Let regions have threads from so many elements on, at any cost of an element, in a `with` statement.

    `before` has the sizes by cost class that hold without it.
    """

    def __init__(self, elements: int) -> None:
        self.elements = elements

    def __enter__(self) -> Self:
        self.before = exchange_grains((self.elements,) * 3)
        return self

    def __exit__(self, *_: object) -> None:
        exchange_grains(self.before)


class threads_used:
    """Count threads in a `with` statement: `count` is then the most a parallel region had, 0 if none ran."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        reset_region_threads()
        return self

    def __exit__(self, *_: object) -> None:
        self.count = region_threads()
