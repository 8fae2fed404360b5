"""Jacobians, Hessians and their products with vectors, of functions of tensors.

`func` gets new tensors over the memory of the inputs: so derivatives by arguments do not include the same tensors captured, and the inputs
stay as they are. Floats and NumPy's arrays are taken for tensors: it gets copies of them that are. Where forward mode, or a batch, meets
reverse mode, or a loop, does the work where forward mode cannot.
`strict` needs a graph, and takes reverse mode at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import numpy as np

from cygrad._core.engine.derivatives import fresh, reaches_other_leaves
from cygrad._core.graph.handles import hooks_registered
from cygrad._core.levels.level import enter_level, exit_level
from cygrad._core.levels.tangents import set_tangent, tangent_of
from cygrad.autograd import tangents as tangents  # the rules that operators name
from cygrad.autograd.arguments import given_tensor
from cygrad.autograd.batches import basis, in_chunks
from cygrad.autograd.derivatives import check_both_complex, differentiated, differentiated_in_batches, unit_weight
from cygrad.autograd.grad_mode import enable_grad, is_grad_enabled
from cygrad.data.creation import zeros
from cygrad.operators.joining import stack
from cygrad.operators.new_tensors import zeros_like
from cygrad.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_Given = Tensor | np.ndarray | np.generic | complex
_Tensors = _Given | tuple[_Given, ...]
_Gradients = Sequence[Tensor | None]    # None: independent of it
_Blocks = list[tuple[Tensor, ...]]      # Jacobians: for each output one of each input

_STRATEGIES = ("forward-mode", "reverse-mode")

# Errors of strict mode. {0} is the number of the input, output or entry.
_DETACHED = ("Output {0} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner "
             "from the input when running in strict mode.")
_INDEPENDENT = "The output of the user-provided function is independent of input {0}. This is not allowed in strict mode."
_OUTPUT_INDEPENDENT = "Output {output} of the user-provided function is independent of input {0}. This is not allowed in strict mode."
_GRADIENT_DETACHED = ("The gradient with respect to input {0} is independent of the inputs of the user-provided function. This is not "
                      "allowed in strict mode.")
_GRADIENT_LINEAR = ("The gradient with respect to the input is independent of entry {0} in the grad_outputs when using the double backward "
                    "trick to compute forward mode gradients. This is not allowed in strict mode.")
_JACOBIAN_CONSTANT = ("While computing the hessian, found that the jacobian of the user-provided function with respect to input {0} is "
                      "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
                      "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
                      "example).")
_JACOBIAN_INDEPENDENT = "The jacobian of the user-provided function is independent of input {0}. This is not allowed in strict mode."
_JACOBIAN_DETACHED = f"{_JACOBIAN_INDEPENDENT[:-1]} when create_graph=True."
_HESSIAN_INDEPENDENT = ("The hessian of the user-provided function is independent of entry {0} in the grad_jacobian. This is not allowed "
                        "in strict mode as it prevents from using the double backward trick to replace forward mode AD.")
_HESSIAN_DETACHED = ("The hessian of the user-provided function is independent of input {0}. This is not allowed in strict mode when "
                     "create_graph=True.")


# ----- Arguments -----
def _given(value: Any, role: str, function: str, like: Sequence[Tensor] = ()) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether arguments came in a tuple, and the tuple: of tensors in place of floats and arrays, too."""
    if not isinstance(value, tuple):
        return _as_tuple(_tensor(value, *like[:1]), role, function)
    return _as_tuple(tuple(_tensor(*pair) for pair in zip_longest(value, like[:len(value)])), role, function)


def _tensor(value: Any, like: Any = None) -> Any:
    """Return a float or an array as a tensor; an int, which has no derivative, as it is, so that it is refused."""
    return value if isinstance(value, int) else given_tensor(value, like)


