"""The histories of the results of a capture, where a backward of a replay starts, and the gradients of leaves."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.compiled_node import are_released, graph_between, recorded_results
from cygrad._core.capture.guards import Guard, GuardSource
from cygrad._core.capture.kinds import has_leaf_hooks, shared_memory
from cygrad._core.capture.signature import tensors_behind
from cygrad._core.levels.level import active_levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cygrad._core.graph.notes import Notes


class History(NamedTuple):
    """The history of results, up to the inputs."""

    recorded: list[Any]             # the results that require gradients, from which a backward starts
    released: tuple[int, ...]       # numbers of the results whose history a backward of the function has freed
    nodes: list[Any]                # between the recorded results and the inputs
    edges: list[Any]                # of these, to nodes of inputs and of results, and to leaves

    @property
    def frees_values(self) -> bool:
        """Whether a backward that does not keep the graph frees values."""
        return any(node._frees_values() for node in self.nodes)

    def nested(self) -> tuple[int, ...]:
        """Return the numbers of the recorded results that other recorded ones are computed from."""
        edges = {*self.edges}
        return tuple(k for k, result in enumerate(self.recorded) if (result.grad_fn, result.output_nr) in edges)

    def read_often(self, sources: Sequence[Any], differentiable: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return the differentiable inputs whose gradients have several parts, or elements that are added one by one: their places among
        these, and their numbers.
        """
        counts = Counter(self.edges)
        return tuple((k, number) for k, number in enumerate(differentiable) if counts[sources[number]._gradient_edge()] > 1)


def history_of(results: list[Any], inputs: list[Any], sources: Sequence[Any]) -> History:
    """Return the history of the results of a function; Uncapturable where a replay could not have the same one.

    sources: of the inputs, the tensors that their gradients go to.
    """
    with_history = recorded_results(results, inputs)
    if any(result.is_leaf for result in with_history) or any(results[k].requires_grad or results[earlier].requires_grad
                                                            for k, earlier, *_ in shared_memory(results)):
        raise Uncapturable("it returns a new leaf that requires a gradient, or several views of one tensor that does: return copies, "
                           "by .clone()")
    nodes, edges = graph_between(with_history, sources)
    if not are_released(nodes):
        return History(with_history, (), nodes, edges)
    freed = {id(result) for result in with_history if are_released(graph_between([result], sources)[0])}
    recorded = [result for result in with_history if id(result) not in freed]
    return History(recorded, tuple(number for number, result in enumerate(results) if id(result) in freed),
                   *graph_between(recorded, sources))


def differentiable_inputs(inputs: Sequence[Any], sources: Sequence[Any]) -> tuple[int, ...]:
    """Return the numbers of the inputs that require gradients; of those with one source the first."""
    first_of = {id(source): number for number, source in reversed([*enumerate(sources)])}
    return tuple(number for number, tensor in enumerate(inputs) if tensor.requires_grad and first_of[id(sources[number])] == number)


class LeafGradients(NamedTuple):
    """The gradients of inputs, their `.grad`, that a function uses."""

    guards: list[Any]
    before: list[tuple[int, int | None]]        # (number of an input, number of the input that is its gradient at the call)
    results: list[tuple[int, int | None]]       # (number of an input, number of the result that it is set to)


def leaf_gradients(notes: Notes, inputs: list[Any], sources: list[Any], results: list[Any]) -> LeafGradients:
    """Return the gradients that a function uses, appended to its inputs and their sources, and those that it sets, to its results."""
    guards: list[Any] = []
    at_call: list[tuple[int, int | None]] = []
    set_by_function: list[tuple[int, int | None]] = []
    numbers = {id(tensor): number for number, tensor in reversed([*enumerate(inputs)])}
    for tensor, before in notes.changed_gradients():
        number = numbers.get(id(tensor))
        if number is None:
            if notes.is_new_leaf(tensor):       # which is not seen outside
                continue
            raise Uncapturable("it uses the .grad of a tensor that is neither an argument nor found by a name")
        guards.append(Guard(GuardSource.GRADIENT, number, "grad", before))
        at_call.append((number, None if before is None else len(inputs)))
        if before is not None:
            if tensors_behind(before, active_levels())[0] is not before:
                raise Uncapturable("it uses the .grad of a tensor inside of vmap, or with a tangent: give it as an argument")
            inputs.append(before)
            sources.append(before)
        gradient = tensor.grad
        if gradient is not before:
            place = None if gradient is None else next((k for k, result in enumerate(results) if result is gradient), len(results))
            set_by_function.append((number, place))
            if place == len(results):
                results.append(gradient)
            if gradient is not None and (gradient.shape != tensor.shape or gradient.dtype is not tensor.dtype):
                raise Uncapturable("it gives a gradient another shape or dtype than its tensor has, in place")
    if guards and any(map(has_leaf_hooks, inputs)):
        raise Uncapturable("it adds to the gradient of a leaf with hooks: call the hooks in the function, or run the backward outside")
    return LeafGradients(guards, at_call, set_by_function)
