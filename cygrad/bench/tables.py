"""The view of a record: its ceilings, its rows, their summary, and remarks."""
from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

from cygrad.bench.layout import ERROR, FASTER, SLOWER, Cell, Column, Line, Table
from cygrad.bench.record import Record, Row, Spread

BINARY = ("B", "KiB", "MiB", "GiB")
RATIOS = ("Ratios are cygrad's time by the other's: below 1 cygrad takes less. Times and ratios are medians of interleaved rounds; "
          "the percentage beside them is half the distance of their quartiles.")
CEILINGS = "Of ceiling: bytes that have to move, or operations, in a second, as a part of the most that this machine can do (own table)."
SHARES = {"bandwidth": "bytes", "flops": "flops"}
CONTROL = "numpy"       # the library that does every row
DOUBT = "?: the times of this row are noisy; run again on an idle machine."


# ----- Texts -----
def digits(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:#.3g}".rstrip(".") if 1e-3 <= abs(value) < 999.5 else f"{value:.3g}"


def part(ratio: float) -> str:
    """Return a ratio; points stand below each other but where it is small or large."""
    return f"{ratio:.3f}" if 0.00995 < ratio < 9.9995 else digits(ratio)


def quantity(value: float, unit: str) -> str:
    """Return a value with its unit, and with the prefix that leaves at most three digits before the point."""
    for factor, prefix in ((1e-9, "n"), (1e-6, "u"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")):
        if abs(value) < 999.5 * factor:
            return f"{digits(value / factor)} {prefix}{unit}"
    return f"{digits(value / 1e12)} T{unit}"


def memory(size: int) -> str:
    """Return a number of bytes with the largest unit that it fills."""
    power = min(int(math.log2(max(size, 1)) / 10), len(BINARY) - 1)
    return f"{size / 1024 ** power:.4g} {BINARY[power]}"


def elements(size: int) -> str:
    """Return a number of elements, a large one as a power of ten."""
    return str(size) if size < 10_000 else f"{size:.3g}".replace("e+0", "e")


def half_width(spread: Spread) -> float:
    """Return half the distance of the quartiles, as a part of the median."""
    return (spread["high"] - spread["low"]) / 2 / spread["median"]


def with_spread(text: str, spread: Spread) -> str:
    """Return the text of a median with its spread beside it."""
    return f"{text} ±{half_width(spread):3.0%}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" + "s" * (count != 1)


def ratio_cell(ratio: Spread | None) -> Cell:
    """Return the cell of a ratio; it means something where both quartiles are on one side of 1."""
    if ratio is None:
        return Cell("")
    meaning = FASTER if ratio["high"] < 1 else SLOWER if ratio["low"] > 1 else ""
    return Cell(with_spread(part(ratio["median"]), ratio), meaning)


# ----- Tables -----
def peers(record: Record) -> list[str]:
    """Return the libraries that cygrad is compared with, in the record's order."""
    measured = {name for row in record["rows"] for name in row["ratios"]}
    return [name for name in record["libraries"] if name in measured]


def families(record: Record) -> dict[str, list[Row]]:
    """Return the rows of each family, in the record's order."""
    results: dict[str, list[Row]] = {}
    for row in record["rows"]:
        results.setdefault(row["family"], []).append(row)
    return results


def condition(row: Row) -> str:
    """Return the common parts of a row and others of its family."""
    return f"{row['dtype']}, {row['direction']}, {counted(row['threads'], 'thread')}"


def grouped(rows: Sequence[Row], line: Callable[[Row], Line]) -> dict[str, list[Line]]:
    """Return the lines of rows under their common parts."""
    groups: dict[str, list[Line]] = {}
    for row in rows:
        groups.setdefault(condition(row), []).append(line(row))
    return groups


KEYS = (Column("work", left=True, key=True), Column("size", key=True), Column("", left=True, key=True))


def keys(row: Row) -> Line:
    """Return the cells of the columns KEYS; the last one marks a row with noise or an error."""
    mark = Cell("ERROR", ERROR) if row["error"] else Cell("?" * bool(row["noise"]))
    return Cell(row["work"], ERROR if row["error"] else ""), Cell(elements(row["size"])), mark


def family_table(family: str, rows: Sequence[Row], others: Sequence[str]) -> Table:
    """Return all that was measured of a family."""
    def line(row: Row) -> Line:
        ours, is_error = row["times"].get("cygrad"), bool(row["error"])
        time = Cell(with_spread(quantity(ours["median"], "s"), ours)) if ours else Cell("not measured", ERROR)
        share = ", ".join(f"{part:.0%} {SHARES.get(name, name)}" for name, part in row["share"].items())
        return *keys(row), time, Cell(share, ERROR * bool(is_error and share)), *(ratio_cell(row["ratios"].get(name)) for name in others)

    columns = (*KEYS, Column("cygrad"), Column("of ceiling"), *(Column(f"/ {name}") for name in others))
    return Table(family.capitalize(), columns, grouped(rows, line)).without_empty_columns()


def summary_table(record: Record) -> Table:
    """Return the geometric mean of the ratios of each family, and their extremes."""
    others = peers(record)

    def cell(rows: Sequence[Row], peer: str) -> Cell:
        ratios = [row["ratios"][peer]["median"] for row in rows if peer in row["ratios"] and not row["error"]]
        if not ratios:
            return Cell("")
        mean = statistics.geometric_mean(ratios)
        meaning = FASTER if mean < 1 else SLOWER if mean > 1 else ""
        return Cell(part(mean) if len(ratios) == 1 else f"{part(mean)} ({part(min(ratios))} to {part(max(ratios))})", meaning)

    groups: dict[str, list[Line]] = {}
    for family, rows in families(record).items():
        for direction in dict.fromkeys(row["direction"] for row in rows):
            chosen = [row for row in rows if row["direction"] == direction]
            line = Cell(family), Cell(str(len(chosen))), *(cell(chosen, peer) for peer in others)
            groups.setdefault(direction, []).append(line)
    columns = (Column("family", left=True, key=True), Column("rows", key=True), *(Column(f"/ {name}") for name in others))
    return Table("Ratios in short: geometric mean (least to most)", columns, groups)


def ceilings_table(record: Record) -> Table:
    """Return the ceilings of this machine, by the number of threads."""
    columns = (Column("working set", left=True, key=True), Column("at most"), Column("by", left=True))
    groups = {}
    for threads, ceiling in record["ceilings"].items():
        levels = {level["working_set"]: level for level in (*ceiling["bandwidth"]["levels"], ceiling["bandwidth"])}
        bytes_ = [(Cell(memory(size)), Cell(quantity(level["bytes_per_second"], "B/s")), Cell(level["by"]))
                  for size, level in sorted(levels.items())]
        flops = [(Cell(dtype), Cell(quantity(rate, "flop/s")), Cell(ceiling["flops_by"].get(dtype, "")))
                 for dtype, rate in ceiling["flops"].items()]
        groups[counted(int(threads), "thread")] = [*bytes_, *flops]
    return Table("Ceilings of this machine", columns, groups)


def tables(record: Record, chosen: Iterable[str] | None = None) -> Iterator[Table]:
    """Yield the tables of a record: ceilings, families, summary; only ceilings and the chosen families where some are chosen."""
    if record["ceilings"]:
        yield ceilings_table(record)
    others = peers(record)
    for family, rows in families(record).items():
        if chosen is None or family in chosen:
            yield family_table(family, rows, others)
    if others and chosen is None:
        yield summary_table(record)


# ----- Sentences -----
def machine(record: Record) -> str:
    """Name the machine, in a line."""
    info = record["info"]
    return f"{info['processor']}, {counted(info['node_cpus'], 'CPU')}, {info['instruction_set']['chosen']}, {info['platform']}"


def options(record: Record) -> str:
    """Name the options that a run was given."""
    settings = record["settings"]
    selection = {"--only": settings["only"], "--threads": ",".join(map(str, settings["threads"])), "--dtypes": ",".join(settings["dtypes"])}
    return " ".join(["--quick"] * settings["quick"] + [f"{name} {value}" for name, value in selection.items() if value])


def head(record: Record) -> Iterator[str]:
    """Yield lines on the program and the machine."""
    info, versions = record["info"], ", ".join(f"{name} {version}" for name, version in record["libraries"].items())
    yield f"cygrad {record['version']}, {record['started'][:16].replace('T', ' ')} {options(record)}".rstrip()
    yield machine(record)
    yield f"Python {info['python']['version']}, {versions}"
    yield "BLAS: " + " ".join(filter(None, (info["blas"]["name"], info["blas"]["version"], info["blas"]["kernels"])))


def notes(record: Record) -> Iterator[str]:
    """Yield the remarks for reading the tables."""
    rows = record["rows"]
    if any(row["ratios"] for row in rows):
        yield RATIOS
    if any(row["share"] for row in rows):
        yield CEILINGS
        levels = [level for ceiling in record["ceilings"].values() for level in (ceiling["bandwidth"], *ceiling["bandwidth"]["levels"])]
        stores = dict.fromkeys(f"{level['by']} ({level['write_allocate']})" for level in levels)
        yield f"Write-allocate, of the kernels that set these ceilings: {'; '.join(stores)}."
    if noisy := sum(bool(row["noise"]) for row in rows):
        yield f"{DOUBT} {noisy} of {counted(len(rows), 'row')}."
    yield from dict.fromkeys(row["note"] for row in rows if row["note"])
    if record["missing"]:
        absent = ", ".join(f"{name} ({how})" for name, how in record["missing"].items())
        yield f"Not compared with: {absent}."
    if not record["complete"]:
        yield "Not complete: Ctrl-C, or the end of its time, came before all rows were measured."
    yield f"{counted(len(rows), 'row')} in {record['seconds']:.0f} s."
