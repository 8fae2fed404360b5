"""Run benchmarks and print their rows: `python -m benchmarks [names] [--only TEXT] [--markdown FILE]`.

A row that misses its limit says NO; the exit status does not, as a busy machine would decide it.
"""

import argparse
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.timing import COLUMNS, DOUBT, Row, markdown, print_cells, select, selected
from cygrad import _commands
from cygrad.config import describe

NAMES = ("overhead", "bandwidth", "vecmath", "dtypes", "composite", "shapes", "programs", "linalg", "profiler", "functional",
         "sparse", "scaling", "threads")


def environment() -> str:
    """Return one line on the program and the machine."""
    parts = [f"Python {platform.python_version()}"]
    for package in ("cygrad", "numpy", "torch"):
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            parts.append(f"{package} (no installed version)")
    return ", ".join([*parts, describe()["processor"]])


NAME = "python -m benchmarks"


def main() -> int:
    """Run the named benchmarks, all by default, and return the exit status."""
    parser = argparse.ArgumentParser(prog=NAME, description="Print ratios to NumPy and torch.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"which to run: {', '.join(NAMES)} (all)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the rows whose work contains this text")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table there")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")

    select(arguments.only)
    print(environment())
    print_cells(COLUMNS)
    rows: list[Row] = []
    for name in arguments.names or NAMES:
        for row in import_module(f"benchmarks.{name}").rows():
            if not selected(row.work):
                continue
            print_cells(row.cells())
            rows.append(row)
    doubt = f"\n{DOUBT}\n" if any(row.doubtful for row in rows) else ""
    print(doubt, end="")
    if arguments.markdown:
        arguments.markdown.write_text(f"{environment()}\n\n{markdown(rows)}{doubt}")
    return 0


if __name__ == "__main__":
    sys.exit(_commands.ended(main, NAME))
