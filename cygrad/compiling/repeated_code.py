"""Code that runs besides the call of the user, as the function of a backward part does: whether it may change values of Python."""

from __future__ import annotations

import functools
import inspect
import sys
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.storage import DType
from cygrad.compiling.frames import arguments_of, instructions_of, is_inside, is_of_user
from cygrad.compiling.outside_values import is_of_package, is_opaque

if TYPE_CHECKING:
    from types import CodeType, FrameType


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


def reason_of_hook(hook: Any) -> str | None:
    """Return how a hook may change values of Python; None: it cannot, or by code of Python, which is seen when it runs."""
    parts = [hook]
    for part in parts:
        if isinstance(part, functools.partial):
            parts += [part.func, *part.args, *part.keywords.values()]
    return next((f"may change {part!r}" for part in parts if not isinstance(part, functools.partial) and is_changeable(part)), None)


def is_changeable(value: Any) -> bool:
    """Return True if code may change a value that it names: no number, text, tensor, function, class or module, nor a tuple of such."""
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
    if is_of_package(type(value)):
        # A generator has a state, an operator has none.
        return not (isinstance(value, (TensorImpl, DType)) or callable(value) or type(value).__hash__ is not object.__hash__)
    return not (is_opaque(value) or isinstance(value, (ModuleType, type)))


def has_changeable_names(value: Any) -> bool:
    """Return True if a value is a class or a module of the user, whose attributes code may change or reach."""
    module = sys.modules.get(value.__module__) if isinstance(value, type) else value
    return isinstance(module, ModuleType) and is_of_user(module)
