"""`gradcheck` and `gradgradcheck`: compare the gradients of a function with finite differences.

The numerical Jacobian moves one element at a time in the input's own memory through a NumPy view, which no version
counter sees, and puts it back. So the inputs must be writable and nobody else may use them meanwhile. Jacobians are
NumPy arrays of shape (elements of the input, elements of the output).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cygrad.autograd import grad
from cygrad.autograd.function import Function
from cygrad.creation import from_numpy
from cygrad.tensor import Tensor

Run = Callable[[], tuple[Any, ...]]  # evaluates the function at its inputs
Select = Callable[[Sequence[Any]], tuple[Tensor, ...]]


class GradcheckError(RuntimeError):
    """What `gradcheck` and `gradgradcheck` raise when gradients fail the check."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    check_sparse_nnz: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of `func` at `inputs` against finite differences.

    Every tensor of `inputs` that requires a gradient is checked; it should be float64. The results of `func`, a tensor
    or a tuple of tensors, are checked where they require a gradient; where none does, `func` must be constant.

    Args:
        func: a function of `inputs`.
        inputs: a tensor, or the sequence of arguments.
        eps: half the step of the finite differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: whether a failed check raises; else it returns False.
        nondet_tol: by how much two runs of the same backward may differ.
        check_undefined_grad: whether to check that a missing gradient of an output counts as zero.
        check_grad_dtypes: whether each gradient must have the dtype of its input.
        check_batched_grad, check_batched_forward_grad, check_forward_ad, fast_mode, check_sparse_nnz, masked:
            not available yet: NotImplementedError when asked for.
        check_backward_ad: must be true, for the same reason.

    Returns:
        True, or False where the check failed and `raise_exception` is False.

    Raises:
        GradcheckError: the check failed.
        ValueError: no input requires a gradient.
        RuntimeError: an input has elements that share memory.

    Example:
        >>> import cygrad
        >>> x = cygrad.tensor([0.5, 1.0], dtype=cygrad.float64, requires_grad=True)
        >>> cygrad.autograd.gradcheck(cygrad.exp, x)
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    _refuse_unavailable(
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=check_batched_forward_grad,
        check_forward_ad=check_forward_ad,
        fast_mode=fast_mode,
        check_sparse_nnz=check_sparse_nnz,
        masked=masked,
    )
    arguments = _as_tuple(inputs)
    _check_inputs(arguments)
    variables = _differentiable(arguments)

    def run() -> tuple[Any, ...]:
        return _as_tuple(func(*arguments))

    try:
        if _differentiable(run()):
            _check_jacobians(run, variables, eps, atol, rtol, nondet_tol, check_grad_dtypes)
            _check_zero_gradient(run, variables)
            if check_undefined_grad:
                _check_undefined_gradients(run, variables)
        else:
            _check_constant(run, variables, eps)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    gen_non_contig_grad_outputs: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    **options: Any,
) -> bool:
    """Check the second derivatives of `func` at `inputs` against finite differences of its gradients.

    Args:
        func: a function of `inputs`.
        inputs: a tensor, or the sequence of arguments.
        grad_outputs: the gradients of the outputs at which to check; by default drawn from [-1, 1), the same every time.
        gen_non_contig_grad_outputs: whether those drawn are strided.
        check_fwd_over_rev: not available yet: NotImplementedError when asked for.
        check_rev_over_rev: must be true, for the same reason.
        options: the keyword arguments of `gradcheck`, whose result and errors these are, too.

    Example:
        >>> import cygrad
        >>> x = cygrad.tensor([0.5, 1.0], dtype=cygrad.float64, requires_grad=True)
        >>> cygrad.autograd.gradgradcheck(cygrad.exp, x)
        True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    arguments = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(_as_tuple(func(*arguments)))
        cotangents = _random_cotangents(outputs, strided=gen_non_contig_grad_outputs)
    else:
        cotangents = _as_tuple(grad_outputs)

    def gradients(*arguments_and_cotangents: Any) -> tuple[Tensor, ...]:
        split = len(arguments_and_cotangents) - len(cotangents)
        arguments, weights = arguments_and_cotangents[:split], arguments_and_cotangents[split:]
        outputs = _differentiable(_as_tuple(func(*arguments)))
        found = grad(outputs, _differentiable(arguments), weights, create_graph=True, allow_unused=True)
        return tuple(gradient for gradient in found if gradient is not None)

    return gradcheck(
        gradients,
        arguments + cotangents,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        **options,
    )


def _refuse_unavailable(**wanted: bool | None) -> None:
    for name, value in wanted.items():
        if value:
            raise NotImplementedError(
                f"{name}={value} is not available yet: this version checks backward gradients by full Jacobians only"
            )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _differentiable(values: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(value for value in values if isinstance(value, Tensor) and value.requires_grad)


def _floating(values: Sequence[Any]) -> tuple[Tensor, ...]:
    return tuple(value for value in values if isinstance(value, Tensor) and value.is_floating_point())


def _memory(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def _check_inputs(arguments: Sequence[Any]) -> None:
    for position, argument in enumerate(arguments):
        if not (isinstance(argument, Tensor) and argument.requires_grad):
            continue
        if _memory(argument).dtype != np.float64:
            warnings.warn(
                f"Input #{position} requires gradient and is not a double precision floating point or complex. "
                f"This check will likely fail: it has dtype {argument.dtype}, make it float64.",
                stacklevel=3,
            )
        if argument.numel() and any(stride == 0 and size > 1 for stride, size in zip(argument.stride(), argument.shape, strict=True)):
            raise RuntimeError(
                f"The {position}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping, since it moves one element at a time. Call .contiguous() on the input first."
            )
    if not _differentiable(arguments):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _numerical_jacobians(run: Run, variable: Tensor, select: Select, eps: float) -> list[np.ndarray]:
    """Return the Jacobian of each output that `select` picks, a row for each central difference."""
    array = _memory(variable)

    def values() -> list[np.ndarray]:
        return [_memory(output).flatten() for output in select(run())]  # copies: an output may be a view of variable

    jacobians = [np.zeros((array.size, output.size)) for output in values()]
    for row, index in enumerate(np.ndindex(array.shape)):
        here = array[index]
        try:
            array[index] = here + eps
            above = values()
            array[index] = here - eps
            below = values()
        finally:
            array[index] = here
        with np.errstate(invalid="ignore"):
            for jacobian, high, low in zip(jacobians, above, below, strict=True):
                jacobian[row] = (high - low) / (2 * eps)
    return jacobians


def _analytical_jacobians(output: Tensor, variables: Sequence[Tensor], check_grad_dtypes: bool) -> list[np.ndarray]:
    """Return the Jacobian of `output` with respect to each of `variables`, a column for each backward."""
    jacobians = [np.zeros((variable.numel(), output.numel())) for variable in variables]
    cotangent = np.zeros(tuple(output.shape), _memory(output).dtype)
    for column, index in enumerate(np.ndindex(cotangent.shape)):
        cotangent[index] = 1
        gradients = grad(output, variables, from_numpy(cotangent.copy()), retain_graph=True, allow_unused=True)
        cotangent[index] = 0
        for jacobian, variable, gradient in zip(jacobians, variables, gradients, strict=True):
            if gradient is None:
                continue
            if check_grad_dtypes and gradient.dtype != variable.dtype:
                raise GradcheckError(f"Gradient has dtype mismatch: {gradient.dtype} for an input of {variable.dtype}")
            if gradient.shape != variable.shape:
                raise GradcheckError(
                    f"Analytical gradient has incorrect size: {tuple(gradient.shape)} for an input of "
                    f"{tuple(variable.shape)}"
                )
            jacobian[:, column] = _memory(gradient).ravel()
    return jacobians


def _check_jacobians(
    run: Run,
    variables: Sequence[Tensor],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_grad_dtypes: bool,
) -> None:
    numerical = [_numerical_jacobians(run, variable, _differentiable, eps) for variable in variables]
    for output_number, output in enumerate(_differentiable(run())):
        analytical = _analytical_jacobians(output, variables, check_grad_dtypes)
        again = _analytical_jacobians(output, variables, check_grad_dtypes)
        if any((np.abs(first - second) > nondet_tol).any() for first, second in zip(analytical, again, strict=True)):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                f"gives different values. The tolerance for nondeterminism was {nondet_tol}: give nondet_tol= if the "
                "function is not deterministic."
            )
        for input_number, exact in enumerate(analytical):
            differences = numerical[input_number][output_number]
            if not np.allclose(exact, differences, rtol, atol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {output_number} with respect to input {input_number},\n"
                    f"numerical:{from_numpy(differences)}\nanalytical:{from_numpy(exact)}\n"
                )


def _check_constant(run: Run, variables: Sequence[Tensor], eps: float) -> None:
    for variable in variables:
        if any(jacobian.any() for jacobian in _numerical_jacobians(run, variable, _floating, eps)):
            raise GradcheckError(
                "Numerical gradient for function expected to be zero: no output requires a gradient, "
                "but the outputs change with the inputs"
            )


def _zero_gives_zero(outputs: Sequence[Tensor], variables: Sequence[Tensor]) -> bool:
    zeros = [from_numpy(np.zeros(tuple(output.shape), _memory(output).dtype)) for output in outputs]
    gradients = grad(outputs, variables, zeros, allow_unused=True)
    return not any(gradient is not None and _memory(gradient).any() for gradient in gradients)


def _check_zero_gradient(run: Run, variables: Sequence[Tensor]) -> None:
    if not _zero_gives_zero(_differentiable(run()), variables):
        raise GradcheckError("backward not multiplied by grad_output: it makes a gradient out of zeros")


class _UndefinedGradient(Function):
    """The identity, whose backward passes no gradient on."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> None:
        return None


def _check_undefined_gradients(run: Run, variables: Sequence[Tensor]) -> None:
    """Run backward with no gradient for any output, then, where there are several, for each in turn."""
    every = set(range(len(_differentiable(run()))))
    for undefined in [every, *({number} for number in every if len(every) > 1)]:
        outputs = [
            _UndefinedGradient.apply(output) if number in undefined else output
            for number, output in enumerate(_differentiable(run()))
        ]
        try:
            sound = _zero_gives_zero(outputs, variables)
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: test each gradient for None, "
                "or leave set_materialize_grads on"
            ) from error
        if not sound:
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero"
            )


def _random_cotangents(outputs: Sequence[Tensor], strided: bool) -> tuple[Tensor, ...]:
    stream = np.random.default_rng(0)
    cotangents = []
    for output in outputs:
        pairs = stream.uniform(-1, 1, (*output.shape, 2)).astype(_memory(output).dtype)
        array = pairs[..., 0] if strided else np.array(pairs[..., 0])
        cotangents.append(from_numpy(array).requires_grad_())
    return tuple(cotangents)
