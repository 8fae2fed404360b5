"""The values outside of a function that its code can name: guards, found while the function runs the first time.

Each code object that runs outside of the package adds its globals and all names that it uses. A place is guarded if code that has run
could name it: an entry of a dict of globals, a cell of a closure, a default, an item of a container, an attribute of an object that was
reached so. Guards are made before the code runs; one that does not hold afterwards was changed by the function itself.
"""

from __future__ import annotations

import abc
import functools
import gc
import sys
import warnings
import weakref
from collections import defaultdict, deque
from types import BuiltinFunctionType, BuiltinMethodType, CellType, FunctionType, MethodWrapperType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.guards import Guard, GuardRole, GuardSource, plain_iterator, plain_length
from cygrad._core.capture.kinds import Uncommon
from cygrad._core.graph.tensor import TensorImpl
from cygrad.compiling.frames import (
    LOOKUPS,
    SCIPY,
    arguments_of,
    assigns_outside,
    codes_of_handlers,
    compares_identity,
    imports_of,
    instructions_of,
    is_called_by_package,
    is_code_of_package,
    is_imported,
    is_in_handler,
    is_inside,
    is_observed,
    is_of_library,
    is_of_python,
    is_of_user,
    names_in,
    runs_code_of_user,
    serves_user,
    writes_messages,
)
from cygrad.compiling.outside_calls import changes_container, of_state, reason_of_c, reason_of_call, reason_of_report
from cygrad.compiling.outside_values import (
    all_names_of,
    changes_unseen,
    classes_of_user,
    filters_of_warnings,
    has_bytes,
    is_container_of_python,
    is_data_of_c,
    is_lookup,
    is_of_library_class,
    is_of_module,
    is_of_package,
    is_opaque,
    is_written_in_c,
    keys_of_cache,
    leaves_of_key,
    names_by,
    names_used_by,
    older_of,
    owner_of_name,
    parts_of,
    special_names_of,
)
from cygrad.compiling.repeated_code import changes_of, reason_of_hook
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import CodeType, FrameType

MOST_GUARDS = 20_000
# Attributes that lead to all values of a module or a frame.
SCOPES = {"__globals__", "__builtins__", "f_globals", "f_builtins", "f_locals", "f_back", "gi_frame", "cr_frame", "tb_frame", "ag_frame",
          "__subclasses__"}
DATA_OF_FUNCTIONS = {"__name__", "__qualname__", "__doc__"}
ADDRESSES = {"id", "hash"}      # functions in C may call them
CLASS_CHECKS = {"isinstance", "issubclass"}      # their results depend on the classes that abstract ones have registered
WAY_OUT = "compute the gradients in the function, or call it without compile()"


def place_of(frame: FrameType) -> tuple[int, int]:
    """Return a key of the code of a frame and of the globals that its names are in."""
    return id(frame.f_code), id(frame.f_globals)


