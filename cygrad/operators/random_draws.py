"""Random counts and indices, drawn by the parameters that tensors hold.

NumPy's C library draws them from the stream of the generator: one after another in index order, in double precision. All parameters are
checked before the first draw, so a refused call leaves the stream as it was. A count or an index does not depend differentiably on its
distribution, and has no history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cygrad._core.memory.sizes import index_argument
from cygrad._core.memory.storage import dtype_by_name
from cygrad.data.creation import check_room
from cygrad.data.sampling import drawn_for
from cygrad.generator import stream_of
from cygrad.operators._language.arguments import checked_operand, delivered
from cygrad.operators._language.declaration import operator
from cygrad.operators.shapes import broadcast_tensors
from cygrad.ops.refusals import NO_LOOP

if TYPE_CHECKING:
    from cygrad.generator import Generator, Rng
    from cygrad.tensor import Tensor

INT64 = dtype_by_name["int64"]
LARGEST_RATE = 2.0**63 - 10 * 2.0**31.5     # of Poisson's counts, whose upper end int64 holds
LARGEST_COUNT = 2.0**63


# ----- Indices -----
def _weights(weights: np.ndarray) -> np.ndarray:
    """Return the weights of rows in double precision with 1 as the largest of each row, so that no sum overflows; a copy."""
    if not np.all((weights >= 0) & (weights < np.inf)):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    largest = weights.max(-1, keepdims=True, initial=0).astype(np.float64)
    if not np.all(largest > 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    return weights / largest


def _with_replacement(stream: np.random.Generator, weights: np.ndarray, count: int) -> np.ndarray:
    """Return indices by the inverse of the distribution function; an index of weight 0 is no place where that rises."""
    rising = weights.cumsum(-1)
    rising /= rising[..., -1:]
    places = stream.random((*weights.shape[:-1], count))
    result = np.empty(places.shape, np.int64)
    for row in np.ndindex(weights.shape[:-1]):
        result[row] = rising[row].searchsorted(places[row], side="right")
    return result


def _without_replacement(stream: np.random.Generator, weights: np.ndarray, count: int) -> np.ndarray:
    """Return the indices that come first in a race of exponential times with these rates (Efraimidis and Spirakis 2006)."""
    times = stream.standard_exponential(weights.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(weights > 0, times / weights, np.inf)
    return times.argsort(-1, kind="stable")[..., :count]


@operator
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, rng: Rng | None = None,
                out: Tensor | None = None) -> Tensor:
    """Indices drawn with the weights that a vector, or each row of a matrix, holds; `num_samples` of each, in the order of the draws.

    The weights need not sum to one. Without replacement no index is drawn twice in a row, nor one of weight 0. The result is int64 and
    has no history.

    Raises:
        RuntimeError: weights that are negative, infinite or NaN, or all 0; fewer weights over 0 than samples without replacement;
            another number of dims; a dtype that is not floating-point.

    >>> import cygrad
    >>> cygrad.multinomial(cygrad.tensor([0., 10., 3., 0.]), 2).sort().values
    tensor([1, 2])
    >>> cygrad.multinomial(cygrad.tensor([[1., 0.], [0., 1.]]), 3, replacement=True)
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    count = index_argument(num_samples, "num_samples")
    if not input.is_floating_point():
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype}")
    if out is not None and out.dtype != INT64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype}")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, got {input.ndim}")
    if count <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples, got num_samples={count}")
    if not replacement and count > input.shape[-1]:
        raise RuntimeError(f"cannot sample n_sample > prob_dist.size(-1) samples without replacement: {count} > {input.shape[-1]}")
    stream = stream_of(generator, rng)

    def draw(numbers: np.ndarray) -> np.ndarray:
        weights = _weights(numbers)
        if replacement or count == 1:
            check_room(*weights.shape[:-1], count)
            return _with_replacement(stream, weights, count)
        available = int(np.count_nonzero(weights, axis=-1).min(initial=count))
        if available < count:
            raise RuntimeError("invalid multinomial distribution (with replacement=False, not enough non-negative category to sample): "
                               f"{count} samples of {available} weights over 0")
        return _without_replacement(stream, weights, count)

    return delivered(drawn_for(draw, input, dtype=INT64), out)


# ----- Counts -----
@operator(method=False, refuses={"biuc": NO_LOOP}, loop="poisson_cpu")
def poisson(input: Tensor, generator: Generator | None = None, *, rng: Rng | None = None) -> Tensor:
    """Counts drawn from Poisson distributions with the rates that the tensor holds; they have no history.

    Raises:
        RuntimeError: a rate that is negative or NaN, or above 9.2e18, where int64 ends.

    >>> import cygrad
    >>> abs(cygrad.poisson(cygrad.full((10000,), 4.), rng=0).mean().item() - 4) < 0.1
    True
    """
    checked_operand(poisson, input)
    stream = stream_of(generator, rng)

    def draw(rates: np.ndarray) -> np.ndarray:
        outside = ~((rates >= 0) & (rates <= LARGEST_RATE))
        if outside.any():
            raise RuntimeError(f"invalid Poisson rate, expected rate to be non-negative and at most {LARGEST_RATE:.4g}, got "
                               f"{rates[outside][0]}")
        return stream.poisson(rates)

    return drawn_for(draw, input)


@operator(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None, *, rng: Rng | None = None) -> Tensor:
    """Numbers of successes in `count` trials of probability `prob` each; both broadcast, and the result has no history.

    Raises:
        ValueError: a dtype that is not floating-point.
        RuntimeError: dtypes that differ, a count that is negative or no whole number, a probability outside of 0 to 1.

    >>> import cygrad
    >>> cygrad.binomial(cygrad.tensor([10., 3.]), cygrad.tensor([1., 0.]))
    tensor([10.,  0.])
    """
    for word, tensor in (("count", count), ("prob", prob)):
        if not tensor.is_floating_point():
            raise ValueError(f"binomial only supports floating-point dtypes for {word}, got: {tensor.dtype}")
    if count.dtype != prob.dtype:
        raise RuntimeError(f"Found dtype {prob.dtype} but expected {count.dtype}: count and prob have one dtype")
    count, prob = broadcast_tensors(count, prob)
    stream = stream_of(generator, rng)

    def draw(counts: np.ndarray, chances: np.ndarray) -> np.ndarray:
        outside = ~((counts >= 0) & (counts < LARGEST_COUNT)) | (counts != np.floor(counts))
        if outside.any():
            raise RuntimeError(f"binomial expects counts that are whole numbers and not negative, but got {counts[outside][0]}")
        outside = ~((chances >= 0) & (chances <= 1))
        if outside.any():
            raise RuntimeError(f"binomial expects probabilities in [0, 1], but got {chances[outside][0]}")
        return stream.binomial(counts.astype(np.int64), chances)

    return drawn_for(draw, count, prob)

