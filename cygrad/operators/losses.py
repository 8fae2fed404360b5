"""Losses between numbers: differences, and logarithms of probabilities of the elements of a tensor.

Each takes `reduction`: "none" for the losses of the elements, "mean" or "sum" of them; `size_average` and `reduce` are torch's older
arguments in its place. Losses of 16-bit numbers are computed in float32, and rounded once.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from cygrad._core.compute.dispatch import ops as rows
from cygrad._core.graph.tensor import TensorImpl
from cygrad.operators._language.arguments import all_examples, check_kinds
from cygrad.operators._language.batches import same
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.loss_reduction import read_reduction, reduced
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Callable

    from cygrad.tensor import Tensor


# ----- Differences -----
def _shown(tensor: Tensor) -> str:
    return f"cygrad.Size({list(tensor.shape)})"


def _warn_of_broadcasting(input: Tensor, target: Tensor) -> None:
    if target.shape != input.shape:
        warnings.warn(f"Using a target size ({_shown(target)}) that is different to the input size ({_shown(input)}). This will likely "
                      "lead to incorrect results due to broadcasting. Please ensure they have the same size.", stacklevel=3)


def _check_weight(input: Tensor, weight: Tensor | None) -> None:
    if weight is not None and weight.shape != input.shape:
        raise ValueError(f"Weights and input must have the same size. The weights have {list(weight.shape)}, the input {list(input.shape)}")


def _of_differences(formula: Callable[..., Tensor], by_weights: bool) -> Callable[..., Tensor]:
    """Return a loss of elements with weights; a mean is by the sum of the weights, or by their number."""
    def weighted(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, *parameters: Any) -> Tensor:
        loss = formula(input, target, *parameters)
        if weight is None:
            return reduced(loss, reduction)
        if by_weights and reduction == "mean":
            return (loss * weight).sum() / weight.sum()
        return reduced(loss * weight, reduction)

    return rounded_once(weighted)


_squared = _of_differences(lambda input, target: (input - target).square(), True)
_absolute = _of_differences(lambda input, target: (input - target).abs(), True)


def _rounded_corner(input: Tensor, target: Tensor, width: float, slope: float) -> Tensor:
    """Return slope / width * d^2 / 2 of differences d up to the width, slope * (|d| - width / 2) of larger ones."""
    difference = input - target
    inside = difference.clamp(-width, width)
    return inside * (slope / width) * (difference - inside * 0.5)


_rounded = _of_differences(_rounded_corner, False)


@operator(refuses={"biuc": NO_LOOP}, loop="mse_cpu")
def nn_functional_mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                           reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Mean squared error: (input - target)^2, with `weight` times it; a mean is then by the sum of the weights.

    `target` has the shape of `input`; if it broadcasts instead, there is a warning. NotImplementedError for integers and complex numbers.

    >>> import cygrad
    >>> cygrad.nn.functional.mse_loss(cygrad.tensor([1., 2.]), cygrad.tensor([1., 4.]))
    tensor(2.)
    """
    _warn_of_broadcasting(input, target)
    reduction = read_reduction(nn_functional_mse_loss, reduction, size_average, reduce)
    _check_weight(input, weight)
    check_kinds(nn_functional_mse_loss, input, target)
    return _squared(input, target, weight, reduction)


