"""Captures: programs of the calls of a function, made while it runs."""

from __future__ import annotations

import contextlib
import operator
import sys
import tracemalloc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.compiled_node import changes_by_counter, changes_since, graph_between, saved_by_functions, versions_of
from cygrad._core.capture.guards import Guard, GuardRole, GuardSource, first_broken
from cygrad._core.capture.kinds import Uncommon, has_hooks, shared_memory
from cygrad._core.capture.replay import Replay
from cygrad._core.capture.restoring import restoring
from cygrad._core.capture.signature import Parts, are_unseen_views, parts_of, signature_of, tensors_behind
from cygrad._core.graph.modes import _set_grad_enabled, is_grad_enabled, is_inference_mode_enabled
from cygrad._core.graph.notes import Notes, current_notes, end_notes, put_back, state_now
from cygrad._core.levels.level import active_levels, tangents_seen
from cygrad._core.levels.overrides import _overrides_off, _set_overrides_off
from cygrad._core.memory.storage import get_default_dtype, set_default_dtype
from cygrad.autograd.derivatives import gradients_between
from cygrad.compiling.containers import containers_in, take_apart
from cygrad.compiling.histories import differentiable_inputs, history_of, leaf_gradients
from cygrad.compiling.number_inputs import FloatInput, as_numbers, replaced
from cygrad.compiling.observing import Observation
from cygrad.compiling.undoing import undone_in_python
from cygrad.data.creation import zeros
from cygrad.generator import Generator, go_back, position_of, positions_of
from cygrad.operators._sparse.pattern import Pattern
from cygrad.operators.new_tensors import zeros_like
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from cygrad._core.memory.storage import DType
    from cygrad.compiling.compiled import Compiled


CONSTANTS = tuple, slice, range     # classes whose objects nothing changes


class Unsettled(Uncapturable):
    """There is no program of this call, but there may be one of the next."""


class ChangesOutside(Unsettled):
    """A function has changed a value that its code names: perhaps the first time only, as one that fills a table does."""


@dataclass(slots=True, eq=False)        # read at each call: fields of named tuples are slower
class Entry:
    """A program, when it holds, and how to put its results together."""

    replay: Replay
    guards: list[Any]
    argument_count: int             # tensors among the arguments; those that guards name come behind them
    template: Any                   # the value that the function returned, with holes for tensors
    gradients_before: list[tuple[int, int | None]]      # (number of an input, number of the input that is its gradient at the call)
    gradients: list[tuple[int, int | None]]     # (number of an input, number of the result that is its gradient)
    differentiable: tuple[int, ...]
    memory: tuple[Any, ...]         # that tensors share, as in `shared_memory`
    draws: bool                     # random numbers perhaps, before a step that may give up
    generators: list[Generator]     # that it draws from
    plain: Any                      # the arguments that are no tensors, and no floats that are inputs
    others: list[Any]               # objects that the key has by identity
    path: int                       # the way through the function, as a number
    reads_numbers: bool             # code of Python computes with integers of tensors: it is for these alone
    dtype: DType                    # the default one
    records: bool                   # grad mode
    follows_places: bool            # a part at a place that a tensor names is a copy, for all places
    number_places: list[int]        # places among the results of tensors that stand for numbers
    gradient_forms: list[Any]       # of the gradients of differentiable inputs: of ones that stand for others (see signature.pxd)
    dependencies: Any = None        # of recorded results on differentiable inputs, where a loop has asked for them

    def add_gradients(self, results: list[Any], inputs: Sequence[Any]) -> None:
        """Add to the results of a call the gradients that it has set."""
        for number, result in self.gradients:
            if result == len(results):
                results.append(inputs[number].grad)


