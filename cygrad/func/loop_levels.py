"""Loops inside of transforms: steps on the plain tensors behind those that stand for examples of `vmap`, or have tangents."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from cygrad._core.capture.signature import parts_of
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.level import Level, exit_level, resume_level
from cygrad.autograd.forward_ad import dual
from cygrad.func.looped_backward import Step
from cygrad.pytree import tree_flatten, tree_unflatten

Levels = tuple[Level, ...]
NONE = "None"       # the form of a leaf that is None

RESUMING = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RESUMING._at_fork_reinit)   # type: ignore[attr-defined]


class NotLooped(Exception):
    """No loop of the core can run the steps."""


class Tree(NamedTuple):
    """How a tree of tensors is made of plain ones."""

    spec: Any
    forms: list[Any]
    levels: Levels

    def together(self, parts: Sequence[Any], stacked: bool = False) -> Any:
        """Return the tree of other plain tensors; `stacked`: with a dim before theirs."""
        rest = iter(parts)
        return tree_unflatten([together(form, rest, self.levels, stacked) for form in self.forms], self.spec)


def taken_apart(tree: Any, levels: Levels, known: Sequence[tuple[Any, Any, list[Any]]] = ()) -> tuple[Tree, list[Any]]:
    """Return how a tree is made of plain tensors, and these.

    known: tensors with their forms and parts: one that a step returns as it is has the parts that it was made of.
    """
    forms, parts = [], []
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        form, own = next(((form, own) for tensor, form, own in known if tensor is leaf), (NONE, []))
        if not isinstance(leaf, (TensorImpl, type(None))):
            raise NotLooped
        if form is NONE and leaf is not None:
            form, own = parts_of(leaf, levels)
        forms.append(form)
        parts += own
    return Tree(spec, forms, levels), parts


def together(form: Any, parts: Iterator[Any], levels: Levels, stacked: bool = False) -> Any:
    """Return a tensor of plain ones, in the order of its form; of all examples their sum, where their vmap has ended."""
    if form is NONE:
        return None
    if form is None:
        return next(parts)
    level, whole = levels[form[0]], together(form[1], parts, levels, stacked)
    if len(form) > 2:
        return dual(whole, together(form[2], parts, levels, stacked), level)
    if not level.is_active():
        return whole.sum(1 if stacked else 0)
    return level.leave(whole.transpose(0, 1) if stacked else whole)


def levels_in(form: Any) -> set[int]:
    """Return the levels, by number, at which a tensor stands for others."""
    return set() if form is None else {form[0]}.union(*map(levels_in, form[1:]))


def batch_dims(form: Any) -> list[int]:
    """Return how many dims of examples each plain tensor of a form has, before all others."""
    if form is NONE or form is None:
        return [] if form is NONE else [0]
    counts = [count for part in form[1:] for count in batch_dims(part)]
    return counts if len(form) > 2 else [count + 1 for count in counts]


def row_major(tensors: Sequence[Any]) -> list[Any]:
    """Return tensors as a loop takes them: levels may have their dims in another order."""
    return [tensor.contiguous() for tensor in tensors]


class PlainStep:
    """A step on lists of plain tensors."""

    def __init__(self, step: Step, carry: Tree, xs: Tree, below: Levels) -> None:
        """`below`: levels at which the step is one on plain tensors already: it makes its results of them inside."""
        self.step, self.carry, self.xs, self.levels = step, carry, xs, carry.levels
        self.__qualname__ = getattr(step, "__qualname__", repr(step))       # for messages
        self.below = {number for number, level in enumerate(self.levels) if level in below}
        self.y: Tree | None = None      # of the last step

    def __call__(self, carry: Sequence[Any], x: Sequence[Any] | None) -> tuple[list[Any], list[Any] | None]:
        before, rest = self.carry.together(carry), iter(carry)
        known = [(leaf, form, [next(rest) for _ in batch_dims(form)])
                 for leaf, form in zip(tree_flatten(before)[0], self.carry.forms, strict=True)]
        result, y = self.step(before, self.xs.together(x or ()))
        after, parts = taken_apart(result, self.levels, known=known)
        self.y, results = taken_apart(y, self.levels, known=known)
        if after != self.carry:
            raise NotLooped
        return row_major(parts), row_major(results) or None

    def rows_first(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the plain tensors behind xs with the dim of rows before the dims of examples."""
        counts = [count for form in self.xs.forms for count in batch_dims(form)]
        return [leaf.movedim(count, 0) if count else leaf for leaf, count in zip(leaves, counts, strict=True)]

    def forms(self, is_carried: bool) -> list[Any]:
        """Return the forms of the carried values, or of the results of the last step."""
        tree = self.carry if is_carried else self.y
        return [] if tree is None else [form for form in tree.forms if form is not NONE]


@contextlib.contextmanager
def resumed(levels: Levels) -> Iterator[None]:
    """Have levels that have ended go on in this thread; in one thread at a time."""
    with RESUMING:
        ended = [level for level in levels if not level.is_active()]
        try:
            for level in ended:
                resume_level(level)
            yield
        finally:
            for level in reversed(ended):
                if level.is_active():
                    exit_level(level)