@operator
def nn_functional_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Mean absolute error: |input - target|, with `weight` times it; a mean is then by the sum of the weights.

    The gradient is 0 where they are equal. Complex numbers have the absolute value of their difference.

    >>> import cygrad
    >>> cygrad.nn.functional.l1_loss(cygrad.tensor([1., 2.]), cygrad.tensor([1., 4.]))
    tensor(1.)
    """
    _warn_of_broadcasting(input, target)
    reduction = read_reduction(nn_functional_l1_loss, reduction, size_average, reduce)
    _check_weight(input, weight)
    return _absolute(input, target, weight, reduction)


@operator(refuses={"biuc": NO_LOOP}, loop="smooth_l1_cpu")
def nn_functional_smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                                 reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Absolute error with a rounded corner: d^2 / (2 beta) for differences d up to `beta`, |d| - beta / 2 for larger ones.

    RuntimeError for a negative `beta`; with 0 it is `l1_loss`.

    >>> import cygrad
    >>> cygrad.nn.functional.smooth_l1_loss(cygrad.tensor([0., 3.]), cygrad.tensor([1., 0.]), reduction="none")
    tensor([0.5000, 2.5000])
    """
    _warn_of_broadcasting(input, target)
    reduction = read_reduction(nn_functional_smooth_l1_loss, reduction, size_average, reduce)
    if not beta >= 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. It is {beta}")
    check_kinds(nn_functional_smooth_l1_loss, input, target)
    return _rounded(input, target, None, reduction, beta, 1.0) if beta else _absolute(input, target, None, reduction)


@operator(refuses={"biuc": NO_LOOP}, loop="huber_cpu")
def nn_functional_huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
                             ) -> Tensor:
    """Huber's loss: d^2 / 2 for differences d up to `delta`, delta (|d| - delta / 2) for larger ones; with `weight` times it.

    RuntimeError for a `delta` that is not positive.

    >>> import cygrad
    >>> cygrad.nn.functional.huber_loss(cygrad.tensor([0., 3.]), cygrad.tensor([1., 0.]), reduction="none", delta=2.0)
    tensor([0.5000, 4.0000])
    """
    _warn_of_broadcasting(input, target)
    reduction = read_reduction(nn_functional_huber_loss, reduction)
    if not delta > 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. It is {delta}")
    _check_weight(input, weight)
    check_kinds(nn_functional_huber_loss, input, target)
    return _rounded(input, target, weight, reduction, delta, delta)


# ----- Two classes -----
SMALLEST_LOG = -100.0       # torch's bound of log(0)
SMALLEST_VARIANCE = 1e-12   # and of p (1 - p) in the gradient


@rounded_once
def _entropy_of_two(p: Tensor, target: Tensor) -> Tensor:
    return (target - 1) * (-p).log1p().clamp_min(SMALLEST_LOG) - target * p.log().clamp_min(SMALLEST_LOG)


@rounded_once
def _entropy_of_two_gradient(g: Tensor, p: Tensor, target: Tensor) -> Tensor:
    return g * (p - target) / ((1 - p) * p).clamp_min(SMALLEST_VARIANCE)


def _check_probabilities(name: str, tensor: Tensor) -> None:
    values = all_examples(tensor)
    if not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError(f"all elements of {name} should be between 0 and 1; they lie between {values.amin().item()} and "
                           f"{values.amax().item()}")


def _same_dtype(operator: Any, input: Tensor, *others: Tensor | None) -> None:
    for tensor in others:
        if tensor is not None and tensor.dtype != input.dtype:
            theirs, ours = (DTYPES[NUMBER[x.dtype.name]].title for x in (tensor, input))
            raise RuntimeError(f"Found dtype {theirs} but expected {ours}: {operator.name}() takes tensors of one dtype")


@operator(dinput=lambda g, input, target: _entropy_of_two_gradient(g, input, target),
          dtarget=lambda g, input: g * ((-input).log1p().clamp_min(SMALLEST_LOG) - input.log().clamp_min(SMALLEST_LOG)),
          node="BinaryCrossEntropyBackward0", batch=same)
def _binary_cross_entropy(input: Tensor, target: Tensor) -> Tensor:
    """Return -target log(input) - (1 - target) log(1 - input), whose logarithms are at least -100."""
    return recorded(_binary_cross_entropy, (input, target), unrecorded(lambda: _entropy_of_two(input.detach(), target.detach())))


