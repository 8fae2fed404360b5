"""`checkpoint`: a region of a computation whose saved tensors are thrown away and computed again during backward.

Saved-tensor hooks put a holder in the place of each tensor that the region saves. The first holder that a backward unpacks runs
the region again, under hooks that fill the holders in the same order, until the last is filled. The recomputed tensors belong to
one run of backward and is let go as it is unpacked. An inner region's inputs are saved tensors of the outer one, so to unpack
a tensor every region around it runs again.
"""

from __future__ import annotations

import contextlib
import os
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, NoReturn

from cygrad._core.engine.backward import current_run
from cygrad._core.graph.saved import SavedTensor, save_for
from cygrad.autograd import enable_grad, is_grad_enabled
from cygrad.autograd.saved_tensors import saved_tensors_hooks
from cygrad.checkpoint.reentrant import CheckpointFunction, replayed_random_numbers
from cygrad.generator import default_generator, position_of
from cygrad.tensor import Tensor

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")

_switches: dict[str, bool | None] = {"early_stop": None, "debug": None}
_outside_of_runs = count(-1, -1)
TIP = ("\nTip: To see a more detailed error message, either pass `debug=True` to `cygrad.checkpoint.checkpoint(...)` or wrap the code "
       "block with `with cygrad.checkpoint.set_checkpoint_debug_enabled(True):`.")


class CheckpointError(RuntimeError):
    """The region did not save the same tensors when it was computed again."""


class _StopRecomputation(BaseException):
    """All that is needed has been recomputed; not an Exception, so that the region does not catch it by accident."""


@contextlib.contextmanager
def _switch(name: str, value: bool | None) -> Iterator[None]:
    before, _switches[name] = _switches[name], value
    try:
        yield
    finally:
        _switches[name] = before


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Decide, over the argument `early_stop`, whether regions made in this context stop recomputing when all is there."""
    return _switch("early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Decide, over the argument `debug` (None: the argument decides), whether errors name the saved tensors and their lines."""
    return _switch("debug", enabled)


