"""Normalization: elements less their mean, by their standard deviation, over the dims of a layer, a group, an instance or a batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cygrad._core.operands.checks import are_like
from cygrad.data.limits import finfo
from cygrad.operators._language.arguments import SEQUENCE, checked_operand, delivered_together, integers
from cygrad.operators._language.batches import shifted
from cygrad.operators._language.declaration import operator, recorded, unrecorded
from cygrad.operators._language.narrow_floats import in_loops
from cygrad.operators._language.tiled import tiled
from cygrad.operators.joining import cat
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cygrad.tensor import Tensor


# ----- Formulas -----
def _scale_of(difference: Tensor, eps: float, dim: tuple[int, ...]) -> Tensor:
    """Return 1 / sqrt(variance + eps), by the differences from the mean over dims."""
    return ((difference * difference).mean(dim, keepdim=True) + eps).rsqrt()


@tiled
def _by_deviation(x: Tensor, eps: float, dim: tuple[int, ...]) -> Tensor:
    difference = x - x.mean(dim, keepdim=True)
    return difference * _scale_of(difference, eps, dim)


@tiled
def _by_deviation_gradient(g: Tensor, x: Tensor, eps: float, dim: tuple[int, ...]) -> Tensor:
    difference = x - x.mean(dim, keepdim=True)
    scale = _scale_of(difference, eps, dim)
    y = difference * scale
    return (g - g.mean(dim, keepdim=True) - y * (g * y).mean(dim, keepdim=True)) * scale


@operator(dinput=lambda g, input, eps, dim: _by_deviation_gradient(g, input, eps, dim), batch=shifted("dim"))
def _standardized(input: Tensor, eps: float, dim: tuple[int, ...]) -> Tensor:
    """Return differences from the mean over dims, divided by the root of their mean square plus `eps`."""
    result = _by_deviation.values(input, eps, dim) if input.numel() else input.detach().clone()
    return recorded(_standardized, (input,), result, eps=eps, dim=dim)


# ----- Arguments -----
def _check_shape(operator: Any, input: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    """Return the sizes at the end of the input that are normalized together."""
    if not isinstance(normalized_shape, SEQUENCE):
        raise TypeError(f"{operator.name.removeprefix('nn_functional_')}(): argument 'normalized_shape' (position 2) must be tuple of "
                        f"ints, not {type(normalized_shape).__name__}")
    sizes = integers(normalized_shape)
    if not sizes:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
                           "normalized_shape = []")
    if input.shape[-len(sizes):] != sizes:
        raise RuntimeError(f"Given normalized_shape={list(sizes)}, expected input with shape [*, {', '.join(map(str, sizes))}], but got "
                           f"input of size{list(input.shape)}")
    return sizes


def _check_factors(shape: tuple[int, ...], **factors: Tensor | None) -> None:
    for name, factor in factors.items():
        if factor is not None and factor.shape != shape:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(factor.shape)} and "
                               f"normalized_shape = {list(shape)}")


def _check_dtypes(input: Tensor, **others: Tensor | None) -> None:
    """Refuse tensors of another dtype than the input's; beside 16-bit inputs they may be of float32, too."""
    narrow = input.dtype.loops is not input.dtype
    for name, tensor in others.items():
        if tensor is not None and tensor.dtype != input.dtype and not (narrow and tensor.dtype == input.dtype.loops):
            title = DTYPES[NUMBER[input.dtype.name]].title
            raise RuntimeError(f"mixed dtype (CPU): expect parameter to have scalar type of {title}, but {name} has "
                               f"{DTYPES[NUMBER[tensor.dtype.name]].title}")


def _check_tensors(operator: Any, input: Tensor, check: Callable[..., None], expected: Any, **tensors: Tensor | None) -> None:
    """Check tensors that are not all of the input's dtype and a shape: by `check(expected, ...)`, the input's dtype, and theirs."""
    check(expected, **tensors)
    checked_operand(operator, input)
    _check_dtypes(input, **tensors)


