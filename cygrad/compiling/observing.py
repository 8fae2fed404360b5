"""The values outside of a function that its code can name: guards, found while the function runs the first time.

Each code object that runs outside of the package adds its globals and all names that it uses. A place is guarded if code that has run
could name it: an entry of a dict of globals, a cell of a closure, a default, an item of a container, an attribute of an object that was
reached so. Guards are made before the code runs; one that does not hold afterwards was changed by the function itself.
"""

from __future__ import annotations

import dis
import functools
import inspect
import io
import operator
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Collection
from contextvars import ContextVar
from pathlib import Path
from types import BuiltinFunctionType, BuiltinMethodType, CellType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.guards import Guard, GuardSource
from cygrad._core.capture.signature import Uncommon
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.storage import DType
from cygrad.autograd.function import FunctionCtx

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

INSIDE = (str(Path(__file__).parents[1]), np.__path__[0], "<frozen", "<formula of ")      # these are made of rows
PROGRAMS = str(Path(__file__).parents[1] / "bench")     # of the package, written as users do
KERNELS = str(Path(__file__).parents[1] / "_kernels")   # they read how many processors and how much memory the machine has
LIBRARY = os.path.dirname(os.__file__)      # Python's own, with the packages that are installed below it
# Modules whose functions have another result each time, or reach files; and modules of Python and NumPy that draw numbers.
IMPURE = {"time", "random", "_random", "numpy.random", "datetime", "_socket"}
FILES = {"posix", "nt", "io", "_io"}        # which Python's own modules look into, too
QUEUES = {"queue", "_queue", "multiprocessing.queues", "asyncio.queues"}
LOOKUPS = {"getattr", "vars", "dir", "attrgetter", "methodcaller", "__dict__"}      # code with these may name any attribute
MOST_GUARDS = 20_000
CYTHON_FUNCTION = "cython_function_or_method"       # of a module of its own for each version of Cython
WAY_OUT = "compute the gradients in the function, or call it without compile()"
OPAQUE = (str, bytes, int, float, complex, bool, type(None), np.ndarray, np.generic, CodeType, BuiltinFunctionType, BuiltinMethodType,
          TensorImpl, np.ufunc)
OF_MODULES = (int, float, complex, str, bytes, bool, type(None), np.ndarray, np.generic, TensorImpl, FunctionType, list, tuple, dict)


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


def makes_named_tuple(frame: FrameType) -> bool:
    """Say whether a frame runs the function that Python writes for a class of named tuples."""
    return str(frame.f_globals.get("__name__")).startswith("namedtuple_")


def is_of_user(module: ModuleType) -> bool:
    """Say whether a module is neither the package's, NumPy's nor Python's."""
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ not in sys.builtin_module_names
    return not file.startswith(INSIDE) and ("site-packages" in file or not file.startswith(LIBRARY))


def is_observed() -> bool:
    """Say whether a profiler or a debugger runs in this thread, in whose place no observation can be."""
    return sys.getprofile() is not None or sys.gettrace() is not None


def names_in(code: CodeType) -> set[str]:
    """Return the names that code uses, and its strings that may be names."""
    names, constants = {*code.co_names, code.co_name}, [*code.co_consts]
    for constant in constants:
        if isinstance(constant, str) and constant.isidentifier():
            names.add(constant)
        elif isinstance(constant, (tuple, frozenset)):
            constants += constant
    return names


def is_opened_by_user(frame: FrameType | None) -> bool:
    """Say whether a file is opened for code of the user: not by an import, a kernel, nor for the lines of a warning."""
    while frame is not None and (is_inside(frame.f_code) or is_of_python(frame.f_code)):
        if frame.f_globals.get("__name__") == "linecache" or frame.f_code.co_filename.startswith(KERNELS):
            return False
        frame = frame.f_back
    return frame is not None and not is_imported(frame)


def changes_unseen(value: Any) -> str | None:
    """Say why a value may be another one at each call, where no guard sees that."""
    if draws_numbers(value):
        return "draws NumPy's random numbers"
    if isinstance(value, (ContextVar, threading.local)):
        return "has another value in each thread or context"
    if type(value).__module__ in QUEUES:
        return "is a queue, whose items change"
    step = getattr(type(value), "__next__", None)
    if step is not None and not isinstance(step, FunctionType) and not isinstance(value, io.IOBase):
        return "is an iterator, which has another item each time"
    return None


