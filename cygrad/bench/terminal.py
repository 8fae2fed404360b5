"""Where tables and the progress go: a terminal with rich; otherwise, and into files and pipes, plain text without any escape code."""
from __future__ import annotations

import importlib.util
import os
import sys
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cygrad._kernels.system.machine import whole_number
from cygrad.bench.layout import ERROR, FASTER, GAP, SLOWER, Line, Table, plain

if TYPE_CHECKING:
    from cygrad.bench.running import Stage

EXTRAS = {"rich": "colours and a progress bar", "matplotlib": "pictures"}
INSTALL = 'pip install "cygrad[bench]"'
PIPE_WIDTH = 120                    # of sentences; tables are as wide as they are
WIDEST = 10_000                     # columns that a terminal may have
STYLES = {FASTER: "green", SLOWER: "magenta", ERROR: "bold reverse red"}     # to be read on light and on dark, and by the colour-blind


class Progress(ABC):
    """The display of progress, between rows and by no thread of its own: that would run beside the timed work."""

    @abstractmethod
    def show(self, event: Stage) -> None:
        """Show how far a run is."""


def installed(name: str) -> bool:
    """Return True if a package of the extra is there."""
    return importlib.util.find_spec(name) is not None


def install_hint() -> str:
    """Return a line that names the missing packages of the extra; an empty one if nothing is."""
    missing = {name: purpose for name, purpose in EXTRAS.items() if not installed(name)}
    return f"For {' and '.join(missing.values())}: {INSTALL} ({', '.join(missing)})" if missing else ""


def columns() -> int | None:
    """Return the columns that the environment says, as it does where no terminal has any."""
    return whole_number(os.environ.get("COLUMNS", ""), 1, WIDEST)


class Plain:
    """Text for any file; on a terminal that is all it has, a line says how far a run is."""

    def __init__(self) -> None:
        try:
            self.width = columns() or os.get_terminal_size(sys.stdout.fileno()).columns
        except (OSError, ValueError):
            self.width = 0      # nothing has a width

    def table(self, table: Table) -> None:
        """Write a table."""
        self._write(plain(table, self.width or sys.maxsize))

    def text(self, lines: Iterable[str], title: str = "", meaning: str = "") -> None:
        """Write sentences, a line or more each."""
        if not (lines := [*lines]):
            return
        if title:
            self._write(f"{title}\n{'=' * len(title)}")
        wrapper = textwrap.TextWrapper(self.width or PIPE_WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for line in lines:
            self._write(wrapper.fill(line))
        self._write("")

    def _write(self, text: str) -> None:
        encoding = sys.stdout.encoding or "ascii"
        if not encoding.lower().startswith("utf"):
            text = text.replace("±", "+-").encode(encoding, "replace").decode(encoding)
        print(text, flush=True)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Show the progress of a run on a terminal, and leave nothing of it."""
        line = _Line(self.width if sys.stdout.isatty() else 0)
        try:
            yield line
        finally:
            line.clear()


class _Line(Progress):
    def __init__(self, width: int) -> None:
        self.width = width - 1      # a full line would wrap

    def show(self, event: Stage) -> None:
        self._put(f"{_percent(event)}  {_left(event)}  {event.work}")

    def clear(self) -> None:
        self._put("")

    def _put(self, text: str) -> None:
        if self.width > 0:
            print(f"\r{text[:self.width].ljust(self.width)}\r", end="", flush=True)


def _percent(event: Stage) -> str:
    return f"{event.number / max(event.total, 1):4.0%}"


def _left(event: Stage) -> str:
    if event.seconds_left is None:
        return "-:-- left"
    minutes, seconds = divmod(round(event.seconds_left), 60)
    return f"{minutes}:{seconds:02d} left"


class Rich:
    """A terminal, by rich."""

    def __init__(self) -> None:
        from rich.console import Console

        environment = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.console = Console(width=columns(), highlight=False, markup=False, emoji=False, _environ=environment)

    def table(self, table: Table) -> None:
        """Show a table."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        for part in table.parts(self.console.width - 1, GAP):
            widths = part.widths()
            console = self._of_width(sum(widths) + GAP * len(widths) - 1)

            def shown(lines: Sequence[Line], with_header: bool, part: Table = part, widths: Sequence[int] = widths) -> RichTable:
                grid = RichTable(box=box.SIMPLE_HEAD, show_edge=False, show_header=with_header, padding=(0, 1, 0, 0))
                for column, width in zip(part.columns, widths, strict=True):
                    grid.add_column(column.title, justify="left" if column.left else "right", width=width, no_wrap=True)
                for line in lines:
                    grid.add_row(*(Text(cell.text, style=STYLES.get(cell.meaning, "")) for cell in line))
                return grid

            self.console.print(Text(part.title, style="bold"))
            console.print(shown([], with_header=True))
            for heading, group in part.groups.items():
                if heading:
                    self.console.print(Text(f"{heading}:", style="italic"))
                console.print(shown(group, with_header=False))
            self.console.print()

    def _of_width(self, width: int) -> Any:
        """Return a console that cuts no number off, on however narrow a terminal: that breaks its lines then."""
        return self.console if width <= self.console.width else type(self.console)(width=width, highlight=False, markup=False, emoji=False)

    def text(self, lines: Iterable[str], title: str = "", meaning: str = "") -> None:
        """Show sentences."""
        from rich.text import Text

        if not (lines := [*lines]):
            return
        style = STYLES.get(meaning, "")
        if title:
            self.console.print(Text(title, style=style or "bold"))
        for line in lines:
            self.console.print(Text(line))
        self.console.print()

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Show a bar with the time left while a run goes on, and leave nothing of it."""
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars
        from rich.table import Column

        bars = Bars(BarColumn(bar_width=20), TextColumn("{task.fields[percent]}"), TextColumn("{task.fields[left]}"),
                    TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
                    console=self.console, transient=True, auto_refresh=False)
        with bars:
            yield _Bar(bars)


class _Bar(Progress):
    SECONDS = 0.1       # from one picture to the next at least

    def __init__(self, bars: Any) -> None:
        self.bars, self.shown = bars, 0.0
        self.task = bars.add_task("", percent="", left="")

    def show(self, event: Stage) -> None:
        if time.monotonic() > self.shown + self.SECONDS:
            self.bars.update(self.task, completed=event.number, total=event.total, description=event.work, percent=_percent(event),
                             left=_left(event), refresh=True)
            self.shown = time.monotonic()


def display() -> Plain | Rich:
    """Return where output goes."""
    return Rich() if sys.stdout.isatty() and installed("rich") else Plain()
