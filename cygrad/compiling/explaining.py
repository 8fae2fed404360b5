"""Texts about programs, and about captures that were too many."""

from __future__ import annotations

from collections import Counter
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad._core.capture.replay import Replay


def described(replay: Replay, note: str) -> str:
    """Return a text about a program, which ends with a note."""
    names, groups, large, calls, decisions, arena, residuals = replay.described()
    counts = Counter(name for name in names if name != "call")
    kernels = ", ".join(f"{count} {name}" if count > 1 else name for name, count in sorted(counts.items(), key=lambda pair: -pair[1]))
    grouped = sum(end - first for first, end in groups)
    reasons = {getattr(getattr(function, "func", function), "__name__", str(function)): reason for function, reason in calls}
    return (f"{len(names)} steps: {kernels}\n{grouped} of them in {len(groups)} groups, block by block\n"
            f"{large} of them over large arrays, as the function itself runs them, contractions included\n"
            f"{len(calls)} calls of Python" + "".join(f"\n  {name}: {reason}" for name, reason in sorted(reasons.items())) +
            f"\n{decisions} decisions by values\nmemory: {arena} bytes of intermediates, {residuals} bytes kept for a backward{note}")


def changed_argument(function: Callable[..., Any], key: Any, other: Any) -> str:
    """Return the name of an argument whose kind differs between two calls, by their keys; "" if all kinds are equal."""
    (_, *kinds), (_, *named) = key[0][:2]
    (_, *other_kinds), (_, *other_named) = other[0][:2]
    parameters = function.__code__.co_varnames[:function.__code__.co_argcount] if isinstance(function, FunctionType) else ()
    for number, kind in enumerate(kinds):
        if number >= len(other_kinds) or kind != other_kinds[number]:
            return f"the argument {parameters[number]!r}" if number < len(parameters) else f"the argument at position {number}"
    names = [name for name, kind in named if (name, kind) not in other_named]
    return f"the argument {names[0]!r}" if names else ""
