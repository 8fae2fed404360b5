"""Calls that no program repeats: of clocks, files and the state of Python, and of random numbers that are not the package's."""

from __future__ import annotations

import inspect
import os
import sys
from array import array
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad.compiling.frames import (
    is_code_of_package,
    is_imported,
    is_inside,
    is_of_library,
    is_of_python,
    names_in,
    runs_code_of_user,
    runs_for_user,
    writes_messages,
)

if TYPE_CHECKING:
    from types import FrameType

# Modules whose functions have another result each time, or reach files; and modules of Python and NumPy that draw numbers.
IMPURE = {"time", "random", "_random", "numpy.random", "datetime", "_socket", "mpi4py.MPI"}
FILES = {"posix", "nt", "io", "_io"}
# Functions of these that reach no file and no other process, or only lock.
HARMLESS = {"fspath", "_path_normpath", "_path_splitroot", "_path_splitroot_ex", "text_encoding", "cpu_count", "Get_rank", "Get_size",
            "__enter__", "__exit__", "acquire", "release"}
# Modules of Python's that are written in C, and whose functions have results of their arguments alone.
PURE = {prefix + name for prefix in ("", "_") for name in (
    "abc", "array", "binascii", "bisect", "builtins", "cmath", "codecs", "collections", "copy", "csv", "enum", "functools", "hashlib",
    "heapq", "itertools", "json", "math", "operator", "re", "sre", "statistics", "string", "struct", "types", "typing",
    "unicodedata", "warnings", "weakref", "zlib")}
STREAMS = {"zlib"}      # of these, the ones whose objects have a state
STATEFUL = sys.stdlib_module_names - PURE
# Functions that return or change a state of Python's or NumPy's, and are written in Python. NumPy has another `stack`.
REPORTS = {"active_count", "current_thread", "currentframe", "enumerate", "getEffectiveLevel", "getLevelName", "getLevelNamesMapping",
           "getbufsize", "geterr", "geterrcall", "getlocale", "get_printoptions", "gettempdir", "hasHandlers", "import_module",
           "isEnabledFor", "locate", "localeconv", "resolve_name", "inspect.stack"}
CHANGES = {"addHandler", "basicConfig", "disable", "filterwarnings", "removeHandler", "resetwarnings", "setLevel", "set_printoptions",
           "setbufsize", "seterr", "seterrcall", "simplefilter"}
REPORTS_OR_CHANGES = REPORTS | CHANGES
# Methods of containers written in C that change nothing.
READERS = {"copy", "count", "difference", "get", "index", "intersection", "isdisjoint", "issubset", "issuperset", "items", "keys",
           "symmetric_difference", "tobytes", "tolist", "union", "values"}
# Functions written in C that count the uses of an object by other code.
COUNTS = {"cache_info", "getweakrefcount", "getweakrefs"}


def reason_of_call(function: Any, frame: FrameType) -> str | None:
    """Return why a function written in C, which a frame calls, has another result each time; None: it has not."""
    if function is open and runs_for_user(frame, by_package=True):
        return "opens a file, which may have another content each time: give it as an argument"
    owner, name = function.__self__, function.__qualname__
    modules = modules_of(function)
    if function.__name__ in HARMLESS or owner is sys.stdout or owner is sys.stderr:
        return None
    if function is id or function is hash or name.rpartition(".")[2] in COUNTS:
        return of_state(name) if runs_code_of_user(frame) and frame.f_code.co_name != "__hash__" else None
    if modules & FILES and runs_for_user(frame, by_package=False):
        return of_state(name)
    if is_inside(frame.f_code) or writes_messages(frame) or is_imported(frame):
        return None
    if function.__name__ == "start_new_thread":
        return "starts a thread, in which it is not observed"
    reason = reason_of_c(function)
    return None if reason is None or not draws(function) and is_of_python(frame.f_code) else reason


def changes_container(function: Any) -> bool:
    """Return True for a method written in C that may change the container that it belongs to, or the form of an array."""
    owner, name = function.__self__, function.__name__
    if isinstance(owner, np.ndarray):
        return name in ("resize", "setflags")
    return isinstance(owner, (list, dict, set, deque, bytearray, array)) and name not in READERS


def modules_of(function: Any) -> set[str]:
    """Return the modules of a function written in C, and of the classes of the object that it belongs to."""
    owner = function.__self__
    kind = owner if isinstance(owner, type) else type(owner)
    return {function.__module__ or "builtins", *(base.__module__ for base in kind.__mro__)}


def draws(function: Any) -> bool:
    """Return True for a function written in C that draws random numbers, or reads a clock, a file or another process."""
    modules = modules_of(function)
    return bool(modules & IMPURE) or function in (os.urandom, np.fromfile) or any(module.startswith("numpy.random") for module in modules)


def reason_of_c(function: Any) -> str | None:
    """Return why a function written in C may have another result each time, wherever it is called; None: it has not."""
    reads_state = (any(module.partition(".")[0] in STATEFUL for module in modules_of(function)) or function is input
                   or type(function.__self__).__module__ in STREAMS)
    return of_state(function.__qualname__) if draws(function) or reads_state else None


def reason_of_report(frame: FrameType, caller: FrameType) -> str | None:
    """Return why no program repeats a call of Python's library or NumPy's by name: it returns or changes a state."""
    code = frame.f_code
    name = "inspect.stack" if code is inspect.stack.__code__ else code.co_name
    if name not in REPORTS_OR_CHANGES or not (is_of_library(code) or is_code_of_package(code)) or is_imported(frame):
        return None
    is_of_user = not (is_inside(caller.f_code) or is_of_python(caller.f_code))
    if not is_of_user or name.rpartition(".")[2] not in names_in(caller.f_code):       # a kernel has logged
        return None
    return of_state(name) if name in REPORTS else f"calls {name}, which changes a setting: do that outside of the function"


def of_state(name: str) -> str:
    """Return the words about a call of a state that may change."""
    return f"calls {name}, which has another result each time: give its result as an argument"