class Capture:
    """The first call of a kind: runs the function, and makes a program of its steps if that is possible."""

    def __init__(self, owner: Compiled, key: Any, parts: Parts, args: Any, kwargs: Any, objects: list[Any] | None = None) -> None:
        """objects: of the call of the user, where the arguments are copies."""
        self.owner, self.key, self.parts, self.args, self.kwargs = owner, key, parts, args, kwargs
        self.tensors, self.objects = parts.tensors, parts.objects if objects is None else objects
        self.entry: Entry | None = None
        self.versions: list[int] = []   # of the tensors, before
        self.counts_back: tuple[list[Any], list[int]] = [], []      # tensors, and how often the backward has changed them
        self.guards_back: list[Any] = []    # of values that its code names
        self.reason = ""                # why there is no program
        self.may_settle = False         # there may be one for a later call
        self.is_early = False           # there is none yet: a later call shows all values that the function uses
        self.names: set[str] = set()    # that its code uses
        self.changes: Changes | None = None     # by the call, if they are kept

    def observation(self, args: Any, kwargs: Any) -> Observation:
        """Return an observation of a call with arguments that are alike."""
        return Observation(self.owner._function, self.parts.others, containers_in((args, *kwargs.values())))

    def run(self, args: Any, kwargs: Any, keeps_changes: bool = False) -> Any:
        """Return the result of the function for arguments, and make the program.

        `run_again` makes it where these are not the arguments of the capture, which has objects in place of arrays.
        """
        notes, observation = Notes(), self.observation(args, kwargs)
        self.versions = versions_of(self.tensors)
        if keeps_changes:
            notes.keep_values()
        with allocations_traced(self.owner._fullgraph or self.owner._reads_arrays) as is_new:
            with unharmed(), observation, notes:
                value = self.owner._function(*args, **kwargs)
            self.names, self.is_early = observation.names, observation.is_early
            if keeps_changes:
                self.changes = Changes(notes)
            try:
                outside = () if self.owner._is_step else observation.known.union(
                    observation.containers, (id(tensor) for _, tensor in observation.tensors))
                if args is not self.args or kwargs is not self.kwargs:
                    self.check_repeats(observation, self.tensors.copy())
                elif not self.is_early:
                    self.entry = self.program(notes, observation, value, is_new, outside)
            except Uncapturable as error:
                self.reason, self.may_settle = str(error), isinstance(error, Unsettled)
            except MemoryError:     # for the program; the function has had enough
                pass
            except (RuntimeError, Uncommon) as error:       # of a view that has no history any more; of a gradient that stands for others
                self.reason = str(error)
        return value

    def run_aside(self, args: Any, kwargs: Any, holds: Callable[[Any], bool] = lambda value: True, follows_places: bool = False) -> None:
        """Make the program for arguments if a condition holds for the result. All changes are undone; notes of another function that is
        captured have no steps of this run. follows_places: of parts at places that tensors name, for all places.
        """
        were_traced = self.owner._reads_arrays
        self.try_aside(args, kwargs, holds, follows_places)
        if self.entry is None and self.owner._reads_arrays and not were_traced:
            self.reason = ""
            self.try_aside(args, kwargs, holds, follows_places)

    def try_aside(self, args: Any, kwargs: Any, holds: Callable[[Any], bool], follows_places: bool) -> None:
        """Do as `run_aside`; without a program if it reads arrays of NumPy's, and allocations are not traced."""
        notes, observation = Notes(follows_places), self.observation(args, kwargs)
        observation.is_undone = True
        with unobserved(), undone(notes), undone_in_python(observation), allocations_traced(self.owner._reads_arrays) as is_new:
            self.versions = versions_of(self.tensors)
            try:
                with unharmed(), observation, notes:
                    value = self.owner._function(*args, **kwargs)
                if notes.has_numbers and ("type" in observation.names or id(type) in observation.known):
                    raise Uncapturable("its code names type(), and the number of a step has another one")
                check_looks(notes)
                if holds(value) and not observation.is_early:
                    self.entry = self.program(notes, observation, value, is_new)
            except KeyboardInterrupt:
                raise
            except BaseException as error:      # objects in place of numbers and arrays may raise: the user's call raises its own errors
                self.reason = str(error)

    def run_again(self, changes: Changes, value: Any, args: Any, kwargs: Any, follows_places: bool = False) -> None:
        """Make the program in a second run of the call, from the state before its changes, if that has the same result and changes."""
        with contextlib.suppress(Exception), changes.undone() as are_made_again:    # of the function, which has had its call
            self.run_aside(args, kwargs, lambda again: are_same(as_numbers(again), value) and are_made_again(), follows_places)

    def program(self, notes: Notes, observation: Observation, value: Any, is_new: Callable[[Any], bool],
                outside: Collection[int] = ()) -> Entry:
        """Return the program of the notes; Uncapturable where they are none.

        is_new: an object was made by the call. outside: ids of containers and tensors that were there before.
        """
        inputs = self.tensors.copy()
        if notes.hooks_outside:
            raise Uncapturable("it registers a hook on a leaf, or on the history of an argument: register it outside of the function")
        check_looks(notes)
        if notes.ran_history_outside:
            raise Uncapturable("it runs a backward through the history of a tensor from outside, which may be another one in another call: "
                               "compute that tensor inside of the function, or give it by .detach()")
        self.check_repeats(observation, inputs)
        keys = frozenset(observation.tensor_keys)
        by_identity = [Guard(GuardSource.INPUT, number, "a tensor, of which some are keys", tensor if id(tensor) in keys else keys)
                       for number, tensor in enumerate(inputs if keys else ())]
        versions = self.versions + [version for guard in observation.guards if guard.role == GuardRole.TENSOR for version in guard.versions]
        counts = changes_since(versions, inputs)
        by_identity += [*self.guards_of_places(notes, observation, inputs, counts), *self.guards_of_objects(observation)]
        nodes = {id(node) for node in notes.independent_histories}
        if nodes:
            numbers = [number for number, tensor in enumerate(inputs) if id(tensor.grad_fn) in nodes]
            by_identity.append(Guard(GuardSource.HISTORIES, numbers, None))
        sources = [*self.tensors, *sources_of(observation.guards)]      # of the inputs: the tensors that their gradients go to
        results: list[Any] = []
        template = take_apart(value, results, outside)
        number_places = [place for place, result in enumerate(results) if issubclass(type(result), FloatInput)]
        for place in number_places:
            results[place] = results[place].__operand__()
        arrays = arrays_without_guards(notes, observation)
        if arrays:
            self.owner._reads_arrays = True
        check_arrays(notes, arrays, is_new, results)
        of_leaves = leaf_gradients(notes, inputs, sources, results)
        check_inputs(notes, inputs)
        known = {id(tensor) for tensor in inputs}
        if any(id(result) not in known and has_hooks(result) for result in results):
            raise Uncapturable("it returns, or sets as a gradient, a tensor with a hook, or one that retains its gradient: hooks of the "
                               "caller would run before. Call register_hook() and retain_grad() on the result, outside of the function")
        path, ran_backward, reads_numbers = notes.path(), notes.ran_backward, notes.reads_numbers()
        ends = [id(tensor.grad_fn or tensor) for tensor in inputs]
        reached = tuple((number, notes.reached[end]) for number, end in enumerate(ends) if end in notes.reached)
        notes.thaw_results(results)
        split = len(notes)
        follows_places = notes.part_copies is not None
        if follows_places and any(map(notes.is_part_copy, results)):
            raise Uncapturable("it returns a part of a tensor at a place that a tensor names: return a copy, by .clone()")
        generators = [generator for generator, before in notes.generators.items() if position_of(generator) != before]
        history = history_of(results, inputs, sources)
        saved = saved_by_functions(history.nodes, inputs)
        results = [result.detach() if number in history.released else result for number, result in enumerate(results)]
        check_messages(notes, bool(history.recorded))
        differentiable = differentiable_inputs(inputs, sources) if history.recorded or history.released else ()
        weights = [zeros_like(result.detach()) for result in history.recorded]
        back: list[Any] = []
        read_often: tuple[tuple[int, int], ...] = ()
        if history.recorded:
            back = self.gradients(notes, observation, history.recorded, inputs, [sources[number] for number in differentiable], weights)
            read_often = history.read_often(sources, differentiable)
            if all(gradient is None for gradient in back):      # or a tensor that it makes has the history
                raise Uncapturable("it returns a result that requires a gradient, which goes to none of its inputs: return .detach()")
        of_patterns = [Guard(GuardSource.ITEM, (tensor,), 0) for tensor in index_tensors(self.key, observation.guards, notes.patterns)
                       if notes.touches(tensor)]
        inputs += sources_of(of_patterns)
        forms = plain_gradients(back)
        new = [result for result in results if id(result) not in known]
        if any(type(result) is not Tensor or result.is_inference() != is_inference_mode_enabled() for result in new):
            raise Uncapturable("it returns a tensor of a subclass, or one that it made in inference mode: return a copy, by .clone(), "
                               "outside of that")
        notes.restore()     # of a run aside; a program lets go of tensors
        replay = Replay(notes, inputs, results, split, [*weights, *(None for _ in read_often)], back, self.owner._name())
        replay.changes = changes_by_counter(inputs, counts, replay.written)
        replay.changes_back = changes_by_counter(*self.counts_back, replay.written_back)
        replay.guards, replay.runs_backward, replay.released = self.guards_back, ran_backward, history.released
        replay.saved_by_functions = saved
        replay.read_often, replay.nested, replay.reached = read_often, history.nested(), reached
        if not history.frees_values:
            replay.frees = frozenset()
        if replay.written and are_unseen_views(inputs[:len(inputs) - len(of_patterns)]):
            raise Uncapturable("it writes into an array of NumPy's that other arrays are views of: give the whole array, and take the "
                               "views inside")
        if any(inputs[number].requires_grad and not inputs[number].is_leaf for number in replay.written):
            raise Uncapturable("it changes a tensor from outside in place that has a history: change a copy, by .clone()")
        return Entry(replay, observation.guards + by_identity + of_leaves.guards + of_patterns, len(self.tensors), template,
                     of_leaves.before, of_leaves.results, differentiable, shared_memory(inputs), replay.fails_after_call, generators,
                     plain_of(self.args, self.kwargs), self.parts.others, path, reads_numbers, get_default_dtype(), is_grad_enabled(),
                     follows_places, number_places, forms)

    def guards_of_places(self, notes: Notes, observation: Observation, inputs: list[Any], counts: list[int]) -> list[Any]:
        """Return guards of the tensors of which the function makes patterns: the same ones, unchanged."""
        guards: list[Any] = []
        if not notes.places:
            return guards
        numbers = {id(tensor): number for number, tensor in reversed([*enumerate(inputs)])}
        of_patterns = {id(tensor) for tensor in index_tensors(self.key, observation.guards, notes.patterns)}
        for tensor in notes.places:
            number = numbers.get(id(tensor), -1)
            if number >= 0 and not counts[number]:
                guards.append(Guard(GuardSource.INPUT, number, "an index tensor", tensor))
                guards.append(Guard(GuardSource.VERSION, number, "the elements of an index tensor", versions_of([tensor])[0]))
            elif id(tensor) not in of_patterns:
                raise Uncapturable("it makes a sparse tensor of indices that it has changed, or that are neither an argument nor found by "
                                   "a name that its code uses: make them outside of the function, and give them as an argument")
        return guards

    def guards_of_objects(self, observation: Observation) -> list[Any]:
        """Return a guard of the arguments that code distinguishes by identity, if it reaches objects of their classes otherwise.

        Uncapturable where the function gets copies of those that it reaches, or a loop would make copies: but for constants, which nothing
        but `is` distinguishes.
        """
        is_copied = self.owner._is_step or self.objects is not self.parts.objects
        kinds = {kind for kind in map(type, self.objects) if not is_copied or observation.has_is or not issubclass(kind, CONSTANTS)}
        known = {id(each): each for each in (*observation.objects, *observation.keys) if type(each) in kinds}
        places = [each if id(each) in known else None for each in self.objects]
        if any(each is not None and (self.owner._is_step or each is not own) for each, own in zip(places, self.parts.objects, strict=True)):
            raise Uncapturable("one is in a container that its code can name")
        return [Guard(GuardSource.OBJECTS, places, "an argument that its code can name", known)] if known else []

    def backward(self, entry: Entry, args: Any, kwargs: Any, inputs: Sequence[Any], gradients: Sequence[Any]) -> Replay:
        """Return the program of a backward part for gradients of other layouts, or of some only: the others are None.

        Besides the call of the user, the function runs once more for that, and all its changes are undone. Its values are not used, only
        its steps: the forward part is the program of the entry. Uncapturable where there is no such program.
        """
        notes, observation = Notes(entry.follows_places), self.observation(args, kwargs)
        weights = [None if gradient is None else zeros_in_layout_of(gradient) for gradient in gradients]
        with undone(notes):
            with unharmed(), observation, notes:
                value = self.owner._function(*args, **kwargs)
            if notes.path() != entry.path:
                raise Uncapturable("it takes another way now")
            results: list[Any] = []
            take_apart(value, results)
            entry.add_gradients(results, inputs)
            recorded = [results[number] for number in entry.replay.recorded]
            differentiable = [inputs[number] for number in entry.differentiable]
            roots = [*recorded, *(inputs[number] for _, number in entry.replay.read_often)]
            pairs = [(root, weight) for root, weight in zip(roots, weights, strict=True) if weight is not None]
            notes.thaw_results([result for result in results if isinstance(result, Tensor)])
            notes.forget_steps()
            roots, root_weights = ([*items] for items in zip(*pairs, strict=True))
            back = self.gradients(notes, observation, roots, [*inputs], differentiable, root_weights)
        replay = Replay(notes, [*inputs], [], 0, weights, back, entry.replay.name, entry.replay)
        replay.changes_back, replay.guards = changes_by_counter(*self.counts_back, replay.written_back), self.guards_back
        replay.frees = entry.replay.frees
        chosen = [result for result, weight in zip(recorded, weights, strict=False) if weight is not None]
        if len(chosen) < len(recorded):
            numbers = {id(node): number for number, node in enumerate(graph_between(recorded, inputs)[0])}
            replay.frees = frozenset(numbers[id(node)] for node in graph_between(chosen, inputs)[0] if node._frees_values())
        return replay

    def check_repeats(self, observation: Observation, inputs: list[Any]) -> None:
        """Refuse a function that may do something else each time, and changes of other values than tensors. The tensors that its code names
        are appended to `inputs`."""
        if observation.impure:
            raise Uncapturable(observation.impure)
        self.check_arguments()
        check_guards(observation, inputs)

    def check_arguments(self) -> None:
        """Refuse a function that has changed its arguments, but for the values of tensors."""
        parts = Parts()
        try:
            same = (signature_of(self.args, self.kwargs, parts) == self.key and are_identical(parts.tensors, self.tensors)
                    and are_identical(parts.objects, self.parts.objects))
        except Uncommon:
            same = False
        if not same:
            raise Uncapturable("it changes an argument itself, not the values of a tensor, or a mode: return the new value")

    def gradients(self, notes: Notes, observation: Observation, recorded: list[Any], tensors: list[Any], inputs: list[Any],
                  weights: list[Any]) -> list[Any]:
        """Return the gradients of results with respect to some of the tensors from outside, and note how they are computed."""
        known, gradients, versions = len(observation.guards), len(notes.changed_gradients()), versions_of(tensors + weights)
        observation.begin_repeated(notes.hooks)
        try:
            with undone(notes), unharmed(), observation, notes, tangents_seen(active_levels(), False):      # of plain tensors
                notes.begin_backward()
                back = gradients_between(tuple(recorded), tuple(inputs), tuple(weights), False)
                self.counts_back = tensors + weights, changes_since(versions, tensors + weights)
        except (MemoryError, Uncapturable):
            raise
        except Exception as error:      # which the backward will raise again
            raise Uncapturable(f"its backward raises {type(error).__name__}: {error}") from error
        if observation.impure:
            raise Uncapturable(observation.impure)
        check_looks(notes)
        if notes.changes_tensors:
            raise Uncapturable("its backward changes tensors from outside, other than their values: their requires_grad, or their hooks. "
                               "Do that outside of the function.")
        self.check_arguments()
        check_guards(observation, self.tensors.copy())
        if len(notes.changed_gradients()) > gradients or any(guard.role == GuardRole.TENSOR for guard in observation.guards[known:]):
            raise Uncapturable("its backward uses tensors, or their gradients, that it does not use itself: give them as arguments")
        self.guards_back = observation.guards if observation.repeats_code else []
        return back