def _as_tuple(value: Any, role: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether tensors came in a tuple, and the tuple."""
    is_tuple = isinstance(value, tuple)
    tensors = value if is_tuple else (value,)
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            which = f"value at index {number}" if is_tuple else f"given {role}"
            hint = " An integer has no derivative: convert it to a float." if isinstance(tensor, int) else ""
            raise TypeError(f"The {role} given to {function} must be either a Tensor or a tuple of Tensors but the {which} has type "
                            f"{type(tensor)}.{hint}")
    return is_tuple, tensors


def _variables(tensors: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Return new tensors of the same values, which require gradients; with `create_graph` those given get gradients from them."""
    return tuple(fresh(tensor if create_graph else tensor.detach()) if tensor.dtype.is_differentiable else tensor.detach().requires_grad_()
                 for tensor in tensors)


def _one(tensor: Tensor) -> Tensor:
    return unit_weight(tensor.shape, tensor.dtype)


def _vector(v: Any, like: tuple[Tensor, ...], is_tuple: bool, function: str, create_graph: bool) -> tuple[Tensor, ...]:
    """Check a vector against the tensors it belongs to; the vector of a single element may be left out."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            missing = ("user-provided function returns" if function == "vjp" else "input to the user-provided function is")
            raise RuntimeError(f"The vector v can only be None if the {missing} a single Tensor with a single element.")
        return (_one(like[0]),)
    _, vectors = _given(v, "v", function, like)
    if len(vectors) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}." if is_tuple else
                           f"The given v should contain a single Tensor. It is a tuple of {len(vectors)}.")
    for number, (vector, tensor) in enumerate(zip(vectors, like, strict=True)):
        if vector.shape != tensor.shape:
            entry = f"Entry {number} in " if is_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {tensor.shape} but got {vector.shape}.")
        check_both_complex(number, vector, tensor.dtype)
    return tuple((vector.view_as(vector) if create_graph else vector.detach()).to(tensor.dtype)
                 for vector, tensor in zip(vectors, like, strict=True))


# ----- Calling the function -----
def _call(func: Callable[..., Any], inputs: tuple[Tensor, ...], function: str, strict: bool = False) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether the function returns a tuple, and its outputs in one."""
    is_tuple, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", function)
    for number, output in enumerate(outputs if function == "jvp" else ()):
        if not output.dtype.is_differentiable:
            raise RuntimeError("only Tensors of floating point dtype can require gradients, as all outputs have to for jvp: output "
                               f"{number} of the user-provided function is {output.dtype}; convert it, or leave it out")
    if strict:
        _check_strict(outputs, None, _DETACHED)
    return is_tuple, outputs


def _call_scalar(func: Callable[..., Any], inputs: tuple[Tensor, ...], function: str, strict: bool = False) -> Tensor:
    """Return the one number that the function computes, in the shape it has."""
    is_tuple, outputs = _call(func, inputs, function, strict)
    if is_tuple:
        raise RuntimeError(f"The function given to {function} should return a single Tensor. It returned a tuple of {len(outputs)}.")
    (output,) = outputs
    if output.numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element. Its shape is "
                           f"{list(output.shape)}.")
    return output


def _gradients(outputs: _Gradients, inputs: tuple[Tensor, ...], weights: Sequence[Tensor], create_graph: bool) -> _Gradients:
    """Return the gradients of those outputs that have any."""
    weighted = [(output, weight) for output, weight in zip(outputs, weights, strict=True) if output is not None and output.requires_grad]
    if not weighted:
        return [None] * len(inputs)
    differentiable, operands = zip(*weighted, strict=True)
    return differentiated(differentiable, operands, create_graph, create_graph, inputs)


def _check_strict(tensors: _Gradients, independent: str | None, detached: str | None, **names: int) -> None:
    """Raise RuntimeError with one text for None, another one for a tensor without history."""
    for number, tensor in enumerate(tensors):
        text = independent if tensor is None else None if tensor.requires_grad else detached
        if text is not None:
            raise RuntimeError(f"{text.format(number, **names)} strict=False accepts it.")


