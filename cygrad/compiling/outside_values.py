"""Values outside of an observed function: the objects that code reaches by another one, and values that no guard sees change."""

from __future__ import annotations

import functools
import io
import sys
import threading
import weakref
from collections.abc import Collection
from contextvars import ContextVar
from types import BuiltinFunctionType, BuiltinMethodType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad.compiling.frames import is_inside, is_of_user

if TYPE_CHECKING:
    from collections.abc import Iterable

OPAQUE = (str, bytes, int, float, complex, bool, type(None), np.ndarray, np.generic, CodeType, BuiltinFunctionType, BuiltinMethodType,
          TensorImpl, np.ufunc)
QUEUES = {"queue", "_queue", "multiprocessing.queues", "asyncio.queues"}


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
