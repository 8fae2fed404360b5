"""Types of the compiled module."""

from collections.abc import Callable, Sequence
from typing import Any

def tiled(formula: Callable[..., Any], read: Callable[..., Any]) -> Callable[..., Any]: ...

class Steps:
    def __init__(self, slots: Sequence[tuple[Any, ...]], steps: Sequence[tuple[Any, ...]], result: int) -> None: ...
