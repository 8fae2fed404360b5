"""Random numbers written into a tensor: the in-place methods, one for each distribution, and the functions that draw a new tensor.

Each takes `generator` (None: the default one) or `rng`, an argument of `numpy.random.default_rng`, and returns the tensor, whose
history ends: a draw depends on nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cygrad import random
from cygrad._core.compute.inplace import overwrite
from cygrad._core.graph.tensor import TensorImpl
from cygrad._core.levels.batches import is_special_tensor
from cygrad.data import sampling
from cygrad.data.sampling import at_random, drawn, fill, integers, levels_that_differ, limits_of, normal_around, numbers_of, parts_of
from cygrad.generator import source_of
from cygrad.operators._language.declaration import operator
from cygrad.operators.new_tensors import empty_like

if TYPE_CHECKING:
    from cygrad._core.memory.storage import DType
    from cygrad.data.sampling import Sample
    from cygrad.generator import Generator, Rng
    from cygrad.tensor import Tensor


def _filled(target: Tensor, sample: Sample, generator: Generator | None, rng: Rng | None) -> Tensor:
    source = source_of(generator, rng)
    if is_special_tensor(target) or levels_that_differ():
        return target.copy_(drawn(tuple(target.shape), sample, source, None, target.dtype, None, False))
    return overwrite(target, lambda array: fill(array, sample, source(), target.dtype), again=True)


# ----- Continuous distributions -----
@operator
def uniform_(self: Tensor, low: float = 0, to: float = 1, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Fill with numbers drawn uniformly from [`low`, `to`).

    >>> import cygrad
    >>> x = cygrad.empty(1000).uniform_(2, 3)
    >>> bool(((x >= 2) & (x < 3)).all())
    True
    """
    first, end = numbers_of(uniform_, **{"from": low, "to": to})
    if not first <= end:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={to}")

    def sample(stream: np.random.Generator, array: np.ndarray, dtype: DType) -> None:
        sampling.uniform(stream, array, dtype)
        numbers = parts_of(array)
        numbers *= end - first
        numbers += first
        if end > first:     # which rounding may have reached
            np.minimum(numbers, np.nextafter(numbers.dtype.type(end), numbers.dtype.type(first)), out=numbers)

    return _filled(self, sample, generator, rng)


@operator
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Fill with numbers drawn from the normal distribution.

    >>> import cygrad
    >>> abs(cygrad.empty(10000).normal_(5, 0.1, rng=0).mean().item() - 5) < 0.01
    True
    """
    center, spread = numbers_of(normal_, mean=mean, std=std)
    if not spread >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    return _filled(self, normal_around(center, spread), generator, rng)


@operator
def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Fill with exp of numbers drawn from the normal distribution with that mean and standard deviation.

    >>> import cygrad
    >>> bool((cygrad.empty(1000).log_normal_() > 0).all())
    True
    """
    return _filled(self, sampling.log_normal(*numbers_of(log_normal_, mean=mean, std=std)), generator, rng)


@operator
def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Fill with numbers drawn from the exponential distribution of rate `lambd`, whose mean is 1 / `lambd`.

    >>> import cygrad
    >>> abs(cygrad.empty(10000).exponential_(2, rng=0).mean().item() - 0.5) < 0.02
    True
    """
    return _filled(self, sampling.exponential(*numbers_of(exponential_, lambd=lambd)), generator, rng)


@operator
def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Fill with numbers drawn from the Cauchy distribution of that median and half width `sigma`.

    >>> import cygrad
    >>> abs(cygrad.empty(10000).cauchy_(3, rng=0).median().item() - 3) < 0.1
    True
    """
    return _filled(self, sampling.cauchy(*numbers_of(cauchy_, median=median, sigma=sigma)), generator, rng)


