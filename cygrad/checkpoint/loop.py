"""`checkpoint_loop`: gradients of many steps with few snapshots, by binomial checkpointing.

A. Griewank and A. Walther, Algorithm 799: revolve, ACM Transactions on Mathematical Software 26 (2000) 19-45. With s snapshots,
of which the initial state is one, and r repetitions, b(s, r) = C(s + r, s) steps can be reversed; l steps, where
b(s, r - 1) < l <= b(s, r), take t(l, s) = r * l - b(s + 1, r - 1) steps forward and l recorded ones, and no schedule takes fewer.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cygrad._core.graph.handles import exchange_hooks
from cygrad._core.graph.history import AccumulateGrad
from cygrad._core.graph.node import Node, last_number
from cygrad._core.graph.tensor import count_of_changes
from cygrad._progress import bar, counted
from cygrad.autograd import Function, enable_grad, grad, is_grad_enabled, no_grad
from cygrad.checkpoint.reentrant import draw_again, replayed_random_numbers
from cygrad.generator import default_generator, position_of
from cygrad.tensor import Tensor

State = Tensor | tuple[Tensor, ...]
Step = Callable[..., Any]


def repetitions(steps: int, snapshots: int) -> int:
    """Return r: how often the most repeated step runs forward."""
    count = 0
    while math.comb(snapshots + count, snapshots) < steps:
        count += 1
    return count


def next_snapshot(steps: int, snapshots: int) -> int:
    """Return after how many of `steps` the next snapshot is due, the present state being one of `snapshots` (2 at least)."""
    count = repetitions(steps, snapshots)
    return min(math.comb(snapshots + count - 1, snapshots), steps - math.comb(snapshots + count - 2, snapshots - 1))


class _Snapshot:
    """The state before a step, and the random numbers that follow."""

    def __init__(self, number: int, state: tuple[Tensor, ...], preserve_rng_state: bool) -> None:
        self.number, self.state = number, tuple(tensor.detach() for tensor in state)
        self.versions = [*map(count_of_changes, state)]
        self.position = position_of(default_generator()) if preserve_rng_state else None


class _Loop:
    """One call of `checkpoint_loop`: its snapshots, the oldest first, of which the first is the initial state."""

    def __init__(self, step: Step, state: State, steps: int, snapshots: int, parameters: tuple[Any, ...], preserve_rng_state: bool) -> None:
        self.step, self.steps, self.limit, self.preserve_rng_state = step, steps, snapshots, preserve_rng_state
        self.single = isinstance(state, Tensor)
        self.initial = (state,) if isinstance(state, Tensor) else state
        self.first_needs_grad = tuple(tensor.requires_grad for tensor in self.initial)
        self.parameters = tuple(value.detach() if isinstance(value, Tensor) else value for value in parameters)
        self.parameters_need_grad = tuple(isinstance(value, Tensor) and value.requires_grad for value in parameters)
        self.snapshots: list[_Snapshot] = []
        self.captured: tuple[Tensor, ...] = ()
        self.last: tuple[Any, Any] | None = None        # inputs and outputs of the last step, recorded in the forward pass
        self.running = threading.Lock()                 # snapshots come and go during backward: one at a time

    def call(self, state: tuple[Tensor, ...], number: int, parameters: tuple[Any, ...]) -> tuple[Tensor, ...]:
        result = self.step(state[0] if self.single else state, number, *parameters)
        result = (result,) if isinstance(result, Tensor) else tuple(result)
        if len(result) != len(state) or not all(isinstance(tensor, Tensor) for tensor in result):
            raise RuntimeError(f"checkpoint_loop: step {number} returned {[type(value).__name__ for value in result]} for a state of "
                               f"{len(state)} tensors; it must return the next state, of the same structure")
        return result

    def snapshot_before(self, target: int) -> _Snapshot:
        """Step forward, without recording, to the state before step `target`; snapshots on the way are kept while there is room."""
        while (here := self.snapshots[-1]).number < target:
            room = self.limit - len(self.snapshots)
            end = here.number + next_snapshot(target + 1 - here.number, room + 1) if room else target
            if here.position is not None:
                draw_again(here.position)
            state = here.state
            with no_grad():
                for number in range(here.number, end):
                    state = self.call(state, number, self.parameters)
                    if [*map(count_of_changes, here.state)] != here.versions:
                        raise RuntimeError(f"checkpoint_loop: step {number} changes its state in place; return a new one")
            reached = _Snapshot(end, state, self.preserve_rng_state)
            if not room:
                return reached
            self.snapshots.append(reached)
        return here if here.number == 0 else self.snapshots.pop()

    def record(self, number: int) -> tuple[tuple[Any, ...], tuple[Tensor, ...]]:
        """Run a step from its state as leaves; return these, the parameters as leaves, and the outputs."""
        snapshot = self.snapshot_before(number)
        needs = self.first_needs_grad if number == 0 else tuple(tensor.dtype.is_differentiable for tensor in snapshot.state)
        inputs = tuple(value.detach().requires_grad_() if need else value for value, need
                       in zip(snapshot.state + self.parameters, needs + self.parameters_need_grad, strict=True))
        if snapshot.position is not None:
            draw_again(snapshot.position)
        before = last_number()
        with enable_grad():
            outputs = self.call(inputs[:len(needs)], number, inputs[len(needs):])
        self.check_captured(number, inputs, outputs, before)
        return inputs, outputs

    def check_captured(self, number: int, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...], before: int) -> None:
        """Find the leaves that a step takes from elsewhere: the last step's are inputs of the whole loop."""
        results: dict[int, Tensor] = {}
        seen: set[Node] = set()
        stack: list[Node | None] = [output.grad_fn for output in outputs]
        for output in outputs:
            if output.requires_grad and output.is_leaf:
                results[id(output)] = output
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if isinstance(node, AccumulateGrad):
                results[id(node.variable)] = node.variable
            elif node._sequence_nr() <= before:
                raise RuntimeError(f"checkpoint_loop: step {number} uses an output of {node.name()} that is not among its arguments; pass "
                                   "it to checkpoint_loop as a parameter, so that its gradient can be found")
            else:
                stack += [edge[0] for edge in node.next_functions]
        for value in inputs:
            results.pop(id(value), None)
        captured = list(results.values())
        if self.last is None and number == self.steps - 1:
            self.captured = tuple(captured)
        elif {id(tensor) for tensor in captured} - {id(tensor) for tensor in self.captured}:
            raise RuntimeError(f"checkpoint_loop: step {number} uses a leaf that the last step does not use; pass it to checkpoint_loop as "
                               "a parameter, so that its gradient can be found")

    def forward(self) -> tuple[Tensor, ...]:
        """Return the last state; its step stays recorded for backward."""
        self.snapshots.append(_Snapshot(0, self.initial, self.preserve_rng_state))
        self.initial = ()       # with its history: the loop is not to hold that
        self.last = self.record(self.steps - 1)
        return tuple(output.detach() for output in self.last[1])

    def reverse(self, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return the gradients of the initial state, the parameters and the captured leaves."""
        count = len(self.first_needs_grad)
        totals: list[Tensor | None] = [None] * (len(self.parameters) + len(self.captured))
        for number in range(self.steps - 1, -1, -1):
            inputs, outputs = self.last if self.last is not None and number == self.steps - 1 else self.record(number)
            pairs = [pair for pair in zip(outputs, grads, strict=True) if pair[0].requires_grad and pair[1] is not None]
            grads, self.last = [None] * count, None
            if not pairs:
                break
            places = [place for place, value in enumerate(inputs) if isinstance(value, Tensor) and value.requires_grad]
            targets = [inputs[place] for place in places] + list(self.captured)
            places += range(len(inputs), len(inputs) + len(self.captured))
            with _without_hooks(self.captured):
                result = grad([pair[0] for pair in pairs], targets, [pair[1] for pair in pairs], allow_unused=True) if targets else ()
            del inputs, outputs, pairs, targets     # the graph of the step goes before the next is made
            for place, gradient in zip(places, result, strict=True):
                if place < count:
                    grads[place] = gradient
                elif gradient is not None:
                    total = totals[place - count]
                    totals[place - count] = gradient if total is None else total + gradient
        return [*grads, *totals]


@contextlib.contextmanager
def _without_hooks(leaves: Sequence[Tensor]) -> Iterator[None]:
    """Take the hooks of leaves away meanwhile: they are for the whole gradient, not for the part of each step."""
    hooks = [exchange_hooks(leaf, None) for leaf in leaves]
    try:
        yield
    finally:
        for leaf, table in zip(leaves, hooks, strict=True):
            exchange_hooks(leaf, table)


class CheckpointLoop(Function):
    """The node of a loop, whose inputs are the initial state, the parameters and the captured leaves."""

    @staticmethod
    def forward(ctx: Any, loop: _Loop, final: tuple[Tensor, ...], *inputs: Any) -> tuple[Tensor, ...]:
        """Return the last state, which is there already."""
        ctx.loop = loop
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*(value for value in inputs if isinstance(value, Tensor)))
        return final

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        """Reverse the loop."""
        loop: _Loop = ctx.loop
        if is_grad_enabled():
            raise RuntimeError("checkpoint_loop: its gradients cannot be differentiated again; leave create_graph=True away, or write the "
                               "loop out")
        _ = ctx.saved_tensors       # refuses a graph that was freed, and inputs that were changed in place
        if not loop.running.acquire(blocking=False):
            raise RuntimeError("checkpoint_loop: a backward of this loop is running in another thread, or around this one")
        try:
            with replayed_random_numbers(position_of(default_generator()) if loop.preserve_rng_state else None):
                return None, None, *loop.reverse(grads)
        finally:
            loop.running.release()


def calls_of_step(steps: int, snapshots: int) -> int:
    """Return how often a loop calls its step, forward and backward."""
    count = repetitions(steps, snapshots)
    return (count + 1) * steps - math.comb(snapshots + count, snapshots + 1)


def checkpoint_loop(step: Step, state: Any, steps: int, snapshots: int, *parameters: Any, preserve_rng_state: bool = True,
                    progress: bool = False) -> Any:
    """Apply `step` to a state `steps` times, keeping `snapshots` states for backward instead of everything.

    Backward restores the states between by running steps again, as few as possible: t(N, S) = r * N - C(S + r, S + 1) times for
    C(S + r - 1, S) < N <= C(S + r, S), besides recording each step once (Griewank and Walther 2000). Twelve snapshots
    reverse 455 steps with each run three times forward at most.

    Args:
        step: called as `step(state, number, *parameters)`; returns the next state. It must not change the state in place.
        state: a tensor or a tuple of tensors; the numbers of `step` start at 0.
        steps: number of steps, 0 or more.
        snapshots: states kept at a time, the first included; 1 or more.
        parameters: passed on to `step`. Gradients also reach leaves that `step` takes from elsewhere, if its last call
            does; tensors with a history must be passed here.
        preserve_rng_state: whether the global generator gives the same numbers again.
        progress: show a bar of tqdm that counts calls of `step`, in the backward, too.

    Returns:
        The last state. Its gradients cannot be differentiated again.

    Raises:
        ValueError: `steps` or `snapshots` is too small.
        RuntimeError: `step` returns another structure, changes its state in place, or takes a tensor with a history from
            elsewhere.

    Example:
        >>> import cygrad
        >>> rate = cygrad.tensor(0.01, requires_grad=True)
        >>> decayed = cygrad.checkpoint.checkpoint_loop(lambda x, number: x - rate * x, cygrad.ones(2), 100, 5)
        >>> decayed.sum().backward()
        >>> rate.grad
        tensor(-73.9459)
    """
    if steps < 0 or snapshots < 1:
        raise ValueError(f"checkpoint_loop expects steps >= 0 and snapshots >= 1, got {steps} and {snapshots}")
    initial = (state,) if isinstance(state, Tensor) else tuple(state)
    for value in initial:
        if not isinstance(value, Tensor):
            raise TypeError(f"checkpoint_loop expects a state of tensors, got {type(value).__name__}; keep other things in the step")
    if not isinstance(state, Tensor):
        state = initial
    if steps == 0:
        return state
    if progress:
        step = counted(step, bar("steps", calls_of_step(steps, snapshots) if is_grad_enabled() else steps))
    loop = _Loop(step, state, steps, snapshots, parameters, preserve_rng_state)
    if is_grad_enabled():
        final = CheckpointLoop.apply(loop, loop.forward(), *initial, *parameters, *loop.captured)
    else:
        final = initial
        for number in range(steps):
            final = loop.call(final, number, parameters)
    return final[0] if loop.single else final
