"""Tangents of operators, by the words that declarations use.

Each function takes (tangent_of, operator, result, *arguments), and returns the tangent of the result, None where it has none; it is called
while the level is out of sight. It calls operators, so that levels nest.
"""

from __future__ import annotations

from cygrad._core.entry.special import over_tensors

from .batches import is_tensor, named_arguments


def linear(tangent_of, operator, result, *arguments, **keywords):
    """Apply the operator to the tangents of all floating-point arguments; one that has none has tangent 0."""
    results = []

    def tangent(x):
        t = tangent_of(x) if x.dtype.is_differentiable else x
        results.append(t is not None and t is not x)
        return x.new_zeros(()).expand(x.shape) if t is None else t

    arguments = over_tensors(tangent, arguments)
    keywords = {name: over_tensors(tangent, value) for name, value in keywords.items()}
    return operator(*arguments, **keywords) if any(results) else None


def joining(tangent_of, operator, result, *arguments, **keywords):
    """Apply an operator that converts all tensors to one dtype: those that are not floating-point have tangent 0."""
    def floating(x):
        return x if x.dtype.is_differentiable else x.new_zeros((), dtype=result.dtype).expand(x.shape)

    return linear(tangent_of, operator, result, *over_tensors(floating, arguments), **keywords)


def filling(tangent_of, operator, result, *arguments, **keywords):
    """As `linear`; the `value` that is written has tangent 0 where it is a number, or an integer."""
    bound = named_arguments(operator, arguments, keywords)
    value = bound.arguments["value"]
    if not is_tensor(value) or not value.dtype.is_differentiable:
        bound.arguments["value"] = 0
    return linear(tangent_of, operator, result, *bound.args, **bound.kwargs)


def bilinear(tangent_of, operator, result, a, b, *arguments, **keywords):
    """Product rule."""
    ta, tb = tangent_of(a), tangent_of(b)
    parts = [operator(ta, b, *arguments, **keywords)] if ta is not None else []
    parts += [operator(a, tb, *arguments, **keywords)] if tb is not None else []
    return sum(parts[1:], parts[0]) if parts else None


def constant(tangent_of, operator, result, *arguments, **keywords):
    """Return no tangent."""


def first_linear(tangent_of, operator, result, x, *arguments, **keywords):
    """Apply an operator that is linear in its first argument and takes the others as they are."""
    t = tangent_of(x)
    return None if t is None else operator(t, *arguments, **keywords)


def selecting(tangent_of, operator, result, x, *arguments, **keywords):
    """Take the tangents from the places, which are the second result."""
    t, (values, indices) = tangent_of(x), result
    if t is None or not x.ndim:
        return t, None
    dim = named_arguments(operator, (x, *arguments), keywords).arguments["dim"] % x.ndim
    full_indices = indices if indices.ndim == x.ndim else indices.unsqueeze(dim)
    return t.gather(dim, full_indices).reshape(values.shape), None


def self_adjoint(tangent_of, operator, result, x, *arguments, **keywords):
    """Apply the gradient to the tangent, for an operator whose Jacobian is symmetric; it reads the result and parameters."""
    t = tangent_of(x)
    if t is None:
        return None
    gradient, = operator.declaration.rule.functions
    known = {**named_arguments(operator, (x, *arguments), keywords).arguments, "g": t._convert(result.dtype), "y": result}
    return gradient(*(known[name] for name in gradient.__code__.co_varnames[:gradient.__code__.co_argcount]))