class _ForwardMode:
    """A level of forward mode; with `recorded` tangents go where history goes, so that jvp differentiates the same inputs as a backward."""

    def __init__(self, recorded: bool = False) -> None:
        self.recorded = recorded

    def __enter__(self) -> _ForwardMode:
        self.level, self.hooks = enter_level(recorded=self.recorded), hooks_registered()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        exit_level(self.level)

    def push(self, inputs: Sequence[Tensor], vectors: Sequence[Tensor]) -> None:
        """Give new tensors their tangents."""
        for tensor, vector in zip(inputs, vectors, strict=True):
            set_tangent(tensor, self.level, vector)

    def tangents(self, tensors: _Gradients) -> _Gradients:
        """Return the tangents of tensors, None where there is none."""
        return [None if tensor is None else tangent_of(tensor, self.level) for tensor in tensors]

    def hooked(self) -> bool:
        """Return True if hooks came meanwhile, which change gradients and are not called in forward mode."""
        return hooks_registered() != self.hooks


# ----- Results -----
def _filled(gradients: _Gradients, like: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(zeros_like(tensor) if gradient is None else gradient for gradient, tensor in zip(gradients, like, strict=True))


def _finished(tensors: tuple[Tensor, ...], is_tuple: bool, create_graph: bool) -> Any:
    """Return results in the structure that the user's tensors have, with history if it was asked for."""
    if not create_graph:
        tensors = tuple(tensor.detach() for tensor in tensors)
    return tensors if is_tuple else tensors[0]


# ----- Products -----
def vjp(func: Callable[..., Any], inputs: _Tensors, v: _Tensors | None = None, create_graph: bool = False, strict: bool = False,
        ) -> tuple[Any, Any]:
    """Return the outputs of `func` and the product of a vector with its Jacobian, by one backward.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors.
        v: of the shape of the outputs; 1 by default where these are a single element.
        create_graph: whether both results are differentiable.
        strict: whether to refuse an input that the outputs do not depend on, and with `create_graph` one that the product does not
            depend on, instead of returning zeros, and a product without history.

    Returns:
        (outputs, products): as `func` returns them, and in the structure, shapes and dtypes of the inputs.

    Raises:
        TypeError: inputs, outputs or `v` are no tensors.
        RuntimeError: `v` does not match the outputs; a refusal by `strict`.

    >>> import cygrad
    >>> from cygrad.autograd.functional import vjp
    >>> x, y = cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.])
    >>> vjp(lambda x, y: x * y, (x, y), cygrad.tensor([1., 10.]))
    (tensor([3., 8.]), (tensor([ 3., 40.]), tensor([ 1., 20.])))
    """
    with enable_grad():
        is_tuple, operands = _given(inputs, "inputs", "vjp")
        variables = _variables(operands, create_graph)
        returns_tuple, outputs = _call(func, variables, "vjp", strict)
        vectors = _vector(v, outputs, returns_tuple, "vjp", create_graph)
    gradients = _gradients(outputs, variables, vectors, create_graph)
    if strict:
        _check_strict(gradients, _INDEPENDENT, _JACOBIAN_DETACHED if create_graph else None)
    return _finished(outputs, returns_tuple, create_graph), _finished(_filled(gradients, variables), is_tuple, create_graph)


def jvp(func: Callable[..., Any], inputs: _Tensors, v: _Tensors | None = None, create_graph: bool = False, strict: bool = False,
        ) -> tuple[Any, Any]:
    """Return the outputs of `func` and the product of its Jacobian with a vector.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors.
        v: of the shape of the inputs; 1 by default where these are a single element.
        create_graph: whether both results are differentiable.
        strict: whether to refuse outputs, gradients and products that do not depend on the inputs.

    Returns:
        (outputs, products): both in the structure, shapes and dtypes of the results of `func`.

    Raises:
        TypeError: inputs, outputs or `v` are no tensors.
        RuntimeError: `v` does not match the inputs; an output is no floating-point tensor; a refusal by `strict`.

    >>> import cygrad
    >>> from cygrad.autograd.functional import jvp
    >>> x = cygrad.tensor([1., 2.])
    >>> jvp(lambda x: x ** 3, x, cygrad.tensor([1., 10.]))
    (tensor([1., 8.]), tensor([  3., 120.]))
    """
    with enable_grad():
        is_tuple, operands = _given(inputs, "inputs", "jvp")
        variables = _variables(operands, create_graph)
        vectors = _vector(v, variables, is_tuple, "jvp", create_graph)
        returns_tuple, outputs, products = _jvp(func, variables, vectors, create_graph, strict)
    return _finished(outputs, returns_tuple, create_graph), _finished(products, returns_tuple, create_graph)


def _jvp(func: Callable[..., Any], inputs: tuple[Tensor, ...], vectors: tuple[Tensor, ...], create_graph: bool, strict: bool,
         ) -> tuple[bool, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return whether `func` returns a tuple, its outputs, and their products."""
    called = None
    if not strict:
        with suppress(NotImplementedError), _ForwardMode(recorded=True) as mode:
            mode.push(inputs, vectors)
            returns_tuple, outputs = called = _call(func, inputs, "jvp")
            if not mode.hooked():
                return returns_tuple, outputs, _filled(mode.tangents(outputs), outputs)
    returns_tuple, outputs = called or _call(func, inputs, "jvp", strict)
    # A backward is linear in its weights, so its own backward with respect to them is the product.
    weights = tuple(zeros_like(output).requires_grad_() for output in outputs)
    gradients = _gradients(outputs, inputs, weights, create_graph=True)
    if strict:
        _check_strict(gradients, _INDEPENDENT, _GRADIENT_DETACHED)
    result = _gradients(gradients, weights, vectors, create_graph)
    if strict:
        _check_strict(result, _GRADIENT_LINEAR, _JACOBIAN_DETACHED if create_graph else None)
    return returns_tuple, outputs, _filled(result, outputs)


def vhp(func: Callable[..., Any], inputs: _Tensors, v: _Tensors | None = None, create_graph: bool = False, strict: bool = False,
        ) -> tuple[Any, Any]:
    """Return the number that `func` computes and the product of a vector with its Hessian, by a backward of a backward.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor, or a tuple of tensors.
        v: of the shape of the inputs; 1 by default where these are a single element.
        create_graph: whether both results are differentiable.
        strict: whether to refuse an input that the output, or its gradient, does not depend on.

    Returns:
        (output, products): as `func` returns it, and in the structure, shapes and dtypes of the inputs.

    Raises:
        TypeError: inputs, output or `v` are no tensors.
        RuntimeError: the output is no single element; `v` does not match the inputs; a refusal by `strict`.

    >>> import cygrad
    >>> from cygrad.autograd.functional import vhp
    >>> x = cygrad.tensor([1., 2.])
    >>> vhp(lambda x: (x ** 3).sum(), x, cygrad.tensor([1., 10.]))
    (tensor(9.), tensor([  6., 120.]))
    """
    with enable_grad():
        is_tuple, operands = _given(inputs, "inputs", "vhp")
        variables = _variables(operands, create_graph)
        vectors = _vector(v, variables, is_tuple, "vhp", create_graph)
        output = _call_scalar(func, variables, "vhp", strict)
        gradients = _gradients((output,), variables, (_one(output),), create_graph=True)
        if strict:
            _check_strict(gradients, _INDEPENDENT, _JACOBIAN_CONSTANT)
    products = _gradients(gradients, variables, vectors, create_graph)
    if strict:
        _check_strict(products, _JACOBIAN_INDEPENDENT, _HESSIAN_DETACHED if create_graph else None)
    return _finished((output,), False, create_graph), _finished(_filled(products, variables), is_tuple, create_graph)


def hvp(func: Callable[..., Any], inputs: _Tensors, v: _Tensors | None = None, create_graph: bool = False, strict: bool = False,
        ) -> tuple[Any, Any]:
    """Return the number that `func` computes and the product of its Hessian with a vector.

    `vhp` gives the same wherever second derivatives are symmetric.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor, or a tuple of tensors.
        v: of the shape of the inputs; 1 by default where these are a single element.
        create_graph: whether both results are differentiable.
        strict: whether to refuse an input that the output, or its gradient, does not depend on.

    Returns:
        (output, products): as `func` returns it, and in the structure, shapes and dtypes of the inputs.

    Raises:
        TypeError: inputs, output or `v` are no tensors.
        RuntimeError: the output is no single element; `v` does not match the inputs; a refusal by `strict`.

    >>> import cygrad
    >>> from cygrad.autograd.functional import hvp
    >>> x, y = cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.])
    >>> hvp(lambda x, y: (x * y).sum(), (x, y), (cygrad.tensor([1., 0.]), cygrad.tensor([0., 10.])))
    (tensor(11.), (tensor([ 0., 10.]), tensor([1., 0.])))
    """
    with enable_grad():
        is_tuple, operands = _given(inputs, "inputs", "hvp")
        variables = _variables(operands, create_graph)
        vectors = _vector(v, variables, is_tuple, "hvp", create_graph)
        output, products = _hvp(func, variables, vectors, create_graph, strict)
    return _finished((output,), False, create_graph), _finished(products, is_tuple, create_graph)


def _hvp(func: Callable[..., Any], inputs: tuple[Tensor, ...], vectors: tuple[Tensor, ...], create_graph: bool, strict: bool,
         ) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the output, and the products of the gradient's Jacobian with a vector, as in `_jvp`."""
    output = None
    if not strict:
        with suppress(NotImplementedError), _ForwardMode(recorded=True) as mode:
            mode.push(inputs, vectors)
            dual = _call_scalar(func, inputs, "hvp")
            if not mode.hooked():
                mode.level.differentiate_backward()     # which frees the graph: it is made again where this fails
                return dual, _filled(mode.tangents(_gradients((dual,), inputs, (_one(dual),), create_graph)), inputs)
            output = dual
    if output is None:
        output = _call_scalar(func, inputs, "hvp", strict)
    gradients = _gradients((output,), inputs, (_one(output),), create_graph=True)
    if strict:
        _check_strict(gradients, _INDEPENDENT, _JACOBIAN_CONSTANT)
    weights = tuple(zeros_like(tensor).requires_grad_() for tensor in inputs)
    second = _gradients(gradients, inputs, weights, create_graph=True)
    result = _gradients(second, weights, vectors, create_graph)
    if strict:
        _check_strict(result, _HESSIAN_INDEPENDENT, _HESSIAN_DETACHED if create_graph else None)
    return output, _filled(result, inputs)


