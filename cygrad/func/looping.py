"""The steps of a loop behind the first ones as one loop of the core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, cast

from cygrad._core.capture.layouts import put_together
from cygrad._core.capture.looped import LoopedStep
from cygrad._core.capture.looping import run_looped, run_looped_while
from cygrad._core.capture.signature import parts_of
from cygrad._core.levels.level import active_levels
from cygrad.autograd.derivatives import gradients_between
from cygrad.compiling.compiled import Compiled
from cygrad.compiling.reruns import as_in_a_call
from cygrad.func.loop_levels import Levels, NotLooped, PlainStep, levels_in, resumed, together
from cygrad.func.looped_backward import LoopedBackward, Operands, Scan, Step
from cygrad.pytree import tree_flatten, tree_unflatten

LOOPED_FROM = 512       # in the capture of a function: programs have all steps of a shorter loop, whose backward runs each once, not twice
LARGEST = 1 << 16       # bytes of a step's values: of larger ones the memory decides, and a loop would compute them twice


class Looped(NamedTuple):
    """The carry after a loop, and the results of its steps: y, with stacked leaves in the order of the rows."""

    carry: Any
    y: Any


class Steps(NamedTuple):
    """The steps of a loop as functions of Python run them."""

    scan: Scan
    step: Step
    carry: Any
    xs: Any                     # a tree of tensors whose rows are the slices, or None
    rows: range | None          # None: as many as there are while a predicate holds
    one_by_one: Callable[[], Looped]

    @property
    def levels(self) -> Levels:
        """The levels that a step on plain tensors computes at."""
        return self.step.levels if isinstance(self.step, PlainStep) else ()


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
    gradient_forms: list[Any]


class _Backward:
    """Gradients of a loop by the function itself: where they are differentiated again, or a decision comes out otherwise."""

    def __init__(self, program: _Program, steps: Steps) -> None:
        self.program, self.steps = program, steps
        self.forms = any(form is not None for form in program.gradient_forms)       # gradients that stand for others

    def __call__(self, count: int, gradients: Sequence[Any], create_graph: bool) -> list[Any]:
        """Return them, of a loop of `count` steps; -1 where no number is known that holds for a replay, too."""
        self.program.check_values()
        levels = self.steps.levels
        with as_in_a_call():
            if all(level.is_active() for level in levels):
                return self._computed(count, gradients, create_graph)
            with resumed(levels):
                around = active_levels()
                pairs = [None if each is None else parts_of(each, around) for each in self._computed(count, gradients, create_graph)]
            return [None if pair is None else together(pair[0], iter(pair[1]), around) for pair in pairs]

    def _computed(self, count: int, gradients: Sequence[Any], create_graph: bool) -> list[Any]:
        step, operands, steps = self.program.step, self.program.operands, self.steps
        constants = operands[len(operands) - step.constants:]
        # A tensor that is carried on as it is, and named by the step, would be two inputs of a step there.
        is_twice = any(stays and any(operand is each for each in constants) for operand, stays in zip(operands, step.stays, strict=False))
        if count >= LOOPED_FROM and not is_twice:
            known = Operands(steps.carry, steps.xs, constants, step.stays, step.differentiable, step.recorded_results)
            with suppress(NotLooped):
                backward = LoopedBackward(partial(steps.scan, must_loop=True, below=steps.levels), steps.step, known, create_graph)
                return backward(steps.rows or range(count), gradients)
        computed = steps.one_by_one()
        results = ([] if computed.y is None else tree_flatten(computed.y)[0]), tree_flatten(computed.carry)[0]
        pairs = [(results[is_carried][number], gradient) for (is_carried, number), gradient
                 in zip(step.recorded_results, gradients, strict=True) if gradient is not None]
        outputs, weights = zip(*pairs, strict=True)
        return gradients_between(outputs, tuple(operands[number] for number in step.differentiable), weights, create_graph)

    def delivered(self, gradients: Sequence[Any]) -> list[Any]:
        """Return gradients that the loop has made, in the place of the plain tensors behind them."""
        first, step = len(self.program.step.stays), self.program.step
        slices = range(first, len(self.program.operands) - step.constants)
        return [None if gradient is None else together(form, iter((gradient,)), self.steps.levels, number in slices)
                for number, form, gradient in zip(step.differentiable, self.program.gradient_forms, gradients, strict=True)]


def _program_of(run: Any, carry: Any, x: Any, leaves: Sequence[Any]) -> _Program | None:
    """Return the program of a captured step; None where no loop can run it."""
    program = run.program(carry, x) if isinstance(run, Compiled) else None
    if program is None:
        return None
    entry, inputs, checks = program
    carried, slices = tree_flatten(carry)[0], tree_flatten(x)[0] if leaves else []
    new_carry, y = put_together(entry.template, _Places())
    carry_numbers, y_numbers = (list(map(_number_of, tree_flatten(tree)[0])) for tree in (new_carry, () if y is None else y))
    first_constant, forms = len(carried) + len(slices), entry.gradient_forms
    if (entry.draws or entry.generators or entry.gradients or entry.replay.guards or -1 in carry_numbers + y_numbers
            or len(inputs) < first_constant or not all(leaf.is_contiguous() for leaf in carried)
            or any(a is not b for a, b in zip(inputs, carried + slices, strict=False))):
        return None
    step = LoopedStep(entry.replay, carry_numbers, len(slices), y_numbers, entry.differentiable)
    varies = [not stays for stays in step.stays] + [True] * len(slices)
    shares_memory = any(each < first_constant and varies[each] for pair in entry.memory for each in pair[:2])
    if step.nbytes > LARGEST or not step.fits or shares_memory or not _has_plain_gradients(run._function, step, forms):
        return None
    operands = [*carried, *leaves, *inputs[first_constant:]]
    return _Program(step, operands, y, bool(y_numbers), lambda: checks.check_values(inputs), forms)


def _has_plain_gradients(function: Any, step: LoopedStep, forms: Sequence[Any]) -> bool:
    """Say whether the plain tensors behind gradients can be added up step by step.

    Not where they have tangents. Of an input that is the same for all examples of `vmap` they are added up for each example, and summed
    where the vmap has ended by the backward: so all results that have gradients must differ among the examples.
    """
    if not step.differentiable or not isinstance(function, PlainStep):
        return True
    if any(level.size < 0 for level in function.levels):
        return False
    results = [levels_in(function.forms(is_carried)[number]) for is_carried, number in step.recorded_results]
    moving = [number for number, stays in enumerate(step.stays) if not stays]
    return all(form is None or number not in moving and all(levels_in(form) - function.below <= each for each in results)
               for number, form in zip(step.differentiable, forms, strict=True))


def looped(run: Any, x: Any, steps: Steps, snapshots: int | None = None) -> Looped | None:
    """Run the captured step for the rows of some tensors; None where no loop can.

    x: of the first row. snapshots: how many states a backward may keep; None: all.
    """
    rows = cast("range", steps.rows)
    program = _program_of(run, steps.carry, x, [] if steps.xs is None else tree_flatten(steps.xs)[0])
    if program is None:
        return None
    outcome = run_looped(program.step, program.operands, len(rows), rows[0], rows.step, len(rows) if snapshots is None else snapshots,
                         _Backward(program, steps))
    if outcome is None:
        return None
    last, stacked = outcome
    return Looped(tree_unflatten(last, tree_flatten(steps.carry)[1]),
                  tree_unflatten(stacked, tree_flatten(program.y)[1]) if program.has_results else program.y)


def looped_while(run: Any, steps: Steps) -> Looped | None:
    """Run the captured step as long as its first decision holds; None where no loop can."""
    program = _program_of(run, steps.carry, None, ())
    if program is None or program.step.first_decision < 0 or program.has_results:
        return None
    last = run_looped_while(program.step, program.operands, _Backward(program, steps))
    return None if last is None else Looped(tree_unflatten(last, tree_flatten(steps.carry)[1]), None)
