"""Context managers and decorators that switch recording on and off, in this thread only."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from cygrad._core.graph.modes import RecordingMode, _set_grad_enabled, is_grad_enabled, is_inference_mode_enabled
from cygrad._core.graph.modes import inference_mode_suspended as inference_mode_suspended

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class ContextDecorator:
    """Lets a context manager decorate functions, methods and generators too."""

    def clone(self) -> Any:
        """Return another such, for one call."""
        return type(self)()

    def __call__(self, function: _Function) -> _Function:
        if inspect.isclass(function):
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
                          "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
                          "and nothing else.", FutureWarning, stacklevel=2)
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)

        @functools.wraps(function)
        def decorated(*arguments: Any, **keywords: Any) -> Any:
            with self.clone():
                return function(*arguments, **keywords)

        return decorated  # type: ignore[return-value]

    def _decorate_generator(self, function: Callable[..., Any]) -> Any:
        """Hold the mode while the generator runs, and the caller's while it is suspended."""

        @functools.wraps(function)
        def decorated(*arguments: Any, **keywords: Any) -> Any:
            generator = function(*arguments, **keywords)
            step: Callable[[], Any] = functools.partial(next, generator)
            try:
                while True:
                    try:
                        with self.clone():
                            item = step()
                    except StopIteration as stop:
                        return stop.value
                    try:
                        step = functools.partial(generator.send, (yield item))
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step = functools.partial(generator.throw, error)
            finally:
                with self.clone():
                    generator.close()

        return decorated


class no_grad(RecordingMode, ContextDecorator):
    """Switch recording off: results need no gradient, with any operands.

    A context manager and a decorator; thread-local.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(grad=False)


class enable_grad(RecordingMode, ContextDecorator):
    """Switch recording on inside `no_grad`.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.no_grad(), cygrad.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(grad=True)


class set_grad_enabled(RecordingMode, ContextDecorator):
    """Switch recording on or off: at once when called as a function, until the end of the block as a context manager.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'mode' must be bool, not {type(mode).__name__}")
        super().__init__(grad=mode)
        self.mode = mode
        self.before = is_grad_enabled()
        _set_grad_enabled(mode)

    def __enter__(self) -> None:
        # The mode was set when this object was made: the former mode is the one before that.
        _set_grad_enabled(self.before)
        super().__enter__()
        self.before = self.mode

    def __call__(self, function: _Function) -> _Function:
        _set_grad_enabled(self.before)
        return super().__call__(function)

    def clone(self) -> ContextDecorator:
        """Return another of the same mode."""
        return set_grad_enabled(self.mode)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"


class inference_mode(RecordingMode, ContextDecorator):
    """Make tensors that autograd will never record: no history, no version.

    Such inference tensors cannot be saved for a backward nor changed in place outside the block. Views of other tensors, and
    changes of them, are possible. `inference_mode(False)` ends the mode, and enables gradients, for a block inside.
    A context manager and a decorator; thread-local.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(grad=not mode, inference=mode)
        self.mode = mode

    def clone(self) -> ContextDecorator:
        """Return another of the same mode."""
        return inference_mode(self.mode)