class Observation:
    """Watches a function run, in a `with` statement: its guards, and the first thing that no program can repeat."""

    def __init__(self, function: Any, values: Iterable[Any], arguments: Mapping[int, Any]) -> None:
        self.containers = arguments     # among the arguments, by id; the key of the call has their items
        self.codes_of_arguments = {each.__code__ for each in arguments.values() if isinstance(each, FunctionType)}
        self.guards: list[Any] = []
        self.seen: set[Any] = set()             # places that are guarded
        self.absent: dict[int, set[str]] = {}   # names that code uses, which are not in an empty dict
        # That has run, by its id and the id of its globals; True: it may read any attribute of its arguments.
        self.codes: dict[tuple[int, int], tuple[CodeType, Any, bool]] = {}
        self.names: set[str] = set()            # that code of the user uses
        self.library_names: set[str] = set()    # that code of Python's library and NumPy's uses, of objects of their classes
        self.cached_codes: set[CodeType] = set()        # of functions whose results a cache keeps
        self.missing: list[str] = []    # modules that code imports, which are not there before
        self.is_early = False           # the call has imported a module, or has filled a cache: the next one shows the values
        self.objects: list[Any] = []            # whose attributes may be named; this keeps them alive
        self.of_library: list[Any] = []         # of these, the ones with a class of Python's library or NumPy's
        self.known: set[int] = set()
        self.tensors: list[tuple[Guard, Any]] = []      # in guarded places, before
        self.keys: list[Any] = []       # of caches
        self.tensor_keys: set[int] = set()      # ids of tensors that are keys of dicts, or in sets: code may ask for them by identity
        self.impure: str | None = None          # the first thing that a replay would not repeat
        self.roots = [function, *values]
        self.is_matching = False        # code of the user has a pattern of a class,
        self.has_is = False             # or compares by `is`
        self.is_repeated = False        # code runs besides the call of the user: it must change nothing
        self.repeats_code = False       # code of the user has run so
        self.handlers: set[CodeType] = set()    # of signals, which are no part of the function
        self.is_undone = False          # code runs besides the call of the user, and its changes are undone
        self.values: dict[int, Any] = {}        # in guarded places, before, by the id of the guard

    def __enter__(self) -> Observation:
        self.is_watching = not is_observed()
        if not self.is_watching:
            self.impure = "a profiler or a debugger is running"
            return self
        gc.collect(0)       # objects that are young later were made by the function
        self.handlers = codes_of_handlers()
        self.guard_alone(GuardSource.CLASS, Tensor)     # of which the user may replace a method
        for root in self.roots:
            self.observe(self.reach, root)
        sys.setprofile(self.hook)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_watching:
            sys.setprofile(None)
            for guard in self.guards:
                if guard.source == GuardSource.MODULE:
                    guard.take_loaded_names()
            for name in self.missing:
                if name not in sys.modules:
                    self.guard(GuardSource.KEY, sys.modules, name)
                else:
                    self.is_early |= is_of_user(sys.modules[name])

    # ----- While the function runs -----
    def hook(self, frame: FrameType, event: str, argument: Any) -> None:
        """Meet new code before it runs, and calls that are not the same each time: of known code of the package, only opened files."""
        if is_code_of_package(frame.f_code) and (place_of(frame) in self.codes if event == "call" else argument is not open):
            return
        if frame.f_code.co_filename.startswith(SCIPY) and is_called_by_package(frame) or is_in_handler(frame, self.handlers):
            return
        if event == "call":
            self.observe(self.meet_call, frame)
        elif event == "c_call" and self.impure is None:
            self.observe(self.meet_call_of_c, argument, frame)
        elif event == "return" and (self.cached_codes or is_of_python(frame.f_code)) and (
                isinstance(argument, TensorImpl) or not is_opaque(argument)):
            self.observe(self.meet_result, frame, argument)

    def observe(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function, and refuse a replay where it raises: code of attributes of the user may, and the user's call goes on."""
        if self.is_full():      # there will be no program
            return None
        try:
            return function(*args)
        except Uncapturable:
            raise
        except Exception as error:
            self.refuse(f"its values cannot be observed, {type(error).__name__}: {error}")

    def meet_call(self, frame: FrameType) -> None:
        """Meet the code of a call that begins."""
        code = frame.f_code
        if self.is_repeated and runs_code_of_user(frame) and not is_imported(frame):
            self.repeats_code = True
            reason = changes_of(code, frame)
            if reason:      # before it runs
                self.refuse(f"its backward runs {code.co_name}() ({code.co_filename}:{code.co_firstlineno}), which {reason}: {WAY_OUT}")
        if self.is_undone and code in self.cached_codes:
            self.end(frame, "adds to a cache")
        caller = frame.f_back
        reason = caller and reason_of_report(frame, caller)
        if caller and reason:
            self.end(caller, reason)
        place = place_of(frame)
        if place not in self.codes:
            self.codes[place] = code, frame.f_globals, False        # it may be met again meanwhile
            self.codes[place] = code, frame.f_globals, self.meet(code, frame)
        if self.codes[place][2]:
            for value in arguments_of(code, frame).values():
                if id(value) in self.known:
                    self.reach_all_attributes(value)

    def meet_call_of_c(self, function: Any, frame: FrameType) -> None:
        """Meet a call of a function written in C that begins."""
        reason = reason_of_call(function, frame)
        owner = function.__self__
        if self.is_undone and changes_container(function) and (
                id(owner) in self.known or id(owner) in self.containers or isinstance(owner, np.ndarray)):
            self.end(frame, f"calls {function.__name__}() of a {type(owner).__name__} from outside")
        if reason:
            self.end(frame, reason)
        elif function is warnings.warn or function is warnings.warn_explicit:
            self.guard_alone(GuardSource.RESULT, filters_of_warnings, "the filters of warnings")

    def meet_result(self, frame: FrameType, value: Any) -> None:
        """Meet the result of a call: one that stays in a cache, or an object that a library had before, such as a logger."""
        if frame.f_code in self.cached_codes:
            self.is_early = True
        elif serves_user(frame):
            for each in older_of(value, *value) if isinstance(value, (tuple, list)) else older_of(value):
                if id(each) not in self.containers:
                    self.reach(each)

    def meet(self, code: CodeType, frame: FrameType) -> bool:
        """Guard the values that new code can name; return True if it is a library's, which may read any attribute of its arguments."""
        if is_imported(frame):
            return False
        if runs_code_of_user(frame):
            self.meet_code_of_user(code, frame)
        elif code.co_varnames[:1] == ("self",) and is_of_module(frame.f_locals["self"], frame.f_globals):
            self.reach(frame.f_locals["self"])
        if not is_of_library(code) or writes_messages(frame):
            return False
        names = names_in(code) - self.library_names
        self.library_names |= names
        for each in list(self.of_library) if names else ():
            self.reach_attributes(each, names & all_names_of(each))
        return bool(names_in(code) & LOOKUPS)

    def meet_code_of_user(self, code: CodeType, frame: FrameType) -> None:
        """Guard the values that code of the user can name."""
        for name in names_in(code) & SCOPES:
            self.end(frame, f"uses {name}: name the value, or give it as an argument")
        if self.codes_of_arguments and assigns_outside(code) and (code in self.codes_of_arguments or any(
                isinstance(each, FunctionType) and each.__code__ is code for each in self.objects)):
            self.end(frame, "assigns a variable of another function, which one among the arguments may read: return the value instead")
        opcodes = {instruction.opname for instruction in instructions_of(code)}
        self.has_is |= compares_identity(code)
        if "MATCH_CLASS" in opcodes and not self.is_matching:
            self.is_matching = True
            for each in list(self.objects):
                self.add_names(names_by(each, True))
        self.add_names(names_in(code))
        if names_in(code) & CLASS_CHECKS:
            self.guard_alone(GuardSource.RESULT, abc.get_cache_token, "the registered classes")
        for name in imports_of(code, frame):
            if name in sys.modules:
                self.guard(GuardSource.KEY, sys.modules, name)
            else:
                self.missing.append(name)
        module: Any = None
        modules: dict[str, ModuleType] = {}     # by the names of local variables
        for instruction in instructions_of(code):
            name = instruction.argval
            if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.end(frame, f"assigns the global {name}: return the value instead")
            elif instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                module = self.follow(frame.f_globals, name)
                if name not in frame.f_globals:
                    self.guard(GuardSource.KEY, frame.f_builtins, name)
                    if name in ADDRESSES and code.co_name != "__hash__":
                        self.end(frame, of_state(name))
            elif instruction.opname == "IMPORT_NAME":
                module = sys.modules.get(name)
            elif instruction.opname == "STORE_FAST" and isinstance(module, ModuleType):
                modules[name], module = module, None
            elif instruction.opname == "LOAD_FAST" and name in modules:
                module = modules[name]
            elif instruction.opname == "LOAD_DEREF" and isinstance(frame.f_locals.get(name), ModuleType):
                module = frame.f_locals[name]
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM") and module is not None:
                data = vars(module).get(name) if is_of_user(module) else getattr(module, name, None)
                reason = changes_unseen(data)
                if reason:
                    self.end(frame, f"uses {module.__name__}.{name}, which {reason}: give its result as an argument")
                module = self.follow(vars(module), name)
            else:
                module = None
        value = frame.f_locals["self"] if "self" in code.co_varnames[:code.co_argcount] else None
        if value is not None and id(value) not in self.containers:
            for each in older_of(value):
                self.reach(each)

    def add_names(self, names: Iterable[str]) -> None:
        """Guard the attributes with these names of all objects that code can reach, and the methods of tensors that are the user's."""
        names = {*names} - self.names
        if not names:
            return
        self.names |= names
        for each in list(self.objects):
            self.reach_attributes(each, names)
        for name in names:
            method = vars(Tensor).get(name)
            if isinstance(method, FunctionType) and not is_inside(method.__code__):
                self.guard(GuardSource.CLASS_KEY, Tensor, name)

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
        if self.is_repeated or self.is_undone:
            raise Uncapturable(self.impure)

    def is_full(self) -> bool:
        """Return True, and refuse a replay, if there are too many guards; an error here would be one of the function."""
        if len(self.seen) >= MOST_GUARDS:
            self.refuse(f"its code can name more than {MOST_GUARDS} values outside of it: give them as arguments")
            return True
        return False

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
            self.guard_absent(holder, (name,))
            return
        if self.is_full():
            return
        self.seen.add(place)
        guard = self.add(source, holder, name)
        if guard is None:
            return
        value = guard.value_now()
        reason = changes_unseen(value)
        if reason:
            self.refuse(f"its code names {guard!r}, which {reason}: give the result as an argument")
        else:
            self.reach(value)

    def guard_absent(self, holder: dict[str, Any], names: Iterable[str]) -> None:
        """Guard names that a dict does not have."""
        if id(holder) not in self.absent:
            self.absent[id(holder)] = set()
            self.guards.append(Guard(GuardSource.NAMES, holder, self.absent[id(holder)]))
        self.absent[id(holder)].update(names)

    def reach(self, value: Any) -> None:
        """Guard the places that code can reach from a value."""
        if isinstance(value, (BuiltinMethodType, MethodWrapperType)) and not isinstance(value.__self__, (ModuleType, type, type(None))):
            self.guard(GuardSource.ATTRIBUTE, value, "__self__")
        self.add_names(names_by(value, self.is_matching))
        if is_lookup(value) and not self.names & LOOKUPS:
            self.add_names(("getattr",))
        if is_opaque(value) or id(value) in self.known:
            return
        self.known.add(id(value))
        self.objects.append(value)
        reason = changes_unseen(value)
        if reason:
            self.refuse(f"its code can use a {type(value).__name__}, which {reason}: give the result as an argument")
            return
        if isinstance(value, abc.ABCMeta):      # isinstance() and patterns ask it
            self.guard_alone(GuardSource.RESULT, abc.get_cache_token, "the registered classes")
        if isinstance(value, (set, frozenset, dict)):
            self.tensor_keys.update(id(key) for key in plain_iterator(value) if isinstance(key, TensorImpl))
        for part in parts_of(value):
            if isinstance(part, BuiltinFunctionType):       # C code may call it
                reason = reason_of_c(part)
                if reason:
                    self.refuse(f"its code can use a {type(value).__name__} that {reason}")
            if isinstance(part, (np.ndarray, TensorImpl)):
                self.guard(GuardSource.ITEM, (part,), 0)
            else:
                self.reach(part)
        for cache, key in keys_of_cache(value):     # of results, which an emptied cache does not have
            self.guard(GuardSource.KEY, cache, key)
            leaves = [*leaves_of_key(key)]
            self.keys += leaves
            self.tensor_keys.update(id(leaf) for leaf in leaves if isinstance(leaf, TensorImpl))
        if isinstance(value, weakref.ReferenceType):
            self.guard(GuardSource.RESULT, value, "the object of a weak reference")
        if isinstance(value, FunctionType):
            self.reach_function(value)
        elif isinstance(value, (list, tuple, deque)):
            self.guard_items(value, GuardSource.ITEM, range(plain_length(value)))
        elif isinstance(value, dict):
            self.guard_items(value, GuardSource.KEY, [*plain_iterator(value)])
            if isinstance(value, defaultdict):
                self.guard(GuardSource.ATTRIBUTE, value, "default_factory")
        elif isinstance(value, (set, frozenset)) or has_bytes(value):
            self.guard_items(value, GuardSource.ITEM, ())
        elif isinstance(value, CellType):
            self.guard(GuardSource.CELL, value, "a cell")
        elif isinstance(value, BaseException):
            self.guard(GuardSource.ATTRIBUTE, value, "args")
        elif isinstance(value, functools._lru_cache_wrapper) and hasattr(value.__wrapped__, "__code__"):
            self.cached_codes.add(value.__wrapped__.__code__)
        self.reach_attributes(value, self.names)
        if is_of_library_class(value):
            self.of_library.append(value)
            self.reach_attributes(value, self.library_names & all_names_of(value))

    def guard_items(self, container: Any, source: int, names: Iterable[Any]) -> None:
        """Guard the length and the items of a container, or its bytes."""
        self.guard_alone(GuardSource.SIZE, container)
        for name in names:
            self.guard(source, container, name)

    def add(self, source: int, holder: Any, name: Any) -> Guard | None:
        """Add a guard, unless its value is one that no guard compares."""
        try:
            guard = Guard(source, holder, name)
        except (Uncapturable, Uncommon) as error:       # here it would be one of the function
            self.refuse(str(error))
            return None
        self.guards.append(guard)
        if self.is_undone and guard.role not in (GuardRole.LENGTH, GuardRole.UNCHANGED):
            value = self.values[id(guard)] = guard.value_now()
            if guard.role == GuardRole.CONTENT and type(value) is not np.ndarray:
                self.refuse("its code names an array of a class of its own")
        if guard.role == GuardRole.TENSOR:
            self.tensors.append((guard, guard.value_now()))
        return guard

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

    def reach_attributes(self, value: Any, names: Iterable[str]) -> None:
        """Guard the attributes of an object that code may name."""
        names = {*names}
        if isinstance(value, ModuleType):
            if self.names & LOOKUPS:        # other modules have names in the code, or lead too far
                names = {*names, *(name for name, item in vars(value).items() if name[:2] != "__" and not isinstance(item, ModuleType))}
                if is_of_user(value):
                    self.guard_alone(GuardSource.SIZE, vars(value))
                else:
                    self.guard_alone(GuardSource.MODULE, value)
            for name in {*names, "__getattr__"} if is_of_user(value) else ():
                self.guard(GuardSource.KEY, vars(value), name)
            if type(value) is ModuleType:
                return
        kind = value if isinstance(value, type) else type(value)
        attributes = getattr(value, "__dict__", None)
        is_function_of_package = isinstance(value, FunctionType) and is_inside(value.__code__)
        if is_function_of_package and value.__closure__ is None:        # not one that was made of a function of the user
            return
        if is_of_package(kind) or is_function_of_package:
            own: dict[str, Any] = {} if isinstance(value, type) or attributes is None else attributes
            if own is attributes and type(value).__dictoffset__:        # not the names of an operator, which do not change
                names |= self.meet_names_of_package(value, own, names)
            known = own.keys() | DATA_OF_FUNCTIONS if is_function_of_package else own.keys()
            names = names & known | {name for name, each in own.items() if isinstance(each, TensorImpl)}
            if not names:
                return
        elif is_written_in_c(kind) and (isinstance(value, type) or attributes is None):
            return
        elif self.names & LOOKUPS or is_container_of_python(value) or isinstance(value, SimpleNamespace):
            names = {*names, *all_names_of(value)}
            if isinstance(attributes, dict):
                self.guard_alone(GuardSource.SIZE, attributes)
        names = {*names, *special_names_of(kind), *special_names_of(type(value))}
        for base in {*classes_of_user(kind), *classes_of_user(type(value))}:
            self.guard_alone(GuardSource.SIZE, base)        # special methods that it gets later
            self.guard_alone(GuardSource.ATTRIBUTE, base, "__mro__")
        if not isinstance(value, type):
            if not is_written_in_c(kind):
                self.guard(GuardSource.ATTRIBUTE, value, "__class__")
            if isinstance(attributes, dict):
                self.guard_alone(GuardSource.ATTRIBUTE, value, "__dict__")
        for name in names:
            owner = owner_of_name(kind, name)
            if isinstance(value, type):
                self.guard_class(type(value), owner_of_name(type(value), name), name)
            elif isinstance(attributes, dict) and (name in attributes or owner is None or not hasattr(vars(owner)[name], "__set__")):
                self.guard(GuardSource.KEY, attributes, name)
            self.guard_class(kind, owner, name)
            if is_data_of_c(owner_of_name(type(value), name), name):
                self.guard(GuardSource.ATTRIBUTE, value, name)

    def reach_all_attributes(self, value: Any) -> None:
        """Guard all attributes of an object, and that it has no others."""
        self.reach_attributes(value, all_names_of(value))
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict) and (not isinstance(value, ModuleType) or is_of_user(value)):
            self.guard_alone(GuardSource.SIZE, attributes)

    def meet_names_of_package(self, value: Any, own: dict[str, Any], names: set[str]) -> set[str]:
        """Guard the names that an object of the package does not have yet, and return those that code may put together."""
        self.guard_absent(own, names - own.keys())
        self.guard_alone(GuardSource.ATTRIBUTE, value, "__dict__")
        if not self.names & LOOKUPS:
            return set()
        self.guard_alone(GuardSource.SIZE, own)
        used = names_used_by(type(value))
        return {name for name in own if name[0] != "_" or name[1:2] != "_" and name not in used}

    def guard_alone(self, source: int, holder: Any, name: str | None = None) -> None:
        """Guard a place, but nothing that code can reach from it: a dict of which names are guarded, its size, or the bases of a class."""
        place = source, id(holder), name
        if place not in self.seen:
            self.seen.add(place)
            self.add(source, holder, name)

    def guard_class(self, kind: type, owner: type | None, name: str) -> None:
        """Guard a name of a class, which it has from `owner`: no class before may have it later. `super()` reads the classes after it."""
        if owner is not None and owner not in (object, type):
            self.guard_alone(GuardSource.ATTRIBUTE, kind, "__mro__")
            for number, base in enumerate(kind.__mro__):
                if number <= kind.__mro__.index(owner) or name in vars(base) and not is_written_in_c(base):
                    self.guard(GuardSource.CLASS_KEY, base, name)
