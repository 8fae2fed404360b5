"""The code that runs while a function is observed: whose it is, and the names that it uses."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from types import CodeType, FrameType, ModuleType

INSIDE = (str(Path(__file__).parents[1]), np.__path__[0], "<frozen", "<formula of ")      # these are made of rows
PROGRAMS = str(Path(__file__).parents[1] / "bench")     # of the package, written as users do
KERNELS = str(Path(__file__).parents[1] / "_kernels")   # they read how many processors and how much memory the machine has
LIBRARY = os.path.dirname(os.__file__)      # Python's own, with the packages that are installed below it


def is_inside(code: CodeType) -> bool:
    """Say whether code is the package's, NumPy's, or part of Python itself."""
    if code.co_filename.startswith(PROGRAMS):
        return False
    return code.co_filename.startswith(INSIDE) or not code.co_filename.endswith(".py") and code.co_filename.startswith("cygrad/")


def is_of_python(code: CodeType) -> bool:
    """Say whether code is part of Python's library: its results depend on no state, but for calls that draw numbers or read clocks."""
    return code.co_filename.startswith(LIBRARY) and "site-packages" not in code.co_filename


def is_imported(frame: FrameType) -> bool:
    """Say whether a frame is part of an import."""
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith("<frozen importlib"):
        caller = caller.f_back
    return caller is not None


def is_of_user(module: ModuleType) -> bool:
    """Say whether a module is neither the package's, NumPy's nor Python's."""
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ not in sys.builtin_module_names
    return not file.startswith(INSIDE) and ("site-packages" in file or not file.startswith(LIBRARY))


def is_opened_by_user(frame: FrameType | None) -> bool:
    """Say whether a file is opened for code of the user: not by an import, a kernel, nor for the lines of a warning."""
    while frame is not None and (is_inside(frame.f_code) or is_of_python(frame.f_code)):
        if frame.f_globals.get("__name__") == "linecache" or frame.f_code.co_filename.startswith(KERNELS):
            return False
        frame = frame.f_back
    return frame is not None and not is_imported(frame)


def is_observed() -> bool:
    """Say whether a profiler or a debugger runs in this thread, in whose place no observation can be."""
    return sys.getprofile() is not None or sys.gettrace() is not None


def makes_named_tuple(frame: FrameType) -> bool:
    """Say whether a frame runs the function that Python writes for a class of named tuples."""
    return str(frame.f_globals.get("__name__")).startswith("namedtuple_")


def names_in(code: CodeType) -> set[str]:
    """Return the names that code uses, and its strings that may be names."""
    names, constants = {*code.co_names, code.co_name}, [*code.co_consts]
    for constant in constants:
        if isinstance(constant, str) and constant.isidentifier():
            names.add(constant)
        elif isinstance(constant, (tuple, frozenset)):
            constants += constant
    return names
