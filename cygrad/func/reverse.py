"""Derivatives of functions by reverse mode: `grad`, `vjp`, `jacrev`.

Each call differentiates with respect to new leaves of its own, so calls nest without confusion. Its results keep a history only
where something else does that requires a gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from cygrad._core.engine.derivatives import fresh, reaches_other_leaves, retire, without_history
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.graph.tensor import TensorImpl
from cygrad.autograd import grad as _gradients
from cygrad.autograd.arguments import given_tensors
from cygrad.autograd.batches import basis, in_chunks
from cygrad.autograd.derivatives import unit_weight
from cygrad.autograd.grad_mode import enable_grad, inference_mode_suspended
from cygrad.func.vmapping import name_of
from cygrad.pytree import tree_flatten, tree_unflatten


# ----- Arguments -----
def chosen_arguments(function: Any, argnums: Any, arguments: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the positions of the arguments to differentiate with respect to, as numbers from 0 on."""
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty: name at least one position of an argument")
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -len(arguments) <= number < len(arguments):
            raise RuntimeError(f"Got argnum={number}, but only {len(arguments)} positional inputs")
    places = tuple(number % len(arguments) for number in numbers)
    if len(set(places)) < len(places):
        raise RuntimeError(f"argnums elements must be unique, got {places}")
    return places


def check_inputs(leaves: list[Any]) -> None:
    """Refuse arguments without derivatives."""
    for leaf in leaves:
        if not isinstance(leaf, TensorImpl):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}: leave it out of argnums, or have f "
                             "take it from elsewhere")
        if not leaf.dtype.is_differentiable:
            raise RuntimeError(f"only Tensors of floating point dtype can require gradients, got {leaf.dtype}: convert it, e.g. with "
                               ".float(), and write numbers with a point, 1.0")


def check_outputs(call: str, outputs: list[Any]) -> None:
    """Refuse results of a function that are no tensors."""
    if not outputs:
        raise RuntimeError(f"{call}: Expected f to be a function that has non-empty output (got output = [])")
    for output in outputs:
        if not isinstance(output, TensorImpl):
            raise RuntimeError(f"{call}: expected f(*primals) to return only tensors, got unsupported type {type(output)}")


def split_aux(name: str, function: Any, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Return the output and the auxiliary data of a function."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{name}({name_of(function)})(*args): output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


class Recorded:
    """A call of a function, recorded with respect to new leaves in the place of some arguments."""

    def __init__(self, name: str, function: Callable[..., Any], places: tuple[int, ...], arguments: tuple[Any, ...],
                 keywords: dict[str, Any], has_aux: bool) -> None:
        self.differentiable = is_grad_enabled()     # outside: whether the derivative may be differentiated in turn
        flat, self.inputs_spec = given_tensors([arguments[place] for place in places])
        check_inputs(flat)
        with inference_mode_suspended(), enable_grad():
            self.leaves = tuple(map(fresh, flat))
            inputs = list(arguments)
            for place, value in zip(places, tree_unflatten(list(self.leaves), self.inputs_spec), strict=True):
                inputs[place] = value
            self.output, self.aux = split_aux(name, function, function(*inputs, **keywords), has_aux)
        for leaf in self.leaves:
            retire(leaf)
        self.outputs, self.outputs_spec = tree_flatten(self.output)

    def check_outputs(self, call: str) -> None:
        """Refuse results that have no derivative."""
        check_outputs(call, self.outputs)
        for output in self.outputs:
            if not output.dtype.is_differentiable:
                raise RuntimeError(f"{call}: All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                                   f"{output.dtype}: return it as aux, with has_aux=True")

    def depends_on_others(self, *tensors: Any) -> bool:
        return self.differentiable and reaches_other_leaves(tensors, self.leaves)

    def outside(self, tree: Any) -> Any:
        """Return results as those outside see them: with the history that does not end at the new leaves only."""
        leaves, spec = tree_flatten(tree)
        return tree_unflatten([leaf if not isinstance(leaf, TensorImpl) or self.depends_on_others(leaf) else without_history(leaf)
                               for leaf in leaves], spec)

    def gradients(self, weights: list[Any], keep: bool) -> list[Any]:
        """Return the gradients of the leaves, zeros where nothing depends on them."""
        pairs = [(output, weight) for output, weight in zip(self.outputs, weights, strict=True) if output.requires_grad]
        result: tuple[Any, ...] = (None,) * len(self.leaves)
        if pairs:
            outputs, grad_outputs = zip(*pairs, strict=True)
            graph = self.differentiable and (reaches_other_leaves((*outputs, *grad_outputs), self.leaves))
            with inference_mode_suspended():
                result = _gradients(outputs, self.leaves, grad_outputs, retain_graph=keep or graph, create_graph=graph, allow_unused=True)
        return [leaf.detach().new_zeros(leaf.shape) if gradient is None else gradient
                for leaf, gradient in zip(self.leaves, result, strict=True)]


def as_argnums(argnums: Any, values: list[Any]) -> Any:
    """Return one value, or a tuple of several, as argnums names one or several arguments."""
    return values[0] if isinstance(argnums, int) else tuple(values)


# ----- Gradients -----
def grad_and_value(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that gives (gradient, value) of a function with a scalar result; (gradient, (value, aux)) with `has_aux`.

    See `grad` for the arguments and errors.

    >>> import cygrad
    >>> from cygrad.func import grad_and_value
    >>> grad_and_value(lambda x: x * x)(cygrad.tensor(3.))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def differentiated(*arguments: Any, **keywords: Any) -> Any:
        places = chosen_arguments(func, argnums, arguments)
        call = Recorded("grad_and_value", func, places, arguments, keywords, has_aux)
        if not isinstance(call.output, TensorImpl):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(call.output)}; other results "
                               "take has_aux=True")
        if call.output.ndim:
            raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                               f"{call.output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?")
        weight = unit_weight((), call.output.dtype)
        gradients = tree_unflatten(call.gradients([weight], False), call.inputs_spec)
        value = call.outside(call.output)
        return as_argnums(argnums, gradients), (value, call.outside(call.aux)) if has_aux else value

    return differentiated