# ----- Discrete distributions -----
@operator
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Fill with the number of trials, 1 or more, up to the first success, which has probability `p` in each.

    >>> import cygrad
    >>> cygrad.empty(1000).geometric_(0.5).min()
    tensor(1.)
    """
    return _filled(self, sampling.geometric(*numbers_of(geometric_, p=p)), generator, rng)


@operator(function=False)
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None, rng: Rng | None = None,
              out: Tensor | None = None) -> Tensor:
    """Return a tensor of zeros and ones: ones with the probabilities that the tensor holds, or with probability `p` if given.

    >>> import cygrad
    >>> cygrad.tensor([0.0, 1.0]).bernoulli()
    tensor([0., 1.])
    """
    return random.bernoulli(input, p, generator=generator, rng=rng, out=out)


@operator
def bernoulli_(self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Fill with zeros and ones; ones with probability `p`, a number or a floating-point tensor that broadcasts.

    >>> import cygrad
    >>> cygrad.empty(2, dtype=cygrad.bool).bernoulli_(cygrad.tensor([0.0, 1.0]))
    tensor([False,  True])
    """
    if isinstance(p, TensorImpl) and (p.ndim or is_special_tensor(p)):
        return self.copy_(random.bernoulli(p.expand(self.shape), generator=generator, rng=rng))
    chance, = numbers_of(bernoulli_, p=p)
    if not 0 <= chance <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return _filled(self, at_random(chance), generator, rng)


@operator
def random_(self: Tensor, *bounds: int | None, to: int | None = None, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Fill with integers drawn uniformly: `random_(to)` from 0 to `to - 1`, `random_(low, to)` from `low` on.

    Without `to`, up to the largest that the dtype holds, and all smaller ones, without a gap.

    >>> import cygrad
    >>> x = cygrad.empty(100).random_(1, 7)
    >>> x.min() >= 1, x.max() <= 6
    (tensor(True), tensor(True))
    """
    if len(bounds) > 2 or len(bounds) == 2 and to is not None:
        raise TypeError(f"{random_.__name__}() takes at most two bounds, but {len(bounds) + (to is not None)} were given")
    ends = bounds if to is None else (*bounds, to)
    first, end = (0, *ends) if len(ends) == 1 else ends or (0, None)
    if end is None:
        end = limits_of(self.dtype)[1] + 1
    return _filled(self, integers(first, end), generator, rng)


# ----- New tensors -----
@operator(method=False)
def uniform(input: Tensor, low: float = 0, to: float = 1, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Return a tensor of the shape and dtype of another, with numbers drawn uniformly from [`low`, `to`).

    >>> import cygrad
    >>> x = cygrad.uniform(cygrad.zeros(1000), 2, 3)
    >>> bool(((x >= 2) & (x < 3)).all())
    True
    """
    return empty_like(input).uniform_(low, to, generator=generator, rng=rng)


@operator(method=False)
def log_normal(input: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Return a tensor of the shape and dtype of another, with exp of numbers drawn from the normal distribution.

    >>> import cygrad
    >>> bool((cygrad.log_normal(cygrad.zeros(1000)) > 0).all())
    True
    """
    return empty_like(input).log_normal_(mean, std, generator=generator, rng=rng)


@operator(method=False)
def exponential(input: Tensor, lambd: float = 1, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Return a tensor of the shape and dtype of another, with numbers drawn from the exponential distribution of rate `lambd`.

    >>> import cygrad
    >>> abs(cygrad.exponential(cygrad.zeros(10000), 2, rng=0).mean().item() - 0.5) < 0.02
    True
    """
    return empty_like(input).exponential_(lambd, generator=generator, rng=rng)


@operator(method=False)
def cauchy(input: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Return a tensor of the shape and dtype of another, with numbers drawn from the Cauchy distribution.

    >>> import cygrad
    >>> abs(cygrad.cauchy(cygrad.zeros(10000), 3, rng=0).median().item() - 3) < 0.1
    True
    """
    return empty_like(input).cauchy_(median, sigma, generator=generator, rng=rng)


@operator(method=False)
def geometric(input: Tensor, p: float, *, generator: Generator | None = None, rng: Rng | None = None) -> Tensor:
    """Return a tensor of the shape and dtype of another, with numbers of trials up to the first success of probability `p`.

    >>> import cygrad
    >>> cygrad.geometric(cygrad.zeros(1000), 0.5).min()
    tensor(1.)
    """
    return empty_like(input).geometric_(p, generator=generator, rng=rng)
