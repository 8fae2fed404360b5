"""A message as a recorded operator, on which all others are built: its gradient is the transposed message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.compute.creation import empty_tensor
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.memory.storage import dtype_by_name
from cygrad.operators._language.declaration import operator, recorded, recorded_together
from cygrad.operators._language.tangents import linear
from cygrad.operators._messages.message import Message, no_derivative
from cygrad.operators._messages.tokens import thread
from cygrad.operators._messages.transport import transported

if TYPE_CHECKING:
    from cygrad.tensor import Tensor

float32 = dtype_by_name["float32"]


def is_taped(tensor: Tensor) -> bool:
    """Return True if a message that brings such a tensor is recorded by a tape."""
    return thread.token is not None and is_grad_enabled() and tensor.dtype.is_differentiable


def check_derivative(message: Message, input: Tensor) -> None:
    """Refuse a tensor with a gradient for a reduction that has none."""
    if not message.is_linear and input.requires_grad and is_grad_enabled():
        raise no_derivative(message)


def sent(input: Tensor, message: Message) -> Tensor:
    """Return the tensor that a message brings, recorded; inside of a tape with its token."""
    check_derivative(message, input)
    if not message.is_linear or not is_taped(input):
        return _transfer(input, message)
    result, thread.token = _taped_transfer(input, thread.token, message)
    return result


def _tangent(tangent_of: Any, operator: Any, result: Any, *arguments: Any) -> Any:
    """Send the tangents by the same message."""
    message = arguments[-1]
    if not message.is_linear and tangent_of(arguments[0]) is not None:
        raise no_derivative(message)
    return linear(tangent_of, operator, result, *arguments)


def _all_examples(level: Any, operator: Any, input: Tensor, *others: Any) -> Any:
    """Send all examples in one message: they lie along the last dim, so that dim 0 is the message's own."""
    *token, message = others
    input = level.enter(input)
    result = operator(input.movedim(0, -1), *token, message.of_examples(input.shape[0]))
    if token:
        return level.leave(result[0].movedim(-1, 0)), result[1]
    return level.leave(result.movedim(-1, 0))


@operator(dinput=lambda g, message: sent(g, message.transposed()), tangent=_tangent, batch=_all_examples, method=False)
def _transfer(input: Tensor, message: Message) -> Tensor:
    return recorded(_transfer, (input,), transported(message, input), message=message)


def arrived(gs: list[Any], message: Message, dtype: Any) -> tuple[Any, Any]:
    """Return the gradients of a result and its token: zeros and a new token where none has come."""
    g, token = gs
    if g is None:
        g = token.new_zeros(message.receives.shape, dtype=dtype)
    return g, new_token() if token is None else token


def _taped_gradients(gs: list[Any], message: Message, dtype: Any) -> tuple[Any, Any]:
    """Send the gradient, and pass the token on to the message before."""
    g, token = arrived(gs, message, dtype)
    return sent(g, message.transposed()), token


@operator(each=_taped_gradients, tangent=_tangent, batch=_all_examples, method=False)
def _taped_transfer(input: Tensor, token: Tensor, message: Message) -> tuple[Tensor, Tensor]:
    result = transported(message, input)
    return recorded_together(_taped_transfer, (input, token), (result, new_token()), message=message, dtype=input.dtype)


def new_token() -> Any:
    """Return a tensor without elements."""
    return empty_tensor((0,), float32)
