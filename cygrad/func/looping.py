"""The steps of a loop behind the first ones as one loop of the core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cygrad._core.capture.layouts import put_together
from cygrad._core.capture.looped import LoopedStep
from cygrad._core.capture.looping import run_looped, run_looped_while
from cygrad.autograd.derivatives import gradients_between
from cygrad.autograd.grad_mode import enable_grad
from cygrad.compiling.compiled import Compiled
from cygrad.pytree import tree_flatten, tree_unflatten

LARGEST = 1 << 16       # bytes of a step's values: of larger ones the memory decides, and a loop would compute them twice


class Looped(NamedTuple):
    """The carry after a loop, and the results of its steps: y, with stacked leaves in the order of the rows."""

    carry: Any
    y: Any


class _Place(int):
    """The number of a tensor among the results of a program."""


class _Places:
    def __getitem__(self, number: int) -> _Place:
        return _Place(number)


def _number_of(leaf: Any) -> int:
    return leaf if isinstance(leaf, _Place) else -1


class _Program(NamedTuple):
    """The program of a step, for a loop."""

    step: LoopedStep
    operands: list[Any]
    y: Any                      # the results of a step but the carry, with places for tensors
    has_results: bool
    check_values: Callable[[], None]

    def rerun(self, steps: Callable[[], Looped]) -> Callable[..., list[Any]]:
        """Return gradients by the function itself: where they are differentiated again, or a decision comes out otherwise."""
        def gradients_by(_: Sequence[Any], gradients: Sequence[Any], create_graph: bool) -> list[Any]:
            self.check_values()
            with enable_grad():
                computed = steps()
                results = [*tree_flatten(computed.carry)[0], *(tree_flatten(computed.y)[0] if self.has_results else [])]
                pairs = [(results[number], gradient) for number, gradient in zip(self.step.recorded_results, gradients, strict=True)
                         if gradient is not None]
                outputs, weights = zip(*pairs, strict=True)
                inputs = tuple(self.operands[number] for number in self.step.differentiable)
                return gradients_between(outputs, inputs, weights, create_graph)

        return gradients_by


def _program_of(run: Any, carry: Any, x: Any, leaves: Sequence[Any]) -> _Program | None:
    """Return the program of a captured step; None where no loop can run it."""
    program = run.program(carry, x) if isinstance(run, Compiled) else None
    if program is None:
        return None
    entry, inputs, checks = program
    carried, slices = tree_flatten(carry)[0], tree_flatten(x)[0] if leaves else []
    new_carry, y = put_together(entry.template, _Places())
    carry_numbers, y_numbers = (list(map(_number_of, tree_flatten(tree)[0])) for tree in (new_carry, () if y is None else y))
    if (entry.draws or entry.generators or entry.gradients or entry.replay.guards or entry.memory or -1 in carry_numbers + y_numbers
            or len(inputs) < len(carried) + len(slices) or not all(leaf.is_contiguous() for leaf in carried)
            or any(a is not b for a, b in zip(inputs, carried + slices, strict=False))):
        return None
    step = LoopedStep(entry.replay, carry_numbers, len(slices), y_numbers, entry.differentiable)
    if step.nbytes > LARGEST or not step.fits:
        return None
    operands = [*carried, *leaves, *inputs[len(carried) + len(slices):]]
    return _Program(step, operands, y, bool(y_numbers), lambda: checks.check_values(inputs))


def looped(run: Any, carry: Any, x: Any, leaves: Sequence[Any], rows: range, snapshots: int | None,
           steps: Callable[[], Looped]) -> Looped | None:
    """Run the captured step for the rows of some tensors; None where no loop can.

    x: of the first row. snapshots: how many states a backward may keep; None: all. steps: does the same by the function itself.
    """
    program = _program_of(run, carry, x, leaves)
    if program is None:
        return None
    outcome = run_looped(program.step, program.operands, len(rows), rows[0], rows.step, len(rows) if snapshots is None else snapshots,
                         program.rerun(steps))
    if outcome is None:
        return None
    last, stacked = outcome
    return Looped(tree_unflatten(last, tree_flatten(carry)[1]),
                  tree_unflatten(stacked, tree_flatten(program.y)[1]) if program.has_results else program.y)


def looped_while(run: Any, carry: Any, steps: Callable[[], Looped]) -> Looped | None:
    """Run the captured step as long as its first decision holds; None where no loop can."""
    program = _program_of(run, carry, None, ())
    if program is None or program.step.first_decision < 0 or program.has_results:
        return None
    last = run_looped_while(program.step, program.operands, program.rerun(steps))
    return None if last is None else Looped(tree_unflatten(last, tree_flatten(carry)[1]), None)
