"""Values outside of an observed function: the objects that code reaches by another one, and values that no guard sees change."""

from __future__ import annotations

import functools
import gc
import io
import operator
import struct
import sys
import threading
import warnings
from _thread import LockType, RLock
from collections import OrderedDict, deque
from collections.abc import Collection
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.capture.guards import plain_iterator
from cygrad._core.capture.signature import is_record
from cygrad._core.graph.tensor import TensorImpl
from cygrad.compiling.frames import LOOKUPS, is_inside, is_of_user, names_in_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONSTANT = {str, bytes, int, float, complex, bool, type(None), np.ndarray}      # but for arrays, which guards compare
OPAQUE = (CodeType, BuiltinFunctionType, BuiltinMethodType, TensorImpl, np.ufunc)
QUEUES = {"queue", "_queue", "multiprocessing.queues", "asyncio.queues"}
# Modules with functions that report settings, or classes that compute by them.
SETTINGS = ("cygrad._kernels.system", "cygrad.torch_names.settings", "cygrad.autograd.multithreading", "cygrad.config", "decimal")
IMMUTABLE_TYPE = 1 << 8         # a flag of classes that are written in C
CYTHON_FUNCTION = "cython_function_or_method"       # of a module of its own for each version of Cython
NO_DATA = {"__dict__", "__weakref__", "__closure__", "__globals__", "__builtins__"}     # guarded otherwise, or a reason to end
LOOKUP_CLASSES = (operator.attrgetter, operator.methodcaller)
POINTERS = {"_Pointer", "CFuncPtr"}
VIEWS: tuple[type, ...] = (MappingProxyType, *map(type, ({}.keys(), {}.values(), {}.items())),
                           *map(type, (OrderedDict().keys(), OrderedDict().values(), OrderedDict().items())))
# Values written in C that never change, that only serve to write or to lock, or whose parts are guarded.
UNDERSTOOD: tuple[type, ...] = (
    *VIEWS, list, tuple, dict, set, frozenset, deque, type, ModuleType, FunctionType, MethodType, MethodWrapperType, CellType,
    BaseException, ClassMethodDescriptorType, GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType,
    SimpleNamespace, staticmethod, classmethod, property, functools.partial, functools._lru_cache_wrapper, operator.attrgetter,
    operator.itemgetter, operator.methodcaller, slice, type(...), type(NotImplemented), io.IOBase, struct.Struct,
    LockType, RLock)
EXTENSIONS = {"cygrad", "numpy", "mpi4py"}       # their classes hold tensors, arrays and processes
# Of such classes that no module names.
UNDERSTOOD_NAMES = {"fused_cython_function", "CField", "_tuplegetter", "_lru_list_elem"}


def is_opaque(value: Any) -> bool:
    """Return True for a value that leads to no other value."""
    kind = type(value)
    return (kind in CONSTANT or kind.__name__ == CYTHON_FUNCTION or isinstance(value, OPAQUE)
            or isinstance(value, np.generic) and not isinstance(value, np.void))


def is_written_in_c(kind: type) -> bool:
    """Return True for a class of Python's or of an extension: its state is not in attributes."""
    return bool(kind.__flags__ & IMMUTABLE_TYPE)


def is_of_package(kind: type) -> bool:
    """Return True for a class of the package."""
    return str(kind.__module__).partition(".")[0] == "cygrad"


def is_at_end(file: Any) -> bool:
    """Return True for a file that is only written, or closed, or that has nothing to read in memory."""
    if file.closed or not file.readable():
        return True
    return isinstance(file, (io.StringIO, io.BytesIO)) and file.tell() == len(file.getvalue())


def is_pointer(value: Any) -> bool:
    """Return True for a value of `ctypes` that is a pointer, a function, or has pointers to other objects."""
    of_ctypes = set() if isinstance(value, type) else {base.__name__ for base in type(value).__mro__ if base.__module__ == "_ctypes"}
    return bool(of_ctypes & POINTERS) or bool(of_ctypes) and bool(getattr(value, "_objects", None))


def has_bytes(value: Any) -> bool:
    """Return True for a value with memory that others see, such as a `memoryview`, an array of `ctypes`, or a record of NumPy's."""
    if isinstance(value, np.ndarray) or is_of_package(type(value)):
        return False
    try:
        memoryview(value)
    except (TypeError, BufferError, ValueError):
        return False
    return True


