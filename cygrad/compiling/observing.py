"""The values outside of a function that its code can name: guards, found while the function runs the first time.

Each code object that runs outside of the package adds its globals and all names that it uses. A place is guarded if code that has run
could name it: an entry of a dict of globals, a cell of a closure, a default, an item of a container, an attribute of an object that was
reached so. Guards are made before the code runs; one that does not hold afterwards was changed by the function itself.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from pathlib import Path
from types import BuiltinFunctionType, BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.capture.guards import Guard
from cygrad._core.capture.replay import Uncapturable
from cygrad._core.graph.tensor import TensorImpl

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

INSIDE = (str(Path(__file__).parents[1]), np.__path__[0], "<frozen")
PROGRAMS = str(Path(__file__).parents[1] / "bench")     # of the package, written as users do
LIBRARY = os.path.dirname(os.__file__)      # Python's own, with the packages that are installed below it
# Modules whose functions have another result each time, or reach files; and modules of Python and NumPy that draw numbers.
IMPURE = {"time", "random", "_random", "numpy.random", "datetime", "_socket"}
FILES = {"posix", "nt", "io", "_io"}        # which Python's own modules look into, too
KEY, ITEM, CELL, ATTRIBUTE, CLASS_KEY, SIZE, GRADIENT = range(7)
MOST_GUARDS = 20_000
OPAQUE = (str, bytes, int, float, complex, bool, type(None), np.ndarray, np.generic, CodeType, BuiltinFunctionType, BuiltinMethodType,
          TensorImpl, np.ufunc)


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


def draws_numbers(value: Any) -> bool:
    """Say whether a value is NumPy's module of random numbers, or something of it."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(module).startswith("numpy.random") or str(type(value).__module__).startswith("numpy.random")


