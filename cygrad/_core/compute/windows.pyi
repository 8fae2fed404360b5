"""Types of the compiled module; those of what a declaration describes stand there."""

from typing import Any

from cygrad.tensor import Tensor

def __getattr__(name: str) -> Any: ...
def broadcast_shape(*tensors: Tensor) -> tuple[int, ...]: ...
