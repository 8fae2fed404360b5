"""The record of a run, as JSON: the measurements and the machine. One program measures, others show; they share only this.

The types describe a record, for mypy and for readers of a file, which another may have written: `read` checks it against them, once,
so that no later code needs to. Bounds leave room for quotients and products of numbers within them, and for pictures.
"""
import json
from pathlib import Path
from typing import Annotated, NamedTuple, TypedDict

from cygrad._kernels.system.machine import whole_number
from cygrad.bench.schema import at_most, faults, one_of, printable, shown, within

FORMAT = 1      # counted up when a key goes away or changes its meaning
FORWARD, BOTH = "forward", "forward + backward"
OPERATOR, WORKLOAD = "operator", "workload"
LARGEST, MOST_THREADS = 2**63 - 1, 2**31 - 1
MOST_WORKS, MOST_FAMILIES = 1000, 50

Positive = Annotated[float, within(1e-30, 1e30)]      # divisors
Amount = Annotated[float, within(0.0, 1e30)]
Count = Annotated[int, within(0, LARGEST)]
Size = Annotated[int, within(1, LARGEST)]
Threads = Annotated[int, within(1, MOST_THREADS)]
Name = Annotated[str, at_most(100)]
Text = Annotated[str, at_most(100_000)]


def _count_of_threads(name: str) -> str:
    return "" if str(whole_number(name, 1, MOST_THREADS)) == name else f" is {shown(name)}, not a number of threads"


def _times_of_ratios(row: "Row") -> str:
    for name in ("cygrad", *row["ratios"]) if row["times"] or row["ratios"] else ():
        if name not in row["times"]:
            return f".times lacks {shown(name)}" + ", which .ratios has" * (name in row["ratios"])
    return ""


def _faults_of_all_rows(record: "Record") -> str:
    works = {(row["family"], row["work"]) for row in record["rows"]}
    for noun, most, names in (("works", MOST_WORKS, works), ("families", MOST_FAMILIES, {family for family, _ in works})):
        if len(names) > most:
            return f".rows has {len(names)} {noun}, more than {most}"
    lacking = sorted({row["threads"] for row in record["rows"]} - set(map(int, record["ceilings"])))
    return f".ceilings lacks '{lacking[0]}', the threads of a row" if lacking else ""


class Spread(TypedDict):
    """The median over the rounds, and the quartiles beside it."""

    median: Positive
    low: Positive
    high: Positive


class Time(Spread):
    """Seconds of one execution."""

    rounds: Size


class Level(TypedDict):
    """The most bytes that came and went in a second, of a working set: its kernel, and whether its stores read first."""

    working_set: Size
    bytes_per_second: Positive
    by: Text
    write_allocate: Text


class Bandwidth(Level):
    """The ceiling of memory, which is the largest working set, and the ceilings of the caches."""

    levels: Annotated[list[Level], at_most(100)]


class Ceiling(TypedDict):
    """The ceilings of this machine with some number of threads: bytes, and operations by dtype with their library."""

    bandwidth: Bandwidth
    flops: dict[Name, Positive]
    flops_by: dict[Name, Text]


class Row(TypedDict):
    """One piece of work that was measured: `times` by library, `ratios` of cygrad's time to a peer's, `share` of each ceiling.

    `noise` has sentences on doubtful times, `note` a remark, `error` the failure of the benchmark.
    """

    work: Name
    family: Name
    kind: Annotated[str, one_of(OPERATOR, WORKLOAD)]
    dtype: Name
    size: Size
    shape: Text
    direction: Annotated[str, one_of(FORWARD, BOTH)]
    threads: Threads
    bytes: Count
    flops: Count
    times: dict[Name, Time]
    ratios: dict[Name, Spread]
    share: dict[Name, Amount]
    noise: list[Text]
    note: Text | None
    error: Text | None


class Python(TypedDict):
    version: Name


class InstructionSet(TypedDict):
    chosen: Name


class Blas(TypedDict):
    name: Name
    version: Name | None
    kernels: Name | None


class Info(TypedDict):
    """The result of `cygrad.config.describe()`: some of it is shown, all of it compared."""

    processor: Name
    node_cpus: Threads
    platform: Text
    python: Python
    instruction_set: InstructionSet
    blas: Blas


class Selection(TypedDict):
    """The arguments of a run, and the seconds it could take."""

    quick: bool
    only: Text
    threads: list[Threads]
    dtypes: list[Name]
    libraries: list[Name]
    seconds: Amount


class Record(TypedDict):
    """A run; ceilings by the number of threads, as text; `complete` unless rows were left out."""

    format: int
    version: Name
    started: Name
    seconds: Amount
    complete: bool
    info: Info
    libraries: dict[Name, Name]
    missing: dict[Name, Text]
    settings: Selection
    ceilings: Annotated[dict[Annotated[str, _count_of_threads], Ceiling], at_most(1024)]
    rows: Annotated[list[Annotated[Row, _times_of_ratios]], at_most(100_000)]
    errors: list[Text]


class Key(NamedTuple):
    """The key of a row among all of its run."""

    family: str
    work: str
    dtype: str
    direction: str
    threads: int
    size: int


def key(row: Row) -> Key:
    """Return the key of a row among all of its run."""
    return Key(row["family"], row["work"], row["dtype"], row["direction"], row["threads"], row["size"])


def has(row: Row, text: str) -> bool:
    """Return True if the work or the family of a row contains a text."""
    return text in row["work"] or text in row["family"]


class RecordError(ValueError):
    """A file is no record that this version reads."""


# ----- Files -----
def write(record: Record, file: Path) -> None:
    """Write a record, a row a line."""
    rows = ",\n  ".join(map(json.dumps, record["rows"]))
    values = {name: f"[\n  {rows}\n ]" if name == "rows" else json.dumps(value) for name, value in record.items()}
    lines = ",\n".join(f' "{name}": {value}' for name, value in values.items())
    file.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def read(file: Path) -> Record:
    """Return the record in a file; RecordError names the damage, OSError the reason why it cannot be read."""
    try:
        result = printable(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:   # no text, or lists in lists without end
        raise RecordError(f"{file} is no record of a benchmark: {error}") from None
    if not isinstance(result, dict) or "format" not in result:
        raise RecordError(f"{file} is no record of a benchmark: `python -m cygrad bench --json FILE` writes one")
    if result["format"] != FORMAT:
        raise RecordError(f"{file} has format {shown(result['format'])}, this version of cygrad reads {FORMAT}: measure again, or read it "
                          f"by the version that wrote it ({shown(result.get('version', 'unknown'))})")
    for fault in faults(result, Annotated[Record, _faults_of_all_rows], "record"):
        raise RecordError(f"{file} is damaged: {fault}")
    return result    # type: ignore[return-value]