class Changes:
    """Changes by a call, which can be undone for a while: of memory, gradients, and positions of generators."""

    def __init__(self, notes: Notes) -> None:
        self.memory, self.gradients, self.positions = notes.changes()       # before the call

    def undone(self) -> restoring[Callable[[], bool]]:
        """Undo the changes until the end of a `with` statement; give a test of whether another call has made them again."""
        memory, gradients = state_now(self.memory, self.gradients)
        positions = positions_of(self.positions)

        def are_made_again() -> bool:
            other_memory, other_gradients = state_now(self.memory, self.gradients)
            return ([values for _, _, values in other_memory] == [values for _, _, values in memory]
                    and all(are_same(a, b) for (_, a), (_, b) in zip(other_gradients, gradients, strict=True)))

        def undo() -> Callable[[], bool]:
            put_back(self.memory, self.gradients)
            go_back(self.positions)
            return are_made_again

        def end(_: object) -> None:
            put_back(memory, gradients)
            go_back(positions)

        return restoring(end, undo)


def are_identical(values: list[Any], others: list[Any]) -> bool:
    return all(map(operator.is_, values, others))


def are_same(a: Any, b: Any) -> bool:
    """Return True if two results of a function have equal types, plain values and elements."""
    ours, theirs = Parts(), Parts()
    return signature_of((a,), {}, ours) == signature_of((b,), {}, theirs) and all(
        x.allclose(y, 0, 0, equal_nan=True) for x, y in zip(ours.tensors, theirs.tensors, strict=True))


