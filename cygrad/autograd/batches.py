"""Unit vectors, and functions of many vectors at once: the parts of Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cygrad.random as random
from cygrad._core.levels.level import enter_level, exit_level
from cygrad.data.creation import eye, zeros
from cygrad.operators.joining import cat


def basis(tensors: Sequence[Any]) -> list[Any]:
    """Return, for tensors taken together as one vector, its unit vectors: along dim 0 of a tensor for each."""
    count, start, parts = sum(tensor.numel() for tensor in tensors), 0, []
    for tensor in tensors:
        size = tensor.numel()
        if size == count:
            unit = eye(count, dtype=tensor.dtype)
        else:
            unit = zeros(count, size, dtype=tensor.dtype)
            unit[start:start + size] = eye(size, dtype=tensor.dtype)
        parts.append(unit.reshape((count, *tensor.shape)))
        start += size
    return parts


def chunks(count: int, size: int, randomness: str) -> Iterator[tuple[int, int]]:
    """Yield start and length of so many rows at a time, at least once; with the same random numbers where all rows are to have them."""
    state = random.get_rng_state() if randomness == "same" and count > size else None
    for start in range(0, max(count, 1), max(size, 1)):
        if start and state is not None:
            random.set_rng_state(state)
        yield start, min(size, count - start)


def in_chunks(compute: Callable[[list[Any]], list[Any]], directions: list[Any], chunk_size: int | None, randomness: str = "error"
              ) -> list[Any]:
    """Apply a function to rows of tensors, all at once or some at a time."""
    count = len(directions[0]) if directions else 0
    size = count if chunk_size is None else chunk_size
    results: list[list[Any]] = []
    for start, length in chunks(count, size, randomness):
        parts = directions if size >= count else [rows.narrow(0, start, length) for rows in directions]
        level = enter_level(len(parts[0]), randomness)
        try:
            results.append([level.enter(item) for item in compute([level.leave(part) for part in parts])])
        finally:
            exit_level(level)
    return results[0] if len(results) == 1 else [cat(list(column)) for column in zip(*results, strict=True)]
