"""`gradcheck` and `gradgradcheck`: compare the gradients of a function with finite differences.

The two functions are here; the checks they run are imported when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from cygrad._imports import at_first_use
from cygrad.autograd.derivatives import grad
from cygrad.tensor import Tensor

if TYPE_CHECKING:
    from cygrad.autograd.gradcheck.case import Case, Settings
    from cygrad.autograd.gradcheck.errors import GradcheckError as GradcheckError

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
__getattr__, __dir__ = at_first_use(globals(), {
    "GradcheckError": "cygrad.autograd.gradcheck.errors",
    **dict.fromkeys(("get_analytical_jacobian", "get_numerical_jacobian"), "cygrad.autograd.gradcheck.jacobians"),
})


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
    progress: bool = False,
) -> bool:
    """Check the gradients of `func` at `inputs` against finite differences.

    Every tensor of `inputs` that requires a gradient is checked; it should be float64 or complex128, and each of its elements
    must have memory of its own, in which it is moved a little. The results of `func`, a tensor or a tuple of tensors, are checked
    where they require a gradient; where none does, `func` must be constant. Derivatives agree where
    `|analytical - numerical| <= atol + rtol * |numerical|`.

    Complex tensors are pairs of real ones: the gradients of the imaginary and of the real part of outputs are checked, each
    by itself, and in forward mode the tangents along the imaginary and along the real part of inputs.

    Args:
        func: a function of `inputs` that gives the same results each time.
        inputs: a tensor, or the sequence of arguments.
        eps: half the step of the finite differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: whether a failed check raises; else it returns False. Other errors raise in any case.
        nondet_tol: by how much two runs of the same backward may differ.
        check_undefined_grad: whether to check that a missing gradient of an output, or in forward mode a missing tangent of
            an input, counts as zero.
        check_grad_dtypes: whether each gradient that a user's Function returns must have the dtype of its input; else it is
            converted, as always. (Forward mode refuses a tangent of another dtype in any case.)
        check_batched_grad: whether to check the gradients of a batch of weights against the gradients of each weight alone.
        check_batched_forward_grad: the same of tangents in forward mode; needs `check_forward_ad`.
        check_forward_ad: whether to check forward mode, too.
        check_backward_ad: whether to check backward.
        fast_mode: whether to compare along one random direction instead of the whole Jacobians: two calls of `func` for each
            input instead of two for each element. A failed check is repeated with the Jacobians to show them.
        check_sparse_nnz, masked: whether inputs may be sparse tensors, whose gradients are checked at their values, the only elements
            that have one; the former is the name in torch 1.8. Of dense inputs they change nothing.
        progress: whether to count the calls of `func` on a bar of tqdm.

    Returns:
        True, or False where the check failed and `raise_exception` is False.

    Raises:
        GradcheckError: the check failed. Its message numbers inputs and outputs without those that require no gradient; where
            that makes a difference, a note has their positions.
        ValueError: no input requires a gradient, a result is sparse, or an input is sparse and no tensor.
        RuntimeError: an input is read-only, or some of its elements share memory.
        AttributeError: a result of `func` is not a tensor.
        AssertionError: two arguments contradict each other, or the shape or dtype of a result changes when inputs are moved.

    Example:
        >>> import cygrad
        >>> x = cygrad.tensor([0.5, 1.0], dtype=cygrad.float64, requires_grad=True)
        >>> cygrad.autograd.gradcheck(cygrad.exp, x)
        True
        >>> cygrad.autograd.gradcheck(lambda x: x * x.detach(), x, raise_exception=False)
        False
    """
    from cygrad.autograd.gradcheck.case import Case, Settings, as_tuple, check_inputs, check_sparse_inputs, on_values
    from cygrad.autograd.gradcheck.errors import GradcheckError

    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    if check_sparse_nnz and masked is False:
        raise ValueError("Expected specified check_sparse_nnz (=True) to be equal to masked (=False): give one of them")
    arguments = as_tuple(inputs)
    is_masked = check_sparse_nnz or bool(masked)
    try:
        check_sparse_inputs(arguments, is_masked)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    func, arguments = on_values(func, arguments)
    check_inputs(arguments)
    settings = Settings(
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=check_batched_forward_grad,
        check_forward_ad=check_forward_ad,
        check_backward_ad=check_backward_ad,
        fast_mode=fast_mode,
    )
    with ExitStack() as bars:
        if progress:
            from cygrad._progress import bar, counted
            func = counted(func, bars.enter_context(bar("calls")))
        case = Case(func, arguments)
        try:
            _run_checks(case, settings)
        except GradcheckError as error:
            if not raise_exception:
                return False
            if case.numbering():
                error.add_note(case.numbering())
            raise
    return True


def _run_checks(case: Case, settings: Settings) -> None:
    from cygrad.autograd.gradcheck import batched, comparison, properties

    if not case.outputs:
        comparison.compare_with_zero(case, settings)
        return
    compare = comparison.compare_products if settings.fast_mode else comparison.compare_jacobians
    compare(case, settings)
    if settings.check_forward_ad and settings.check_undefined_grad:
        properties.check_undefined_tangents(case)
    if settings.check_batched_forward_grad:
        batched.check_batched_tangents(case)
    if settings.check_backward_ad:
        if settings.check_batched_grad:
            batched.check_batched_gradients(case)
        properties.check_zero_gradients(case)
        if settings.check_undefined_grad:
            properties.check_undefined_gradients(case)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
    progress: bool = False,
) -> bool:
    """Check the second derivatives of `func` at `inputs` against finite differences of its gradients.

    It is `gradcheck` of the function that takes `inputs` and `grad_outputs` and returns the gradients of `inputs`; messages
    number its arguments and results. Of `grad_outputs`, those are checked that require a gradient.

    Args:
        func: a function of `inputs`.
        inputs: a tensor, or the sequence of arguments.
        grad_outputs: the weights of the outputs that require a gradient; None in it stands for the 1 of a scalar. By default
            they are drawn from [-1, 1), the same every time, and require a gradient.
        gen_non_contig_grad_outputs: whether those drawn are not contiguous.
        check_fwd_over_rev: whether to check the gradients' derivatives by forward mode.
        check_rev_over_rev: whether to check the gradients' derivatives by backward.
        eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad, fast_mode, masked,
            progress: as in `gradcheck`, whose result and errors these are, too. A gradient that is not deterministic makes
            larger errors in the second derivative.

    Example:
        >>> import cygrad
        >>> x = cygrad.tensor([0.5, 1.0], dtype=cygrad.float64, requires_grad=True)
        >>> cygrad.autograd.gradgradcheck(cygrad.exp, x)
        True
    """
    from cygrad.autograd.gradcheck.case import as_tuple, check_sparse_inputs, on_values, positions_of_differentiable, tensors_of
    from cygrad.autograd.gradcheck.directions import random_weights

    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    arguments = as_tuple(inputs)
    if masked:
        check_sparse_inputs(arguments, masked)
        func, arguments = on_values(func, arguments)
    if grad_outputs is None:
        results = tensors_of(func(*arguments))
        weights = random_weights([results[position] for position in positions_of_differentiable(results)], gen_non_contig_grad_outputs)
    else:
        weights = as_tuple(grad_outputs)
    everything = arguments + weights
    differentiable = positions_of_differentiable(everything)

    def gradients(*values: Any) -> tuple[Tensor, ...]:
        for position in differentiable:
            values[position].requires_grad_()    # forward mode hands in tensors that require no gradient
        results = tensors_of(func(*values[:len(arguments)]))
        outputs = [results[position] for position in positions_of_differentiable(results)]
        variables = [values[position] for position in differentiable if position < len(arguments)]
        result = grad(outputs, variables, values[len(arguments):], create_graph=True, allow_unused=True)
        return tuple(gradient for gradient in result if gradient is not None)

    return gradcheck(
        gradients,
        everything,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        progress=progress,
        masked=masked,
    )
