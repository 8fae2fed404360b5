"""A page of documentation that is made from a record: the machine, its ceilings, the pictures, the ratios to NumPy by size."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cygrad.bench import tables
from cygrad.bench.layout import Cell, Column, Line, Table, escaped, markdown
from cygrad.bench.record import Record, Row
from cygrad.bench.terminal import installed

CAPTIONS = {
    "roofline": ("Below the ceilings", "Operators on large arrays, and the most that this machine did in the same run."),
    "shares": ("Share of the ceiling", "Rows that move bytes are measured by memory, rows that multiply matrices by products of matrices."),
    "ratios": ("Ratio to NumPy by size", "Small marks are rows, large ones the geometric means of a family. Overhead: 4 elements."),
    "scaling": ("Scaling over threads", "Small marks are rows, large ones the geometric means of a family."),
}
MADE = """Made from a run on one machine, by the option `--page FILE`; `python -m cygrad bench` measures on yours, and
`--compare A.json B.json` compares two. NumPy's side of a row is the best that one can write: results in memory that is there already,
nothing computed twice, gradients by hand."""


def write(record: Record, file: Path) -> list[Path]:
    """Write the page, and its pictures beside it where Matplotlib is installed; return the pictures."""
    pictures = _pictures(record, file) if installed("matplotlib") else {}
    file.write_text("\n".join(_lines(record, {name: picture.name for name, picture in pictures.items()})) + "\n", encoding="utf-8")
    return list(pictures.values())


def _pictures(record: Record, file: Path) -> dict[str, Path]:
    from cygrad.bench.figures import draw, drawable

    results = {name: file.with_name(f"{file.stem}_{name}.svg") for name in drawable(record)}
    for name, picture in results.items():
        draw(record, [name], picture)
    return results


def _lines(record: Record, pictures: dict[str, str]) -> Iterator[str]:
    yield from ("# Benchmark", "")
    if tables.peers(record):
        table = tables.summary_table(record)
        yield from (f"{table.title}.", "", markdown(table))
    yield from (MADE, "", *(f"- {escaped(line)}" for line in tables.head(record)))
    if noisy := sum(bool(row["noise"]) for row in record["rows"]):
        yield f"- **{noisy} of {tables.counted(len(record['rows']), 'row')} are noisy** (`?`): the machine was not idle"
    yield ""
    if record["errors"]:
        yield from ("**Errors of the benchmark**, rows that are not to be believed:", "")
        yield from (*(f"- {escaped(error)}" for error in record["errors"]), "")
    if tables.peers(record):
        yield from (*(f"- {escaped(note)}" for note in tables.notes(record)), "")
    if record["ceilings"]:
        table = tables.ceilings_table(record)
        yield from (f"## {table.title}", "", markdown(table))
    for name, picture in pictures.items():
        title, sentence = CAPTIONS[name]
        yield from (f"## {title}", "", sentence, "", f"![{title}]({picture})", "")
    yield from ("## All rows, by size", "", "cygrad's time by NumPy's.", "")
    for family, rows in tables.families(record).items():
        if any(tables.CONTROL in row["ratios"] for row in rows):
            yield from (f"### {escaped(family.capitalize())}", "", markdown(ratios_table(family, rows)))


def ratios_table(family: str, rows: list[Row]) -> Table:
    """Return the ratios to NumPy of a family, a column for each size."""
    sizes = sorted({row["size"] for row in rows})
    lines: dict[str, dict[str, dict[int, Cell]]] = {}
    for row in rows:
        mark = " ERROR" if row["error"] else " ?" if row["noise"] else ""
        text, meaning = tables.ratio_cell(row["ratios"].get(tables.CONTROL))
        lines.setdefault(tables.condition(row), {}).setdefault(row["work"], {})[row["size"]] = Cell(text + mark, meaning)
    groups: dict[str, list[Line]] = {
        heading: [(Cell(work), *(cells.get(size, Cell("")) for size in sizes)) for work, cells in works.items()]
        for heading, works in lines.items()
    }
    return Table(family, (Column("work", left=True, key=True, code=True), *(Column(tables.elements(size)) for size in sizes)), groups)