# ----- Jacobians -----
def jacobian(func: Callable[..., Any], inputs: _Tensors, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:
    """Return the Jacobian of `func`, for each output and input a tensor of the output's shape followed by the input's.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors.
        create_graph: whether the Jacobian is differentiable.
        strict: whether to refuse an input that an output does not depend on, and with `create_graph` a Jacobian that does not depend
            on an input, instead of returning zeros, and a Jacobian without history; not with `vectorize`.
        vectorize: whether all rows come from one backward of a batch of weights, instead of a backward for each.
        strategy: "forward-mode" computes columns, all in one run of `func` on dual numbers: for more outputs than inputs. It needs
            `vectorize` and keeps the history that inputs and captured tensors give.

    Returns:
        A tensor; where `func` returns a tuple or `inputs` is one, a tuple; where both are, a tuple for each output, of a tensor for each
        input. Its dtype is the input's, in forward mode the output's.

    Raises:
        TypeError: inputs or outputs are no tensors.
        RuntimeError: a refusal by `strict`; `strict` with `vectorize`.
        NotImplementedError: "forward-mode" with `create_graph`, or without `vectorize`.

    >>> import cygrad
    >>> from cygrad.autograd.functional import jacobian
    >>> x, y = cygrad.tensor([1., 2.]), cygrad.tensor([3., 4.])
    >>> jacobian(lambda x: x ** 2, x)
    tensor([[2., 0.],
            [0., 4.]])
    >>> jacobian(lambda x, y: (x * y).sum(), (x, y), vectorize=True)
    (tensor([3., 4.]), tensor([1., 2.]))
    """
    if strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
                             'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".')
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError('torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
                                      'supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.')
        if strict:
            raise RuntimeError('torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together '
                               '(yet). Please either set `strict=False` or `strategy="reverse-mode"`.')
        if not vectorize:
            raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
                                      "`vectorize=True`.")
    is_tuple, operands = _given(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        returns_tuple, blocks = _by_columns(func, operands)
    else:
        returns_tuple, _, _, blocks = _by_rows(func, operands, create_graph, strict, vectorize)
        blocks = blocks if create_graph else [tuple(block.detach() for block in row) for row in blocks]
    result = tuple(row if is_tuple else row[0] for row in blocks)
    return result if returns_tuple else result[0]


def _by_rows(func: Callable[..., Any], inputs: tuple[Tensor, ...], create_graph: bool, strict: bool, vectorize: bool,
             ) -> tuple[bool, tuple[Tensor, ...], tuple[Tensor, ...], _Blocks]:
    """Return whether `func` returns a tuple, the new tensors it was called on, its outputs, and the Jacobians by reverse mode."""
    with enable_grad():
        variables = _variables(inputs, create_graph)
        returns_tuple, outputs = _call(func, variables, "jacobian", strict)
        if strict and vectorize:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
                               "either set `strict=False` or `vectorize=False`.")
        blocks = []
        for number, output in enumerate(outputs):
            parts: _Gradients = [None] * len(variables)
            if output.requires_grad and output.numel():
                parts = _rows(number, output, variables, create_graph, strict, vectorize)
            blocks.append(tuple((zeros(output.numel(), *variable.shape, dtype=variable.dtype) if part is None else part)
                                .reshape(output.shape + variable.shape) for part, variable in zip(parts, variables, strict=True)))
    return returns_tuple, variables, outputs, blocks


