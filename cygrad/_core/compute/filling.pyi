"""Types of the compiled module; those of what a declaration describes stand there."""

from typing import Any

def __getattr__(name: str) -> Any: ...