def value_and_grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that gives (value, gradient) of a function with a scalar result, as in JAX; see `grad_and_value`.

    >>> import cygrad
    >>> from cygrad.func import value_and_grad
    >>> value_and_grad(lambda x: x * x)(cygrad.tensor(3.))
    (tensor(9.), tensor(6.))
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def differentiated(*arguments: Any, **keywords: Any) -> Any:
        gradient, value = both(*arguments, **keywords)
        return value, gradient

    return differentiated


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that gives the gradient of a function with a scalar result.

    Args:
        func: a function of tensors, or trees of them, that returns a tensor of one element without dims.
        argnums: which positional argument, or a tuple of several; the gradient has the argument's structure, shapes and dtypes.
            Floats and NumPy's arrays are taken for tensors there: `func` is given copies of them that are. The other arguments it gets
            as they are.
        has_aux: `func` returns (result, aux), and the function made returns (gradient, aux).

    Nests with itself and with all of `cygrad.func`.

    Raises:
        RuntimeError: a result that is no scalar tensor, argnums out of range, an argument that is not floating-point.

    Example:
        >>> import cygrad
        >>> from cygrad.func import grad
        >>> grad(grad(cygrad.sin))(cygrad.tensor(0.5))
        tensor(-0.4794)
        >>> grad(cygrad.sin)(0.5)
        tensor(0.8776)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def differentiated(*arguments: Any, **keywords: Any) -> Any:
        gradient, value = both(*arguments, **keywords)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the value of a function and a function that multiplies vectors with its Jacobian from the left.

    The second takes a tensor for each result, in the structure of the results, and returns a tuple: for each of `primals` a tensor of
    its shape. It may be called many times. With `has_aux` the auxiliary data come third.

    >>> import cygrad
    >>> from cygrad.func import vjp
    >>> value, multiply = vjp(cygrad.sin, cygrad.tensor([0., 1.]))
    >>> multiply(cygrad.ones(2))
    (tensor([1.0000, 0.5403]),)
    """
    call = Recorded("vjp", func, tuple(range(len(primals))), primals, {}, has_aux)
    call.check_outputs("vjp(f, *primals)")

    def multiply(*cotangents: Any) -> Any:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        weights, spec = given_tensors(tree, call.outputs)
        if spec != call.outputs_spec:
            raise RuntimeError(f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                               f"cotangents: {spec}, primal output: {call.outputs_spec}")
        for weight in weights:
            if not isinstance(weight, TensorImpl):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(weight).__name__}")
        call.differentiable = is_grad_enabled()
        return tuple(tree_unflatten(call.gradients(weights, True), call.inputs_spec))

    value = call.outside(call.output)
    return (value, multiply, call.outside(call.aux)) if has_aux else (value, multiply)


# ----- Jacobians -----
def jacrev(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """Return a function that gives the Jacobian by reverse mode: one backward, for all elements of the results at once.

    For each result, in the structure of the results, and each argument named by `argnums`: a tensor of shape
    `result.shape + argument.shape`. `chunk_size`: how many rows to compute at a time, which bounds the memory. See `grad`.

    >>> import cygrad
    >>> from cygrad.func import jacrev
    >>> jacrev(lambda x: x * x)(cygrad.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_chunk_size("jacrev", chunk_size)

    @functools.wraps(func)
    def differentiated(*arguments: Any, **keywords: Any) -> Any:
        places = chosen_arguments(func, argnums, arguments)
        call = Recorded("jacrev", func, places, arguments, keywords, has_aux)
        call.check_outputs("jacrev(f)(*args)")
        check_real("jacrev", "inputs", call.leaves)
        check_real("jacrev", "outputs", call.outputs)
        sizes = [output.numel() for output in call.outputs]
        rows = in_chunks(lambda weights: call.gradients(weights, True), basis(call.outputs), chunk_size)
        results = []
        for number, output in enumerate(call.outputs):
            start = sum(sizes[:number])
            parts = [row.narrow(0, start, sizes[number]).reshape((*output.shape, *row.shape[1:])) for row in rows]
            results.append(as_argnums(argnums, tree_unflatten(parts, call.inputs_spec)))
        result = tree_unflatten(results, call.outputs_spec)
        return (result, call.outside(call.aux)) if has_aux else result

    return differentiated


def check_real(name: str, role: str, tensors: Sequence[Any]) -> None:
    """Refuse complex tensors, of which a Jacobian by rows is not the one by columns."""
    for number, tensor in enumerate(tensors):
        if tensor.is_complex():
            raise RuntimeError(f"{name}: Expected all {role} to be real but received complex tensor at flattened input idx: {number}")


def check_chunk_size(name: str, chunk_size: Any) -> None:
    if chunk_size is not None and not (isinstance(chunk_size, int) and chunk_size > 0):
        raise ValueError(f"{name}: `chunk_size` should be greater than 0. (got {chunk_size})")
