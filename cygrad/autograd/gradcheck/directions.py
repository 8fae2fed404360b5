"""Along what gradcheck differentiates: unit vectors, and random vectors, which are the same every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cygrad.autograd.gradcheck.case import memory_of
from cygrad.creation import from_numpy
from cygrad.tensor import Tensor


def unit_vectors(tensor: Tensor) -> Iterator[np.ndarray]:
    """Yield, for each element of a tensor, ones there and zeros elsewhere."""
    memory = memory_of(tensor)
    for index in np.ndindex(memory.shape):
        vector = np.zeros(memory.shape, memory.dtype)
        vector[index] = 1
        yield vector


def random_directions(tensors: Sequence[Tensor], stream: np.random.Generator) -> list[np.ndarray]:
    """Return for each tensor a vector of length one, in its shape; its elements are positive, none so small that it hides an error."""
    directions = []
    for tensor in tensors:
        vector = stream.uniform(0.5, 1.5, tuple(tensor.shape))
        directions.append(np.asarray(vector / (np.linalg.norm(vector) or 1), memory_of(tensor).dtype))
    return directions


def random_weights(outputs: Sequence[Tensor], strided: bool) -> tuple[Tensor, ...]:
    """Return for each output a weight from [-1, 1) that requires a gradient; `strided`: not contiguous."""
    stream = np.random.default_rng(0)
    weights = []
    for output in outputs:
        pairs = stream.uniform(-1, 1, (*output.shape, 2)).astype(memory_of(output).dtype)
        weights.append(from_numpy(pairs[..., 0] if strided else pairs[..., 0].copy()).requires_grad_())
    return tuple(weights)