def _check_elements(count: int, **tensors: Tensor | None) -> None:
    for name, tensor in tensors.items():
        if tensor is not None and tensor.numel() != count:
            raise RuntimeError(f"{name} should contain {count} elements not {tensor.numel()}")


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None, dtype: Any, by_channels: bool = False) -> Tensor:
    """Return x times a weight plus a bias, in a dtype: they have the last dims of x, or an element for each channel."""
    if weight is not None:
        x = x * (weight.reshape(_along_channels(x)) if by_channels else weight)
    if bias is not None:
        x = x + (bias.reshape(_along_channels(x)) if by_channels else bias)
    return (x if x.dtype is dtype else x.to(dtype)).contiguous()


# ----- By the elements of one example -----
@operator(refuses={"biuc": NO_LOOP}, loop="LayerNormKernelImpl", method=False, aliases=("layer_norm",))
def nn_functional_layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
                             eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) weight + bias, with mean and variance over the last dims, whose sizes are `normalized_shape`.

    The variance is the mean square (Ba, Kiros, Hinton 2016). `weight` and `bias` have the shape `normalized_shape`.

    >>> import cygrad
    >>> cygrad.nn.functional.layer_norm(cygrad.tensor([[1., 3.]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    sizes = _check_shape(nn_functional_layer_norm, input, normalized_shape)
    if not are_like(input, sizes, weight, bias):
        _check_tensors(nn_functional_layer_norm, input, _check_factors, sizes, weight=weight, bias=bias)
    checked_operand(nn_functional_layer_norm, input)
    x, factor, shift = in_loops(input, weight, bias)
    dims = tuple(range(input.ndim - len(sizes), input.ndim))
    return _scaled(x._standardized(eps, dims), factor, shift, input.dtype)


@operator(refuses={"biu": NO_LOOP}, loop="rms_norm", method=False, aliases=("rms_norm",))
def nn_functional_rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
                           ) -> Tensor:
    """x / sqrt(mean(x^2) + eps) weight, with the mean over the last dims, whose sizes are `normalized_shape`.

    `eps` None is the smallest difference of numbers near 1 in the dtype that is computed in (Zhang, Sennrich 2019). Complex numbers have
    the mean of x^2, as in torch. A weight of another dtype does not change the dtype of the result.

    >>> import cygrad
    >>> cygrad.nn.functional.rms_norm(cygrad.tensor([[3., 4.]]), (2,), eps=0.)
    tensor([[0.8485, 1.1314]])
    """
    sizes = _check_shape(nn_functional_rms_norm, input, normalized_shape)
    _check_factors(sizes, weight=weight)
    checked_operand(nn_functional_rms_norm, input)
    x, factor = in_loops(input, weight)
    if eps is None:
        eps = finfo(x.dtype).eps
    mean = (x * x).mean(tuple(range(-len(sizes), 0)), keepdim=True)
    return _scaled(x * (mean + eps).rsqrt(), factor, None, input.dtype)


def _along_channels(input: Tensor) -> tuple[int, ...]:
    """Return the shape of a number for each channel, dim 1."""
    return (1, -1) + (1,) * (input.ndim - 2)


def _check_channels(input: Tensor, **factors: Tensor | None) -> None:
    for name, factor in factors.items():
        if factor is not None and factor.shape != (input.shape[1],):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                               f"{list(factor.shape)} and input of shape {list(input.shape)}")


@operator(refuses={"biuc": NO_LOOP}, loop="GroupNormKernelImpl", method=False, aliases=("group_norm",))
def nn_functional_group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
                             ) -> Tensor:
    """`layer_norm` of groups of channels, dim 1: `num_groups` of them, of equal size (Wu, He 2018).

    `weight` and `bias` have an element for each channel.

    >>> import cygrad
    >>> cygrad.nn.functional.group_norm(cygrad.tensor([[1., 3., 5., 5.]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    groups, = integers(num_groups)
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    samples, channels, *places = input.shape
    if channels % groups:
        raise RuntimeError(f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
                           f"{list(input.shape)} and num_groups={groups}")
    size = channels // groups * math.prod(places)
    if samples * size == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    if not are_like(input, (channels,), weight, bias):
        _check_tensors(nn_functional_group_norm, input, _check_channels, input, weight=weight, bias=bias)
    checked_operand(nn_functional_group_norm, input)
    x, factor, shift = in_loops(input, weight, bias)
    result = x.reshape(samples, groups, size)._standardized(eps, (2,)).reshape(input.shape)
    return _scaled(result, factor, shift, input.dtype, True)


# ----- By the elements of one channel -----
def _follow(x: Tensor, dims: tuple[int, ...], momentum: float, running_mean: Tensor | None, running_var: Tensor | None) -> None:
    """Move running values by a part of their differences from the mean and the variance over dims, which are averaged over samples."""
    values = []
    if running_mean is not None:
        values.append((running_mean, x.mean(dims, keepdim=True)))
    if running_var is not None:
        values.append((running_var, x.var(dims, keepdim=True)))
    for running, value in values:
        present = value if 0 in dims else value.mean(0)
        running.copy_(running * (1 - momentum) + present.reshape(running.shape) * momentum)


def _normalized(operator: Any, input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
                bias: Tensor | None, dims: tuple[int, ...] | None, momentum: float, eps: float) -> Tensor:
    """Normalize by the input's own mean and variance over dims, which the running ones follow, or without dims by the running ones."""
    channels = input.shape[1] if input.ndim > 1 else 0
    if not are_like(input, (channels,), running_mean, running_var, weight, bias):
        _check_tensors(operator, input, _check_elements, channels, running_mean=running_mean, running_var=running_var, weight=weight,
                       bias=bias)
    checked_operand(operator, input)
    if not input.numel():
        return input.clone()
    x, factor, shift, mean, variance = in_loops(input, weight, bias, running_mean, running_var)
    if dims is None:
        shape = _along_channels(input)
        result = (x - mean.reshape(shape)) * (variance.reshape(shape) + eps).rsqrt()
    else:
        result = x._standardized(eps, dims)
        if running_mean is not None or running_var is not None:
            unrecorded(lambda: _follow(x.detach(), dims, momentum, running_mean, running_var))
    return _scaled(result, factor, shift, input.dtype, True)


