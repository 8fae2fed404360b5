"""Hooks on tensors and nodes, and what can be asked of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import count
from typing import Any

from cygrad._core.node import Node
from cygrad.tensor import Tensor

__all__ = ["Node", "RemovableHandle", "increment_version"]

_LAZY = ("allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "save_on_disk", "saved_tensors_hooks")

_identifiers = count()


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'cygrad.autograd.graph' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module("cygrad.autograd.saved_tensors"), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away; also a context manager."""

    def __init__(self, table: dict[int, Any]) -> None:
        # A weak reference would do for torch's OrderedDict; a dict has none, and a table is as long-lived as its owner.
        self.table: dict[int, Any] | None = table
        self.id = next(_identifiers)

    def remove(self) -> None:
        """Take the hook away; more than once does no harm."""
        if self.table is not None:
            self.table.pop(self.id, None)
            self.table = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register(table: dict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    """Put a hook into a table of hooks and return its handle."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a change of a tensor, or of several, that was made by other means than in-place operators.

    What was saved of the same memory counts as changed then.

    >>> import cygrad
    >>> x = cygrad.ones(2)
    >>> cygrad.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for item in (tensor,) if isinstance(tensor, Tensor) else tensor:
        item._increment_version()
