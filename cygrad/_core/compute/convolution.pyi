"""Types of the compiled module; functions that a declaration describes have theirs there."""

from collections.abc import Callable
from typing import Any

from cygrad.tensor import Tensor

def set_ways(
    most_at_once: int, large_results: int, large_kernel: int, large_count: int, function: Callable[..., Tensor | None],
) -> None: ...
def is_spectral(kernel: tuple[int, ...], count: tuple[int, ...], x: Tensor) -> bool: ...
def __getattr__(name: str) -> Any: ...
