"""Covariances and correlations of variables, which are the rows of a matrix; its columns are observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cygrad._core.memory.storage import get_default_dtype
from cygrad.operators._language.arguments import all_examples
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once

if TYPE_CHECKING:
    from cygrad.tensor import Tensor


def _check_weights(name: str, weights: Tensor, is_of_kind: bool, kind: str, count: int) -> None:
    if weights.ndim > 1:
        raise RuntimeError(f"{cov.__name__}(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} "
                           "dimensions")
    if not is_of_kind:
        raise RuntimeError(f"{cov.__name__}(): expected {name} to have {kind} dtype but got {name} with {weights.dtype} dtype")
    if weights.numel() != count:
        raise RuntimeError(f"{cov.__name__}(): expected {name} to have the same numel as there are observations in the input but got "
                           f"{weights.numel()} != {count}")
    if not bool((all_examples(weights) >= 0).all()):
        raise RuntimeError(f"{cov.__name__}(): {name} cannot be negative")


def _weights(fweights: Tensor | None, aweights: Tensor | None, count: int) -> Tensor | None:
    """Return the weights of observations: how often each is counted, times its importance."""
    if fweights is not None:
        _check_weights("fweights", fweights, fweights.dtype.is_integer, "integral", count)
    if aweights is not None:
        _check_weights("aweights", aweights, aweights.is_floating_point(), "floating point", count)
    return aweights if fweights is None else fweights if aweights is None else fweights * aweights


@rounded_once
def _covariance(x: Tensor, weights: Tensor | None, aweights: Tensor | None, correction: float) -> Tensor:
    total: Any = x.shape[1] if weights is None else weights.sum()
    if weights is not None and not bool((all_examples(total) != 0).all()):
        raise RuntimeError(f"{cov.__name__}(): weights sum to zero, can't be normalized")
    differences = x - (x if weights is None else x * weights).sum(1, keepdim=True) / total
    weighted = differences if weights is None else differences * weights
    divisor = total - correction * (1 if weights is None or aweights is None else (weights * aweights).sum() / total)
    return (differences @ weighted.mT.conj()) / (max(divisor, 0) if weights is None else divisor.clamp(min=0))


@operator
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """Covariances of variables: of a matrix, whose rows are variables and columns observations, or of a vector of observations.

    Sums of products of differences from the means, divided by n - `correction`. `fweights` are counts of observations (integers),
    `aweights` their importances. Integers count as the default dtype.

    >>> import cygrad
    >>> cygrad.cov(cygrad.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError(f"{cov.__name__}(): expected input to have two or fewer dimensions but got an input with {input.ndim} "
                           "dimensions")
    if input.dtype.kind == "b":
        raise RuntimeError(f"{cov.__name__}(): bool dtype is not supported for input")
    x = input if input.dtype.is_differentiable else input.to(get_default_dtype())
    x = x if x.ndim == 2 else x.reshape(1, -1)
    weights = _weights(fweights, aweights, x.shape[1])
    return _covariance(x, weights, aweights, correction).squeeze()


@rounded_once
def _correlations(x: Tensor) -> Tensor:
    covariances = cov(x)
    if not covariances.ndim:
        return covariances / covariances
    deviations = covariances.diagonal().sqrt()
    correlations = covariances / deviations.unsqueeze(-1) / deviations
    if correlations.is_complex():
        return correlations.view_as_real().clamp(-1, 1).view_as_complex()
    return correlations.clamp(-1, 1)


@operator
def corrcoef(input: Tensor) -> Tensor:
    """Correlations of variables, from -1 to 1: covariances by the products of standard deviations. See `cov`.

    >>> import cygrad
    >>> cygrad.corrcoef(cygrad.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError(f"{corrcoef.__name__}(): expected input to have two or fewer dimensions but got an input with {input.ndim} "
                           "dimensions")
    if input.dtype.kind == "b":
        raise RuntimeError(f"{cov.__name__}(): bool dtype is not supported for input")
    return _correlations(input)
