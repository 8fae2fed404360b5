"""The ceilings of this machine, for each number of threads: bytes that come and go, and products of matrices.

Bytes are counted by the arrays, each read or written once. An ordinary store reads the line that it overwrites first (write-allocate),
which moves a byte more for each byte written; streaming stores do not. So the ceiling is the best of kernels of both kinds, and of
reading alone: no work whose bytes are counted alike stands above it. Caches that are shared by many processors may hold the arrays called
large elsewhere, so there is a ceiling for each of some working sets. Below the smallest of them a call takes as long as its bytes:
such work is judged by its time alone.
"""
from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import cygrad
from cygrad.bench.libraries import entered, set_threads
from cygrad.bench.record import Bandwidth, Ceiling, Level
from cygrad.ops.dtypes import DTYPES

MIB = 1 << 20
WORKING_SETS = (16 * MIB, 64 * MIB, 256 * MIB)
SIDES = (128, 256, 512, 1024)   # of the matrices that are multiplied
TOLERANCE = 0.05                # of a time, which a ceiling is measured with
SECONDS, EXECUTIONS = 0.2, 3    # of a kernel: as long, and as often at least
QUICK_SECONDS = 0.02
MULTIPLIED = frozenset(row.name for row in DTYPES if row.is_differentiable and not row.is_opaque)      # dtypes that BLAS has

NOTHING = "nothing is written"
AVOIDED = "avoided by streaming stores"
PAID = "each store reads its line first, which is not counted"
LEFT = "as the C library's memcpy decides"
STREAMED, FILLED = 2 * MIB, 8 * MIB     # of a thread's part of a result, or of a fill, from which on cygrad streams it


def quickest(run: Callable[[], Any], seconds: float) -> float:
    """Return the least time of executions in so many seconds, the first not counted: other programs can only slow it down."""
    run()
    times: list[float] = []
    start = before = time.perf_counter()
    while len(times) < EXECUTIONS or before - start < seconds:
        run()
        after = time.perf_counter()
        times.append(after - before)
        before = after
    return min(times)


