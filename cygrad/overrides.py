"""`__torch_function__`, as torch has it: subclasses of Tensor, foreign classes and modes that compute in an operator's place.

An operator asks the classes of its arguments, subclasses first: `__torch_function__(func, types, args, kwargs)` is `func(*args, **kwargs)`
in its own way, or NotImplemented. `func` is the public operator, `cygrad.add` for `a + b`, which is the method `Tensor.add`, too.
A class that keeps Tensor's own `__torch_function__` is a plain subclass: its results are of it again.

Operators and indexing are passed on. Factories, attributes (`x.shape`) and methods that are no operators (`x.numpy()`, `x.backward()`)
are not; formulas of gradients are no calls, either.

>>> import cygrad
>>> class Celsius(cygrad.Tensor):
...     pass
>>> type(cygrad.tensor([20.]).as_subclass(Celsius) + 1).__name__
'Celsius'
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types as python_types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, Self, TypeVar

from cygrad._core.exchange.aliases import as_instance
from cygrad._core.graph.tensor import _disabled_torch_function_impl as _disabled_torch_function_impl
from cygrad._core.levels.overrides import _count_function_modes, _overrides_off, overrides_off
from cygrad.operators import NAMESPACES, modules_of
from cygrad.operators._written import registry
from cygrad.operators.elementwise import functions, in_place_methods
from cygrad.ops import ELEMENTWISE
from cygrad.tensor import Tensor

__all__ = ["BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
           "enable_reentrant_dispatch", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
           "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function"]

F = TypeVar("F", bound=Callable[..., Any])

# Core operators that the package has as other objects.
_CORE = {"matmul", "__getitem__", "__setitem__"}
# Rows that are public as a keyword of another: their name there, and the keyword where the row has no parameter for it.
_CHOSEN = {chosen: (row.name, {} if value is ... else {row.select[0]: value})
           for row in ELEMENTWISE.values() if row.select for value, chosen in row.select[1].items()
           if chosen != row.name and not ELEMENTWISE[chosen].method}


class _Calls(threading.local):
    """The calls that a thread has passed on and has no answer to yet; whether the next question for an override is left out."""

    def __init__(self) -> None:
        self.open: list[tuple[Any, ...]] = []
        self.skips_one = False


_calls = _Calls()


# ----- The calls of operators -----
def answer(operator: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of the first class or mode that computes a call; NotImplemented if none has a say in it.

    `operator`: of the core or a family, or the name of a row, with an underscore at its end in place. TypeError where none computes it.
    """
    overloaded = _overloaded(_items((*arguments, *keywords.values())))
    if not overloaded and not _mode_applies():
        return NotImplemented
    if isinstance(operator, str):
        in_place = "_" if operator.endswith("_") and operator not in functions else ""
        name, chosen = _CHOSEN.get(operator.removesuffix(in_place), (operator.removesuffix(in_place), {}))
        function, keywords = getattr(sys.modules["cygrad"], name + in_place), {**keywords, **chosen}
    else:
        function = getattr(Tensor, operator.name) if operator.name in _CORE else operator
    result = _asked(function, overloaded, arguments, keywords)
    if result is NotImplemented:
        classes = "".join(f"\n\n  - tensor subclass {type(argument)}" for argument in overloaded)
        raise TypeError(f"Multiple dispatch failed for '{resolve_name(function) or function}'; all __torch_function__ handlers returned "
                        f"NotImplemented:{classes}")
    return result


def _items(arguments: Iterable[Any]) -> Iterator[Any]:
    """Yield arguments, and the items of lists and tuples among them."""
    for argument in arguments:
        if isinstance(argument, (tuple, list)):
            yield from argument
        else:
            yield argument


def _overrides(kind: type) -> bool:
    return kind is not Tensor and getattr(kind, "__torch_function__", _disabled_torch_function_impl) is not _disabled_torch_function_impl


def _overloaded(arguments: Iterable[Any]) -> list[Any]:
    """Return one argument of each class that overrides, in the order in which they are asked: subclasses first, then from the left."""
    result: list[Any] = []
    if _overrides_off():
        return result
    for argument in arguments:
        kind = type(argument)
        if _overrides(kind) and all(type(other) is not kind for other in result):
            place = next((k for k, other in enumerate(result) if issubclass(kind, type(other))), len(result))
            result.insert(place, argument)
    return result


