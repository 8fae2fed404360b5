"""`cygrad.compile`: the decorator, and calls of captured functions."""

from __future__ import annotations

import copy
import functools
import os
import sys
import warnings
from collections import Counter
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from cygrad._core.capture.compiled_node import in_profile, may_replay, replayed, sees_results_alone
from cygrad._core.capture.guards import first_broken
from cygrad._core.capture.kinds import Uncommon, has_signature, shared_memory
from cygrad._core.capture.layouts import put_together
from cygrad._core.capture.replay import GaveUp
from cygrad._core.capture.signature import Parts, argument_parts, signature_of
from cygrad._core.graph.notes import is_noting
from cygrad._core.levels.level import active_levels
from cygrad.compiling.array_inputs import signature_with_arrays
from cygrad.compiling.captures import Capture
from cygrad.compiling.explaining import changed_argument, described
from cygrad.compiling.number_inputs import floats_as_inputs, floats_as_tensors
from cygrad.compiling.observing import is_observed
from cygrad.compiling.reruns import Rerun
from cygrad.generator import go_back, positions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cygrad.compiling.captures import Entry

MOST_CAPTURES = 16
MOST_UNMATCHED = 64     # calls in a row
MOST_UNSETTLED = 2      # calls of a kind that change values outside, before it is refused


class CacheInfo(NamedTuple):
    """The calls of a compiled function: replays, captures, calls that ran the function itself, and programs in the cache."""

    hits: int
    misses: int
    eager: int
    currsize: int


