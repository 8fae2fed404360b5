"""Profiles as they are read: events with their children, averages of events, and lists of both."""

from __future__ import annotations

import gc
import logging
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar

from cygrad._core.profiling.recorder import Recorder
from cygrad.autograd.profiler_output import build_table, formatted_time, write_chrome_trace, write_stacks
from cygrad.operators._language.flops import flops as flops_of

__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval"]

_log = logging.getLogger(__name__)
_PACKAGE = str(Path(__file__).resolve().parent.parent) + "/"

# By the kind of an event: the prefix of its name, and torch's number of its scope.
_SHOWN = {"operator": ("aten::", 0), "function": ("", 0), "evaluation": ("autograd::engine::evaluate_function: ", 0), "backward": ("", 1),
          "user": ("", 7), "memory": ("", 0)}
_ENGINE_NODES = ("AccumulateGrad", "GraphRoot")
_TORCHS = {"_convert": "to", "T": "numpy_T"}     # names of operators that are others here


def shown_name(kind: str, name: str) -> str:
    """Return the name that torch has for an event."""
    if name in _ENGINE_NODES and kind in ("evaluation", "backward"):
        name = f"torch::autograd::{name}"
    return _SHOWN[kind][0] + (_TORCHS.get(name, name) if kind == "operator" else name)


def shapes_as_lists(shapes: Iterable[Any]) -> list[list[int]]:
    """Return the sizes of each operand; [] where it is no tensor, or several."""
    return [list(sizes) if isinstance(sizes, tuple) else [] for sizes in shapes]


# ----- Times and sums -----
class Interval:
    """From `start` to `end`, in microseconds."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def __repr__(self) -> str:
        return f"Interval({self.start}, {self.end})"

    def elapsed_us(self) -> float:
        """Return its length."""
        return self.end - self.start


def _text_of(attribute: str) -> Any:
    return property(lambda self: formatted_time(getattr(self, attribute)), doc=f"`{attribute}` with its unit.")


class FormattedTimesMixin:
    """Times as texts, and the numbers of devices, which are 0 here."""

    __slots__ = ()
    count: int
    cpu_time_total: float

    device_time: ClassVar[float] = 0
    device_time_total: ClassVar[float] = 0
    self_device_time_total: ClassVar[float] = 0
    self_device_memory_usage: ClassVar[int] = 0
    cuda_time: ClassVar[float] = 0
    cuda_time_total: ClassVar[float] = 0
    self_cuda_time_total: ClassVar[float] = 0
    cuda_memory_usage: ClassVar[int] = 0
    self_cuda_memory_usage: ClassVar[int] = 0

    cpu_time_str = _text_of("cpu_time")
    cpu_time_total_str = _text_of("cpu_time_total")
    self_cpu_time_total_str = _text_of("self_cpu_time_total")

    @property
    def cpu_time(self) -> float:
        """Microseconds of one call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0


# ----- Events -----
@dataclass(eq=False, slots=True)
class FunctionEvent(FormattedTimesMixin):
    """One event of a profile: an operator, a node of a backward, a range that the user named, or (`[memory]`) memory on its own.

    Times are microseconds since the profile began, memory is bytes taken less bytes given back, both with the children's. The signature is
    torch's: events of devices, remote ones and events of Python functions are not made here.
    """

    id: int
    name: str
    thread: int                                 # the system's number
    start_us: InitVar[float]
    end_us: InitVar[float]
    overload_name: str = ""
    fwd_thread: int | None = None               # of a node: the thread of the operator that made it, if that was seen
    input_shapes: list[list[int]] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)              # the innermost call first
    scope: int = 0                              # 0: forward, 1: backward, 7: the user's
    use_device: str | None = None
    cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    is_async: bool = False                      # ended by another thread: has neither parent nor children
    is_remote: bool = False
    sequence_nr: int = -1                       # the number of the node: that it makes, or that it is
    node_id: int = -1
    device_type: Any = "cpu"
    device_index: int = 0
    device_resource_id: int | None = None
    is_legacy: bool = False
    flops: int = 0
    trace_name: str | None = None               # None without a duration
    concrete_inputs: list[Any] = field(default_factory=list)    # numbers among the operands, None for others
    kwinputs: dict[str, Any] | None = None
    is_user_annotation: bool = False
    is_python_function: bool = False
    activity_type: str | None = None
    metadata_json: str | None = None
    flow_id: int | None = None
    flow_type: int | None = None
    flow_start: bool | None = None
    external_id: int = 0
    linked_correlation_id: int = 0
    extra_meta: Any = None
    structured_input_shapes: list[Any] = field(default_factory=list)    # with the shapes of lists of tensors
    structured_input_strides: list[Any] | None = None
    input_dtypes: list[str] | None = None
    python_id: int = -1
    python_parent_id: int = -1
    python_module_id: int = -1
    kind: str = field(default="operator", kw_only=True)                 # a key of _SHOWN
    time_range: Interval = field(init=False)
    cpu_time_total: float = field(init=False)   # microseconds, with the children's
    forward: FunctionEvent | None = field(default=None, init=False)     # of a node: the operator that made it, if that was seen
    cpu_parent: FunctionEvent | None = field(default=None, init=False)
    cpu_children: list[FunctionEvent] = field(default_factory=list, init=False)
    kernels: list[Any] = field(default_factory=list, init=False)        # of devices: none
    count: int = field(default=1, init=False)

    def __post_init__(self, start_us: float, end_us: float) -> None:
        self.time_range = Interval(start_us, end_us)
        self.cpu_time_total = self.time_range.elapsed_us()
        if self.device_resource_id is None:
            self.device_resource_id = self.thread

    @property
    def key(self) -> str:
        """The key of averages: the name."""
        return self.name

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds, without the children's."""
        return 0 if self.is_async else self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes, without the children's."""
        return 0 if self.is_async else self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        return (f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} start_us={self.time_range.start} "
                f"end_us={self.time_range.end} cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
                f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} is_async={self.is_async} "
                f"seq_nr={self.sequence_nr}>")


