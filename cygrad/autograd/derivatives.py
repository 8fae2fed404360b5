"""`backward` and `grad`: arguments are checked, then the engine runs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from cygrad._core.engine.backward import nests_deep, run_address, run_backward, run_plain
from cygrad._core.engine.weights import plain_weights
from cygrad._core.graph.node import Node
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import batched_level, special_tensors
from cygrad._core.levels.level import enter_level, exit_level
from cygrad._core.levels.sparse import sparse_part
from cygrad.data.creation import ones
from cygrad.tensor import set_backward


class GradientEdge(NamedTuple):
    """Where a gradient goes in the graph: a node and the number of its output; `backward` and `grad` take it for a tensor."""

    node: Node
    output_nr: int
    ownership_token: Node | None = None


# ----- Arguments -----
_ENDS = (TensorImpl, GradientEdge)      # a tuple, as a union of types is made again by each call


def _items(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, _ENDS) else tuple(value)


def _inputs(value: Any, function: str) -> tuple[Any, ...]:
    """Return the tensors or edges whose gradients are requested."""
    if isinstance(value, Mapping) and type(value) is not dict:
        raise TypeError(f"`inputs` argument to `{function}()` must be a dict, not {type(value).__name__}. Other Mapping types are not "
                        "supported.")
    items = _items(value.values() if isinstance(value, dict) else value)
    if not items:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    for item in items:
        if not isinstance(item, _ENDS):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(item).__name__}")
    return items


def _described(output: Any) -> tuple[Any, Any]:
    """Return shape and dtype of an output; None where an edge has none."""
    if isinstance(output, TensorImpl):
        return output.shape, output.dtype
    if not isinstance(output, GradientEdge):
        raise AssertionError(f"Expected output to be a Tensor or GradientEdge, got {type(output).__name__}")
    known = getattr(output.node, "_input_metadata", ())
    return (known[output.output_nr] if output.output_nr < len(known) else None) or (None, None)


def _weights(outputs: tuple[Any, ...], gradients: Any, batched: bool = False) -> tuple[Any, ...]:
    """Check the weights of the outputs and make weights of scalars that have none."""
    gradients = (None,) * len(outputs) if gradients is None else _items(gradients)
    plain = None if batched else plain_weights(outputs, gradients)
    if plain is not None:
        return plain
    weights: list[Any] = []
    for number, (output, gradient) in enumerate(zip(outputs, gradients, strict=False)):
        shape, dtype = _described(output)
        if gradient is None:
            if isinstance(output, TensorImpl) and not output.requires_grad:
                weights.append(None)    # which the engine refuses
                continue
            if shape is None or shape.numel() != 1:
                words = "of an unknown shape" if shape is None else f"of shape {list(shape)}"
                raise RuntimeError(f"grad can be implicitly created only for scalar outputs; this one is {words}: give a gradient of "
                                   "that shape, or reduce it first, e.g. with .sum()")
            gradient = unit_weight(shape, dtype)
        elif not isinstance(gradient, TensorImpl):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
        else:
            _check_shape(number, gradient[0] if batched else gradient, shape, batched)
            if dtype is not None and gradient.dtype != dtype:
                check_both_complex(number, gradient, dtype)
                gradient = gradient.to(dtype)
        weights.append(gradient)
    if len(gradients) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    return tuple(weights)


def check_both_complex(number: int, gradient: Any, dtype: Any) -> None:
    """Refuse a real weight of a complex output, and a complex one of a real output."""
    if gradient.dtype.is_complex != dtype.is_complex:
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                           f"grad_output[{number}] has a dtype of {gradient.dtype} and output[{number}] has a dtype of {dtype}.")


def unit_weight(shape: Any, dtype: Any) -> Any:
    """Return the weight that the gradient of a scalar begins with. A complex number has no gradient: it takes a weight of its parts."""
    if dtype.is_complex:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype}: give a gradient, or "
                           "differentiate a real number, e.g. abs() of it")
    return ones(shape, dtype=dtype)


def _check_shape(number: int, gradient: Any, shape: Any, batched: bool) -> None:
    if shape is None or gradient.shape == shape:
        return
    mismatch = f"grad_output[{number}] has a shape of {gradient.shape} and output[{number}] has a shape of {shape}."
    if batched:
        raise RuntimeError("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
                           "sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was "
                           f"detected: {mismatch} If you only want some tensors in `grad_output` to be considered batched, loop over them.")
    raise RuntimeError(f"Mismatch in shape: {mismatch}")


# ----- The two functions -----
def _run(outputs: Any, weights: Any, keep_graph: bool, create_graph: bool, chosen: Any, accumulates: bool,
         between: bool = False) -> list[Any]:
    """Run the engine; where tensors are sparse, on their values."""
    if not special_tensors():
        return _run_engine(outputs, weights, keep_graph, create_graph, chosen, accumulates, between)
    weights = tuple(map(_weight_behind, weights, outputs))
    fronts = None if chosen is None else tuple(map(sparse_part, chosen))
    chosen = None if chosen is None else tuple(map(_behind, chosen))
    result = _run_engine(tuple(map(_behind, outputs)), weights, keep_graph, create_graph, chosen, accumulates, between)
    return [gradient if front is None or gradient is None else front.around(gradient)
            for gradient, front in zip(result, fronts or (None,) * len(result), strict=True)]


def _behind(item: Any) -> Any:
    """Return the values of a sparse tensor, which have its history; any other item as it is."""
    part = sparse_part(item)
    return item if part is None else part.inner


def _weight_behind(weight: Any, output: Any) -> Any:
    """Return the weight of an output as the weight of its values, if it is sparse; else as a dense tensor."""
    part = sparse_part(output)
    if part is None or weight is None:
        return weight if sparse_part(weight) is None else weight.to_dense()
    return part.pattern.values_at(weight)


def _run_engine(outputs: Any, weights: Any, keep_graph: bool, create_graph: bool, chosen: Any, accumulates: bool,
                between: bool) -> list[Any]:
    """Run here, or where this is nested so deep that the stack could end, in a thread of its own."""
    arguments = outputs, weights, keep_graph, create_graph, chosen, accumulates, between
    if not nests_deep() or sys.is_finalizing():      # no thread starts any more then
        return run_backward(*arguments)
    from cygrad.autograd.reentry import in_new_thread
    return in_new_thread(run_backward, *arguments, run_address())


def gradients_between(outputs: tuple[Any, ...], inputs: tuple[Any, ...], weights: tuple[Any, ...], create_graph: bool) -> list[Any]:
    """Return the gradients of outputs with respect to inputs as if none of these were computed from another; the graph is kept."""
    return differentiated(outputs, weights, True, create_graph, inputs, True)


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Add the gradients of `tensors`, weighted with `grad_tensors`, to the `.grad` of the leaves they were computed from.

    Scalars need no weight. `retain_graph` (default: the value of `create_graph`) keeps the graph for another run;
    `create_graph` makes the gradients differentiable. `inputs`: the only tensors whose `.grad` is changed, also as a dict.
    A GradientEdge may take the place of any tensor. RuntimeError for tensors that need no gradient, for shapes that differ, and for
    a graph that was freed.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.autograd.backward((x * 3).sum())
    >>> x.grad
    tensor([3., 3.])
    """
    general = create_graph or inputs is not None or grad_variables is not None
    if not general and run_plain(tensors, grad_tensors, None, retain_graph or False) is not None:
        return
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                               "Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    chosen = None if inputs is None else _inputs(inputs, "backward")
    outputs = _items(tensors)
    if special_tensors() and any(batched_level(output) is not None for output in outputs):
        raise RuntimeError("backward() called inside a functorch transform. This is not supported: inside of vmap use cygrad.func.grad, or "
                           "autograd.grad, which return gradients instead of adding to `.grad`")
    weights = _weights(outputs, grad_tensors)
    for item in chosen or ():
        if isinstance(item, TensorImpl):
            item.retain_grad()
    if create_graph:
        warnings.warn("Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which "
                      "can cause a memory leak: until the garbage collector runs, here. We recommend using autograd.grad when creating "
                      "the graph to avoid this, or resetting the .grad fields of your parameters to None after use.",
                      UserWarning, stacklevel=2)
    _run(outputs, weights, create_graph if retain_graph is None else retain_graph, create_graph, chosen, True)


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> Any:
    """Return the gradients of `outputs`, weighted with `grad_outputs`, with respect to `inputs`; `.grad` stays as it is.

    `allow_unused`: None instead of an error for inputs the outputs do not depend on; `materialize_grads`: zeros for them.
    A dict of inputs gives a dict of gradients; a GradientEdge may take the place of any tensor. With `is_grads_batched` the weights
    have one more leading dim, and so have the gradients.

    >>> import cygrad
    >>> x = cygrad.tensor(3., requires_grad=True)
    >>> cygrad.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    general = create_graph or is_grads_batched or materialize_grads or not only_inputs or isinstance(inputs, dict)
    result = None if general else run_plain(outputs, grad_outputs, inputs, retain_graph or False)
    if result is None:
        targets = _items(outputs)
        chosen = _inputs(inputs, "grad")
        if not only_inputs:
            warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other "
                          "parts of the graph, please use backward.", FutureWarning, stacklevel=2)
        weights = _weights(targets, grad_outputs, is_grads_batched)
        differentiate = differentiated_in_batches if is_grads_batched else differentiated
        result = differentiate(targets, weights, create_graph if retain_graph is None else retain_graph, create_graph, chosen)
    for number, gradient in enumerate(result):
        if gradient is not None:
            continue
        if materialize_grads:
            if not isinstance(chosen[number], TensorImpl):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            result[number] = chosen[number].detach().new_zeros(chosen[number].shape, requires_grad=create_graph)
        elif not allow_unused:
            raise RuntimeError(f"The differentiated Tensor at index {number} appears to not have been used in the graph. "
                               "Set allow_unused=True if this is the desired behavior.")
    return dict(zip(inputs, result, strict=True)) if isinstance(inputs, dict) else tuple(result)


def differentiated_in_batches(outputs: tuple[Any, ...], weights: tuple[Any, ...], keep_graph: bool, create_graph: bool,
             chosen: tuple[Any, ...]) -> list[Any]:
    """Run once, with weights that each stand for one row of many."""
    if any(weight is None or weight.dim() == 0 for weight in weights):
        raise ValueError("vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of dimensionality 0 "
                         "so expected in_dim to satisfy 0 <= in_dim < 0: each output needs a batch of weights.")
    sizes = [len(weight) for weight in weights]
    if len(set(sizes)) > 1:
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
                         "dimension")
    if not sizes or not sizes[0]:
        return [None] * len(chosen)
    level = enter_level(sizes[0], "none")
    try:
        result = differentiated(outputs, tuple(map(level.leave, weights)), keep_graph, create_graph, chosen)
        return [None if gradient is None else level.enter(gradient) for gradient in result]
    finally:
        exit_level(level)


def differentiated(outputs: tuple[Any, ...], weights: tuple[Any, ...], keep_graph: bool, create_graph: bool,
                    chosen: tuple[Any, ...], between: bool = False) -> list[Any]:
    """Run; for outputs that stand for one example of many, once over all examples: these have the history."""
    if not special_tensors():
        return _run(outputs, weights, keep_graph, create_graph, chosen, False, between)
    levels = [level for level in map(batched_level, (*outputs, *chosen)) if level is not None]
    if not levels:
        return _run(outputs, weights, keep_graph, create_graph, chosen, False, between)
    level = max(levels, key=lambda level: level.number)
    are_held = [level.holds(item) for item in chosen]
    result = differentiated(tuple(map(level.enter, outputs)), tuple(map(level.enter, weights)), keep_graph, create_graph,
                             tuple(level.enter(item) if is_held else item for item, is_held in zip(chosen, are_held, strict=True)),
                             between)
    return [level.leave(gradient) if is_held and gradient is not None else gradient
            for gradient, is_held in zip(result, are_held, strict=True)]


set_backward(backward)
