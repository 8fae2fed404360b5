"""Automatic differentiation: `backward`, `grad`, and torch's names around them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from cygrad._core.engine import run_backward
from cygrad._core.node import is_grad_enabled as is_grad_enabled
from cygrad._core.tensor import TensorImpl


def _tuple_of(value: Any) -> tuple[Any, ...]:
    items = (value,) if isinstance(value, TensorImpl) else tuple(value.values() if isinstance(value, dict) else value)
    for item in items:
        if not isinstance(item, TensorImpl):
            raise RuntimeError(f"all inputs have to be Tensors, but got {type(item).__name__}")
    return items


def _gradients(outputs: tuple[Any, ...], gradients: Any, create_graph: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Check the weights of outputs and make up the implicit ones; outputs that need no gradient fall away with theirs."""
    if gradients is None:
        gradients = (None,) * len(outputs)
    elif isinstance(gradients, TensorImpl):
        gradients = (gradients,)
    gradients = tuple(gradients)
    if len(gradients) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    kept, weights = [], []
    for number, (output, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        if not output.requires_grad:
            raise RuntimeError(f"element {number} of tensors does not require grad and does not have a grad_fn")
        if gradient is None:
            if output.numel() != 1:
                raise RuntimeError(f"grad can be implicitly created only for scalar outputs; this one has shape {list(output.shape)}: "
                                   "give a gradient of that shape, or reduce it first, e.g. with .sum()")
            gradient = output.detach().new_ones(output.shape)
        elif not isinstance(gradient, TensorImpl):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
        elif gradient.shape != output.shape:
            raise RuntimeError(f"Mismatch in shape: grad_output[{number}] has a shape of {gradient.shape} and output[{number}] has a shape "
                               f"of {output.shape}.")
        if gradient.dtype != output.dtype:
            gradient = gradient.to(output.dtype)
        kept.append(output)
        weights.append(gradient if create_graph else gradient.detach() if gradient.requires_grad else gradient)
    return tuple(kept), tuple(weights)


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Add the gradients of `tensors`, weighted with `grad_tensors`, to the `.grad` of the leaves they were computed from.

    Scalars need no weight. `retain_graph` (default: the value of `create_graph`) keeps the graph for another run;
    `create_graph` makes the gradients differentiable. `inputs`: the only tensors whose `.grad` is changed.
    RuntimeError for tensors that need no gradient, for shapes that differ, and for a graph that was freed.

    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.autograd.backward((x * 3).sum())
    >>> x.grad
    tensor([3., 3.])
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                               "Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    chosen = None if inputs is None else _tuple_of(inputs)
    if chosen is not None and not chosen:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs, weights = _gradients(_tuple_of(tensors), grad_tensors, create_graph)
    run_backward(outputs, weights, create_graph if retain_graph is None else retain_graph, create_graph, chosen, True)


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> Any:
    """Return the gradients of `outputs`, weighted with `grad_outputs`, with respect to `inputs`; `.grad` stays as it is.

    `allow_unused`: None instead of an error for inputs the outputs do not depend on; `materialize_grads`: zeros for them.
    A dict of inputs gives a dict of gradients. With `is_grads_batched` the weights have one more leading dim, and so have the gradients.

    >>> import cygrad
    >>> x = cygrad.tensor(3., requires_grad=True)
    >>> cygrad.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of "
                      "the graph, please use backward.", FutureWarning, stacklevel=2)
    chosen: Sequence[Any] = _tuple_of(inputs)
    targets = _tuple_of(outputs)
    if not chosen:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if isinstance(inputs, dict):
        return dict(zip(inputs, grad(outputs, chosen, grad_outputs, retain_graph, create_graph, allow_unused=allow_unused,
                                     is_grads_batched=is_grads_batched, materialize_grads=materialize_grads), strict=True))
    if is_grads_batched:
        return _batched(targets, chosen, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    kept, weights = _gradients(targets, grad_outputs, create_graph)
    result = run_backward(kept, weights, create_graph if retain_graph is None else retain_graph, create_graph, tuple(chosen), False)
    for number, gradient in enumerate(result):
        if gradient is None and materialize_grads:
            result[number] = chosen[number].detach().new_zeros(chosen[number].shape)
        elif gradient is None and not allow_unused:
            raise RuntimeError(f"The differentiated Tensor at index {number} appears to not have been used in the graph. "
                               "Set allow_unused=True if this is the desired behavior.")
    return tuple(result)


def _batched(outputs: tuple[Any, ...], inputs: Sequence[Any], weights: Any, retain_graph: bool | None, create_graph: bool,
             allow_unused: bool | None, materialize_grads: bool) -> tuple[Any, ...]:
    """Run `grad` once for each row of the weights and stack the gradients."""
    from cygrad.operators import functions
    rows = (weights,) if isinstance(weights, TensorImpl) else tuple(weights)
    count = next(len(row) for row in rows if row is not None)
    keep_last = create_graph if retain_graph is None else retain_graph
    runs = [grad(outputs, inputs, [None if row is None else row[number] for row in rows], keep_last or number < count - 1, create_graph,
                 allow_unused=allow_unused, materialize_grads=materialize_grads) for number in range(count)]
    return tuple(None if parts[0] is None else functions["stack"](parts) for parts in zip(*runs, strict=True))


# Below, since they build on the two above. `gradcheck` is a function and the module it lives in: bound last, the function wins.
from cygrad.autograd import graph as graph  # noqa: E402
from cygrad.autograd.function import Function as Function  # noqa: E402
from cygrad.autograd.grad_mode import enable_grad as enable_grad  # noqa: E402
from cygrad.autograd.grad_mode import inference_mode as inference_mode  # noqa: E402
from cygrad.autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled  # noqa: E402
from cygrad.autograd.grad_mode import no_grad as no_grad  # noqa: E402
from cygrad.autograd.grad_mode import set_grad_enabled as set_grad_enabled  # noqa: E402
from cygrad.autograd.gradcheck import gradcheck as gradcheck  # noqa: E402
from cygrad.autograd.gradcheck import gradgradcheck as gradgradcheck  # noqa: E402
