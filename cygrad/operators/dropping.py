"""Dropout: elements, or whole channels, set to 0 or to the least value of an activation, at random; and other random activations.

Numbers come from the package's default generator: `cygrad.manual_seed` repeats them.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from cygrad.data.sampling import at_random, drawn, uniform
from cygrad.generator import source_of
from cygrad.operators._language.arguments import checked_operand
from cygrad.operators._language.declaration import operator
from cygrad.operators._language.narrow_floats import rounded_once
from cygrad.ops.dtypes import DTYPES, NUMBER
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad._core.memory.storage import DType
    from cygrad.data.sampling import Sample
    from cygrad.tensor import Tensor


# ----- Drawing -----
def _drawn(size: tuple[int, ...], sample: Sample, dtype: DType) -> Tensor:
    return drawn(size, sample, source_of(None, None), None, dtype, None, False)


def _check_chance(p: Any) -> float:
    if isinstance(p, bool) or not isinstance(p, (int, float, np.number)):
        raise TypeError(f"dropout probability: argument 'p' must be float, not {type(p).__name__}")
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return float(p)


def _check_floating(input: Tensor) -> None:
    """Refuse a tensor that cannot hold the scaled elements."""
    if input.is_complex():
        raise NotImplementedError(f"\"bernoulli_scalar_cpu_\" not implemented for '{DTYPES[NUMBER[input.dtype.name]].title}'")
    if not input.is_floating_point():
        title = DTYPES[NUMBER[input.dtype.name]].title
        raise RuntimeError(f"result type Float can't be cast to the desired output type {title}: dropout scales floats; convert the input")


def _channels(input: Tensor) -> tuple[int, ...]:
    """Return the shape of a number for each sample and channel, dims 0 and 1."""
    if input.ndim < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input, but it has {input.ndim}")
    return (*input.shape[:2], *(1,) * (input.ndim - 2))


def _dropped(input: Tensor, p: float, training: bool, inplace: bool, size: tuple[int, ...]) -> Tensor:
    """Return elements times 0 with probability p, times 1 / (1 - p) otherwise."""
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    _check_floating(input)
    dtype: Any = input.dtype.loops      # a factor is rounded with its product
    factor = _drawn(size, at_random(1 - p), dtype) / (1 - p)
    if inplace:
        return input.mul_(factor)
    return input * factor if dtype is input.dtype else (input.to(dtype) * factor).to(input.dtype)


# ----- Zeros -----
@operator
def nn_functional_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements set to 0, each with probability `p`, and the others times 1 / (1 - p); the input itself unless `training`.

    ValueError if `p` is outside of 0 to 1 (Srivastava et al. 2014).

    >>> import cygrad
    >>> y = cygrad.nn.functional.dropout(cygrad.ones(1000), 0.5)
    >>> sorted(set(y.tolist()))
    [0.0, 2.0]
    """
    return _dropped(input, _check_chance(p), training, inplace, tuple(input.shape))


@operator
def nn_functional_dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of a signal: the input is (samples, channels, length) or (channels, length).

    >>> import cygrad
    >>> y = cygrad.nn.functional.dropout1d(cygrad.ones(100, 3, 2), 0.5)
    >>> bool((y[..., 0] == y[..., 1]).all())
    True
    """
    chance = _check_chance(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to provide "
                           "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
                           "(i.e. 2D or 3D inputs).")
    return _dropped(input, chance, training, inplace, (*input.shape[:-1], 1))


@operator
def nn_functional_dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of pictures, (samples, channels, height, width).

    An input of 3 dims is (samples, channels, length), with a warning, as in torch; of others but 4 there is a warning, too.

    >>> import cygrad
    >>> y = cygrad.nn.functional.dropout2d(cygrad.ones(100, 3, 2, 2), 0.5)
    >>> bool((y == y[..., :1, :1]).all())
    True
    """
    chance = _check_chance(p)
    if input.ndim == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input "
                      "is interpreted as shape (N, C, L), where C is the channel dim. Use dropout1d for it.", stacklevel=2)
    elif input.ndim != 4:
        warnings.warn(f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated and will result in an error in a "
                      "future release. To retain the behavior and silence this warning, please use dropout instead.", stacklevel=2)
    return _dropped(input, chance, training, inplace, _channels(input))


