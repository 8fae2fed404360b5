"""Loops and branches as functions, with JAX's names and order of arguments: `scan`, `fori_loop`, `while_loop`, `cond`.

They run as Python's loops do, so derivatives of every order, forward mode and vmap hold. Inside of vmap a predicate may differ among
examples: then both ways are computed, and `where` chooses. The step of a long loop is captured (`cygrad.compile`), where possible.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any, cast

import numpy as np

from cygrad._core.capture.compiled_node import sees_results_alone
from cygrad._core.capture.kinds import Uncommon
from cygrad._core.capture.signature import MADE_STEP
from cygrad._core.graph.notes import current_notes, is_noting, noted_steps, refuse_decisions
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import batched_level
from cygrad._core.levels.level import active_levels
from cygrad.checkpoint.loop import checkpoint_loop
from cygrad.compiling.loop_steps import captured_step
from cygrad.compiling.number_inputs import FLOAT64, IntInput, as_numbers
from cygrad.data.creation import arange, as_tensor
from cygrad.func.loop_levels import Levels, NotLooped, PlainStep, Tree, all_differ, row_major, taken_apart
from cygrad.func.looped_backward import Step
from cygrad.func.looping import LOOPED_FROM, Ended, Looped, Steps, looped
from cygrad.operators.joining import cat, stack
from cygrad.operators.masking import where
from cygrad.pytree import tree_flatten, tree_unflatten

CAPTURED_FROM = 64      # steps from which a capture, which takes as long as some ten of them, pays
LARGEST_NUMBER = 1 << 26        # of a step of a captured `fori_loop`: its square is a float64, too
FIRST_STEPS = 3         # from the third on all steps have a carry of one kind: one that a program has made
FIRST_IN_LEVELS = 8     # there a tangent may begin, or be recorded, some steps after the values that it depends on


# ----- Carried values -----
def _same_structure(name: str, carry: Any, result: Any) -> Any:
    """Return the carry of the next step; TypeError if it has other containers, shapes or dtypes than the first one."""
    if _are_alike(carry, result):
        return result
    leaves, spec = tree_flatten(carry)
    others, other_spec = tree_flatten(result)
    if spec != other_spec:
        raise TypeError(f"{name}: the carry must keep its structure: it was {spec}, and a step returned {other_spec}")
    for before, after in zip(leaves, others, strict=True):
        if isinstance(before, TensorImpl) and not _are_alike(before, after):
            raise TypeError(f"{name}: the carry must keep shapes and dtypes: {_kind(before)} became {_kind(after)}; convert the first one, "
                            "or the result of the step")
    return result


def _are_alike(before: Any, after: Any) -> bool:
    """Return True if two values are tensors of one shape and dtype, or tuples of such; else they may be trees that are alike."""
    if isinstance(before, TensorImpl) and isinstance(after, TensorImpl):
        return bool(before.dtype is after.dtype and before.shape == after.shape)
    return type(before) is type(after) is tuple and len(before) == len(after) and all(map(_are_alike, before, after))


def _kind(value: Any) -> str:
    return f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, TensorImpl) else type(value).__name__


def _chosen(predicate: Any, yes: Any, no: Any) -> Any:
    """Return a tree with the leaves of one of two trees for each example."""
    leaves, spec = tree_flatten(yes)
    others, _ = tree_flatten(no)
    return tree_unflatten([where(predicate, a, b) for a, b in zip(leaves, others, strict=True)], spec)


def _changed_where(predicate: Any, after: Any, before: Any) -> Any:
    """Return the next carry of a `while_loop`: the one before for examples that have ended."""
    return after if predicate is True else _chosen(predicate, after, before)


def _predicate(name: str, value: Any) -> Any:
    """Return a predicate as a bool, or, where examples differ, as a tensor of one."""
    if isinstance(value, TensorImpl):
        if value.ndim:
            raise TypeError(f"{name}: the predicate must be one bool, got a tensor of shape {tuple(value.shape)}; use any() or all()")
        if value.dtype.kind != "b":
            raise TypeError(f"{name}: the predicate must be a bool, got a tensor of {value.dtype}; compare it, as by x != 0")
        return value if batched_level(value) is not None else bool(value)
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: the predicate must be a bool, or a tensor of one, got {type(value).__name__}")
    return bool(value)


def _whole(name: str, argument: str, value: Any) -> int:
    """Return an argument as an int; TypeError if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {argument} must be an int, got {type(value).__name__}") from None