def _check_has_channels(input: Tensor) -> None:
    if input.ndim < 2 and input.numel():
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor, samples and channels, but received {input.ndim}")


@operator(refuses={"biuc": NO_LOOP}, loop="batch_norm")
def nn_functional_batch_norm(
        input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None,
        training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) weight + bias for each channel, dim 1 (Ioffe, Szegedy 2015).

    Mean and variance are the running ones; when `training`, the input's own over all other dims, and the running ones, if there are
    any, move towards them in place: by the part `momentum`, with the variance divided by n - 1.

    >>> import cygrad
    >>> x, mean, variance = cygrad.tensor([[1.], [3.]]), cygrad.zeros(1), cygrad.ones(1)
    >>> cygrad.nn.functional.batch_norm(x, mean, variance, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean
    tensor([0.2000])
    """
    _check_has_channels(input)
    if training:
        if input.numel() and input.shape[0] * math.prod(input.shape[2:]) == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
        if not eps > 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif not eps >= 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    dims = (0, *range(2, input.ndim)) if training else None
    return _normalized(nn_functional_batch_norm, input, running_mean, running_var, weight, bias, dims, momentum, eps)


@operator(refuses={"biuc": NO_LOOP}, loop="batch_norm")
def nn_functional_instance_norm(
        input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
        bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """`batch_norm` of each sample by itself, with mean and variance over the dims behind the channels (Ulyanov et al. 2016).

    Running values move towards the mean over the samples. Without `use_input_stats` they are the ones to normalize by.

    >>> import cygrad
    >>> cygrad.nn.functional.instance_norm(cygrad.tensor([[[1., 3.], [5., 7.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {list(input.shape)}")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if running_mean is None and not use_input_stats:
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    _check_has_channels(input)
    dims = tuple(range(2, input.ndim)) if use_input_stats else None
    return _normalized(nn_functional_instance_norm, input, running_mean, running_var, weight, bias, dims, momentum, eps)


@operator(refuses={"biuc": NO_LOOP}, loop="avg_pool2d")
def nn_functional_local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha mean(x^2))^beta, with the mean over `size` channels around each, zeros beyond the ends (Krizhevsky et al. 2012).

    >>> import cygrad
    >>> cygrad.nn.functional.local_response_norm(cygrad.ones(1, 3, 1), 3, alpha=3., beta=1.).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)")
    channels, = integers(size)
    if channels <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {channels} kW: 1")
    checked_operand(nn_functional_local_response_norm, input)
    if not input.numel():
        return input.clone()
    x, = in_loops(input)
    before, after = (x.new_zeros((x.shape[0], count, *x.shape[2:])) for count in (channels // 2, (channels - 1) // 2))
    mean = cat([before, x * x, after], 1).unfold(1, channels, 1).mean(-1)
    return (x / (mean * alpha + k).pow(beta)).to(input.dtype)


# ----- With the moments -----
def _moments(x: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """Return the mean over dims and 1 / sqrt(variance + eps), with the dims as 1."""
    mean = x.mean(dims, keepdim=True)
    return mean, _scale_of(x - mean, eps, dims)


@operator(method=False, refuses={"biuc": NO_LOOP}, loop="LayerNormKernelImpl")
def native_layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
                      ) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.layer_norm`, the mean and 1 / sqrt(variance + eps); the last two have no history.

    >>> import cygrad
    >>> [part.tolist() for part in cygrad.native_layer_norm(cygrad.tensor([[1., 3.]]), (2,), None, None, 0.)]
    [[[-1.0, 1.0]], [[2.0]], [[1.0]]]
    """
    checked_operand(native_layer_norm, input)
    result = nn_functional_layer_norm(input, normalized_shape, weight, bias, eps)
    x, = in_loops(input.detach())
    mean, scale = _moments(x, tuple(range(input.ndim - len(integers(normalized_shape)), input.ndim)), eps)
    return result, mean.to(input.dtype), scale.to(input.dtype)


@operator(method=False, refuses={"biuc": NO_LOOP}, loop="GroupNormKernelImpl")
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
                      ) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.group_norm` of N samples of C channels of HxW places; the mean and 1 / sqrt(variance + eps) of each group.

    >>> import cygrad
    >>> [part.tolist() for part in cygrad.native_group_norm(cygrad.tensor([[1., 3.]]), None, None, 1, 2, 1, 1, 0.)]
    [[[-1.0, 1.0]], [[2.0]], [[1.0]]]
    """
    samples, channels, places, groups = integers((N, C, HxW, group))
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if channels % groups:
        raise RuntimeError(f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
                           f"{list(input.shape)} and num_groups={groups}")
    if input.numel() != samples * channels * places or tuple(input.shape[:2]) != (samples, channels):
        raise RuntimeError(f"Expected X.numel() == N * C * HxW to be true, but got a tensor of shape {list(input.shape)} and "
                           f"{samples} * {channels} * {places}")
    if not are_like(input, (channels,), weight, bias):
        _check_tensors(native_group_norm, input, _check_channels, input, weight=weight, bias=bias)
    checked_operand(native_group_norm, input)
    x, factor, shift = in_loops(input, weight, bias)
    parts = x.reshape(samples, groups, channels // groups * places)
    mean, scale = _moments(parts, (2,), eps)
    result = _scaled(((parts - mean) * scale).reshape(input.shape), factor, shift, input.dtype, True)
    return result, mean.squeeze(2).to(input.dtype), scale.squeeze(2).to(input.dtype)


@operator(method=False, refuses={"biuc": NO_LOOP}, loop="batch_norm")
def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
                      training: bool, momentum: float, eps: float, *, out: tuple[Tensor, Tensor, Tensor] | None = None
                      ) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.batch_norm`, the mean and 1 / sqrt(variance + eps) of each channel, which have no history.

    When not `training`, these two are empty.

    >>> import cygrad
    >>> x = cygrad.tensor([[1.], [3.]])
    >>> [part.tolist() for part in cygrad.native_batch_norm(x, None, None, None, None, True, 0.1, 0.)]
    [[[-1.0], [1.0]], [2.0], [1.0]]
    """
    _check_has_channels(input)
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
    dims = (0, *range(2, input.ndim))
    result = _normalized(native_batch_norm, input, running_mean, running_var, weight, bias, dims if training else None, momentum, eps)
    x, = in_loops(input.detach())
    mean, scale = (part.reshape(-1).to(input.dtype) for part in _moments(x, dims, eps)) if training else (x.new_empty(0), x.new_empty(0))
    return delivered_together(lambda *parts: parts, (result, mean, scale), out)