def parts_of(value: Any) -> Iterable[Any]:
    """Return the objects that code reaches by another one without naming them."""
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, (staticmethod, classmethod)):
        return (value.__func__,)
    if isinstance(value, property):
        return (value.fget,)
    if isinstance(value, functools.cached_property):
        return (value.func,)
    if isinstance(value, weakref.ReferenceType):
        return (value(),)
    if isinstance(value, (set, frozenset)):
        return value
    if isinstance(value, FunctionType) and is_inside(value.__code__):       # a transform: its cells keep functions, and do not change
        return [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
    attributes = getattr(value, "__dict__", None)
    if str(type(value).__module__).startswith("cygrad.") and isinstance(attributes, dict):
        return [each for each in attributes.values() if callable(each)]
    return (attributes["__wrapped__"],) if isinstance(attributes, dict) and "__wrapped__" in attributes else ()


def draws_numbers(value: Any) -> bool:
    """Say whether a value is NumPy's module of random numbers, or something of it."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(module).startswith("numpy.random") or str(type(value).__module__).startswith("numpy.random")


def is_container_of_python(value: Any) -> bool:
    """Say whether a value is of a container class that Python's library has written in Python: its attributes are its items."""
    module = sys.modules.get(type(value).__module__)
    return isinstance(value, Collection) and module is not None and not is_of_user(module)


def is_of_module(value: Any, scope: dict[str, Any]) -> bool:
    """Say whether a value is a container that a module of Python's library keeps, such as `os.environ`."""
    return is_container_of_python(value) and any(value is each for each in scope.values())


def owner_of_name(kind: type, name: str) -> type | None:
    """Return the class from which a class has a name."""
    return next((base for base in kind.__mro__ if name in vars(base)), None)


def is_changeable(value: Any) -> bool:
    """Say whether code that names a value may change it: it is no number, text, tensor, function, class or module, nor a tuple of such."""
    if isinstance(value, (tuple, frozenset)):
        return any(is_changeable(each) for each in value)
    if isinstance(value, (BuiltinFunctionType, BuiltinMethodType)):     # such as `items.append`
        return is_changeable(value.__self__)
    if isinstance(value, staticmethod):
        return is_changeable(value.__func__)
    if isinstance(value, FunctionType):
        return not is_inside(value.__code__) and is_changeable((*vars(value).values(), *(value.__defaults__ or ()),
                                                                *(value.__kwdefaults__ or {}).values()))
    if isinstance(value, np.ndarray):
        return True
    if str(type(value).__module__).partition(".")[0] == "cygrad" or type(value).__name__ == CYTHON_FUNCTION:
        # A generator has a state, an operator has none.
        return not (isinstance(value, (TensorImpl, DType)) or callable(value) or type(value).__hash__ is not object.__hash__)
    return not isinstance(value, (*OPAQUE, ModuleType, type))


def has_changeable_names(value: Any) -> bool:
    """Say whether a value is a class or a module of the user, whose attributes code may change or reach."""
    module = sys.modules.get(value.__module__) if isinstance(value, type) else value
    return isinstance(module, ModuleType) and is_of_user(module)


def attributes_of_context(value: Any) -> tuple[Any, ...]:
    """Return the values that the forward of a user's Function keeps for its backward as attributes."""
    return tuple(each for name, each in vars(value).items() if not hasattr(FunctionCtx, name))


@functools.cache
def instructions_of(code: CodeType) -> list[dis.Instruction]:
    """Return the instructions of code."""
    return [*dis.get_instructions(code)]


def changes_of(code: CodeType, frame: FrameType) -> str | None:
    """Return how code that is about to run may change values of Python outside of it; None: it cannot."""
    holder: Any = None      # a class or a module
    for instruction in instructions_of(code):
        name, kind = instruction.argval, instruction.opname
        if kind in ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR") or kind == "STORE_DEREF" and name in code.co_freevars:
            return f"assigns {name}"
        if kind in ("LOAD_ATTR", "LOAD_METHOD"):
            value = inspect.getattr_static(holder, name, None)
        elif has_changeable_names(holder):      # it is no attribute of the holder alone that is used
            return f"may change {holder.__name__}"
        elif kind in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = frame.f_globals.get(name)
        elif kind in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            value = frame.f_locals.get(name)
        elif kind == "IMPORT_NAME":
            value = sys.modules.get(name)
            if has_changeable_names(value) or any(is_changeable(vars(value).get(each)) for each in code.co_names if value is not None):
                return f"may change {name}"
        else:
            value = None
        if is_changeable(value):
            return f"may change {name}"
        holder = value if isinstance(value, (ModuleType, type)) else None
    caller = frame.f_back
    if caller is None or is_inside(caller.f_code):      # the arguments of other calls are checked where they come from
        for name, value in arguments_of(code, frame).items():
            if is_changeable(value) or has_changeable_names(value):
                return f"may change {name}"
    return None


def arguments_of(code: CodeType, frame: FrameType) -> dict[str, Any]:
    """Return the arguments of a call that begins; of keywords, and of the context of a Function, the values."""
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)]
    values = {name: frame.f_locals.get(name) for name in names}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords = code.co_varnames[len(names)]
        values[keywords] = tuple(frame.f_locals[keywords].values())
    return {name: attributes_of_context(value) if isinstance(value, FunctionCtx) else value for name, value in values.items()}


