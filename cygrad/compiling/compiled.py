"""`cygrad.compile`: the decorator, and calls of captured functions."""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from collections import Counter
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.compiled_node import changes_of_versions, in_profile, may_replay, recorded_results, replayed, versions_of
from cygrad._core.capture.guards import Guard, GuardRole, GuardSource, first_broken
from cygrad._core.capture.layouts import Hole, put_together
from cygrad._core.capture.replay import GaveUp, Replay
from cygrad._core.capture.signature import Uncommon, shared_memory, signature_of
from cygrad._core.graph.notes import Notes
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.memory.sizes import Size
from cygrad._core.memory.storage import DType, get_default_dtype, set_default_dtype
from cygrad.autograd.derivatives import gradients_between
from cygrad.autograd.grad_mode import enable_grad
from cygrad.compiling.float_inputs import floats_as_inputs, floats_as_tensors
from cygrad.compiling.observing import Observation, is_observed
from cygrad.generator import stream_of
from cygrad.operators.new_tensors import zeros_like

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_CAPTURES = 16
PLAIN = (int, float, complex, str, bytes, bool, type(None), DType)


class CacheInfo(NamedTuple):
    """The calls of a compiled function: replays, captures, calls that ran the function itself, and programs in the cache."""

    hits: int
    misses: int
    eager: int
    currsize: int


class Entry(NamedTuple):
    """A program, when it holds, and how to put its results together."""

    replay: Replay
    guards: list[Any]
    argument_count: int             # tensors among the arguments; those that guards name come behind them
    template: Any                   # the value that the function returned, with holes for tensors
    gradients: list[tuple[int, int | None]]     # (number of an input, number of the result that is its gradient)
    differentiable: tuple[int, ...]
    memory: tuple[Any, ...]         # that tensors share, as in `shared_memory`
    draws: bool                     # random numbers perhaps, before a step that may give up
    is_random: bool                 # it has drawn from the default generator
    observes_backward: bool         # code outside of the package runs in the backward, which may name other values then
    others: list[Any]               # objects that the key has by identity


def compile(model: Callable[..., Any] | None = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor",
            mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False) -> Any:
    """Return a function that is captured when it is first called, and replayed without Python from then on.

    The first call with arguments of a kind (shapes, dtypes, plain values, ...) runs the function as it is, while its kernels are noted.
    Later calls of that kind replay them on new values, with the same bits, derivatives included. Where a function cannot be captured,
    it stays as it is, and one warning says why: for example since it reads a number with `.item()`.

    ``fullgraph``: an error in place of the warning. ``disable``: return the function itself. ``dynamic``: a float among the arguments that
    has a second value becomes an input of the program, if only operators read it; else another value is another program, of 16 at most.
    With True the function gets 0-d tensors of float64 in place of floats, at each call; with False they are always compared by value. Sizes
    and integers always have programs of their own. ``backend``, ``mode`` and ``options`` are torch's; they change nothing here.

    RuntimeError, with `fullgraph`, for a function that cannot be captured. The design, and where it comes from: docs/design/capture.md.

    >>> import cygrad
    >>> @cygrad.compile
    ... def energy(x):
    ...     return (x * x).sum()
    >>> energy(cygrad.tensor([1., 2.])), energy(cygrad.tensor([3., 4.]))
    (tensor(5.), tensor(25.))
    >>> energy.cache_info()
    CacheInfo(hits=1, misses=1, eager=0, currsize=1)
    >>> step = cygrad.compile(lambda x, size: x - size * x.sin())
    >>> [step(cygrad.ones(1), 0.1 * k).item() for k in range(4)], step.cache_info().misses
    ([1.0, 0.9158529043197632, 0.831705..., 0.747558...], 2)
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                                 disable=disable)
    if not callable(model):
        raise TypeError(f"compile(): expected a function, got {type(model).__name__}")
    if disable or os.environ.get("CYGRAD_COMPILE") == "0":
        return model
    return Dynamic(model, fullgraph) if dynamic else Compiled(model, fullgraph, follows_floats=dynamic is None)


def captured_quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled, without a warning where it cannot be; of a `def` or lambda the same one each time."""
    if isinstance(function, Compiled) or os.environ.get("CYGRAD_COMPILE") == "0":
        return function
    if not isinstance(function, FunctionType):
        return Compiled(function, False, warns=False)
    known: Compiled | None = vars(function).get("__captured__")     # it dies with the function
    if known is None or known._function is not function:            # `functools.wraps` copies it to another one
        known = function.__dict__["__captured__"] = Compiled(function, False, warns=False)
    return known