class FunctionEventAvg(FormattedTimesMixin):
    """Sums over the events of one key; `cpu_time` is their average. Shapes, stack and parent are the first event's."""

    node_id: ClassVar[int] = -1
    is_remote: ClassVar[bool] = False
    is_legacy: ClassVar[bool] = False
    use_device: ClassVar[str | None] = None
    device_memory_usage: ClassVar[int] = 0

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = None
        self.overload_name = ""
        self.stack: list[str] = []
        self.scope: int | None = None
        self.is_async = False
        self.is_user_annotation = False
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or the sums over others, of the same key; AssertionError for another key."""
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError(f"Expected other to be a FunctionEvent or FunctionEventAvg, but got {type(other).__name__}")
        if self.key is None:
            for name in ("key", "input_shapes", "stack", "scope", "is_async", "is_user_annotation", "cpu_parent", "cpu_children"):
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        return self._sum(other)

    def _sum(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        for name in ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "flops"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
                f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>")


class EventList(list[Any]):
    """The events of a profile in the order they began, or averages of them."""

    def __init__(self, events: Iterable[Any] = (), *, use_device: str | None = None, profile_memory: bool = False,
                 with_flops: bool = False) -> None:
        super().__init__(events)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops
        self._tree_built = False

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each without its children's."""
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
              max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80, header: str | None = None,
              top_level_events_only: bool = False, time_unit: str | None = None) -> str:
        """Return the events as a table; "" where there are none.

        `sort_by` names the attribute to sort by, the largest first: `cpu_time`, `cpu_time_total`, `self_cpu_time_total`,
        `cpu_memory_usage`, `self_cpu_memory_usage`, `count` or another attribute (of CUDA all are 0); None keeps the order. `row_limit`:
        how many rows (-1: all). `header` stands above. `top_level_events_only` leaves out events inside another event. `time_unit`: `"s"`,
        `"ms"` or `"us"` for all times. Columns may be `max_..._column_width` wide (None: as they need). AttributeError for an unknown
        `sort_by`.
        """
        return build_table(self, sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
                           top_level_events_only, time_unit, self._profile_memory, self._with_flops)

    def export_chrome_trace(self, path: Any) -> None:
        """Write the events as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing load; AttributeError for averages."""
        write_chrome_trace(self, path, {})

    def supported_export_stacks_metrics(self) -> list[str]:
        """Return the metrics of `export_stacks`."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: Any, metric: str) -> None:
        """Write a line for each event that has a stack: the calls, outermost first, and the metric, as flame graphs are made from.

        ValueError for an unknown metric.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}, got {metric!r}")
        write_stacks(self, path, metric)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """Return averages over the events of one name and, if asked for, of one list of shapes and of the same n innermost calls.

        Operators have no overloads here, so `group_by_overload_name` makes no difference. AssertionError for a list of averages.
        """
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages: call it on the events of a profile, once")
        sums: dict[tuple[str, ...], FunctionEventAvg] = {}
        for event in self:
            key = event.key, str(event.is_user_annotation), str(event.input_shapes) if group_by_input_shapes else ""
            sums.setdefault((*key, *event.stack[:max(group_by_stack_n, 0)]), FunctionEventAvg()).add(event)
        averages = EventList(sums.values(), use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops)
        for average in averages:
            average.stack = average.stack[:max(group_by_stack_n, 0)]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """Return the sums over all events, children too, whose key is "Total"."""
        total = FunctionEventAvg()
        total.key = "Total"
        for event in self:
            total._sum(event)
        return total


