"""The profiler: `profile` records a thread's computations, `record_function` names a part of it, `emit_itt` and `emit_nvtx` announce them
to other tools.

Operators are events by the names that torch has for them, `aten::add`, so code that looks for names, and texts about them,
carries over. While no thread is profiled an operator and a node ask one counter.
"""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from cygrad._core.levels.observers import Observer, current_observer
from cygrad._core.profiling.recorder import Announcer, Recorder
from cygrad.autograd.profiler_output import write_chrome_trace
from cygrad.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, read_events, shapes_as_lists, shown_name

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "kineto_available", "load_nvprof", "profile",
           "record_function"]


def kineto_available() -> bool:
    """Return True if torch's library of profiling is there: it is not, and `use_kineto` makes no difference.

    >>> import cygrad
    >>> cygrad.autograd.kineto_available()
    False
    """
    return False


class profile:
    """Record this thread's computations between entering and leaving the context: operators, nodes of a backward, named ranges.

    `record_shapes`: the shapes of operands. `with_flops`: floating-point operations of matrix products, `mul` and `add`; records shapes
    too. `profile_memory`: bytes that tensors take and give back. `with_stack`: where in the Python program an operator was called.
    `acc_events` lets the context be entered again and keeps the events of all times. `custom_trace_id_callback()` gives the id of the
    trace. After `post_processing_timeout_s` seconds of reading the records the rest is left out. `enabled=False` records nothing.

    Threads that an operator's backward starts count as this one, others are not seen. Recording shapes and stacks takes time, which
    counts as the time of the event around; the shares of the innermost events stay right. `with_modules` and `use_kineto` make no
    difference: there are no modules and there is no Kineto.

    RuntimeError where the thread is profiled already, and where results are asked for before the end. AssertionError for
    `use_cpu=False`: there is the CPU only, so `use_cuda=True` and `use_device="cuda"` warn and profile it.

    >>> import cygrad
    >>> x = cygrad.ones(2, 2, requires_grad=True)
    >>> with cygrad.autograd.profiler.profile() as prof:
    ...     with cygrad.autograd.profiler.record_function("forward"):
    ...         y = (x * x).sum()
    ...     y.backward()
    >>> [event.count for event in prof.key_averages() if event.key in ("forward", "MulBackward0")]
    [1, 1]
    >>> print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))   # doctest: +ELLIPSIS
    ----...
    """

    def __init__(self, enabled: bool = True, use_cuda: bool = False, record_shapes: bool = False, with_flops: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, use_kineto: bool = False, use_cpu: bool = True, *,
                 use_device: str | None = None, with_modules: bool = False, experimental_config: Any = None, acc_events: bool = False,
                 custom_trace_id_callback: Callable[[], str] | None = None, post_processing_timeout_s: float | None = None,
                 activity_filters: Any = None) -> None:
        self.enabled, self.acc_events = enabled, acc_events
        self.record_shapes, self.with_flops = record_shapes or with_flops, with_flops
        self.profile_memory, self.with_stack, self.with_modules = profile_memory, with_stack, with_modules
        self.use_cuda, self.use_device, self.use_cpu = False, None, True
        self.custom_trace_id_callback, self.post_processing_timeout_s = custom_trace_id_callback, post_processing_timeout_s
        self.entered, self.trace_id = False, ""
        self._recorder: Recorder | None = None      # while the context is open
        self._unread: list[Recorder] = []           # records are read when events are requested
        self._events = EventList(profile_memory=profile_memory, with_flops=with_flops)
        self._events._tree_built = True
        self._origin = self._wall_clock = 0
        if not enabled:
            return
        if use_cuda:
            warnings.warn("The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.", FutureWarning,
                          stacklevel=2)
        if use_cuda or use_device in ("cuda", "xpu", "hpu"):
            name = "CUDA" if use_cuda or use_device is None else use_device.upper()
            warnings.warn(f"{name} is not available, disabling {name} profiling", stacklevel=2)
        elif use_device not in (None, "cpu"):
            warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=2)
        if not use_cpu:
            raise AssertionError("No activities specified for the profiler: use_cpu=False leaves none" if use_kineto else
                                 "Device-only events supported only with Kineto (use_kineto=True), and there is no device but the CPU")
        if experimental_config is not None or activity_filters:
            raise ValueError("experimental_config and activity_filters are for Kineto, which cygrad has not: leave them out")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError(f"post_processing_timeout_s must be non-negative, got {post_processing_timeout_s}")

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered and not (self.acc_events and self._recorder is None):
            raise RuntimeError("Profiler context manager is not reentrant: make another profile")
        recorder = Recorder(self.record_shapes, self.profile_memory, self.with_stack)
        self.trace_id = self.create_trace_id()
        if not self.entered:
            self._origin, self._wall_clock = time.perf_counter_ns(), time.time_ns()
        recorder.start()
        self.entered, self._recorder = True, recorder
        return self

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        if not self.enabled:
            return
        if self._recorder is None:
            raise RuntimeError("Can't disable profiler when it's not running")
        recorder, self._recorder = self._recorder, None
        recorder.stop()
        self._unread.append(recorder)

    def default_trace_id(self) -> str:
        """Return a random id."""
        return f"{uuid.uuid4().int:032X}"

    def create_trace_id(self) -> str:
        """Return an id: the result of `custom_trace_id_callback`, or a random one."""
        return self.custom_trace_id_callback() if self.custom_trace_id_callback else self.default_trace_id()

    @property
    def _unfinished(self) -> bool:
        return self._recorder is not None or self.enabled and not self.entered

    @property
    def function_events(self) -> EventList:
        """The events in the order they began; RuntimeError before the end of the profile."""
        if self._unfinished:
            raise RuntimeError("Profiler didn't finish running: leave its context first")
        for recorder in self._unread:
            self._events.extend(read_events(recorder, self._origin, self.with_flops, self.post_processing_timeout_s))
        self._unread.clear()
        return self._events

    def __repr__(self) -> str:
        return "<unfinished cygrad.autograd.profile>" if self._unfinished else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished cygrad.autograd.profile>" if self._unfinished else str(self.function_events)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
              max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80, header: str | None = None,
              top_level_events_only: bool = False) -> str:
        """Return the events as a table; see `EventList.table`."""
        return self.function_events.table(sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
                                          top_level_events_only)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """Return averages over the events of one name and, if asked for, of the same shapes and the same n innermost calls."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """Return the sums over all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each without its children's."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: Any, metadata: dict[str, Any] | None = None, use_python_export: bool = False) -> None:
        """Write the events as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing load, compressed if `path` ends in `.gz`.

        Arrows lead from operators to the nodes they made. `metadata` stands beside the events. `use_python_export` makes no difference.
        """
        write_chrome_trace(self.function_events, path, {"trace_id": self.trace_id, "baseTimeNanoseconds": self._wall_clock,
                                                        **(metadata or {})})

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write a line for each event: the calls that led to it and the metric, as flame graphs are made from.

        AssertionError for a profile without `with_stack`.
        """
        events = self.function_events
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)


class record_function(ContextDecorator):
    """Name a range of the program in profiles: a context manager, and a decorator of functions.

    `args` is a text that stands among the range's operands where shapes are recorded.

    >>> import cygrad
    >>> with cygrad.autograd.profiler.profile() as prof:
    ...     with cygrad.autograd.profiler.record_function("label"):
    ...         y = cygrad.ones(2) * 2
    >>> [event.name for event in prof.function_events if event.scope == 7]
    ['label']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function(): argument 'name' (position 1) must be str, not {type(name).__name__}")
        if args is not None and not isinstance(args, str):
            raise TypeError(f"record_function(): argument 'args' (position 2) must be str, not {type(args).__name__}")
        self.name, self.args = name, args
        self._open: list[tuple[Observer | None, int]] = []

    def _recreate_cm(self) -> record_function:
        """Return the context of one call of a decorated function, so that calls may nest and run in several threads."""
        return record_function(self.name, self.args)

    def __enter__(self) -> record_function:
        observer = current_observer()
        self._open.append((observer, 0 if observer is None else observer.begin_range(self.name, (self.args,))))
        return self

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        if not self._open:
            raise AssertionError("Expected record to be set: __exit__() without __enter__()")
        observer, token = self._open.pop()
        if observer is not None:
            observer.end_range(token)


