"""The directions of gradcheck: unit vectors, and random vectors, which are the same every time.

A complex tensor is a pair of real ones: real vectors are steps of each of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cygrad.autograd.gradcheck.case import memory_of
from cygrad.data.creation import from_numpy
from cygrad.tensor import Tensor

PART_NAMES = {1: "real", 1j: "imaginary"}


def parts_of(*tensors: Tensor) -> tuple[complex, ...]:
    """Return the steps of the parts that any of some tensors has, the imaginary one first, as in torch."""
    return (1j, 1) if any(tensor.is_complex() for tensor in tensors) else (1,)


def unit_vectors(tensor: Tensor, part: complex) -> Iterator[np.ndarray]:
    """Yield, for each element of a tensor, ones there, in one of its parts, and zeros elsewhere."""
    memory = memory_of(tensor)
    for index in np.ndindex(memory.shape):
        vector = np.zeros(memory.shape, memory.dtype)
        vector[index] = part
        yield vector


def in_parts(tensor: Tensor, vector: np.ndarray, parts: Sequence[complex]) -> np.ndarray:
    """Return a step of parts of a tensor, a real vector in each."""
    return np.asarray(sum(part * vector for part in parts), memory_of(tensor).dtype)


def random_directions(tensors: Sequence[Tensor], stream: np.random.Generator) -> list[np.ndarray]:
    """Return for each tensor a real vector of length one, in its shape; its elements are positive, none so small that it hides an error."""
    directions = []
    for tensor in tensors:
        vector = stream.uniform(0.5, 1.5, tuple(tensor.shape))
        directions.append(np.asarray(vector / (np.linalg.norm(vector) or 1), memory_of(tensor).real.dtype))
    return directions


def random_weights(outputs: Sequence[Tensor], strided: bool) -> tuple[Tensor, ...]:
    """Return for each output a weight from [-1, 1) that requires a gradient; `strided`: not contiguous."""
    stream = np.random.default_rng(0)
    weights = []
    for output in outputs:
        parts = (part * stream.uniform(-1, 1, (*output.shape, 2)) for part in parts_of(output))
        pairs = np.asarray(sum(parts), memory_of(output).dtype)
        weights.append(from_numpy(pairs[..., 0] if strided else pairs[..., 0].copy()).requires_grad_())
    return tuple(weights)
