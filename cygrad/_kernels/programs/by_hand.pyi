"""Types of the compiled module."""

from collections.abc import Sequence

def run_steps(shape: Sequence[int], arrays: Sequence[tuple[int, int, Sequence[int], bool]], steps: Sequence[tuple[object, ...]],
              cost: int = ..., reduced: tuple[str, int] | None = ...) -> int: ...