# ----- From records -----
def read_events(recorder: Recorder, origin: int, with_flops: bool, timeout: float | None) -> list[FunctionEvent]:
    """Return the events of a recorder, connected; times count from `origin` (ns). After `timeout` seconds the rest is left out.

    The garbage collector rests meanwhile: all that is made here stays, and looking at it again and again takes most of the time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        events = _without_repeats(_connected(recorder, origin, with_flops, timeout))
        _follow_nodes(events)
        _count_once(events)
    finally:
        if collects:
            gc.enable()
    return events


def _connected(recorder: Recorder, origin: int, with_flops: bool, timeout: float | None) -> list[FunctionEvent]:
    """Return an event for each record, each a child of the innermost one that contains it."""
    started = time.perf_counter_ns()
    rows = recorder.rows()
    events: list[FunctionEvent] = []
    places = _Places()
    for row in rows:
        if timeout is not None and time.perf_counter_ns() - started >= timeout * 1e9:
            _log.warning("Reading the profile timed out after %.3f seconds, returning partial results with %d of %d events",
                         timeout, len(events), len(rows))
            break
        identifier, kind, name, start, stop, thread, is_async, sequence_nr, _, operands, stack, memory = row
        shapes, values = operands or ((), ())
        title = shown_name(kind, name)
        events.append(FunctionEvent(
            identifier, title, thread, (start - origin) / 1000, (stop - origin) / 1000, scope=_SHOWN[kind][1], kind=kind,
            trace_name=None if kind == "memory" else title, is_user_annotation=kind == "user", sequence_nr=sequence_nr, is_async=is_async,
            input_shapes=shapes_as_lists(shapes),
            structured_input_shapes=[[list(item or ()) for item in sizes] if isinstance(sizes, list) else list(sizes or ())
                                     for sizes in shapes],
            concrete_inputs=list(values), stack=places.texts(stack or ()), cpu_memory_usage=memory,
            flops=flops_of(name, shapes) if with_flops and kind == "operator" else 0))
    parents = [row[8] for row in rows]
    for event, parent in zip(events, parents, strict=False):
        while parent >= 0 and (events[parent].is_async or events[parent].time_range.end < event.time_range.end):
            parent = parents[parent]
        if parent >= 0 and not event.is_async:
            event.cpu_parent = events[parent]
            events[parent].cpu_children.append(event)
    return events


def _without_repeats(events: Iterable[FunctionEvent]) -> list[FunctionEvent]:
    """Leave out events that are the only child of one of the same name, which takes on their children."""
    remaining = []
    for event in events:
        parent = event.cpu_parent
        if parent is None or parent.name != event.name or len(parent.cpu_children) > 1:
            remaining.append(event)
            continue
        parent.cpu_children = event.cpu_children
        for child in event.cpu_children:
            child.cpu_parent = parent
    return remaining


def _follow_nodes(events: Sequence[FunctionEvent]) -> None:
    """Give each node of a backward the operator that made it, whose calls are then the node's and all that it calls."""
    # Of the operators that began with a number the last used it up: the others made no node, or are composed.
    forward = {event.sequence_nr: event for event in events if event.sequence_nr >= 0 and event.kind in ("operator", "function")}
    nodes: dict[FunctionEvent | None, FunctionEvent] = {}       # the node that an event belongs to
    for event in events:
        if event.kind in ("backward", "evaluation"):
            event.forward = forward.get(event.sequence_nr)
            event.fwd_thread = 0 if event.forward is None else event.forward.thread
        node = event if event.kind == "backward" else nodes.get(event.cpu_parent)
        if node is not None:
            nodes[event] = node
            event.stack = [] if node.forward is None else node.forward.stack


def _count_once(events: Iterable[FunctionEvent]) -> None:
    """Keep the floating-point operations of the outermost operator that has any: its parts do the same ones."""
    counted = set()
    for event in events:
        if event.cpu_parent in counted:
            event.flops = 0
            counted.add(event)
        elif event.flops and event.kind == "operator":
            counted.add(event)


class _Places:
    """Formats calls as `path(line): name`, without the folder that `sys.path` names; this package's own calls are left out."""

    def __init__(self) -> None:
        self._folders = sorted((folder.rstrip("/") + "/" for folder in sys.path if folder), key=len, reverse=True)
        self._texts: dict[tuple[int, int], str] = {}       # by identity: equal code may come from several files

    def texts(self, stack: Iterable[tuple[CodeType, int]]) -> list[str]:
        """Return the text of each call, given as code and offset in it."""
        return [self._texts.get((id(code), offset)) or self._text(code, offset) for code, offset in stack
                if not code.co_filename.startswith((_PACKAGE, "<formula of"))]

    def _text(self, code: CodeType, offset: int) -> str:
        folder = next((folder for folder in self._folders if code.co_filename.startswith(folder)), "")
        line = next((line for start, end, line in code.co_lines() if start <= offset < end), None) or code.co_firstlineno
        text = f"{code.co_filename.removeprefix(folder)}({line}): {code.co_name}"
        return self._texts.setdefault((id(code), offset), text)
