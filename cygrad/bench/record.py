"""The record of a run, as JSON: what was measured, on what. One program measures, others show; this is all that they share.

The types say what a record holds, for mypy and for whoever reads a file: `read` checks it against them.
"""
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

FORMAT = 1      # counted up when a key goes away or changes its meaning
Positive = Annotated[float, "above 0"]      # what is divided by


class Spread(TypedDict):
    """The median over the rounds, and the quartiles beside it."""

    median: Positive
    low: Positive
    high: Positive


class Time(Spread):
    """Seconds of one execution."""

    rounds: int


class Level(TypedDict):
    """The most bytes that came and went in a second, of a working set: by what kernel, and whether its stores read what they overwrite."""

    working_set: int
    bytes_per_second: Positive
    by: str
    write_allocate: str


class Bandwidth(Level):
    """That of memory, which is the largest working set; beside it those of the caches."""

    levels: list[Level]


class Ceiling(TypedDict):
    """What this machine can do at most, with some number of threads: bytes, and operations by dtype with what did them."""

    bandwidth: Bandwidth
    flops: dict[str, Positive]
    flops_by: dict[str, str]


class Row(TypedDict):
    """One piece of work that was measured: `times` by library, `ratios` of cygrad's time to a peer's, `share` of each ceiling.

    `noise` says in sentences what makes the times doubtful, `note` what one should know, `error` what the benchmark did wrong.
    """

    work: str
    family: str
    kind: str
    dtype: str
    size: int
    shape: str
    direction: str
    threads: int
    bytes: int
    flops: int
    times: dict[str, Time]
    ratios: dict[str, Spread]
    share: dict[str, float]
    noise: list[str]
    note: str | None
    error: str | None


class Python(TypedDict):
    version: str


class InstructionSet(TypedDict):
    chosen: str


class Blas(TypedDict):
    name: str
    version: str | None
    kernels: str | None


class Info(TypedDict):
    """What `cygrad.config.describe()` said: some of it is shown, all of it compared."""

    processor: str
    node_cpus: int
    platform: str
    python: Python
    instruction_set: InstructionSet
    blas: Blas


class Selection(TypedDict):
    """What a run was asked for, and the seconds it could take."""

    quick: bool
    only: str
    threads: list[int]
    dtypes: list[str]
    libraries: list[str]
    seconds: float


class Record(TypedDict):
    """A run; ceilings by the number of threads, as text; `complete` unless rows were left out."""

    format: int
    version: str
    started: str
    seconds: float
    complete: bool
    info: Info
    libraries: dict[str, str]
    missing: dict[str, str]
    settings: Selection
    ceilings: dict[str, Ceiling]
    rows: list[Row]
    errors: list[str]


class Key(NamedTuple):
    """What tells a row from all others of its run."""

    family: str
    work: str
    dtype: str
    direction: str
    threads: int
    size: int


def key(row: Row) -> Key:
    """Return what tells a row from all others of its run."""
    return Key(row["family"], row["work"], row["dtype"], row["direction"], row["threads"], row["size"])


def has(row: Row, text: str) -> bool:
    """Say whether the work or the family of a row contains a text."""
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
    """Return the record in a file; RecordError says what is wrong with it, OSError why it cannot be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:   # what is no text, or lists in lists without end
        raise RecordError(f"{file} is no record of a benchmark: {error}") from None
    if not isinstance(found, dict) or "format" not in found:
        raise RecordError(f"{file} is no record of a benchmark: `python -m cygrad bench --json FILE` writes one")
    if found["format"] != FORMAT:
        raise RecordError(f"{file} has format {found['format']}, this version of cygrad reads {FORMAT}: measure again, or read it by the "
                          f"version that wrote it ({found.get('version', 'unknown')})")
    for fault in _faults(found, Record, "record"):
        raise RecordError(f"{file} is damaged: {fault}")
    return found    # type: ignore[return-value]


def _faults(value: Any, kind: Any, place: str) -> Iterator[str]:
    """Say where a value is not of the kind that a declaration names."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        if not isinstance(value, dict):
            yield f"{place} is no object"
            return
        yield from (f"{place} lacks {name!r}" for name in sorted(kind.__required_keys__ - value.keys()))
        for name, declared in get_type_hints(kind, include_extras=True).items():
            if name in value:
                yield from _faults(value[name], declared, f"{place}.{name}")
    elif origin is Annotated:
        faults = [*_faults(value, inner[0], place)]
        yield from faults or ([] if value > 0 else [f"{place} is {value!r}"])
    elif origin is UnionType:
        if all(any(_faults(value, each, place)) for each in inner):
            yield f"{place} is {value!r}"
    elif origin in (dict, list):
        if not isinstance(value, origin):
            yield f"{place} is {value!r}"
            return
        items: Iterable[tuple[Any, Any]] = value.items() if origin is dict else enumerate(value)
        for name, element in items:
            yield from _faults(element, inner[-1], f"{place}.{name}")
    elif kind is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            yield f"{place} is {value!r}"
    elif kind is not Any and (not isinstance(value, kind) or isinstance(value, bool) and kind is int):
        yield f"{place} is {value!r}"