def _rows(number: int, output: Tensor, inputs: tuple[Tensor, ...], create_graph: bool, strict: bool, vectorize: bool) -> _Gradients:
    """Return the gradients of all elements of one output along a new dim 0: at once, or one after the other."""
    if vectorize and output.numel() > 1:
        with suppress(RuntimeError):    # no rule, a backward that needs numbers, too little memory; another error comes again below
            return differentiated_in_batches((output,), tuple(basis((output,))), True, create_graph, inputs)
    rows = []
    for element in range(output.numel()):
        if not vectorize:
            unit_weight((), output.dtype)       # complex numbers have rows in a batch only, as in torch
        weight = zeros(output.shape, dtype=output.dtype)    # a new one each time, as hooks and nodes may keep it
        weight.view(-1)[element] = 1
        rows.append(differentiated((output,), (weight,), True, create_graph, inputs))
        if strict:
            _check_strict(rows[-1], _OUTPUT_INDEPENDENT, _JACOBIAN_DETACHED if create_graph else None, output=number)
    return [stack(_filled(parts, (variable,) * len(parts))) if any(part is not None for part in parts) else None
            for parts, variable in zip(zip(*rows, strict=True), inputs, strict=True)]


def _by_columns(func: Callable[..., Any], inputs: tuple[Tensor, ...]) -> tuple[bool, _Blocks]:
    """Return whether `func` returns a tuple, and the Jacobians by forward mode, with the history that comes with it."""
    for tensor in inputs:
        if not tensor.dtype.is_differentiable:
            raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}; convert it first, e.g. with "
                             ".float()")
    sizes = [tensor.numel() for tensor in inputs]
    if sum(sizes):
        try:
            return _columns(func, inputs)
        except RuntimeError:            # as in _rows; but rows of complex numbers are not their columns
            if any(tensor.is_complex() for tensor in inputs):
                raise
    create_graph = is_grad_enabled()    # as forward mode does
    returns_tuple, variables, outputs, blocks = _by_rows(func, inputs, create_graph, False, True)
    return returns_tuple, [tuple(block.to(output.dtype) for block in _known_outside(row, variables))
                           for output, row in zip(outputs, blocks, strict=True)]