class Compiled:
    """A function with a cache of programs, by the kind of its arguments."""

    def __init__(self, function: Callable[..., Any], fullgraph: bool, follows_floats: bool = True, warns: bool = True) -> None:
        functools.update_wrapper(self, function)
        self._function, self._fullgraph, self._follows_floats = function, fullgraph, follows_floats
        self._entries: dict[Any, list[Entry]] = {}
        self._refused: set[Any] = set()
        self._first_keys: dict[Any, Any] = {}   # by the kind with tensors in place of floats; None: floats are guarded by value
        self._hits = self._misses = self._eager = 0
        self._warned = not warns

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {self._function!r}>"

    def __reduce__(self) -> Any:
        """Copy and pickle as the function: a `def` by its name; programs stay behind."""
        return (self._function.__qualname__ if isinstance(self._function, FunctionType)
                else (type(self), (self._function, self._fullgraph, self._follows_floats)))

    def cache_info(self) -> CacheInfo:
        """Return how often calls were replayed, captured, and neither."""
        return CacheInfo(self._hits, self._misses, self._eager, sum(map(len, self._entries.values())))

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Return a text about the program for some arguments: steps by kernel, calls of Python, and why, bytes; or why there is none.

        The function is called, so that there is a program. Calls take longer than kernels do, and single steps longer than groups.

        >>> import cygrad
        >>> print(cygrad.compile(lambda x: (x * 2).sin()).explain(cygrad.ones(3)))
        2 steps: mul, sin
        0 of them in 0 groups, block by block
        0 of them over large arrays, as the function itself runs them, contractions included
        0 calls of Python
        0 decisions by values
        memory: 4096 bytes of intermediates, 0 bytes kept for a backward
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warned, self._warned = self._warned, False
            self(*args, **kwargs)
            self._warned = warned
        try:
            entries = self._entries.get(signature_of(args, kwargs, [], []), ())
        except (Uncommon, TypeError) as error:
            return f"not captured: {error}"
        if not entries:
            return f"not captured: {caught[-1].message}" if caught else "not captured: these arguments are called as they are"
        names, groups, large, calls, decisions, arena, residuals = entries[0].replay.described()
        counts = Counter(name for name in names if name != "call")
        kernels = ", ".join(f"{count} {name}" if count > 1 else name for name, count in sorted(counts.items(), key=lambda pair: -pair[1]))
        grouped = sum(end - first for first, end in groups)
        reasons = {getattr(getattr(function, "func", function), "__name__", str(function)): reason for function, reason in calls}
        return (f"{len(names)} steps: {kernels}\n{grouped} of them in {len(groups)} groups, block by block\n"
                f"{large} of them over large arrays, as the function itself runs them, contractions included\n"
                f"{len(calls)} calls of Python" + "".join(f"\n  {name}: {reason}" for name, reason in sorted(reasons.items())) +
                f"\n{decisions} decisions by values\nmemory: {arena} bytes of intermediates, {residuals} bytes kept for a backward")

    def cache_clear(self) -> None:
        """Forget all programs."""
        self._entries, self._refused, self._first_keys = {}, set(), {}
        self._hits = self._misses = self._eager = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not may_replay():
            return self._function(*args, **kwargs)
        tensors: list[Any] = []
        others: list[Any] = []
        try:
            key = signature_of(args, kwargs, tensors, others)
            entries = self._entries.get(key, ())
        except (Uncommon, TypeError):       # of keys that cannot be hashed
            return self._run(args, kwargs)
        is_replay, result = self._replayed(entries, tensors, args, kwargs)
        if is_replay:
            return result
        is_refused = key in self._refused or len(self._refused) >= MOST_CAPTURES
        with_floats = self._with_floats(args, kwargs, len(tensors)) if self._follows_floats and not is_refused else None
        if with_floats is not None:
            is_replay, result_of_floats = self._replayed(self._entries.get(with_floats.key, ()), with_floats.tensors, args, kwargs)
            if is_replay:
                return result_of_floats
        if is_refused or is_observed() and not self._fullgraph or in_profile():
            return self._run(args, kwargs)
        if sum(map(len, self._entries.values())) >= MOST_CAPTURES:
            self._warn(f"it was captured {MOST_CAPTURES} times, for other arguments or other values that its code names"
                       + (f", the last one {result!r}" if result else "")
                       + ". Give numbers that change as 0-d tensors, or use compile(dynamic=True).")
            return self._run(args, kwargs)
        capture = Capture(self, key, tensors, others, args, kwargs)
        value = capture.run(args, kwargs)
        self._misses += 1
        if capture.reason:
            self._refuse(key, capture.reason)
        elif capture.entry is not None:
            self._entries.setdefault(key, []).insert(0, capture.entry)
            if with_floats is not None:
                self._follow_floats(capture, value, with_floats)
        return value

    def _replayed(self, entries: Sequence[Entry], tensors: list[Any], args: Any, kwargs: Any) -> tuple[bool, Any]:
        """Return True and the result of the first program that holds; else False and the guard that was broken, or None."""
        broken = None
        for entry in entries:
            inputs = tensors.copy()
            broken = first_broken(entry.guards, inputs)
            if broken is None and (len(inputs) == entry.argument_count or shared_memory(inputs) == entry.memory):
                try:
                    return True, self._replay(entry, inputs, args, kwargs)
                except GaveUp:      # another way through the function
                    continue
        return False, broken

    def program(self, *args: Any) -> tuple[Entry, list[Any], Rerun] | None:
        """Return the program for some arguments, its inputs, and a check of values outside; None if a call would not replay."""
        tensors: list[Any] = []
        try:
            entries = self._entries.get(signature_of(args, {}, tensors, []), ()) if may_replay() and not in_profile() else ()
        except (Uncommon, TypeError):
            return None
        for entry in entries:
            inputs = tensors.copy()
            if first_broken(entry.guards, inputs) is None and shared_memory(inputs) == entry.memory:
                return entry, inputs, Rerun(self, args, {}, entry, None)
        return None

    def _run(self, args: Any, kwargs: Any) -> Any:
        """Call the function as it is."""
        self._eager += 1
        return self._function(*args, **kwargs)

    # ----- Floats that change -----
    def _with_floats(self, args: Any, kwargs: Any, count: int) -> Capture | None:
        """Return the capture for tensors in place of floats among the arguments; None if these have no more than `count` tensors then, or
        floats are guarded by value.
        """
        tensors: list[Any] = []
        others: list[Any] = []
        args, kwargs = floats_as_tensors(args), floats_as_tensors(kwargs)
        key = signature_of(args, kwargs, tensors, others)
        is_guarded = len(tensors) == count or self._first_keys.get(key, key) is None
        return None if is_guarded else Capture(self, key, tensors, others, args, kwargs)

    def _follow_floats(self, capture: Capture, value: Any, with_floats: Capture) -> None:
        """Make floats inputs of the program that a capture has made, from the second value of them on.

        The function runs once more for that, if this changes nothing. Where it reads a float otherwise than by operators, floats are
        guarded by value.
        """
        if self._first_keys.setdefault(with_floats.key, capture.key) == capture.key:
            return
        by_value = capture.entry
        if by_value is not None and capture.changes_nothing(by_value) and "type" not in capture.names:
            with contextlib.suppress(Exception):        # of the function, which has had its call
                again = with_floats.run(floats_as_inputs(capture.args, with_floats.args),
                                        floats_as_inputs(capture.kwargs, with_floats.kwargs))
                if with_floats.entry is not None and are_same(again, value):
                    self._entries.setdefault(with_floats.key, []).insert(0, with_floats.entry)
                    self._entries[capture.key].remove(by_value)
                    return
        self._first_keys[with_floats.key] = None

    # ----- Replays -----
    def _replay(self, entry: Entry, inputs: list[Any], args: Any, kwargs: Any) -> Any:
        stream = stream_of(None, None).bit_generator if entry.draws or entry.is_random and entry.differentiable else None
        state: Any = stream.state if stream else None
        try:
            results = replayed(entry.replay, inputs, entry.differentiable, Rerun(self, args, kwargs, entry, state))
        except BaseException:
            if stream:
                stream.state = state
            raise
        self._hits += 1
        for number, result in entry.gradients:
            inputs[number].grad = None if result is None else results[result]
        return put_together(entry.template, results)

    def _refuse(self, key: Any, reason: str) -> None:
        """Leave calls of a kind as they are."""
        if self._fullgraph:
            raise RuntimeError(f"compile(fullgraph=True): {self._name()} cannot be captured: {reason}")
        self._refused.add(key)
        self._warn(reason)

    def _warn(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"compile(): {self._name()} stays as it is: {reason}", RuntimeWarning, stacklevel=3)

    def _name(self) -> str:
        return f"{getattr(self._function, '__qualname__', repr(self._function))}()"