def _holds_for_any(predicate: Any) -> bool:
    """Return True if a predicate holds for some example."""
    while isinstance(predicate, TensorImpl) and (level := batched_level(predicate)) is not None:
        predicate = level.enter(predicate).any(0)
    return bool(predicate)


# ----- Loops -----
def scan(step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         snapshots: int | None = None) -> tuple[Any, Any]:
    """Return the last carry, and the results of all steps stacked: `carry, y = step(carry, x)` for each x in order.

    carry: a tree of tensors, whose structure, shapes and dtypes stay. xs: a tree of tensors; x has their slices along dim 0, or is
    None. ys: a tree like y, each tensor with a new first dim; None where y is. length: of xs, needed where there are none.
    reverse: from the last x to the first one; ys are in the order of xs. snapshots: keep so many states for a backward, and compute
    the others again (`checkpoint.checkpoint_loop`), of steps that return None for y. Arrays of NumPy's in xs count as tensors.

    ValueError for lengths that differ, TypeError for a carry that changes its kind and for xs, y and length of other kinds. After
    `jax.lax.scan`.

    >>> import cygrad
    >>> from cygrad.func import scan
    >>> scan(lambda total, x: (total + x, total * x), cygrad.tensor(0.), cygrad.tensor([1., 2., 3.]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    return _scan(step, carry, xs, length, reverse, snapshots)


def _scan(step: Step, carry: Any, xs: Any, length: int | None, reverse: bool, snapshots: int | None = None,
          must_loop: bool = False, below: Levels = ()) -> tuple[Any, Any]:
    """Run a scan.

    must_loop: raise NotLooped where the steps would run one by one. below: levels at which the step is one on plain tensors already.
    """
    xs, leaves, spec = (None, [], None) if xs is None else _of_tensors(xs)
    if snapshots is not None and _whole("scan", "snapshots", snapshots) < 1:
        raise ValueError(f"scan: snapshots must be 1 or more, got {snapshots}")
    lengths = {leaf.shape[0] for leaf in leaves} | ({_whole("scan", "length", length)} if length is not None else set())
    if len(lengths) != 1:
        raise ValueError(f"scan: give xs of one length along dim 0, or length=; got lengths {sorted(lengths)}")
    count = lengths.pop()
    if count < 0:
        raise ValueError(f"scan: length must not be negative, got {count}")

    def at(number: int) -> Any:
        return None if spec is None else tree_unflatten([leaf[number] for leaf in leaves], spec)

    order = range(count - 1, -1, -1) if reverse else range(count)
    if not count:
        return carry, _nothing(step, carry, leaves, spec) if snapshots is None else None
    if not _pays(count, snapshots is not None):
        return _steps(step, step, carry, at, order, snapshots)
    run = captured_step(step)
    first = _first_steps()
    middle, ys = _steps_apart(run, carry, at, order[:first])
    if snapshots is not None and ys[0] is not None:
        raise _results_beside_snapshots()
    rest = order[first:]
    steps = Steps(_scan, step, middle, xs, rest, lambda step: Looped(*_steps(step, step, middle, at, rest, None)))
    loop = _looped(run, at(rest[0]), steps, snapshots, below)
    if loop is None and must_loop:
        raise NotLooped
    if loop is None and snapshots is None:
        last, later = _steps_apart(run, middle, at, rest)
        return last, _stacked(later + ys if reverse else ys + later)
    last, later = loop or _steps(step, run, middle, at, rest, snapshots)
    earlier = _stacked(ys)      # behind the loop, as the node is whose gradients the engine adds first
    return last, _joined(later, earlier) if reverse else _joined(earlier, later)


def _of_tensors(xs: Any) -> tuple[Any, list[Any], Any]:
    """Return the xs of a scan with tensors over arrays of NumPy's, their leaves and their structure; TypeError for other leaves."""
    leaves, spec = tree_flatten(xs)
    leaves = [as_tensor(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    for leaf in leaves:
        if not isinstance(leaf, TensorImpl) or not leaf.ndim:
            raise TypeError("scan: xs must be tensors, of which each step has a slice along dim 0, got "
                            + ("a 0-d tensor" if isinstance(leaf, TensorImpl) else type(leaf).__name__))
    return tree_unflatten(leaves, spec), leaves, spec


def _looped(run: Any, x: Any, steps: Steps, snapshots: int | None = None, below: Levels = ()) -> Looped | None:
    """Run steps as a loop of the core, within levels on the plain tensors behind their operands; None where no loop can.

    x: of the first row, None for as many steps as there are while a predicate holds.
    """
    levels = active_levels()
    if not levels:
        return looped(run, x, steps, snapshots)
    try:
        plain = _plain_steps(steps, levels, below)
        step, rows = cast("PlainStep", plain.step), plain.rows
        loop = looped(captured_step(step), None if rows is None else [leaf[rows[0]] for leaf in plain.xs], plain, snapshots)
    except (NotLooped, Uncommon):
        return None
    return loop and Looped(step.carry.together(loop.carry), cast("Tree", step.y).together(loop.y or (), stacked=True))


def _plain_steps(steps: Steps, levels: Levels, below: Levels) -> Steps:
    """Return steps on the plain tensors behind their operands; NotLooped or Uncommon where there are none."""
    carry, values = taken_apart(steps.carry if steps.rows is not None else all_differ(steps.carry, levels), levels)
    xs, leaves = taken_apart(steps.xs, levels)
    step, values, rows = PlainStep(steps.step, carry, xs, below), row_major(values), steps.rows
    if rows is None:
        return Steps(_scan, step, values, None, None, lambda step: Looped(_until_ended(step, values), None))
    leaves = step.rows_first(leaves)

    def at(row: int) -> list[Any]:
        return [leaf[row] for leaf in leaves]

    return Steps(_scan, step, values, leaves, rows, lambda step: Looped(*_steps(step, step, values, at, rows, None)))


def _first_steps() -> int:
    return FIRST_IN_LEVELS if active_levels() else FIRST_STEPS


def _pays(count: int, has_snapshots: bool = False) -> bool:
    """Return True if it pays to run so many steps as a loop of the core; within levels no program is kept."""
    return count >= (LOOPED_FROM if is_noting() and not has_snapshots or active_levels() else CAPTURED_FROM)


def _steps(step: Any, run: Any, carry: Any, at: Callable[[int], Any], order: range, snapshots: int | None) -> tuple[Any, Any]:
    """Return the carry after some steps, and their results, stacked in the order of the rows; `run` is the step, perhaps captured."""
    if snapshots is not None and not active_levels():       # which snapshots would hide
        return _with_snapshots(step, carry, at, order, snapshots), None
    carry, ys = _steps_apart(run, carry, at, order)
    return carry, _stacked(ys)


def _steps_apart(run: Any, carry: Any, at: Callable[[int], Any], order: range) -> tuple[Any, list[Any]]:
    """Return the carry after some steps, and their results in the order of the rows."""
    first, ys = carry, []
    for number in order:
        result = run(carry, at(number))
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"scan: a step must return (carry, y), got {type(result).__name__}")
        carry, y = _same_structure("scan", first, result[0]), result[1]
        ys.append(y)
    return carry, ys[::order.step]


def _joined(first: Any, second: Any) -> Any:
    """Return the results of all steps from the results of two parts of them."""
    leaves, spec = tree_flatten(first)
    others, other_spec = tree_flatten(second)
    if other_spec != spec:
        raise TypeError("scan: all steps must return a y of one structure")
    pairs = zip(leaves, others, strict=True)
    return tree_unflatten([_column(pair) if any(leaf is None for leaf in pair) else cat(pair) for pair in pairs], spec)


def _stacked(ys: list[Any]) -> Any:
    columns = [tree_flatten(y) for y in ys]
    spec = columns[0][1]
    if any(other != spec for _, other in columns):
        raise TypeError("scan: all steps must return a y of one structure")
    return tree_unflatten([_column(leaves) for leaves in zip(*(leaves for leaves, _ in columns), strict=True)], spec)


def _column(leaves: tuple[Any, ...]) -> Any:
    """Return the results of all steps in one place of y, stacked; None where all are."""
    if all(leaf is None for leaf in leaves):
        return None
    kinds = {type(leaf).__name__ for leaf in leaves if not isinstance(leaf, TensorImpl)}
    if kinds:
        raise TypeError(f"scan: y must be a tree of tensors, or None in the same place of each step, got {' and '.join(sorted(kinds))}")
    return stack(list(leaves))


def _nothing(step: Any, carry: Any, leaves: list[Any], spec: Any) -> Any:
    """Return the ys of no step: their kind is found by a step on zeros."""
    x = None if spec is None else tree_unflatten([leaf.new_zeros(leaf.shape[1:]) for leaf in leaves], spec)
    results, kind = tree_flatten(step(carry, x)[1])
    return tree_unflatten([None if result is None else result.detach().new_empty((0, *result.shape)) for result in results], kind)


def _results_beside_snapshots() -> Exception:
    return ValueError("scan: snapshots= takes steps that return None for y: results of all steps would take the memory that snapshots save")


def _with_snapshots(step: Any, carry: Any, at: Any, order: range, snapshots: int) -> Any:
    leaves, spec = tree_flatten(carry)

    def next_state(state: tuple[Any, ...], number: int) -> tuple[Any, ...]:
        result, y = step(tree_unflatten(list(state), spec), at(order[number]))
        if y is not None:
            raise _results_beside_snapshots()
        return tuple(tree_flatten(_same_structure("scan", carry, result))[0])

    return tree_unflatten(list(checkpoint_loop(next_state, tuple(leaves), len(order), snapshots)), spec)


def fori_loop(lower: int, upper: int, body: Callable[[int, Any], Any], carry: Any) -> Any:
    """Return the carry after `carry = body(i, carry)` for i from `lower` up to `upper` - 1; i is an int.

    Of 64 steps or more all but the first ones run without Python, if the body computes, compares and indexes with i (docs/compile.md).

    TypeError for a carry that changes its structure, shapes or dtypes. After `jax.lax.fori_loop`.

    >>> import cygrad
    >>> from cygrad.func import fori_loop
    >>> fori_loop(1, 4, lambda i, x: x * i, cygrad.tensor([1., 2.]))
    tensor([ 6., 12.])
    """
    numbers, first = range(_whole("fori_loop", "lower", lower), _whole("fori_loop", "upper", upper)), carry

    def steps(numbers: range, carry: Any) -> Any:
        for number in numbers:
            carry = _same_structure("fori_loop", first, body(number, carry))
        return carry

    if not _pays(len(numbers)) or max(map(abs, (numbers.start, numbers.stop))) > LARGEST_NUMBER or not sees_results_alone():
        return steps(numbers, carry)
    step = _kept_step(body, None, _step_of_numbers)
    run = captured_step(step, is_called=False)      # a program is for all numbers
    column, count = arange(numbers.start, numbers.stop, dtype=FLOAT64), _first_steps()
    carry = steps(numbers[:count], carry)
    rest, rows = numbers[count:], range(count, len(numbers))
    loop = _looped(run, column[count], Steps(_scan, step, carry, column, rows, lambda step: Looped(
        *_steps(step, step, carry, column.__getitem__, rows, None))))
    return steps(rest, carry) if loop is None else loop.carry


def _kept_step(body: Callable[..., Any], cond: Callable[[Any], Any] | None, make: Callable[..., Step]) -> Step:
    """Return the step that is made of a body and a predicate: of the same two functions the same one each time, as it keeps its program."""
    known = getattr(body, "__dict__", {}).get(MADE_STEP)
    if known is not None and known[0] is body and known[1] is cond:     # `functools.wraps` copies it to another function
        return cast("Step", known[2])
    step = make(body, cond)
    if isinstance(body, FunctionType):
        body.__dict__[MADE_STEP] = body, cond, step
    return step


def _step_of_numbers(body: Callable[[int, Any], Any], _: None) -> Step:
    """Return the step of a `fori_loop`, whose number is a 0-d tensor of float64."""
    def step(carry: Any, number: Any) -> tuple[Any, Any]:
        notes = current_notes()
        if notes is not None:
            notes.has_numbers = True
        return as_numbers(body(cast("int", IntInput(number, LARGEST_NUMBER)), carry)), None

    return step


def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], carry: Any) -> Any:
    """Return the carry after `carry = body(carry)` as long as `cond(carry)` holds; it has derivatives, as all loops have.

    Behind 64 steps, all run without Python, if `cond` returns a tensor of one bool (docs/compile.md).

    Inside of vmap the loop runs while it holds for some example; the carry of the others stays. TypeError for a carry that changes its
    structure, shapes or dtypes, and for a predicate that is no bool. After `jax.lax.while_loop`.

    >>> import cygrad
    >>> from cygrad.func import while_loop
    >>> while_loop(lambda x: x.sum() < 100, lambda x: x * 2, cygrad.tensor([1., 2.]))
    tensor([ 64., 128.])
    """
    first = carry

    def steps(carry: Any, most: float = math.inf) -> tuple[Any, bool]:
        """Return the carry after `most` steps, or as many as there are, and whether it is known that these are all."""
        count = 0
        while count < most:
            predicate = _predicate("while_loop", cond(carry))
            if not _holds_for_any(predicate):
                return carry, True
            carry = _changed_where(predicate, _same_structure("while_loop", first, body(carry)), carry)
            count += 1
        return carry, False

    carry, ended = steps(carry, _first_steps() if is_noting() else CAPTURED_FROM)
    if ended or not sees_results_alone():
        return carry if ended else steps(carry)[0]
    step = _kept_step(body, cond, _step_while)
    run = captured_step(step)
    try:
        for _ in range(0 if is_noting() or active_levels() else FIRST_STEPS):
            carry = _same_structure("while_loop", first, run(carry, None)[0])
        loop = _looped(run, None, Steps(_scan, step, carry, None, None, lambda step: Looped(_until_ended(step, carry), None)))
    except Ended:
        return carry
    return steps(carry)[0] if loop is None else loop.carry


