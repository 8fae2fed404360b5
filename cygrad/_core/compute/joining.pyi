"""Types of the compiled module; functions that a declaration describes have theirs there."""

from typing import Any

from cygrad.tensor import Tensor

def __getattr__(name: str) -> Any: ...
def rolled(input: Tensor, steps: tuple[int, ...], dims: tuple[int, ...]) -> Tensor: ...
