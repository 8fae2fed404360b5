"""Torch's setting for threads of the engine: kept for each thread, and without effect."""

from __future__ import annotations

import threading

from cygrad.autograd.grad_mode import ContextDecorator

__all__ = ["is_multithreading_enabled", "set_multithreading_enabled"]

_multithreading = threading.local()     # `enabled`: this thread's setting


def is_multithreading_enabled() -> bool:
    """Return this thread's setting by `set_multithreading_enabled`; True at first.

    >>> import cygrad
    >>> cygrad.autograd.is_multithreading_enabled()
    True
    """
    return getattr(_multithreading, "enabled", True)


class set_multithreading_enabled(ContextDecorator):
    """Choose whether the engine may use threads of its own for devices: at once, or until the end of a block.

    There is one device, so a backward computes on the calling thread with either setting; code for torch calls it.

    >>> import cygrad
    >>> with cygrad.autograd.set_multithreading_enabled(False):
    ...     cygrad.autograd.is_multithreading_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_multithreading_enabled(): argument 'mode' must be bool, not {type(mode).__name__}")
        self.mode, self.before = mode, is_multithreading_enabled()
        _multithreading.enabled = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        _multithreading.enabled = self.before

    def clone(self) -> ContextDecorator:
        """Return another of the same mode."""
        return set_multithreading_enabled(self.mode)