def noop_context_fn() -> Contexts:
    """Return two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


# ----- Regions that are recomputed -----
def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


DETERMINISM_CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _metadata, "none": lambda tensor: None}


class _Holder:
    """Stands for a saved tensor in the graph: the recomputed tensors by the run of backward that needs them."""

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor] = {}


class _Region:
    """One call of `checkpoint`: the function that recomputes it, and the holders in the order in which tensors were saved."""

    def __init__(self, recompute: Callable[..., Any], arguments: tuple[Any, ...], early_stop: bool, describe: Callable[[Tensor], Any],
                 log: _Log | None) -> None:
        self.recompute, self.early_stop, self.describe, self.log = recompute, early_stop, describe, log
        # Saved as an operator would: a region around this one keeps holders for them.
        self.arguments = [save_for(None, value) if isinstance(value, Tensor) else value for value in arguments]
        self.holders: list[weakref.ref[_Holder]] = []
        self.descriptions: list[Any] = []
        self.recomputed: set[int] = set()
        self.completed = False

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.descriptions.append(self.describe(tensor))
        if self.log is not None:
            self.log.note(self.log.forward, tensor)
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        run = current_run()[0] or next(_outside_of_runs)
        try:
            if run not in self.recomputed:
                self.run_again(run)
            if run not in holder.tensors:
                raise CheckpointError("cygrad.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you "
                                      "are calling ctx.saved_tensors in backward, make sure to do so only once.")
        except CheckpointError as error:
            if self.log is None:
                raise
            self.log.explain(error)
        return holder.tensors.pop(run)

    def run_again(self, run: int) -> None:
        arguments = [value.unpack() if isinstance(value, SavedTensor) else value for value in self.arguments]
        differences: list[str] = []
        saved = 0
        unchecked = False

        def fill(tensor: Tensor) -> Tensor:
            nonlocal saved, unchecked
            tensor = tensor.detach() if tensor.requires_grad else tensor
            number, saved = saved, saved + 1
            if self.log is not None:
                self.log.note(self.log.recomputation, tensor)
            if number >= len(self.holders):
                if self.completed:
                    raise CheckpointError("cygrad.checkpoint: trying to save more tensors during recomputation than during the original "
                                          f"forward pass.\n{TIP}")
                unchecked = True        # a backward inside the region: the forward pass has not come as far as this
                return tensor
            holder = self.holders[number]()
            if holder is not None:      # it is None where a backward inside the region has freed it
                holder.tensors[run] = tensor
                result = self.describe(tensor)
                if result != self.descriptions[number]:
                    differences.append(f"tensor at position {number}:\nsaved metadata: {self.descriptions[number]}\n"
                                       f"recomputed metadata: {result}\n")
            if self.early_stop and saved == len(self.holders):
                raise _StopRecomputation
            return tensor

        if self.log is not None:
            self.log.recomputation.clear()
        with contextlib.suppress(_StopRecomputation), saved_tensors_hooks(fill, lambda tensor: tensor), enable_grad():
            self.recompute(*arguments)
        self.recomputed.add(run)
        if unchecked:
            return
        if saved != len(self.holders):
            raise CheckpointError("cygrad.checkpoint: A different number of tensors was saved during the original forward and "
                                  f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\n"
                                  f"Number of tensors saved during recomputation: {saved}.\n{TIP}")
        if differences:
            raise CheckpointError("cygrad.checkpoint: Recomputed values for the following tensors have different metadata than during the "
                                  f"forward pass.\n{''.join(differences)}.\n{TIP}")


class _Log:
    """With `debug`: the saved tensor, and the user's line that saved it."""

    def __init__(self) -> None:
        self.forward: list[str] = []
        self.recomputation: list[str] = []

    @staticmethod
    def note(lines: list[str], tensor: Tensor) -> None:
        place = next(frame for frame in reversed(traceback.extract_stack()) if not frame.filename.startswith(PACKAGE))
        lines.append(f"{tensor.dtype.name}{list(tensor.shape)} saved at {place.filename}:{place.lineno}: {place.line}")

    def explain(self, error: CheckpointError) -> NoReturn:
        parts = []
        for title, lines in (("the original forward", self.forward), ("recomputation", self.recomputation)):
            parts += [f"Tensors saved during {title}:", *(f"  {number}: {line}" for number, line in enumerate(lines)), ""]
        raise CheckpointError("An error happened while unpacking tensors; dumping logs of latest computation because you passed "
                              "`debug=True` to `cygrad.checkpoint.checkpoint()`.\n\n" + "\n".join(parts) +
                              "\nERROR: Detected non-determinism while running activation checkpointing: compare the two lists.") from error


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], Contexts] = noop_context_fn, determinism_check: str = "default", debug: bool = False,
               early_stop: bool = True, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """Return `function(*args, **kwargs)` without saving the tensors that backward needs: backward computes it again.

    Args:
        function: the region; run again, it must do the same operations.
        args, kwargs: its arguments; keywords with `use_reentrant=False` only.
        use_reentrant: False, which is recommended, records the region and recomputes by saved-tensor hooks. True runs it without
            recording, for `backward()` without `inputs=` only, and only gradients of tensors among `args` are computed. Give it:
            None warns and means True.
        context_fn: returns two contexts, for the region and for its recomputations.
        determinism_check: "default" compares shapes and dtypes of the recomputed tensors, "none" does not.
        debug: whether errors name the saved tensors and their lines.
        early_stop: whether recomputation stops when all is there.
        preserve_rng_state: whether the global generator gives the same numbers again.

    Raises:
        CheckpointError: the region did not save the same tensors again.
        ValueError: arguments that do not go together.

    Example:
        >>> import cygrad
        >>> x = cygrad.zeros(2, requires_grad=True)
        >>> y = cygrad.checkpoint.checkpoint(lambda t: t.exp().tanh(), x, use_reentrant=False)
        >>> y.sum().backward()
        >>> x.grad
        tensor([0.4200, 0.4200])
    """
    if use_reentrant is None:
        _warn_of_default("checkpoint")
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    log = None
    if debug if _switches["debug"] is None else _switches["debug"]:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        log = _Log()
    if determinism_check not in DETERMINISM_CHECKS:
        raise ValueError(f"determinism_check should be one of {list(DETERMINISM_CHECKS)}, but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    position = position_of(default_generator()) if preserve_rng_state else None

    def recompute(*arguments: Any) -> None:
        with replayed_random_numbers(position), recompute_context:
            function(*arguments, **kwargs)

    stops = early_stop if _switches["early_stop"] is None else _switches["early_stop"]
    region = _Region(recompute, args, bool(stops), DETERMINISM_CHECKS[determinism_check], log)
    with saved_tensors_hooks(region.pack, region.unpack), forward_context:
        result = function(*args, **kwargs)
        region.completed = True
    if not region.completed:
        raise RuntimeError("cygrad.checkpoint: the forward context provided by context_fn suppressed an exception raised during the "
                           "checkpointed forward. This is not supported because checkpoint cannot return a value for a failed forward.")
    return result


def checkpoint_sequential(functions: Sequence[Callable[..., Any]], segments: int, input: Any, use_reentrant: bool | None = None, *,
                          preserve_rng_state: bool = True) -> Any:
    """Apply functions one after the other, in `segments` equal parts of which all but the last are checkpointed.

    Args:
        functions: functions of one argument.
        segments: number of parts.
        input: argument of the first.
        use_reentrant, preserve_rng_state: as in `checkpoint`.

    Example:
        >>> import cygrad
        >>> x = cygrad.zeros(2, requires_grad=True)
        >>> y = cygrad.checkpoint.checkpoint_sequential([cygrad.exp, cygrad.tanh], 2, x, use_reentrant=False)
    """
    if use_reentrant is None:
        _warn_of_default("checkpoint_sequential")
        use_reentrant = True
    functions = list(functions)

    def run(part: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for function in part:
                value = function(value)
            return value

        return forward

    size = len(functions) // segments
    last = size * (segments - 1)
    for start in range(0, last, size or 1):
        input = checkpoint(run(functions[start:start + size]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return run(functions[last:])(input)


def _warn_of_default(name: str) -> None:
    warnings.warn(f"cygrad.checkpoint.{name}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended, "
                  "but if you need the default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
                  "differences between the two variants.", stacklevel=3)
