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
    """Return an argument whose kind differs between two calls, by their keys, and how; "" if all kinds are equal."""
    (_, *kinds), (_, *named) = key[0][:2]
    (_, *other_kinds), (_, *other_named) = other[0][:2]
    parameters = function.__code__.co_varnames[:function.__code__.co_argcount] if isinstance(function, FunctionType) else ()
    for number, kind in enumerate(kinds):
        before = other_kinds[number] if number < len(other_kinds) else None
        if kind != before:
            name = f"{parameters[number]!r}" if number < len(parameters) else f"at position {number}"
            return f"the argument {name}{difference(kind, before)}"
    changed = [(name, kind) for name, kind in named if (name, kind) not in other_named]
    return "".join(f"the argument {name!r}{difference(kind, dict(other_named).get(name))}" for name, kind in changed[:1])


def difference(kind: Any, before: Any) -> str:
    """Return how the kind of an argument differs from the one before; "" where that takes many words."""
    if not isinstance(before, tuple) or len(kind) != len(before):
        return ""
    if len(kind) == 2 and kind[0] is before[0]:
        is_plain = kind[0] in (int, float, complex, bool, str)
        return f", {kind[1]!r} after {before[1]!r}" if is_plain else f": another {kind[0].__qualname__}, which is compared by identity"
    if type(kind[0]) is int and kind[0] == before[0] and kind[2:3] != before[2:3]:      # of a tensor
        return f", of shape {kind[2]} after {before[2]}"
    return ""