def _step_while(body: Callable[[Any], Any], cond: Callable[[Any], Any]) -> Step:
    """Return a step whose first decision is the predicate of a loop."""
    def step(carry: Any, _: None) -> tuple[Any, Any]:
        first = noted_steps()
        predicate = cond(carry)
        refuse_decisions(first, "the predicate of a loop decides by values")
        predicate = _predicate("while_loop", predicate)
        if not _holds_for_any(predicate):
            raise Ended
        return _changed_where(predicate, body(carry), carry), None

    return step


def _until_ended(step: Step, carry: Any) -> Any:
    """Return the carry after all steps of a `while_loop`."""
    with suppress(Ended):
        while True:
            carry, _ = step(carry, None)
    return carry


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """Return `true_fun(*operands)` if a predicate holds, else `false_fun(*operands)`.

    Inside of vmap, where examples differ, both are computed, and each example has its own. TypeError for a predicate that is no bool,
    and there for results of different structure. After `jax.lax.cond`.

    >>> import cygrad
    >>> from cygrad.func import cond, vmap
    >>> vmap(lambda x: cond(x > 0, cygrad.sqrt, cygrad.neg, x))(cygrad.tensor([4., -3.]))
    tensor([2., 3.])
    """
    predicate = _predicate("cond", pred)
    if isinstance(predicate, bool):
        return (true_fun if predicate else false_fun)(*operands)
    yes = true_fun(*operands)
    return _chosen(predicate, yes, _same_structure("cond", yes, false_fun(*operands)))