class Dynamic(Compiled):
    """A compiled function that gets 0-d tensors in place of floats."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*floats_as_tensors(args), **floats_as_tensors(kwargs))

    def explain(self, *args: Any, **kwargs: Any) -> str:
        return super().explain(*floats_as_tensors(args), **floats_as_tensors(kwargs))


class Rerun:
    """Computes the gradients of a call from the function itself: where they are differentiated again, or some results have none."""

    def __init__(self, owner: Compiled, args: Any, kwargs: Any, entry: Entry, state: Any) -> None:
        self.owner, self.args, self.kwargs, self.entry, self.state = owner, args, kwargs, entry, state

    def check_backward(self, inputs: Sequence[Any]) -> None:
        """RuntimeError where the backward would run code that names another value now."""
        if self.entry.observes_backward:
            self.check_values(inputs)

    def check_values(self, inputs: Sequence[Any]) -> None:
        """RuntimeError if a value outside of the function has changed since the call."""
        current = list(inputs[:self.entry.argument_count])
        broken = first_broken([guard for guard in self.entry.guards if guard.source != GuardSource.GRADIENT], current)
        if broken is not None or any(a is not b for a, b in zip(current, inputs, strict=False)):
            name = "a tensor that its code names" if broken is None else repr(broken)
            raise RuntimeError(f"compile(): {name} was changed between a call of {self.owner._name()} and its backward, which needs it")

    def __call__(self, inputs: Sequence[Any], gradients: Sequence[Any], create_graph: bool) -> list[Any]:
        """Return the gradients of the inputs that have one."""
        if self.entry.replay.written or self.entry.gradients:
            raise RuntimeError(f"compile(): {self.owner._name()} changes tensors from outside in place, so it is not run again for "
                               "gradients with create_graph=True, in batches, or of some results only: call it without compile()")
        self.check_values(inputs)
        stream = stream_of(None, None).bit_generator if self.state else None
        now: Any = stream.state if stream else None
        try:
            if stream:
                stream.state = self.state
            with enable_grad():
                results: list[Any] = []
                take_apart(self.owner._function(*self.args, **self.kwargs), results)
                pairs = [(results[number], gradient) for number, gradient in zip(self.entry.replay.recorded, gradients, strict=True)
                         if gradient is not None]
                outputs, weights = zip(*pairs, strict=True)
                return gradients_between(outputs, tuple(inputs[number] for number in self.entry.differentiable), weights, create_graph)
        finally:
            if stream:
                stream.state = now


# ----- Captures -----
class Capture:
    """The first call of a kind: runs the function, and makes a program of its steps if that is possible."""

    def __init__(self, owner: Compiled, key: Any, tensors: list[Any], others: list[Any], args: Any, kwargs: Any) -> None:
        self.owner, self.key, self.tensors, self.others, self.args, self.kwargs = owner, key, tensors, others, args, kwargs
        self.entry: Entry | None = None
        self.versions: list[int] = []   # of the tensors, before
        self.changes_back: list[tuple[int, int]] = []   # of versions by the backward
        self.reason = ""                # why there is no program
        self.names: set[str] = set()    # that its code uses
        self.sends = False              # messages to other processes

    def run(self, args: Any, kwargs: Any) -> Any:
        """Return the result of the function for arguments, and make the program."""
        notes, observation = Notes(), Observation(self.owner._function, self.others)
        stream = stream_of(None, None).bit_generator
        before, self.versions = stream.state, versions_of(self.tensors)
        with observation, notes:
            value = self.owner._function(*args, **kwargs)
        self.names, self.sends = observation.names, notes.first_message >= 0
        try:
            self.entry = self.program(notes, observation, value, before != stream.state)
        except Uncapturable as error:
            self.reason = str(error)
        except MemoryError:     # for the program; the function has had enough
            pass
        return value

    def changes_nothing(self, entry: Entry) -> bool:
        """Say whether the function has changed nothing outside of it, and has drawn no random numbers."""
        return not (entry.replay.written or entry.gradients or entry.is_random or self.sends)

    def program(self, notes: Notes, observation: Observation, value: Any, is_random: bool) -> Entry:
        """Return the program of the notes; Uncapturable where they are none."""
        if observation.impure:
            raise Uncapturable(observation.impure)
        check_looks(notes)
        if notes.hooks_outside:
            raise Uncapturable("it registers a hook on a leaf, or on the history of an argument: register it outside of the function")
        self.check_arguments()
        inputs = self.tensors.copy()
        check_guards(observation, inputs)
        versions = self.versions + [guard.version for guard in observation.guards if guard.role == GuardRole.TENSOR]
        changed = notes.changed_gradients()
        results: list[Any] = []
        template = take_apart(value, results)
        if any(result.retains_grad for result in results):
            raise Uncapturable("it returns a tensor that retains its gradient: call retain_grad() after it")
        gradients: list[tuple[int, int | None]] = []
        of_gradients: list[Any] = []
        numbers = {id(tensor): number for number, tensor in reversed([*enumerate(inputs)])}
        for tensor, before in changed:
            number = numbers.get(id(tensor))
            if number is None:
                raise Uncapturable("it uses the .grad of a tensor that is neither an argument nor found by a name")
            of_gradients.append(Guard(GuardSource.GRADIENT, number, "grad", before))
            if before is not None:
                inputs.append(before)
            if tensor.grad is not before:
                gradients.append((number, None if tensor.grad is None else len(results)))
                if tensor.grad is not None:
                    results.append(tensor.grad)
        differentiable: tuple[int, ...] = ()
        weights: list[Any] = []
        back: list[Any] = []
        split, codes = len(notes), len(observation.guarded_codes)
        recorded = recorded_results(results, inputs)
        if any(result.is_leaf for result in recorded) or any(results[k].requires_grad or results[earlier].requires_grad
                                                                for k, earlier, _, _ in shared_memory(results)):
            raise Uncapturable("it returns a new leaf that requires a gradient, or several views of one tensor that does: return copies, "
                               "by .clone()")
        if any(has_history_in_outer_memory(result, inputs) for result in results
               if result.requires_grad and not any(result is each for each in recorded)):
            raise Uncapturable("it returns a tensor that has a history in the memory of another tensor: return a copy, by .clone()")
        check_messages(notes, bool(recorded))
        if recorded:
            differentiable = tuple(number for number, tensor in enumerate(inputs) if tensor.requires_grad and numbers[id(tensor)] == number)
            weights = [zeros_like(result.detach()) for result in recorded]
            back = self.gradients(notes, observation, recorded, inputs, [inputs[number] for number in differentiable], weights)
        replay = Replay(notes, inputs, results, split, weights, back, self.owner._name())
        replay.changes, replay.changes_back = changes_of_versions(inputs, versions, replay.written), self.changes_back
        if any(inputs[number].requires_grad and not inputs[number].is_leaf for number in replay.written):
            raise Uncapturable("it changes a tensor from outside in place that has a history: change a copy, by .clone()")
        return Entry(replay, observation.guards + of_gradients, len(self.tensors), template, gradients, differentiable,
                     shared_memory(inputs), replay.fails_after_call, is_random, len(observation.guarded_codes) > codes, self.others)

    def check_arguments(self) -> None:
        """Refuse a function that has changed its arguments, but for the values of tensors."""
        try:
            same = signature_of(self.args, self.kwargs, [], []) == self.key
        except Uncommon:
            same = False
        if not same:
            raise Uncapturable("it changes an argument itself, not the values of a tensor, or a mode: return the new value")

    def gradients(self, notes: Notes, observation: Observation, recorded: list[Any], tensors: list[Any], inputs: list[Any],
                  weights: list[Any]) -> list[Any]:
        """Return the gradients of results with respect to some of the tensors from outside, and note how they are computed."""
        known, gradients, versions = len(observation.guards), len(notes.changed_gradients()), versions_of(tensors + weights)
        stream = stream_of(None, None).bit_generator
        drawn, dtype = stream.state, get_default_dtype()
        observation.begin_repeated(notes.hooks)
        notes.begin_repeated()
        try:
            with np.errstate(), observation, notes:
                back = gradients_between(tuple(recorded), tuple(inputs), tuple(weights), False)
            self.changes_back = changes_of_versions(tensors + weights, versions, ())
        except (MemoryError, Uncapturable):
            raise
        except Exception as error:      # which the backward will raise again
            raise Uncapturable(f"its backward raises {type(error).__name__}: {error}") from error
        finally:
            notes.restore()
            stream.state = drawn
            set_default_dtype(dtype)
        if observation.impure:
            raise Uncapturable(observation.impure)
        check_looks(notes)
        self.check_arguments()
        check_guards(observation, self.tensors.copy())
        if len(notes.changed_gradients()) > gradients or any(guard.role == GuardRole.TENSOR for guard in observation.guards[known:]):
            raise Uncapturable("its backward uses tensors, or their gradients, that it does not use itself: give them as arguments")
        return back


def check_guards(observation: Observation, inputs: list[Any]) -> None:
    """Refuse a function that has changed a value which its code names; the tensors among these values are appended to `inputs`."""
    broken = first_broken(observation.guards, inputs)
    if broken is not None:
        raise Uncapturable(f"it changes {broken!r}, which is outside of it: return the value instead")


def check_looks(notes: Notes) -> None:
    """Refuse notes of code that has looked at values by itself."""
    if notes.looks.count:
        line = "{}:{}: ".format(*notes.looks.line) if notes.looks.line else ""
        raise Uncapturable(f"{line}a tensor is read outside of operators: {notes.looks.reason}. Compute with tensors there, or do it "
                           "outside of the function.")


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


# ----- Results -----
def take_apart(value: Any, tensors: list[Any]) -> Any:
    """Return a value with holes for its tensors, which are appended; Uncapturable for objects that may differ each time."""
    if isinstance(value, TensorImpl):
        for number, tensor in enumerate(tensors):
            if tensor is value:
                return Hole(number)
        tensors.append(value)
        return Hole(len(tensors) - 1)
    if isinstance(value, PLAIN):
        return value
    if type(value) in (tuple, list, Size) or isinstance(value, tuple) and hasattr(value, "_fields"):
        items = [take_apart(item, tensors) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if type(value) is dict:
        return {key: take_apart(item, tensors) for key, item in value.items()}
    raise Uncapturable(f"it returns a {type(value).__name__}: return tensors, numbers, tuples, lists and dicts")


def has_history_in_outer_memory(result: Any, inputs: Sequence[Any]) -> bool:
    """Say whether a result in the memory of an input has not its history: it was written into a `detach()` of that."""
    return not any(result is tensor or tensor.requires_grad and result._base is not None
                   and (result._base is tensor or result._base is tensor._base) for tensor in inputs)


def are_same(a: Any, b: Any) -> bool:
    """Say whether two results of a function have equal types, plain values and elements."""
    ours: list[Any] = []
    theirs: list[Any] = []
    return signature_of((a,), {}, ours, []) == signature_of((b,), {}, theirs, []) and all(
        x.allclose(y, 0, 0, equal_nan=True) for x, y in zip(ours, theirs, strict=True))
