"""Backwards of a captured call that its program does not compute: by another backward part, or by the function itself."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from cygrad._core.capture.compiled_node import in_profile, may_replay
from cygrad._core.capture.guards import GuardSource, first_broken
from cygrad._core.capture.kinds import has_hooks, has_leaf_hooks
from cygrad._core.capture.restoring import restoring
from cygrad._core.capture.signature import Parts, argument_parts, signature_of
from cygrad._core.graph.modes import RecordingMode
from cygrad._core.graph.notes import put_back, state_now
from cygrad._core.graph.saved import released_error_of, set_thread_hooks, thread_hooks
from cygrad._core.levels.level import outside_of_levels
from cygrad._core.levels.overrides import _overrides_off, _set_overrides_off
from cygrad._core.levels.sparse import sparse_part
from cygrad._core.memory.storage import get_default_dtype, set_default_dtype
from cygrad.autograd.derivatives import gradients_between
from cygrad.compiling.array_inputs import as_arrays
from cygrad.compiling.captures import Capture, Entry, plain_of, unobserved
from cygrad.compiling.containers import take_apart
from cygrad.compiling.number_inputs import as_numbers, floats_as_inputs, replaced
from cygrad.compiling.observing import is_observed
from cygrad.generator import go_back, positions_of
from cygrad.overrides import _ask_modes, _entered_modes
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad._core.capture.replay import Replay
    from cygrad._core.levels.level import Level
    from cygrad.compiling.compiled import Compiled

MOST_OTHERS = 8         # backward parts of a program besides its own, and attempts to make some


def as_in_a_call(entry: Entry) -> restoring[None]:
    """Record as the call did, and ask classes that override operators: a backward does neither.

    It may run in inference mode, with another default dtype, with hooks on saved tensors, and in modes of functions.
    """
    off, dtype, hooks, modes = _overrides_off(), get_default_dtype(), thread_hooks(), _entered_modes()
    recording = RecordingMode(grad=entry.records, inference=False)

    def begin() -> None:
        set_default_dtype(entry.dtype)
        set_thread_hooks(None)
        _ask_modes([])
        _set_overrides_off(0)
        recording.__enter__()

    def end(_: object) -> None:
        set_default_dtype(dtype)
        set_thread_hooks(hooks)
        _ask_modes(modes)
        with contextlib.suppress(RuntimeError):     # it was not entered, or was left before an interrupt
            recording.__exit__()
        _set_overrides_off(off)

    return restoring(end, begin)


def changed_error(name: str, owner: Compiled) -> Exception:
    """Return the error of a backward whose function names a value that was changed after the call."""
    return RuntimeError(f"compile(): {name} was changed between a call of {owner._name()} and its backward, which needs it")


class Rerun:
    """Makes further backward parts of a call's program, for gradients of other layouts or of some results only.

    Computes gradients by the function itself where no program can: where they are differentiated again, or are examples of `vmap`.
    """

    def __init__(self, owner: Compiled, args: Any, kwargs: Any, entry: Entry, positions: dict[Any, Any],
                 with_floats: tuple[Any, Any] | None, levels: tuple[Level, ...] = ()) -> None:
        self.owner, self.args, self.kwargs, self.entry = owner, args, kwargs, entry
        self.positions = positions      # of generators, before the call
        self.with_floats = with_floats  # the arguments with inputs in place of floats, if these are inputs of the program
        self.levels = levels            # around the call
        self.freed: frozenset[int] = frozenset()    # values, by backwards of some results

    def program_for(self, inputs: Sequence[Any], is_unchanged: bool, gradients: Sequence[Any]) -> Replay | None:
        """Return a new program for gradients of other layouts, or of some only; None: the function itself is to run.

        gradients: of the results, then the sums so far of the inputs that are read often. is_unchanged: the inputs are as they were at the
        call. If the function cannot run again, gradients of all results are copied for the first program, which adds to no sums.
        """
        first = self.entry.replay
        may_run = is_unchanged and not first.written and not self.meets_hooks(inputs) and self.has_values(inputs)
        if may_replay() and not (in_profile() or is_observed()):
            program = self.further_program(inputs, gradients, may_run)
            if program is not None:
                return program
        return None if may_run or any(gradient is None for gradient in gradients[:len(first.recorded)]) else first

    def further_program(self, inputs: Sequence[Any], gradients: Sequence[Any], has_other_way: bool = True) -> Replay | None:
        """Return a new program as `program_for` does; None: there is none, or values are others than at the call, or there are too many
        and the gradients have another way.
        """
        others = self.entry.replay.others
        if len(others) == MOST_OTHERS and has_other_way or self.meets_hooks(inputs) or not self.has_values(inputs):
            return None
        program = None
        with contextlib.suppress(Exception):       # the function itself may raise it again
            program = self.noted(inputs, gradients)
        if len(others) < MOST_OTHERS:
            others.append(program)
        return program

    def meets_hooks(self, inputs: Sequence[Any]) -> bool:
        """Return True if a backward in the function would meet hooks on inputs, which may have been registered after the call."""
        return any(has_hooks(inputs[number]) or has_run and has_leaf_hooks(inputs[number]) for number, has_run in self.entry.replay.reached)

    def program_for_loop(self, inputs: list[Any], gradients: list[Any]) -> Replay | None:
        """Return a program for gradients of some layouts; None: there is none."""
        program = self.entry.replay.program_for(gradients)
        if program is None:
            with unobserved():
                program = self.further_program(inputs, gradients)
        return program

    def note_freed(self, program: Replay) -> None:
        """Note the values that a backward frees which does not keep the graph: of some results, since the others have no gradient."""
        self.freed |= program.frees or frozenset()

    def check_freed(self, program: Replay | None) -> None:
        """RuntimeError where a backward would read values that one of other results has freed."""
        if self.freed and (program is None or program.frees is None or self.freed & program.frees):
            raise released_error_of()

    def noted(self, inputs: Sequence[Any], gradients: Sequence[Any]) -> Replay:
        """Return the program of a further backward part; Uncapturable where there is none."""
        parts = Parts()
        self.check_values(inputs)
        args, kwargs = self.arguments(inputs)
        with as_in_a_call(self.entry), self.gradients_at_call(inputs):
            capture = Capture(self.owner, signature_of(args, kwargs, parts), parts, args, kwargs)
            return capture.backward(self.entry, args, kwargs, inputs, gradients)

    def gradients_at_call(self, inputs: Sequence[Any]) -> restoring[None]:
        """Give tensors, for a while, the gradients that they had at the call."""
        before = [(inputs[number], None if gradient is None else inputs[gradient]) for number, gradient in self.entry.gradients_before]
        _, now = state_now([], before)
        return restoring(lambda _: put_back([], now), lambda: put_back([], before))

    def arguments(self, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """Return the arguments, with inputs in place of floats that are inputs, and with the tensors of the call where containers and
        functions have others now; RuntimeError where another value has changed.
        """
        args, kwargs = self.args, self.kwargs
        if self.with_floats is not None:
            args, kwargs = floats_as_inputs((args, kwargs))
        is_like = plain_of(args, kwargs) == self.entry.plain
        of_objects = [guard for guard in self.entry.guards if guard.source == GuardSource.OBJECTS]
        chosen = self.with_floats or (args, kwargs)
        if is_like and not self.levels and not self._has_tensors(chosen, inputs):      # in levels, inputs are parts of the tensors
            before = iter(inputs)
            chosen = replaced(chosen, Tensor, lambda tensor: next(before, tensor) if sparse_part(tensor) is None else tensor)
            is_like = self._has_tensors(chosen, inputs)
        if not is_like or first_broken(of_objects, [], objects=argument_parts(*chosen).objects) is not None:
            raise RuntimeError(f"compile(): an argument of {self.owner._name()} was changed between its call and its backward, which "
                               "needs it")
        return chosen

    def _has_tensors(self, arguments: tuple[Any, Any], inputs: Sequence[Any]) -> bool:
        """Return True if the tensors among some arguments are the inputs of the call."""
        tensors = argument_parts(*arguments).tensors
        return len(tensors) == self.entry.argument_count and all(a is b for a, b in zip(tensors, inputs, strict=False))

    def has_values(self, inputs: Sequence[Any]) -> bool:
        """Return True if the values outside of the function are as they were at the call."""
        try:
            self.check_values(inputs)
            self.arguments(inputs)
        except RuntimeError:
            return False
        return True

    def check_values(self, inputs: Sequence[Any], guards: list[Any] | None = None) -> None:
        """RuntimeError if a value outside of the function has changed since the call."""
        current = list(inputs[:self.entry.argument_count])
        guards = self.entry.guards if guards is None else guards
        with self.gradients_at_call(inputs):
            broken = first_broken(guards, current, self.levels, True)
        if broken is not None or any(a is not b for a, b in zip(current, inputs, strict=False)):
            name = "a tensor that its code names" if broken is None else repr(broken)
            raise changed_error(name, self.owner)

    def __call__(self, inputs: Sequence[Any], gradients: Sequence[Any], create_graph: bool) -> list[Any]:
        """Return the gradients of the inputs that have one, from gradients of the results, and the sums so far to which they are added."""
        if self.entry.replay.written:
            raise RuntimeError(f"compile(): {self.owner._name()} changes tensors from outside in place, so it is not run again for "
                               "gradients with create_graph=True, in batches, or of some results only: call it without compile()")
        if self.meets_hooks(inputs):
            raise RuntimeError(f"compile(): a backward in {self.owner._name()}, which is run again for gradients with create_graph=True, "
                               "in batches, or of some results only, would meet a hook on an input, or add to its retained gradient: "
                               "register the hook, or call retain_grad(), before the call")
        self.check_values(inputs)
        args, kwargs = as_arrays(as_numbers(self.arguments(inputs)))
        results: list[Any] = []
        now = positions_of(self.positions)
        with as_in_a_call(self.entry), restoring(lambda _: go_back(now)), self.gradients_at_call(inputs):
            go_back(self.positions)
            with outside_of_levels():     # as a replay: the same for all examples of gradients
                take_apart(self.owner._function(*args, **kwargs), results)
            for place in self.entry.number_places:
                results.insert(place, None)
            self.entry.add_gradients(results, inputs)
        replay, differentiable = self.entry.replay, tuple(inputs[number] for number in self.entry.differentiable)
        roots = [*(results[number] for number in replay.recorded), *(inputs[number] for _, number in replay.read_often)]
        outputs, weights = zip(*((root, gradient) for root, gradient in zip(roots, gradients, strict=True) if gradient is not None),
                               strict=True)
        return gradients_between(outputs, differentiable, weights, create_graph)
