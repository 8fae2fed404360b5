"""Torch's questions about CUDA, answered as by a build of torch without it: there is none, there are no devices, nothing is in use.

Functions that compute there are not here; functions that need a device raise torch's AssertionError. Streams and events can be made, and
change nothing: each computation here is done when its call returns.

>>> import cygrad
>>> device = cygrad.device("cuda" if cygrad.cuda.is_available() else "cpu")
>>> device
device(type='cpu')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cygrad._core.memory.storage import OutOfMemoryError as OutOfMemoryError
from cygrad._imports import at_first_use as _at_first_use
from cygrad.device import resolve_device

__getattr__, __dir__ = _at_first_use(globals(), {
    "profiler": "cygrad.cuda.profiler", **dict.fromkeys(("Event", "Stream", "StreamContext", "stream"), "cygrad.cuda.streams")})


def _function(name: str, answer: Callable[[], Any], doc: str) -> Callable[..., Any]:
    """Return a function that gives one answer, for any device."""
    def function(*arguments: Any, **keywords: Any) -> Any:
        return answer()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _no(name: str) -> Callable[..., bool]:
    return _function(name, bool, "Say no: there is no CUDA.")


def _zero(name: str) -> Callable[..., int]:
    return _function(name, int, "Return 0: there is no CUDA.")


def _nothing(name: str) -> Callable[..., None]:
    return _function(name, lambda: None, "Do nothing: there is no CUDA.")


def _refusal(name: str) -> Callable[..., Any]:
    return _function(name, lambda: resolve_device("cuda"), "Raise AssertionError: there is no CUDA.")


is_available = _no("is_available")
is_initialized = _no("is_initialized")
is_bf16_supported = _no("is_bf16_supported")
is_current_stream_capturing = _no("is_current_stream_capturing")

device_count = _zero("device_count")
memory_allocated = _zero("memory_allocated")
max_memory_allocated = _zero("max_memory_allocated")
memory_reserved = _zero("memory_reserved")
max_memory_reserved = _zero("max_memory_reserved")

empty_cache = _nothing("empty_cache")
manual_seed = _nothing("manual_seed")
manual_seed_all = _nothing("manual_seed_all")
seed = _nothing("seed")
seed_all = _nothing("seed_all")
reset_peak_memory_stats = _nothing("reset_peak_memory_stats")
reset_max_memory_allocated = _nothing("reset_max_memory_allocated")

init = _refusal("init")
synchronize = _refusal("synchronize")
set_device = _refusal("set_device")
current_device = _refusal("current_device")
current_stream = _refusal("current_stream")
get_device_name = _refusal("get_device_name")
get_device_capability = _refusal("get_device_capability")
get_device_properties = _refusal("get_device_properties")


def get_rng_state_all() -> list[Any]:
    """Return the state of the generator of each device, of which there is none."""
    return []


def set_rng_state_all(new_states: list[Any]) -> None:
    """Take the result of `get_rng_state_all`; AssertionError for the state of a device."""
    if new_states:
        resolve_device("cuda")
