"""The code that runs while a function is observed: whose it is, the names that it uses, and the modules that it imports."""

from __future__ import annotations

import dis
import functools
import importlib.util
import inspect
import os
import re
import signal
import sys
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad.autograd.function import FunctionCtx

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType, ModuleType

PACKAGE = os.path.join(str(Path(__file__).parents[1]), "")
NUMPY = os.path.join(np.__path__[0], "")
SCIPY = os.path.join(os.path.dirname(np.__path__[0]), "scipy", "")
INSIDE = (PACKAGE, NUMPY, "<frozen", "<formula of ")      # these are made of rows
PROGRAMS = os.path.join(PACKAGE, "bench", "")     # of the package, written as users do
KERNELS = os.path.join(PACKAGE, "_kernels", "")   # they read how many processors and how much memory the machine has
CAPTURES = os.path.join(PACKAGE, "compiling", "captures.py")
IMPORTS = "<frozen importlib"
LIBRARY = os.path.join(os.path.dirname(os.__file__), "")      # Python's own, with the packages that are installed below it
WRITERS = {"linecache", "logging", "traceback", "warnings"}     # modules that write messages, which the first call does alone
LOOKUPS = {"getattr", "hasattr", "setattr", "delattr", "vars", "dir", "attrgetter", "methodcaller", "__dict__", "__getattribute__",
           "__setattr__", "__dir__", "__getstate__", "__reduce__", "__reduce_ex__"}      # code with these may name any attribute


# ----- Whose code it is -----
def is_code_of_package(code: CodeType) -> bool:
    """Return True for code of the package that is not written as users do."""
    return code.co_filename.startswith(PACKAGE) and not code.co_filename.startswith(PROGRAMS)


def is_inside(code: CodeType) -> bool:
    """Return True for code of the package, NumPy, or the core of Python."""
    if code.co_filename.startswith(PACKAGE):
        return is_code_of_package(code)
    return code.co_filename.startswith(INSIDE) or not code.co_filename.endswith(".py") and code.co_filename.startswith("cygrad/")


def is_of_python(code: CodeType) -> bool:
    """Return True for code of Python's library: its results depend on no state, but for calls that draw numbers or read clocks."""
    return code.co_filename.startswith(LIBRARY) and "site-packages" not in code.co_filename


def is_of_library(code: CodeType) -> bool:
    """Return True for code of Python's library or NumPy, which reads the attributes of objects that it is called with."""
    return is_of_python(code) or code.co_filename.startswith((NUMPY, "<frozen"))


def is_called_by_package(frame: FrameType | None) -> bool:
    """Return True if a frame, of code of SciPy, serves a call by the package."""
    while frame is not None and frame.f_code.co_filename.startswith(SCIPY):
        frame = frame.f_back
    return frame is not None and is_code_of_package(frame.f_code)


def is_of_user(module: ModuleType) -> bool:
    """Return True if a module is neither the package's, NumPy's nor Python's."""
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ not in sys.builtin_module_names
    return not file.startswith(INSIDE) and ("site-packages" in file or not file.startswith(LIBRARY))


