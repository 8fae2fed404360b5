"""Types of the compiled module; functions that a declaration describes have theirs there."""

from typing import Any

from cygrad.tensor import Tensor

def __getattr__(name: str) -> Any: ...
def padded(input: Tensor, counts: tuple[int, ...], number: Tensor) -> Tensor: ...
