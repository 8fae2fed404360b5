"""Two records, row by row: two builds, two nodes, two versions."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cygrad.bench.layout import FASTER, SLOWER, Cell, Column, Line, Table
from cygrad.bench.record import Key, Record, Row, Spread, has, key
from cygrad.bench.tables import CONTROL, KEYS, condition, counted, elements, machine, part, quantity, with_spread

LEAST = 0.05        # two runs of the same differ by less
RULE = (f"The rule: a row has changed if the quartiles of B/A are beyond 1, and its median by more than {LEAST:.0%}. It is judged by "
        "cygrad's time by NumPy's, which was taken in the same rounds, so that a slower clock, a busier or another node counts for both; "
        "by its time alone where NumPy did not do the row. Rows that were noisy in A or B (?) and those with an error are not judged.")


@dataclass(frozen=True)
class Change:
    """A row that both records have. `time` is B's time by A's, `control` the same of NumPy, `judged` decides whether it changed."""

    before: Row
    after: Row
    time: Spread
    control: float | None
    judged: Spread

    @property
    def is_doubtful(self) -> bool:
        """Whether a run was disturbed while it measured this row."""
        return any(row["noise"] or row["error"] for row in (self.before, self.after))

    @property
    def meaning(self) -> str:
        """FASTER or SLOWER, or neither."""
        if self.is_doubtful or abs(self.judged["median"] - 1) <= LEAST:
            return ""
        return FASTER if self.judged["high"] < 1 else SLOWER if self.judged["low"] > 1 else ""


def quotient(after: Spread, before: Spread) -> Spread:
    """Return the quotient of two medians, between the extremes of their quartiles."""
    return {"median": after["median"] / before["median"], "low": after["low"] / before["high"], "high": after["high"] / before["low"]}


def change(before: Row, after: Row) -> Change | None:
    """Compare two rows; None if one of them has no time."""
    times = [row["times"].get("cygrad") for row in (before, after)]
    if not times[0] or not times[1]:
        return None
    time = quotient(times[1], times[0])
    if not (CONTROL in before["ratios"] and CONTROL in after["ratios"]):
        return Change(before, after, time, None, time)
    control = after["times"][CONTROL]["median"] / before["times"][CONTROL]["median"]
    return Change(before, after, time, control, quotient(after["ratios"][CONTROL], before["ratios"][CONTROL]))


def differences(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the differences of two trees: its path, and both values."""
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name), after.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from differences(one, other, f"{prefix}{name}.")
        elif one != other:
            yield f"{prefix}{name}", one, other


class Comparison:
    """Record B by record A, of the rows whose work or family contains a text."""

    def __init__(self, before: Record, after: Record, only: str = "") -> None:
        self.before, self.after = before, after
        rows: list[dict[Key, Row]] = [{key(row): row for row in record["rows"] if has(row, only)} for record in (before, after)]
        both = [change(row, rows[1][name]) for name, row in rows[0].items() if name in rows[1]]
        self.changes = [result for result in both if result]
        self.only_before = [row for name, row in rows[0].items() if name not in rows[1]]
        self.only_after = [row for name, row in rows[1].items() if name not in rows[0]]

    def head(self) -> Iterator[str]:
        """Yield lines that name both runs."""
        for letter, record in (("A", self.before), ("B", self.after)):
            yield f"{letter}: cygrad {record['version']}, {record['started'][:16].replace('T', ' ')}, {machine(record)}"

    def tables(self) -> Iterator[Table]:
        """Yield the differences of `info`, all rows, and those that changed."""
        before, after = ({**record["info"], "libraries": record["libraries"]} for record in (self.before, self.after))
        lines = [tuple(map(Cell, (path, _said(one), _said(other)))) for path, one, other in differences(before, after)]
        if lines:
            yield Table("Differences of info", tuple(Column(title, left=True, key=not title) for title in ("", "A", "B")), {"": lines})
        if self.changes:
            yield self._table("Rows: B by A", self.changes)
        changed = [each for each in self.changes if each.meaning]
        if changed:
            yield self._table("Changed beyond noise", sorted(changed, key=lambda each: each.judged["median"]))

    def _table(self, title: str, changes: list[Change]) -> Table:
        groups: dict[str, list[Line]] = {}
        for each in changes:
            times = (Cell(quantity(row["times"]["cygrad"]["median"], "s")) for row in (each.before, each.after))
            judged = Cell(with_spread(part(each.judged["median"]), each.judged), each.meaning)
            time, by_numpy = (judged, Cell("")) if each.control is None else (Cell(part(each.time["median"])), judged)
            line = (Cell(each.before["work"]), Cell(elements(each.before["size"])), Cell("?" * each.is_doubtful), *times, time, by_numpy,
                    Cell(each.meaning.upper(), each.meaning))
            groups.setdefault(f"{each.before['family']}, {condition(each.before)}", []).append(line)
        columns = (*KEYS, *map(Column, ("A", "B", "B/A", "by NumPy's")), Column("", left=True))
        return Table(title, columns, groups).without_empty_columns()

    def notes(self) -> Iterator[str]:
        """Yield the outcome in sentences, and the rule."""
        for letter, rows in (("A", self.only_before), ("B", self.only_after)):
            if rows:
                names = ", ".join(dict.fromkeys(row["work"] for row in rows))
                yield f"Only in {letter}: {counted(len(rows), 'row')}: {names}"
        controls = sorted(each.control for each in self.changes if each.control is not None)
        if controls:
            yield (f"NumPy itself, B by A: median {part(controls[len(controls) // 2])}, from {part(controls[0])} to {part(controls[-1])}. "
                   "So much do runs and nodes differ.")
        doubtful = sum(each.is_doubtful for each in self.changes)
        yield RULE
        yield (f"{counted(len(self.changes), 'row')} in both: {sum(each.meaning == FASTER for each in self.changes)} faster, "
               f"{sum(each.meaning == SLOWER for each in self.changes)} slower, {doubtful} not judged.")


def _said(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "-" if value is None else str(value)
