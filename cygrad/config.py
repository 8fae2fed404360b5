"""What this build and this process compute with: `show_config()`, also `python -m cygrad info`; and how much freed memory is kept.

`show_config` looks and reports; nothing is changed, not even a foreign library's denormal mode. Safe from every thread; threads
and denormals are those of the calling one. Not needed by anything else, so the package loads it on first use only.
"""
from __future__ import annotations

import ctypes
import itertools
import os
import platform
from pathlib import Path

import numpy

import cygrad
from cygrad._kernels.drivers.elementwise import available_isas, isa
from cygrad._kernels.system.allocator import allocator_report
from cygrad._kernels.system.allocator import empty_cache as empty_cache
from cygrad._kernels.system.allocator import get_cache_limit as get_cache_limit
from cygrad._kernels.system.allocator import set_cache_limit as set_cache_limit
from cygrad._kernels.system.threads import compiler, denormal_mode, thread_report

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


def _blas() -> str:
    """Describe NumPy's BLAS, with a hint where its kernels use less of the processor than they could."""
    found = _openblas_library()
    if found is None:
        build = numpy.show_config(mode="dicts") or {}
        return f"{build.get('Build Dependencies', {}).get('blas', {}).get('name', 'unknown')}, as NumPy was built with"
    library, prefix, suffix = found

    def text(name: str) -> str:
        function = library[f"{prefix}openblas_get_{name}{suffix}"]
        function.restype = ctypes.c_char_p
        return function().decode()

    kernels = text("corename")
    version = " ".join(text("config").split()[:2])
    count = library[f"{prefix}openblas_get_num_threads{suffix}"]()
    described = f"{version}, {kernels} kernels, threads of its own: {count}"
    available = max((_LEVEL_BYTES.get(level, 0) for level in available_isas()), default=0)
    if _KERNEL_BYTES.get(kernels, available) < available:
        described += (f"; these use {_KERNEL_BYTES[kernels]}-byte vectors where this processor has {available}: "
                      f"OPENBLAS_CORETYPE={_KERNELS_FOR[available]} may be faster")
    return described


def _instruction_set() -> str:
    wish = os.environ.get("CYGRAD_ISA", "").strip()
    return f"{isa()} of {', '.join(available_isas())}" + (f" (CYGRAD_ISA={wish})" if wish else "")


def _threads() -> str:
    report = thread_report()
    return f"{report['threads']} ({report['reason']})"


def _openmp() -> str:
    report = thread_report()
    return f"{report['openmp_version']}, {report['openmp_runtime']}" if report["openmp"] else "not in this build"


def _memory() -> str:
    report = allocator_report()
    try:
        modes = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="utf-8")
        huge_pages = modes.partition("[")[2].partition("]")[0]
    except OSError:
        huge_pages = "unknown"
    return (f"{_size(report['live_bytes'])} in {report['live_blocks']} blocks, "
            f"{_size(report['cached_bytes'])} of at most {_size(report['cache_limit'])} ({report['cache_limit_reason']}) cached "
            f"({report['hits']} hits, {report['misses']} misses), huge pages: {huge_pages}")


def _size(nbytes: int) -> str:
    """Write a number of bytes with the largest unit it fills."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if nbytes >= 1024 ** power:
            return f"{nbytes / 1024 ** power:.4g} {unit}"
    return f"{nbytes} B"


def _denormals() -> str:
    mode = denormal_mode()
    changed = [what for what, key in (("results are flushed to zero", "flush_results"),
                                      ("operands are read as zero", "zero_operands")) if mode[key]]
    return f"{' and '.join(changed)}: a library in this process has set that for this thread" if changed else "kept"


def show_config() -> str:
    """Return a description of this build and process: compiler, instruction set, threads, BLAS, memory, denormals.

    Each line says what is in use and, where there was a choice, why.

    >>> import cygrad
    >>> print(cygrad.show_config())  # doctest: +ELLIPSIS
    cygrad ...
    """
    lines = {
        "Python": f"{platform.python_version()}, NumPy {numpy.__version__}, {platform.platform()}",
        "compiler": compiler(),
        "instruction set": _instruction_set(),
        "threads": _threads(),
        "OpenMP": _openmp(),
        "BLAS": _blas(),
        "memory": _memory(),
        "denormals": _denormals(),
    }
    return "\n".join([f"cygrad {cygrad.__version__}", *(f"  {name + ':':<17}{text}" for name, text in lines.items())])
