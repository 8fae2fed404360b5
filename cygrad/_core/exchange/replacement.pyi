"""Types of the compiled module; functions that a declaration describes have theirs there."""

from collections.abc import Callable
from typing import Any

from cygrad.tensor import Tensor

def __getattr__(name: str) -> Any: ...
def rearrange_in_place(function: Callable[..., Tensor], self: Tensor, *arguments: Any, **keywords: Any) -> Tensor: ...
