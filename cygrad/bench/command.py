"""`python -m cygrad bench`: the arguments, the work done for them, which files are written, and the exit status."""
from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cygrad._commands import INTERRUPTED, interrupted_by
from cygrad.bench import record as records
from cygrad.bench.layout import ERROR, Table
from cygrad.bench.record import Record
from cygrad.bench.terminal import INSTALL, Plain, Rich, display, install_hint, installed

if TYPE_CHECKING:
    from cygrad.bench.running import Benchmark

DESCRIPTION = """Measure operators and whole programs against NumPy and, where they are installed, torch, JAX, autograd, numexpr and CasADi;
programs by cygrad.compile, too.
Ctrl-C, or SIGTERM, ends with the rows measured so far. Exit status: 0; 1 if the benchmark itself went wrong in a row; 2 for a bad argument;
130 after Ctrl-C."""

WRONG = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.description = DESCRIPTION
    measured = parser.add_argument_group("rows and sizes")
    measured.add_argument("--quick", action="store_true", help="in less than a minute: few sizes, short rounds")
    measured.add_argument("--only", default="", metavar="TEXT", help="the rows whose work or family contains this text")
    measured.add_argument("--threads", type=_counts, default=(), metavar="1,2,4", help="numbers of threads (1, and all of this process)")
    measured.add_argument("--dtypes", type=_names, default=(), metavar="A,B", help="dtypes (with --quick float32 and float64, else all)")
    shown = parser.add_argument_group("tables and files")
    source = shown.add_mutually_exclusive_group()
    source.add_argument("--from", type=Path, metavar="FILE", help="show a record of --json, and measure nothing")
    source.add_argument("--compare", type=Path, nargs=2, metavar=("A.json", "B.json"), help="compare two records row by row: B by A")
    shown.add_argument("--json", type=Path, metavar="FILE", help="write the record")
    shown.add_argument("--plot", type=Path, metavar="FILE", help="write pictures: roofline, ratios by size, scaling (.svg, .pdf, .png)")
    shown.add_argument("--page", type=Path, metavar="FILE", help="write a page of documentation in Markdown, with its pictures beside it")
    parser.set_defaults(parser=parser)


def _counts(text: str) -> tuple[int, ...]:
    counts = tuple(int(word) if word.strip().isdecimal() else 0 for word in text.split(","))
    if min(counts) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give counts of at least 1, as in 1,2,4")
    return tuple(sorted(set(counts)))


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",")))


def run(options: argparse.Namespace) -> int:
    """Run the command, and return the exit status; errors in the arguments end the program before anything is measured."""
    try:
        work = _prepared(options)
    except ValueError as error:
        options.parser.error(str(error))
    except OSError as error:
        options.parser.error(f"{error.filename}: {error.strerror}")
    return work()


def _prepared(options: argparse.Namespace) -> Callable[[], int]:
    """Return the function that does the work, once the arguments are checked."""
    for source, banned in (("compare", ("json", "plot", "page", "quick", "threads", "dtypes")), ("from", ("json", "quick"))):
        for option in banned:
            if getattr(options, source) and getattr(options, option):
                raise ValueError(f"--{source} shows records, which are measured already, and takes no --{option}")
    if options.compare:
        before, after = map(records.read, options.compare)
        if options.only and not any(records.has(row, options.only) for row in (*before["rows"], *after["rows"])):
            raise ValueError(f"{' and '.join(map(str, options.compare))} have no such rows")
        return lambda: _compare(before, after, options.only)
    _check_outputs(options)
    if source := getattr(options, "from"):
        chosen = _selected(records.read(source), options)
        return lambda: _show(chosen, options, _Shown(display()))
    from cygrad.bench.running import Benchmark, Plan

    benchmark = Benchmark(Plan(quick=options.quick, only=options.only, threads=options.threads, dtypes=options.dtypes))
    return lambda: _measure(benchmark, options)


