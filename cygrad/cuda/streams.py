"""Streams and events of CUDA, for programs that name them: they change nothing, since each computation is done when its call returns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from cygrad.device import CPU, resolve_device

if TYPE_CHECKING:
    from cygrad.device import device as Device


class Event:
    """A mark in a stream. Changes nothing: there is no CUDA, so all work before it is done when it is recorded.

    With `enable_timing` it notes the time of its record, for `elapsed_time`.

    >>> import cygrad
    >>> start, end = (cygrad.cuda.Event(enable_timing=True) for _ in range(2))
    >>> start.record(), end.record()
    (None, None)
    >>> start.elapsed_time(end) >= 0
    True
    """

    device = CPU

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False) -> None:
        self._is_timed = bool(enable_timing)
        self._time: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Note the time."""
        self._time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Do nothing: all work is done."""

    def synchronize(self) -> None:
        """Do nothing: all work is done."""

    def query(self) -> bool:
        """Say yes: all work is done."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between the records of this event and of another."""
        if not isinstance(end_event, Event):
            raise TypeError(f"elapsed_time(): argument 'end_event' (position 1) must be Event, not {type(end_event).__name__}")
        if not self._is_timed or not end_event._is_timed:
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return 1000 * (end_event._time - self._time)


class Stream:
    """A queue of work on a device. Changes nothing: there is the CPU only, and each computation is done when its call returns.

    >>> import cygrad
    >>> with cygrad.cuda.stream(cygrad.cuda.Stream()) as nothing:
    ...     x = cygrad.ones(2)
    """

    def __init__(self, device: str | Device | None = None, priority: int = 0, **options: Any) -> None:
        self.device = resolve_device(device)
        self.priority = priority

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, or a new one, and return it."""
        mark = Event() if event is None else event
        mark.record(self)
        return mark

    def wait_event(self, event: Event) -> None:
        """Do nothing: all work is done."""

    def wait_stream(self, stream: Stream) -> None:
        """Do nothing: all work is done."""

    def synchronize(self) -> None:
        """Do nothing: all work is done."""

    def query(self) -> bool:
        """Say yes: all work is done."""
        return True


class StreamContext:
    """The context manager that `stream` returns. Changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"stream(): argument 'stream' (position 1) must be Stream, not {type(stream).__name__}")
        self.stream = stream

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *error: object) -> None:
        """Do nothing."""


def stream(stream: Stream | None) -> StreamContext:
    """Return a context manager that selects a stream. Changes nothing.

    >>> import cygrad
    >>> with cygrad.cuda.stream(None):
    ...     x = cygrad.ones(2)
    """
    return StreamContext(stream)