def frames_of_call(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and those that have called it, up to the call that is captured: callers of that are no part of it."""
    while frame is not None and frame.f_code.co_filename != CAPTURES:
        yield frame
        frame = frame.f_back


def is_imported(frame: FrameType) -> bool:
    """Return True if a frame is part of an import within the call."""
    return any(caller.f_code.co_filename.startswith(IMPORTS) for caller in frames_of_call(frame.f_back))


def writes_messages(frame: FrameType) -> bool:
    """Return True if a frame runs code of a module that writes messages."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in WRITERS


def runs_for_user(frame: FrameType | None, by_package: bool) -> bool:
    """Return True for code of the user, and of Python and NumPy that it has called: not for an import, or a message.

    by_package: also where the package calls it for the user, though not for a kernel.
    """
    while frame is not None and (is_inside(frame.f_code) or is_of_python(frame.f_code)):
        file = frame.f_code.co_filename
        if writes_messages(frame) or file.startswith((IMPORTS, KERNELS)) or file.startswith(PACKAGE) and not by_package:
            return False
        frame = frame.f_back
    return frame is not None and not is_imported(frame)


def is_observed() -> bool:
    """Return True if a profiler or a debugger runs in this thread, in whose place no observation can be."""
    return sys.getprofile() is not None or sys.gettrace() is not None


def makes_named_tuple(frame: FrameType) -> bool:
    """Return True if a frame runs the function that Python writes for a class of named tuples."""
    return frame.f_code.co_filename == "<string>" and str(frame.f_globals.get("__name__")).startswith("namedtuple_")


def runs_code_of_user(frame: FrameType) -> bool:
    """Return True if a frame runs code that is neither the package's, NumPy's nor Python's, nor makes a named tuple."""
    return not (is_inside(frame.f_code) or is_of_python(frame.f_code) or makes_named_tuple(frame))


def serves_user(frame: FrameType) -> bool:
    """Return True if a frame runs code of Python's library that code of the user has called, but for imports."""
    return is_of_python(frame.f_code) and frame.f_back is not None and runs_code_of_user(frame.f_back) and not is_imported(frame)


# ----- The names in it -----
@functools.lru_cache(maxsize=1024)
def instructions_of(code: CodeType) -> list[dis.Instruction]:
    """Return the instructions of code."""
    return [*dis.get_instructions(code)]


@functools.lru_cache(maxsize=1024)
def names_in(code: CodeType) -> frozenset[str]:
    """Return the names that code uses, and its strings that may be names, or have them as the fields of a format."""
    names, constants = {*code.co_names, code.co_name}, [*code.co_consts]
    for constant in constants:
        if isinstance(constant, str):
            names.update((constant,) if constant.isidentifier() else names_in_format(constant))
        elif isinstance(constant, (tuple, frozenset)):
            constants += constant
    return frozenset(names)


@functools.lru_cache(maxsize=1024)
def assigns_outside(code: CodeType) -> bool:
    """Return True if code, or a function in it, assigns a variable of a function around it."""
    return any(instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in code.co_freevars
               for instruction in instructions_of(code)) or any(
        assigns_outside(each) for each in code.co_consts if inspect.iscode(each) and set(each.co_freevars) & {*code.co_freevars})


def compares_identity(code: CodeType) -> bool:
    """Return True if code compares by `is` with another value than None, or may do so by a function of `operator`."""
    instructions = instructions_of(code)
    return not names_in(code).isdisjoint(("is_", "is_not")) or any(
        instruction.opname == "IS_OP" and not (last.opname == "LOAD_CONST" and last.argval is None)
        for last, instruction in zip(instructions, instructions[1:], strict=False))


def names_in_format(text: str) -> list[str]:
    """Return the names in a text that may be a format with fields, as "{0.rate}" is."""
    return re.findall(r"\w+", text) if "{" in text else []


def imports_of(code: CodeType, frame: FrameType) -> Iterator[str]:
    """Yield the names of the modules that code imports, packages before their modules."""
    instructions = instructions_of(code)
    for level, instruction in zip(instructions, instructions[2:], strict=False):
        if instruction.opname == "IMPORT_NAME":
            name = instruction.argval
            if level.argval:
                name = importlib.util.resolve_name("." * level.argval + name, frame.f_globals.get("__package__"))
            yield from accumulate(name.split("."), lambda package, part: f"{package}.{part}")


def arguments_of(code: CodeType, frame: FrameType) -> dict[str, Any]:
    """Return the arguments of a call that begins; of keywords, and of the context of a Function, the values."""
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)]
    values = {name: frame.f_locals.get(name) for name in names}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords = code.co_varnames[len(names)]
        values[keywords] = tuple(frame.f_locals[keywords].values())
    return {name: attributes_of_context(value) if isinstance(value, FunctionCtx) else value for name, value in values.items()}


def attributes_of_context(value: Any) -> tuple[Any, ...]:
    """Return the values that the forward of a user's Function keeps for its backward as attributes."""
    return tuple(each for name, each in vars(value).items() if not hasattr(FunctionCtx, name))


def codes_of_handlers() -> set[CodeType]:
    """Return the codes of the handlers of signals."""
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = (getattr(getattr(handler, "__func__", handler), "__code__", None) for handler in handlers)
    return {code for code in codes if code is not None}


def is_in_handler(frame: FrameType, codes: set[CodeType]) -> bool:
    """Return True if a frame is part of a handler of a signal, of some codes, which has interrupted the call: it gets that frame."""
    return bool(codes) and any(each.f_code in codes and gets_caller(each) for each in frames_of_call(frame))


def gets_caller(frame: FrameType) -> bool:
    """Return True if the arguments of a call, or a tuple of these, have the frame of its caller."""
    return any(frame.f_back is each for value in frame.f_locals.values() for each in (value if type(value) is tuple else (value,)))