# ----- Before anything is measured -----
def _check_outputs(options: argparse.Namespace) -> None:
    """Raise now the errors that writing would raise after minutes, and refuse to overwrite files read or written."""
    files: dict[Path, str] = {}
    for option in ("from", "json", "plot", "page"):
        if file := getattr(options, option):
            if other := files.get(file.resolve()):
                raise ValueError(f"--{option} {file} would write over --{other}: name another file")
            files[file.resolve()] = option
    if options.plot and not installed("matplotlib"):
        raise ValueError(f"--plot needs Matplotlib: {INSTALL}")
    if options.plot:
        from cygrad.bench.figures import fault

        if sentence := fault(options.plot):
            raise ValueError(f"--plot {options.plot}: {sentence}")
    for file in filter(None, (options.json, options.plot, options.page)):
        is_new = not file.exists()
        with file.open("ab"):
            pass
        if is_new:
            file.unlink()


def _selected(record: Record, options: argparse.Namespace) -> Record:
    """Return a record with the rows that are asked for."""
    rows = [row for row in record["rows"] if records.has(row, options.only)
            and (not options.threads or row["threads"] in options.threads) and (not options.dtypes or row["dtype"] in options.dtypes)]
    if record["rows"] and not rows:
        raise ValueError(f"{getattr(options, 'from')} has no such rows")
    ceilings = {threads: ceiling for threads, ceiling in record["ceilings"].items()
                if not options.threads or int(threads) in options.threads}
    return {**record, "ceilings": ceilings, "rows": rows, "errors": [row["error"] for row in rows if row["error"]]}


# ----- The three uses -----
def _measure(benchmark: Benchmark, options: argparse.Namespace) -> int:
    screen, interrupted = display(), False
    shown, before = _Shown(screen), None
    try:
        with interrupted_by(signal.SIGINT, signal.SIGTERM), screen.progress() as progress:      # SIGTERM ends a job whose time is over
            for event in benchmark:
                progress.show(event)
                finished = benchmark.done_families()
                if not sys.stdout.isatty() and (now := (event.row is None, finished)) != before:
                    shown.show(benchmark.record(), finished)
                    before = now
    except KeyboardInterrupt:
        interrupted = True
    finally:                    # first of all, so that it is there in any case
        record = benchmark.record()
        written = not options.json or _write(records.write, record, options.json)
    status = _show(record, options, shown)
    return INTERRUPTED if interrupted else status if written else WRONG


class _Shown:
    """The view of a record that grows: each table once, and again if it is another by then."""

    def __init__(self, screen: Plain | Rich) -> None:
        self.screen = screen
        self.tables: list[Table] = []
        self.headed = False

    def show(self, record: Record, families: Iterable[str] | None = None) -> None:
        """Show new ceilings and of some families; of all, and their summary, where none are named."""
        from cygrad.bench import tables

        if not self.headed:
            self.screen.text(tables.head(record))
        self.headed = True
        for table in tables.tables(record, families):
            if table not in self.tables:
                self.tables.append(table)
                self.screen.table(table)


def _show(record: Record, options: argparse.Namespace, shown: _Shown) -> int:
    """Write the pictures and the page of a record, and show it."""
    from cygrad.bench import figures, page, tables

    screen = shown.screen
    written = [_write(function, record, file) for function, file in ((figures.plot, options.plot), (page.write, options.page)) if file]
    shown.show(record)
    screen.text(tables.notes(record))
    screen.text(filter(None, [install_hint()]))
    if record["errors"]:
        screen.text(record["errors"], f"ERRORS OF THE BENCHMARK: {tables.counted(len(record['errors']), 'row')} not to be believed", ERROR)
    return WRONG if record["errors"] or not all(written) else 0


def _write(function: Callable[[Record, Path], object], record: Record, file: Path) -> bool:
    """Write a record into a file, in some form; say that it did, or the error."""
    try:
        function(record, file)
        fault = "" if file.exists() else "there is nothing to draw"
    except OSError as error:    # a disk that is full by now
        fault = error.strerror or str(error)
    if fault:
        print(f"{file} is not written: {fault}", file=sys.stderr)
    return not fault


def _compare(before: Record, after: Record, only: str) -> int:
    from cygrad.bench.comparison import Comparison

    comparison, screen = Comparison(before, after, only), display()
    screen.text(comparison.head())
    for table in comparison.tables():
        screen.table(table)
    screen.text(comparison.notes())
    return 0
