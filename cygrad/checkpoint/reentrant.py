"""`checkpoint(use_reentrant=True)`: a Function that runs the region without recording, and again, recorded, in its backward."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cygrad._core.engine.backward import current_run
from cygrad._core.memory.looks import look
from cygrad.autograd import Function, backward, enable_grad, no_grad
from cygrad.generator import default_generator, go_to, position_of
from cygrad.tensor import Tensor


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no input requires a gradient, so that nothing inside the region gets one."""
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values with each tensor replaced by a leaf over the same memory that requires a gradient if it did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value for value in inputs)


def draw_again(position: tuple[int, Any]) -> None:
    """Continue the global generator from a position where it was before; captured functions cannot."""
    generator = default_generator()
    if position_of(generator) != position:
        look("random numbers are drawn again")
        go_to(generator, position)


@contextlib.contextmanager
def replayed_random_numbers(position: Any) -> Iterator[None]:
    """Draw from a position of the global generator meanwhile, and from the present one afterwards; None changes nothing.

    A captured function has no such position: it is as if nothing had happened only where nothing is drawn.
    """
    if position is None:
        yield
        return
    generator = default_generator()
    present = position_of(generator)
    go_to(generator, position)
    try:
        yield
    finally:
        if position_of(generator) != position:
            look("random numbers are drawn again")
        go_to(generator, present)


class CheckpointFunction(Function):
    """Runs a region without recording; its backward runs it again and differentiates that."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run the region."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.position = position_of(default_generator()) if preserve_rng_state else None
        ctx.inputs = [None if isinstance(value, Tensor) else value for value in args]
        ctx.save_for_backward(*(value if isinstance(value, Tensor) else None for value in args))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the region again, recorded, and backward through it."""
        if not current_run()[1]:
            raise RuntimeError("When use_reentrant=True, cygrad.checkpoint is incompatible with .grad() or passing an `inputs` parameter "
                               "to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
                               "passing the `inputs` argument.")
        saved = ctx.saved_tensors
        inputs = detach_variable(tuple(value if tensor is None else tensor for value, tensor in zip(ctx.inputs, saved, strict=True)))
        with replayed_random_numbers(ctx.position), enable_grad():
            outputs = ctx.run_function(*inputs)
        pairs = [(output, grad) for output, grad in zip((outputs,) if isinstance(outputs, Tensor) else outputs, grads, strict=True)
                 if isinstance(output, Tensor) and output.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return None, None, *(value.grad if isinstance(value, Tensor) else None for value in inputs)
