"""Types of the compiled module; functions that a declaration describes have theirs there."""

from collections.abc import Callable
from typing import Any, final

from cygrad.tensor import Tensor

@final
class Ways:
    block: int
    kernel: int
    places: int
    gathered: int
    convolve: Callable[..., Tensor]
    spread: Callable[..., Tensor]
    add: Callable[..., Tensor]

ways: Ways

def is_spectral(kernel: tuple[int, ...], count: tuple[int, ...], x: Tensor) -> bool: ...
def convolved_at_once(x: Tensor, w: Tensor, steps: Any, count: tuple[int, ...]) -> Tensor | None: ...
def kernels_at_once(x: Tensor, y: Tensor, steps: Any, kernel: tuple[int, ...]) -> Tensor | None: ...
def spread_at_once(y: Tensor, w: Tensor, steps: Any, sizes: tuple[int, ...]) -> Tensor | None: ...
def __getattr__(name: str) -> Any: ...