@operator
def nn_functional_dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of volumes: (samples, channels, depth, height, width), or without the samples.

    Inputs of other numbers of dims are read as samples and channels, with a warning, as in torch.

    >>> import cygrad
    >>> y = cygrad.nn.functional.dropout3d(cygrad.ones(100, 3, 2, 2, 2), 0.5)
    >>> bool((y == y[..., :1, :1, :1]).all())
    True
    """
    chance = _check_chance(p)
    if input.ndim not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is deprecated and will result in an error in a "
                      "future release. To retain the behavior and silence this warning, please use dropout instead.", stacklevel=2)
    size = _channels(input) if input.ndim == 5 else (*input.shape[:1], *(1,) * (input.ndim - 1))
    return _dropped(input, chance, training, inplace, size)


# ----- The least value of selu -----
LEAST = -1.7580993408473766     # -alpha * scale of selu


def _dropped_to_least(input: Tensor, p: float, training: bool, inplace: bool, size: tuple[int, ...]) -> Tensor:
    """Return elements set to the least value of selu with probability p, scaled so that mean 0 and variance 1 are as before."""
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    _check_floating(input)
    scale = 1 / math.sqrt((1 - p) * (1 + p * LEAST**2))
    remaining = _drawn(size, at_random(1 - p), input.dtype.loops)
    result = rounded_once(lambda x: x * (remaining * scale) + ((1 - remaining) * LEAST + p * -LEAST) * scale)(input)
    return input.copy_(result) if inplace else result


@operator
def nn_functional_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Elements set to the least value of `selu`, each with probability `p`, then scaled and shifted.

    Of elements with mean 0 and variance 1 the result has both again (Klambauer et al. 2017). The input itself unless `training`.

    >>> import cygrad
    >>> y = cygrad.nn.functional.alpha_dropout(cygrad.randn(100000, rng=0), 0.5, training=True)
    >>> abs(y.mean().item()) < 0.02, abs(y.var().item() - 1) < 0.02
    (True, True)
    """
    return _dropped_to_least(input, _check_chance(p), training, inplace, tuple(input.shape))


@operator
def nn_functional_feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels: the input is (samples, channels, ...).

    >>> import cygrad
    >>> y = cygrad.nn.functional.feature_alpha_dropout(cygrad.ones(100, 3, 2), 0.5, training=True)
    >>> bool((y[..., 0] == y[..., 1]).all())
    True
    """
    chance = _check_chance(p)
    return _dropped_to_least(input, chance, training, inplace, _channels(input) if training and chance else ())


# ----- Activations -----
@operator(refuses={"biuc": NO_LOOP}, loop="leaky_relu_cpu", in_place=True)
def nn_functional_rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """Rectifier with a slope below 0 that is random: drawn between `lower` and `upper` for each element when `training`, else their mean.

    >>> import cygrad
    >>> cygrad.nn.functional.rrelu(cygrad.tensor([-1., 2.]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    checked_operand(nn_functional_rrelu, input)
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, but they are {lower} and {upper}")
    slope: Any = (lower + upper) / 2
    if training:
        slope = _drawn(tuple(input.shape), uniform, input.dtype.loops) * (upper - lower) + lower
    result = rounded_once(lambda x: x.where(x > 0, x * slope))(input)
    return input.copy_(result) if inplace else result.contiguous()


@operator
def nn_functional_gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + noise) / tau), with noise of the Gumbel distribution: a smooth sample of a category.

    The less `tau`, the less smooth. `hard`: the sample itself, one 1 along `dim` and zeros, with the gradient of the smooth one
    (Jang, Gu, Poole 2017). `eps` has no effect.

    >>> import cygrad
    >>> cygrad.nn.functional.gumbel_softmax(cygrad.zeros(4, 3), hard=True).sum(-1)
    tensor([1., 1., 1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    if not logits.is_floating_point():
        raise RuntimeError("Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
                           f"specified {DTYPES[NUMBER[logits.dtype.name]].title}")

    def exponential(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
        stream.standard_exponential(out=array, dtype=array.dtype)

    noise = _drawn(tuple(logits.shape), exponential, logits.dtype.loops)
    smooth = rounded_once(lambda x: ((x - noise.log()) / tau).softmax(dim))(logits)
    if not hard:
        return smooth
    one = smooth.detach().argmax(dim, keepdim=True)
    return smooth.new_zeros(smooth.shape).scatter(dim, one, 1.0) - smooth.detach() + smooth
