"""Tangents of operators that are not linear and have no rule of their own: from the gradient's rule; and of writes into a tensor.

They are called while the level is out of sight, for operators whose declaration names them.
"""

from __future__ import annotations

from typing import Any

from cygrad._core.engine.derivatives import fresh
from cygrad._core.entry.special import over_tensors, tensors_of
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.tangents import tangent_of, tangent_to_write
from cygrad._core.memory.upward import fill
from cygrad.autograd.derivatives import grad
from cygrad.autograd.grad_mode import enable_grad, inference_mode_suspended


def transposed(level: Any, operator: Any, result: Any, *arguments: Any, **keywords: Any) -> Any:
    """Return the product of the Jacobian with the tangents: the gradient, with respect to g, of (g^T J) tangent, which is linear in g.

    Source: J. Townsend, "A new trick for calculating Jacobian vector products", 2017.
    """
    inputs: list[Any] = []
    tangents: list[Any] = []

    def alias(x: Any) -> Any:
        tangent = tangent_of(x, level) if x.dtype.is_differentiable else None
        if tangent is None:
            return x
        inputs.append(fresh(x))
        tangents.append(tangent)
        return inputs[-1]

    recording, tensors = is_grad_enabled(), tensors_of((*arguments, *keywords.values()))
    with inference_mode_suspended(), enable_grad():
        again = operator(*over_tensors(alias, arguments), **keywords)
        results = [item for item in tensors_of((again,)) if item.requires_grad]
        if not inputs or not results:
            return None
        # Any would do; complex eigenvectors refuse those that depend on their phase, which they themselves do not.
        weights = [(item.detach().clone() if item.is_complex() else item.new_ones(item.shape)).requires_grad_() for item in results]
        products = grad(results, inputs, weights, create_graph=True, allow_unused=True)
        with_history = [(product, tangent) for product, tangent in zip(products, tangents, strict=True)
                        if product is not None and product.requires_grad]
        if not with_history:
            return None
        outputs, directions = zip(*with_history, strict=True)
        recorded = recording and any(tensor.requires_grad for tensor in (*tensors, *directions))
        of_results = iter(grad(outputs, weights, directions, create_graph=recorded, allow_unused=True))
        return over_tensors(lambda item: next(of_results) if item.requires_grad else None, again)


def written(level: Any, operator: Any, result: Any, x: Any, key: Any, value: Any) -> None:
    """Write the tangent of a value where `x[key] = value` has written that."""
    source = tangent_of(value, level) if isinstance(value, TensorImpl) else None
    target = tangent_to_write(x, level, source)
    if target is not None:
        target[key] = 0 if source is None else source


fill(forward_rules={"transposed": transposed, "written": written})