def _asked(function: Any, overloaded: list[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the first answer of the innermost mode, then of the classes; NotImplemented if none has one."""
    kinds = tuple(type(argument) for argument in overloaded)
    if _mode_applies():
        with _below_innermost() as mode:
            result = mode.__torch_function__(function, kinds, arguments, keywords)
        if result is not NotImplemented:
            return result
    for argument in overloaded:
        handler = partial(argument.__torch_function__, function, kinds, arguments, keywords)
        result = _unrepeated(type(argument), handler, function, *arguments)
        if result is not NotImplemented:
            return result
    return NotImplemented


def _unrepeated(key: Any, compute: Callable[[], Any], *call: Any) -> Any:
    """Compute a call; NotImplemented if the same call is open already, as where functions of torch itself hand it back."""
    open_call = (key, *call)
    if any(len(other) == len(open_call) and all(a is b for a, b in zip(other, open_call, strict=True)) for other in _calls.open):
        return NotImplemented
    _calls.open.append(open_call)
    try:
        return compute()
    finally:
        _calls.open.pop()


def keeping_class(cls: type, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Compute as for plain tensors, and make results instances of a subclass, as Tensor's `__torch_function__` does."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented

    with overrides_off():
        result = _unrepeated(keeping_class, partial(func, *args, **(kwargs or {})), func, *args)
    return _as_class(result, cls)


def _as_class(value: Any, cls: type[Tensor]) -> Any:
    if isinstance(value, Tensor):
        if isinstance(value, cls):
            return value
        # A result without a history needs no view of itself.
        return value.as_subclass(cls) if value.requires_grad or value._is_view() else as_instance(value, cls)
    if isinstance(value, (tuple, list)):
        items = [_as_class(item, cls) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


# ----- For functions of users -----
def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return True if a class of some arguments, or a mode, overrides functions: then call `handle_torch_function`.

    >>> import cygrad
    >>> cygrad.overrides.has_torch_function((cygrad.ones(2), 3))
    False
    """
    if _calls.skips_one:
        _calls.skips_one = False
        return False
    return _mode_applies() or bool(_overloaded(relevant_args))


def has_torch_function_unary(tensor: Any) -> bool:
    """Return True if the class of one argument, or a mode, overrides functions."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*tensors: Any) -> bool:
    """Return True if a class of some arguments, given one by one, or a mode, overrides functions."""
    return has_torch_function(tensors)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Return the answer of the classes of some arguments to the call `public_api(*args, **kwargs)`; TypeError if none computes it.

    >>> import cygrad
    >>> from cygrad.overrides import handle_torch_function, has_torch_function_unary
    >>> def double(x):
    ...     if has_torch_function_unary(x):
    ...         return handle_torch_function(double, (x,), x)
    ...     return x + x
    """
    overloaded = _overloaded(relevant_args)
    result = _asked(public_api, overloaded, args, kwargs)
    if result is NotImplemented:
        name = f"{public_api.__module__}.{public_api.__name__}"
        raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: "
                        f"{[type(argument) for argument in overloaded]}")
    return result


def redispatch_function(func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Compute the call that a `__torch_function__` was given without asking its class or mode again.

    An operator computes with plain tensors. A function of a user, which has asked by `has_torch_function`, computes as without
    overrides, and the operators that it calls ask again.

    >>> import cygrad
    >>> class Named(cygrad.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return cygrad.overrides.redispatch_function(func, types, args, kwargs)
    >>> cygrad.tensor([1.]).as_subclass(Named) + 1
    add
    tensor([2.])
    """
    keywords = kwargs or {}
    if (getattr(func, "__module__", None) or "").partition(".")[0] in ("", "cygrad"):
        with overrides_off(2):
            return func(*args, **keywords)
    _calls.skips_one = True
    try:
        return func(*args, **keywords)
    finally:
        _calls.skips_one = False


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Change nothing: calls inside of a `__torch_function__` ask for overrides anyhow, and there is no `__torch_dispatch__`.

    >>> import cygrad
    >>> with cygrad.overrides.enable_reentrant_dispatch():
    ...     y = cygrad.ones(2) + 1
    """
    yield


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[F], F]:
    """Have a function of a user ask the classes of its arguments; `dispatcher(*args, **kwargs)` gives those that count.

    >>> import cygrad
    >>> @cygrad.overrides.wrap_torch_function(lambda x: (x,))
    ... def double(x):
    ...     return x + x
    """
    def wrap(function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            return handle_torch_function(wrapped, relevant, *args, **kwargs) if has_torch_function(relevant) else function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return wrap


def is_tensor_like(inp: Any) -> bool:
    """Return True if an object is a tensor, or of a class that has `__torch_function__`.

    >>> import cygrad
    >>> cygrad.overrides.is_tensor_like(cygrad.ones(2)), cygrad.overrides.is_tensor_like(3)
    (True, False)
    """
    return hasattr(type(inp), "__torch_function__")


# ----- Lists of functions -----
def _places() -> dict[Any, dict[str, Any]]:
    """Return the overridable functions of the package, of each namespace and of Tensor, by their names."""
    package, result = sys.modules["cygrad"], dict[Any, dict[str, Any]]()
    for prefix, space in NAMESPACES.items():
        place: Any = import_module(f"cygrad.{space}")
        names = modules_of(getattr(registry, space.upper().replace(".", "_")))
        result[place] = {name.removeprefix(prefix): getattr(place, name.removeprefix(prefix)) for name in names}
    names_of_rows = {*functions, *in_place_methods}
    result[package] = {name: getattr(package, name) for name in (*modules_of(registry.FUNCTIONS), *names_of_rows)}
    methods = [*modules_of(registry.METHODS), *_CORE, *(name for name in names_of_rows if hasattr(Tensor, name))]
    result[Tensor] = {name: getattr(Tensor, name) for name in methods}
    return result


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return the functions that are passed to `__torch_function__`, by the module or class that has them.

    >>> import cygrad
    >>> cygrad.add in cygrad.overrides.get_overridable_functions()[cygrad]
    True
    """
    return {place: list(dict.fromkeys(named.values())) for place, named in _places().items()}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return public functions of the package that are not passed to `__torch_function__`: factories, questions, settings."""
    passed = {function for named in _places().values() for function in named.values()}
    package = sys.modules["cygrad"]
    public = (getattr(package, name) for name in dir(package) if not name.startswith("_"))
    return {each for each in public if callable(each) and not isinstance(each, type) and each not in passed}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return a function of the same signature that returns -1, for each overridable one."""
    def returning(function: Any) -> Callable[..., Any]:
        def override(*args: Any, **kwargs: Any) -> int:
            return -1

        if not isinstance(function, python_types.WrapperDescriptorType):
            override.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return override

    return {function: returning(function) for named in _places().values() for function in named.values()}


def resolve_name(f: Callable[..., Any]) -> str | None:
    """Return the public name of an overridable function, such as "cygrad.add" or "cygrad.Tensor.backward"; None for others.

    A function that is a method, too, has the function's name.

    >>> import cygrad
    >>> cygrad.overrides.resolve_name(cygrad.linalg.det)
    'cygrad.linalg.det'
    """
    own = getattr(f, "__name__", "")
    for place, named in sorted(_places().items(), key=lambda item: item[0] is Tensor):
        for name in (own, *named):
            if named.get(name) is f:
                return f"{'cygrad.Tensor' if place is Tensor else place.__name__}.{name}"
    return None


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return True if a function is a method of Tensor; most methods are functions of the package, too."""
    return any(method is func for method in _places()[Tensor].values())


# ----- Modes -----
class _Modes(threading.local):
    def __init__(self) -> None:
        self.entered: list[TorchFunctionMode] = []


_modes = _Modes()


def _mode_applies() -> bool:
    return bool(_modes.entered) and _overrides_off() < 2


def _entered_modes() -> list[TorchFunctionMode]:
    """Return the modes that this thread asks."""
    return _modes.entered


def _ask_modes(modes: list[TorchFunctionMode]) -> None:
    """Have this thread ask other modes."""
    before, _modes.entered = _modes.entered, modes
    _count_function_modes(len(modes) - len(before))


@contextmanager
def _below_innermost() -> Iterator[TorchFunctionMode]:
    """Leave the innermost mode for a while: it computes with those around it."""
    mode = _modes.entered.pop()
    _count_function_modes(-1)
    try:
        yield mode
    finally:
        _modes.entered.append(mode)
        _count_function_modes(1)


class TorchFunctionMode:
    """A context in which a thread's calls of operators go to its `__torch_function__`, for arguments of any class.

    >>> import cygrad
    >>> class Named(cygrad.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Named():
    ...     y = cygrad.ones(2) + 1
    add
    """

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        _modes.entered.append(self)
        _count_function_modes(1)
        return self

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        _modes.entered.pop()
        _count_function_modes(-1)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass(overrides_off):
    """A context in which a thread computes with subclasses as with plain tensors, whose results are plain."""

    def __init__(self) -> None:
        super().__init__(1)


class DisableTorchFunction(overrides_off):
    """A context in which modes are not asked, either."""

    def __init__(self) -> None:
        super().__init__(2)
