"""Loops inside of transforms: steps on the plain tensors behind those that stand for examples of `vmap`, or have tangents."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from cygrad._core.capture.restoring import restoring
from cygrad._core.capture.signature import parts_of
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.level import Level, exit_level, resume_level, tangents_seen
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

    def with_parts(self, tree: Any, parts: Sequence[Any]) -> list[tuple[Any, Any, list[Any]]]:
        """Return the tensors of a tree, each with its form and the plain tensors that it is made of."""
        rest = iter(parts)
        return [(leaf, form, [next(rest) for _ in batches(form)])
                for leaf, form in zip(tree_flatten(tree)[0], self.forms, strict=True)]

    def batches(self) -> list[frozenset[int]]:
        """Return, for each plain tensor, the levels, by number, whose examples it has."""
        return [levels for form in self.forms for levels in batches(form)]

    def are_values(self) -> list[bool]:
        """Return, for each plain tensor, whether it is the value of a tensor, not a tangent."""
        return [number == 0 for form in self.forms for number in range(len(batches(form)))]


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
            form, own = parts_of(_uniform(leaf, levels), levels)
        forms.append(form)
        parts += own
    return Tree(spec, forms, levels), parts


def _uniform(tensor: Any, levels: Levels) -> Any:
    """Return a recorded tensor whose value and tangent differ among the same examples: so their gradients do."""
    return _for_each(tensor, frozenset().union(*batches(parts_of(tensor, levels)[0])), levels) if tensor.requires_grad else tensor


def _for_each(tensor: Any, numbers: frozenset[int], levels: Levels) -> Any:
    """Return a tensor whose value differs among the examples of some levels."""
    for number in sorted(numbers - batches(parts_of(tensor, levels)[0])[0]):
        tensor = levels[number].leave(levels[number].enter(tensor))
    return tensor


def all_differ(tree: Any, levels: Levels) -> Any:
    """Return a tree whose tensors differ among all examples that some of them differ among, as a carry behind a predicate for each does."""
    leaves, spec = tree_flatten(tree)
    leaves = [_uniform(leaf, levels) if isinstance(leaf, TensorImpl) else leaf for leaf in leaves]
    numbers = frozenset().union(*(batches(parts_of(leaf, levels)[0])[0] for leaf in leaves if isinstance(leaf, TensorImpl)))
    return tree_unflatten([_for_each(leaf, numbers, levels) if isinstance(leaf, TensorImpl) else leaf for leaf in leaves], spec)


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


def batches(form: Any) -> list[frozenset[int]]:
    """Return, for each plain tensor of a form, the levels, by number, whose examples it has along a dim, before all others."""
    if form is NONE or form is None:
        return [] if form is NONE else [frozenset()]
    results = [levels for part in form[1:] for levels in batches(part)]
    return results if len(form) > 2 else [levels | {form[0]} for levels in results]


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
        with tangents_seen(self.levels, True):      # also in a backward that computes without them
            before = self.carry.together(carry)
            known = self.carry.with_parts(before, carry)
            result, y = self.step(before, self.xs.together(x or ()))
            after, parts = taken_apart(result, self.levels, known)
            if after != self.carry:
                raise NotLooped
            parts = row_major(parts)
            self.y, results = taken_apart(y, self.levels, known + after.with_parts(result, parts))
            return parts, row_major(results) or None

    def rows_first(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the plain tensors behind xs with the dim of rows before the dims of examples."""
        counts = map(len, self.xs.batches())
        return [leaf.movedim(count, 0) if count else leaf for leaf, count in zip(leaves, counts, strict=True)]

    def results(self, is_carried: bool) -> Tree:
        """Return how the carried values, or the other results of the last step, are made of plain tensors."""
        return self.carry if is_carried else cast("Tree", self.y)


def resumed(levels: Levels) -> restoring[None]:
    """Have levels that have ended go on in this thread, without tangents. The caller holds RESUMING: in one thread at a time."""
    ended = [level for level in levels if not level.is_active()]

    def begin() -> None:
        for level in ended:
            resume_level(level)

    def end(_: object) -> None:
        for level in reversed(ended):
            if level.is_active():
                exit_level(level)

    return restoring(end, begin)
