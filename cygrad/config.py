"""The settings of this build and this process: `describe()`, `show_config()`, `python -m cygrad info`; how much freed memory is kept; which
library computes Fourier transforms; whether sums of products are products of matrices.

They look and report; nothing is changed, not even a foreign library's denormal mode. Safe from every thread; threads
and denormals are the calling one's. No other module needs it, so the package loads it on first use only.
"""
from __future__ import annotations

import ctypes
import itertools
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy

import cygrad
from cygrad._core.compute.contraction import set_contraction as set_contraction
from cygrad._kernels.drivers.elementwise import available_isas, isa_report
from cygrad._kernels.matrices.loops import lapack_report
from cygrad._kernels.system import free_memory, machine
from cygrad._kernels.system.allocator import allocator_report
from cygrad._kernels.system.allocator import empty_cache as empty_cache
from cygrad._kernels.system.allocator import get_cache_limit as get_cache_limit
from cygrad._kernels.system.allocator import set_cache_limit as set_cache_limit
from cygrad._kernels.system.journal import log_pending
from cygrad._kernels.system.threads import compiler, denormal_mode, thread_report
from cygrad.operators.fourier import set_fft_library as set_fft_library

# Bytes of the vectors that a level, or a kernel set of OpenBLAS, computes with, and the set to ask for by level.
_LEVEL_BYTES = {"x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64}
_KERNEL_BYTES = {
    **dict.fromkeys(("Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Atom", "Opteron", "Opteron_SSE3",
                     "Barcelona", "Bobcat", "Athlon", "Katmai", "Coppermine", "Northwood", "Banias"), 16),
    **dict.fromkeys(("Sandybridge", "Bulldozer", "Piledriver", "Steamroller", "Excavator", "Haswell", "Zen"), 32),
    **dict.fromkeys(("SkylakeX", "Cooperlake", "SapphireRapids"), 64),
}
_KERNELS_FOR = {32: "Haswell", 64: "SkylakeX"}


def _openblas_library() -> tuple[ctypes.CDLL, str, str] | None:
    """Return NumPy's OpenBLAS as loaded in this process, with the prefix and suffix of its symbols."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    paths = {line.split(maxsplit=5)[5] for line in maps if "openblas" in line.rpartition("/")[2].lower()}
    for path in sorted(paths, key=lambda path: ("numpy" not in path, path)):    # SciPy loads a copy of its own
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix, suffix in itertools.product(("scipy_", ""), ("64_", "")):
            if hasattr(library, f"{prefix}openblas_get_config{suffix}"):
                return library, prefix, suffix
    return None


def _blas(threads: int) -> dict[str, Any]:
    """Look at NumPy's BLAS; `hint` says where its kernels use less of the processor than they could, or its threads more."""
    result = _openblas_library()
    if result is None:
        build = numpy.show_config(mode="dicts") or {}
        name = build.get("Build Dependencies", {}).get("blas", {}).get("name", "unknown")
        return {"name": name, "version": None, "kernels": None, "threads": None, "library": None, "hint": None}
    library, prefix, suffix = result

    def text(name: str) -> str:
        function = library[f"{prefix}openblas_get_{name}{suffix}"]
        function.restype = ctypes.c_char_p
        return function().decode()

    kernels, (name, version) = text("corename"), text("config").split()[:2]
    count, hints = library[f"{prefix}openblas_get_num_threads{suffix}"](), []
    available = max((_LEVEL_BYTES.get(level, 0) for level in available_isas()), default=0)
    if _KERNEL_BYTES.get(kernels, available) < available:
        hints.append(f"these use {_KERNEL_BYTES[kernels]}-byte vectors where this processor has {available}: "
                     f"OPENBLAS_CORETYPE={_KERNELS_FOR[available]} may be faster")
    if (machine.launcher_report()["processes"] or 1) > 1 and count > threads:
        hints.append(f"processes on this node share its CPUs: OPENBLAS_NUM_THREADS={threads} may be faster")
    return {"name": name, "version": version, "kernels": kernels, "threads": count, "library": library._name,
            "hint": "; ".join(hints) or None}


def _processor() -> str:
    """Return the processor's model where Linux has it, else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _huge_pages() -> str | None:
    """Say when the system gives huge pages, in its own word."""
    try:
        modes = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="utf-8")
    except OSError:
        return None
    return modes.partition("[")[2].partition("]")[0] or None


def describe() -> dict[str, Any]:
    """Return the settings of this build and process, as values that JSON has: strings, numbers, bools, lists and dicts of them, None.

    Keys stay the same from version to version; new ones may come. None stands for missing and unknown values.

    >>> import cygrad
    >>> sorted(cygrad.config.describe()["threads"])[:3]
    ['OMP_NUM_THREADS', 'OMP_THREAD_LIMIT', 'affinity']
    """
    log_pending()
    threads = thread_report()
    openmp = {key.removeprefix("openmp_"): threads.pop(key) for key in ("openmp_version", "openmp_runtime")}
    return {
        "version": cygrad.__version__,
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation(), "executable": sys.executable},
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "processor": _processor(),
        "compiler": compiler(),
        "instruction_set": isa_report(),
        "openmp": openmp if threads.pop("openmp") else None,
        "threads": threads,
        "node_cpus": machine.node_cpus(),
        "launcher": machine.launcher_report(),
        "blas": _blas(threads["threads"]),
        "lapack": lapack_report(),
        "memory": {**allocator_report(), "granted": free_memory.granted_bytes(), "cgroup_limit": machine.memory_limit(),
                   "huge_pages": _huge_pages()},
        "denormals": denormal_mode(),
        "files": {"package": os.path.dirname(cygrad.__file__), "library": free_memory.__file__},
    }


# ----- In words -----
def _instruction_set(result: dict[str, Any]) -> str:
    wish, processor = result["requested"], result["built_for"]
    return f"{result['chosen']} of {', '.join(result['available'])}" + (f" (CYGRAD_ISA={wish})" if wish else "") + (
        f", built for {processor} alone" if processor else "")


def _openmp(result: dict[str, Any] | None) -> str:
    return f"{result['version']}, {result['runtime']}" if result else "not in this build"


def _launcher(result: dict[str, Any]) -> str:
    said = [f"{words}: {result[field]} ({result[f'{field}_variable']})" for field, words in (
        ("processes", "processes on this node"), ("cpus", "CPUs for each process")) if result[field]]
    ignored = [f"{variable}={text!r} is no count, and ignored" for variable, text in result["ignored"].items()]
    return ", ".join([result["launcher"] or "none", *said, *ignored])


def _blas_in_words(result: dict[str, Any]) -> str:
    if result["library"] is None:
        return f"{result['name']}, as NumPy was built with"
    described = f"{result['name']} {result['version']}, {result['kernels']} kernels, threads of its own: {result['threads']}"
    return described + (f"; {result['hint']}" if result["hint"] else "")


def _memory(result: dict[str, Any]) -> str:
    return (f"{_size(result['live_bytes'])} in {result['live_blocks']} blocks, "
            f"{_size(result['cached_bytes'])} of at most {_size(result['cache_limit'])} ({result['cache_limit_reason']}) cached "
            f"({result['hits']} hits, {result['misses']} misses), {_size(result['granted'])} granted, "
            f"huge pages: {result['huge_pages'] or 'unknown'}")


def _size(nbytes: int) -> str:
    """Write a number of bytes with the largest unit it fills."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if nbytes >= 1024 ** power:
            return f"{nbytes / 1024 ** power:.4g} {unit}"
    return f"{nbytes} B"


def _denormals(mode: dict[str, bool]) -> str:
    changed = [field for field, key in (("results are flushed to zero", "flush_results"),
                                      ("operands are read as zero", "zero_operands")) if mode[key]]
    return f"{' and '.join(changed)}: a library in this process has set that for this thread" if changed else "kept"


def show_config() -> str:
    """Return `describe()` in words: compiler, instruction set, threads, launcher, BLAS, LAPACK, memory, denormals.

    Each line names the choice in use and, where there was a choice, why.

    >>> import cygrad
    >>> print(cygrad.show_config())  # doctest: +ELLIPSIS
    cygrad ...
    """
    result = describe()
    lines = {
        "Python": f"{result['python']['version']}, NumPy {result['numpy']}, {result['platform']}",
        "processor": result["processor"],
        "compiler": result["compiler"],
        "instruction set": _instruction_set(result["instruction_set"]),
        "threads": f"{result['threads']['threads']} ({result['threads']['reason']})",
        "launcher": _launcher(result["launcher"]),
        "OpenMP": _openmp(result["openmp"]),
        "BLAS": _blas_in_words(result["blas"]),
        "LAPACK": result["lapack"]["reason"],
        "memory": _memory(result["memory"]),
        "denormals": _denormals(result["denormals"]),
        "package": result["files"]["library"],
    }
    return "\n".join([f"cygrad {result['version']}", *(f"  {name + ':':<17}{text}" for name, text in lines.items())])
