"""The backward of a long loop as a loop: where gradients are differentiated again, or are examples of `vmap`.

One `scan` has the carried values before each step. A second one takes the steps in reverse: it differentiates each, and carries the
gradients of carried values and the sums of gradients of constants. Both run without Python where the loop itself does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cygrad._core.engine.derivatives import fresh, retire, without_history
from cygrad._core.levels.level import Level, tangents_seen
from cygrad.autograd.derivatives import gradients_between
from cygrad.autograd.grad_mode import enable_grad, set_grad_enabled
from cygrad.operators.joining import cat
from cygrad.operators.new_tensors import zeros_like
from cygrad.pytree import tree_flatten, tree_unflatten

Scan = Callable[..., tuple[Any, Any]]
Step = Callable[[Any, Any], tuple[Any, Any]]


class Operands(NamedTuple):
    """The operands of a loop: trees of carried values and of tensors whose rows are the slices, or None; constants."""

    carry: Any
    xs: Any
    constants: list[Any]
    stays: list[bool]                       # of carried values: whether each step returns one as it is
    differentiable: tuple[int, ...]         # numbers of operands, flat
    recorded: list[tuple[bool, int]]        # results of a step that have gradients, the carry first: whether one is carried, its number


def reached_operands(dependencies: dict[tuple[bool, int], frozenset[int]], arrived: Sequence[tuple[bool, int]], count: int,
                     moving: frozenset[int]) -> frozenset[int]:
    """Return the numbers of the operands of a loop that results depend on.

    dependencies: of the results of a step. arrived: these results. count: of steps, or -1 where it is not known: then all that some number
    of steps leads to. moving: carried values that steps change.
    """
    of_rows = frozenset().union(*(dependencies[result] for result in arrived if not result[0]))
    carried, rest = frozenset(number for is_carried, number in arrived if is_carried), frozenset[int]()
    seen: dict[frozenset[int], int] = {}
    while carried not in seen and len(seen) != count:       # such sets repeat soon
        seen[carried] = len(seen)
        reached = of_rows.union(*(dependencies[True, number] for number in carried))
        carried, rest = reached & moving, rest | reached - moving
    if len(seen) != count:
        cycle = [*seen][seen[carried]:]
        carried = frozenset().union(*cycle) if count < 0 else cycle[(count - seen[carried]) % len(cycle)]
    return carried | rest


class LoopedBackward:
    """The backward of a loop, by `scan` and the step; `create_graph` as for `autograd.grad`."""

    def __init__(self, scan: Scan, step: Step, operands: Operands, create_graph: bool, unseen: tuple[Level, ...]) -> None:
        """`unseen`: levels whose tangents gradients do not have."""
        self.scan, self.step, self.operands, self.create_graph, self.unseen = scan, step, operands, create_graph, unseen
        carried, self.carry_spec = tree_flatten(operands.carry)
        leaves, xs_spec = tree_flatten(operands.xs)
        self.xs_spec: Any = None if operands.xs is None else xs_spec
        self.carried, self.leaves = self._as_constants(carried), self._as_constants([] if operands.xs is None else leaves)
        first, end = len(self.carried), len(self.carried) + len(self.leaves)
        self.moving = [number for number, stays in enumerate(operands.stays) if not stays]
        self.staying = [number for number, stays in enumerate(operands.stays) if stays]
        self.carried_on = [number for number in operands.differentiable if number in self.moving]
        self.sliced = [number for number in operands.differentiable if first <= number < end]
        self.summed = [number for number in operands.differentiable if number not in self.moving and not first <= number < end]

    def __call__(self, rows: range, gradients: Sequence[Any]) -> list[Any]:
        """Return the gradients of the differentiable operands, from gradients of the recorded results."""
        is_reverse, first, stop = rows.step < 0, min(rows), max(rows) + 1
        pairs = [(result, gradient) for result, gradient in zip(self.operands.recorded, self._as_constants(gradients), strict=True)
                 if result[0] or gradient is not None]
        self.recorded = [result for result, _ in pairs]
        with set_grad_enabled(self.create_graph):
            parts = [leaf[first:stop] for leaf in self.leaves]
            states = self.scan(self._before, tree_unflatten(self.carried, self.carry_spec), self._slices(parts), len(rows), is_reverse)[1]
            of_carried = [zeros_like(self.carried[number]) if gradient is None else gradient
                          for (is_carried, number), gradient in pairs if is_carried]
            of_results = [gradient for (is_carried, _), gradient in pairs if not is_carried]
            staying = [self.carried[number] for number in self.staying]
            last, before_last = (0, slice(1, None)) if is_reverse else (len(rows) - 1, slice(-1))

            def at(place: Any) -> list[list[Any]]:
                return [[each[place] for each in values] for values in (states, parts, of_results)]

            of_inputs = self._differentiated(of_carried, staying, *at(last))
            reached = {number for number, gradient in of_inputs.items() if gradient is not None}
            self.sliced, self.summed = ([number for number in numbers if number in reached] for numbers in (self.sliced, self.summed))
            sums = [of_inputs[number] for number in self.summed]
            (of_carried, sums, _), of_slices = self.scan(self._backward, (self._carried_on(of_inputs, of_carried), sums, staying),
                                                         at(before_last), len(rows) - 1, not is_reverse)
            results = dict(zip((*self.carried_on, *self.summed), (*of_carried, *sums), strict=True))
            for number, others in zip(self.sliced, of_slices, strict=True):
                leaf, each = self.leaves[number - len(self.carried)], of_inputs[number][None]
                results[number] = cat((leaf.new_zeros((first, *leaf.shape[1:])), *((each, others) if is_reverse else (others, each)),
                                       leaf.new_zeros((len(leaf) - stop, *leaf.shape[1:]))))
            return [results.get(number) for number in self.operands.differentiable]

    def _as_constants(self, tensors: Sequence[Any]) -> list[Any]:
        """Return tensors without their history, if that is not differentiated: views of them would require gradients, too."""
        return [tensor if tensor is None or self.create_graph else without_history(tensor) for tensor in tensors]

    def _slices(self, values: Sequence[Any]) -> Any:
        return None if self.xs_spec is None else tree_unflatten(list(values), self.xs_spec)

    def _before(self, carry: Any, x: Any) -> tuple[Any, Any]:
        """Take a step, and return the carried values before it."""
        values = tree_flatten(carry)[0]
        return self.step(carry, x)[0], [values[number] for number in self.moving]

    def dependencies(self, row: int) -> dict[tuple[bool, int], frozenset[int]]:
        """Return the numbers of the differentiable operands that each recorded result of a step depends on, with the slices of a row.

        A carried value that stays is itself here, since the step may name it, too.
        """
        self.recorded = self.operands.recorded
        with enable_grad():
            carried = tree_flatten(self.operands.carry)[0]
            outputs, chosen = self._taken([carried[number] for number in self.staying], [self.carried[number] for number in self.moving],
                                          [leaf[row] for leaf in self.leaves], self.staying)
            gradients = [self._gradients((output,), chosen, (zeros_like(output),), False) for output in outputs]
        return {result: frozenset(number for number, gradient in zip(self.operands.differentiable, of_result, strict=True)
                                  if gradient is not None)
                for result, of_result in zip(self.recorded, gradients, strict=True)}

    def _gradients(self, outputs: tuple[Any, ...], chosen: tuple[Any, ...], weights: tuple[Any, ...], create_graph: bool) -> list[Any]:
        with tangents_seen(self.unseen, False):
            return gradients_between(outputs, chosen, weights, create_graph)

    def _differentiated(self, of_carried: Sequence[Any], staying: Sequence[Any], state: Sequence[Any], x: Sequence[Any],
                        of_results: Sequence[Any]) -> dict[int, Any]:
        """Return the gradients of the inputs of one step by their numbers; None where no result depends on one."""
        with enable_grad():
            outputs, chosen = self._taken(staying, state, x)
            of_inputs = self._gradients(outputs, chosen, (*of_carried, *of_results), self.create_graph)
        return dict(zip(self.operands.differentiable, of_inputs, strict=True))

    def _taken(self, staying: Sequence[Any], state: Sequence[Any], x: Sequence[Any], themselves: Sequence[int] = ()
               ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Take a step, and return its recorded results and its differentiable inputs, which are new leaves; `themselves`: but for these."""
        count = len(self.carried)
        numbers = [*self.moving, *self.staying, *range(count, count + len(x))]
        renewed = set(numbers).intersection(self.operands.differentiable).difference(themselves)
        inputs = {number: fresh(value) if number in renewed else value
                  for number, value in zip(numbers, [*state, *staying, *x], strict=True)}
        inputs |= dict(enumerate(self.operands.constants, count + len(x)))
        carry, y = self.step(tree_unflatten([inputs[number] for number in range(count)], self.carry_spec),
                             self._slices([inputs[number] for number in range(count, count + len(x))]))
        for number in renewed:
            retire(inputs[number])
        results = ([] if y is None else tree_flatten(y)[0]), tree_flatten(carry)[0]
        return (tuple(results[is_carried][number] for is_carried, number in self.recorded),
                tuple(inputs[number] for number in self.operands.differentiable))

    def _carried_on(self, of_inputs: dict[int, Any], of_carried: Sequence[Any]) -> list[Any]:
        return [zeros_like(like) if of_inputs[number] is None else of_inputs[number]
                for number, like in zip(self.carried_on, of_carried, strict=True)]

    def _backward(self, carry: Any, values: Any) -> tuple[Any, Any]:
        """Take a step in reverse: the carry are gradients of carried values, sums of gradients of constants, and carried constants."""
        of_carried, sums, staying = carry
        of_inputs = self._differentiated(of_carried, staying, *values)
        sums = [total + of_inputs[number] for number, total in zip(self.summed, sums, strict=True)]
        return (self._carried_on(of_inputs, of_carried), sums, staying), [of_inputs[number] for number in self.sliced]