def kernels(nbytes: int, threads: int) -> Iterable[tuple[str, str, int, Callable[[], Any]]]:
    """Yield kernels over a working set: the operation, the kind of its stores, the bytes of its arrays, the library."""
    n = nbytes // 8
    pool = ThreadPoolExecutor(threads)

    def shared(function: Callable[..., Any], *arrays: np.ndarray) -> Callable[[], Any]:
        """Let each thread execute NumPy's function on its part of the arrays."""
        if threads == 1:
            return lambda: function(*arrays)
        parts = [np.array_split(array, threads) for array in arrays]
        return lambda: list(pool.map(function, *parts))

    def streaming(written: int, least: int) -> str:
        """Return the kind of cygrad's stores."""
        return AVOIDED if written >= least * threads else PAID

    whole = np.ones(n)
    first, second = np.split(whole[:n // 2 * 2], 2)
    a, b, c = np.split(whole[:n // 3 * 3], 3)
    yield "a dot product of an array with itself, NumPy", NOTHING, whole.nbytes, shared(lambda x: np.dot(x, x), whole)
    yield "a sum, cygrad", NOTHING, whole.nbytes, cygrad.from_numpy(whole).sum
    yield "a copy, NumPy", LEFT, 2 * first.nbytes, shared(np.copyto, first, second)
    yield "a copy, cygrad", streaming(first.nbytes, STREAMED), 2 * first.nbytes, cygrad.from_numpy(first).clone
    yield "a sum of two arrays into a third, NumPy", PAID, 3 * a.nbytes, shared(np.add, a, b, c)
    one, two = cygrad.from_numpy(a), cygrad.from_numpy(b)
    yield "a sum of two arrays, cygrad", streaming(a.nbytes, STREAMED), 3 * a.nbytes, lambda: one + two
    yield "a fill, NumPy", PAID, whole.nbytes, shared(lambda x: x.fill(1.0), whole)
    yield "a fill, cygrad", streaming(whole.nbytes, FILLED), whole.nbytes, lambda: cygrad.full((n,), 1.0, dtype=cygrad.float64)
    pool.shutdown()


def level(nbytes: int, threads: int, seconds: float) -> Level:
    """Return the best of the kernels over a working set."""
    results = [(moved / quickest(run, seconds), by, stores) for by, stores, moved, run in kernels(nbytes, threads)]
    rate, by, stores = max(results)
    return {"working_set": nbytes, "bytes_per_second": rate, "by": by, "write_allocate": stores}


def products(dtypes: Sequence[str], libraries: Iterable[str], quick: bool) -> tuple[dict[str, float], dict[str, str]]:
    """Return the operations a second of the best library's product of matrices, by dtype, and the library."""
    rates: dict[str, float] = {}
    by: dict[str, str] = {}
    for dtype, side in itertools.product(dtypes, SIDES[:-1] if quick else SIDES):
        array = np.ones((side, side), dtype)
        operations = 2 * side**3 * (4 if array.dtype.kind == "c" else 1)
        candidates: dict[str, Callable[[], Any]] = {"NumPy": partial(np.matmul, array, array, np.empty_like(array))}
        if "torch" in libraries:
            square = entered("torch").from_numpy(array)
            candidates["torch"] = partial(square.matmul, square)
        for name, run in candidates.items():
            rate = operations / quickest(run, QUICK_SECONDS if quick else SECONDS)
            if rate > rates.get(dtype, 0):
                rates[dtype], by[dtype] = rate, f"{name}'s product of {side} x {side}"
    return rates, by


def measured(threads: int, dtypes: Sequence[str], libraries: Iterable[str], quick: bool) -> Ceiling:
    """Measure the ceilings of a number of threads, of products in the dtypes that BLAS has; a quick run has no largest sizes."""
    set_threads(["cygrad", *libraries], threads)
    levels = [level(nbytes, threads, QUICK_SECONDS if quick else SECONDS) for nbytes in (WORKING_SETS[:-1] if quick else WORKING_SETS)]
    flops, flops_by = products([dtype for dtype in dtypes if dtype in MULTIPLIED], libraries, quick)
    memory: Bandwidth = {**levels[-1], "levels": levels[:-1]}
    return {"bandwidth": memory, "flops": flops, "flops_by": flops_by}


def higher(one: Ceiling, other: Ceiling) -> Ceiling:
    """Return the higher of two measurements, each figure by itself."""
    levels = [max(pair, key=lambda result: result["bytes_per_second"]) for pair in zip(levels_of(one), levels_of(other), strict=True)]
    best = {dtype: one if one["flops"][dtype] >= other["flops"][dtype] else other for dtype in one["flops"]}
    return {"bandwidth": {**levels[-1], "levels": levels[:-1]},
            "flops": {dtype: ceiling["flops"][dtype] for dtype, ceiling in best.items()},
            "flops_by": {dtype: ceiling["flops_by"][dtype] for dtype, ceiling in best.items()}}


def levels_of(ceiling: Ceiling) -> list[Level]:
    """Return the ceilings of bandwidth, memory the last."""
    memory = ceiling["bandwidth"]
    last: Level = {"working_set": memory["working_set"], "bytes_per_second": memory["bytes_per_second"], "by": memory["by"],
                   "write_allocate": memory["write_allocate"]}
    return [*memory["levels"], last]


def shares(ceiling: Ceiling, nbytes: int, flops: int, dtype: str, seconds: float) -> dict[str, float]:
    """Return the part of each ceiling that work reaches: of bandwidth where its data is large, of operations where it has some of BLAS's.

    A working set between two levels is judged by the faster one, and none by a level of less than half of its bytes.
    """
    results = {}
    levels = levels_of(ceiling)
    if nbytes >= levels[0]["working_set"]:
        rates = [each["bytes_per_second"] for each in levels if each["working_set"] >= nbytes / 2] or [levels[-1]["bytes_per_second"]]
        results["bandwidth"] = nbytes / seconds / max(rates)
    if flops and dtype in ceiling["flops"]:
        results["flops"] = flops / seconds / ceiling["flops"][dtype]
    return results
