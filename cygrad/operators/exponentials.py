"""Sums of exponentials without overflow: logsumexp, softmax and its logarithm."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import get_default_dtype
from cygrad.operators._language.arguments import checked_operand, delivered, normalized_dims
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.narrow_floats import of_unrounded_result
from cygrad.operators._language.tangents import self_adjoint
from cygrad.operators._language.tiled import tiled
from cygrad.ops.gradients import keep_dims
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad._core.compute.composed import Tiled
    from cygrad.tensor import Tensor
    from cygrad.typing import Dims, DTypeLike


# ----- Formulas -----
def _logsumexp_beside(x: Tensor, largest: Tensor, dim: Dims) -> Tensor:
    shift = largest.masked_fill(largest.abs() == float("inf"), 0)
    return (x - shift).exp_().sum(dim, keepdim=True).log_() + shift


@tiled
def _logsumexp(x: Tensor, dim: Dims) -> Tensor:
    return _logsumexp_beside(x, x.amax(dim, keepdim=True), dim)


@tiled
def _logsumexp_gradient(g: Tensor, x: Tensor, y: Tensor, dim: Dims) -> Tensor:
    return g * (x - y).exp_()


@tiled
def _softmax(x: Tensor, dim: int) -> Tensor:
    exponential = (x - x.amax(dim, keepdim=True)).exp_()
    return exponential.mul_(exponential.sum(dim, keepdim=True).reciprocal_())


@tiled
def _softmax_gradient(g: Tensor, y: Tensor, dim: int) -> Tensor:
    return y * (g - (g * y).sum(dim, keepdim=True))


@tiled
def _log_softmax(x: Tensor, dim: int) -> Tensor:
    shifted = x - x.amax(dim, keepdim=True)
    return shifted.sub_(shifted.exp().sum(dim, keepdim=True).log_())


@tiled
def _log_softmax_gradient(g: Tensor, y: Tensor, dim: int) -> Tensor:
    return g - y.exp() * g.sum(dim, keepdim=True)


# ----- Operators -----
def _logsumexp_gradient_of_shape(g: Tensor, input: Tensor, y: Tensor, dim: tuple[int, ...]) -> Tensor:
    return _logsumexp_gradient(keep_dims(g, input.shape, dim), input, keep_dims(y, input.shape, dim), dim)


@operator(dinput=of_unrounded_result(lambda x, dim: x.logsumexp(dim), _logsumexp_gradient_of_shape), batch=shifted("dim"),
          aliases=("special_logsumexp",))
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """log(sum(exp(x))) over dims, without overflow.

    >>> import cygrad
    >>> cygrad.logsumexp(cygrad.zeros(2), 0)
    tensor(0.6931)
    """
    if not input.dtype.is_differentiable:
        input = input.to(get_default_dtype())
    dims = normalized_dims(dim, input.ndim)

    def compute() -> Tensor:
        x = input.detach()
        if x.numel() == 0:
            return x.exp().sum(dims, keepdim=keepdim).log_()
        total = _logsumexp_beside(x, x.real.amax(dims, keepdim=True), dims) if x.is_complex() else _logsumexp(x, dims)
        return total if keepdim else total.squeeze(dims)

    return delivered(recorded(logsumexp, (input,), unrecorded(compute), dim=dims), out)


def _normalized(operator: Any, formula: Tiled, input: Tensor, dim: int, dtype: DTypeLike | None, out: Tensor | None) -> Tensor:
    """Compute from the differences to the largest element, whose exponentials are at most 1."""
    name = operator.name
    if not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
    x = input if dtype is None else input._convert(dtype)
    checked_operand(operator, x)
    d = normalized_dim(dim, x.ndim)
    result = formula.values(x, d) if x.numel() else x.detach().clone()
    return delivered(recorded(operator, (x,), result, dim=d), out)


@operator(dinput=lambda g, y, dim: _softmax_gradient(g, y, dim), tangent=self_adjoint, batch=shifted("dim"),
          refuses={"bic": NO_LOOP}, loop="softmax_lastdim_kernel_impl", aliases=("special_softmax",))
def softmax(input: Tensor, dim: int, dtype: DTypeLike | None = None, *, out: Tensor | None = None) -> Tensor:
    """exp(x) divided by its sum along `dim`, without overflow.

    >>> import cygrad
    >>> cygrad.softmax(cygrad.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _normalized(softmax, _softmax, input, dim, dtype, out)


def _tangent_of_log_softmax(tangent_of, operator, y, input, dim, *_, **__):
    t = tangent_of(input)
    if t is None:
        return None
    t = t.to(y.dtype)
    return t - (y.exp() * t).sum(dim, keepdim=True)


@operator(dinput=lambda g, y, dim: _log_softmax_gradient(g, y, dim), tangent=_tangent_of_log_softmax, batch=shifted("dim"),
          refuses={"bic": NO_LOOP}, loop="log_softmax_lastdim_kernel_impl", aliases=("special_log_softmax",))
def log_softmax(input: Tensor, dim: int, dtype: DTypeLike | None = None, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of softmax along `dim`, accurate also where softmax is tiny.

    >>> import cygrad
    >>> cygrad.log_softmax(cygrad.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _normalized(log_softmax, _log_softmax, input, dim, dtype, out)


# ----- Of neural networks, with torch's choice of the dim -----
def _chosen(name: str, dim: int | None, ndim: int) -> int:
    """Return the dim; where it is None, torch's choice, with torch's warning."""
    if dim is not None:
        return dim
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
                  stacklevel=3)
    return 0 if ndim in (0, 1, 3) else 1


@operator
def nn_functional_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike | None = None) -> Tensor:
    """`softmax` along `dim`; None is dim 1, or 0 of tensors of 0, 1 and 3 dims, and warns. `_stacklevel` has no effect.

    >>> import cygrad
    >>> cygrad.nn.functional.softmax(cygrad.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax(input, _chosen("softmax", dim, input.ndim), dtype)


@operator
def nn_functional_softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike | None = None) -> Tensor:
    """`softmax` of the negated elements; arguments are as in `nn.functional.softmax`.

    >>> import cygrad
    >>> cygrad.nn.functional.softmin(cygrad.tensor([0., 1e4]), dim=0)
    tensor([1., 0.])
    """
    return softmax(-input, _chosen("softmin", dim, input.ndim), dtype)


@operator
def nn_functional_log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DTypeLike | None = None) -> Tensor:
    """`log_softmax` along `dim`; arguments are as in `nn.functional.softmax`.

    >>> import cygrad
    >>> cygrad.nn.functional.log_softmax(cygrad.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return log_softmax(input, _chosen("log_softmax", dim, input.ndim), dtype)