def plain_gradients(gradients: list[Any]) -> list[Any]:
    """Put plain tensors in the place of gradients within levels, and return their forms.

    There the gradient of a tensor that is the same for all examples of `vmap` differs among these.
    """
    levels = active_levels()
    forms: list[Any] = [None] * len(gradients)
    with tangents_seen(levels, False):
        for number, gradient in enumerate(gradients if levels else ()):
            if gradient is not None:
                forms[number], (gradients[number],) = parts_of(gradient, levels)
    return forms


def sources_of(guards: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors that gradients of the inputs of guards go to."""
    levels = active_levels()
    for guard in guards:
        if guard.role == GuardRole.TENSOR:
            yield from tensors_behind(guard.value_now(), levels)


def index_tensors(*kinds: Any) -> Iterator[Any]:
    """Yield the index tensors of patterns: of some, of sparse tensors among the values of guards, or in kinds of arguments."""
    tensors: dict[int, Any] = {}
    waiting = [*kinds]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, (tuple, list)):
            waiting += kind
        elif isinstance(kind, Guard) and kind.role == GuardRole.TENSOR:
            waiting.append(kind.value)
        elif isinstance(kind, Pattern):
            tensors.update((id(tensor), tensor) for tensor in kind.tensors())
    yield from tensors.values()


def zeros_in_layout_of(gradient: Any) -> Any:
    """Return zeros with the strides of a gradient, in memory of their own."""
    last = sum((size - 1) * stride for size, stride in zip(gradient.shape, gradient.stride(), strict=True))
    return zeros(last + 1 if gradient.numel() else 0, dtype=gradient.dtype).as_strided(gradient.shape, gradient.stride())


def unobserved() -> restoring[None]:
    """Run code that the capture of another function does not see."""
    hook, outer = sys.getprofile(), current_notes()

    def begin() -> None:
        sys.setprofile(None)
        Notes().__enter__()

    def end(_: object) -> None:
        end_notes(outer)
        sys.setprofile(hook)

    return restoring(end, begin)


def unharmed() -> restoring[None]:
    """Restore the modes of this thread where the run of a function is interrupted.

    Signals arrive in the hook of the observation, too, which is code of Python: just before a `with` statement leaves a mode, for example.
    """
    hook, off, outer, is_recording = sys.getprofile(), _overrides_off(), current_notes(), is_grad_enabled()

    def end(kind: type[BaseException] | None) -> None:
        if kind is None:
            return
        sys.setprofile(hook)
        end_notes(outer)
        _set_overrides_off(off)
        if not issubclass(kind, Exception):     # which a function may raise after it has set a mode
            _set_grad_enabled(is_recording)

    return restoring(end)


def undone(notes: Notes) -> restoring[None]:
    """Undo the changes by steps besides the call of the user: of tensors and gradients, random numbers and settings."""
    dtype, errors, error_call, is_recording = get_default_dtype(), np.geterr(), np.geterrcall(), is_grad_enabled()

    def end(_: object) -> None:
        _set_grad_enabled(is_recording)
        notes.restore()
        go_back(notes.generators)
        set_default_dtype(dtype)
        np.seterr(**errors)
        np.seterrcall(error_call)

    return restoring(end, notes.begin_repeated)


def check_guards(observation: Observation, inputs: list[Any]) -> None:
    """Refuse a function that has changed a value which its code names; the tensors among these values are appended to `inputs`."""
    broken = first_broken(observation.guards, inputs) or next((guard for guard, tensor in observation.tensors
                                                              if guard.value_now() is not tensor), None)
    if broken is not None:
        raise ChangesOutside(f"it changes {broken!r}, which is outside of it: return the value instead")


def arrays_without_guards(notes: Notes, observation: Observation) -> list[Any]:
    """Return the arrays of NumPy's that are read as constants and that no guard has."""
    if not notes.arrays:
        return []
    guarded = [guard.value_now() for guard in observation.guards if guard.role == GuardRole.CONTENT]
    return [array for array in notes.arrays if not any(is_part(array, whole) for whole in guarded)]


def check_arrays(notes: Notes, arrays: Iterable[Any], is_new: Callable[[Any], bool], results: Iterable[Any]) -> None:
    """Refuse arrays of NumPy's as constants that no guard has, unless the function has made them, and arrays that others may see."""
    if not all(is_all_new(array, is_new) for array in arrays):
        raise Unsettled("it reads an array of NumPy's that it has not made, and no name leads to: give it a name, or make a tensor of it "
                        "outside of the function")
    if notes.arrays and (notes.writes_arrays() or any(map(notes.is_in_array, results))):
        raise Uncapturable("it returns a tensor over an array of NumPy's, or writes into one from outside: return a copy, by .clone()")


def is_part(array: np.ndarray, whole: np.ndarray) -> bool:
    """Return True if the elements of an array are among the elements of another one."""
    (first, end), (start, last) = byte_bounds(array), byte_bounds(whole)
    return array is whole or whole.flags.forc and start <= first and end <= last


def is_all_new(array: Any, is_new: Callable[[Any], bool]) -> bool:
    """Return True if an array is new, and so is the one whose memory it has."""
    while type(array) is np.ndarray and is_new(array):
        if array.base is None:
            return True
        array = array.base
    return False


def allocations_traced(is_needed: bool) -> restoring[Callable[[Any], bool]]:
    """Give a test of whether an object was made since. False where that is not needed, or Python traces already: old objects as well."""
    traces = is_needed and not tracemalloc.is_tracing()

    def begin() -> Callable[[Any], bool]:
        if traces:
            tracemalloc.start()
        return lambda value: traces and tracemalloc.get_object_traceback(value) is not None

    def end(_: object) -> None:
        if traces:
            tracemalloc.stop()

    return restoring(end, begin)


def check_looks(notes: Notes) -> None:
    """Refuse notes of code that has looked at values by itself."""
    if notes.looks.count or notes.looks.lasts:
        line, reason = "{}:{}: ".format(*notes.looks.line) if notes.looks.line else "", notes.looks.reason or ""
        raise Uncapturable(line + (f"a tensor is read outside of operators: {reason}. Compute with tensors there, or do it outside of the "
                                   "function." if reason.startswith(("it ", "its ")) else f"{reason}. Do that outside of the function."))


def check_inputs(notes: Notes, inputs: list[Any]) -> None:
    """Refuse notes of code that changes tensors from outside otherwise than in their values: a replay would not do that."""
    for tensor in inputs:
        if id(tensor) in notes.replaced:
            line = notes.replaced[id(tensor)]
            raise Uncapturable(("{}:{}: ".format(*line) if line else "") + "a tensor from outside gets other memory, or another shape, in "
                               "place. Do that outside of the function.")
        if notes.has_other_flag(tensor):
            raise Uncapturable("it sets requires_grad of a tensor from outside. Do that outside of the function.")


def check_messages(notes: Notes, is_recorded: bool) -> None:
    """Refuse messages to other processes that would be sent twice: a later step may give a replay up, or a backward may run the function
    again."""
    if notes.first_message < 0:
        return
    if is_recorded:
        raise Uncapturable("it sends messages to other processes, and its results require gradients: compute the gradients in it, and "
                           "return those")
    if notes.decides_after(notes.first_message):
        raise Uncapturable("it sends a message to other processes, and checks values after it, such as an index, a pivot or a branch: "
                           "compute that before the message, or outside of the function")


def plain_of(args: Any, kwargs: Any) -> Any:
    """Return a key of arguments but for their tensors."""
    args, kwargs = replaced((args, kwargs), Tensor, lambda tensor: None)
    kinds, *_, shared = signature_of(args, kwargs, Parts())
    return kinds[:2], shared