def changes_unseen(value: Any) -> str | None:
    """Return why a value may be another one at each call, where no guard sees that."""
    kind = type(value)
    if draws_numbers(value):
        return "draws NumPy's random numbers"
    if isinstance(value, (ContextVar, threading.local)):
        return "has another value in each thread or context"
    if kind.__module__ in QUEUES:
        return "is a queue, whose items change"
    if any(value is each for each in (sys.modules, globals, __import__)):
        return "leads to all modules"
    if value is np.datetime64:
        return "may have the time of the call"
    if str(getattr(value, "__module__", None)).startswith(SETTINGS):
        return "depends on settings, which may change"
    if isinstance(value, np.ufunc) and not any(types.strip("O->") for types in value.types):
        return "calls a function of Python by NumPy, whose values no guard sees"
    step = getattr(kind, "__next__", None)
    if step is not None and not isinstance(step, FunctionType) and not (isinstance(value, io.IOBase) and is_at_end(value)):
        return "is an iterator, which has another item each time"
    if is_pointer(value):
        return "leads to memory that no guard sees"
    return None if is_understood(value, kind) else f"is a {kind.__name__}, whose state no guard sees"


def is_understood(value: Any, kind: type) -> bool:
    """Return True for a value of a class in Python, and one in C that does not change, is a function, or is compared by guards."""
    return (not is_written_in_c(kind) or is_opaque(value) or isinstance(value, UNDERSTOOD) or kind is object or has_bytes(value)
            or kind.__module__.partition(".")[0] in EXTENSIONS or kind.__name__ in UNDERSTOOD_NAMES
            or kind.__hash__ not in (None, object.__hash__)
            or callable(value) and not any(hasattr(kind, name) for name in ("__getitem__", "__iter__", "__len__")))


