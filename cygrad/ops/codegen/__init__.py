"""Write the inner loops in C from the tables: translate formulas, never control flow.

Each loop is one-dimensional and serial; the drivers own broadcasting and threads. Compiler errors point at the row (#line). The build
imports this without the package, which is not built yet.
"""

from pathlib import Path

from .casts import cast_texts, shared_text
from .constants import dtypes_text, erf_text, log_text
from .loops import elementwise_text
from .reading import ROOT
from .reductions import reduction_texts
from .units import HEADER, LEVELS, UNITS, level_text, levels_of

__all__ = ["LEVELS", "generate"]

OUTPUT = ROOT / "_kernels" / "generated"


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(levels, native: str = "") -> list[str]:
    """Write all generated files, as far as their text changed, and return the C sources, relative to the project.

    `native` describes the one processor of a build (building/native.py), and is empty in builds for any.
    """
    OUTPUT.mkdir(exist_ok=True)
    levels = list(levels)
    write(OUTPUT / "dtypes.h", dtypes_text())
    write(OUTPUT / "erf_table.h", erf_text())
    write(OUTPUT / "log_table.h", log_text())
    write(OUTPUT / "native.h", f"{HEADER}\n{native}")
    units = {f"{kind}_{unit}": elementwise_text(kind, unit) for kind in UNITS for unit in range(UNITS[kind])}
    units |= reduction_texts() | cast_texts() | {"shared": shared_text(), "matrices": '#include "matrices/blocked_levels.h"\n'}
    sources = []
    for unit, text in units.items():
        write(OUTPUT / f"{unit}_loops.h", text)
        for level in levels_of(unit, levels):
            write(OUTPUT / f"{unit}_{level}.c", level_text(level, unit, levels[0]))
            sources.append(f"cygrad/_kernels/generated/{unit}_{level}.c")
    return sources