def _known_outside(tensors: tuple[Tensor, ...], own: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Detach those tensors whose history ends at our own variables only."""
    return tuple(tensor if reaches_other_leaves((tensor,), own) else tensor.detach() for tensor in tensors)


def _columns(func: Callable[..., Any], inputs: tuple[Tensor, ...]) -> tuple[bool, _Blocks]:
    outputs: tuple[Tensor, ...] = ()
    returns_tuple = False

    def products(directions: list[Tensor]) -> list[Tensor]:
        nonlocal returns_tuple, outputs
        variables = tuple(tensor.clone() for tensor in inputs)      # which may be written to
        with _ForwardMode() as mode:
            mode.push(variables, directions)
            returns_tuple, outputs = _call(func, variables, "jacobian")
            return list(_filled(mode.tangents(outputs), outputs))

    result = in_chunks(products, basis(inputs), None)
    sizes = [tensor.numel() for tensor in inputs]
    return returns_tuple, [tuple(part.movedim(0, -1).reshape(output.shape + tensor.shape)
                                 for part, tensor in zip(columns.split(sizes), inputs, strict=True))
                           for columns, output in zip(result, outputs, strict=True)]


def hessian(func: Callable[..., Any], inputs: _Tensors, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """Return the Hessian of `func`: the Jacobian of its gradient, which reverse mode computes.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor, or a tuple of tensors.
        create_graph, strict, vectorize: as in `jacobian`.
        outer_jacobian_strategy: the `strategy` of the Jacobian of the gradient.

    Returns:
        A tensor of the input's shape twice; for a tuple of inputs a tuple for each, of a tensor for each.

    Raises:
        TypeError: inputs or output are no tensors.
        RuntimeError: the output is no single element; and as `jacobian` does.
        NotImplementedError: as `jacobian` does.

    >>> import cygrad
    >>> from cygrad.autograd.functional import hessian
    >>> x, y = cygrad.tensor([1., 2.]), cygrad.tensor(3.)
    >>> hessian(lambda x: (x ** 3).sum(), x)
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    >>> hessian(lambda x, y: (x * y).sum(), (x, y))[1]
    (tensor([1., 1.]), tensor(0.))
    """
    is_tuple, operands = _given(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    own: list[Tensor] = []

    def gradient(*inputs: Tensor) -> tuple[Tensor, ...]:
        with enable_grad():
            variables = tuple(tensor if tensor.requires_grad else fresh(tensor) for tensor in inputs)
            own.extend(variables)
            output = _call_scalar(func, variables, "hessian", strict)
            gradients = _gradients((output,), variables, (_one(output),), create_graph=True)
        if strict:
            _check_strict(gradients, _JACOBIAN_CONSTANT, _JACOBIAN_CONSTANT)
        return _filled(gradients, variables)

    result = jacobian(gradient, operands, create_graph, strict, vectorize, outer_jacobian_strategy)
    if outer_jacobian_strategy == "forward-mode":
        result = tuple(_known_outside(row, tuple(own)) for row in result)
    return result if is_tuple else result[0][0]
