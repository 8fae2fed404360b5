"""The steps of a loop behind the first ones as one loop of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, cast

from cygrad._core.capture.guards import GuardRole, GuardSource
from cygrad._core.capture.layouts import put_together
from cygrad._core.capture.looped import LoopedStep
from cygrad._core.capture.looping import run_looped, run_looped_while
from cygrad._core.capture.signature import parts_of, tensors_behind
from cygrad._core.levels.level import active_levels, tangents_seen
from cygrad._core.levels.tangents import set_tangent, tangent_of
from cygrad.autograd.derivatives import gradients_between
from cygrad.compiling.captures import Entry, unobserved
from cygrad.compiling.compiled import Compiled
from cygrad.compiling.loop_steps import StepByCode, with_own_variables
from cygrad.compiling.reruns import Rerun, as_in_a_call, changed_error
from cygrad.func.loop_levels import RESUMING, Levels, NotLooped, PlainStep, batches, resumed, together
from cygrad.func.looped_backward import LoopedBackward, Operands, Scan, Step, reached_operands
from cygrad.pytree import tree_flatten, tree_unflatten

LOOPED_FROM = 512       # in the capture of a function: programs have all steps of a shorter loop, whose backward runs each once, not twice
LARGEST = 1 << 16       # bytes of a step's values: of larger ones the memory decides, and a loop would compute them twice


class Ended(Exception):
    """The predicate of a `while_loop` does not hold."""


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
    one_by_one: Callable[[Step], Looped]

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
    operands: list[Any]         # carried values, tensors whose rows are the slices, constants
    named: list[Any]            # the tensors that the code of the step names: constants are the plain ones behind these
    y: Any                      # the results of a step but the carry, with places for tensors
    has_results: bool
    check_values: Callable[[], None]
    entry: Entry

    @property
    def first_constant(self) -> int:
        return len(self.operands) - self.step.constants


class _Backward:
    """Gradients of a loop by the function itself: where they are differentiated again, or have tangents, or a decision comes out otherwise.

    Within levels the loop is one of plain tensors. As long as a level of forward mode is in progress, gradients of their values have
    tangents, which depend on the tangents of the values.
    """

    def __init__(self, program: _Program, steps: Steps) -> None:
        self.program, self.steps, levels = program, steps, steps.levels
        self.forms = any(form is not None for form in program.entry.gradient_forms)       # gradients that stand for others
        behind = [tensors_behind(named, levels) for named in program.named]
        self.constants = [tensor for tensors in behind for tensor in tensors]
        self.are_values = [number == 0 for tensors in behind for number in range(len(tensors))]
        self.tangents = [(tensor, level, tangent_of(tensor, level)) for tensor in self.constants for level in levels if level.size < 0]

    def __call__(self, count: int, gradients: Sequence[Any], create_graph: bool) -> list[Any]:
        """Return them, of a loop of `count` steps; -1 where no number is known that holds for a replay, too."""
        levels, sees_tangents = self.steps.levels, self.sees_tangents()
        with as_in_a_call(self.program.entry):
            if all(level.is_active() for level in levels):
                return self._computed(count, gradients, create_graph, sees_tangents)
            with RESUMING, resumed(levels):
                self._set_tangents()
                around, computed = active_levels(), self._computed(count, gradients, create_graph, sees_tangents)
                pairs = [None if each is None else parts_of(each, around) for each in computed]
            return [None if pair is None else together(pair[0], iter(pair[1]), around) for pair in pairs]

    def reached(self, count: int, gradients: Sequence[Any]) -> list[bool]:
        """Return, for each differentiable operand, whether results with gradients depend on it: no other has one, not even of zeros."""
        numbers = self._reached(count, zip(self.program.step.recorded_results, gradients, strict=True))
        return [number in numbers for number in self.program.step.differentiable]

    def _reached(self, count: int, pairs: Iterable[tuple[tuple[bool, int], Any]]) -> frozenset[int]:
        step, entry = self.program.step, self.program.entry
        if entry.dependencies is None:
            try:
                self.program.check_values()
            except RuntimeError:        # the step is another one now
                return frozenset(step.differentiable)
            entry.dependencies = self._dependencies()
        moving = frozenset(number for number, stays in enumerate(step.stays) if not stays)
        return reached_operands(entry.dependencies, [result for result, gradient in pairs if gradient is not None], count, moving)

    def _dependencies(self) -> dict[tuple[bool, int], frozenset[int]]:
        """Return the numbers of the differentiable operands that each recorded result of a step depends on, by a step besides the loop."""
        steps = self.steps
        with unobserved(), as_in_a_call(self.program.entry), RESUMING, resumed(steps.levels):
            self._set_tangents()
            return self._looped_backward(self.program.step.recorded_results, self.program.step.differentiable, False, ()).dependencies(
                steps.rows[0] if steps.rows else 0)

    def _looped_backward(self, recorded: list[tuple[bool, int]], differentiable: tuple[int, ...], create_graph: bool, unseen: Levels
                         ) -> LoopedBackward:
        steps = self.steps
        known = Operands(steps.carry, steps.xs, self.constants, self.program.step.stays, differentiable, recorded)
        return LoopedBackward(partial(steps.scan, must_loop=True, below=steps.levels), steps.step, known, create_graph, unseen)

    def sees_tangents(self) -> bool:
        """Return True if this thread sees tangents of the operands, which the program of the backward has none of."""
        return any(level.shows_tangents() for level in self.steps.levels)

    def _set_tangents(self) -> None:
        """Give constants the tangents that have ended with their levels."""
        for tensor, level, tangent in self.tangents:
            if tangent is not None and tangent_of(tensor, level) is None:
                set_tangent(tensor, level, tangent)

    def _computed(self, count: int, gradients: Sequence[Any], create_graph: bool, sees_tangents: bool) -> list[Any]:
        self.program.check_values()
        step, steps = self.program.step, self.steps
        pairs, numbers = list(zip(step.recorded_results, gradients, strict=True)), step.differentiable
        may_loop, unseen = count >= LOOPED_FROM and not self._has_twice(), steps.levels
        if sees_tangents:
            unseen, of_tangents = (), [gradient for result, gradient in pairs if not self._is_value(*result)]
            may_loop = may_loop and not cast("PlainStep", steps.step).below     # a step on the values and tangents of such a backward
            if all(gradient is None for gradient in of_tangents):       # gradients of values go to values
                pairs = [(result, gradient) for result, gradient in pairs if self._is_value(*result)]
                numbers = tuple(number for number, is_value in zip(numbers, self._operands_are_values(), strict=True) if is_value)
            else:
                may_loop = False
        computed = None
        if may_loop:
            with suppress(NotLooped):
                backward = self._looped_backward([result for result, _ in pairs], numbers, create_graph, unseen)
                computed = backward(steps.rows or range(count), [gradient for _, gradient in pairs])
                if any(gradient is None for (is_carried, _), gradient in pairs if is_carried):
                    reached = self._reached(count, pairs)
                    computed = [gradient if number in reached else None for number, gradient in zip(numbers, computed, strict=True)]
                    if _holds_nan(computed):
                        computed = None     # perhaps of zeros in place of gradients that have not arrived
        if computed is None:
            computed = self._one_by_one(pairs, numbers, create_graph, unseen)
        by_number = dict(zip(numbers, computed, strict=True))
        return [by_number.get(number) for number in step.differentiable]

    def _one_by_one(self, pairs: Sequence[tuple[tuple[bool, int], Any]], numbers: Sequence[int], create_graph: bool, unseen: Levels
                    ) -> list[Any]:
        """Return the gradients of operands, by numbers, from results of single steps, each with its gradient or None."""
        computed = self.steps.one_by_one(self.steps.step)
        results = ([] if computed.y is None else tree_flatten(computed.y)[0]), tree_flatten(computed.carry)[0]
        arrived = [(results[is_carried][number], gradient) for (is_carried, number), gradient in pairs if gradient is not None]
        outputs, weights = zip(*arrived, strict=True)
        operands = [*self.program.operands[:self.program.first_constant], *self.constants]
        with tangents_seen(unseen, False):
            return gradients_between(outputs, tuple(operands[number] for number in numbers), weights, create_graph)

    def _has_twice(self) -> bool:
        """Return True if a tensor is carried on as it is, and named by the step: it would be two inputs of a step of `LoopedBackward`."""
        operands, stays = self.program.operands, self.program.step.stays
        constants = operands[self.program.first_constant:]
        return any(any(operand is each for each in constants) for operand, stay in zip(operands, stays, strict=False) if stay)

    def _is_value(self, is_carried: bool, number: int) -> bool:
        """Return True if a result is the value of a tensor, not a tangent."""
        return cast("PlainStep", self.steps.step).results(is_carried).are_values()[number]

    def _operands_are_values(self) -> list[bool]:
        """Return, for each differentiable operand, whether it is the value of a tensor, not a tangent."""
        step, slices = cast("PlainStep", self.steps.step), self.steps.xs
        are_values = [*step.carry.are_values(), *([] if slices is None else step.xs.are_values()), *self.are_values]
        return [are_values[number] for number in self.program.step.differentiable]

    def delivered(self, gradients: Sequence[Any]) -> list[Any]:
        """Return gradients that the loop has made, in the place of the plain tensors behind them."""
        first, step = len(self.program.step.stays), self.program.step
        slices = range(first, self.program.first_constant)
        return [None if gradient is None else together(form, iter((gradient,)), self.steps.levels, number in slices)
                for number, form, gradient in zip(step.differentiable, self.program.entry.gradient_forms, gradients, strict=True)]


def _holds_nan(gradients: Sequence[Any]) -> bool:
    levels = active_levels()
    return any(bool(plain.detach().isnan().any()) for gradient in gradients if gradient is not None
               for plain in tensors_behind(gradient, levels))


def _program_of(run: Any, carry: Any, x: Any, leaves: Sequence[Any]) -> _Program | None:
    """Return the program of a captured step; None where no loop can run one."""
    try:
        programs = [*run.programs(carry, x)] if isinstance(run, (Compiled, StepByCode)) else []
    except Exception as error:
        if isinstance(error, Ended) or not isinstance(run._function, PlainStep):
            raise
        programs = []       # it takes single examples alone, or raises the error again
    looped = (_looped_program(run, *program, carry, x, leaves) for program in programs)
    return next((program for program in looped if program is not None), None)


def _looped_program(run: Any, entry: Entry, inputs: list[Any], checks: Rerun, carry: Any, x: Any, leaves: Sequence[Any]
                    ) -> _Program | None:
    """Return one of the programs of a captured step for a loop; None where none can run it."""
    guards = [guard for guard in entry.guards if guard.role == GuardRole.TENSOR]
    carried, slices = tree_flatten(carry)[0], tree_flatten(x)[0] if leaves else []
    if entry.number_places:
        return None
    new_carry, y = put_together(entry.template, _Places())
    carry_numbers, y_numbers = (list(map(_number_of, tree_flatten(tree)[0])) for tree in (new_carry, () if y is None else y))
    first_constant, forms = len(carried) + len(slices), entry.gradient_forms
    if (entry.draws or entry.generators or entry.replay.guards or -1 in carry_numbers + y_numbers
            or any(guard.source == GuardSource.GRADIENT for guard in entry.guards)
            or len(inputs) < first_constant or not all(leaf.is_contiguous() for leaf in carried)
            or any(a is not b for a, b in zip(inputs, carried + slices, strict=False))):
        return None
    step = LoopedStep(entry.replay, carry_numbers, len(slices), y_numbers, entry.differentiable)
    varies = [not stays for stays in step.stays] + [True] * len(slices)
    shares_memory = any(each < first_constant and varies[each] for pair in entry.memory for each in pair[:2])
    if (step.nbytes > LARGEST or not step.fits or not step.takes(carried) or shares_memory
            or not _has_plain_gradients(run._function, step, forms)):
        return None
    if not isinstance(run._function, PlainStep):        # gradients within levels may stand for others, which have other shapes
        reverse = checks.program_for_loop(inputs, step.gradients_with_sums(inputs))
        if reverse is not None:
            step.reverse_by(reverse)
    operands, variables = [*carried, *leaves, *inputs[first_constant:]], inputs[first_constant:entry.argument_count]
    values = [guard.value_now() for guard in guards]

    def check_values() -> None:
        checks.check_values(inputs[:entry.argument_count])
        if any(guard.value_now() is not tensor for guard, tensor in zip(guards, values, strict=True)):
            raise changed_error("a tensor that its code names", run)

    return _Program(step, operands, [*variables, *values], y, bool(y_numbers), check_values, entry)


def _has_plain_gradients(function: Any, step: LoopedStep, forms: Sequence[Any]) -> bool:
    """Return True if the plain tensors behind gradients can be added up step by step.

    Not in two levels of forward mode. Of an input that is the same for all examples of `vmap` they are added up for each example, and
    summed where the vmap has ended by the backward: so all results that have gradients must differ among the examples.
    """
    if not step.differentiable or not isinstance(function, PlainStep):
        return True
    if sum(level.size < 0 for level in function.levels) > 1:
        return False
    results = [function.results(is_carried).batches()[number] for is_carried, number in step.recorded_results]
    moving = [number for number, stays in enumerate(step.stays) if not stays]
    return all(form is None or number not in moving and all(batches(form)[0] - function.below <= each for each in results)
               for number, form in zip(step.differentiable, forms, strict=True))


def looped(run: Any, x: Any, steps: Steps, snapshots: int | None = None) -> Looped | None:
    """Run the captured step for the rows of some tensors, or as long as its first decision holds; None where no loop can.

    x: of the first row. snapshots: how many states a backward may keep; None: all.
    """
    program = _program_of(run, steps.carry, x, [] if steps.xs is None else tree_flatten(steps.xs)[0])
    if program is None:
        return None
    if isinstance(run, StepByCode):
        steps = steps._replace(step=with_own_variables(steps.step))     # a backward may run it after some have been assigned
    step, operands, rows, rerun = program.step, program.operands, steps.rows, _Backward(program, steps)
    if rows is not None:
        outcome = run_looped(step, operands, len(rows), rows[0], rows.step, len(rows) if snapshots is None else snapshots, rerun)
    elif step.first_decision < 0 or program.has_results:
        return None
    else:
        outcome = run_looped_while(step, operands, rerun)
    if outcome is None:
        return None
    last, stacked = outcome
    return Looped(tree_unflatten(last, tree_flatten(steps.carry)[1]),
                  tree_unflatten(stacked, tree_flatten(program.y)[1]) if program.has_results else program.y)
