"""Types of the compiled module; functions that a declaration describes have theirs there."""

from typing import Any

def __getattr__(name: str) -> Any: ...
