"""Unit vectors, and functions of many vectors at once: what Jacobians are made with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cygrad._core.levels import enter_level, exit_level
from cygrad.creation import eye, zeros
from cygrad.operators import functions


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


def in_chunks(compute: Callable[[list[Any]], list[Any]], directions: list[Any], chunk_size: int | None, randomness: str = "error"
              ) -> list[Any]:
    """Apply a function to rows of tensors, all at once or some at a time."""
    count = len(directions[0]) if directions else 0
    size = count if chunk_size is None else chunk_size
    chunks: list[list[Any]] = []
    for start in range(0, max(count, 1), max(size, 1)):
        parts = directions if size >= count else [rows.narrow(0, start, min(size, count - start)) for rows in directions]
        level = enter_level(len(parts[0]), randomness)
        try:
            chunks.append([level.enter(item) for item in compute([level.leave(part) for part in parts])])
        finally:
            exit_level(level)
    return chunks[0] if len(chunks) == 1 else [functions["cat"](list(column)) for column in zip(*chunks, strict=True)]
