"""Steps of loops as captured functions. One that is made anew for each loop has one program by its code."""

from __future__ import annotations

import functools
import os
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from cygrad._core.capture.signature import COMPILED_STEP, MOST_FUNCTIONS, attributes_of, is_local_function, is_variable, variables_of
from cygrad.compiling.compiled import Compiled
from cygrad.compiling.containers import items_of_function
from cygrad.compiling.frames import assigns_outside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cygrad.compiling.captures import Entry
    from cygrad.compiling.reruns import Rerun

MOST_CODES = 64     # whose programs are kept


class StepsOfCode(Compiled):
    """A compiled function of a carry, a slice and a local function, which is the step."""

    def _make_room(self) -> None:
        self.cache_clear()

    def _kept(self, args: Any) -> Any:
        return (*args[:-1], with_own_variables(args[-1]))


class StepByCode:
    """A local function as a step: an argument of a compiled function, so that the tensors and floats that it names are inputs."""

    def __init__(self, compiled: StepsOfCode, function: FunctionType) -> None:
        self.compiled, self._function = compiled, function

    def __call__(self, carry: Any, x: Any) -> Any:
        return self.compiled(carry, x, self._function)

    def programs(self, carry: Any, x: Any) -> Iterator[tuple[Entry, list[Any], Rerun]]:
        """Yield the programs of the step as `Compiled.programs` does."""
        return self.compiled.programs(carry, x, self._function)

    def _name(self) -> str:
        return self.compiled._name()


def captured_step(function: Callable[..., Any], is_called: bool = True) -> Callable[..., Any]:
    """Return a step captured, without a warning where it cannot be. is_called: in the loop, which captures its calls.

    A function of a module has the same one each time, a local one the one of its code, where it names no objects: the programs would keep
    these, and functions in C and methods of objects may change them.
    """
    if isinstance(function, Compiled) or os.environ.get("CYGRAD_COMPILE") == "0":
        return function
    if is_local_function(function) and _names_values(function):
        compiled: Compiled = _compiled_code(_codes_of(cast("FunctionType", function)), function.__qualname__)
        compiled.is_called = is_called
        return StepByCode(cast("StepsOfCode", compiled), cast("FunctionType", function))
    attributes: dict[str, Any] = vars(function) if isinstance(function, FunctionType) else {}
    known: Compiled | None = attributes.get(COMPILED_STEP)      # it dies with the function
    if known is None or known._function is not function:            # `functools.wraps` copies it to another one
        known = attributes[COMPILED_STEP] = Compiled(function, False, is_step=True)
        known.is_called = is_called
    return known


def with_own_variables(function: Any) -> Any:
    """Return a copy of a local function that has a program by its code: with the values that it, and local functions there, name now."""
    items, again = items_of_function(function)
    return cast("Any", again)([with_own_variables(item) if is_local_function(item) and item is not function else item for item in items])


def _names_values(value: Any, depth: int = MOST_FUNCTIONS) -> bool:
    """Return True for a local function that assigns no variable of another one, and whose variables are tensors, plain values, tuples of
    such, and functions, classes and modules that are not local.
    """
    if is_local_function(value):
        return (depth > 0 and not (assigns_outside(value.__code__) or attributes_of(value))
                and all(each is value or _names_values(each, depth - 1) for each in variables_of(value)))
    return is_variable(value) or _is_in_module(value)


def _is_in_module(value: Any) -> bool:
    """Return True for a module, or a function or class that one has under its name: it lives as long as that."""
    if isinstance(value, ModuleType):
        return sys.modules.get(value.__name__) is value
    if not isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        return False
    holder: Any = sys.modules.get(value.__module__ or "")
    for name in value.__qualname__.split("."):
        holder = getattr(holder, name, None)
    return holder is value


def _codes_of(function: FunctionType) -> tuple[CodeType, ...]:
    """Return the codes of a local function and of the functions that it names."""
    codes = [function.__code__]
    for value in variables_of(function):
        if isinstance(value, FunctionType) and value is not function:
            codes += _codes_of(value) if is_local_function(value) else [value.__code__]
    return tuple(codes)


@functools.lru_cache(maxsize=MOST_CODES)
def _compiled_code(codes: tuple[CodeType, ...], name: str) -> StepsOfCode:
    """Return the compiled function of steps by the code of these; `codes` is their key."""
    def take(carry: Any, x: Any, step: Callable[..., Any]) -> Any:
        return step(carry, x)

    take.__qualname__ = name        # for messages
    return StepsOfCode(take, False, is_step=True)
