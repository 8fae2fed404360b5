"""Derivatives of functions by forward mode: `jvp`, `jacfwd`, `linearize`; and `hessian`, forward mode over reverse mode."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cygrad._core.engine.derivatives import reaches_other_leaves, retire
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.level import enter_level, exit_level
from cygrad._core.levels.tangents import tangent_of, without_tangent
from cygrad.autograd import grad as _gradients
from cygrad.autograd.arguments import given_tensors
from cygrad.autograd.batches import basis, in_chunks
from cygrad.autograd.forward_ad import dual
from cygrad.autograd.grad_mode import enable_grad, inference_mode_suspended
from cygrad.func.reverse import (
    Recorded,
    as_argnums,
    check_chunk_size,
    check_inputs,
    check_outputs,
    check_real,
    chosen_arguments,
    jacrev,
    split_aux,
)
from cygrad.pytree import tree_flatten, tree_unflatten


class _Values:
    """The results of a function in forward mode: the values, their tangents, their structure."""

    def __init__(self, name: str, function: Callable[..., Any], leaves: list[Any], tangents: list[Any],
                 call: Callable[[list[Any]], Any], has_aux: bool) -> None:
        level = enter_level()
        try:
            with inference_mode_suspended():
                duals = [dual(leaf, tangent, level) for leaf, tangent in zip(leaves, tangents, strict=True)]
                output, aux = split_aux(name, function, call(duals), has_aux)
            outputs, self.spec = tree_flatten(output)
            check_outputs("jvp(f, primals, tangents)" if name == "jvp" else "jacfwd(f)(*args)", outputs)
            results = [tangent_of(item, level) for item in outputs]
            self.independent = any(tangent is None for tangent in results)
            self.values = [without_tangent(item, level) for item in outputs]
            self.tangents = [value.detach().new_zeros(value.shape) if tangent is None else tangent
                             for value, tangent in zip(self.values, results, strict=True)]
            others, spec = tree_flatten(aux)
            self.aux = tree_unflatten([without_tangent(item, level) if hasattr(item, "requires_grad") else item for item in others], spec)
        finally:
            exit_level(level)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return the value of a function and the product of its Jacobian with a vector.

    Args:
        func: a function of tensors, or trees of them.
        primals: its arguments, a tuple.
        tangents: the vector: a tuple of the same structure and shapes.
        strict: RuntimeError where a result does not depend on an argument, instead of zeros.
        has_aux: `func` returns (result, aux), and aux comes third.

    Example:
        >>> import cygrad
        >>> from cygrad.func import jvp
        >>> jvp(cygrad.sin, (cygrad.tensor(0.),), (cygrad.tensor(2.),))
        (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    leaves, spec = given_tensors(primals)
    directions, other = given_tensors(tangents, leaves)
    if spec != other:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if "
                           "primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
                           f"{spec} and tangents with structure {other}")
    if not leaves:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to contain at least one Tensor.")
    for role, items in (("primals", leaves), ("tangents", directions)):
        for item in items:
            if not isinstance(item, TensorImpl):
                raise RuntimeError(f"jvp(f, primals, tangents): Expected {role} to only contain Tensors, got {type(item)}")
    results = _Values("jvp", func, leaves, directions, lambda duals: func(*tree_unflatten(duals, spec)), has_aux)
    if strict and results.independent:
        raise RuntimeError("jvp(f, primals, tangents): The output of f is independent of the inputs. This is not allowed with strict=True.")
    result = tree_unflatten(results.values, results.spec), tree_unflatten(results.tangents, results.spec)
    return (*result, results.aux) if has_aux else result


def jacfwd(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error",
           chunk_size: int | None = None) -> Callable[..., Any]:
    """Return a function that gives the Jacobian by forward mode, for all elements of the arguments at once.

    As `jacrev`; cheaper where the results have more elements than the arguments.

    >>> import cygrad
    >>> from cygrad.func import jacfwd
    >>> jacfwd(lambda x: x * x)(cygrad.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_chunk_size("jacfwd", chunk_size)

    @functools.wraps(func)
    def differentiated(*arguments: Any, **keywords: Any) -> Any:
        places = chosen_arguments(func, argnums, arguments)
        leaves, spec = given_tensors([arguments[place] for place in places])
        check_inputs(leaves)
        check_real("jacfwd", "inputs", leaves)
        calls: list[_Values] = []

        def call(duals: list[Any]) -> Any:
            inputs = list(arguments)
            for place, value in zip(places, tree_unflatten(duals, spec), strict=True):
                inputs[place] = value
            return func(*inputs, **keywords)

        def columns(directions: list[Any]) -> list[Any]:
            calls.append(_Values("jacfwd", func, leaves, directions, call, has_aux))
            return calls[-1].tangents

        result_values = in_chunks(columns, basis(leaves), chunk_size, randomness)
        sizes, last = [leaf.numel() for leaf in leaves], calls[-1]
        check_real("jacfwd", "outputs", last.values)
        results = []
        for column, value in zip(result_values, last.values, strict=True):
            parts = []
            for number, leaf in enumerate(leaves):
                part = column.narrow(0, sum(sizes[:number]), sizes[number])
                parts.append(part.movedim(0, -1).reshape((*value.shape, *leaf.shape)))
            results.append(as_argnums(argnums, tree_unflatten(parts, spec)))
        result = tree_unflatten(results, last.spec)
        return (result, last.aux) if has_aux else result

    return differentiated


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return a function that gives the Hessian: the Jacobian by forward mode of the Jacobian by reverse mode.

    >>> import cygrad
    >>> from cygrad.func import hessian
    >>> hessian(lambda x: (x ** 3).sum())(cygrad.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the value of a function and its linear approximation: a function that multiplies the Jacobian with vectors.

    The second takes a tensor for each of `primals` and returns the product in the structure of the results. Unlike `jvp` it does not
    call `func` again, so it is the cheaper one for many vectors; and results that `func` computes in `no_grad()` are constant, as for
    `vjp`.

    >>> import cygrad
    >>> from cygrad.func import linearize
    >>> value, multiply = linearize(cygrad.sin, cygrad.tensor([0., 1.]))
    >>> multiply(cygrad.ones(2))
    tensor([1.0000, 0.5403])
    """
    call = Recorded("linearize", func, tuple(range(len(primals))), primals, {}, False)
    call.check_outputs("linearize(f, *primals)")
    weights = [output.detach().new_zeros(output.shape).requires_grad_() for output in call.outputs]
    for weight in weights:
        retire(weight)
    with inference_mode_suspended(), enable_grad():
        pairs = [(output, weight) for output, weight in zip(call.outputs, weights, strict=True) if output.requires_grad]
        products: tuple[Any, ...] = (None,) * len(call.leaves)
        if pairs:
            outputs, grad_outputs = zip(*pairs, strict=True)
            products = _gradients(outputs, call.leaves, grad_outputs, create_graph=True, allow_unused=True)

    def multiply(*tangents: Any) -> Any:
        directions, spec = given_tensors(list(tangents), call.leaves)
        if spec != call.inputs_spec:
            raise RuntimeError(f"Expected the tangents {spec} to have the same argspec as the primals {call.inputs_spec}")
        for number, (direction, leaf) in enumerate(zip(directions, call.leaves, strict=True)):
            for field in ("shape", "dtype"):
                actual, expected = getattr(direction, field), getattr(leaf, field)
                if actual != expected:
                    raise RuntimeError(f"tangent:{number} with {field} {actual} in flattened pytree doesn't match the {field} {expected} "
                                       "of the corresponding primal.")
        with_history = [(product, direction) for product, direction in zip(products, directions, strict=True)
                        if product is not None and product.requires_grad]
        results: tuple[Any, ...] = (None,) * len(weights)
        if with_history:
            outputs, grad_outputs = zip(*with_history, strict=True)
            graph = is_grad_enabled() and reaches_other_leaves((*outputs, *grad_outputs), (*call.leaves, *weights))
            results = _gradients(outputs, weights, grad_outputs, retain_graph=True, create_graph=graph, allow_unused=True)
        return tree_unflatten([weight.detach().new_zeros(weight.shape) if result is None else result
                               for weight, result in zip(weights, results, strict=True)], call.outputs_spec)

    return call.outside(call.output), multiply