def compile(model: Callable[..., Any] | None = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor",
            mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False) -> Any:
    """Return a function that is captured when it is first called, and replayed without Python from then on.

    The first call with arguments of a kind (shapes, dtypes, plain values, ...) runs the function as it is, while its kernels are noted.
    Later calls of that kind replay them on new values, with the same bits, derivatives included. Where a function cannot be captured,
    it stays as it is, and one warning says why: for example since it reads a number with `.item()`.

    ``fullgraph``: an error in place of the warning. ``disable``: return the function itself. ``dynamic``: a float among the arguments that
    has a second value becomes an input of the program, if only operators read it; else another value is another program, of 16 at most.
    With True the function gets 0-d tensors of float64 in place of floats that are no items of lists, dicts or objects, at each call; with
    False they are always compared by value. Sizes and integers always have programs of their own. ``backend``, ``mode`` and ``options`` are
    torch's; they change nothing here.

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


class Compiled:
    """A function with a cache of programs, by the kind of its arguments."""

    is_called = True        # False: it is a step that only programs run

    def __init__(self, function: Callable[..., Any], fullgraph: bool, follows_floats: bool = True, is_step: bool = False) -> None:
        functools.update_wrapper(self, function)
        self._function, self._fullgraph, self._follows_floats = function, fullgraph, follows_floats
        self._entries: dict[Any, list[Entry]] = {}
        self._refused: set[Any] = set()
        self._at_places: set[Any] = set()       # kinds whose programs are for the places alone that tensors name
        self._latest: tuple[Any, ...] | None = None     # of a replay: the kind, its programs, if it has floats as inputs
        self._first_keys: dict[Any, Any] = {}   # by the kind with tensors in place of floats; None: floats are guarded by value
        self._by_value = ""             # why a float is guarded by value
        self._hits = self._misses = self._eager = self._early = self._dropped = 0
        self._unsettled: Counter[Any] = Counter()
        self._unmatched: dict[Any, tuple[int, int]] = {}    # by kind: calls in a row that had no replay, and hits before
        self._reads_arrays = False      # of NumPy's, which no guard has
        self._is_step = self._warned = is_step      # of a loop: which containers it returns does not matter

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        binds = hasattr(type(self._function), "__get__") and not isinstance(self._function, staticmethod)
        return MethodType(self, instance) if binds and instance is not None else self

    def __set_name__(self, owner: Any, name: str) -> None:
        owner.__has_compiled_methods__ = True       # instances are objects, whose attributes are guarded by name

    def __repr__(self) -> str:
        return f"<compiled {self._function!r}>"

    def __reduce__(self) -> Any:
        """Pickle by the name, if that leads here, else as the function; programs stay behind."""
        named: Any = sys.modules.get(getattr(self, "__module__", ""))
        for name in getattr(self, "__qualname__", "").split("."):
            named = getattr(named, name, None)
        return self.__qualname__ if named is self else (type(self), (self._function, self._fullgraph, self._follows_floats))

    def __copy__(self) -> Compiled:
        return self._copied(copy.copy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return self._copied(lambda function: copy.deepcopy(function, memo))

    def _copied(self, copied: Callable[[Any], Any]) -> Compiled:
        """Copy as the function: a `def` is its own copy."""
        is_own = isinstance(self._function, (FunctionType, staticmethod))
        return self if is_own else type(self)(copied(self._function), self._fullgraph, self._follows_floats)

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
            before = self._warned, self._fullgraph, self._refused.copy()
            self._warned = self._fullgraph = False
            try:
                for _ in range(2):      # the first call may be too early
                    self(*args, **kwargs)
                    try:
                        inputs, key, _, _ = signature_with_arrays((args, kwargs))
                        floats_key = signature_of(*inputs, Parts(), True)
                        entries = self._entries.get(key) or self._entries.get(floats_key, [])
                    except (Uncommon, TypeError, ValueError, RecursionError) as error:
                        return f"not captured: {error}"
                    if entries or caught:
                        break
            finally:
                self._warned, self._fullgraph, refused = before
                if self._fullgraph:     # where a refused call is an error
                    self._refused = refused
        if not entries:
            return f"not captured: {caught[-1].message}" if caught else "not captured: these arguments are called as they are"
        return described(entries[0].replay, self._note_on_floats(key, floats_key))

    def cache_clear(self) -> None:
        """Forget all programs."""
        self._entries, self._refused, self._at_places, self._first_keys, self._unsettled = {}, set(), set(), {}, Counter()
        self._unmatched, self._by_value, self._latest = {}, "", None
        self._hits = self._misses = self._eager = self._early = self._dropped = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not may_replay():
            return self._function(*args, **kwargs)
        latest = self._latest       # which another thread may change
        if latest is not None:
            kind, programs, has_inputs = latest
            tensors: list[Any] = []
            objects: list[Any] = []
            if has_signature(args, kwargs, kind, tensors, objects, has_inputs):
                is_replay, result = self._replayed(programs, tensors, objects, args, kwargs, has_inputs)
                if is_replay:
                    return result
            self._latest = None
        return self._look_up(args, kwargs)

    def _look_up(self, args: Any, kwargs: Any) -> Any:
        """Replay the program for some arguments, or capture the function, or call it as it is."""
        inputs, keywords, parts = args, kwargs, Parts()     # with objects in place of arrays
        try:
            try:
                key, objects = signature_of(args, kwargs, parts), parts.objects
            except Uncommon:
                (inputs, keywords), key, parts, objects = signature_with_arrays((args, kwargs))
            entries = self._entries.get(key, ())
        except (Uncommon, TypeError, ValueError, RecursionError) as error:  # of keys that cannot be hashed, and arrays that are no tensors
            reason = "a container that is nested too deep, or contains itself" if isinstance(error, RecursionError) else str(error)
            self._give_up(f"no program takes one of its arguments: {reason}", 4)
            return self._run(args, kwargs)
        is_replay, result = self._replayed(entries, parts.tensors, objects, inputs, keywords)
        if is_replay:
            self._latest = key, entries, False
            return result
        if self._captures() >= MOST_CAPTURES or len(self._refused) >= MOST_CAPTURES:
            self._make_room()
        is_refused = key in self._refused or len(self._refused) >= MOST_CAPTURES
        follows_floats = self._follows_floats and not is_refused
        floats_key, with_floats = self._with_floats(inputs, keywords, len(parts.tensors)) if follows_floats else (None, parts)
        if floats_key is not None:
            with_inputs = self._entries.get(floats_key, ())
            is_replay, result_of_floats = self._replayed(with_inputs, with_floats.tensors, objects, inputs, keywords, True)
            if is_replay:
                self._latest = floats_key, with_inputs, True
                return result_of_floats
        if is_refused or is_observed() and not self._fullgraph or in_profile():
            return self._run(args, kwargs)
        if self._captures() >= MOST_CAPTURES:
            changed = repr(result) if result else changed_argument(self._function, key, next(reversed(self._entries), key))
            self._give_up(f"it was captured {MOST_CAPTURES} times, for other arguments or other values that its code names, the last one "
                          + (changed or "another decision by values: a branch, the place of an index, or how many elements a mask takes")
                          + (f". A float among its arguments has a program for each value: {self._by_value}. Give numbers that change as "
                             "0-d tensors, or use compile(dynamic=True)" if self._by_value else ""), 4)
            if entries:
                self._drop_unmatched(key)
            return self._run(args, kwargs)
        capture = Capture(self, key, parts, inputs, keywords, objects)
        has_arrays = inputs is not args or keywords is not kwargs
        has_places = key not in self._at_places and any(entry.reads_numbers for entry in self._entries.get(key, ()))
        has_floats = floats_key is not None and self._first_keys.get(floats_key, key) != key
        value = capture.run(args, kwargs, has_arrays or has_places or has_floats)
        if has_arrays and not capture.reason and capture.changes is not None:
            capture.run_again(capture.changes, value, inputs, keywords)
            if capture.entry is None:
                capture.reason = capture.reason or "it has another result with tensors over the arrays"
        self._misses += 1
        self._early += capture.is_early
        if self._early == MOST_CAPTURES:
            capture.reason = f"each of {MOST_CAPTURES} calls has imported a module, or added to a cache of `functools`: do that before"
        self._unsettled[key] += capture.may_settle
        if capture.reason and (self._fullgraph or not capture.may_settle or self._unsettled[key] > MOST_UNSETTLED):
            self._refuse(key, capture.reason)
        elif capture.entry is not None:
            self._entries.setdefault(key, []).insert(0, capture.entry)
            if floats_key is not None:
                self._follow_floats(capture, value, floats_key)
            if has_places:
                self._follow_places(capture, value)
        return value

    def _replayed(self, entries: Sequence[Entry], tensors: list[Any], objects: list[Any], args: Any, kwargs: Any,
                  has_inputs: bool = False) -> tuple[bool, Any]:
        """Return True and the result of the first program that holds, outside of levels; else False and the broken guard, or None.

        has_inputs: tensors take the place of floats.
        """
        broken = with_floats = None
        if has_inputs and any(entry.replay.recorded for entry in entries):      # a backward may call the function with these tensors
            with_floats = floats_as_inputs((args, kwargs))
            tensors = argument_parts(*with_floats).tensors
        for entry in entries:
            inputs = tensors.copy()
            broken = first_broken(entry.guards, inputs, (), False, objects)
            if broken is None and (len(inputs) == entry.argument_count or shared_memory(inputs) == entry.memory):
                try:
                    return True, self._replay(entry, inputs, args, kwargs, with_floats)
                except GaveUp:      # another way through the function
                    continue
        return False, broken

    def programs(self, *args: Any) -> Iterator[tuple[Entry, list[Any], Rerun]]:
        """Yield the programs for some arguments, by the outcomes of decisions, with their inputs and checks of values outside.

        In the capture of another function, and within levels, where calls run the function itself, it is made here.
        """
        if not sees_results_alone() or in_profile():
            return
        with_floats, parts = None, Parts()
        tensors = parts.tensors
        try:
            key = signature_of(args, {}, parts)
            entries = self._entries.get(key, ())
            if not entries and self._follows_floats:
                floats_key, _ = self._with_floats(args, {}, len(tensors))
                entries = self._entries.get(floats_key, ())
                if entries:
                    with_floats = floats_as_inputs((args, {}))
                    tensors = argument_parts(*with_floats).tensors
        except (Uncommon, TypeError):
            return
        levels = active_levels()
        if not entries and (is_noting() or levels or not self.is_called) and self._unsettled[key] <= MOST_UNSETTLED:
            capture = Capture(self, key, parts, args, {})
            capture.run_aside(args, {}, follows_places=True)
            entries = self._entries[key] = [capture.entry] if capture.entry is not None else []
            self._unsettled[key] += not entries
        for entry in entries:
            inputs = tensors.copy()
            if (first_broken(entry.guards, inputs, objects=parts.objects) is None and shared_memory(inputs) == entry.memory
                    and not entry.replay.released):
                yield entry, inputs, Rerun(self, self._kept(args), {}, entry, {}, with_floats, levels)

    def _captures(self) -> int:
        """Return how many programs there are, or were before they were dropped."""
        return sum(map(len, self._entries.values()), self._dropped)

    def _make_room(self) -> None:
        """Make room where there are as many programs as there may be: there is none, and further kinds of calls run the function itself."""

    def _kept(self, args: Any) -> Any:
        """Return the arguments that a backward may run the function with."""
        return args

    def _run(self, args: Any, kwargs: Any) -> Any:
        """Call the function as it is."""
        self._eager += 1
        return self._function(*args, **kwargs)

    def _drop_unmatched(self, key: Any) -> None:
        """Drop the programs of a kind after many calls in a row of which none had a replay: each would look for its program in vain."""
        count, hits = self._unmatched.get(key, (0, 0))
        self._unmatched[key] = count + 1 if hits == self._hits else 1, self._hits
        if count == MOST_UNMATCHED:
            self._dropped += len(self._entries.pop(key, ()))

    # ----- Floats that change -----
    def _note_on_floats(self, key: Any, floats_key: Any) -> str:
        """Return a line about the floats among some arguments, or nothing if there are none, or they are not followed."""
        if key == floats_key or not self._follows_floats:
            return ""
        if self._first_keys.get(floats_key, key) is None:
            return f"\nfloats: a program for each value: {self._by_value}"
        return "\nfloats: inputs" if floats_key in self._entries else "\nfloats: by value, and inputs from the second value on"

    def _with_floats(self, args: Any, kwargs: Any, count: int) -> tuple[Any, Parts]:
        """Return the key and the values of a call with tensors in place of floats among the arguments; None as the key if these have no
        more than `count` tensors then, or floats are guarded by value.
        """
        parts = Parts()
        key = signature_of(args, kwargs, parts, True)
        is_guarded = len(parts.tensors) == count or self._first_keys.get(key, key) is None
        return None if is_guarded else key, parts

    def _follow_floats(self, capture: Capture, value: Any, key: Any) -> None:
        """Make floats inputs of the program that a capture has made, from the second value of them on.

        The function runs once more for that, from the state before the call, and must have the same results and changes. Where it reads a
        float otherwise than by operators, floats are guarded by value.
        """
        if self._first_keys.setdefault(key, capture.key) == capture.key or capture.changes is None:
            return
        parts = Parts()
        args, kwargs = floats_as_inputs((capture.args, capture.kwargs))
        has_all = signature_of(args, kwargs, parts) == key     # no floats in containers of which no copies are made
        again = Capture(self, key, parts, args, kwargs, capture.objects)
        if not has_all or "type" in capture.names:
            again.reason = "its code names type()" if has_all else "one is in a container of which no copy is made"
        else:
            again.run_again(capture.changes, value, args, kwargs)
        if again.entry is not None:
            self._entries.setdefault(key, []).insert(0, again.entry)
            self._entries[capture.key] = [entry for entry in self._entries.get(capture.key, ()) if entry is not capture.entry]
        else:
            self._first_keys[key], self._by_value = None, again.reason.removesuffix(".")

    # ----- Places that change -----
    def _follow_places(self, capture: Capture, value: Any) -> None:
        """Follow the places that tensors name, in place of one program for each, from the second one on.

        The function runs once more for that, from the state before the call, and must have the same results and changes.
        """
        again = Capture(self, capture.key, capture.parts, capture.args, capture.kwargs, capture.objects)
        assert capture.changes is not None
        again.run_again(capture.changes, value, capture.args, capture.kwargs, follows_places=True)
        if again.entry is None or again.entry.reads_numbers:
            self._at_places.add(capture.key)
        else:
            self._entries[capture.key] = [again.entry, *(each for each in self._entries.get(capture.key, ()) if not each.reads_numbers)]

    # ----- Replays -----
    def _replay(self, entry: Entry, inputs: list[Any], args: Any, kwargs: Any, with_floats: tuple[Any, Any] | None) -> Any:
        positions = positions_of(entry.generators) if entry.generators and (entry.draws or entry.replay.recorded) else {}
        try:
            rerun = Rerun(self, self._kept(args), kwargs, entry, positions, with_floats) if entry.replay.recorded else None
            results = replayed(entry.replay, inputs, entry.differentiable, rerun)
        except BaseException:
            go_back(positions)
            raise
        self._hits += 1
        for number, result in entry.gradients:
            inputs[number].grad = None if result is None else results[result]
        return put_together(entry.template, results)

    def _refuse(self, key: Any, reason: str) -> None:
        """Leave calls of a kind as they are."""
        if not self._fullgraph:
            self._refused.add(key)
        self._give_up(reason, 5)

    def _give_up(self, reason: str, stacklevel: int) -> None:
        """Warn once that calls stay as they are; RuntimeError with `fullgraph`."""
        if self._fullgraph:
            raise RuntimeError(f"compile(fullgraph=True): {self._name()} cannot be captured: {reason}")
        if not self._warned:
            self._warned = True
            warnings.warn(f"compile(): {self._name()} stays as it is: {reason}", RuntimeWarning, stacklevel=stacklevel)

    def _name(self) -> str:
        return f"{getattr(self._function, '__qualname__', repr(self._function))}()"


class Dynamic(Compiled):
    """A compiled function that gets 0-d tensors in place of floats. The function may change a list: so no copies are made of lists."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, values = floats_as_tensors((args, tuple(kwargs.values())), tuple)
        return super().__call__(*args, **dict(zip(kwargs, values, strict=True)))

    def explain(self, *args: Any, **kwargs: Any) -> str:
        args, values = floats_as_tensors((args, tuple(kwargs.values())), tuple)
        return super().explain(*args, **dict(zip(kwargs, values, strict=True)))
