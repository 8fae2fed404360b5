"""Events of a profile as a table, as a trace for Chrome and Perfetto, and as stacks for flame graphs."""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

_WIDTH = 12         # of a column of numbers
_SPACING = "  "
_KIB = 1024
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0}


# ----- Numbers -----
def formatted_time(microseconds: float, unit: str | None = None) -> str:
    """Return a time with its unit, the largest that suits it unless one is given."""
    if unit not in _MICROSECONDS:
        unit = next((unit for unit, size in _MICROSECONDS.items() if microseconds >= size), "us")
    return f"{microseconds / _MICROSECONDS[unit]:.3f}{unit}"


def attribute_of(metric: str) -> str:
    """Return the attribute of a metric or a key to sort by; the metrics of all devices are one."""
    return metric.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")


def _share(part: float, total: float) -> str:
    return f"{part * 100 / total:.2f}%" if total else "NaN"


def _formatted_memory(nbytes: int) -> str:
    for unit, size in (("GB", _KIB**3), ("MB", _KIB**2), ("KB", _KIB)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


# ----- Tables -----
class _Column(NamedTuple):
    title: str
    width: int
    cell: Callable[[Any], Any]
    align: str = ">"


def _shortened(text: str, width: int | None) -> str:
    return text if width is None or len(text) < width - 3 else text[:width - 3] + "..."


def _trimmed(path: str, width: int) -> str:
    """Return the end of a path, which says more than its beginning."""
    return path if len(path) <= width else "..." + path[len(path) - width + 3:]


def _flops_column(events: Sequence[Any]) -> list[_Column]:
    """Return the column of operations, in the unit that suits the smallest number; none where there are no numbers."""
    known = [event.flops for event in events if event.flops > 0]
    if not known:
        return []
    power = min(int(math.log10(min(known)) / 3), 5)
    return [_Column(f"Total {('', 'K', 'M', 'G', 'T', 'P')[power]}FLOPs", _WIDTH,
                    lambda event: f"{event.flops / 1000**power:8.3f}" if event.flops > 0 else "--")]


def _columns(events: Sequence[Any], total: float, name_width: int | None, shapes_width: int | None, unit: str | None,
             profile_memory: bool, with_flops: bool) -> list[_Column]:
    widest = max(len(event.key) for event in events) + 4
    columns = [
        _Column("Name", widest if name_width is None else min(widest, name_width), lambda event: _shortened(event.key, name_width)),
        _Column("Self CPU %", _WIDTH, lambda event: _share(event.self_cpu_time_total, total)),
        _Column("Self CPU", _WIDTH, lambda event: formatted_time(event.self_cpu_time_total, unit)),
        _Column("CPU total %", _WIDTH, lambda event: 0 if event.is_async else _share(event.cpu_time_total, total)),
        _Column("CPU total", _WIDTH, lambda event: formatted_time(event.cpu_time_total, unit)),
        _Column("CPU time avg", _WIDTH, lambda event: formatted_time(event.cpu_time, unit)),
    ]
    if profile_memory:
        columns += [_Column("CPU Mem", _WIDTH, lambda event: _formatted_memory(event.cpu_memory_usage)),
                    _Column("Self CPU Mem", _WIDTH, lambda event: _formatted_memory(event.self_cpu_memory_usage))]
    columns.append(_Column("# of Calls", _WIDTH, lambda event: event.count))
    if any(event.input_shapes for event in events):
        widest = max(len(str(event.input_shapes)) for event in events) + 4
        width = widest if shapes_width is None else min(widest, shapes_width)
        columns.append(_Column("Input Shapes", width, lambda event: str(event.input_shapes)[:width]))
    return columns + (_flops_column(events) if with_flops else [])


def _source_width(events: Iterable[Any], limit: int | None) -> int:
    """Return the width of the column of stacks, 0 where there are none."""
    widest = max((len(entry) for event in events for entry in event.stack), default=-4) + 4
    return widest if limit is None else min(widest, limit)


def build_table(events: Sequence[Any], sort_by: str | None, row_limit: int, max_src_column_width: int | None,
                max_name_column_width: int | None, max_shapes_column_width: int | None, header: str | None,
                top_level_events_only: bool, time_unit: str | None, profile_memory: bool, with_flops: bool) -> str:
    """Return a table of events or averages, as torch lays it out; see `EventList.table`."""
    if not events:
        return ""
    if sort_by is not None:
        attribute = attribute_of(sort_by)
        if not hasattr(events[0], attribute):
            raise AttributeError(f"'{type(events[0]).__name__}' object has no attribute '{attribute}': sort by cpu_time, cpu_time_total, "
                                 "self_cpu_time_total, cpu_memory_usage, self_cpu_memory_usage or count")
        events = sorted(events, key=lambda event: getattr(event, attribute), reverse=True)
    total = sum(event.self_cpu_time_total for event in events)
    columns = _columns(events, total, max_name_column_width, max_shapes_column_width, time_unit, profile_memory, with_flops)
    source_width = _source_width(events, max_src_column_width)
    if source_width:
        columns.append(_Column("Source Location", source_width, lambda event: _trimmed(event.stack[0], source_width) if event.stack else "",
                               "<"))

    def row(cells: Iterable[Any]) -> str:
        return "".join(f"{cell!s:{column.align}{column.width}}{_SPACING}" for column, cell in zip(columns, cells, strict=True))

    double_line = "=" * (sum(column.width + len(_SPACING) for column in columns) - len(_SPACING))
    line = row("-" * column.width for column in columns)
    lines = [] if header is None else [double_line, header]
    lines += [double_line, "This report only display top-level ops statistics"] if top_level_events_only else []
    lines += [line, row(column.title for column in columns), line]
    shown = [event for event in events if not top_level_events_only or event.cpu_parent is None]
    for event in shown if row_limit < 0 else shown[:row_limit]:
        lines.append(row(column.cell(event) for column in columns))
        if source_width:
            blank = [""] * (len(columns) - 1)
            lines += [row([*blank, _trimmed(entry, source_width)]) for entry in (*event.stack[1:], "")]
    lines += [line, f"Self CPU time total: {formatted_time(total, time_unit)}"]
    return "\n".join(lines) + "\n"


# ----- Traces -----
def _trace_records(events: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the records of the Trace Event Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU."""
    process = os.getpid()
    yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "python"}}
    for thread in dict.fromkeys(event.thread for event in events):
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": f"thread {thread}"}}
    for event in events:
        place = {"pid": process, "tid": event.thread, "ts": event.time_range.start}
        if event.kind == "memory":
            yield {"ph": "i", "cat": "cpu_instant_event", "name": event.name, "s": "t", **place, "args": {"Bytes": event.cpu_memory_usage}}
            continue
        yield {"ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "name": event.trace_name, **place,
               "dur": event.time_range.elapsed_us(), "args": _trace_arguments(event)}
        if event.kind == "backward" and event.forward is not None:
            arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.id, "pid": process}
            yield {"ph": "s", **arrow, "tid": event.forward.thread, "ts": event.forward.time_range.start}
            yield {"ph": "f", **arrow, "tid": event.thread, "ts": event.time_range.start, "bp": "e"}


def _trace_arguments(event: Any) -> dict[str, Any]:
    arguments = {"External id": event.id}
    if event.sequence_nr >= 0:
        arguments["Sequence number"] = event.sequence_nr
    if event.fwd_thread:
        arguments["Fwd thread id"] = event.fwd_thread
    if event.structured_input_shapes:
        arguments |= {"Input Dims": event.structured_input_shapes, "Concrete Inputs": [str(value) if value is not None else ""
                                                                                      for value in event.concrete_inputs]}
    if event.stack:
        arguments["Call stack"] = ";\n".join(reversed(event.stack))
    if event.flops:
        arguments["FLOPs"] = event.flops
    if event.cpu_memory_usage:
        arguments["Bytes"] = event.cpu_memory_usage
    return arguments


def write_chrome_trace(events: Sequence[Any], path: Any, header: dict[str, Any]) -> None:
    """Write a trace, compressed if the path ends in `.gz`; `header` stands beside the events."""
    if any(not hasattr(event, "time_range") for event in events):
        raise AttributeError(f"'{type(events[0]).__name__}' object has no attribute 'time_range': averages have no place in time, "
                             "export the profile")
    with (gzip.open if str(path).endswith(".gz") else open)(path, "wt", encoding="utf-8") as file:
        file.write(json.dumps({"schemaVersion": 1, "displayTimeUnit": "ms", **header})[:-1])
        file.write(', "traceEvents": [\n')
        for number, record in enumerate(_trace_records(events)):
            file.write((",\n" if number else "") + json.dumps(record))
        file.write("\n]}\n")


# ----- Stacks -----
def write_stacks(events: Iterable[Any], path: Any, metric: str) -> None:
    """Write a line for each event: its calls, outermost first, joined by `;`, and the metric."""
    spaces = str.maketrans(" ;\t\n", "____")
    with open(path, "w", encoding="utf-8") as file:
        for event in events:
            value = int(getattr(event, attribute_of(metric)))
            if event.stack and value > 0:
                file.write(";".join(entry.translate(spaces) for entry in reversed(event.stack)) + f" {value}\n")