def parts_of(value: Any) -> Iterable[Any]:
    """Return the objects that code reaches by another one without naming them."""
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, (staticmethod, classmethod)):
        return (value.__func__,)
    if isinstance(value, property):
        return value.fget, value.fset, value.fdel
    if isinstance(value, functools.cached_property):
        return (value.func,)
    if isinstance(value, slice):
        return value.start, value.stop, value.step
    if isinstance(value, functools._lru_cache_wrapper):     # a cache with a limit has its results elsewhere than in its dict
        return [part for part in gc.get_referents(value) if not isinstance(part, (type, dict))]
    if isinstance(value, operator.methodcaller):
        return value.__reduce__()[1]
    if isinstance(value, VIEWS):
        return gc.get_referents(value)
    if isinstance(value, (set, frozenset, dict)):       # of a dict, the keys
        return plain_iterator(value)
    if callable(value) and is_written_in_c(type(value)) and not isinstance(value, UNDERSTOOD):      # as the key of `functools.cmp_to_key`
        return [part for part in gc.get_referents(value) if not isinstance(part, type)]
    if isinstance(value, FunctionType) and is_inside(value.__code__):       # a transform: its cells keep functions, and do not change
        return [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
    attributes = getattr(value, "__dict__", None)
    if is_of_package(type(value)) and isinstance(attributes, dict):
        return [each for each in attributes.values() if callable(each)]
    return (attributes["__wrapped__"],) if isinstance(attributes, dict) and "__wrapped__" in attributes else ()


def keys_of_cache(value: Any) -> Iterator[tuple[dict[Any, Any], Any]]:
    """Yield the dict in a cache of `functools`, with each key; nothing for another value."""
    if isinstance(value, functools._lru_cache_wrapper):
        for part in gc.get_referents(value):
            if type(part) is dict and part is not vars(value):
                yield from ((part, key) for key in part)


def leaves_of_key(key: Any) -> Iterator[Any]:
    """Yield the objects that a key of a table is made of: records with their fields, items of tuples and frozensets, and of lists that
    stand for several arguments, the objects of methods."""
    is_sequence = isinstance(key, (tuple, list, frozenset))
    if not is_sequence:
        yield key
    for part in key if is_sequence else vars(key).values() if is_record(key) else (key.__self__,) if isinstance(key, MethodType) else ():
        yield from leaves_of_key(part)


def names_used_by(kind: type) -> set[str]:
    """Return the names that the methods of a class of the package use."""
    methods = (each for base in kind.__mro__ for each in vars(base).values() if isinstance(each, FunctionType))
    return {name for method in methods for name in method.__code__.co_names}


def is_lookup(value: Any) -> bool:
    """Return True for a function that looks attributes up by names which are no part of the code."""
    if isinstance(value, (type, *LOOKUP_CLASSES)):
        return value in LOOKUP_CLASSES or isinstance(value, LOOKUP_CLASSES)
    return isinstance(value, (BuiltinFunctionType, WrapperDescriptorType, MethodWrapperType)) and value.__name__ in LOOKUPS


def draws_numbers(value: Any) -> bool:
    """Return True if a value is NumPy's module of random numbers, or something in it."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(module).startswith("numpy.random") or str(type(value).__module__).startswith("numpy.random")


# ----- Attributes -----
def is_data_of_c(owner: type | None, name: str) -> bool:
    """Return True if a class has data under a name that no dict has, such as a slot or the name of a function."""
    return owner is not None and name not in NO_DATA and isinstance(vars(owner)[name], (MemberDescriptorType, GetSetDescriptorType))


def owner_of_name(kind: type, name: str) -> type | None:
    """Return the class from which a class has a name."""
    return next((base for base in kind.__mro__ if name in vars(base)), None)


def all_names_of(value: Any) -> set[str]:
    """Return the names of the attributes of an object of Python, or of a class: its own, slots, and those that its classes have."""
    kind = value if isinstance(value, type) else type(value)
    names = {name for base in kind.__mro__ if not is_written_in_c(base) for name in vars(base) if not name.startswith("__")}
    return names.union(value.__dict__ if isinstance(getattr(value, "__dict__", None), dict) else ())


def names_by(value: Any, is_matched: bool) -> set[str]:
    """Return the names of attributes that code may read by a value: of fields of a format, of places in a pattern, of a protocol."""
    if type(value) is str:
        return {*names_in_format(value)}
    names: set[str] = set()
    for base in value.__mro__ if isinstance(value, type) else ():
        names.update(("__match_args__", *vars(base).get("__match_args__", ())) if is_matched else ())
        if vars(base).get("_is_protocol") and base.__module__ != "typing":
            names.update(name for name in (*vars(base), *vars(base).get("__annotations__", ())) if not name.startswith("_"))
    return names


def special_names_of(kind: type) -> set[str]:
    """Return the names of the special methods of a class of the user, which Python calls without a name in code."""
    bases = [base for base in kind.__mro__ if not (is_written_in_c(base) or is_of_package(base) or base.__module__ == "typing")]
    return {name for base in bases for name, each in vars(base).items()
            if name.startswith("__") and (callable(each) or isinstance(each, (staticmethod, classmethod)))}


def is_of_library_class(value: Any) -> bool:
    """Return True for an object with a class that Python's library, or NumPy, has written in Python: their code reads its attributes."""
    return any(not (is_written_in_c(base) or is_of_package(base)) and is_in_library(base) for base in type(value).__mro__)


def is_in_library(kind: type) -> bool:
    """Return True for a class in a module that is not the user's."""
    module = sys.modules.get(kind.__module__)
    return module is not None and not is_of_user(module) and kind.__qualname__.partition(".")[0] in vars(module)


def classes_of_user(kind: type) -> Iterator[type]:
    """Yield the class and its bases, but for bases that are written in C, or by the package or a library."""
    for base in kind.__mro__:
        if not (is_written_in_c(base) or is_of_package(base) or is_in_library(base)):
            yield base


def older_of(*values: Any) -> list[Any]:
    """Return the values that are older than the last collection of garbage: code that is observed has not made them."""
    young = {id(value) for value in gc.get_objects(0)}
    return [value for value in values if id(value) not in young]


def is_container_of_python(value: Any) -> bool:
    """Return True if a value is of a container class that Python's library has written in Python: its attributes are its items."""
    return isinstance(value, Collection) and is_in_library(type(value))


def filters_of_warnings() -> int:
    """Return a number that stands for the filters of warnings, which may be errors."""
    return hash(tuple(warnings.filters))


def is_of_module(value: Any, scope: dict[str, Any]) -> bool:
    """Return True if a value is a container that a module of Python's library has, such as `os.environ`."""
    return is_container_of_python(value) and any(value is each for each in scope.values())
