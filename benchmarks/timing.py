"""The one row and printer that every benchmark uses, over the interleaved timer of `cygrad.bench`.

Nothing here is asserted: times belong in a table, not in a test. Not thread-safe.
"""

import importlib
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cygrad.bench.tables import quantity
from cygrad.bench.timing import LONG_ROUND_SECONDS, Namespace, interleave

_selected = ""


@dataclass(frozen=True)
class Row:
    """One line of the table: a ratio to a peer, or, without a ratio, a figure that is itself limited; a time may stand beside it."""

    work: str
    ours: float
    limit: float
    peer: str = ""
    theirs: float = 0.0
    ratio: float | None = None
    unit: str = "s"
    doubtful: bool = False

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the columns `COLUMNS`."""
        peer = f"{self.peer} {quantity(self.theirs, 's')}" if self.peer else ""
        if self.ratio is None:
            ratio, limit = "", figure(self.limit, self.unit)
        else:
            ratio, limit = f"{self.ratio:.3f}", f"{self.limit:g} x"
        measure = self.ours if self.ratio is None else self.ratio
        ok = ("yes" if measure <= self.limit else "NO") + "?" * self.doubtful
        return self.work, figure(self.ours, self.unit), peer, ratio, f"<= {limit}", ok


COLUMNS = ("work", "cygrad", "peer", "ratio", "must reach", "ok?")
WIDTHS = (66, 9, 14, 7, 11, 4)
DOUBT = "'?': other processes needed the processors meanwhile; run again on an idle machine."


def figure(value: float, unit: str) -> str:
    """Return a value with its unit if it has one; without, no prefix stands for a power of ten."""
    return quantity(value, unit) if unit else f"{value:.3g}"


def print_cells(cells: Sequence[str]) -> None:
    """Print one line of the table on the terminal, at once."""
    print("  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip(), flush=True)


def markdown(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(row.cells() for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def select(part: str) -> None:
    """From now on only rows whose work contains this text are measured."""
    global _selected
    _selected = part


def selected(work: str) -> bool:
    """Return True if the row of that name is selected."""
    return _selected in work


def peers(*names: str) -> dict[str, Any]:
    """Return the modules of that name which are installed, and print a line for each that is not."""
    results = {}
    for name in names:
        try:
            results[name] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name.partition(".")[0]:
                raise  # it is there, and broken
            print(f"{name} is not installed: the rows that compare with it are skipped")
    return results


def compare(
    work: str,
    statement: str,
    namespaces: Mapping[str, Namespace],
    limits: Mapping[str, float],
    per: int = 1,
    threads: int = 1,
    mean: bool = False,
) -> list[Row]:
    """Time one statement in the names of "cygrad" and of each peer; return a row for each peer with a limit.

    Times are divided by `per`, for figures per element or per operator. With `mean`, which a rare and long garbage
    collection does not escape, times are means, their ratio is the row's, and it is measured for longer, in longer rounds.
    """
    candidates = {name: (statement, ns) for name, ns in namespaces.items() if name == "cygrad" or name in limits}
    results = [peer for peer in candidates if peer != "cygrad"]
    if not results or not selected(work):
        return []
    rounds = interleave(candidates, 8.0, threads, LONG_ROUND_SECONDS) if mean else interleave(candidates, threads=threads)
    average = statistics.mean if mean else statistics.median
    time_of = {name: average(times) / per for name, times in rounds.times.items()}
    rows = []
    for peer in results:
        ratio = time_of["cygrad"] / time_of[peer] if mean else rounds.median(lambda ours, theirs: ours / theirs, "cygrad", peer)
        rows.append(Row(work, time_of["cygrad"], limits[peer], peer, time_of[peer], ratio, doubtful=rounds.doubtful))
    return rows
