"""Types of the compiled module; functions that a declaration describes have theirs there."""

from typing import Any

from cygrad._core.memory.storage import DType

def __getattr__(name: str) -> Any: ...
def warn_of_parts(source: DType, target: DType, stacklevel: int = 1) -> None: ...