@operator(refuses={"biuc": NO_LOOP}, loop="binary_cross_entropy")
def nn_functional_binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                                       reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Cross entropy of probabilities: -target log(input) - (1 - target) log(1 - input), times `weight`, which broadcasts to it.

    Logarithms are at least -100, so that log(0) is finite, as in torch. RuntimeError if an element of either is outside of 0 to 1; of
    logits, `binary_cross_entropy_with_logits` is more accurate.

    >>> import cygrad
    >>> cygrad.nn.functional.binary_cross_entropy(cygrad.tensor([0.5, 0.]), cygrad.tensor([1., 1.]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    reduction = read_reduction(nn_functional_binary_cross_entropy, reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Using a target size ({_shown(target)}) that is different to the input size ({_shown(input)}) is deprecated. "
                         "Please ensure they have the same size.")
    check_kinds(nn_functional_binary_cross_entropy, input)
    _same_dtype(nn_functional_binary_cross_entropy, input, target, weight)
    if weight is not None:
        weight = weight.expand(input.shape)
    _check_probabilities("input", input)
    _check_probabilities("target", target)
    loss = _binary_cross_entropy(input, target)
    return reduced(loss if weight is None else loss * weight, reduction)


@rounded_once
def _entropy_of_logits(input: Tensor, target: Tensor, reduction: str, weight: Tensor | None, pos_weight: Tensor | None) -> Tensor:
    logarithm = rows["logsigmoid"](input)
    if pos_weight is not None:
        logarithm = logarithm * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input - logarithm
    return reduced(loss if weight is None else loss * weight, reduction)


@operator(refuses={"biuc": NO_LOOP}, loop="log_sigmoid_cpu")
def nn_functional_binary_cross_entropy_with_logits(
        input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """Cross entropy of the probabilities sigmoid(input): (1 - target) input - (1 + (pos_weight - 1) target) log(sigmoid(input)).

    Finite and accurate for logits of any size. `weight` and `pos_weight` broadcast to the input.

    >>> import cygrad
    >>> x = cygrad.tensor([0., -1e4])
    >>> cygrad.nn.functional.binary_cross_entropy_with_logits(x, cygrad.ones(2), reduction="none")
    tensor([6.9315e-01, 1.0000e+04])
    """
    reduction = read_reduction(nn_functional_binary_cross_entropy_with_logits, reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({_shown(target)}) must be the same as input size ({_shown(input)})")
    check_kinds(nn_functional_binary_cross_entropy_with_logits, input)
    if not target.is_floating_point():
        expected, got = (DTYPES[NUMBER[x.dtype.name]].title for x in (input, target))
        raise RuntimeError(f"result type {expected} can't be cast to the desired output type {got}: convert the target first")
    return _entropy_of_logits(input, target, reduction, weight, pos_weight)


@operator
def nn_functional_soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                                   reduction: str = "mean") -> Tensor:
    """Logistic loss of two classes, -1 and 1: log(1 + exp(-target input)), finite for inputs of any size.

    >>> import cygrad
    >>> cygrad.nn.functional.soft_margin_loss(cygrad.tensor([0., -1e4]), cygrad.ones(2), reduction="none")
    tensor([6.9315e-01, 1.0000e+04])
    """
    reduction = read_reduction(nn_functional_soft_margin_loss, reduction, size_average, reduce)
    if not (input.dtype.is_differentiable or target.dtype.is_differentiable):
        title = DTYPES[NUMBER[input.dtype.name]].title
        raise RuntimeError(f"result type Float can't be cast to the desired output type {title}: convert the input first")
    return _logistic(input, target, reduction)


@rounded_once
def _logistic(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    product = input * target
    return reduced((-product).exp().log1p() if product.is_complex() else -rows["logsigmoid"](product), reduction)


# ----- Distributions -----
@rounded_once
def _divergence(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if reduction == "batchmean":
        return loss.sum() / len(input) if input.ndim else loss.sum()
    return reduced(loss, reduction)


@operator
def nn_functional_kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence of the target from the input: target (log(target) - input), where `input` holds logarithms.

    0 where a probability `target` is 0. `log_target`: the target holds logarithms, too. `reduction` may also be "batchmean", the sum
    divided by the first size, which is the mean divergence of samples. RuntimeError for integers and complex numbers.

    >>> import cygrad
    >>> p = cygrad.tensor([[0.5, 0.5]])
    >>> cygrad.nn.functional.kl_div(p.log(), cygrad.tensor([[1., 0.]]), reduction="batchmean")
    tensor(0.6931)
    """
    reduction = read_reduction(nn_functional_kl_div, reduction, size_average, reduce, ("batchmean",))
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides only by "
                      "the batch size, and aligns with the KL div math definition.", stacklevel=2)
    for tensor in (input, target):
        if not tensor.is_floating_point():
            kind = "Complex" if tensor.is_complex() else "Integral"
            raise RuntimeError(f"kl_div: {kind} inputs not supported. The dtype is {tensor.dtype}")
    return _divergence(input, target, reduction, log_target)


@rounded_once
def _normal(input: Tensor, target: Tensor, variance: Tensor, reduction: str, full: bool, eps: float) -> Tensor:
    # A variance below eps is eps, and passes the gradient on, as in torch.
    variance = variance + (eps - variance.detach()).where(variance < eps, 0.0)
    loss = (variance.log() + (input - target).square() / variance) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def _variance(input: Tensor, var: Tensor | float) -> Tensor:
    """Return the variance as a tensor that broadcasts to the input in at most one dim."""
    if not isinstance(var, TensorImpl):
        if not isinstance(var, (int, float)):
            raise TypeError(f"{nn_functional_gaussian_nll_loss.__name__}(): argument 'var' (position 3) must be Tensor or float, not "
                            f"{type(var).__name__}")
        if not var >= 0:
            raise ValueError(f"var has negative entry/entries: it is {var}")
        return input.new_full((), var).expand(input.shape)
    values = all_examples(var)
    if (values < 0).any():
        raise ValueError(f"var has negative entry/entries: one is {values.amin().item()}")
    if var.shape == input.shape:
        return var
    if tuple(input.shape[:-1]) == tuple(var.shape):
        return var.unsqueeze(-1)
    others = [own for size, own in zip(input.shape, var.shape, strict=False) if size != own]
    if input.ndim == var.ndim and others == [1]:
        return var
    raise ValueError(f"var is of incorrect size: it has {list(var.shape)}, the input {list(input.shape)}")


@operator
def nn_functional_gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
                                    reduction: str = "mean") -> Tensor:
    """Negative log-likelihood of a normal distribution of mean `input` and variance `var`: (log(var) + (input - target)^2 / var) / 2.

    A variance below `eps` counts as `eps`. `full` adds the constant log(2 pi) / 2. `var` is a number or a tensor: of the input's shape,
    with sizes of 1 in it, or without its last dim. ValueError for a negative variance.

    >>> import cygrad
    >>> cygrad.nn.functional.gaussian_nll_loss(cygrad.zeros(2), cygrad.tensor([0., 2.]), cygrad.ones(2))
    tensor(1.)
    """
    variance = _variance(input, var)
    reduction = read_reduction(nn_functional_gaussian_nll_loss, reduction, refused="is not valid")
    return _normal(input, target, variance, reduction, full, eps)


@rounded_once
def _poisson(input: Tensor, target: Tensor, reduction: str, log_input: bool, full: bool, eps: float) -> Tensor:
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:        # Stirling's approximation of log(target!)
        large = target.masked_fill(target <= 1, 1)
        stirling = large * large.log() - large + (2 * math.pi * large).log() * 0.5
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


@operator
def nn_functional_poisson_nll_loss(
        input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-8,
        reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Negative log-likelihood of a Poisson distribution: exp(input) - target input, of the logarithm of the rate.

    Without `log_input` `input` is the rate: input - target log(input + eps). `full` adds Stirling's approximation of log(target!),
    target log(target) - target + log(2 pi target) / 2, for targets above 1.

    >>> import cygrad
    >>> cygrad.nn.functional.poisson_nll_loss(cygrad.zeros(2), cygrad.tensor([1., 3.]))
    tensor(1.)
    """
    reduction = read_reduction(nn_functional_poisson_nll_loss, reduction, size_average, reduce)
    return _poisson(input, target, reduction, log_input, full, eps)