class Observation:
    """Watches a function run, in a `with` statement: its guards, and the first thing that no program can repeat."""

    def __init__(self, function: Any, values: Iterable[Any]) -> None:
        self.guards: list[Any] = []
        self.seen: set[Any] = set()             # places that are guarded
        self.codes: set[CodeType] = set()
        self.names: set[str] = set()
        self.objects: list[Any] = []            # whose attributes may be named; this keeps them alive
        self.known: set[int] = set()
        self.impure: str | None = None          # the first thing that a replay would not repeat
        self.roots = [function, *values]

    def __enter__(self) -> Observation:
        if sys.getprofile() is not None or sys.gettrace() is not None:
            raise Uncapturable("a profiler or a debugger is running")
        for root in self.roots:
            self.reach(root)
        sys.setprofile(self.hook)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    # ----- While the function runs -----
    def hook(self, frame: FrameType, event: str, argument: Any) -> None:
        """Meet new code before it runs, and calls that are not the same each time."""
        if event == "call":
            code = frame.f_code
            if code not in self.codes:
                self.codes.add(code)
                if not is_inside(code) and not is_of_python(code) and not is_imported(frame):
                    self.meet(code, frame)
        elif event == "c_call" and self.impure is None and not is_inside(frame.f_code):
            owner = getattr(argument, "__self__", None)
            module = getattr(argument, "__module__", None) or type(owner).__module__
            draws = module in IMPURE or type(owner).__module__.startswith("numpy.random") or getattr(owner, "__name__", "") in IMPURE
            if draws or argument is os.urandom or module in FILES and not is_of_python(frame.f_code):
                name = getattr(argument, "__qualname__", str(argument))
                self.end(frame, f"calls {name}, which has another result each time: give its result as an argument")

    def meet(self, code: CodeType, frame: FrameType) -> None:
        """Guard the values that new code can name."""
        names = {*code.co_names, code.co_name} - self.names
        self.names |= names
        for each in list(self.objects):
            self.reach_attributes(each, names)
        module: Any = None
        for instruction in dis.get_instructions(code):
            name = instruction.argval
            if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.end(frame, f"assigns the global {name}: return the value instead")
            elif instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                module = self.follow(frame.f_globals, name)
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and module is not None:
                if name == "random" and module is np:
                    self.end(frame, "uses np.random: give its numbers as an argument")
                module = self.follow(vars(module), name) if is_of_user(module) else None
            else:
                module = None
        if "self" in code.co_varnames[:code.co_argcount] and code.co_name != "__init__":
            self.reach(frame.f_locals.get("self"))

    def follow(self, scope: dict[str, Any], name: str) -> ModuleType | None:
        """Guard a name in a module, and return its value if that is a module, too."""
        if name not in scope:
            return None
        self.guard(KEY, scope, name)
        return scope[name] if isinstance(scope[name], ModuleType) else None

    def end(self, frame: FrameType, reason: str) -> None:
        """Note a reason why a replay would differ, if it is the first one."""
        self.impure = self.impure or f"{frame.f_code.co_filename}:{frame.f_lineno} {reason}"

    # ----- Places -----
    def guard(self, source: int, holder: Any, name: Any) -> None:
        """Guard a place, and all that code can reach from its value."""
        place = source, id(holder), name
        if place in self.seen:
            return
        if len(self.seen) >= MOST_GUARDS:       # an error here would be one of the function
            self.impure = self.impure or f"its code can name more than {MOST_GUARDS} values outside of it: give them as arguments"
            return
        self.seen.add(place)
        guard = Guard(source, holder, name)
        self.guards.append(guard)
        value = guard.value_now()
        if draws_numbers(value):
            self.impure = self.impure or f"its code names {guard!r}, which draws NumPy's random numbers: give them as an argument"
        if value is not None and not (source == KEY and isinstance(value, ModuleType)):
            self.reach(value)

    def reach(self, value: Any) -> None:
        """Guard the places that code can reach from a value."""
        if isinstance(value, OPAQUE) or id(value) in self.known:
            return
        self.known.add(id(value))
        self.objects.append(value)
        if isinstance(value, MethodType):
            self.reach(value.__func__)
            self.reach(value.__self__)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.reach(part)
        elif isinstance(value, FunctionType):
            self.reach_function(value)
        elif isinstance(value, list | tuple):
            self.guard_items(value, ITEM, range(len(value)))
        elif isinstance(value, dict):
            self.guard_items(value, KEY, [key for key in value if isinstance(key, str | int | float | tuple)])
        else:
            self.reach_attributes(value, self.names)

    def guard_items(self, container: Any, source: int, names: Iterable[Any]) -> None:
        """Guard the length and the items of a container."""
        self.guards.append(Guard(SIZE, container, None))
        for name in names:
            self.guard(source, container, name)

    def reach_function(self, function: FunctionType) -> None:
        """Guard the cells and the defaults of a function."""
        if is_inside(function.__code__):
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.guard(CELL, cell, name)
        if function.__defaults__:
            self.guard(ATTRIBUTE, function, "__defaults__")
        if function.__kwdefaults__:
            self.guard(ATTRIBUTE, function, "__kwdefaults__")
        self.reach_attributes(function, self.names)

    def reach_attributes(self, value: Any, names: Iterable[str]) -> None:
        """Guard the attributes of an object that code may name."""
        if isinstance(value, list | tuple | dict | MethodType):
            return
        if isinstance(value, FunctionType):
            for name in names if not is_inside(value.__code__) else ():
                self.guard(KEY, value.__dict__, name)
            return
        if isinstance(value, ModuleType):
            for name in names if is_of_user(value) else ():
                self.follow(vars(value), name)
            return
        kind = value if isinstance(value, type) else type(value)
        if str(kind.__module__).partition(".")[0] in ("cygrad", "numpy", "builtins"):
            return
        for name in names:
            owner = next((base for base in kind.__mro__ if name in vars(base)), None)
            inside = getattr(value, "__dict__", None)
            if not isinstance(value, type) and isinstance(inside, dict) and (name in inside or owner is None or
                                                                             not hasattr(vars(owner)[name], "__set__")):
                self.guard(KEY, inside, name)
            if owner is not None and owner is not object:
                self.guard(CLASS_KEY, owner, name)
                if hasattr(vars(owner)[name], "__set__") and type(vars(owner)[name]).__name__ == "member_descriptor":
                    self.guard(ATTRIBUTE, value, name)
