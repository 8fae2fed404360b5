"""Types of the compiled module; those of what a declaration describes stand there."""

from typing import Any

from cygrad._core.memory.storage import DType

def __getattr__(name: str) -> Any: ...
def warn_of_parts(source: DType, target: DType, stacklevel: int = 1) -> None: ...