# ----- Ranges for other tools -----
class _Emitter:
    """Makes each event a range of another tool; its subclasses say which."""

    _tool: str
    _package: str

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes, self.entered = enabled, record_shapes, False
        self._announcer: Announcer | None = None

    def _functions(self) -> tuple[Callable[[str], object], Callable[[], object]]:
        """Return the functions that begin and end a range."""
        raise NotImplementedError

    def __enter__(self) -> _Emitter:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError(f"{self._tool} annotation context manager is not reentrant")
        try:
            push, pop = self._functions()
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"{type(self).__name__} needs the package {self._package}: pip install {self._package}",
                                      name=error.name) from None
        announcer = Announcer(lambda *event: push(_range_name(*event)), pop, self.record_shapes)
        announcer.start()
        self.entered, self._announcer = True, announcer
        return self

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        if not self.enabled:
            return
        if self._announcer is None:
            raise RuntimeError("Can't disable profiler when it's not running")
        announcer, self._announcer = self._announcer, None
        announcer.stop()


def _range_name(kind: str, name: str, sequence_nr: int, shapes: tuple[Any, ...] | None) -> str:
    """Return the name of a range: operators end in the number that their node gets (0: none), nodes in the one they have."""
    text = shown_name(kind, name)
    if kind in ("operator", "function"):
        text += f", seq = {max(sequence_nr, 0)}"
    elif sequence_nr >= 0:
        text += f", stashed seq = {sequence_nr}"
    return text if shapes is None else f"{text}, sizes = {shapes_as_lists(shapes)}"


class emit_itt(_Emitter):
    """Make each operator, node and named range of this thread a task that Intel's VTune Profiler shows; needs the package ittapi.

    Names end in `, seq = N`, where N is the number of the node that the operator makes if it makes one, or, of nodes of a backward, in
    `, stashed seq = M`, so that equal numbers belong together; with `record_shapes` in `, sizes = [[2, 3], []]` after that.
    `enabled=False` does nothing. ModuleNotFoundError without the package, RuntimeError where the thread is profiled already.
    """

    _tool, _package = "ITT", "ittapi"

    def _functions(self) -> tuple[Callable[[str], object], Callable[[], object]]:
        import ittapi
        domain = ittapi.domain("cygrad")
        return lambda name: ittapi.task_begin(domain, ittapi.string_handle(name)), lambda: ittapi.task_end(domain)


class emit_nvtx(_Emitter):
    """Make each operator, node and named range of this thread a range that NVIDIA's Nsight shows; needs the package nvtx, but no GPU.

    Names end as in `emit_itt`. `enabled=False` does nothing. ModuleNotFoundError without the package, RuntimeError where the
    thread is profiled already.
    """

    _tool, _package = "NVTX", "nvtx"

    def _functions(self) -> tuple[Callable[[str], object], Callable[[], object]]:
        import nvtx
        return nvtx.push_range, nvtx.pop_range


def load_nvprof(path: Any) -> EventList:
    """Refuse: nvprof's files describe the work of a GPU, which has no meaning here."""
    raise RuntimeError("load_nvprof has no meaning here: nvprof records the work of CUDA devices; use profile() on the CPU "
                       f"(path: {path})")