def reason_of_hook(hook: Any) -> str | None:
    """Return how a hook may change values of Python; None: it cannot, or by code of Python, which is seen when it runs."""
    parts = [hook]
    for part in parts:
        if isinstance(part, functools.partial):
            parts += [part.func, *part.args, *part.keywords.values()]
    return next((f"may change {part!r}" for part in parts if not isinstance(part, functools.partial) and is_changeable(part)), None)


class Observation:
    """Watches a function run, in a `with` statement: its guards, and the first thing that no program can repeat."""

    def __init__(self, function: Any, values: Iterable[Any]) -> None:
        self.guards: list[Any] = []
        self.seen: set[Any] = set()             # places that are guarded
        self.absent: dict[int, set[str]] = {}   # names that code uses, which are not in an empty dict
        self.codes: set[CodeType] = set()
        self.guarded_codes: set[CodeType] = set()       # of these, the user's
        self.new: set[int] = set()              # ids of objects that the function makes: no guard may name them
        self.names: set[str] = set()
        self.objects: list[Any] = []            # whose attributes may be named; this keeps them alive
        self.known: set[int] = set()
        self.impure: str | None = None          # the first thing that a replay would not repeat
        self.roots = [function, *values]
        self.is_repeated = False        # code runs besides the call of the user: it must change nothing

    def __enter__(self) -> Observation:
        self.is_watching = not is_observed()
        if not self.is_watching:
            self.impure = "a profiler or a debugger is running"
            return self
        for root in self.roots:
            self.reach(root)
        sys.setprofile(self.hook)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_watching:
            sys.setprofile(None)

    # ----- While the function runs -----
    def hook(self, frame: FrameType, event: str, argument: Any) -> None:
        """Meet new code before it runs, and calls that are not the same each time."""
        if event == "call":
            code = frame.f_code
            if self.is_repeated and not (is_inside(code) or is_of_python(code) or makes_named_tuple(frame) or is_imported(frame)):
                reason = changes_of(code, frame)
                if reason:      # before it runs
                    self.refuse(f"its backward runs {code.co_name}() ({code.co_filename}:{code.co_firstlineno}), which {reason}: {WAY_OUT}")
            if code.co_name == "__init__" and code.co_argcount:
                self.new.add(id(frame.f_locals[code.co_varnames[0]]))
            if code not in self.codes:
                self.codes.add(code)
                if is_imported(frame):
                    return
                if not is_inside(code) and not is_of_python(code) and not makes_named_tuple(frame):
                    self.meet(code, frame)
                elif code.co_varnames[:1] == ("self",) and is_of_module(frame.f_locals["self"], frame.f_globals):
                    self.reach(frame.f_locals["self"])
        elif event == "c_call" and argument is open and is_opened_by_user(frame):
            self.end(frame, "opens a file, which may have another content each time: give it as an argument")
        elif event == "c_call" and self.impure is None and not is_inside(frame.f_code):
            owner = getattr(argument, "__self__", None)
            module = getattr(argument, "__module__", None) or type(owner).__module__
            draws = module in IMPURE or type(owner).__module__.startswith("numpy.random") or getattr(owner, "__name__", "") in IMPURE
            if (draws or argument is os.urandom or module in FILES and not is_of_python(frame.f_code)) and not is_imported(frame):
                name = getattr(argument, "__qualname__", str(argument))
                self.end(frame, f"calls {name}, which has another result each time: give its result as an argument")

    def meet(self, code: CodeType, frame: FrameType) -> None:
        """Guard the values that new code can name."""
        self.guarded_codes.add(code)
        names = names_in(code) - self.names
        self.names |= names
        for each in list(self.objects):
            self.reach_attributes(each, names)
        module: Any = None
        for instruction in dis.get_instructions(code):
            name = instruction.argval
            if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.end(frame, f"assigns the global {name}: return the value instead")
            elif instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                if name == "globals":
                    self.end(frame, "uses globals(): name the global, or give it as an argument")
                module = self.follow(frame.f_globals, name)
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and module is not None:
                if name == "random" and module is np:
                    self.end(frame, "uses np.random: give its numbers as an argument")
                data = vars(module).get(name)
                module = self.follow(vars(module), name) if is_of_user(module) or not callable(data) and name in vars(module) else None
            else:
                module = None
        if "self" in code.co_varnames[:code.co_argcount] and id(frame.f_locals.get("self")) not in self.new:
            self.reach(frame.f_locals.get("self"))

    def follow(self, scope: dict[str, Any], name: str) -> ModuleType | None:
        """Guard a name in a module, and return its value if that is a module, too."""
        self.guard(GuardSource.KEY, scope, name)
        value = scope.get(name)
        return value if isinstance(value, ModuleType) else None

    def end(self, frame: FrameType, reason: str) -> None:
        """Refuse a replay for something that a line does."""
        self.refuse(f"{frame.f_code.co_filename}:{frame.f_lineno} {reason}")

    def refuse(self, reason: str) -> None:
        """Note a reason why a replay would differ, if it is the first one; code that is repeated does not run on."""
        self.impure = self.impure or reason
        if self.is_repeated:
            raise Uncapturable(self.impure)

    def begin_repeated(self, hooks: Iterable[Any]) -> None:
        """Say that from now on code runs besides the call of the user, some hooks among it: it must change nothing."""
        self.is_repeated = True
        for hook in hooks:
            reason = reason_of_hook(hook)
            if reason:
                self.refuse(f"its backward runs a hook that {reason}: {WAY_OUT}")

    # ----- Places -----
    def guard(self, source: int, holder: Any, name: Any) -> None:
        """Guard a place, and all that code can reach from its value."""
        place = source, id(holder), name
        if place in self.seen:
            return
        if source == GuardSource.KEY and not holder:    # most functions have an empty dict: one guard for all names
            self.seen.add(place)
            if id(holder) not in self.absent:
                self.absent[id(holder)] = set()
                self.guards.append(Guard(GuardSource.NAMES, holder, self.absent[id(holder)]))
            self.absent[id(holder)].add(name)
            return
        if len(self.seen) >= MOST_GUARDS:       # an error here would be one of the function
            self.refuse(f"its code can name more than {MOST_GUARDS} values outside of it: give them as arguments")
            return
        self.seen.add(place)
        try:
            guard = Guard(source, holder, name)
        except (Uncapturable, Uncommon) as error:       # here it would be one of the function
            self.refuse(str(error))
            return
        self.guards.append(guard)
        value = guard.value_now()
        reason = changes_unseen(value)
        if reason:
            self.refuse(f"its code names {guard!r}, which {reason}: give the result as an argument")
        if value is not None and (self.names & LOOKUPS or not (source == GuardSource.KEY and isinstance(value, ModuleType))):
            self.reach(value)

    def reach(self, value: Any) -> None:
        """Guard the places that code can reach from a value."""
        if isinstance(value, (BuiltinMethodType, MethodWrapperType)) and not isinstance(value.__self__, (ModuleType, type, type(None))):
            self.guard(GuardSource.ATTRIBUTE, value, "__self__")
        if isinstance(value, OPAQUE) or id(value) in self.known:
            return
        self.known.add(id(value))
        self.objects.append(value)
        reason = changes_unseen(value)
        if reason:
            self.refuse(f"its code can use a {type(value).__name__}, which {reason}: give the result as an argument")
        if isinstance(value, operator.attrgetter):
            self.names.add("attrgetter")
        for part in parts_of(value):
            self.reach(part)
        if isinstance(value, (set, frozenset, bytearray)) or type(value).__module__ == "array":      # not imported here
            self.guard_items(value, GuardSource.ITEM, ())
            return
        if isinstance(value, FunctionType):
            self.reach_function(value)
            return
        if isinstance(value, (list, tuple, deque)):
            self.guard_items(value, GuardSource.ITEM, range(len(value)))
        elif isinstance(value, dict):
            self.guard_items(value, GuardSource.KEY, [*value])
        self.reach_attributes(value, self.names)

    def guard_items(self, container: Any, source: int, names: Iterable[Any]) -> None:
        """Guard the length and the items of a container."""
        self.guards.append(Guard(GuardSource.SIZE, container, None))
        for name in names:
            self.guard(source, container, name)

    def reach_function(self, function: FunctionType) -> None:
        """Guard the cells and the defaults of a function."""
        if is_inside(function.__code__):
            return
        self.guard(GuardSource.ATTRIBUTE, function, "__code__")
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.guard(GuardSource.CELL, cell, name)
        if function.__defaults__:
            self.guard(GuardSource.ATTRIBUTE, function, "__defaults__")
        if function.__kwdefaults__:
            self.guard(GuardSource.ATTRIBUTE, function, "__kwdefaults__")
        self.reach_attributes(function, self.names)

    def reach_attributes(self, value: Any, names: Iterable[str]) -> None:
        """Guard the attributes of an object that code may name."""
        if isinstance(value, FunctionType):
            if not is_inside(value.__code__):
                self.guard_dict(value)
                for name in names:
                    self.guard(GuardSource.KEY, value.__dict__, name)
            return
        if isinstance(value, ModuleType):
            if self.names & LOOKUPS:        # other values have names in the code, or lead too far
                names = {*names, *(name for name, item in vars(value).items() if isinstance(item, OF_MODULES) and name[:2] != "__")}
            for name in names if is_of_user(value) else ():
                self.reach(self.follow(vars(value), name))
            return
        kind = value if isinstance(value, type) else type(value)
        if str(kind.__module__).partition(".")[0] in ("cygrad", "numpy", "builtins"):
            return
        attributes = getattr(value, "__dict__", None)
        if not isinstance(value, type):
            self.guard(GuardSource.ATTRIBUTE, value, "__class__")
            self.guard_dict(value)
            if isinstance(attributes, dict) and (self.names & LOOKUPS or is_container_of_python(value)):
                names = {*names, *attributes}
        for name in names:
            owner = owner_of_name(kind, name)
            if isinstance(value, type):
                self.guard_class(type(value), owner_of_name(type(value), name), name)
            elif isinstance(attributes, dict) and (name in attributes or owner is None or not hasattr(vars(owner)[name], "__set__")):
                self.guard(GuardSource.KEY, attributes, name)
            self.guard_class(kind, owner, name)
            if owner is not None and type(vars(owner)[name]).__name__ == "member_descriptor":
                self.guard(GuardSource.ATTRIBUTE, value, name)

    def guard_dict(self, value: Any) -> None:
        """Guard that an object has the same dict, of which names are guarded."""
        place = GuardSource.ATTRIBUTE, id(value), "__dict__"
        if place not in self.seen and isinstance(getattr(value, "__dict__", None), dict):
            self.seen.add(place)
            self.guards.append(Guard(GuardSource.ATTRIBUTE, value, "__dict__"))

    def guard_class(self, kind: type, owner: type | None, name: str) -> None:
        """Guard a name of a class, which it has from `owner`: no class before may have it later."""
        if owner is not None and owner not in (object, type):
            for base in kind.__mro__[:kind.__mro__.index(owner) + 1]:
                self.guard(GuardSource.CLASS_KEY, base, name)
