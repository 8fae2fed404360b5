"""Reductions and running folds that are more than a row of the tables: each is computed unrecorded and recorded as one node.

Loaded at first use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from cygrad._core.graph.rules import record_by_name, record_several_by_name
from cygrad._core.levels.levels import special_tensors
from cygrad._core.memory.sizes import normalized_dim
from cygrad._core.memory.storage import get_default_dtype
from cygrad.operators.arguments import check_floating, checked_tensor, delivered, delivered_pair, normalized_dims
from cygrad.operators.declaration import unrecorded
from cygrad.operators.elementwise import named, publish


# ----- Variance and exponentials -----
def _correction(unbiased: bool | None, given: float | None) -> float:
    """Return the correction that is asked for by one of the two words, 1 if by neither."""
    return given if given is not None else 1 if unbiased is None else int(unbiased)


def _scale(degrees: float) -> float:
    return 1 / degrees if degrees else float("nan")


def _variance(name: str, input: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    """Compute var or std by two passes: the mean, then the squares of the differences from it."""
    checked_tensor(name, input)
    if not input.is_floating_point():
        raise RuntimeError(f"std and var only support floating point and complex dtypes, got {input.dtype}; convert it first, "
                           "e.g. with .float()")
    dims = normalized_dims(dim, input.ndim)
    degrees = _degrees(input, dims, correction)

    def compute() -> Any:
        x = input.detach()
        difference = x - x.mean(dims, keepdim=True)
        total = difference.square_().sum(dims, keepdim=keepdim)
        variance = total / degrees if degrees else total / 0.0
        return variance.sqrt_() if name == "std" else variance

    return record_by_name(name, (input,), unrecorded(compute), (dims, _scale(degrees)))


def _degrees(input: Any, dims: tuple[int, ...], correction: float) -> float:
    """Return what the squares of differences are divided by."""
    return max(math.prod(input.shape[d] for d in dims if input.ndim) - correction, 0)


def _variance_function(name: str, root: str) -> Callable[..., Any]:
    def function(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None,
                 out: Any = None, ddof: float | None = None) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        given = _correction(unbiased, correction if ddof is None else ddof)
        return delivered(_variance(name, input, dim, given, keepdim), out)

    return named(function, name, f"{root} of the elements, over all dims or those in `dim`, divided by n - `correction` (default 1).\n\n"
                  f">>> import cygrad\n>>> cygrad.{name}(cygrad.tensor([1., 2., 3.]))\ntensor(1.)\n")


var = _variance_function("var", "Variance")
std = _variance_function("std", "Standard deviation")


def _with_mean(spread: str, sentence: str) -> Callable[..., Any]:
    name = spread + "_mean"

    def function(input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
                 correction: float | None = None) -> Any:
        if not checked_tensor(name, input).is_floating_point():
            raise RuntimeError(f"{name} only support floating point and complex dtypes, got {input.dtype}; convert it first, e.g. with "
                               ".float()")
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        given = _correction(unbiased, correction)

        def compute() -> tuple[Any, Any]:
            return getattr(input, spread)(dim, keepdim=keepdim, correction=given), input.mean(dim, keepdim=keepdim)

        if special_tensors():       # which are handed on to the two
            return compute()
        dims = normalized_dims(dim, input.ndim)
        return record_several_by_name(name, (input,), unrecorded(compute), (dims, _scale(_degrees(input, dims, given))))

    return named(function, name, f"{sentence} and mean of the elements, over all dims or those in `dim`; see `{spread}`.\n\n"
                 f">>> import cygrad\n>>> cygrad.{name}(cygrad.tensor([1., 2., 3.]))\n(tensor(1.), tensor(2.))\n")


var_mean = _with_mean("var", "Variance")
std_mean = _with_mean("std", "Standard deviation")


def logsumexp(input: Any, dim: Any, keepdim: bool = False, *, out: Any = None) -> Any:
    """log(sum(exp(x))) over dims, without overflow.

    >>> import cygrad
    >>> cygrad.logsumexp(cygrad.zeros(2), 0)
    tensor(0.6931)
    """
    checked_tensor("logsumexp", input)
    if not input.is_floating_point():
        input = input.to(get_default_dtype())
    dims = normalized_dims(dim, input.ndim)

    def compute() -> Any:
        x = input.detach()
        if x.numel() == 0:
            return x.exp().sum(dims, keepdim=keepdim).log_()
        largest = x.amax(dims, keepdim=True)
        shift = largest.masked_fill(largest.abs() == float("inf"), 0)
        total = (x - shift).exp_().sum(dims, keepdim=True).log_() + shift
        return total if keepdim else total.squeeze(dims)

    return delivered(record_by_name("logsumexp", (input,), unrecorded(compute), (dims,)), out)


def _softmax_function(name: str, sentence: str, finish: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(input: Any, dim: int, dtype: Any = None, *, out: Any = None) -> Any:
        checked_tensor(name, input)
        if not hasattr(dim, "__index__"):
            raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
        x = input if dtype is None else input.to(dtype)
        check_floating(name, x)
        d, = normalized_dims(dim, x.ndim)

        def compute() -> Any:
            shifted = x.detach() - x.detach().amax(d, keepdim=True) if x.numel() else x.detach().clone()
            return finish(shifted, d)

        return delivered(record_by_name(name, (x,), unrecorded(compute), (d,)), out)

    return named(function, name, f"{sentence}\n\n>>> import cygrad\n>>> cygrad.{name}(cygrad.zeros(2), dim=0).shape\ncygrad.Size([2])\n")


def _normalized(shifted: Any, dim: int) -> Any:
    exponential = shifted.exp_()
    return exponential.div_(exponential.sum(dim, keepdim=True))


softmax = _softmax_function("softmax", "exp(x) divided by its sum along `dim`, without overflow.", _normalized)
log_softmax = _softmax_function("log_softmax", "Logarithm of softmax along `dim`, accurate also where softmax is tiny.",
                                lambda shifted, d: shifted.sub_(shifted.exp().sum(d, keepdim=True).log_()))


# ----- Counts and means -----
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """Number of elements that are not 0, over all dims or those in `dim`.

    >>> import cygrad
    >>> cygrad.count_nonzero(cygrad.tensor([0, 5]))
    tensor(1)
    """
    return (checked_tensor("count_nonzero", input) != 0).sum(dim)


class MinimumAndMaximum(NamedTuple):
    """What `aminmax` returns."""

    min: Any
    max: Any

    def __repr__(self) -> str:
        return f"cygrad.return_types.aminmax(\nmin={self.min!r},\nmax={self.max!r})"


def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """Smallest and largest element of all, or along `dim`: (min, max). Equal ones share the gradient.

    >>> import cygrad
    >>> cygrad.aminmax(cygrad.tensor([3., 1., 2.])).max
    tensor(3.)
    """
    if not checked_tensor("aminmax", input).numel() and dim is None:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    if dim is not None:
        dim = normalized_dim(dim, input.ndim)
    return delivered_pair(MinimumAndMaximum, input.amin(dim, keepdim), input.amax(dim, keepdim), out)


def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """Mean of the elements that are not NaN; NaN where there are none.

    >>> import cygrad
    >>> cygrad.nanmean(cygrad.tensor([1., cygrad.nan, 3.]))
    tensor(2.)
    """
    x = checked_tensor("nanmean", input) if dtype is None else input.to(dtype)
    if not x.is_floating_point():
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {x.dtype}; convert it first")
    return delivered(x.nansum(dim, keepdim=keepdim) / (x == x).sum(dim, keepdim=keepdim), out)


publish(__name__, globals())
