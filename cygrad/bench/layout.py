"""A table before it has a width: its cells, the columns that fit side by side, and its text, plain or as Markdown."""
from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

FASTER, SLOWER, ERROR = "faster", "slower", "error"     # the meaning of a cell, which a terminal may colour; its text has it, too


class Cell(NamedTuple):
    """A text, and its meaning."""

    text: str
    meaning: str = ""


class Column(NamedTuple):
    """A heading. Texts stand on the left; keys identify rows; code is set as such in Markdown."""

    title: str
    left: bool = False
    key: bool = False
    code: bool = False


Line = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A title, columns, and groups of lines under headings of their own; a table of one group without a heading has the key ""."""

    title: str
    columns: tuple[Column, ...]
    groups: Mapping[str, Sequence[Line]]

    def lines(self) -> Iterator[Line]:
        """Yield the lines of all groups."""
        for group in self.groups.values():
            yield from group

    def widths(self) -> list[int]:
        """Return how many characters each column needs."""
        return [max(map(len, texts)) for texts in
                zip([column.title for column in self.columns], *([cell.text for cell in line] for line in self.lines()), strict=True)]

    def without_empty_columns(self) -> Table:
        """Return the table without those columns in which no line has a text."""
        return self._only([number for number, cells in enumerate(zip(*self.lines(), strict=True)) if any(cell.text for cell in cells)])

    def parts(self, width: int, gap: int) -> Iterator[Table]:
        """Yield tables of at most that width, which have the columns in turn; each begins with the keys, so each can be read alone.

        A column that is too wide even so stands beside the keys alone.
        """
        widths = self.widths()
        keys = [number for number, column in enumerate(self.columns) if column.key]
        others = [number for number, column in enumerate(self.columns) if not column.key]
        free = width - sum(widths[number] + gap for number in keys)
        fitting: list[int] = []
        title = self.title
        for number in others:
            if fitting and sum(widths[each] + gap for each in (*fitting, number)) - gap > free:
                yield replace(self._only([*keys, *fitting]), title=title)
                title, fitting = f"{self.title}, continued", []
            fitting.append(number)
        yield replace(self._only([*keys, *fitting]), title=title)

    def _only(self, numbers: Sequence[int]) -> Table:
        groups = {heading: [tuple(line[number] for number in numbers) for line in group] for heading, group in self.groups.items()}
        return Table(self.title, tuple(self.columns[number] for number in numbers), groups)


GAP = 2


def plain(table: Table, width: int) -> str:
    """Return a table as text of at most that width."""
    return "\n".join(line for part in table.parts(width, GAP) for line in _plain_lines(part))


def _plain_lines(table: Table) -> Iterator[str]:
    widths = table.widths()

    def joined(texts: Iterable[str]) -> str:
        aligned = (text.ljust(width) if column.left else text.rjust(width)
                   for text, width, column in zip(texts, widths, table.columns, strict=True))
        return (" " * GAP).join(aligned).rstrip()

    yield from (table.title, "=" * len(table.title))
    yield joined(column.title for column in table.columns)
    yield (" " * GAP).join("-" * width for width in widths)
    for heading, group in table.groups.items():
        if heading:
            yield f"{heading}:"
        yield from (joined(cell.text for cell in line) for line in group)
    yield ""


def escaped(text: str) -> str:
    """Return Markdown that shows a text and nothing else: no markup, no HTML, no column of a table."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", html.escape(text, quote=False))


def code(text: str) -> str:
    """Return Markdown that shows a text as code, in a table too."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    gap = " " * (not text or "`" in text)
    return f"{fence}{gap}{text}{gap}{fence}".replace("|", r"\|")


def markdown(table: Table) -> str:
    """Return a table in Markdown; headings of groups become a bold line."""
    def row(texts: Iterable[str]) -> str:
        return "| " + " | ".join(texts) + " |\n"

    empty = [""] * (len(table.columns) - 1)
    lines = [row(escaped(column.title) for column in table.columns), row("---" if column.left else "---:" for column in table.columns)]
    for heading, group in table.groups.items():
        if heading:
            lines.append(row([f"**{escaped(heading)}**", *empty]))
        lines.extend(row((code if column.code else escaped)(cell.text) for column, cell in zip(table.columns, line, strict=True))
                     for line in group)
    return "".join(lines)
