"""Calls of functions written in C that no program repeats: of clocks and files, and of random numbers that are not the package's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cygrad.compiling.frames import is_imported, is_inside, is_of_python, is_opened_by_user

if TYPE_CHECKING:
    from types import FrameType

# Modules whose functions have another result each time, or reach files; and modules of Python and NumPy that draw numbers.
IMPURE = {"time", "random", "_random", "numpy.random", "datetime", "_socket"}
FILES = {"posix", "nt", "io", "_io"}        # which Python's own modules look into, too


def reason_of_call(function: Any, frame: FrameType) -> str | None:
    """Return why a function that a frame calls has another result each time; None: it has not."""
    if function is open and is_opened_by_user(frame):
        return "opens a file, which may have another content each time: give it as an argument"
    if is_inside(frame.f_code):
        return None
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or type(owner).__module__
    draws = module in IMPURE or type(owner).__module__.startswith("numpy.random") or getattr(owner, "__name__", "") in IMPURE
    if (draws or function is os.urandom or module in FILES and not is_of_python(frame.f_code)) and not is_imported(frame):
        name = getattr(function, "__qualname__", str(function))
        return f"calls {name}, which has another result each time: give its result as an argument"
    return None
