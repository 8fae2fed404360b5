"""The values outside of a function that its code can name: guards, found while the function runs the first time.

Each code object that runs outside of the package adds its globals and all names that it uses. A place is guarded if code that has run
could name it: an entry of a dict of globals, a cell of a closure, a default, an item of a container, an attribute of an object that was
reached so. Guards are made before the code runs; one that does not hold afterwards was changed by the function itself.
"""

from __future__ import annotations

import dis
import operator
import sys
from collections import deque
from types import BuiltinMethodType, FunctionType, MethodWrapperType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.guards import Guard, GuardSource
from cygrad._core.capture.signature import Uncommon
from cygrad._core.graph.tensor import TensorImpl
from cygrad.compiling.frames import is_imported, is_inside, is_observed, is_of_python, is_of_user, makes_named_tuple, names_in
from cygrad.compiling.outside_calls import reason_of_call
from cygrad.compiling.outside_values import OPAQUE, changes_unseen, is_container_of_python, is_of_module, owner_of_name, parts_of
from cygrad.compiling.repeated_code import changes_of, reason_of_hook

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, FrameType

LOOKUPS = {"getattr", "vars", "dir", "attrgetter", "methodcaller", "__dict__"}      # code with these may name any attribute
MOST_GUARDS = 20_000
WAY_OUT = "compute the gradients in the function, or call it without compile()"
OF_MODULES = (int, float, complex, str, bytes, bool, type(None), np.ndarray, np.generic, TensorImpl, FunctionType, list, tuple, dict)


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
        elif event == "c_call" and self.impure is None:
            reason = reason_of_call(argument, frame)
            if reason:
                self.end(frame, reason)

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
